//! Searches that would take for ever end at their time limit, or when their client has gone.

#![allow(missing_docs)]

#[path = "support/server.rs"]
mod server;

use std::{
    thread,
    time::{Duration, Instant},
};

use tampu_logbook::{
    book::Book,
    entry::{Content, NewEntry},
    search::{Page, Search, Stop, Stopped},
    store::{Store, sqlite::SqliteStore},
};

/// Much longer than a search that ends takes to end, and much shorter than one that does not.
const PATIENCE: Duration = Duration::from_secs(60);

fn page(store: &dyn Store, query: &str, time: Duration, stop: &Stop) -> Page {
    store.search(&Search { query: query.to_owned(), time, ..Search::default() }, stop).unwrap()
}

fn long_texts(store: &dyn Store) {
    store.put_book(&Book::new("A", vec![])).unwrap();
    // For words of another alphabet, the library has no fast way to match this expression.
    let content = Content { text: "aé ".repeat(1 << 20), ..Content::default() };
    store.post(NewEntry { book: "A".to_owned(), content, ..NewEntry::default() }, vec![], "zoe").unwrap();
    let expression = r"/\b(a?){900}\bq/";
    for query in [expression, &format!("-{expression}"), &format!("nothing OR {expression}")] {
        let begun = Instant::now();
        let found = page(store, query, Duration::from_millis(200), &Stop::default());
        assert!(begun.elapsed() < PATIENCE, "{query}: {:?}", begun.elapsed());
        // An entry with an unknown result is not a hit, with or without a negation.
        assert_eq!((found.hits.len(), found.stopped), (0, Some(Stopped::TimeLimit)), "{query}");
    }
    let stop = Stop::default();
    thread::scope(|scope| {
        let search = scope.spawn(|| page(store, expression, Duration::from_secs(3600), &stop));
        stop.stop();
        assert_eq!(search.join().unwrap().stopped, Some(Stopped::Abandoned));
    });
    // The entry is still found and shown.
    assert_eq!(page(store, "/é a/", PATIENCE, &Stop::default()).hits.len(), 1);
}

#[test]
fn an_expression_that_takes_for_ever_ends_in_its_time() {
    let dir = tempfile::tempdir().unwrap();
    long_texts(&SqliteStore::open(dir.path()).unwrap());
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn so_it_does_in_postgres() {
    let server = server::server();
    long_texts(&server.store());
}
