//! The cost of searches, collected for each thread that makes an answer.
//!
//! Decision: a program that wants to know the costs calls [`collected`] around its work, and the store reports each
//! search to the thread's collection. So no layer between the two has a parameter for it. A thread without a collection
//! keeps nothing. Rejected: a field of the page, because pages of ELOG, exports and feeds search several times, deep below the
//! code that knows the user.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};

use super::{Page, Search, Stopped};

/// Maximum number of searches that are collected for one piece of work: the slowest ones stay.
const MOST: usize = 8;
/// Maximum length of a query that is kept, in bytes.
const QUERY: usize = 1000;

/// The cost of one search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchCost {
    /// The query; a long one is cut.
    pub query: String,
    /// The books that were named; none means all.
    pub books: Vec<String>,
    /// The time until the page was there, with the wait for a connection.
    pub time: Duration,
    /// Rows of the index that were stepped over, and entries that were read.
    pub rows: u64,
    /// Entries of the page.
    pub hits: usize,
    /// The reason for an early end.
    pub stopped: Option<Stopped>,
}

/// Searches of one piece of work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchCosts {
    /// Number of searches.
    pub searches: u64,
    /// Rows that all of them looked at.
    pub rows: u64,
    /// The slowest ones.
    pub slowest: Vec<SearchCost>,
}

thread_local! {
    static COSTS: RefCell<Option<SearchCosts>> = const { RefCell::new(None) };
    static ROWS: Cell<u64> = const { Cell::new(0) };
}

impl SearchCosts {
    fn add(&mut self, cost: SearchCost) {
        self.searches += 1;
        self.rows += cost.rows;
        self.keep(cost);
    }

    fn keep(&mut self, cost: SearchCost) {
        self.slowest.push(cost);
        if self.slowest.len() > MOST
            && let Some(fastest) = (0..self.slowest.len()).min_by_key(|nth| self.slowest[*nth].time)
        {
            self.slowest.remove(fastest);
        }
    }

    /// Adds the searches of further work.
    pub fn append(&mut self, more: SearchCosts) {
        self.searches += more.searches;
        self.rows += more.rows;
        more.slowest.into_iter().for_each(|cost| self.keep(cost));
    }
}

/// Does some work, and returns the costs of the searches that this thread made for it.
pub fn collected<T>(work: impl FnOnce() -> T) -> (T, SearchCosts) {
    COSTS.set(Some(SearchCosts::default()));
    let done = work();
    (done, COSTS.take().unwrap_or_default())
}

/// Counts rows that a search looks at.
pub(crate) fn look_at(rows: u64) {
    ROWS.set(ROWS.get().wrapping_add(rows));
}

/// Makes a page, and collects its cost.
pub(crate) fn measured<E>(search: &Search, make: impl FnOnce() -> Result<Page, E>) -> Result<Page, E> {
    if COSTS.with_borrow(Option::is_none) {
        return make();
    }
    let (begun, before) = (Instant::now(), ROWS.get());
    let page = make();
    let mut end = search.query.len().min(QUERY);
    while !search.query.is_char_boundary(end) {
        end -= 1;
    }
    let cost = SearchCost {
        query: search.query[..end].to_owned(),
        books: search.books.clone(),
        time: begun.elapsed(),
        rows: ROWS.get().wrapping_sub(before),
        hits: page.as_ref().map_or(0, |page| page.hits.len()),
        stopped: page.as_ref().ok().and_then(|page| page.stopped),
    };
    COSTS.with_borrow_mut(|costs| costs.iter_mut().for_each(|costs| costs.add(cost.clone())));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(query: &str, rows: u64) {
        let search = Search { query: query.to_owned(), ..Search::default() };
        let page = measured(&search, || {
            look_at(rows);
            Ok::<_, ()>(Page::default())
        });
        assert!(page.is_ok());
    }

    #[test]
    fn only_searches_of_the_work_are_collected() {
        search("before", 5);
        let ((), costs) = collected(|| {
            search("one", 3);
            search("two", 4);
        });
        search("after", 1);
        assert_eq!((costs.searches, costs.rows), (2, 7));
        assert_eq!(
            costs.slowest.iter().map(|cost| (cost.query.as_str(), cost.rows)).collect::<Vec<_>>(),
            [("one", 3), ("two", 4)]
        );
        assert_eq!(collected(|| ()).1, SearchCosts::default());
    }

    #[test]
    fn the_slowest_searches_stay() {
        let cost = |millis| SearchCost {
            query: "ä".repeat(3),
            books: vec![],
            time: Duration::from_millis(millis),
            rows: 1,
            hits: 0,
            stopped: None,
        };
        let mut costs = SearchCosts::default();
        (0..20).rev().for_each(|millis| costs.add(cost(millis)));
        assert_eq!((costs.searches, costs.rows, costs.slowest.len()), (20, 20, MOST));
        assert!(costs.slowest.iter().all(|cost| cost.time >= Duration::from_millis(12)), "{costs:?}");
        let ((), costs) = collected(|| search(&"ä".repeat(QUERY), 1));
        assert_eq!(costs.slowest[0].query.len(), QUERY);
    }
}
