//! Filters of rows, and search patterns.
//!
//! A row is shown if it has the level or a more severe one, has the audience mode, and passes every active rule. Rules
//! examine a row as it is shown, unlike the query, which selects the records for the viewer.

use std::fmt;

use regex::{Regex, RegexBuilder};
use tampu_archive::query::Mode;
use tampu_types::{Level, LogRecord};

use crate::output::column::Column;

/// Columns in which a text is looked for: all but the time and the ids.
const TEXTS: [Column; 16] = [
    Column::Message,
    Column::SourceObject,
    Column::Data,
    Column::Logger,
    Column::Process,
    Column::Host,
    Column::File,
    Column::Routine,
    Column::Thread,
    Column::Context,
    Column::Audiences,
    Column::Array,
    Column::Antenna,
    Column::StackId,
    Column::RunId,
    Column::Uri,
];

/// A pattern for a search in the texts of a row.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    is_regex: bool,
    expression: Regex,
}

impl Pattern {
    /// A text, or a regular expression; with case or without.
    pub fn new(text: &str, is_regex: bool, with_case: bool) -> Result<Pattern, String> {
        let source = if is_regex { text.to_owned() } else { regex::escape(text) };
        let built = RegexBuilder::new(&source).case_insensitive(!with_case).size_limit(4 << 20).build();
        let expression = built.map_err(|error| {
            format!("invalid regular expression '{text}': {}", error.to_string().lines().last().unwrap_or_default().trim())
        })?;
        Ok(Pattern { text: text.to_owned(), is_regex, expression })
    }

    /// Returns true if a text of the row matches.
    pub fn is_in(&self, row: &LogRecord) -> bool {
        TEXTS.iter().any(|column| self.expression.is_match(&column.text(row)))
    }

    /// Returns the matches in a text.
    pub fn matches<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
        self.expression.find_iter(text).filter(|found| !found.is_empty()).map(|found| (found.start(), found.end()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_regex { write!(f, "/{}/", self.text) } else { write!(f, "'{}'", self.text) }
    }
}

/// Subject of a rule.
#[derive(Debug, Clone)]
pub enum About {
    /// One of the texts.
    Text(Pattern),
    /// The complete text of one column.
    Cell(Column, String),
}

/// A rule of a filter.
#[derive(Debug, Clone)]
pub struct Rule {
    pub about: About,
    /// True to show only matching rows, false to hide them.
    pub only: bool,
    /// True if the rule is active.
    pub on: bool,
}

impl Rule {
    fn lets_through(&self, row: &LogRecord) -> bool {
        let is = match &self.about {
            About::Text(pattern) => pattern.is_in(row),
            About::Cell(column, value) => column.text(row) == value.as_str(),
        };
        !self.on || is == self.only
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.only { '+' } else { '-' };
        match &self.about {
            About::Text(pattern) => write!(f, "{sign}{pattern}"),
            About::Cell(column, value) => write!(f, "{sign}{}={value}", column.title()),
        }
    }
}

/// Conditions for shown rows.
#[derive(Debug, Clone)]
pub struct Filter {
    pub level: Level,
    pub mode: Mode,
    pub rules: Vec<Rule>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter { level: Level::Trace, mode: Mode::Engineer, rules: Vec::new() }
    }
}

impl Filter {
    /// Returns true if this row is shown.
    pub fn shows(&self, row: &LogRecord) -> bool {
        row.level >= self.level
            && self.mode.shows(row.level, row.audiences.iter().map(String::as_str))
            && self.rules.iter().all(|rule| rule.lets_through(row))
    }

    /// Describes the active conditions; empty if everything is shown.
    pub fn text(&self) -> String {
        let level = (self.level > Level::Trace).then(|| format!("{} and above", self.level));
        let mode = (self.mode != Mode::Engineer).then(|| format!("mode {}", self.mode));
        let rules = self.rules.iter().filter(|rule| rule.on).map(Rule::to_string);
        level.into_iter().chain(mode).chain(rules).collect::<Vec<_>>().join("  ")
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Datum;

    use super::*;

    #[test]
    fn rules_hold_together_and_can_be_turned_round_and_off() {
        let mut row = LogRecord::new(Level::Warning, "No lock");
        row.source_object = "CONTROL/DV01".into();
        row.data.push(Datum::new("axis", "azimuth"));
        let rule = |about, only| Rule { about, only, on: true };
        let text = |text: &str| About::Text(Pattern::new(text, false, false).unwrap());
        let mut filter = Filter::default();
        assert!(filter.shows(&row) && filter.text().is_empty());
        for (about, only, shown) in [
            (text("LOCK"), true, true),
            (text("lock"), false, false),
            (text("axis=azi"), true, true),
            (About::Text(Pattern::new("^no l", true, true).unwrap()), true, false),
            (About::Text(Pattern::new("^No l", true, true).unwrap()), true, true),
            (About::Cell(Column::SourceObject, "CONTROL/DV01".into()), true, true),
            (About::Cell(Column::SourceObject, "CONTROL/DV0".into()), true, false),
            (About::Cell(Column::Level, "Warning".into()), false, false),
        ] {
            filter.rules = vec![rule(text("lock"), true), rule(about, only)];
            assert_eq!(filter.shows(&row), shown, "{}", filter.text());
            filter.rules[1].on = false;
            assert!(filter.shows(&row));
        }
        filter.rules[1].on = true;
        filter.level = Level::Error;
        filter.mode = Mode::Operator;
        assert!(!filter.shows(&row));
        assert_eq!(filter.text(), "Error and above  mode operator  +'lock'  -Level=Warning");
        assert!(Pattern::new("a(", true, false).unwrap_err().contains("'a('"));
    }
}
