//! Searches that a store remembers until something is written.

use std::sync::atomic::{AtomicU64, Ordering};

use tampu_logbook::{
    entry::{Content, EntryRef, NewEntry},
    search::{Count, Page, Search, Stop},
    store::Store,
};
use tampu_types::Time;

use super::support::{entry, shift_book};

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

/// An entry as the test knows it.
struct Known {
    id: u32,
    date: Time,
    text: &'static str,
}

/// Texts with words that are frequent enough for a list of their own, and expressions that are checked in the entries.
type Matches = fn(&str) -> bool;
const LASTING: [(&str, Matches); 7] = [
    ("beam", |text| text.contains("beam")),
    ("beam -lost", |text| text.contains("beam") && !text.contains("lost")),
    ("key OR stable", |text| text.contains("key") || text.contains("stable")),
    ("\"lost a key\"", |text| text.contains("lost a key")),
    ("beam /st.*beam/", |text| text.contains("stable beam")),
    ("author:Zoe \"beam lost\"", |text| text.contains("beam lost")),
    ("unheard -beam", |_| false),
];

fn compare(store: &dyn Store, book: &str, known: &[Known], after: &str) {
    let mut in_order: Vec<&Known> = known.iter().collect();
    in_order.sort_by_key(|one| (one.date.0, one.id));
    for (query, matches) in LASTING {
        let ids: Vec<u32> = in_order.iter().rev().filter(|one| matches(one.text)).map(|one| one.id).collect();
        for descending in [true, false] {
            let search =
                Search { books: vec![book.to_owned()], query: query.to_owned(), limit: 50, descending, ..Search::default() };
            let page = store.search(&search, &Stop::default()).unwrap_or_else(|error| panic!("{query}: {error}"));
            let expected: Vec<u32> =
                if descending { ids.iter().take(50).copied().collect() } else { ids.iter().rev().take(50).copied().collect() };
            let (found, count) = ids_and_count(&page);
            assert_eq!(found, expected, "{query}, descending {descending}, {book}, {after}");
            let Some(Count::Exactly(count) | Count::AtLeast(count)) = count else { panic!("{query}: it is counted") };
            assert!(count <= ids.len() as u64, "{query}: {count}, {book}, {after}");
        }
    }
}

/// Lists and verdicts of earlier searches end when entries change.
pub fn words_and_verdicts_are_remembered_until_entries_change(store: &dyn Store) {
    let books = ["A", "B"];
    for book in books {
        store.put_book(&shift_book(book)).unwrap();
    }
    let mut known: [Vec<Known>; 2] = Default::default();
    let (mut chance, mut now) = (11u64, 1_221_000_000i64);
    let mut below = |end: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as usize % end
    };
    let posted = |book: &str, date: i64, text: &str| {
        let new = entry(book, "Zoe", "s", text);
        (NewEntry { date: Some(Time::from_unix(date, 0)), ..new }, None)
    };
    for round in 0..60 {
        let at = below(4) / 3;
        let what = if round % 20 == 0 { 0 } else { 1 + below(7) };
        match what {
            // Many at once, so that lists become long, and then are continued.
            0 | 1 => {
                let many = if what == 0 { 600 } else { 1 + below(3) };
                let texts: Vec<&'static str> = (0..many).map(|_| TEXTS[below(TEXTS.len())]).collect();
                let new = texts.iter().enumerate().map(|(nth, text)| posted(books[at], now + nth as i64, text)).collect();
                let refs = store.post_all(new, "zoe").unwrap();
                let fresh = refs.iter().zip(&texts).enumerate();
                known[at].extend(fresh.map(|(nth, (at, text))| Known {
                    id: at.id,
                    date: Time::from_unix(now + nth as i64, 0),
                    text,
                }));
                now += many as i64;
            }
            // Before others.
            2 => {
                let (date, text) = (1_220_000_000 + below(500_000) as i64 * 2, TEXTS[below(TEXTS.len())]);
                let refs = store.post_all(vec![posted(books[at], date, text)], "zoe").unwrap();
                known[at].push(Known { id: refs[0].id, date: Time::from_unix(date, 0), text });
            }
            3 | 4 if !known[at].is_empty() => {
                let nth = below(known[at].len());
                let place = EntryRef::new(books[at], known[at][nth].id);
                let text = TEXTS[below(TEXTS.len())];
                let content = Content { text: text.to_owned(), ..store.entry(&place).unwrap().content };
                store.edit(&place, content, vec![], "zoe", None).unwrap();
                known[at][nth].text = text;
            }
            5 if !known[at].is_empty() => {
                let gone = known[at].swap_remove(below(known[at].len()));
                store.delete(&EntryRef::new(books[at], gone.id), "zoe", false).unwrap();
            }
            6 if !known[at].is_empty() => {
                let moved = known[at].swap_remove(below(known[at].len()));
                let place = store.move_to(&EntryRef::new(books[at], moved.id), books[1 - at], "zoe", false).unwrap();
                known[1 - at].push(Known { id: place.id, ..moved });
            }
            _ => {}
        }
        // More than once, because a long list is fetched when it is needed again.
        for _ in 0..3 {
            for (book, known) in books.iter().zip(&known) {
                compare(store, book, known, &format!("round {round}, step {what}"));
            }
        }
    }
}
