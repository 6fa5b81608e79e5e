//! Searches against the evaluator: the index finds the same entries as a look at every entry.

#[path = "support/server.rs"]
mod server;
mod support;

use proptest::{prelude::*, test_runner::TestRunner};
use support::{entry, shift_book};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Encoding, Entry, EntryRef, NewEntry},
    query::{Node, eval::Subject, parse},
    search::{Count, Search, Sort, Stop},
    store::{Store, sqlite::SqliteStore},
};
use tampu_types::Time;

const WORDS: [&str; 20] = [
    "RICH1",
    "HV",
    "trip",
    "tripped",
    "hlt0123",
    "hlt0124",
    "LHC:MAG-01/cur",
    "Müller",
    "muller",
    "quench",
    "quenched",
    "a",
    "01",
    "x.y",
    "80123",
    "装置停止",
    "It's",
    "<b>bold</b>",
    "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyztrip",
    "Οδός",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec((0..WORDS.len(), prop_oneof![Just(" "), Just(", "), Just("\n"), Just("")]), 0..8)
        .prop_map(|parts| parts.into_iter().map(|(at, after)| format!("{}{after}", WORDS[at])).collect())
}

fn new_entry() -> impl Strategy<Value = NewEntry> {
    let attributes = (text(), text(), 0..900i32, proptest::option::of(0..3usize));
    (text(), attributes, 0..4usize, 0..40i64).prop_map(|(text, (author, subject, energy, system), encoding, second)| {
        let mut new = entry("A", &author.replace('\n', " "), &subject.replace('\n', " "), &text);
        new.content.encoding = Encoding::ALL[encoding];
        new.content.attributes.push(EntryAttribute::new("Energy", &energy.to_string()));
        if let Some(system) = system {
            new.content.attributes.push(EntryAttribute::new("System", ["RICH1", "HLT", "L0 & co"][system]));
        }
        new.date = Some(Time(1_221_000_000_000_000_000 + second * 3_600_000_000_000));
        new
    })
}

fn query() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        (0..WORDS.len()).prop_map(|at| WORDS[at].to_owned()),
        (0..WORDS.len(), 0..WORDS.len()).prop_map(|(a, b)| format!("\"{} {}\"", WORDS[a], WORDS[b])),
        Just("quen*".into()),
        Just("hlt01*".into()),
        Just("\"hv trip\"*".into()),
        Just("~rip".into()),
        Just("~\"v tri\"".into()),
        Just("~\"1/c\"".into()),
        Just("~\", \"".into()),
        Just("~a".into()),
        Just("/hlt\\d+3/".into()),
        Just("/(quench|trip)ed/".into()),
        Just("/HV.trip/c".into()),
        Just("/M[uü]ller/".into()),
        Just("/hlt\\d*4( |,)/".into()),
        Just("/(?i: H)lt[0-9]+3/".into()),
        Just("/trip(p?ed)?,/".into()),
        Just("/quen[a-h]+ /c".into()),
        Just("/(?i)MAG-\\d+.cur/".into()),
        Just("/^a/".into()),
        Just("author:muller".into()),
        Just("author:/MAG.0/".into()),
        Just("subject:~enche".into()),
        Just("system:=\"l0 co\"".into()),
        Just("system:=RICH1".into()),
        Just("has:system".into()),
        Just("energy>450".into()),
        Just("since:2008-09-10".into()),
        Just("until:2008-09-09".into()),
        Just("on:2008-09-10T00".into()),
        Just("text:hv".into()),
        Just("by:max".into()),
        Just("id:3".into()),
        Just("-".into()),
        Just("author:(muller OR hv)".into()),
        Just("author:-muller".into()),
        Just("subject:=(RICH1 OR hv)".into()),
    ];
    let leaf = (part, any::<bool>()).prop_map(|(part, not)| if not { format!("-{part}") } else { part });
    leaf.prop_recursive(3, 8, 3, |inner| {
        (proptest::collection::vec(inner, 1..4), any::<bool>(), any::<bool>()).prop_map(|(parts, or, not)| {
            format!("{}({})", if not { "NOT " } else { "" }, parts.join(if or { " OR " } else { " " }))
        })
    })
}

/// Each of these stores finds the entries that the evaluator finds, for random entries and queries; `open` makes empty stores.
fn finds_what_is_meant(open: &dyn Fn(&std::path::Path) -> Vec<Box<dyn Store>>) {
    let mut runner = TestRunner::new(ProptestConfig { cases: 12, ..ProptestConfig::default() });
    let entries = proptest::collection::vec(new_entry(), 1..40);
    let queries = proptest::collection::vec(query(), 60);
    let done = runner.run(&(entries, queries), |(entries, queries)| {
        let dir = tempfile::tempdir().unwrap();
        let stores = open(dir.path());
        let mut book = shift_book("A");
        book.attributes[2].options.push("L0 & co".to_owned());
        let count = entries.len() as u32;
        for store in &stores {
            store.put_book(&book).unwrap();
            for (at, new) in entries.iter().enumerate() {
                store.post(new.clone(), vec![], ["zoe", "max"][at % 2]).unwrap();
            }
        }
        let store = &stores[0];
        let all: Vec<Entry> = (1..=count).map(|id| store.entry(&EntryRef::new("A", id)).unwrap()).collect();
        let names: Vec<String> = book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        for query in queries {
            let Ok(node) = parse(&query, &names, Time(0)) else { continue };
            let mut meant: Vec<u32> =
                all.iter().filter(|entry| Subject::of(entry).is_meant(&node)).map(|entry| entry.at.id).collect();
            let orders = [Sort::Date, Sort::Id, Sort::Attribute("Energy".into())];
            for (store, sort) in stores.iter().flat_map(|store| orders.iter().map(move |sort| (store, sort.clone()))) {
                let search = Search { query: query.clone(), limit: 100, sort: sort.clone(), ..Search::default() };
                let page = store.search(&search, &Stop::default()).unwrap();
                let mut found: Vec<u32> = page.hits.iter().map(|hit| hit.entry.at.id).collect();
                prop_assert_eq!(page.count, Some(Count::Exactly(found.len() as u64)), "{}", &query);
                if sort == Sort::Date {
                    let dates: Vec<Time> = page.hits.iter().map(|hit| hit.entry.date).collect();
                    prop_assert!(dates.is_sorted_by(|a, b| a >= b));
                }
                found.sort_unstable();
                meant.sort_unstable();
                prop_assert_eq!(&found, &meant, "{} by {:?}", &query, sort);
            }
        }
        Ok(())
    });
    if let Err(error) = done {
        panic!("{error}\n{runner}");
    }
}

#[test]
fn the_index_finds_what_the_evaluator_means() {
    finds_what_is_meant(&|dir| vec![Box::new(SqliteStore::open(dir).unwrap())]);
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn both_stores_find_what_the_evaluator_means() {
    let server = server::server();
    finds_what_is_meant(&|dir| vec![Box::new(SqliteStore::open(dir).unwrap()), Box::new(server.store())]);
}

proptest! {
    #[test]
    fn any_text_is_a_query_or_says_why_not(text in "\\PC{0,80}|[a-z:\"()*~/<>= -]{0,80}|(NOT |OR |AND |\\(|since:|text:|/|[a-z]){0,60}") {
        match parse(&text, &["Subject".to_owned()], Time(0)) {
            Ok(_) => {}
            Err(bad) => prop_assert!(bad.at <= text.chars().count() && !bad.why.is_empty()),
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let attributes = ["Energy".to_owned()];
    for (text, at, why) in [
        ("a /(/", 2, "unclosed group"),
        ("since:soon", 0, "2026-11"),
        ("ä last:x", 2, "last:7d"),
        ("energy>many", 11, "invalid number"),
        ("has:wings", 0, "has:attachment"),
        ("text>5", 4, "only attributes"),
        ("/a{999999}{999999}/", 0, ""),
    ] {
        let bad = parse(text, &attributes, Time(0)).unwrap_err();
        assert_eq!(bad.at, at, "{text}: {bad}");
        assert!(bad.why.contains(why), "{text}: {bad}");
    }
    let deep = "(".repeat(100) + "a";
    assert!(parse(&deep, &attributes, Time(0)).is_err());
    assert!(parse(&"a ".repeat(300), &attributes, Time(0)).is_err());
    assert!(parse(&"a".repeat(5000), &attributes, Time(0)).is_err());
    for text in ["\"open", "(a", "a)", "a OR", "NOT", "energy:", "energy:=", "/[/", "energy:-"] {
        assert!(parse(text, &attributes, Time(0)).is_err(), "{text}");
    }
    for text in ["-", "/open", "~", "*", "subject:"] {
        assert!(parse(text, &attributes, Time(0)).is_ok(), "{text}");
    }
}

#[test]
fn an_unfinished_query_is_told_with_its_place() {
    let attributes = ["Type".to_owned()];
    for (text, at, why) in [
        ("hv \"open", 3, "the quotation is not closed"),
        ("hv (a b", 3, "the parenthesis is not closed"),
        ("a)", 1, "without '('"),
        ("a OR", 4, "'OR' needs a term on both sides"),
        ("OR a", 0, "'OR' needs a term on both sides"),
        ("a NOT", 5, "'NOT' needs a term"),
        ("type:=", 4, "a value is missing after 'Type:='"),
        ("type:", 4, "a value is missing after ':'"),
        ("/[/", 0, "unclosed character class"),
        ("/a\\/", 0, ""),
        ("type:\"open", 5, "the quotation is not closed"),
    ] {
        let bad = parse(text, &attributes, Time(0)).unwrap_err();
        assert_eq!(bad.at, at, "{text}: {bad}");
        assert!(bad.why.contains(why), "{text}: {bad}");
    }
    for text in ["/dev/sda", "/dev/shm/", "type:=\"\"", "LHC:MAG-01/cur", "a/b/", "type:*", "-", "a - b"] {
        assert!(parse(text, &attributes, Time(0)).is_ok(), "{text}");
    }
}

#[test]
fn times_are_read_as_in_the_rest_of_the_product() {
    let now: Time = "2026-11-21T10:00:00".parse().unwrap();
    let found = |text: &str| match parse(text, &[], now).unwrap() {
        Node::Date { from, to } => (from, to),
        other => panic!("{text}: {other:?}"),
    };
    let at = |text: &str| text.parse::<Time>().unwrap();
    for (text, from) in [
        ("last:10m", "2026-11-21T09:50:00"),
        ("last:1h30m", "2026-11-21T08:30:00"),
        ("last:2mo", "2026-09-22T10:00:00"),
        ("last:1y", "2025-11-21T10:00:00"),
        ("since:yesterday", "2026-11-20T00:00:00"),
        ("since:today", "2026-11-21T00:00:00"),
        ("since:2h", "2026-11-21T08:00:00"),
    ] {
        assert_eq!(found(text), (at(from), Time(i64::MAX)), "{text}");
    }
    assert_eq!(found("on:yesterday"), (at("2026-11-20T00:00:00"), at("2026-11-21T00:00:00")));
    assert_eq!(found("until:yesterday"), (Time(i64::MIN), at("2026-11-21T00:00:00")));
    assert_eq!(found("until:Today"), found("until:today"));
    assert_eq!(found("until:2026-11-21T08:00"), (Time(i64::MIN), at("2026-11-21T08:00:00")));
    assert_eq!(found("until:2h"), (Time(i64::MIN), at("2026-11-21T08:00:00")));
}
