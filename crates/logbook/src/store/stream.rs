//! The matching entries of one book, in a given order, from a given position.
//!
//! The index itself is in the order of dates. For another order there are two methods, and the cheaper is used. One
//! fetches all matching rows of the index and sorts them. The other steps through the order and looks each entry up in
//! the index. If the index finds very many rows, the entries along the order are checked themselves, because a large
//! share of them match. After [`LOOKS`] entries this is abandoned, in case all matches lie elsewhere.

use std::{cell::Cell, collections::HashSet, sync::Arc};

use tampu_types::Time;

use super::{
    book_row::{BookRow, OrderKey, damaged, first_row, rows_of, sort_key},
    index::{Along, EachKey, SearchEnd, SearchIndex},
    verdicts::Verdicts,
};
use crate::{
    entry::Entry,
    query::{
        Node,
        candidates::{MAX_EXPANSION, Want},
        eval::{StoredEntry, Subject},
    },
    search::{Sort, Stop, Stopped, cost, is_hidden},
};

/// The number of entries checked along an order before all rows of the index are fetched.
const LOOKS: u64 = 3000;
/// Maximum number of words to which all parts of words of a query together are expanded.
const MAX_EXPANSIONS: usize = 2048;
/// The cost of reading an entry's attributes, in steps along an order.
const READ_COST: u64 = 30;
/// Size of the first batch of entries that are read together. Each further batch is twice as large, up to
/// [`SearchIndex::TOGETHER`].
const FIRST_TOGETHER: usize = 32;

/// A search in one book.
pub struct Stream<'a, I> {
    pub index: &'a I,
    pub book_row: &'a BookRow,
    /// The whole query.
    pub node: &'a Node,
    /// The query for the index.
    pub want: &'a Want,
    /// The parts of the query against which the found entries must be checked.
    pub open: &'a [&'a Node],
    /// The first and last possible row.
    pub rows: (i64, i64),
    pub sort: &'a Sort,
    pub descending: bool,
    pub stop: &'a Stop,
    /// The attributes that the caller sees; `None` stands for all.
    pub shown: Option<&'a [String]>,
    /// The known results of checks of `open`.
    pub seen: Arc<Verdicts>,
}

/// Entries that wait to be read together.
pub struct Batch<T> {
    waiting: Vec<T>,
    size: usize,
    most: usize,
}

impl<T> Batch<T> {
    pub fn new(most: usize) -> Batch<T> {
        Batch { waiting: Vec::new(), size: most.min(FIRST_TOGETHER), most }
    }

    /// Adds an item. Returns true if the batch is full.
    pub fn add(&mut self, one: T) -> bool {
        self.waiting.push(one);
        self.waiting.len() >= self.size
    }
}

/// An item with its row.
pub trait AtRow {
    fn row(&self) -> i64;
}

impl AtRow for i64 {
    fn row(&self) -> i64 {
        *self
    }
}

impl AtRow for OrderKey {
    fn row(&self) -> i64 {
        self.row
    }
}

/// Returns the first and last row of a book that a query's dates allow, and whether the rows express the dates exactly.
/// Late entries have a row of a later second. If a book has such entries, the range is larger and dates are checked.
pub fn rows_between<I: SearchIndex>(index: &I, book_row: &BookRow, (from, to): (Time, Time)) -> super::Result<(i64, i64, bool)> {
    let book = book_row.num;
    let (first, last) = (first_row(book, from), if to.0 == i64::MAX { rows_of(book)[1] } else { first_row(book, to) } - 1);
    if (from.0, to.0) == (i64::MIN, i64::MAX) || index.last_late(book_row, Time(i64::MAX))?.is_none() {
        return Ok((first, last, true));
    }
    let furthest = if to.0 == i64::MAX { None } else { index.last_late(book_row, to)? };
    Ok((first, furthest.map_or(last, |furthest| furthest.max(last)), false))
}

impl<I: SearchIndex> Stream<'_, I> {
    /// Finds up to `most` entries after a position, in order, into `found`.
    pub fn find(&self, after: Option<&OrderKey>, most: usize, found: &mut Vec<OrderKey>) -> std::result::Result<(), SearchEnd> {
        let done = match (self.order()?, after) {
            (Some(order), after) => self.by_order(order, after, most, found),
            // In a book without the attribute, no entry has a value.
            (None, Some(place)) if !place.key.is_empty() && !self.descending => Ok(()),
            (None, Some(place)) if !place.key.is_empty() => self.by_date(None, most, found),
            (None, after) => self.by_date(after, most, found),
        };
        done.map_err(|end| self.stopped(end))
    }

    /// Returns the order, or `None` if this book is read by date.
    pub fn order(&self) -> super::Result<Option<Along>> {
        Ok(match self.sort {
            Sort::Date => None,
            Sort::Id => Some(Along::Id),
            Sort::Thread => Some(Along::Thread),
            Sort::Attribute(name) if self.book_row.book.attribute(name).is_none() || is_hidden(self.shown, name) => None,
            Sort::Attribute(name) => self.index.number(&name.to_lowercase())?.map(Along::Key),
        })
    }

    /// Converts the error of an interrupted statement into a stop.
    pub fn stopped(&self, end: SearchEnd) -> SearchEnd {
        match end {
            SearchEnd::Failed(error) if self.index.is_interrupted(&error) => {
                SearchEnd::Stopped(self.stop.reason().map_or(Stopped::TimeLimit, Stopped::from))
            }
            end => end,
        }
    }

    fn by_date(&self, after: Option<&OrderKey>, most: usize, found: &mut Vec<OrderKey>) -> std::result::Result<(), SearchEnd> {
        let (mut first, mut last) = self.rows;
        match (after, self.descending) {
            (Some(place), true) => last = last.min(place.row - 1),
            (Some(place), false) => first = first.max(place.row + 1),
            (None, _) => {}
        }
        let enough = found.len().saturating_add(most);
        let mut batch = Batch::new(I::TOGETHER);
        let mut take = |row| {
            found.push(OrderKey { key: String::new(), row });
            Ok(found.len() < enough)
        };
        let mut go_on = true;
        self.each_row(first, last, self.descending, |row| {
            go_on =
                if self.open.is_empty() { take(row)? } else { !batch.add(row) || self.look(&mut batch, self.open, &mut take)? };
            Ok(go_on)
        })?;
        if go_on {
            self.look(&mut batch, self.open, &mut take)?;
        }
        Ok(())
    }

    /// Calls `act` with each row between two that the index finds, in order, until it returns false.
    pub fn each_row(
        &self,
        first: i64,
        last: i64,
        descending: bool,
        mut act: impl FnMut(i64) -> std::result::Result<bool, SearchEnd>,
    ) -> std::result::Result<(), SearchEnd> {
        if *self.want == Want::Nothing || first > last {
            return Ok(());
        }
        let mut rows = 0;
        let done = self.index.each_row(self.book_row, self.want, (first, last), descending, self.stop, &mut |row| {
            rows += 1;
            act(row)
        });
        cost::look_at(rows);
        done
    }

    /// Steps through an order from a position on.
    pub fn along(&self, order: Along, after: Option<&OrderKey>, act: EachKey<'_>) -> std::result::Result<(), SearchEnd> {
        let mut rows = 0;
        let done = self.index.along(self.book_row, order, after, self.descending, &mut |place| {
            rows += 1;
            act(place)
        });
        cost::look_at(rows);
        done
    }

    /// Passes the entries of a batch that match these parts of the query to `act`, in their order, until `act` returns
    /// false. Returns true if `act` never returned false.
    pub fn look<T: AtRow>(
        &self,
        batch: &mut Batch<T>,
        parts: &[&Node],
        act: &mut dyn FnMut(T) -> std::result::Result<bool, SearchEnd>,
    ) -> std::result::Result<bool, SearchEnd> {
        batch.size = (batch.size * 2).min(batch.most);
        let waiting = std::mem::take(&mut batch.waiting);
        if waiting.is_empty() {
            return Ok(true);
        }
        if !parts.is_empty()
            && let Some(why) = self.stop.reason()
        {
            return Err(SearchEnd::Stopped(why.into()));
        }
        // Only this set of parts is checked again, for the count and by further searches.
        let remembers = std::ptr::eq(parts, self.open) && !parts.is_empty();
        let known = |row: i64| match remembers {
            true => self.seen.get(row),
            false => parts.is_empty().then_some(true),
        };
        // Looked up once: another search may push a verdict out.
        let known: Vec<Option<bool>> = waiting.iter().map(|one| known(one.row())).collect();
        let unknown = waiting.iter().zip(&known).filter(|(_, known)| known.is_none());
        let rows: Vec<i64> = unknown.map(|(one, _)| one.row()).collect();
        let mut waiting = waiting.into_iter().zip(known);
        let mut go_on = true;
        if !rows.is_empty() {
            cost::look_at(rows.len() as u64);
            // A regular expression can be stopped within an entry; its result then has no meaning.
            let stops = parts.iter().any(|part| has_regex(part));
            let text = parts.iter().any(|part| reads_text(part));
            self.index.each_entry(self.book_row, &rows, text, &mut |row, stored| {
                // Those before it are known, or are no longer there.
                for (one, known) in waiting.by_ref() {
                    let is_this = one.row() == row;
                    let meant = if is_this { self.is_meant(stored, parts)? } else { known.unwrap_or_default() };
                    if stops && let Some(why) = self.stop.reason() {
                        return Err(SearchEnd::Stopped(why.into()));
                    }
                    if is_this && remembers {
                        self.seen.keep(row, meant);
                    }
                    go_on = !meant || act(one)?;
                    if is_this || !go_on {
                        break;
                    }
                }
                Ok(go_on)
            })?;
        }
        for (one, known) in waiting.take_while(|_| go_on) {
            if known.unwrap_or_default() && !act(one)? {
                return Ok(false);
            }
        }
        Ok(go_on)
    }

    /// Returns whether an entry matches these parts of the query.
    fn is_meant(&self, stored: StoredEntry<'_>, parts: &[&Node]) -> std::result::Result<bool, SearchEnd> {
        let id = stored.id;
        let subject = Subject::stored(stored, self.shown, self.stop);
        let meant = parts.iter().all(|part| subject.is_meant(part));
        match subject.damage() {
            Some(error) => Err(damaged(&self.book_row.book.name, id, error).into()),
            None => Ok(meant),
        }
    }

    /// Returns true if the search finds every entry between its dates. The order of threads has no replies.
    pub fn has_everything(&self) -> bool {
        *self.want == Want::All && self.open.is_empty() || *self.sort == Sort::Thread && self.node.is_without_replies_only()
    }

    /// Returns true if the search has dates.
    pub fn is_narrow(&self) -> bool {
        self.node.dates() != Node::All.dates()
    }

    /// Finds entries in the order of ids, or of an attribute's keys.
    fn by_order(
        &self,
        order: Along,
        after: Option<&OrderKey>,
        most: usize,
        found: &mut Vec<OrderKey>,
    ) -> std::result::Result<(), SearchEnd> {
        let (first, last) = self.rows;
        let is_of_threads = *self.sort == Sort::Thread;
        let (everything, narrow) = (self.has_everything(), self.is_narrow());
        let mut held: Option<HashSet<i64>> = None;
        let (mut after, begun) = (after.cloned(), found.len());
        let enough = found.len().saturating_add(most);
        if !everything || narrow {
            let mut rows = Vec::new();
            let mut read = |most: usize| {
                rows.clear();
                self.each_row(first, last, true, |row| {
                    rows.push(row);
                    Ok(rows.len() <= most)
                })?;
                Ok::<_, SearchEnd>(rows.len() > most)
            };
            let is_frequent = *self.want != Want::Nothing && (I::TRIED_FROM == 0 || read(I::TRIED_FROM)?);
            if is_frequent && self.tried(order, after.as_ref(), enough, found)? {
                return Ok(());
            }
            if is_frequent {
                read(I::HELD)?;
            }
            let along = self.book_row.entries.saturating_mul(most as u64) / (rows.len() as u64).max(1);
            // An entry does not know the newest one of its thread.
            if !is_of_threads && rows.len() <= I::HELD && rows.len() as u64 * READ_COST < along {
                return self.sorted(rows, after.as_ref(), enough, found);
            }
            held = (rows.len() <= I::HELD).then(|| rows.into_iter().collect());
        }
        let whole = [self.node];
        let mut looks = 0;
        loop {
            let (mut give_up, mut go_on) = (false, true);
            let parts = match &held {
                _ if everything && !narrow => &[][..],
                Some(_) => self.open,
                None => &whole,
            };
            let mut batch = Batch::new(if parts.is_empty() { 1 } else { I::TOGETHER });
            let mut take = |place| {
                found.push(place);
                Ok(found.len() < enough)
            };
            self.along(order, after.as_ref(), &mut |place| {
                if self.is_passed(&place, after.as_ref()) || held.as_ref().is_some_and(|held| !held.contains(&place.row)) {
                    return Ok(true);
                }
                if held.is_none() && !parts.is_empty() {
                    looks += 1;
                    give_up = looks > LOOKS && *self.want != Want::All;
                }
                if give_up {
                    return Ok(false);
                }
                go_on = !batch.add(place) || self.look(&mut batch, parts, &mut take)?;
                Ok(go_on)
            })?;
            if go_on {
                go_on = self.look(&mut batch, parts, &mut take)?;
            }
            if !give_up || !go_on {
                return Ok(());
            }
            let mut rows = HashSet::new();
            self.each_row(first, last, true, |row| {
                rows.insert(row);
                Ok(true)
            })?;
            held = Some(rows);
            after = found.get(begun..).and_then(<[OrderKey]>::last).cloned().or(after);
        }
    }

    /// Checks the nearest entries along an order. Returns whether they were enough; if not, nothing is added.
    fn tried(
        &self,
        order: Along,
        after: Option<&OrderKey>,
        enough: usize,
        found: &mut Vec<OrderKey>,
    ) -> std::result::Result<bool, SearchEnd> {
        let begun = found.len();
        if enough - begun > I::TRIED {
            return Ok(false);
        }
        let mut batch = Batch { waiting: Vec::new(), size: I::TRIED_TOGETHER, most: I::TRIED_TOGETHER };
        let (mut tried, mut go_on) = (0, true);
        let mut take = |place| {
            found.push(place);
            Ok(found.len() < enough)
        };
        self.along(order, after, &mut |place| {
            if self.is_passed(&place, after) {
                return Ok(true);
            }
            tried += 1;
            go_on = !batch.add(place) || self.look(&mut batch, &[self.node], &mut take)?;
            Ok(go_on && tried < I::TRIED)
        })?;
        if go_on {
            self.look(&mut batch, &[self.node], &mut take)?;
        }
        let is_enough = found.len() >= enough;
        if !is_enough {
            found.truncate(begun);
        }
        Ok(is_enough)
    }

    /// Returns whether an earlier page ended at or after this place. An entry of another book can have the same id as
    /// the one that the page ended with.
    pub fn is_passed(&self, place: &OrderKey, after: Option<&OrderKey>) -> bool {
        after.is_some_and(|after| if self.descending { place.order() >= after.order() } else { place.order() <= after.order() })
    }

    /// Sorts a small number of rows.
    fn sorted(
        &self,
        rows: Vec<i64>,
        after: Option<&OrderKey>,
        enough: usize,
        found: &mut Vec<OrderKey>,
    ) -> std::result::Result<(), SearchEnd> {
        let mut places = Vec::with_capacity(rows.len());
        for rows in rows.chunks(I::TOGETHER) {
            cost::look_at(rows.len() as u64);
            let entries = self.index.load(self.book_row, rows, false)?;
            places.extend(entries.into_iter().map(|(row, entry)| OrderKey { key: self.key(&entry), row }));
        }
        places.sort_by(|a, b| a.order().cmp(&b.order()));
        if self.descending {
            places.reverse();
        }
        let mut batch = Batch::new(I::TOGETHER);
        let mut take = |place| {
            found.push(place);
            Ok(found.len() < enough)
        };
        for place in places {
            if !self.is_passed(&place, after) && batch.add(place) && !self.look(&mut batch, self.open, &mut take)? {
                return Ok(());
            }
        }
        self.look(&mut batch, self.open, &mut take)?;
        Ok(())
    }

    pub fn key(&self, entry: &Entry) -> String {
        match self.sort {
            Sort::Date | Sort::Thread => String::new(),
            Sort::Id => format!("{:010}", entry.at.id),
            Sort::Attribute(name) => {
                let kind = self.book_row.book.attribute(name).map(|attribute| attribute.kind).unwrap_or_default();
                sort_key(kind, entry.content.attribute(name).map_or(&[][..], |said| &said.values))
            }
        }
    }
}

fn reads_text(node: &Node) -> bool {
    use crate::query::Scope;
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(reads_text),
        Node::Not(node) => reads_text(node),
        Node::Words { scope, .. } | Node::Contains { scope, .. } | Node::Matches { scope, .. } => {
            matches!(scope, Scope::Anywhere | Scope::Text)
        }
        _ => false,
    }
}

fn has_regex(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(has_regex),
        Node::Not(node) => has_regex(node),
        node => matches!(node, Node::Matches { .. }),
    }
}

/// The remaining number of words to which a query can expand. It bounds the queries to an index.
pub struct Budget(Cell<usize>);

impl Budget {
    /// Creates the budget of one query.
    pub fn new() -> Budget {
        Budget(Cell::new(MAX_EXPANSIONS))
    }

    /// Charges the found words. Returns `None` if they are too many.
    pub fn spend(&self, found: Vec<String>) -> Option<Vec<String>> {
        let left = self.0.get().checked_sub(found.len()).filter(|_| found.len() <= MAX_EXPANSION)?;
        self.0.set(left);
        Some(found)
    }
}
