//! The cost of TLS: the same requests to two hubs, one with http and one with https, by turns.
//!
//! Both hubs run at the same time with the same entries. Each request is measured in short turns, plain and encrypted one
//! after the other, so that a busy machine slows both. A client checks the length of each answer.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::json;

use crate::{
    book::{
        http::{Client, Target},
        place::Hub,
        plan::at,
    },
    process::cpu_of,
};

/// The name of the logbook.
const BOOK: &str = "Bench";
/// Entries of the list; a page has 20.
const ENTRIES: usize = 40;
/// Turns of each side of a cell.
const TURNS: u32 = 3;
/// Bytes of the entry's text. With its attributes the answer has about 1 KB.
const TEXT: usize = 700;

/// A request to measure.
#[derive(Debug, Clone)]
pub struct Subject {
    pub what: String,
    /// The path from the root.
    pub path: String,
    /// True if each request opens a connection of its own.
    pub opens: bool,
    /// False if a connection may go on with the keys of an earlier one.
    pub resumes: bool,
}

/// Results of one side, plain or encrypted.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Side {
    /// Requests a second of all clients.
    pub requests: f64,
    /// 10^6 bytes of bodies a second.
    pub megabytes: f64,
    /// Time of a request, ms: median and 99th percentile.
    pub median: f64,
    pub p99: f64,
    /// Processor time of the hub for a request, ms.
    pub cpu: f64,
    /// Connections that went on with the keys of an earlier one, for each request.
    pub resumed: f64,
}

/// A row of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    pub what: String,
    pub clients: usize,
    /// Bytes of a body.
    pub bytes: u64,
    pub plain: Side,
    pub tls: Side,
    /// Encrypted requests a second for each plain one.
    pub ratio: f64,
}

/// Fills a hub's logbook; returns the requests to measure.
pub fn fill(hub: &Hub, large: usize) -> Result<Vec<Subject>, String> {
    let mut client = hub.client()?;
    let book =
        json!({ "name": BOOK, "attributes": [{ "name": "Author", "kind": "text" }, { "name": "Subject", "kind": "text" }] });
    client.ask("PUT", &format!("/books/{BOOK}"), "application/json", book.to_string().as_bytes())?;
    let entries = format!("/books/{BOOK}/entries");
    let text = "MAG-01 tripped at 450 GeV; ".repeat(TEXT / 27);
    for number in 0..ENTRIES {
        let attributes = json!({ "Author": "Zoe", "Subject": format!("Trip {number}") });
        client.post(&entries, &json!({ "text": text, "attributes": attributes }))?;
    }
    let mut subjects = vec![
        Subject { what: "entry".into(), path: format!("/api/v1{entries}/1"), opens: false, resumes: true },
        Subject { what: "list page".into(), path: format!("/elog/{BOOK}/page1"), opens: false, resumes: true },
    ];
    for (name, size) in [("1 MB", 1 << 20), ("large", large << 20)] {
        let bytes: Vec<u8> = (0..size).map(|at: usize| (at.wrapping_mul(0x9E37_79B9) >> 11) as u8).collect();
        let upload = client.ask("POST", "/uploads", "application/octet-stream", &bytes)?;
        let upload: serde_json::Value = serde_json::from_slice(&upload).map_err(|error| error.to_string())?;
        let attachments = json!([{ "name": "data.bin", "sha": upload["sha"] }]);
        let attributes = json!({ "Author": "Zoe", "Subject": name });
        let made = client.post(&entries, &json!({ "text": name, "attributes": attributes, "attachments": attachments }))?;
        let what = if name == "large" { format!("attachment, {large} MB") } else { "attachment, 1 MB".to_owned() };
        let path = format!("/api/v1{entries}/{}/attachments/0", made["id"]);
        subjects.push(Subject { what, path, opens: false, resumes: true });
    }
    let path = format!("/api/v1{entries}/1");
    subjects.push(Subject { what: "new connection, entry".into(), path: path.clone(), opens: true, resumes: false });
    subjects.push(Subject { what: "resuming connection, entry".into(), path, opens: true, resumes: true });
    Ok(subjects)
}

/// The sum of one side's turns.
#[derive(Default)]
struct Sum {
    times: Vec<f64>,
    bytes: u64,
    seconds: f64,
    cpu: f64,
    resumed: u64,
}

/// Returns an address of this host for a client. A hub gives each address a share, and a client of its own has one.
fn address(nth: u32) -> Ipv4Addr {
    let [_, b, c, d] = (nth % 0x00F0_0000 + 0x0001_0101).to_be_bytes();
    Ipv4Addr::new(127, b, c, d.max(1))
}

/// Number of the last connection.
static CONNECTIONS: AtomicU32 = AtomicU32::new(0);

fn client(hub: &Hub, target: &Target) -> Result<Client, String> {
    Client::from(address(CONNECTIONS.fetch_add(1, Ordering::Relaxed)), target, &hub.token)
}

fn subject_target(hub: &Hub, subject: &Subject) -> Target {
    if subject.resumes { hub.target.clone() } else { hub.target.without_resumption() }
}

/// Lets clients ask one hub for a time.
fn turn(hub: &Hub, subject: &Subject, clients: usize, time: Duration, sum: &mut Sum) -> Result<(), String> {
    let target = subject_target(hub, subject);
    let work = || -> Result<(Vec<f64>, u64, u64), String> {
        let (mut times, mut bytes, mut resumed) = (Vec::new(), 0, 0);
        let mut kept = if subject.opens { None } else { Some(client(hub, &target)?) };
        let end = Instant::now() + time;
        // Each client asks once at least, however short the time is.
        while times.is_empty() || Instant::now() < end {
            let begun = Instant::now();
            bytes += match &mut kept {
                Some(client) => client.fetch(&subject.path)?,
                None => {
                    let mut client = client(hub, &target)?;
                    let read = client.fetch(&subject.path)?;
                    resumed += u64::from(client.is_resumed());
                    read
                }
            };
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok((times, bytes, resumed))
    };
    let (cpu, begun) = (cpu_of(hub.pid()), Instant::now());
    let done: Vec<_> = std::thread::scope(|scope| {
        let working: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
        working.into_iter().map(|one| one.join().map_err(|_| "a client panicked".to_owned())?).collect::<Result<_, String>>()
    })?;
    sum.seconds += begun.elapsed().as_secs_f64();
    sum.cpu += cpu_of(hub.pid()) - cpu;
    for (times, bytes, resumed) in done {
        sum.times.extend(times);
        sum.bytes += bytes;
        sum.resumed += resumed;
    }
    Ok(())
}

impl Sum {
    fn side(mut self) -> Side {
        let count = self.times.len() as f64;
        self.times.sort_by(f64::total_cmp);
        Side {
            requests: count / self.seconds,
            megabytes: self.bytes as f64 / 1e6 / self.seconds,
            median: at(&self.times, 0.5),
            p99: at(&self.times, 0.99),
            cpu: self.cpu * 1e3 / count,
            resumed: self.resumed as f64 / count,
        }
    }
}

/// Measures a request at both hubs by turns, each for this time.
pub fn cell(plain: &Hub, tls: &Hub, subject: &Subject, clients: usize, time: Duration) -> Result<Cell, String> {
    let mut bytes = 0;
    for hub in [plain, tls] {
        // The first request may fill caches, and says how long the answer is.
        let mut first = client(hub, &hub.target)?;
        bytes = first.fetch(&subject.path)?;
        if first.is_tls()? != std::ptr::eq(hub, tls) {
            return Err(format!("{}: the hub speaks another protocol than expected", subject.what));
        }
    }
    let (mut of_plain, mut of_tls) = (Sum::default(), Sum::default());
    for _ in 0..TURNS {
        turn(plain, subject, clients, time / TURNS, &mut of_plain)?;
        turn(tls, subject, clients, time / TURNS, &mut of_tls)?;
    }
    let (plain, tls) = (of_plain.side(), of_tls.side());
    let ratio = tls.requests / plain.requests;
    Ok(Cell { what: subject.what.clone(), clients, bytes, plain, tls, ratio })
}
