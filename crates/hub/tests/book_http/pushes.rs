//! New matches, pushed.

use std::{
    io::{BufRead, BufReader, Read},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, NewEntry},
    store::Imported,
};

use crate::site::{Client, Site};

/// The events of a stream, as they come: the id, the kind and the data.
struct Events(BufReader<ureq::BodyReader<'static>>);

impl Events {
    fn open(client: &Client, path: &str) -> Events {
        let answer = client.open(path);
        assert_eq!(answer.status(), 200);
        let mut events = Events(BufReader::new(answer.into_body().into_reader()));
        // The first block confirms the subscription.
        assert_eq!(events.block().map(|block| block.1), Some(String::new()));
        events
    }

    fn block(&mut self) -> Option<(u64, String, Value)> {
        let (mut id, mut kind, mut data) = (0, String::new(), Value::Null);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => id = value.parse().unwrap(),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => data = serde_json::from_str(value).unwrap(),
                _ if line == "\n" => return Some((id, kind, data)),
                _ => {}
            }
        }
    }

    /// The next event other than a heartbeat.
    fn next(&mut self) -> Option<(u64, String, Value)> {
        loop {
            let block = self.block()?;
            if !block.1.is_empty() {
                return Some(block);
            }
        }
    }
}

#[test]
fn a_right_that_was_taken_away_ends_before_the_next_entry() {
    let site = Site::new();
    for book in ["Closed", "Open"] {
        site.owner().put(&format!("/books/{book}"), json!({ "name": book, "attributes": [] })).is(201);
        let grants = json!({ "grants": [{ "to": "user:zoe", "may": ["read"] }] });
        site.owner().put(&format!("/books/{book}/access"), grants).is(200);
    }
    let zoe = site.user(json!({ "login": "zoe" }));
    let post = |book: &str, text: &str| site.owner().post(&format!("/books/{book}/entries"), json!({ "text": text })).is(201);
    let mut events = Events::open(&zoe, "/search/stream?q=");
    post("Closed", "before");
    assert_eq!(events.next().unwrap().2["snippet"]["text"], "before");
    site.owner().put("/books/Closed/access", json!({ "grants": [] })).is(200);
    post("Closed", "after");
    post("Open", "of the other book");
    assert_eq!(events.next().unwrap().2["snippet"]["text"], "of the other book");
}

#[test]
fn what_is_new_and_what_changes_is_told_and_nothing_twice() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let mut events = Events::open(&zoe, "/search/stream?q=trip*&book=Shift");
    zoe.entry("nothing of interest");
    let id = zoe.entry("HV tripped");
    let (first, kind, data) = events.next().unwrap();
    assert_eq!((kind.as_str(), &data["what"], &data["entry"]["id"]), ("match", &json!("posted"), &json!(id)));
    assert_eq!((&data["entry"]["text"], &data["snippet"]["text"]), (&json!(""), &json!("HV tripped")));
    let path = format!("/books/Shift/entries/{id}");
    zoe.with("if-match", "*").put(&path, json!({ "text": "HV tripped twice" })).is(200);
    let (second, kind, data) = events.next().unwrap();
    assert_eq!((kind.as_str(), &data["what"]), ("match", &json!("edited")));
    zoe.with("if-match", "*").put(&path, json!({ "text": "a false alarm" })).is(200);
    let (third, kind, data) = events.next().unwrap();
    assert_eq!((kind.as_str(), &data["id"], &data["what"]), ("gone", &json!(id), &json!("edited")));
    zoe.delete(&path).is(200);
    assert_eq!(events.next().unwrap().1, "gone");
    assert!(first < second && second < third);
    drop(events);

    // A client that was disconnected continues at its last event.
    let id = zoe.entry("tripped again");
    let mut events = Events::open(&zoe.with("last-event-id", &second.to_string()), "/search/stream?q=trip*");
    assert_eq!(events.next().unwrap().0, third);
    assert_eq!(events.next().unwrap().1, "gone");
    let (_, kind, data) = events.next().unwrap();
    assert_eq!((kind.as_str(), &data["entry"]["id"]), ("match", &json!(id)));
    zoe.with("last-event-id", "x").get("/search/stream").is(400);
}

#[test]
fn nobody_is_told_of_what_they_may_not_read() {
    let site = Site::new();
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    for (book, who) in [("Secret", "user:zoe"), ("Open", "everybody")] {
        site.owner().put(&format!("/books/{book}"), json!({ "name": book, "attributes": [] })).is(201);
        let grants =
            json!({ "grants": [{ "to": who, "may": ["read", "write"] }, { "to": "user:zoe", "may": ["read", "write"] }] });
        site.owner().put(&format!("/books/{book}/access"), grants).is(200);
    }
    let mut events = Events::open(&max, "/search/stream");
    zoe.post("/books/Secret/entries", json!({ "text": "secret" })).is(201);
    zoe.post("/books/Open/entries", json!({ "text": "open" })).is(201);
    assert_eq!(events.next().unwrap().2["entry"]["book"], "Open");
}

#[test]
fn who_reads_too_slowly_is_cut_and_told() {
    /// Time after which the server closes a socket that makes no progress, without notice: it can write nothing there.
    const STALL: Duration = Duration::from_secs(30);
    let site = Site::new();
    let names: Vec<String> = (0..16).map(|number| format!("A{number}")).collect();
    let attributes: Vec<Value> = names.iter().map(|name| json!({ "name": name, "kind": "text" })).collect();
    site.owner().put("/books/Shift", json!({ "name": "Shift", "attributes": attributes })).is(201);
    let zoe = site.user(json!({ "login": "zoe" }));
    let store = site.hub.as_ref().unwrap().book().unwrap().store().clone();
    let begun = Instant::now();
    let mut slow = Events::open(&zoe, "/search/stream");
    let mut quick = Events::open(&zoe, "/search/stream");
    // A few large events fill the kernel's buffers, and small ones the queue: that is done well before the socket stalls. Each
    // portion has room in the queue of the quick one.
    let (large, small) = ("x".repeat(16_000), "x".to_owned());
    let mut count = 0;
    for (portion, text) in [(32, &large), (32, &large), (100, &small), (100, &small), (100, &small)] {
        let new = |id| {
            let attributes = names.iter().map(|name| EntryAttribute::new(name, text)).collect();
            let content = Content { attributes, ..Content::default() };
            let entry = NewEntry { book: "Shift".to_owned(), content, ..NewEntry::default() };
            Imported { id, thread: id, entry, ..Imported::default() }
        };
        store.import("Shift", (count + 1..=count + portion).map(new).collect(), vec![], "zoe").unwrap();
        count += portion;
        let told = (0..portion).filter(|_| quick.next().is_some_and(|event| event.1 == "match")).count();
        assert_eq!(told, portion as usize, "others are told everything");
    }
    let (mut told, mut last) = (0, String::new());
    while let Some((_, kind, _)) = slow.next() {
        told += 1;
        last = kind;
    }
    assert!(told < count && (last == "cut" || begun.elapsed() >= STALL), "{told} of {count}, then {last}");
}

#[test]
fn those_who_listen_are_few() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let open: Vec<_> = (0..32).map(|_| zoe.open("/search/stream")).collect();
    assert!(open.iter().all(|answer| answer.status() == 200));
    let mut more = zoe.open("/search/stream");
    let mut text = String::new();
    more.body_mut().as_reader().read_to_string(&mut text).unwrap();
    assert!(more.status() == 503 && text.contains("too many subscribers"), "{text}");
    // Other clients can still subscribe.
    assert_eq!(site.owner().open("/search/stream").status(), 200);
}

#[test]
fn who_catches_up_holds_up_nobody() {
    let site = Site::new();
    site.shift();
    let store = site.hub.as_ref().unwrap().book().unwrap().store().clone();
    let new = |text: &str| {
        let content = Content { text: text.to_owned(), ..Content::default() };
        NewEntry { book: "Shift".to_owned(), content, ..NewEntry::default() }
    };
    let post = |text: &str| store.post(new(text), vec![], "zoe").unwrap();
    let old = |id| Imported { id, thread: id, entry: new("old"), ..Imported::default() };
    // None of these matches, so none is pushed: neither as a match nor as gone.
    store.import("Shift", (1..=2000).map(old).collect(), vec![], "zoe").unwrap();
    let mut now = Events::open(&site.owner(), "/search/stream?q=word");
    let mut late = Events::open(&site.owner(), "/search/stream?q=word&after=0");
    post("word 0");
    let (number, ..) = now.next().unwrap();
    // New changes are pushed before a client that is behind has caught up; each client gets everything.
    for n in 1..20 {
        post(&format!("word {n}"));
    }
    let mut last = number;
    for _ in 1..20 {
        let (next, kind, _) = now.next().unwrap();
        assert!(next > last && kind == "match");
        last = next;
    }
    let found: Vec<(u64, String)> = (0..20).map(|_| late.next().unwrap()).map(|(number, kind, _)| (number, kind)).collect();
    assert!(found.iter().all(|(_, kind)| kind == "match") && found.is_sorted(), "{found:?}");
    assert_eq!((found[0].0, found[19].0), (number, last));
}

#[test]
fn a_book_that_is_made_later_counts_at_once() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let mut events = Events::open(&zoe, "/search/stream?q=word");
    for book in ["One", "Two", "Three"] {
        site.owner().put(&format!("/books/{book}"), json!({ "name": book, "attributes": [] })).is(201);
        site.owner().post(&format!("/books/{book}/entries"), json!({ "text": "the word" })).is(201);
        assert_eq!(events.next().unwrap().2["entry"]["book"], *book);
    }
}
