//! What somebody wants to find: a [`Query`] as people and programs write it, and its compiled form that looks at records
//! where they lie.
//!
//! Everything a query says must hold (and); several values for one field, several levels and several audiences are
//! alternatives (or). Names are compared without case and may hold `*` and `?`. Words and text are compared without case; a
//! regular expression says for itself how it compares. What one of the conditions in `without` says is left out.
//!
//! ```
//! use tampu_log::query::{Field, Query};
//! use tampu_types::Level;
//!
//! let mut query: Query = serde_json::from_str(r#"{"min_level": "Warning", "fields": {"process": ["CONTROL/*"]}, "limit": 100}"#)?;
//! query.newest_first = true;
//! assert_eq!(query.min_level, Some(Level::Warning));
//! assert_eq!(query.fields[&Field::Process], ["CONTROL/*"]);
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::collections::BTreeMap;

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use tampu_types::{
    Incarnation, Level, LogRecord, RecordId, Time,
    log_batch::{LogBatchView, OriginView, RecordView, encode_records},
};

pub use self::choice::{BadMode, Condition, Mode};

mod choice;

/// What somebody wants to find. The default finds everything, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// Records of this time and later, ns UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Records before this time, ns UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Records of this level and graver ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_level: Option<Level>,
    /// Records of these levels; with `min_level`, these as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// Records for one of these audiences, and records for everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// Records whose fields match one of the names or patterns given for each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<Field, Vec<String>>,
    /// Records with all these words, each whole, in the message or a value beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Records with this text in the message or a value beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Records whose message, or a value beside it, matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Records of which none of these is true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Condition>,
    /// What is shown in this audience mode.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// The latest first.
    pub newest_first: bool,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Only what follows this place in the query's order: where an earlier answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Who asks: when this life leaves the bus, a collector ends the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<Incarnation>,
}

fn is_default(mode: &Mode) -> bool {
    *mode == Mode::default()
}

/// A place in an answer: the time and id of a record. Answers are ordered by both. Records without an id that share a time
/// share a place: what follows one of them follows them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor {
    /// The record's time.
    pub time: Time,
    /// Its id; all zero where it has none.
    pub id: RecordId,
}

impl Cursor {
    /// The place of this record.
    pub fn of(record: &LogRecord) -> Cursor {
        Cursor { time: record.time, id: record.id.unwrap_or_default() }
    }
}

/// Fields a query can ask for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Each is the field of LogRecord of the same name.
pub enum Field {
    Logger,
    File,
    Routine,
    Host,
    Process,
    Thread,
    Context,
    SourceObject,
    Array,
    Antenna,
    RunId,
    StackId,
    LogId,
    Uri,
}

impl Field {
    /// All of them.
    pub const ALL: [Field; 14] = [
        Field::Logger,
        Field::File,
        Field::Routine,
        Field::Host,
        Field::Process,
        Field::Thread,
        Field::Context,
        Field::SourceObject,
        Field::Array,
        Field::Antenna,
        Field::RunId,
        Field::StackId,
        Field::LogId,
        Field::Uri,
    ];

    /// The field's name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Logger => "logger",
            Field::File => "file",
            Field::Routine => "routine",
            Field::Host => "host",
            Field::Process => "process",
            Field::Thread => "thread",
            Field::Context => "context",
            Field::SourceObject => "source_object",
            Field::Array => "array",
            Field::Antenna => "antenna",
            Field::RunId => "run_id",
            Field::StackId => "stack_id",
            Field::LogId => "log_id",
            Field::Uri => "uri",
        }
    }

    /// The field of this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Its value in an origin; `None` where each record has its own.
    pub(crate) fn of_origin<'v>(self, origin: &OriginView<'v>) -> Option<&'v str> {
        Some(match self {
            Field::Logger => origin.logger(),
            Field::File => origin.file(),
            Field::Routine => origin.routine(),
            Field::Host => origin.host(),
            Field::Process => origin.process(),
            Field::Thread => origin.thread(),
            Field::Context => origin.context(),
            Field::SourceObject => origin.source_object(),
            Field::Array => origin.array(),
            Field::Antenna => origin.antenna(),
            Field::RunId => origin.run_id(),
            Field::Uri => origin.uri(),
            Field::StackId | Field::LogId => return None,
        })
    }

    /// Its value in a record.
    pub(crate) fn of<'v>(self, record: &RecordView<'v>) -> &'v str {
        match self {
            Field::StackId => record.stack_id(),
            Field::LogId => record.log_id(),
            other => other.of_origin(&record.origin()).unwrap_or_default(),
        }
    }
}

/// Why a query cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// The regular expression is none.
    #[error("the regular expression '{pattern}': {why}")]
    Regex {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is no query at all.
    #[error("no query can be read: {0}")]
    Json(String),
}

impl Query {
    /// Reads a query from JSON; an empty text finds everything.
    pub fn from_json(json: &[u8]) -> Result<Query, BadQuery> {
        if json.iter().all(u8::is_ascii_whitespace) {
            return Ok(Query::default());
        }
        serde_json::from_slice(json).map_err(|error| BadQuery::Json(error.to_string()))
    }

    /// The levels a record found can have.
    pub fn wanted_levels(&self) -> Vec<Level> {
        let all = self.min_level.is_none() && self.levels.is_empty();
        let wanted = |level: &Level| all || self.min_level.is_some_and(|min| *level >= min) || self.levels.contains(level);
        Level::ALL.into_iter().filter(|level| wanted(level) && self.mode.may_show(*level)).collect()
    }

    /// Makes ready to look at records.
    pub fn compile(&self) -> Result<Matcher, BadQuery> {
        let mut texts = Vec::new();
        for word in self.words.iter().flat_map(|words| words.split_whitespace()) {
            let escaped = regex::escape(word);
            // A word that begins or ends with a sign (as `-3` or `50%`) is whole where that sign is.
            let edge = |character: Option<char>| if character.is_some_and(char::is_alphanumeric) { r"\b" } else { "" };
            let whole = format!("{}{escaped}{}", edge(word.chars().next()), edge(word.chars().last()));
            texts.push(Text {
                exact: expression(&whole, true)?,
                quick: Some(expression(&escaped, true)?),
                word: Some(word.to_owned()),
            });
        }
        if let Some(text) = self.text.as_ref().filter(|text| !text.is_empty()) {
            let exact = expression(&regex::escape(text), true)?;
            texts.push(Text { quick: Some(exact.clone()), exact, word: None });
        }
        if let Some(pattern) = &self.regex {
            let exact = expression(pattern, false)?;
            let quick = !looks_around(pattern) && !exact.is_match(b"");
            texts.push(Text { quick: quick.then(|| exact.clone()), exact, word: None });
        }
        let without = self.without.iter().filter(|condition| **condition != Condition::default());
        let without: Result<Vec<Matcher>, BadQuery> =
            without.map(|condition| Ok(Matcher { named_only: true, ..condition.as_query().compile()? })).collect();
        Ok(Matcher {
            since: self.since.unwrap_or(Time(i64::MIN)),
            until: self.until,
            level_mask: self.wanted_levels().iter().fold(0, |mask, level| mask | 1 << level.ordinal()),
            without: without?,
            mode: self.mode,
            named_only: false,
            audiences: self.audiences.iter().map(|audience| audience.to_lowercase()).collect(),
            fields: self.fields.iter().map(|(&field, patterns)| (field, lower(patterns))).collect(),
            texts,
        })
    }
}

fn lower(patterns: &[String]) -> Vec<Vec<char>> {
    patterns.iter().map(|pattern| pattern.chars().flat_map(char::to_lowercase).collect()).collect()
}

fn expression(pattern: &str, without_case: bool) -> Result<Regex, BadQuery> {
    let build = RegexBuilder::new(pattern).case_insensitive(without_case).size_limit(4 << 20).build();
    build.map_err(|error| {
        let why = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
        BadQuery::Regex { pattern: pattern.to_owned(), why }
    })
}

/// A query made ready.
#[derive(Debug)]
pub struct Matcher {
    since: Time,
    until: Option<Time>,
    level_mask: u16,
    audiences: Vec<String>,
    fields: Vec<(Field, Vec<Vec<char>>)>,
    texts: Vec<Text>,
    without: Vec<Matcher>,
    mode: Mode,
    /// Whether what is for everybody is not meant by a list of audiences.
    named_only: bool,
}

/// An expression that looks around its match, or is found in nothing: each text has to be looked at by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoQuickWay;

/// Something to look for in a record's texts.
#[derive(Debug)]
pub(crate) struct Text {
    exact: Regex,
    /// What is found in a whole batch's bytes wherever `exact` is found in one of its texts; fast on bytes that are no text.
    quick: Option<Regex>,
    /// The whole word that it is.
    word: Option<String>,
}

impl Text {
    /// Whether it is found in this text.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.exact.is_match(text)
    }

    /// Where, in texts one behind the other, it may next be found from a place on: within the first text in which it is, or
    /// before. `Err`: that cannot be told without the texts' ends.
    pub(crate) fn next_place(&self, joined: &[u8], from: usize) -> Result<Option<usize>, NoQuickWay> {
        let quick = self.quick.as_ref().ok_or(NoQuickWay)?;
        Ok(quick.find_at(joined, from).map(|found| found.start()))
    }

    /// The whole word that is looked for.
    pub(crate) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }
}

impl Matcher {
    /// Bit n: records of the level with ordinal n are wanted.
    pub(crate) fn levels(&self) -> u16 {
        self.level_mask
    }

    /// Whether records of these times can be wanted.
    pub(crate) fn meets(&self, earliest: Time, latest: Time) -> bool {
        latest >= self.since && self.until.is_none_or(|until| earliest < until)
    }

    /// Whether every record between these times is of a wanted time.
    pub(crate) fn covers(&self, earliest: Time, latest: Time) -> bool {
        earliest >= self.since && self.until.is_none_or(|until| latest < until)
    }

    /// Whether a record of this time can be wanted.
    pub(crate) fn wants_time(&self, time: Time) -> bool {
        self.covers(time, time)
    }

    /// The fields asked for.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field> {
        self.fields.iter().map(|(field, _)| *field)
    }

    /// Whether records with this value of this field can be wanted.
    pub(crate) fn wants_field(&self, field: Field, value: &str) -> bool {
        self.fields
            .iter()
            .filter(|(asked, _)| *asked == field)
            .all(|(_, patterns)| patterns.iter().any(|pattern| glob(pattern, value)))
    }

    /// Whether audiences are asked for at all.
    pub(crate) fn asks_audiences(&self) -> bool {
        !self.audiences.is_empty()
    }

    /// Whether a record for these is wanted.
    pub(crate) fn wants_audiences<'a>(&self, audiences: impl Iterator<Item = &'a str>) -> bool {
        let mut audiences = audiences.filter(|audience| !audience.is_empty()).peekable();
        self.audiences.is_empty()
            || audiences.peek().is_none() && !self.named_only
            || audiences.any(|audience| self.audiences.iter().any(|wanted| same_without_case(wanted, audience)))
    }

    /// Whether more is asked than can be told by single columns.
    pub(crate) fn asks_whole_records(&self) -> bool {
        self.mode != Mode::Engineer || !self.without.is_empty()
    }

    /// Whether this record is wanted, as [`Matcher::wants`].
    pub(crate) fn wants_record(&self, record: &LogRecord) -> bool {
        let Ok(bytes) = encode_records(std::slice::from_ref(record)) else { return true };
        let Ok(view) = LogBatchView::parse(&bytes) else { return true };
        view.records().flatten().all(|record| self.wants(&record))
    }

    /// What is looked for in messages and values; each must be found.
    pub(crate) fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// Whether something in these bytes can be what is looked for; a batch without it holds no record with it.
    pub(crate) fn may_be_in(&self, batch: &[u8]) -> bool {
        self.texts.iter().all(|text| text.quick.as_ref().is_none_or(|quick| quick.is_match(batch)))
    }

    /// Whether records of this origin can be wanted.
    pub fn wants_origin(&self, origin: &OriginView<'_>) -> bool {
        self.wants_audiences(origin.audiences())
            && self.fields.iter().all(|(field, patterns)| {
                field.of_origin(origin).is_none_or(|value| patterns.iter().any(|pattern| glob(pattern, value)))
            })
    }

    /// Whether a record of a wanted origin is wanted.
    pub fn wants_of_origin(&self, record: &RecordView<'_>) -> bool {
        let time = record.time();
        time >= self.since
            && self.until.is_none_or(|until| time < until)
            && self.level_mask & (1 << record.level().ordinal()) != 0
            && self.fields.iter().all(|(field, patterns)| {
                !matches!(field, Field::StackId | Field::LogId) || {
                    let value = field.of(record);
                    patterns.iter().any(|pattern| glob(pattern, value))
                }
            })
            && self.texts.iter().all(|text| {
                text.exact.is_match(record.message().as_bytes())
                    || record.data().any(|(_, value)| text.exact.is_match(value.as_bytes()))
            })
            && (self.mode == Mode::Engineer || self.mode.shows(record.level(), record.origin().audiences()))
            && !self.without.iter().any(|left_out| left_out.wants(record))
    }

    /// Whether the record is wanted.
    pub fn wants(&self, record: &RecordView<'_>) -> bool {
        self.wants_origin(&record.origin()) && self.wants_of_origin(record)
    }
}

/// Whether the expression may look at what stands before or after its match, which differs between a text and a batch.
fn looks_around(pattern: &str) -> bool {
    pattern.contains(['^', '$']) || [r"\A", r"\z", r"\b", r"\B", r"\<", r"\>"].iter().any(|assertion| pattern.contains(assertion))
}

fn same_without_case(lower: &str, name: &str) -> bool {
    name.chars().flat_map(char::to_lowercase).eq(lower.chars())
}

/// Whether the name is of the pattern, both without case: `*` any characters, `?` one.
pub(crate) fn is_named(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().flat_map(char::to_lowercase).collect();
    glob(&pattern, name)
}

/// The same with a pattern that is in lower case already.
fn glob(pattern: &[char], name: &str) -> bool {
    let mut rest = name.chars().flat_map(char::to_lowercase);
    let mut at = 0;
    // Where to go on if what follows the last star does not fit: one character further in the name.
    let mut retry = None;
    loop {
        let before = rest.clone();
        match (pattern.get(at), rest.next()) {
            (Some('*'), _) => {
                at += 1;
                rest = before;
                retry = Some((at, rest.clone()));
            }
            (Some('?'), Some(_)) => at += 1,
            (Some(wanted), Some(found)) if *wanted == found => at += 1,
            (None, None) => return true,
            _ => {
                let Some((after_star, from)) = &mut retry else { return false };
                if from.next().is_none() {
                    return false;
                }
                at = *after_star;
                rest = from.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    use super::is_named as matches;

    #[test]
    fn names_and_patterns_are_compared_without_case() {
        for (pattern, name, expected) in [
            ("control/dv01", "CONTROL/DV01", true),
            ("CONTROL/*", "control/DV01/FrontEnd", true),
            ("*/FrontEnd", "CONTROL/DV01/FrontEnd", true),
            ("DV??", "dv01", true),
            ("DV??", "dv1", false),
            ("*a*b*", "xxaYYbzz", true),
            ("*a*b*", "xxbYYa", false),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("ä*", "ÄRGER", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_bad_expression_is_named() {
        let query = Query { regex: Some("(".into()), ..Query::default() };
        let error = query.compile().unwrap_err().to_string();
        assert!(error.contains("'('") && error.contains("unclosed"), "{error}");
        assert!(matches!(Query::from_json(b"{\"limits\": 3}"), Err(BadQuery::Json(why)) if why.contains("limits")));
        assert_eq!(Query::from_json(b" ").unwrap(), Query::default());
    }

    #[test]
    fn levels_and_a_least_level_add_up() {
        let query = Query { min_level: Some(Level::Error), levels: vec![Level::Debug], ..Query::default() };
        let mask = query.compile().unwrap().levels();
        let wanted: Vec<_> = Level::ALL.into_iter().filter(|level| mask & (1 << level.ordinal()) != 0).collect();
        assert_eq!(wanted, [Level::Debug, Level::Error, Level::Critical, Level::Alert, Level::Emergency]);
    }

    proptest! {
        #[test]
        fn a_glob_is_its_regular_expression(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let expression = format!("^{}$", pattern.replace('*', ".*").replace('?', "."));
            prop_assert_eq!(matches(&pattern, &name), Regex::new(&expression).unwrap().is_match(name.as_bytes()));
        }
    }
}
