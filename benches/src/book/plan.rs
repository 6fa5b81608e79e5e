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
    site::{BOOK, Chance, RARE, attributes, text},
};
use crate::process::{cpu_of, rss_of};

/// Size of an attachment in bytes.
const ATTACHMENT: usize = 100_000;
/// The number of a late page, and the entries of a page.
const PAGE: u64 = 500;
const A_PAGE: u64 = 20;

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

/// Returns the searches, as paths of the API.
pub fn kinds() -> Vec<(&'static str, String)> {
    let search = |query: &str, more: &str| format!("/search?book={BOOK}&q={}{more}", escaped(query));
    vec![
        ("list, page 1", search("", "")),
        ("list, page 2", search("", "&skip=20")),
        ("author", search(&format!("author:\"{RARE}\""), "")),
        ("one word", search("channel", "")),
        ("two words", search("quench pedestals", "")),
        ("phrase", search("\"RICH1 HV tripped\"", "")),
        ("part of a word", search("~edestal", "")),
        ("regex", search("/HV tripped.*uA/", "")),
        ("regex, rare", search("/hlt0*7 is/", "")),
        ("sort by Subject", search("", "&sort=Subject")),
        ("sort, one word", search("channel", "&sort=-Author")),
        ("entry", format!("/books/{BOOK}/entries/1")),
    ]
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

/// Measures each kind of search.
pub fn searches(hub: &Hub, store: &'static str, entries: u32, samples: usize) -> Result<Vec<Row>, String> {
    let mut client = hub.client()?;
    let mut kinds = kinds();
    kinds.extend(far_page(&mut client, entries)?.map(|path| ("list, page 500", path)));
    let mut rows = Vec::new();
    for (what, path) in kinds {
        // The first search may open connections and fill caches.
        client.get(&path)?;
        let (cpu, reads) = (cpu_of(hub.pid()), hub.reads());
        let mut times = Vec::with_capacity(samples);
        for _ in 0..samples {
            let begun = Instant::now();
            client.ask("GET", &path, "application/json", b"")?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let each = samples as f64;
        let (cpu, reads) = ((cpu_of(hub.pid()) - cpu) * 1e3 / each, (hub.reads() - reads) / each);
        let average = times.iter().sum::<f64>() / each;
        times.sort_by(f64::total_cmp);
        rows.push(Row {
            store,
            entries,
            what: what.to_owned(),
            average,
            min: at(&times, 0.0),
            median: at(&times, 0.5),
            p99: at(&times, 0.99),
            max: at(&times, 1.0),
            cpu,
            rss: rss_of(hub.pid()),
            reads,
        });
    }
    Ok(rows)
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
    (searchers, writers): (usize, usize),
    time: Duration,
) -> Result<Crowd, String> {
    let cpu = || [cpu_of(hub.pid()), server.map_or(0.0, Server::cpu), cpu_of(std::process::id())];
    let before = cpu();
    let paths: Vec<String> = kinds().into_iter().map(|(_, path)| path).collect();
    let (searched, posted) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + time;
    let mut probes = std::thread::scope(|scope| {
        let mut working = Vec::new();
        for nth in 0..searchers {
            let (paths, searched) = (&paths, &searched);
            working.push(scope.spawn(move || -> Result<(), String> {
                let mut client = hub.client()?;
                for path in paths.iter().cycle().skip(nth).take_while(|_| Instant::now() < end) {
                    client.ask("GET", path, "application/json", b"")?;
                    searched.fetch_add(1, Ordering::Relaxed);
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
    Ok(Crowd { store, entries, searchers, writers, searches, posts, probe, probe_p99, hub_cpu, database_cpu, client_cpu })
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
