//! The view of operators: the log of requests, slow searches, metrics, and looks at entries.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tampu_hub::{Config, book::settings::BookSettings, listen::ListenAddress};
use tampu_log::logger::config::LogFile;

use crate::site::{PASSWORD, Site, until};

/// A site whose hub prints its log into a file as JSON.
fn logged(change: impl FnOnce(&mut Config)) -> (Site, PathBuf) {
    let mut log = PathBuf::new();
    let site = Site::configured(|config| {
        log = config.data.with_file_name("hub.log");
        let text = format!("[log]\nlocal = \"Info\"\noutput = \"{}\"\nformat = \"json\"\n", log.display());
        config.log = LogFile::parse(&text, &log).unwrap().log;
        change(config);
    });
    (site, log)
}

/// Waits for the records of a logger that `wanted` accepts.
#[track_caller]
fn records(log: &PathBuf, logger: &str, wanted: impl Fn(&str) -> bool, least: usize) -> Vec<String> {
    until(&format!("{least} records of {logger}"), || {
        let text = fs::read_to_string(log).unwrap_or_default();
        let found: Vec<String> = text.lines().filter(|line| line.contains(logger) && wanted(line)).map(str::to_owned).collect();
        if found.len() >= least { Ok(found) } else { Err(text) }
    })
}

/// Stops the hub, and returns its whole log.
fn at_end(mut site: Site, log: &PathBuf) -> String {
    site.hub.take().unwrap().stop();
    fs::read_to_string(log).unwrap()
}

/// Returns the named values of a record.
fn data(record: &str) -> Value {
    let record: Value = serde_json::from_str(record).unwrap();
    let named = record["data"].as_array().unwrap().iter();
    Value::Object(named.map(|one| (one["name"].as_str().unwrap().to_owned(), one["value"].clone())).collect())
}

#[test]
fn requests_are_logged_with_who_and_what_and_without_secrets() {
    let (site, log) = logged(|config| config.book.access_log = true);
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let id = zoe.entry("a quench of the magnet");
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let traced = zoe.with("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    traced.get("/search?q=quench").is(200);
    site.anybody().get(&format!("/books/Shift/entries/{id}")).is(200);
    let bad = site.anybody().with("authorization", "Bearer tampu_notatoken");
    bad.get("/search?q=quench").is(401);
    let page = format!("/elog/Shift/?uname=zoe&upassword={}&subtext=magnet", PASSWORD.replace(' ', "+"));
    site.anybody().get(&page);
    site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);

    let searches = records(&log, "access", |line| line.contains("/api/v1/search"), 2);
    let search = data(&searches[0]);
    assert!(search["who"].as_str().unwrap().starts_with("the token 'zoe/"), "{search}");
    let expected =
        [("from", "127.0.0.1"), ("method", "GET"), ("path", "/api/v1/search"), ("kind", "search"), ("search", "quench")];
    for (name, value) in expected {
        assert_eq!(search[name], value, "{search}");
    }
    assert_eq!((text(&search["status"]), text(&search["trace"])), ("200".to_owned(), trace.to_owned()));
    assert!(
        text(&search["bytes"]).parse::<u64>().unwrap() > 100 && text(&search["ms"]).parse::<f64>().unwrap() > 0.0,
        "{search}"
    );
    let refused = data(&searches[1]);
    assert_eq!((refused["who"].as_str(), text(&refused["status"])), (Some("unknown"), "401".to_owned()));
    let shown = data(&records(&log, "access", |line| line.contains("/entries/1") && line.contains("GET"), 1)[0]);
    assert_eq!((shown["who"].as_str(), shown["kind"].as_str()), (Some("a guest"), Some("page")));
    records(&log, "access", |line| line.contains("/elog/Shift/"), 1);
    records(&log, "access", |line| line.contains("/api/v1/login"), 1);
    let all = at_end(site, &log);
    for secret in [PASSWORD, "correct+horse", "tampu_notatoken", "upassword", "horse"] {
        assert!(!all.contains(secret), "{secret}");
    }
}

/// A value as text: numbers of records are numbers or texts.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn requests_are_not_logged_unless_the_configuration_says_so() {
    let (site, log) = logged(|config| config.book.slow_search = "off".to_owned());
    site.shift();
    site.owner().entry("a quench");
    assert_eq!(site.owner().found("quench"), 1);
    let all = at_end(site, &log);
    assert!(all.contains("stops"), "the log is whole: {all}");
    assert!(!all.contains("/api/v1/search") && !all.contains("slow-search"), "{all}");
}

#[test]
fn slow_searches_are_logged_with_their_query_and_rows() {
    let (site, log) = logged(|config| config.book.slow_search = "0s".to_owned());
    site.shift();
    for number in 0..30 {
        site.owner().entry(&format!("entry {number} about a quench"));
    }
    let zoe = site.user(json!({ "login": "zoe" }));
    zoe.get("/search?q=quench&book=Shift&limit=5").is(200);
    zoe.get("/search/export?q=about&format=json").is(200);
    zoe.get("/elog/Shift/?subtext=quench").is(200);
    let of = |query: &str| records(&log, "slow-search", |line| line.contains(query), 1).remove(0);
    let is_of_one = |line: &str| line.contains("\"Shift\"") && line.contains("\"/api/v1/search\"");
    let search = data(&records(&log, "slow-search", is_of_one, 1)[0]);
    assert!(search["query"] == "quench" && search["who"].as_str().unwrap().starts_with("the token 'zoe/"), "{search}");
    assert_eq!((search["from"].as_str(), text(&search["hits"])), (Some("127.0.0.1"), "5".to_owned()));
    // Six rows for the page, and all for the number of hits.
    let rows: u64 = text(&search["rows"]).parse().unwrap();
    assert!((30..=60).contains(&rows), "{search}");
    assert!(data(&of("/api/v1/search/export"))["query"] == "about");
    assert!(of("/elog/Shift/").contains("quench"));
}

#[test]
fn a_bad_time_of_slow_searches_names_the_way_out() {
    let check = |text: &str| BookSettings { slow_search: text.to_owned(), ..BookSettings::default() }.check();
    for good in ["off", "500ms", "0s", "1m30s"] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    for bad in ["", "500", "never"] {
        let (setting, why) = check(bad).unwrap_err();
        assert!(setting == "slow_search" && why.contains("\"off\"") && why.contains("250ms"), "{why}");
    }
}

#[test]
fn metrics_have_requests_store_queues_and_index() {
    let (site, log) = logged(|config| {
        config.metrics.enabled = true;
        config.metrics.listen = ListenAddress::loopback(0);
        config.book.slow_search = "0s".to_owned();
    });
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    for number in 0..5 {
        zoe.entry(&format!("entry {number} about a quench"));
    }
    for _ in 0..3 {
        assert_eq!(zoe.found("quench"), 5);
    }
    zoe.get("/books/Shift/entries/99").is(404);
    let address = data(&records(&log, "metrics are at", |_| true, 1)[0])["address"].as_str().unwrap().to_owned();
    let scrape = || ureq::get(format!("http://{address}/metrics")).call().unwrap().body_mut().read_to_string().unwrap();
    let value = |page: &str, series: &str| -> Option<f64> {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        Some(line.parse().unwrap())
    };
    // A request is counted when its last byte was sent, which may be after the client has it.
    let page = until("the last request is counted", || {
        let page = scrape();
        let is_counted = value(&page, "tampu_book_requests_total{kind=\"page\",status=\"404\"}") == Some(1.0);
        if is_counted { Ok(page) } else { Err(page) }
    });
    let is = |series: &str, expected: f64| assert_eq!(value(&page, series), Some(expected), "{series} in\n{page}");
    let least =
        |series: &str, least: f64| assert!(value(&page, series).is_some_and(|value| value >= least), "{series} in\n{page}");
    is("tampu_book_requests_total{kind=\"search\",status=\"200\"}", 3.0);
    is("tampu_book_requests_total{kind=\"change\",status=\"201\"}", 7.0);
    is("tampu_book_request_seconds_count{kind=\"search\"}", 3.0);
    is("tampu_book_request_seconds_bucket{kind=\"search\",le=\"+Inf\"}", 3.0);
    least("tampu_book_request_seconds_sum{kind=\"search\"}", 0.000_001);
    is("tampu_book_searches_total", 3.0);
    is("tampu_book_slow_searches_total", 3.0);
    least("tampu_book_search_rows_total", 15.0);
    least("tampu_book_response_bytes_total", 1000.0);
    least("tampu_book_connections", 0.0);
    is("tampu_book_waiting_requests{kind=\"search\"}", 0.0);
    is("tampu_book_running_requests{kind=\"upload\"}", 0.0);
    is("tampu_book_store_connections{use=\"write\"}", 1.0);
    least("tampu_book_store_connections{use=\"search\"}", 1.0);
    is("tampu_book_store_busy_connections{use=\"search\"}", 0.0);
    least("tampu_book_store_transactions_total{outcome=\"committed\"}", 6.0);
    least("tampu_book_store_remembered_total", 0.0);
    least("tampu_book_store_bytes", 4096.0);
    least("tampu_book_index_bytes", 1.0);
    least("tampu_book_index_parts", 1.0);
}

#[test]
fn looks_at_entries_are_counted_by_reader() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let max = site.user(json!({ "login": "max" }));
    let (one, two) = (zoe.entry("one"), zoe.entry("two"));
    let path = format!("/books/Shift/entries/{one}");
    for _ in 0..3 {
        max.get(&path).is(200);
        max.get(&format!("/elog/Shift/{one}")).is(200);
        site.anybody().get(&format!("/elog/Shift/{one}")).is(200);
    }
    // Neither of these shows an entry.
    zoe.send("HEAD", &path, b"").is(200);
    zoe.get(&format!("/elog/Shift/{one}?cmd=Edit"));
    zoe.get("/elog/Shift/99");
    zoe.get("/search?q=two").is(200);
    let looks = until("both looks are counted", || {
        let looks = zoe.get(&format!("{path}/looks")).is(200).json();
        if looks["looks"] == 2 { Ok(looks) } else { Err(looks.to_string()) }
    });
    assert_eq!(looks["days"].as_array().unwrap().iter().map(|day| day["looks"].as_u64().unwrap()).sum::<u64>(), 2);
    assert_eq!(zoe.get(&format!("/books/Shift/entries/{two}/looks")).is(200).json(), json!({ "looks": 0, "days": [] }));
    let page = String::from_utf8(zoe.get(&format!("/elog/Shift/{one}")).is(200).bytes).unwrap();
    assert!(page.contains("Looked at 2 times"), "{page}");
    assert_eq!(zoe.get("/books/Shift/entries/99/looks").is(404).problem(), "not-there");
    // A logbook that the caller may not read says nothing of its readers.
    let grants = json!([{ "to": "user:zoe", "may": ["read", "write", "edit-own"] }]);
    site.owner().put("/books/Shift/access", json!({ "site_guests": false, "grants": grants })).is(200);
    assert_eq!(max.get(&format!("{path}/looks")).status, 404);
}
