//! The entries of one book that a query means, in an order, from a place on.
//!
//! By date the index itself is in order: rows are places by date. In another order there are two ways, and the cheaper is taken:
//! to know all that the index finds and put it in order, or to go along the order and ask of each entry whether it is among those
//! found. Where the index finds very many, each entry met along the order is looked at itself instead, because one in few is meant then; that
//! is given up after [`LOOKS`] entries, where the meant ones all lie elsewhere.

use std::{cell::Cell, collections::HashSet};

use tampu_types::Time;

use super::{
    StoreError,
    index::{Along, Index},
    shelf::{Place, Shelf, first_row, rows_of, sort_key},
};
use crate::{
    entry::Entry,
    query::{
        Node,
        candidates::{MAX_EXPANSION, Want},
        eval::Subject,
    },
    search::{Sort, Stop, Stopped},
};

/// Entries looked at along an order before all rows of the index are fetched after all.
const LOOKS: u64 = 3000;
/// Words that all parts of words of a query together may stand for.
const MAX_EXPANSIONS: usize = 2048;
/// What reading an entry's attributes costs, in steps along an order.
const READ_COST: u64 = 30;
/// Entries that are read together at first; then twice as many each time, up to [`Index::TOGETHER`].
const FIRST_TOGETHER: usize = 32;

/// What to find in one book.
pub struct Stream<'a, I> {
    pub index: &'a I,
    pub shelf: &'a Shelf,
    /// The whole query.
    pub node: &'a Node,
    /// What the index is asked for.
    pub want: &'a Want,
    /// What entries that it finds have to be held against.
    pub open: &'a [&'a Node],
    /// The first and last row there can be.
    pub rows: (i64, i64),
    pub sort: &'a Sort,
    pub descending: bool,
    pub stop: &'a Stop,
}

/// What ends a search: an error, or that it was stopped.
pub enum End {
    /// Something went wrong.
    Failed(StoreError),
    /// It was stopped; what was found until then is good.
    Stopped(Stopped),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> End {
        End::Failed(error)
    }
}

/// Entries on their way to being looked at, gathered until there are enough to be read together.
pub struct Batch<T> {
    waiting: Vec<T>,
    size: usize,
    most: usize,
}

impl<T> Batch<T> {
    pub fn new(most: usize) -> Batch<T> {
        Batch { waiting: Vec::new(), size: most.min(FIRST_TOGETHER), most }
    }

    /// One more; whether there are enough now.
    pub fn add(&mut self, one: T) -> bool {
        self.waiting.push(one);
        self.waiting.len() >= self.size
    }
}

/// What stands at a row.
pub trait AtRow {
    fn row(&self) -> i64;
}

impl AtRow for i64 {
    fn row(&self) -> i64 {
        *self
    }
}

impl AtRow for Place {
    fn row(&self) -> i64 {
        self.row
    }
}

/// The first and last row of a book that a query's dates leave, and whether that says it all. Late entries have a later second's row: where
/// a book has such the rows reach further, and dates are looked at.
pub fn rows_between<I: Index>(index: &I, shelf: &Shelf, (from, to): (Time, Time)) -> super::Result<(i64, i64, bool)> {
    let book = shelf.num;
    let (first, last) = (first_row(book, from), if to.0 == i64::MAX { rows_of(book)[1] } else { first_row(book, to) } - 1);
    if (from.0, to.0) == (i64::MIN, i64::MAX) || index.last_late(shelf, Time(i64::MAX))?.is_none() {
        return Ok((first, last, true));
    }
    let furthest = if to.0 == i64::MAX { None } else { index.last_late(shelf, to)? };
    Ok((first, furthest.map_or(last, |furthest| furthest.max(last)), false))
}

impl<I: Index> Stream<'_, I> {
    /// Finds up to `most` entries after a place, in order, into `found`.
    pub fn find(&self, after: Option<&Place>, most: usize, found: &mut Vec<Place>) -> std::result::Result<(), End> {
        let done = match self.sort {
            Sort::Date => self.by_date(after, most, found),
            Sort::Id => self.by_order(Along::Id, after, most, found),
            Sort::Attribute(name) => match self.index.number(&name.to_lowercase())? {
                Some(number) if self.shelf.book.attribute(name).is_some() => {
                    self.by_order(Along::Key(number), after, most, found)
                }
                // A book without the attribute is one in which all have no value.
                _ => match after {
                    Some(place) if !place.key.is_empty() && !self.descending => Ok(()),
                    Some(place) if !place.key.is_empty() => self.by_date(None, most, found),
                    after => self.by_date(after, most, found),
                },
            },
        };
        done.map_err(|end| self.stopped(end))
    }

    /// An interrupted statement is a stop.
    pub fn stopped(&self, end: End) -> End {
        match end {
            End::Failed(error) if self.index.is_interrupted(&error) => {
                End::Stopped(self.stop.why().unwrap_or(Stopped::TimeLimit))
            }
            end => end,
        }
    }

    fn by_date(&self, after: Option<&Place>, most: usize, found: &mut Vec<Place>) -> std::result::Result<(), End> {
        let (mut first, mut last) = self.rows;
        match (after, self.descending) {
            (Some(place), true) => last = last.min(place.row - 1),
            (Some(place), false) => first = first.max(place.row + 1),
            (None, _) => {}
        }
        let enough = found.len().saturating_add(most);
        let mut batch = Batch::new(I::TOGETHER);
        let mut take = |row| {
            found.push(Place { key: String::new(), row });
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

    /// Calls `act` with each row that the index finds between two, in order, until it says no.
    pub fn each_row(
        &self,
        first: i64,
        last: i64,
        descending: bool,
        mut act: impl FnMut(i64) -> std::result::Result<bool, End>,
    ) -> std::result::Result<(), End> {
        if *self.want == Want::Nothing || first > last {
            return Ok(());
        }
        self.index.each_row(self.shelf, self.want, (first, last), descending, self.stop, &mut act)
    }

    /// Looks at the entries of a batch, and passes those on, in their order, that are what these parts of the query mean, until `act` says
    /// no. Whether it did not.
    pub fn look<T: AtRow>(
        &self,
        batch: &mut Batch<T>,
        parts: &[&Node],
        act: &mut dyn FnMut(T) -> std::result::Result<bool, End>,
    ) -> std::result::Result<bool, End> {
        batch.size = (batch.size * 2).min(batch.most);
        let waiting = std::mem::take(&mut batch.waiting);
        if waiting.is_empty() {
            return Ok(true);
        }
        if !parts.is_empty()
            && let Some(why) = self.stop.why()
        {
            return Err(End::Stopped(why));
        }
        let entries = if parts.is_empty() {
            Vec::new()
        } else {
            let rows: Vec<i64> = waiting.iter().map(AtRow::row).collect();
            self.index.load(self.shelf, &rows, parts.iter().any(|part| reads_text(part)))?
        };
        // A regular expression can be stopped within an entry; what is said of that means nothing.
        let stops = parts.iter().any(|part| has_regex(part));
        let mut entries = entries.into_iter().peekable();
        for one in waiting {
            let meant = parts.is_empty()
                || entries.next_if(|(row, _)| *row == one.row()).is_some_and(|(_, entry)| {
                    let subject = Subject::of(&entry).until(self.stop);
                    parts.iter().all(|part| subject.is_meant(part))
                });
            if stops && let Some(why) = self.stop.why() {
                return Err(End::Stopped(why));
            }
            if meant && !act(one)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Along the order of ids, or of an attribute's keys.
    fn by_order(&self, order: Along, after: Option<&Place>, most: usize, found: &mut Vec<Place>) -> std::result::Result<(), End> {
        let (first, last) = self.rows;
        let everything = *self.want == Want::All && self.open.is_empty();
        let narrow = self.node.dates() != Node::All.dates();
        let mut held: Option<HashSet<i64>> = None;
        let (mut after, begun) = (after.cloned(), found.len());
        let enough = found.len().saturating_add(most);
        if !everything || narrow {
            if I::TRIED > 0 && *self.want != Want::Nothing && self.tried(order, after.as_ref(), enough, found)? {
                return Ok(());
            }
            let mut rows = Vec::new();
            self.each_row(first, last, true, |row| {
                rows.push(row);
                Ok(rows.len() <= I::HELD)
            })?;
            let along = self.shelf.entries.saturating_mul(most as u64) / (rows.len() as u64).max(1);
            if rows.len() <= I::HELD && rows.len() as u64 * READ_COST < along {
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
            self.index.along(self.shelf, order, after.as_ref(), self.descending, &mut |place| {
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
            after = found.get(begun..).and_then(<[Place]>::last).cloned().or(after);
        }
    }

    /// Looks at the nearest entries along an order; whether they were enough. If not, nothing was found.
    fn tried(
        &self,
        order: Along,
        after: Option<&Place>,
        enough: usize,
        found: &mut Vec<Place>,
    ) -> std::result::Result<bool, End> {
        let begun = found.len();
        if enough - begun > I::TRIED {
            return Ok(false);
        }
        let mut batch = Batch { waiting: Vec::new(), size: I::TRIED, most: I::TRIED };
        self.index.along(self.shelf, order, after, self.descending, &mut |place| {
            Ok(self.is_passed(&place, after) || !batch.add(place))
        })?;
        self.look(&mut batch, &[self.node], &mut |place| {
            found.push(place);
            Ok(found.len() < enough)
        })?;
        let is_enough = found.len() >= enough;
        if !is_enough {
            found.truncate(begun);
        }
        Ok(is_enough)
    }

    /// Whether a page ended at or after this place. Another book's entry can have the same id as the one it ended with.
    fn is_passed(&self, place: &Place, after: Option<&Place>) -> bool {
        after.is_some_and(|after| if self.descending { place.order() >= after.order() } else { place.order() <= after.order() })
    }

    /// Puts few rows in order.
    fn sorted(
        &self,
        rows: Vec<i64>,
        after: Option<&Place>,
        enough: usize,
        found: &mut Vec<Place>,
    ) -> std::result::Result<(), End> {
        let mut places = Vec::with_capacity(rows.len());
        for rows in rows.chunks(I::TOGETHER) {
            let entries = self.index.load(self.shelf, rows, false)?;
            places.extend(entries.into_iter().map(|(row, entry)| Place { key: self.key(&entry), row }));
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

    fn key(&self, entry: &Entry) -> String {
        match self.sort {
            Sort::Date => String::new(),
            Sort::Id => format!("{:010}", entry.at.id),
            Sort::Attribute(name) => {
                let kind = self.shelf.book.attribute(name).map(|attribute| attribute.kind).unwrap_or_default();
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

/// Words a query may still stand for, so that many parts of words together do not ask too much of an index.
pub struct Budget(Cell<usize>);

impl Budget {
    /// For one query.
    pub fn new() -> Budget {
        Budget(Cell::new(MAX_EXPANSIONS))
    }

    /// Words found, unless they are too many.
    pub fn spend(&self, found: Vec<String>) -> Option<Vec<String>> {
        let left = self.0.get().checked_sub(found.len()).filter(|_| found.len() <= MAX_EXPANSION)?;
        self.0.set(left);
        Some(found)
    }
}
