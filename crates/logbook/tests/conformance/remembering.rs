//! Searches that a store remembers until something is written.

use std::sync::atomic::{AtomicU64, Ordering};

use tampu_logbook::{
    search::{Count, Page, Search, Stop},
    store::Store,
};

use super::support::{entry, lasting::Model, shift_book};

const QUERIES: [&str; 6] = ["", "beam", "\"beam lost\"", "/los[ty]/", "author:Zoe", "beam -lost"];
const TEXTS: [&str; 4] = ["beam lost", "stable beam", "lost a key", "nothing"];

fn found(store: &dyn Store, query: &str) -> Page {
    let search = Search { books: vec!["A".to_owned()], query: query.to_owned(), limit: 100, ..Search::default() };
    store.search(&search, &Stop::default()).unwrap_or_else(|error| panic!("{query}: {error}"))
}

fn ids_and_count(page: &Page) -> (Vec<u32>, Option<Count>) {
    (page.hits.iter().map(|hit| hit.entry.at.id).collect(), page.count)
}

/// Each search is compared with one that depends on the time, which is never remembered.
pub fn remembered_searches_are_those_of_the_moment(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let (mut chance, mut posted) = (7u64, Vec::new());
    let mut below = |end: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as usize % end
    };
    for _ in 0..40 {
        let text = TEXTS[below(TEXTS.len())];
        if posted.is_empty() || below(2) == 0 {
            let author = ["Zoe", "Max"][below(2)];
            posted.push(store.post(entry("A", author, "s", text), vec![], "zoe").unwrap());
        } else {
            let at = &posted[below(posted.len())];
            let mut content = store.entry(at).unwrap().content;
            content.text = text.to_owned();
            store.edit(at, content, vec![], "zoe", None).unwrap();
        }
        for query in QUERIES {
            let now = ids_and_count(&found(store, &format!("{query} last:9000d")));
            for _ in 0..2 {
                assert_eq!(ids_and_count(&found(store, query)), now, "{query}");
            }
        }
    }
    assert!(store.report().remembered > 0);
}

/// A search that begins after a post ended finds it, and none finds what is not posted.
pub fn remembered_searches_beside_writers(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    begun.fetch_add(1, Ordering::SeqCst);
                    store.post(entry("A", "Zoe", "s", "beam"), vec![], "zoe").unwrap();
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..4 {
            scope.spawn(|| {
                let mut least = 0;
                while least < 40 {
                    least = ended.load(Ordering::SeqCst);
                    let page = found(store, "beam");
                    let most = begun.load(Ordering::SeqCst);
                    let Some(Count::Exactly(count)) = page.count else { panic!("it is counted") };
                    assert!((least..=most).contains(&count), "{count} of {least} to {most}");
                    assert_eq!(page.hits.len() as u64, count);
                }
            });
        }
    });
}

/// Lists and verdicts of earlier searches end when entries change.
pub fn words_and_verdicts_are_remembered_until_entries_change(store: &dyn Store) {
    let mut model = Model::new(store);
    for round in 0..80 {
        let what = model.change(store, round % 20 == 0);
        model.compare(store, &format!("round {round}: {what}"));
    }
}
