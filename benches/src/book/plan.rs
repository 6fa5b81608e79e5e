//! Measurements of one logbook: kinds of searches in sequence, many searchers at once, posts.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::json;

use super::{
    http::{Client, escaped},
    place::{Hub, Server},
    site::{BOOK, Chance, RARE, attributes, system, text},
};
use crate::process::{cpu_of, rss_of};

/// Size of an attachment in bytes.
const ATTACHMENT: usize = 100_000;
/// The number of a late page, and the entries of a page.
const PAGE: u64 = 500;
const A_PAGE: u64 = 20;
/// Seed of the searches that are drawn.
const SEED: u64 = 2008;

/// A row of the table, in ms.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Store: sqlite or postgres.
    pub store: &'static str,
    /// Entries of the logbook.
    pub entries: u32,
    /// Kind of request.
    pub what: String,
    pub average: f64,
    pub min: f64,
    pub median: f64,
    pub p99: f64,
    pub max: f64,
    /// Processor time of the hub for one request, ms.
    pub cpu: f64,
    /// Memory of the hub, 10^6 bytes.
    pub rss: f64,
    /// Reads of files for one.
    pub reads: f64,
}

/// Results of many concurrent clients.
#[derive(Debug, Clone, Serialize)]
pub struct Crowd {
    /// Store: sqlite or postgres.
    pub store: &'static str,
    /// Entries of the logbook.
    pub entries: u32,
    /// Number of clients that search again and again.
    pub searchers: usize,
    /// Number of clients that post again and again.
    pub writers: usize,
    /// True if the same searches are made again and again, false if each is made once.
    pub again: bool,
    /// Searches a second.
    pub searches: f64,
    /// Posts a second.
    pub posts: f64,
    /// Latency of a client that reads an entry meanwhile: median, ms.
    pub probe: f64,
    /// The 99th percentile of that latency.
    pub probe_p99: f64,
    /// Processor time for a search or post, ms: of the hub, of the database's server, and of this program's clients.
    pub hub_cpu: f64,
    pub database_cpu: f64,
    pub client_cpu: f64,
}

/// Returns the value at a share of sorted values.
pub fn at(sorted: &[f64], share: f64) -> f64 {
    sorted.get((sorted.len() as f64 * share) as usize).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

/// Words that stand in many texts.
const FREQUENT: [&str; 8] = ["channel", "quench", "pedestals", "nominal", "partition", "recovered", "heater", "memory"];

/// Draws a search of each kind, as paths of the API. They differ from those drawn before, so that the hub has not
/// remembered them: a word that no entry has is excluded, or the page has another place, size and limit of its count.
pub fn kinds(chance: &mut Chance, entries: u32) -> Vec<(&'static str, String)> {
    let path = |query: &str, more: &str| format!("/search?book={BOOK}&q={}{more}", escaped(query));
    let mut unlike = |query: &str, more: &str| path(&format!("{query} -zq{}", chance.below(1 << 30)), more);
    let mut searches = vec![
        ("author", unlike(&format!("author:\"{RARE}\""), "")),
        ("part of a word", unlike("~edestal", "")),
        ("regex, rare", unlike("/hlt0*7 is/", "")),
    ];
    let (first, second) = (chance.of(&FREQUENT), chance.of(&FREQUENT));
    let system = system(chance);
    let mut unlike = |query: &str, more: &str| path(&format!("{query} -zq{}", chance.below(1 << 30)), more);
    searches.extend([
        ("one word", unlike(first, "")),
        ("two words", unlike(&format!("{first} {second}"), "")),
        ("phrase", unlike(&format!("\"{system} HV tripped\""), "")),
        ("regex", unlike("/HV tripped.*uA/", "")),
        ("sort, one word", unlike(first, "&sort=-Author")),
    ]);
    let mut page = |skip: u64, more: &str| {
        let (skip, limit) = (skip + chance.below(20), 16 + chance.below(9));
        path("", &format!("&skip={skip}&limit={limit}&count={}{more}", 1000 + chance.below(1000)))
    };
    searches.extend([
        ("list, page 1", page(0, "")),
        ("list, page 2", page(20, "")),
        ("sort by Subject", page(0, "&sort=Subject")),
    ]);
    searches.push(("entry", format!("/books/{BOOK}/entries/{}", 1 + chance.below(u64::from(entries)))));
    searches
}

/// Returns the path of the late page, if there is one.
fn far_page(client: &mut Client, entries: u32) -> Result<Option<String>, String> {
    let mut left = (PAGE - 1) * A_PAGE;
    if u64::from(entries) <= left {
        return Ok(None);
    }
    let mut after = String::new();
    while left > 0 {
        let limit = left.min(1000);
        let page = client.get(&format!("/search?book={BOOK}&count=0&limit={limit}{after}"))?;
        let next = page["next"].as_str().ok_or("a page far behind is not there")?;
        after = format!("&after={}", escaped(next));
        left -= limit;
    }
    Ok(Some(format!("/search?book={BOOK}{after}")))
}

/// Measures each kind of search: searches that are asked for the first time, and the last of them asked again.
pub fn searches(hub: &Hub, store: &'static str, entries: u32, samples: usize) -> Result<Vec<Row>, String> {
    let (mut client, mut chance) = (hub.client()?, Chance(SEED));
    let drawn: Vec<_> = (0..=samples).map(|_| kinds(&mut chance, entries)).collect();
    let far = far_page(&mut client, entries)?;
    let (Some(warm), Some(last)) = (drawn.first(), drawn.last()) else { return Ok(Vec::new()) };
    // The first searches may open connections and fill caches.
    for (_, path) in warm {
        client.get(path)?;
    }
    let mut rows = Vec::new();
    let mut measure = |what: String, paths: &[&str]| -> Result<(), String> {
        rows.push(row((hub, &mut client), (store, entries), what, paths)?);
        Ok(())
    };
    for (nth, (what, _)) in warm.iter().enumerate() {
        let paths: Vec<&str> = drawn.iter().skip(1).map(|kinds| kinds[nth].1.as_str()).collect();
        measure((*what).to_owned(), &paths)?;
        measure(format!("{what}, again"), &vec![last[nth].1.as_str(); samples])?;
    }
    if let Some(path) = far {
        measure("list, page 500, again".to_owned(), &vec![path.as_str(); samples])?;
    }
    Ok(rows)
}

/// Measures some searches, one after the other.
fn row(
    (hub, client): (&Hub, &mut Client),
    (store, entries): (&'static str, u32),
    what: String,
    paths: &[&str],
) -> Result<Row, String> {
    let (cpu, reads) = (cpu_of(hub.pid()), hub.reads());
    let mut times = Vec::with_capacity(paths.len());
    for path in paths {
        let begun = Instant::now();
        client.ask("GET", path, "application/json", b"")?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let each = paths.len() as f64;
    let (cpu, reads) = ((cpu_of(hub.pid()) - cpu) * 1e3 / each, (hub.reads() - reads) / each);
    let average = times.iter().sum::<f64>() / each;
    times.sort_by(f64::total_cmp);
    let [min, median, p99, max] = [0.0, 0.5, 0.99, 1.0].map(|share| at(&times, share));
    Ok(Row { store, entries, what, average, min, median, p99, max, cpu, rss: rss_of(hub.pid()), reads })
}

/// Posts an entry, with a file on request.
fn post(client: &mut Client, chance: &mut Chance, number: u32, file: Option<&[u8]>) -> Result<(), String> {
    let mut entry = json!({ "text": text(chance, number), "encoding": "plain" });
    let said = attributes(chance, number).into_iter().map(|(name, value)| (name.to_owned(), serde_json::Value::String(value)));
    entry["attributes"] = serde_json::Value::Object(said.collect());
    if let Some(bytes) = file {
        let upload = client.ask("POST", "/uploads", "application/octet-stream", bytes)?;
        let upload: serde_json::Value = serde_json::from_slice(&upload).map_err(|error| error.to_string())?;
        entry["attachments"] = json!([{ "name": "data.bin", "sha": upload["sha"] }]);
    }
    client.post(&format!("/books/{BOOK}/entries"), &entry).map(drop)
}

/// Measures clients that search without a pause, clients that post, and one client that reads an entry now and then.
pub fn crowd(
    hub: &Hub,
    server: Option<&Server>,
    (store, entries): (&'static str, u32),
    (searchers, writers, again): (usize, usize, bool),
    time: Duration,
) -> Result<Crowd, String> {
    let cpu = || [cpu_of(hub.pid()), server.map_or(0.0, Server::cpu), cpu_of(std::process::id())];
    let before = cpu();
    let paths = kinds(&mut Chance(SEED), entries);
    let (searched, posted) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + time;
    let mut probes = std::thread::scope(|scope| {
        let mut working = Vec::new();
        for nth in 0..searchers {
            let (paths, searched) = (&paths, &searched);
            working.push(scope.spawn(move || -> Result<(), String> {
                let (mut client, mut chance) = (hub.client()?, Chance(SEED + 1 + nth as u64));
                let mut own = Vec::new();
                while Instant::now() < end {
                    if !again {
                        own = kinds(&mut chance, entries);
                    }
                    let round = if again { paths } else { &own };
                    for (_, path) in round.iter().cycle().skip(nth).take(round.len()).take_while(|_| Instant::now() < end) {
                        client.ask("GET", path, "application/json", b"")?;
                        searched.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            }));
        }
        for nth in 0..writers {
            let posted = &posted;
            working.push(scope.spawn(move || -> Result<(), String> {
                let (mut client, mut chance) = (hub.client()?, Chance(nth as u64));
                while Instant::now() < end {
                    post(&mut client, &mut chance, 2_000_000, None)?;
                    posted.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        let mut client = hub.client()?;
        let mut probes = Vec::new();
        while Instant::now() < end {
            let begun = Instant::now();
            client.get(&format!("/books/{BOOK}/entries/1"))?;
            probes.push(begun.elapsed().as_secs_f64() * 1e3);
            std::thread::sleep(Duration::from_millis(5));
        }
        for one in working {
            one.join().map_err(|_| "one of the crowd panicked".to_owned())??;
        }
        Ok::<_, String>(probes)
    })?;
    let done = searched.load(Ordering::Relaxed) + posted.load(Ordering::Relaxed);
    let now = cpu();
    let [hub_cpu, database_cpu, client_cpu] = [0, 1, 2].map(|of| (now[of] - before[of]) * 1e3 / done as f64);
    probes.sort_by(f64::total_cmp);
    let a_second = |count: AtomicU64| count.into_inner() as f64 / time.as_secs_f64();
    let (searches, posts) = (a_second(searched), a_second(posted));
    let (probe, probe_p99) = (at(&probes, 0.5), at(&probes, 0.99));
    Ok(Crowd { store, entries, searchers, writers, again, searches, posts, probe, probe_p99, hub_cpu, database_cpu, client_cpu })
}

/// Measures posts a second, each with an attachment, by four clients at a time.
pub fn posts(hub: &Hub, time: Duration) -> Result<f64, String> {
    let (posted, end) = (AtomicU64::new(0), Instant::now() + time);
    std::thread::scope(|scope| {
        let work = |nth: u64| {
            let posted = &posted;
            move || -> Result<(), String> {
                let (mut client, mut chance, mut number) = (hub.client()?, Chance(nth), 0u64);
                while Instant::now() < end {
                    number += 1;
                    let bytes: Vec<u8> =
                        (0..ATTACHMENT as u64).map(|at| (at.wrapping_mul(number * 4 + nth + 3) >> 3) as u8).collect();
                    post(&mut client, &mut chance, 3_000_000, Some(&bytes))?;
                    posted.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }
        };
        let working: Vec<_> = (0..4).map(|nth| scope.spawn(work(nth))).collect();
        working.into_iter().try_for_each(|one| one.join().map_err(|_| "one who posts panicked".to_owned())?)
    })?;
    Ok(posted.into_inner() as f64 / time.as_secs_f64())
}
