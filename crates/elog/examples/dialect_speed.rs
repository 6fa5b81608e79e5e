//! Measures ELOG's pages without sockets: `cargo run -p tampu-elog --release --example dialect_speed -- [--entries N] [--samples N] [--dir DIR]`.
//!
//! Makes the logbook of `book_speed`, and requests lists, searches, pages and entries from a [`Site`] as browsers and programs do. Prints for each
//! the milliseconds (median, 99th percentile, longest), the bytes of the response and the number of entries found.

use std::{
    collections::BTreeMap,
    io::Read,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::Arc,
};

use tampu_elog::pages::{Body, Site, SiteConfig};
use tampu_logbook::{
    people::{Caller, Right, Rights},
    store::{Store, sqlite::SqliteStore},
};

#[allow(dead_code, reason = "its main is another example's")]
#[path = "../../logbook/examples/book_speed.rs"]
mod book_speed;

type Failed = Box<dyn std::error::Error>;

const ASKED: [(&str, &str); 21] = [
    ("list, as opened", ""),
    ("list, summary", "?mode=summary"),
    ("list, newest first", "?reverse=1"),
    ("page 2", "page2"),
    ("page 500", "page500"),
    ("page 3000", "page3000"),
    ("author, rare", "?mode=summary&Author=Zoe+Quartz"),
    ("author, exactly", "?Author=%5EAnna+Bauer%24"),
    ("text, rare", "?mode=summary&subtext=Zoe+Quartz"),
    ("text or attributes", "?mode=summary&subtext=Zoe+Quartz&sall=1"),
    ("text, page 2", "page2?mode=summary&subtext=Zoe+Quartz"),
    ("one common word", "?subtext=channel"),
    ("common word, page 500", "page500?subtext=channel"),
    ("regex, common", "?subtext=HV+tripped.*uA"),
    ("regex, rare", "?subtext=hlt0*7+is"),
    ("two attributes", "?Type=%5EProblem%24&System=%5EHLT%24"),
    ("sort by Subject", "?sort=Subject"),
    ("sort by Author, down", "page2?rsort=Author"),
    ("month", "?ya=2009&ma=3&yb=2009&mb=3"),
    ("threads", "?mode=threaded"),
    ("with texts", "?mode=full"),
];

fn run(dir: &Path, entries: u32, samples: usize) -> Result<(), Failed> {
    let name = format!("b{entries}");
    let dir = dir.join(&name);
    if !dir.join("book.db").exists() {
        book_speed::fill(&SqliteStore::open(&dir)?, &name, entries)?;
    }
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&dir)?);
    let site = Site::new(store, SiteConfig::default());
    let caller = Caller {
        login: String::new(),
        full_name: String::new(),
        email: String::new(),
        from: IpAddr::V4(Ipv4Addr::LOCALHOST),
        rights: Rights(BTreeMap::from([(name.clone(), vec![Right::Read, Right::Write])])),
    };
    let ask = |rest: &str| -> Result<Vec<u8>, Failed> {
        let mut nothing: &[u8] = &[];
        let body: &mut (dyn Read + Send) = &mut nothing;
        let request = http::Request::builder().uri(format!("/{name}/{rest}")).body(body)?;
        match site.answer(&caller, request).into_body() {
            Body::Bytes(bytes) => Ok(bytes),
            _ => Err("no page".into()),
        }
    };
    println!("{:<30} {:>9} {:>9} {:>9}  bytes, found", format!("{name}, ms"), "p50", "p99", "max");
    for (what, rest) in ASKED {
        let line = book_speed::measure(samples, |_| {
            let page = ask(rest)?;
            let text = String::from_utf8_lossy(&page);
            let found = text
                .split("<b>")
                .filter_map(|part| part.split_once(" Entr"))
                .map(|(count, _)| count)
                .find(|count| count.len() < 8);
            Ok(format!("{}, {}", page.len(), found.unwrap_or("many")))
        })?;
        println!("{what:<30} {line}");
    }
    for (what, rest) in
        [("entry", ""), ("next entry", "?cmd=Next"), ("next of a search", "?cmd=Next&Author=Zoe+Quartz"), ("its page", "?id=")]
    {
        let line = book_speed::measure(samples, |at| {
            let id = 1 + (at as u32 * 7919) % entries;
            let page = ask(&if rest == "?id=" { format!("?id={id}") } else { format!("{id}{rest}") })?;
            Ok(format!("{}, 1", page.len()))
        })?;
        println!("{what:<30} {line}");
    }
    println!("{}", book_speed::memory());
    Ok(())
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().position(|found| found == name).and_then(|at| arguments.get(at + 1));
    let entries = value("--entries").map_or(Ok(76_270), |text| text.parse())?;
    let samples = value("--samples").map_or(Ok(300), |text| text.parse())?;
    match value("--dir") {
        Some(dir) => run(Path::new(dir), entries, samples),
        None => run(tempfile::tempdir()?.path(), entries, samples),
    }
}
