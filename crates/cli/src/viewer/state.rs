//! The viewer as a value: its contents, and the handling of its input. The actions of keys are in `keys`.

use std::sync::Arc;

use tampu_types::LogRecord;

use crate::{
    output::column::Column,
    pause::Pause,
    viewer::{
        prompt::Prompt,
        rows::{Change, Rows},
        rules::{Filter, Pattern},
    },
};

/// Rows before and after a row that are shown as its surroundings.
pub const AROUND: usize = 100;

/// Actions outside the viewer.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The viewer ends.
    Quit,
    /// The rows in front are written to this file.
    Save(String),
    /// The archive is asked, where there is one.
    Ask(Question),
}

/// A question to the archive.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub kind: Kind,
    /// About which row.
    pub row: Arc<LogRecord>,
}

/// Contents of a second table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Records around a row, unfiltered.
    Context,
    /// The error chain of a row.
    Chain,
}

/// A table of its own before the other: surroundings, or an error chain.
#[derive(Debug)]
pub struct Side {
    pub kind: Kind,
    pub rows: Vec<Arc<LogRecord>>,
    pub cursor: usize,
    pub top: usize,
    /// The row of the question.
    pub hit: Arc<LogRecord>,
    /// True while the archive's answer is missing.
    pub asking: bool,
}

/// Panels over the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    None,
    Help { scroll: u16 },
    Columns { at: usize },
    Rules { at: usize },
}

/// State of the connection to the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Connected, or no hub is needed.
    Up,
    /// Unreachable; the viewer retries.
    Lost,
}

/// State of the viewer.
#[derive(Debug)]
pub struct Viewer {
    pub rows: Rows,
    pub filter: Filter,
    /// All columns in the order of the display, and whether they are shown.
    pub columns: Vec<(Column, bool)>,
    /// Index of the cursor's column among the shown ones.
    pub column: usize,
    pub cursor: usize,
    pub top: usize,
    /// Rows that fit on the screen.
    pub page: usize,
    /// True if the cursor stays on the last row.
    pub follow: bool,
    pub pause: Pause,
    pub search: Option<Pattern>,
    /// True if the search runs backwards.
    pub search_back: bool,
    /// Last inputs: search texts, files.
    pub(super) typed: [String; 2],
    /// True if the last text was an expression, and if case counted.
    pub(super) typed_as: (bool, bool),
    pub prompt: Option<Prompt>,
    pub panel: Panel,
    /// Scroll position of the details of the row under the cursor, if they are shown.
    pub detail: Option<u16>,
    pub side: Option<Side>,
    /// Said once, until the next key.
    pub message: String,
    /// Description of the rows' source.
    pub origin: String,
    pub link: Link,
    /// True while rows may still arrive.
    pub is_live: bool,
    /// True if there is an archive to ask.
    pub has_archive: bool,
}

impl Viewer {
    /// Makes a viewer of rows of a source, which keeps at most so many.
    pub fn new(origin: String, bound: usize, is_live: bool) -> Viewer {
        let shown = [Column::Time, Column::Level, Column::SourceObject, Column::Message];
        Viewer {
            rows: Rows::new(bound),
            filter: Filter::default(),
            columns: Column::SHOWN.iter().map(|column| (*column, shown.contains(column))).collect(),
            column: 2,
            cursor: 0,
            top: 0,
            page: 1,
            follow: is_live,
            pause: Pause::new(bound),
            search: None,
            search_back: false,
            typed: Default::default(),
            typed_as: (false, false),
            prompt: None,
            panel: Panel::None,
            detail: None,
            side: None,
            message: String::new(),
            origin,
            link: Link::Up,
            is_live,
            has_archive: false,
        }
    }

    /// The columns shown, in their order.
    pub fn shown_columns(&self) -> Vec<Column> {
        self.columns.iter().filter(|(_, shown)| *shown).map(|(column, _)| *column).collect()
    }

    /// The row under the cursor, of the table in front.
    pub fn current(&self) -> Option<&Arc<LogRecord>> {
        match &self.side {
            Some(side) => side.rows.get(side.cursor),
            None => self.rows.at(self.cursor).map(|(_, row)| row),
        }
    }

    /// The rows of the table in front, all that it shows.
    pub fn in_front(&self) -> Vec<Arc<LogRecord>> {
        match &self.side {
            Some(side) => side.rows.clone(),
            None => self.rows.all_shown().cloned().collect(),
        }
    }

    /// Adds new records.
    pub fn take(&mut self, records: Vec<LogRecord>) {
        for record in records {
            if self.pause.is_on() {
                self.pause.keep(record);
            } else {
                self.add(record);
            }
        }
        self.scroll();
    }

    pub(super) fn add(&mut self, record: LogRecord) {
        let wanted = self.filter.shows(&record);
        let Change { removed, added } = self.rows.push(record, wanted);
        if removed.is_some_and(|place| place < self.cursor) {
            self.cursor -= 1;
            self.top = self.top.saturating_sub(1);
        }
        if added.is_some_and(|place| place <= self.cursor && self.rows.shown() > 1) {
            self.cursor += 1;
            self.top += 1;
        }
        if self.follow {
            self.cursor = self.rows.shown().saturating_sub(1);
        }
    }

    /// Handles a reply of the archive.
    pub fn answered(&mut self, kind: Kind, row: &Arc<LogRecord>, records: Vec<LogRecord>) {
        let Some(side) = self.side.as_mut().filter(|side| side.kind == kind && is_same(&side.hit, row)) else { return };
        side.asking = false;
        for record in records {
            let place = side.rows.partition_point(|shown| order(kind, shown) < order(kind, &record));
            let mut equals = side.rows[place..].iter().take_while(|shown| order(kind, shown) == order(kind, &record));
            if !equals.any(|shown| is_same(shown, &record)) {
                side.rows.insert(place, Arc::new(record));
                side.cursor += usize::from(place <= side.cursor && side.rows.len() > 1);
            }
        }
        self.scroll();
    }

    /// Takes how the hub is now.
    pub fn linked(&mut self, link: Link) {
        if self.link != link {
            self.link = link;
            self.say(match link {
                Link::Up => "the hub is back",
                Link::Lost => "the hub cannot be reached: it is tried again",
            });
        }
    }

    /// Says something until the next key.
    pub fn say(&mut self, message: impl Into<String>) {
        self.message = message.into();
    }

    /// Takes the number of rows that fit on the screen.
    pub fn resize(&mut self, page: usize) {
        self.page = page.max(1);
        self.scroll();
    }

    /// Keeps the cursor on a row, and the row on the screen.
    pub(super) fn scroll(&mut self) {
        let page = self.page;
        let within = |cursor: &mut usize, top: &mut usize, rows: usize| {
            *cursor = (*cursor).min(rows.saturating_sub(1));
            *top = (*top).min(*cursor).max((*cursor + 1).saturating_sub(page)).min(rows.saturating_sub(1));
        };
        within(&mut self.cursor, &mut self.top, self.rows.shown());
        if let Some(side) = &mut self.side {
            within(&mut side.cursor, &mut side.top, side.rows.len());
        }
    }

    /// Shows the rows that pass the filter; the cursor stays on its row, or moves to the nearest.
    pub(super) fn filter_anew(&mut self) {
        let number = self.rows.at(self.cursor).map(|(number, _)| number);
        let filter = &self.filter;
        self.rows.show(|row| filter.shows(row));
        self.stay_on(number);
    }

    /// Puts the cursor on this row again, wherever it stands now.
    pub(super) fn stay_on(&mut self, number: Option<u64>) {
        self.cursor = match number {
            Some(number) if !self.follow => self.rows.place_of(number),
            _ => self.rows.shown().saturating_sub(1),
        };
        if number.is_none() && !self.follow {
            self.cursor = 0;
        }
        self.top = self.cursor.saturating_sub(self.page / 2);
        self.scroll();
    }

    /// Opens a table beside: from the kept records, and from the archive if there is one.
    pub(super) fn open_side(&mut self, kind: Kind) -> Option<Effect> {
        let Some((number, hit)) = self.rows.at(self.cursor).map(|(number, row)| (number, row.clone())) else {
            self.say("there is no row");
            return None;
        };
        if kind == Kind::Chain && hit.stack_id.is_empty() {
            self.say("this row belongs to no error chain: it has no StackId");
            return None;
        }
        let mut rows: Vec<Arc<LogRecord>> = match kind {
            Kind::Chain => self.rows.all_kept().map(|(_, row)| row).filter(|row| row.stack_id == hit.stack_id).cloned().collect(),
            Kind::Context => {
                let near = |other: u64| other.abs_diff(number) <= AROUND as u64;
                self.rows.all_kept().filter(|(other, _)| near(*other)).map(|(_, row)| row.clone()).collect()
            }
        };
        rows.sort_by_key(|row| order(kind, row));
        let cursor = rows.iter().position(|row| Arc::ptr_eq(row, &hit)).unwrap_or(0);
        let top = cursor.saturating_sub(self.page / 2);
        self.side = Some(Side { kind, rows, cursor, top, hit: hit.clone(), asking: self.has_archive });
        self.scroll();
        self.has_archive.then_some(Effect::Ask(Question { kind, row: hit }))
    }
}

/// The order of a table beside: a chain's by its levels, the outermost first; surroundings by time.
fn order(kind: Kind, row: &LogRecord) -> (Option<i32>, i64) {
    (row.stack_level.filter(|_| kind == Kind::Chain), row.time.0)
}

/// Returns true if two rows are one record: by their ids, or without ids by their content.
pub fn is_same(one: &LogRecord, other: &LogRecord) -> bool {
    match (one.id, other.id) {
        (Some(one), Some(other)) => one == other,
        _ => one.time == other.time && one.message == other.message && one.source_object == other.source_object,
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Incarnation, Level, RecordId, Time};

    use super::*;

    fn row(number: u64) -> LogRecord {
        LogRecord {
            id: Some(RecordId { incarnation: Incarnation::default(), ring: 0, number }),
            time: Time(number as i64),
            stack_id: "chain".into(),
            stack_level: Some(10 - number as i32),
            ..LogRecord::new(Level::Error, format!("row {number}"))
        }
    }

    #[test]
    fn what_the_archive_answers_is_put_between_what_was_here() {
        let mut viewer = Viewer::new(String::new(), 100, true);
        viewer.has_archive = true;
        viewer.resize(10);
        viewer.take(vec![row(2), row(5)]);
        let effect = viewer.open_side(Kind::Chain);
        let Some(Effect::Ask(question)) = effect else { panic!("{effect:?}") };
        assert_eq!((question.kind, question.row.message.as_str()), (Kind::Chain, "row 5"));
        viewer.answered(Kind::Context, &question.row, vec![row(9)]);
        viewer.answered(Kind::Chain, &question.row, vec![row(1), row(2), row(3), row(5)]);
        let side = viewer.side.as_ref().unwrap();
        let said: Vec<&str> = side.rows.iter().map(|row| row.message.as_str()).collect();
        assert_eq!(said, ["row 5", "row 3", "row 2", "row 1"], "the outermost first");
        assert!(!side.asking);
        assert_eq!(viewer.current().unwrap().message, "row 5");
    }
}
