//! Speed of the built-in archive: it takes records, compacts them into Parquet and finds them again, beside DuckDB on the same files.
//! `cargo run --release -p tampu-archive --example archive_speed -- DIR [million records] [python with duckdb]`.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use tampu_archive::{
    Archive, Arrival, Grouping, LocalArchive, Options, PatternsWanted, Stop,
    columns::log_columns,
    query::{Field, Query},
};
use tampu_types::{Domain, Level, Time};

mod generate;
use generate::{DAY, Day};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const HOUR: i64 = 3_600_000_000_000;
/// Of so many runs the median counts.
const RUNS: usize = 5;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which directory?")?;
    let millions: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let python = arguments.next();
    let dir = Path::new(&dir);
    let domain = Domain::new("speed")?;
    let records = (millions * 1e6) as u64;
    if !dir.join("manifest.jsonl").exists() {
        let ingest = take(dir, &domain, records)?;
        compact(dir, &domain, records, ingest)?;
    }
    let begun = Instant::now();
    let archive = LocalArchive::open(dir, Options::new(domain))?;
    println!("{:44} {:9.1} ms", "open again", begun.elapsed().as_secs_f64() * 1e3);
    let mut peer = python.map(|python| Peer::start(&python, dir)).transpose()?;
    ask(&archive, &mut peer)
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Takes a day's records into segments; returns the CPU time a record, in us.
fn take(dir: &Path, domain: &Domain, records: u64) -> Outcome<f64> {
    let archive = LocalArchive::open(dir, Options { compact: false, ..Options::new(domain.clone()) })?;
    let mut day = Day::new(domain, records);
    let (mut took, mut spent, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    loop {
        let samples = day.next(500_000)?;
        if samples.is_empty() {
            break;
        }
        let (begun, before) = (Instant::now(), cpu());
        for sample in &samples {
            bytes += sample.bytes.len();
            let sent = [sample.bytes.as_slice()];
            while archive.append(&Arrival::of_stream(&sample.header, &sent, sample.received)).is_err() {}
        }
        archive.flush(Duration::from_secs(60));
        took += begun.elapsed();
        spent += cpu() - before;
    }
    let each = spent.as_secs_f64() * 1e6 / records as f64;
    println!(
        "taken: {records} records, {} B each on the wire: {:.2} M/s, CPU {each:.3} us a record",
        bytes as u64 / records,
        records as f64 / took.as_secs_f64() / 1e6
    );
    Ok(each)
}

fn compact(dir: &Path, domain: &Domain, records: u64, ingest: f64) -> Outcome<()> {
    let archive = LocalArchive::open(dir, Options { share: 1.0, ..Options::new(domain.clone()) })?;
    let (begun, before) = (Instant::now(), cpu());
    archive.compact(&Stop::default(), &mut |_| {})?;
    let each = (cpu() - before).as_secs_f64() * 1e6 / records as f64;
    let health = archive.health();
    println!(
        "into Parquet: {:.1} s, CPU {each:.3} us a record, with what taking cost {:.3} us; {:.2} B a record on disk in {} files",
        begun.elapsed().as_secs_f64(),
        each + ingest,
        health.bytes as f64 / health.records as f64,
        health.files
    );
    Ok(())
}

/// DuckDB in a process of its own, asked over a pipe.
struct Peer {
    _child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(python: &str, dir: &Path) -> Outcome<Peer> {
        let files = dir.join("parquet/*/*.parquet");
        let mut child = Command::new(python)
            .args(["-c", include_str!("duckdb.py")])
            .arg(files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = child.stdin.take().ok_or("no pipe to the peer")?;
        let mut answers = BufReader::new(child.stdout.take().ok_or("no pipe from the peer")?);
        let mut version = String::new();
        answers.read_line(&mut version)?;
        println!("beside {}", version.trim());
        Ok(Peer { _child: child, questions, answers })
    }

    /// Returns the duration of a query in ms, and its single value or its number of rows.
    fn ask(&mut self, sql: &str) -> Outcome<(f64, u64)> {
        writeln!(self.questions, "{RUNS} {sql}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let (time, value) = line.trim().split_once(' ').ok_or("the peer gave no answer")?;
        Ok((time.parse()?, value.parse()?))
    }
}

/// Does something several times; returns the median time in ms and what it gave.
fn timed(mut work: impl FnMut() -> Outcome<u64>) -> Outcome<(f64, u64)> {
    let mut times = Vec::new();
    let mut value = 0;
    for _ in 0..RUNS {
        let begun = Instant::now();
        value = work()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[RUNS / 2], value))
}

fn ask(archive: &LocalArchive, peer: &mut Option<Peer>) -> Outcome<()> {
    let base = Query::default();
    let newest = Query { newest_first: true, limit: Some(100), ..base.clone() };
    let mut some = None;
    archive.search(&newest, &Stop::default(), &mut |found| {
        some = Some(found.record.clone());
        false
    })?;
    let some = some.ok_or("the archive is empty")?;
    let process = some.process.clone();
    let fields = |field: Field, value: &str| [(field, vec![value.to_owned()])].into();
    let (from, to) = (Time(DAY + 11 * HOUR), Time(DAY + 12 * HOUR));
    let hour = format!("time >= '{}Z' AND time < '{}Z'", from.to_ns_text(), to.to_ns_text());
    let recent = |condition: &str| format!("SELECT * FROM log WHERE {condition} ORDER BY time DESC LIMIT 100");
    let source = "CONTROL/DV01/Mount";
    let searches = [
        ("newest 100, Error and above", Query { min_level: Some(Level::Error), ..newest.clone() }, recent("level_number >= 8")),
        ("newest 100, Emergency", Query { min_level: Some(Level::Emergency), ..newest.clone() }, recent("level_number >= 11")),
        (
            "newest 100 of a process",
            Query { fields: fields(Field::Process, &process), ..newest.clone() },
            recent(&format!("process = '{process}'")),
        ),
        (
            "newest 100, Error, of a component",
            Query { min_level: Some(Level::Error), fields: fields(Field::SourceObject, source), ..newest.clone() },
            recent(&format!("level_number >= 8 AND source_object = '{source}'")),
        ),
        (
            "an hour: level, process, word",
            Query {
                since: Some(from),
                until: Some(to),
                min_level: Some(Level::Info),
                fields: fields(Field::Process, &process),
                words: vec!["antenna".into()],
                ..base.clone()
            },
            format!(
                "SELECT * FROM log WHERE {hour} AND level_number >= 4 AND process = '{process}' AND regexp_matches(message, '(?i)\\bantenna\\b') ORDER BY time"
            ),
        ),
        (
            "an hour: level, word",
            Query {
                since: Some(from),
                until: Some(to),
                min_level: Some(Level::Error),
                words: vec!["antenna".into()],
                ..base.clone()
            },
            format!(
                "SELECT * FROM log WHERE {hour} AND level_number >= 8 AND regexp_matches(message, '(?i)\\bantenna\\b') ORDER BY time"
            ),
        ),
        (
            "a rare word over the day",
            Query { words: vec!["0x00c0ffee".into()], ..base.clone() },
            "SELECT * FROM log WHERE message ILIKE '%0x00c0ffee%' OR data ILIKE '%0x00c0ffee%'".into(),
        ),
        (
            "a rare text over the day",
            Query { text: Some("uid://A0ff/X0ff".into()), ..base.clone() },
            "SELECT * FROM log WHERE message ILIKE '%uid://A0ff/X0ff%' OR data ILIKE '%uid://A0ff/X0ff%'".into(),
        ),
        (
            "a word no record has, over the day",
            Query { words: vec!["quench".into()], ..base.clone() },
            "SELECT * FROM log WHERE message ILIKE '%quench%' OR data ILIKE '%quench%'".into(),
        ),
        (
            "a regular expression over the day",
            Query { regex: Some("0x0000[0-9a-f]{4}".into()), limit: Some(100), ..base.clone() },
            "SELECT * FROM log WHERE regexp_matches(message, '0x0000[0-9a-f]{4}') ORDER BY time LIMIT 100".into(),
        ),
    ];
    println!("{:44} {:>12} {:>12} {:>8}", "", "here", "DuckDB", "ratio");
    for (name, query, sql) in searches {
        let ours = timed(|| Ok(archive.search(&query, &Stop::default(), &mut |_| true)?.found))?;
        show(name, ours, peer, &sql)?;
    }
    let level = Grouping { level: true, ..Grouping::default() };
    let counts = [
        ("count by level, a day", base.clone(), level.clone(), "SELECT level, count(*) FROM log GROUP BY ALL".to_owned()),
        (
            "count by level and component, a day",
            base.clone(),
            Grouping { field: Some(Field::SourceObject), ..level.clone() },
            "SELECT level, source_object, count(*) FROM log GROUP BY ALL".into(),
        ),
        (
            "count by level and process, 5 min each",
            base.clone(),
            Grouping { field: Some(Field::Process), every_s: Some(300), ..level.clone() },
            "SELECT level, process, epoch_ns(time) // 300000000000, count(*) FROM log GROUP BY ALL".into(),
        ),
        (
            "count of a word by level, a day",
            Query { words: vec!["antenna".into()], ..base.clone() },
            level,
            "SELECT level, count(*) FROM log WHERE regexp_matches(message, '(?i)\\bantenna\\b') GROUP BY ALL".into(),
        ),
    ];
    for (name, query, by, sql) in counts {
        let ours = timed(|| Ok(archive.count(&query, &by, &Stop::default())?.rows.len() as u64))?;
        show(name, ours, peer, &sql)?;
    }
    let schema = log_columns(&[])?;
    let before = cpu();
    let (took, rows) = timed(|| Ok(archive.columns(&base, &schema, &Stop::default(), &mut |_| true)?.found))?;
    let each = (cpu() - before).as_secs_f64() * 1e6 / (RUNS as u64 * rows) as f64;
    println!("{:44} {took:9.1} ms   ({rows}, CPU {each:.3} us a record)", "all records in columns");
    let wanted = PatternsWanted { limit: 200, bins: 40 };
    let ours = timed(|| Ok(archive.patterns(&base, &wanted, &Stop::default())?.known))?;
    let places = "SELECT level, file, line, routine, max_by(message, time), count(DISTINCT source_object) FROM log GROUP BY level, file, line, routine";
    show("patterns of messages, a day", ours, peer, places)
}

fn show(name: &str, (ours, found): (f64, u64), peer: &mut Option<Peer>, sql: &str) -> Outcome<()> {
    let Some(peer) = peer else {
        println!("{name:44} {ours:9.1} ms   ({found})");
        return Ok(());
    };
    let (theirs, value) = peer.ask(sql)?;
    let same = if value == found { String::new() } else { format!(", there {value}") };
    println!("{name:44} {ours:9.1} ms {theirs:9.1} ms {:7.2}x   ({found}{same})", theirs / ours);
    Ok(())
}
