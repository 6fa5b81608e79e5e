//! Measures the logbook: `cargo run -p tampu-logbook --release --example book_speed -- [--entries N,N] [--samples N] [--dir DIR]`.
//! `--postgres ADDRESS` takes a database instead of a directory.
//!
//! The example makes logbooks of the sizes of LHCb's table (1, 464, 11 332, 76 270 entries) with texts of shift reports made from a seed. For each
//! kind of search it prints milliseconds: median, 99th percentile and maximum. Then it prints posts per second with attachments of 100 KB, the time
//! to open the store, and the memory in use. The figures are meaningful on a quiet machine only.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute},
    entry::{Content, Encoding, EntryRef, NewEntry},
    search::{Count, Search, Sort, Start, Stop},
    store::{Imported, MAX_ATTACHMENT, Store, postgres::PostgresStore, sqlite::SqliteStore},
};
use tampu_types::Time;

type Failed = Box<dyn std::error::Error>;

const SYSTEMS: [&str; 12] =
    ["VELO", "RICH1", "RICH2", "ECAL", "HCAL", "MUON", "L0", "HLT", "DAQ", "Cooling", "Magnet", "PRS/SPD"];
const TYPES: [&str; 6] = ["Routine", "Shift summary", "Problem", "Problem Fixed", "Calibration", "Information"];
const FIRST: [&str; 12] =
    ["Anna", "Boris", "Carla", "Dmitri", "Elena", "Franz", "Giulia", "Hans", "Irene", "José", "Katya", "Loïc"];
const LAST: [&str; 10] = ["Almeida", "Bauer", "Costa", "Dupont", "Eriksson", "Müller", "Lefèvre", "Novak", "Olsen", "Petrov"];

/// A small generator of numbers that only has to differ.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

fn sentence(chance: &mut Chance, id: u32) -> String {
    let system = chance.of(&SYSTEMS);
    let (channel, value) = (chance.below(1600), 10 + chance.below(980));
    let clock = format!("{:02}:{:02}", chance.below(24), chance.below(60));
    match chance.below(10) {
        0 => format!("{system} HV tripped on channel {channel} at {clock}, current was {value} uA; recovered after a reset."),
        1 => format!("The rate on L0 went up to {value} kHz, deadtime {} percent, then came back to nominal.", chance.below(99)),
        2 => format!("FSM node {system}_DAQ stayed in ERROR; sent RECOVER, then RESET, then CONFIGURE and it went READY."),
        3 => format!("TELL1 board {channel} of {system} lost the clock lock, power cycled the crate and re-took the pedestals."),
        4 => format!("Run {} started with the PHYSICS partition, filling scheme 25ns_2748b.", 80_000 + 2 * id),
        5 => format!("The farm node hlt{channel:04} is out of memory; excluded from the partition, ticket opened."),
        6 => format!("Dump at {clock}, cause: quench heater firing in S34. Ramp down of {system} by the automatic action."),
        7 => format!("Monitoring histograms for {system} look as in the reference apart from hot channels around {channel}."),
        8 => format!("Device LHC:MAG-{:02}/cur reads {value}.{} A, field map as expected.", chance.below(60), chance.below(99)),
        _ => format!("No reaction from the panel for {} seconds, restarted the project on the control PC.", chance.below(99)),
    }
}

fn entry(chance: &mut Chance, book: &str, id: u32, date: i64) -> Imported {
    let rare = chance.below(200) == 0 || id == 1;
    let author = if rare { "Zoe Quartz".to_owned() } else { format!("{} {}", chance.of(&FIRST), chance.of(&LAST)) };
    let system = chance.of(&SYSTEMS);
    let mut text = String::new();
    while text.len() < 500 + (id as usize * 37) % 700 {
        text.push_str(&sentence(chance, id));
        text.push(if chance.below(3) == 0 { '\n' } else { ' ' });
    }
    let encoding = if chance.below(4) == 0 { Encoding::Html } else { Encoding::Plain };
    let attributes = vec![
        EntryAttribute::new("Author", &author),
        EntryAttribute::new("Type", chance.of(&TYPES)),
        EntryAttribute::new("System", system),
        EntryAttribute::new(
            "Subject",
            &format!("{system}: {} {}", chance.of(&["HV trip", "restart", "access"]), chance.below(9999)),
        ),
    ];
    let parent = (id > 3 && chance.below(5) == 0).then(|| id - 1 - chance.below(3) as u32);
    let content = Content { attributes, encoding, text, ..Content::default() };
    let entry = NewEntry { book: book.to_owned(), parent, content, date: Some(Time(date)), zone: 60 };
    let mut digest = [0; 16];
    digest[..4].copy_from_slice(&id.to_le_bytes());
    Imported { id, thread: parent.unwrap_or(id), entry, digest, draft: None, author: None }
}

/// Fills a book of the generator's kind; how long that took.
pub fn fill(store: &dyn Store, name: &str, entries: u32) -> Result<Duration, Failed> {
    let mut chance = Chance(u64::from(entries));
    let mut date = 1_221_000_000_000_000_000;
    let attributes = ["Author", "Type", "System", "Subject"].map(|name| AttributeDef::new(name, AttributeKind::Text)).to_vec();
    store.put_book(&Book::new(name, attributes))?;
    let (mut next, mut spent) = (1, Duration::ZERO);
    while next <= entries {
        let end = (next + 2000).min(entries + 1);
        let batch: Vec<Imported> = (next..end)
            .map(|id| {
                date += 1_000_000_000 * (1 + chance.below(1500) as i64);
                entry(&mut chance, name, id, date)
            })
            .collect();
        let begun = Instant::now();
        store.import(name, batch, vec![], "speed")?;
        spent += begun.elapsed();
        next = end;
    }
    let begun = Instant::now();
    store.imported()?;
    Ok(spent + begun.elapsed())
}

/// Times an act: least, median, 99th percentile and most, in words.
pub fn measure(samples: usize, mut act: impl FnMut(usize) -> Result<String, Failed>) -> Result<String, Failed> {
    let mut told = act(0)?;
    let mut times = Vec::with_capacity(samples);
    for at in 0..samples {
        let begun = Instant::now();
        told = act(at)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
    Ok(format!("{:9.3} {:9.3} {:9.3}  {told}", at(0.5), at(0.99), times[times.len() - 1]))
}

fn searches(store: &dyn Store, name: &str, entries: u32, samples: usize) -> Result<(), Failed> {
    println!("{:<30} {:>9} {:>9} {:>9}  found", format!("{name}, ms"), "p50", "p99", "max");
    let base = Search { books: vec![name.to_owned()], ..Search::default() };
    let search = |query: &str| Search { query: query.to_owned(), ..base.clone() };
    let sorted = |query: &str, by: &str, descending| Search { sort: Sort::Attribute(by.to_owned()), descending, ..search(query) };
    let mut after = search("");
    after.limit = 1000;
    for _ in 0..10.min(entries / 1000) {
        if let Some(next) = store.search(&after, &Stop::default())?.next {
            after.start = Start::After(next);
        }
    }
    after.limit = 20;
    let all: [(&str, Search); 22] = [
        ("list", search("")),
        ("list, page 2", Search { start: Start::Skip(20), ..search("") }),
        ("list, page 500 by number", Search { start: Start::Skip(9980), ..search("") }),
        ("list, page 500 by place", after),
        ("author, rare", search("author:\"Zoe Quartz\"")),
        ("author in text, rare", search("\"Zoe Quartz\"")),
        ("one common word", search("channel")),
        ("two words", search("quench polarity")),
        ("words and not", search("HV tripped -RICH1")),
        ("phrase", search("\"RICH1 HV tripped\"")),
        ("device", search("LHC:MAG-07/cur")),
        ("prefix", search("histo*")),
        ("part of a word", search("~edestal")),
        ("regex, rare", search("/hlt0*7 is/")),
        ("regex, common", search("/HV tripped.*uA/")),
        ("regex, no literal", search("/\\d\\d:\\d\\d, c/")),
        ("regex, nothing", search("/quench.{1,5}nothing/")),
        ("attribute", search("type:=Problem system:HLT")),
        ("sort by Subject", sorted("", "Subject", false)),
        ("sort by Author, down", sorted("", "Author", true)),
        ("sort, common word", sorted("channel", "Subject", false)),
        ("sort, rare author", sorted("author:\"Zoe Quartz\"", "Subject", true)),
    ];
    for (what, search) in &all {
        let line = measure(samples, |_| {
            let page = store.search(search, &Stop::default())?;
            let count = match page.count {
                Some(Count::Exactly(count)) => count.to_string(),
                Some(Count::AtLeast(count)) => format!("more than {count}"),
                None => "-".to_owned(),
            };
            Ok(format!("{count}{}", page.stopped.map_or(String::new(), |why| format!(" ({why:?})"))))
        })?;
        println!("{what:<30} {line}");
    }
    let line = measure(samples, |at| {
        let id = 1 + (at as u32 * 7919) % entries;
        Ok(store.entry(&EntryRef::new(name, id))?.at.to_string())
    })?;
    println!("{:<30} {line}", "entry");
    Ok(())
}

/// Searchers that search again at once, writers, and a probe that reads one entry.
fn together(store: &dyn Store, name: &str, searchers: usize, writers: usize) -> Result<(), Failed> {
    let end = Instant::now() + Duration::from_secs(3);
    let queries = ["author:\"Zoe Quartz\"", "channel", "\"RICH1 HV tripped\"", "/HV tripped.*uA/", ""];
    let (searches, posts) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut probes = Vec::new();
    std::thread::scope(|scope| {
        for nth in 0..searchers {
            let searches = &searches;
            scope.spawn(move || {
                for query in queries.iter().cycle().skip(nth).take_while(|_| Instant::now() < end) {
                    let search = Search { books: vec![name.to_owned()], query: (*query).to_owned(), ..Search::default() };
                    searches.fetch_add(u64::from(store.search(&search, &Stop::default()).is_ok()), Ordering::Relaxed);
                }
            });
        }
        for nth in 0..writers {
            let posts = &posts;
            scope.spawn(move || {
                let mut chance = Chance(nth as u64);
                while Instant::now() < end {
                    let mut new = entry(&mut chance, name, 1_000_000, 0).entry;
                    (new.parent, new.date) = (None, None);
                    posts.fetch_add(u64::from(store.post(new, vec![], "speed").is_ok()), Ordering::Relaxed);
                }
            });
        }
        while Instant::now() < end {
            let begun = Instant::now();
            if store.entry(&EntryRef::new(name, 1)).is_ok() {
                probes.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    probes.sort_by(f64::total_cmp);
    let at = |share: f64| probes.get((probes.len() as f64 * share) as usize).or(probes.last()).copied().unwrap_or_default();
    let (searched, posted) = (searches.into_inner() as f64 / 3.0, posts.into_inner() as f64 / 3.0);
    println!(
        "{searchers} searchers, {writers} writers: {searched:.0} searches/s, {posted:.0} posts/s; a probe's entry {:.2} ms, p99 {:.2} ms",
        at(0.5),
        at(0.99)
    );
    Ok(())
}

fn posts(store: &dyn Store, name: &str, count: u32) -> Result<(), Failed> {
    let mut chance = Chance(7);
    let begun = Instant::now();
    for at in 0..count {
        let mut new = entry(&mut chance, name, 1_000_000 + at, 0).entry;
        (new.parent, new.date) = (None, None);
        store.post(new, vec![], "speed")?;
    }
    let plain = f64::from(count) / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for at in 0..count {
        let bytes: Vec<u8> = (0..100_000u32).map(|byte| (byte.wrapping_mul(at + 3) >> 3) as u8).collect();
        let upload = store.upload(&mut &bytes[..], MAX_ATTACHMENT)?;
        let mut new = entry(&mut chance, name, 1_000_000 + at, 0).entry;
        (new.parent, new.date) = (None, None);
        new.content.attachments = vec![upload.attachment("data.bin", Time(0))];
        store.post(new, vec![upload], "speed")?;
    }
    let attached = f64::from(count) / begun.elapsed().as_secs_f64();
    println!("posts one after the other: {plain:.0}/s, with 100 KB attachments {attached:.0}/s");
    Ok(())
}

/// The process's memory, in words.
pub fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    format!("{}, {}", of("VmRSS"), of("VmHWM")).replace('\t', " ")
}

/// The place of the logbooks: a directory or a database.
enum Place<'a> {
    Directory(&'a Path),
    Database(&'a str),
}

impl Place<'_> {
    /// The logbooks of this name.
    fn open(&self, name: &str) -> Result<Box<dyn Store>, Failed> {
        Ok(match self {
            Place::Directory(dir) => Box::new(SqliteStore::open(&dir.join(name))?),
            Place::Database(address) => Box::new(PostgresStore::open(address, &format!("speed_{name}"))?),
        })
    }
}

fn run(place: &Place<'_>, sizes: &[u32], samples: usize) -> Result<(), Failed> {
    for &entries in sizes {
        let name = format!("b{entries}");
        let store = place.open(&name)?;
        if store.books()?.is_empty() {
            let took = fill(&*store, &name, entries)?;
            println!("{name}: imported in {:.1} s; {}", took.as_secs_f64(), memory());
        }
        drop(store);
        let begun = Instant::now();
        let store = place.open(&name)?;
        let page = store.search(&Search::default(), &Stop::default())?;
        println!("{name}: opened, first page of {} after {:.1} ms", page.hits.len(), begun.elapsed().as_secs_f64() * 1e3);
        searches(&*store, &name, entries, samples)?;
        for (searchers, writers) in [(1, 0), (4, 0), (16, 0), (16, 4)] {
            together(&*store, &name, searchers, writers)?;
        }
        posts(&*store, &name, 200)?;
        println!("{name}: {}\n", memory());
    }
    Ok(())
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|found| found == name).and_then(|at| arguments.get(at + 1));
    let sizes = value("--entries").map_or("1,464,11332,76270", String::as_str);
    let sizes = sizes.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    let samples = value("--samples").map_or(Ok(300), |text| text.parse())?;
    match (value("--postgres"), value("--dir")) {
        (Some(address), _) => run(&Place::Database(address), &sizes, samples),
        (None, Some(dir)) => run(&Place::Directory(Path::new(dir)), &sizes, samples),
        (None, None) => run(&Place::Directory(tempfile::tempdir()?.path()), &sizes, samples),
    }
}
