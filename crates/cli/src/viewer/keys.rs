//! Actions of keys. [`HELP`] lists them for people; a test checks that every key in it does something.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tampu_archive::query::Mode;
use tampu_types::{Level, LogRecord};

use crate::{
    output::column::Column,
    viewer::{
        prompt::{Prompt, Purpose, Typed},
        rows::Sort,
        rules::{About, Filter, Pattern, Rule},
        state::{Effect, Kind, Panel, Viewer},
    },
};

/// The keys, as the help shows them.
pub const HELP: &[(&str, &str)] = &[
    ("↑ ↓ j k  PgUp PgDn", "move; on the last row the view follows the log"),
    ("g G  Home End", "first row, last row"),
    ("← → h l", "column under the cursor"),
    ("space", "pause and continue; new records wait and are counted"),
    ("Enter", "all of the row: fields, data; [ ] scroll it"),
    ("/ \\", "search on, search back; ^R regular expression, ^T case"),
    ("n N", "next match, the other way"),
    ("e E", "next, previous row of level Error or above"),
    ("f x", "show only, leave out rows with the marked value"),
    ("i o", "show only, leave out rows with a text"),
    ("+ -", "least level up, down"),
    ("m", "audience mode: engineer, operator, scilog"),
    ("F", "list of filters: space on and off, ! negates, d deletes"),
    ("u U", "undo the last filter, all of them"),
    ("c", "context: all records around the row, unfiltered"),
    ("t", "error chain of the row, by its StackId"),
    ("s", "sort by the column: up, down, as they came"),
    ("v", "columns: space shows and hides, J K move"),
    ("w", "write the rows shown to a file"),
    ("C", "clear"),
    ("?", "this help"),
    ("Esc", "close what is open"),
    ("q  Ctrl-C", "quit"),
];

impl Viewer {
    /// Handles a key; returns the requested action.
    pub fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        if key.modifiers.contains(KeyModifiers::ALT) {
            // A terminal cannot distinguish Alt from an Esc pressed just before; here it is always the latter.
            self.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
            return self.key(KeyEvent::new(key.code, key.modifiers - KeyModifiers::ALT));
        }
        self.message.clear();
        if let Some(prompt) = &mut self.prompt {
            return match prompt.key(key) {
                Typed::More => None,
                Typed::Left => {
                    self.prompt = None;
                    None
                }
                Typed::Entered => self.entered(),
            };
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Effect::Quit),
                KeyCode::Char('d') => self.step(self.page as isize / 2),
                KeyCode::Char('u') => self.step(-(self.page as isize) / 2),
                _ => {}
            }
            return None;
        }
        match self.panel {
            Panel::None => self.key_in_table(key.code),
            Panel::Help { scroll } => {
                self.key_in_help(key.code, scroll);
                None
            }
            Panel::Columns { at } => {
                self.key_in_columns(key.code, at);
                None
            }
            Panel::Rules { at } => {
                self.key_in_rules(key.code, at);
                None
            }
        }
    }

    fn key_in_table(&mut self, code: KeyCode) -> Option<Effect> {
        if self.moves(code) {
            return None;
        }
        match code {
            KeyCode::Char('?') | KeyCode::F(1) => self.panel = Panel::Help { scroll: 0 },
            KeyCode::Enter => self.detail = if self.detail.is_some() { None } else { Some(0) },
            KeyCode::Char(']') => self.detail = self.detail.map(|scroll| scroll.saturating_add(1)),
            KeyCode::Char('[') => self.detail = self.detail.map(|scroll| scroll.saturating_sub(1)),
            KeyCode::Char('w') => self.ask(Purpose::Save),
            KeyCode::Esc if self.detail.is_some() => self.detail = None,
            KeyCode::Esc if self.side.is_some() => self.side = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Char('q') if self.side.is_some() => self.side = None,
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Char('v') => self.panel = Panel::Columns { at: 0 },
            // The remaining keys are for the table of all rows.
            _ if self.side.is_some() => self.say("Esc leads back to all rows"),
            KeyCode::Char(' ') => self.pause_or_go_on(),
            KeyCode::Char('/') => self.ask(Purpose::SearchForward),
            KeyCode::Char('\\') => self.ask(Purpose::SearchBack),
            KeyCode::Char('n') => self.search_on(self.search_back),
            KeyCode::Char('N') => self.search_on(!self.search_back),
            KeyCode::Char('e') => self.find("row of level Error or above", false, |row| row.level >= Level::Error),
            KeyCode::Char('E') => self.find("row of level Error or above", true, |row| row.level >= Level::Error),
            KeyCode::Char('f') => self.by_cell(true),
            KeyCode::Char('x') => self.by_cell(false),
            KeyCode::Char('i') => self.ask(Purpose::Include),
            KeyCode::Char('o') => self.ask(Purpose::Exclude),
            KeyCode::Char('+' | '=') => self.least_level(1),
            KeyCode::Char('-') => self.least_level(-1),
            KeyCode::Char('m') => self.next_mode(),
            KeyCode::Char('F') => self.panel = Panel::Rules { at: 0 },
            KeyCode::Char('u') => match self.filter.rules.pop() {
                Some(rule) => {
                    self.filter_anew();
                    self.say(format!("undone: {rule}"));
                }
                None => self.say("there is no filter to undo"),
            },
            KeyCode::Char('U') => {
                self.filter = Filter::default();
                self.filter_anew();
                self.say("all filters removed");
            }
            KeyCode::Char('c') => return self.open_side(Kind::Context),
            KeyCode::Char('t') => return self.open_side(Kind::Chain),
            KeyCode::Char('s') => self.sort(),
            KeyCode::Char('C') => {
                self.rows.clear();
                self.follow = self.is_live;
                self.scroll();
                self.say("cleared; the archive keeps what it has");
            }
            _ => {}
        }
        None
    }

    /// Moves the cursor, if the key is one that does.
    fn moves(&mut self, code: KeyCode) -> bool {
        let page = self.page as isize;
        let columns = self.columns.iter().filter(|(_, shown)| *shown).count();
        match code {
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown => self.step(page),
            KeyCode::PageUp => self.step(-page),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Left | KeyCode::Char('h') => self.column = self.column.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') => self.column = (self.column + 1).min(columns.saturating_sub(1)),
            _ => return false,
        }
        true
    }

    fn step(&mut self, by: isize) {
        let (cursor, rows) = match &mut self.side {
            Some(side) => (&mut side.cursor, side.rows.len()),
            None => (&mut self.cursor, self.rows.shown()),
        };
        *cursor = cursor.saturating_add_signed(by).min(rows.saturating_sub(1));
        if self.side.is_none() {
            self.follow = self.is_live && self.cursor + 1 >= self.rows.shown();
        }
        self.detail = self.detail.map(|_| 0);
        self.scroll();
    }

    fn pause_or_go_on(&mut self) {
        if !self.is_live {
            return self.say("nothing more comes: there is nothing to pause");
        }
        if !self.pause.is_on() {
            return self.pause.begin();
        }
        let (waiting, dropped) = self.pause.end();
        let came = waiting.len();
        waiting.into_iter().for_each(|record| self.add(record));
        self.scroll();
        let lost = if dropped > 0 { format!(", {dropped} older ones had no room (--keep)") } else { String::new() };
        self.say(format!("{came} came while paused{lost}"));
    }

    fn ask(&mut self, purpose: Purpose) {
        let earlier = self.typed[usize::from(!purpose.is_pattern())].clone();
        let (is_regex, with_case) = self.typed_as;
        self.prompt = Some(Prompt::new(purpose, earlier, is_regex, with_case));
    }

    fn entered(&mut self) -> Option<Effect> {
        let prompt = self.prompt.take()?;
        let searches = matches!(prompt.purpose, Purpose::SearchForward | Purpose::SearchBack);
        if prompt.text.is_empty() {
            // As in every pager, an empty search repeats the last one.
            if searches {
                self.search_back = prompt.purpose == Purpose::SearchBack;
                self.search_on(self.search_back);
            }
            return None;
        }
        self.typed[usize::from(!prompt.purpose.is_pattern())].clone_from(&prompt.text);
        if prompt.purpose == Purpose::Save {
            return Some(Effect::Save(prompt.text));
        }
        self.typed_as = (prompt.is_regex, prompt.with_case);
        match Pattern::new(&prompt.text, prompt.is_regex, prompt.with_case) {
            Err(why) => {
                self.say(why);
                self.prompt = Some(prompt);
            }
            Ok(pattern) if searches => {
                self.search = Some(pattern);
                self.search_back = prompt.purpose == Purpose::SearchBack;
                self.search_on(self.search_back);
            }
            Ok(pattern) => self.add_rule(About::Text(pattern), prompt.purpose == Purpose::Include),
        }
        None
    }

    fn search_on(&mut self, back: bool) {
        match self.search.clone() {
            Some(pattern) => self.find(&pattern.to_string(), back, |row| pattern.is_in(row)),
            None => self.say("nothing has been searched for: / searches"),
        }
    }

    /// Moves the cursor to the next matching row, over the end of the list if need be, and shows the number of the
    /// match.
    fn find(&mut self, what: &str, back: bool, wanted: impl Fn(&LogRecord) -> bool) {
        let is_wanted = |place: &usize| self.rows.at(*place).is_some_and(|(_, row)| wanted(row));
        let matches: Vec<usize> = (0..self.rows.shown()).filter(is_wanted).collect();
        let here = matches.partition_point(|place| *place < self.cursor);
        let after = here + usize::from(matches.get(here) == Some(&self.cursor));
        let (next, wrapped) = if back {
            here.checked_sub(1).map_or((matches.len().wrapping_sub(1), ", from the bottom"), |index| (index, ""))
        } else if after < matches.len() {
            (after, "")
        } else {
            (0, ", from the top")
        };
        match matches.get(next) {
            Some(place) if *place != self.cursor => {
                self.cursor = *place;
                self.follow = false;
                self.detail = self.detail.map(|_| 0);
                self.scroll();
                self.say(format!("match {} of {}{wrapped}", next + 1, matches.len()));
            }
            Some(_) => self.say(format!("no other {what}")),
            None => self.say(format!("no {what}")),
        }
    }

    fn by_cell(&mut self, only: bool) {
        let Some(column) = self.shown_columns().get(self.column).copied() else { return };
        if column == Column::Time {
            return self.say("no filter by time here: --since and --until choose the time");
        }
        let Some(value) = self.current().map(|row| column.text(row).into_owned()) else {
            return self.say("there is no row");
        };
        self.add_rule(About::Cell(column, value), only);
    }

    fn add_rule(&mut self, about: About, only: bool) {
        self.filter.rules.push(Rule { about, only, on: true });
        self.filter_anew();
    }

    fn least_level(&mut self, by: isize) {
        let place = self.filter.level.ordinal().saturating_add_signed(by).min(Level::ALL.len() - 1);
        self.filter.level = Level::ALL[place];
        self.filter_anew();
    }

    fn next_mode(&mut self) {
        let place = Mode::ALL.iter().position(|mode| *mode == self.filter.mode).unwrap_or(0);
        self.filter.mode = Mode::ALL[(place + 1) % Mode::ALL.len()];
        self.filter_anew();
        self.say(format!("mode {}", self.filter.mode));
    }

    fn sort(&mut self) {
        let Some(column) = self.shown_columns().get(self.column).copied() else { return };
        let sort = match self.rows.sort() {
            Some(sort) if sort.column == column && sort.descending => None,
            Some(sort) if sort.column == column => Some(Sort { column, descending: true }),
            _ => Some(Sort { column, descending: false }),
        };
        let number = self.rows.at(self.cursor).map(|(number, _)| number);
        self.rows.sort_by(sort);
        self.stay_on(number);
    }

    fn key_in_help(&mut self, code: KeyCode, scroll: u16) {
        let scroll = match code {
            KeyCode::Down | KeyCode::Char('j') => scroll.saturating_add(1).min(HELP.len() as u16),
            KeyCode::Up | KeyCode::Char('k') => scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => scroll.saturating_add(10).min(HELP.len() as u16),
            KeyCode::PageUp => scroll.saturating_sub(10),
            _ => return self.panel = Panel::None,
        };
        self.panel = Panel::Help { scroll };
    }

    fn key_in_columns(&mut self, code: KeyCode, at: usize) {
        let last = self.columns.len() - 1;
        let mut next = at;
        match code {
            KeyCode::Down | KeyCode::Char('j') => next = (at + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => next = at.saturating_sub(1),
            KeyCode::Char('J') if at < last => {
                self.columns.swap(at, at + 1);
                next = at + 1;
            }
            KeyCode::Char('K') if at > 0 => {
                self.columns.swap(at, at - 1);
                next = at - 1;
            }
            KeyCode::Char(' ') => {
                self.columns[at].1 = !self.columns[at].1;
                if self.shown_columns().is_empty() {
                    self.columns[at].1 = true;
                    self.say("one column has to stay");
                }
            }
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | 'v') => self.panel = Panel::None,
            _ => {}
        }
        self.column = self.column.min(self.shown_columns().len().saturating_sub(1));
        if self.panel != Panel::None {
            self.panel = Panel::Columns { at: next };
        }
    }

    fn key_in_rules(&mut self, code: KeyCode, at: usize) {
        let last = self.filter.rules.len().saturating_sub(1);
        let mut next = at;
        let changes = |viewer: &mut Viewer, change: fn(&mut Rule)| {
            if let Some(rule) = viewer.filter.rules.get_mut(at) {
                change(rule);
                viewer.filter_anew();
            }
        };
        match code {
            KeyCode::Down | KeyCode::Char('j') => next = (at + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => next = at.saturating_sub(1),
            KeyCode::Char(' ') => changes(self, |rule| rule.on = !rule.on),
            KeyCode::Char('!') => changes(self, |rule| rule.only = !rule.only),
            KeyCode::Char('d') | KeyCode::Delete if at < self.filter.rules.len() => {
                self.filter.rules.remove(at);
                self.filter_anew();
                next = at.min(self.filter.rules.len().saturating_sub(1));
            }
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | 'F') => self.panel = Panel::None,
            _ => {}
        }
        if self.panel != Panel::None {
            self.panel = Panel::Rules { at: next };
        }
    }
}
