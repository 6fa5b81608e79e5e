//! Two books that are changed at random, and a model of them to compare searches with.

use tampu_logbook::{
    entry::{Content, EntryRef, NewEntry},
    search::{Count, Search, Stop},
    store::{Imported, Store, purge::Purge},
};
use tampu_types::Time;

use super::{entry, shift_book};

const BOOKS: [&str; 2] = ["A", "B"];
const TEXTS: [&str; 4] = ["beam lost", "stable beam", "lost a key", "nothing"];
/// A word that stands in each entry's author.
const AUTHOR: &str = "Zoe";
/// The dates of entries that are added last begin here; there are earlier ones, too.
const BEGIN: i64 = 1_221_000_000;

/// An entry as the model knows it.
struct Known {
    id: u32,
    date: i64,
    text: &'static str,
}

type Matches = fn(&str) -> bool;
/// Searches for words that are frequent enough for a list of their own, and for expressions that are checked in the entries;
/// the attributes that the searcher sees, or all.
const SEARCHES: [(&str, Option<&[&str]>, Matches); 10] = [
    ("beam", None, |text| text.contains("beam")),
    ("beam -lost", None, |text| text.contains("beam") && !text.contains("lost")),
    ("key OR stable", None, |text| text.contains("key") || text.contains("stable")),
    ("\"lost a key\"", None, |text| text.contains("lost a key")),
    ("beam /st.*beam/", None, |text| text.contains("stable beam")),
    ("author:Zoe \"beam lost\"", None, |text| text.contains("beam lost")),
    ("unheard -beam", None, |_| false),
    ("zoe", None, |_| true),
    ("zoe", Some(&["Subject"]), |_| false),
    ("beam", Some(&["Subject"]), |text| text.contains("beam")),
];

/// The entries of two books of a store.
pub struct Model {
    known: [Vec<Known>; 2],
    highest: [u32; 2],
    now: i64,
    chance: u64,
}

impl Model {
    pub fn new(store: &dyn Store) -> Model {
        for book in BOOKS {
            store.put_book(&shift_book(book)).unwrap();
        }
        Model { known: Default::default(), highest: [0; 2], now: BEGIN, chance: 11 }
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.known.iter().map(Vec::len).sum()
    }

    fn below(&mut self, end: usize) -> usize {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) as usize % end
    }

    fn text(&mut self) -> &'static str {
        TEXTS[self.below(TEXTS.len())]
    }

    fn new_entry(book: &str, date: i64, text: &str) -> NewEntry {
        NewEntry { date: Some(Time::from_unix(date, 0)), ..entry(book, AUTHOR, "s", text) }
    }

    fn add(&mut self, at: usize, one: Known) {
        self.highest[at] = self.highest[at].max(one.id);
        self.known[at].push(one);
    }

    /// Adds entries with these dates in one transaction: by posts, or by an import.
    fn add_all(&mut self, store: &dyn Store, at: usize, dates: &[i64], import: bool) {
        let texts: Vec<&str> = dates.iter().map(|_| self.text()).collect();
        let new = dates.iter().zip(&texts).map(|(date, text)| Model::new_entry(BOOKS[at], *date, text));
        let ids: Vec<u32> = if import {
            let ids: Vec<u32> = (0..dates.len() as u32).map(|nth| self.highest[at] + 1 + nth).collect();
            let one = |(id, entry): (&u32, NewEntry)| Imported { id: *id, thread: *id, entry, ..Imported::default() };
            store.import(BOOKS[at], ids.iter().zip(new).map(one).collect(), vec![], "import").unwrap();
            ids
        } else {
            store.post_all(new.map(|new| (new, None)).collect(), "zoe").unwrap().iter().map(|at| at.id).collect()
        };
        for ((id, date), text) in ids.into_iter().zip(dates).zip(texts) {
            self.add(at, Known { id, date: *date, text });
        }
        self.now = self.now.max(dates.iter().max().map_or(0, |date| date + 1));
    }

    /// Changes one of the books: by many entries, so that lists become long, or in a way of any kind. Returns a name of it.
    pub fn change(&mut self, store: &dyn Store, many: bool) -> &'static str {
        let at = self.below(4) / 3;
        let book = BOOKS[at];
        let several = if many { 600 } else { 1 + self.below(3) as i64 };
        let after: Vec<i64> = (self.now..self.now + several).collect();
        let what = if many { self.below(4) } else { self.below(9) };
        if many || what < 4 || self.known[at].is_empty() {
            let import = self.below(2) == 0;
            match what {
                0 | 1 => self.add_all(store, at, &after, import),
                // Each of them is before the one that is written before it.
                2 | 3 => self.add_all(store, at, &after.into_iter().rev().collect::<Vec<_>>(), import),
                _ => {
                    let date = BEGIN - 1_000_000 + self.below(500_000) as i64 * 2;
                    self.add_all(store, at, &[date], import);
                    return "one before others";
                }
            }
            return if import { "imported" } else { "posted" };
        }
        let nth = self.below(self.known[at].len());
        let place = EntryRef::new(book, self.known[at][nth].id);
        match what {
            4 => {
                let date = BEGIN - 1_000_000 + self.below(500_000) as i64 * 2;
                self.add_all(store, at, &[date], false);
                "one before others"
            }
            5 => {
                let text = self.text();
                let content = Content { text: text.to_owned(), ..store.entry(&place).unwrap().content };
                store.edit(&place, content, vec![], "zoe", None).unwrap();
                self.known[at][nth].text = text;
                "edited"
            }
            6 => {
                self.known[at].swap_remove(nth);
                store.delete(&place, "zoe", false).unwrap();
                "deleted"
            }
            7 => {
                let moved = self.known[at].swap_remove(nth);
                let place = store.move_to(&place, BOOKS[1 - at], "zoe", false).unwrap();
                self.add(1 - at, Known { id: place.id, ..moved });
                "moved"
            }
            _ => {
                self.known[at].swap_remove(nth);
                store.purge(&place, &Purge { reason: "a test".to_owned(), ..Purge::default() }, "zoe").unwrap();
                "purged"
            }
        }
    }

    /// Compares searches with the model. More than once, because a long list is fetched when it is needed again.
    pub fn compare(&self, store: &dyn Store, after: &str) {
        for _ in 0..3 {
            for (book, known) in BOOKS.iter().zip(&self.known) {
                compare(store, book, known, after);
            }
        }
    }
}

fn compare(store: &dyn Store, book: &str, known: &[Known], after: &str) {
    let mut in_order: Vec<&Known> = known.iter().collect();
    in_order.sort_by_key(|one| (one.date, one.id));
    for (query, shown, matches) in SEARCHES {
        let ids: Vec<u32> = in_order.iter().filter(|one| matches(one.text)).map(|one| one.id).collect();
        let shown = shown.map(|names| (book.to_owned(), names.iter().map(|&name| name.to_owned()).collect()));
        for descending in [true, false] {
            let search = Search {
                books: vec![book.to_owned()],
                query: query.to_owned(),
                limit: 50,
                descending,
                count_to: 1_000_000,
                count_looks: 1_000_000,
                shown: shown.iter().cloned().collect(),
                ..Search::default()
            };
            let page = store.search(&search, &Stop::default()).unwrap_or_else(|error| panic!("{query}: {error}"));
            let expected: Vec<u32> =
                if descending { ids.iter().rev().take(50).copied().collect() } else { ids.iter().take(50).copied().collect() };
            let found: Vec<u32> = page.hits.iter().map(|hit| hit.entry.at.id).collect();
            assert_eq!(found, expected, "{query}, shown {shown:?}, descending {descending}, {book}, {after}");
            assert_eq!(page.count, Some(Count::Exactly(ids.len() as u64)), "{query}, shown {shown:?}, {book}, {after}");
        }
    }
}
