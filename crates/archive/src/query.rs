//! Queries: a [`Query`] as people and programs write it, and its compiled form, which matches records in place.
//!
//! All conditions of a query are combined with AND; several values for one field, several levels and several audiences
//! with OR. An [`Expression`] combines comparisons freely. Names are compared without case and may hold `*` and `?`. Words and text are compared without case. A
//! regular expression decides about case for itself. A record that meets one of the conditions in `without` is
//! excluded.
//!
//! ```
//! use tampu_archive::query::{Field, Query};
//! use tampu_types::Level;
//!
//! let mut query: Query = serde_json::from_str(r#"{"min_level": "Warning", "fields": {"process": ["CONTROL/*"]}, "limit": 100}"#)?;
//! query.newest_first = true;
//! assert_eq!(query.min_level, Some(Level::Warning));
//! assert_eq!(query.fields[&Field::Process], ["CONTROL/*"]);
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use tampu_types::{
    Incarnation, Level, LogRecord, RecordId, Time,
    glob::Glob,
    log_batch::{LogBatchView, OriginView, RecordView, encode_records},
};

pub use tampu_types::QueryField as Field;

pub use self::{
    choice::{BadMode, Condition, Mode},
    expression::{BadExpression, Expression},
    terms::{BadTerm, FieldPattern, TERMS},
};

mod choice;
mod expression;
mod terms;

/// Search for records. The default finds everything, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// Start: records of this time and later, ns UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// End: records before this time, ns UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Records of this level and above ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_level: Option<Level>,
    /// Further levels. Records of these levels match, also beside `min_level`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// Records for one of these audiences, and records for everybody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// Records whose fields match one of the names or patterns given for each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<Field, Vec<String>>,
    /// Ids of the records; one of them must be the record's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<RecordId>,
    /// Names or patterns of sources. A record's source is its component, or its process if it has no component, as
    /// tables show it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Words that must all occur, each whole, in the message or a value beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Text that must occur in the message or a value beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Regular expression that must match the message or a value beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Expression over fields and named data that must be met: the condition that knows OR and numbers.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub expression: Option<Expression>,
    /// Exclusions: records that meet one of these conditions are excluded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Condition>,
    /// Audience mode that must show the record.
    #[serde(skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// Latest records first if true.
    pub newest_first: bool,
    /// Most records of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Start position in the query's order: the end of an earlier answer. Only records after it match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// The asking process: when this incarnation leaves the bus, a collector ends the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker: Option<Incarnation>,
}

fn is_default(mode: &Mode) -> bool {
    *mode == Mode::default()
}

/// Position in an answer: the time and id of a record. Answers are ordered by both. Records without an id that share a
/// time share a position: a record after one of them is after all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cursor {
    /// The record's time.
    pub time: Time,
    /// Record's id; all zeros if it has none.
    pub id: RecordId,
}

impl Cursor {
    /// Returns the position of this record.
    pub fn of(record: &LogRecord) -> Cursor {
        Cursor { time: record.time, id: record.id.unwrap_or_default() }
    }
}

/// Error of an invalid query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// The regular expression is invalid.
    #[error("the regular expression '{pattern}': {why}")]
    Regex {
        /// Pattern in the query.
        pattern: String,
        /// Message of the expression's parser.
        why: String,
    },
    /// The text is not a query in JSON.
    #[error("no query can be read: {0}")]
    Json(String),
    /// Records have no column of this name.
    #[error("records have no column '{name}'; columns are {known}")]
    Column {
        /// Name in the question.
        name: String,
        /// Names of the columns.
        known: String,
    },
    /// A column stands twice in the question.
    #[error("the column '{0}' is asked for twice")]
    ColumnTwice(String),
}

impl Query {
    /// Reads a query from JSON; an empty text finds everything.
    pub fn from_json(json: &[u8]) -> Result<Query, BadQuery> {
        if json.iter().all(u8::is_ascii_whitespace) {
            return Ok(Query::default());
        }
        serde_json::from_slice(json).map_err(|error| BadQuery::Json(error.to_string()))
    }

    /// Returns the levels that a matching record can have.
    pub fn wanted_levels(&self) -> Vec<Level> {
        let all = self.min_level.is_none() && self.levels.is_empty();
        let wanted = |level: &Level| all || self.min_level.is_some_and(|min| *level >= min) || self.levels.contains(level);
        Level::ALL.into_iter().filter(|level| wanted(level) && self.mode.may_show(*level)).collect()
    }

    /// Compiles the query for matching records.
    pub fn compile(&self) -> Result<Matcher, BadQuery> {
        let mut texts = Vec::new();
        for word in self.words.iter().flat_map(|words| words.split_whitespace()) {
            let escaped = regex::escape(word);
            // A word that begins or ends with a sign (as `-3` or `50%`) needs no word boundary at that sign.
            let edge = |character: Option<char>| if character.is_some_and(char::is_alphanumeric) { r"\b" } else { "" };
            let whole = format!("{}{escaped}{}", edge(word.chars().next()), edge(word.chars().last()));
            texts.push(Text {
                exact: regular_expression(&whole, true)?,
                quick: Some(regular_expression(&escaped, true)?),
                word: Some(word.to_owned()),
            });
        }
        if let Some(text) = self.text.as_ref().filter(|text| !text.is_empty()) {
            let exact = regular_expression(&regex::escape(text), true)?;
            texts.push(Text { quick: Some(exact.clone()), exact, word: None });
        }
        if let Some(pattern) = &self.regex {
            let exact = regular_expression(pattern, false)?;
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
            fields: self.fields.iter().map(|(&field, patterns)| (field, globs(patterns))).collect(),
            sources: globs(&self.sources),
            ids: self.ids.iter().copied().collect(),
            texts,
            expression: self.expression.clone(),
        })
    }
}

/// Returns the source of a record as tables show it: its component, or its process if it has no component.
pub fn source_of<'v>(source_object: &'v str, process: &'v str) -> &'v str {
    if source_object.is_empty() { process } else { source_object }
}

fn globs(patterns: &[String]) -> Vec<Glob> {
    patterns.iter().map(|pattern| Glob::ignoring_case(pattern)).collect()
}

fn regular_expression(pattern: &str, without_case: bool) -> Result<Regex, BadQuery> {
    let build = RegexBuilder::new(pattern).case_insensitive(without_case).size_limit(4 << 20).build();
    build.map_err(|error| {
        let why = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
        BadQuery::Regex { pattern: pattern.to_owned(), why }
    })
}

/// Compiled query that matches records.
#[derive(Debug)]
pub struct Matcher {
    since: Time,
    until: Option<Time>,
    level_mask: u16,
    audiences: Vec<String>,
    fields: Vec<(Field, Vec<Glob>)>,
    sources: Vec<Glob>,
    ids: BTreeSet<RecordId>,
    texts: Vec<Text>,
    expression: Option<Expression>,
    without: Vec<Matcher>,
    mode: Mode,
    /// If true, a list of audiences does not include records for everybody.
    named_only: bool,
}

/// Error for an expression without a quick search: it looks around its match, or can match nothing. Each text needs its
/// own search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoQuickWay;

/// Search condition on a record's texts.
#[derive(Debug)]
pub(crate) struct Text {
    exact: Regex,
    /// Expression for the bytes of a whole batch: it matches wherever `exact` matches one of the texts. It is fast on
    /// bytes that are not text.
    quick: Option<Regex>,
    /// Whole word of the condition, if it is one.
    word: Option<String>,
}

impl Text {
    /// Returns whether this text meets the condition.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        self.exact.is_match(text)
    }

    /// Returns the next candidate in concatenated texts from a position on: a place within the first matching text, or
    /// before it. `Err` means that the answer needs the ends of the texts.
    pub(crate) fn next_place(&self, joined: &[u8], from: usize) -> Result<Option<usize>, NoQuickWay> {
        let quick = self.quick.as_ref().ok_or(NoQuickWay)?;
        Ok(quick.find_at(joined, from).map(|found| found.start()))
    }

    /// Returns the whole word of the condition, if it is one.
    pub(crate) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }
}

impl Matcher {
    /// Returns the wanted levels: bit n is the level with ordinal n.
    pub(crate) fn levels(&self) -> u16 {
        self.level_mask
    }

    /// Returns whether records between these times can match.
    pub(crate) fn meets(&self, earliest: Time, latest: Time) -> bool {
        latest >= self.since && self.until.is_none_or(|until| earliest < until)
    }

    /// Returns whether the time of every record between these two matches.
    pub(crate) fn covers(&self, earliest: Time, latest: Time) -> bool {
        earliest >= self.since && self.until.is_none_or(|until| latest < until)
    }

    /// Returns whether a record of this time can match.
    pub(crate) fn wants_time(&self, time: Time) -> bool {
        self.covers(time, time)
    }

    /// Returns the fields with a condition.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field> {
        self.fields.iter().map(|(field, _)| *field)
    }

    /// Returns whether records with this value of `field` can match.
    pub(crate) fn wants_field(&self, field: Field, value: &str) -> bool {
        self.fields
            .iter()
            .filter(|(asked, _)| *asked == field)
            .all(|(_, patterns)| patterns.iter().any(|pattern| pattern.matches(value)))
    }

    /// Returns whether the query has a condition on sources.
    pub(crate) fn asks_sources(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Returns whether records of this source match.
    pub(crate) fn wants_source(&self, source: &str) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|pattern| pattern.matches(source))
    }

    /// Returns whether the query has a condition on ids.
    pub(crate) fn asks_ids(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Returns whether a record with this id can match.
    pub(crate) fn wants_id(&self, id: RecordId) -> bool {
        self.ids.is_empty() || self.ids.contains(&id)
    }

    /// Returns whether records of this incarnation can match.
    pub(crate) fn wants_incarnation(&self, incarnation: Incarnation) -> bool {
        self.ids.is_empty() || self.ids.iter().any(|id| id.incarnation == incarnation)
    }

    /// Returns whether the query has a condition on audiences.
    pub(crate) fn asks_audiences(&self) -> bool {
        !self.audiences.is_empty()
    }

    /// Returns whether a record for these audiences matches.
    pub(crate) fn wants_audiences<'a>(&self, audiences: impl Iterator<Item = &'a str>) -> bool {
        let mut audiences = audiences.filter(|audience| !audience.is_empty()).peekable();
        self.audiences.is_empty()
            || audiences.peek().is_none() && !self.named_only
            || audiences.any(|audience| self.audiences.iter().any(|wanted| same_without_case(wanted, audience)))
    }

    /// Returns whether the query needs whole records, because single columns cannot decide it.
    pub(crate) fn asks_whole_records(&self) -> bool {
        // Exhaustive: each new condition must be assigned to one of the two sides, or a search by columns would ignore it.
        let Matcher {
            since: _,
            until: _,
            level_mask: _,
            audiences: _,
            named_only: _,
            fields: _,
            sources: _,
            ids: _,
            texts: _,
            expression,
            without,
            mode,
        } = self;
        *mode != Mode::Engineer || !without.is_empty() || expression.is_some()
    }

    /// Returns whether this record matches, as [`Matcher::wants`].
    pub(crate) fn wants_record(&self, record: &LogRecord) -> bool {
        let Ok(bytes) = encode_records(std::slice::from_ref(record)) else { return true };
        let Ok(view) = LogBatchView::parse(&bytes) else { return true };
        view.records().flatten().all(|record| self.wants(&record))
    }

    /// Returns the conditions on messages and values; each must be met.
    pub(crate) fn texts(&self) -> &[Text] {
        &self.texts
    }

    /// Returns whether all texts can occur in these bytes; a batch for which this is false holds no matching record.
    pub(crate) fn may_be_in(&self, batch: &[u8]) -> bool {
        self.texts.iter().all(|text| text.quick.as_ref().is_none_or(|quick| quick.is_match(batch)))
    }

    /// Returns whether records of this origin can match.
    pub fn wants_origin(&self, origin: &OriginView<'_>) -> bool {
        self.wants_audiences(origin.audiences())
            && self.wants_source(source_of(origin.source_object(), origin.process()))
            && self.fields.iter().all(|(field, patterns)| {
                origin.text(field.record_field()).is_none_or(|value| patterns.iter().any(|pattern| pattern.matches(value)))
            })
    }

    /// Returns whether a record of a matching origin matches.
    pub fn wants_of_origin(&self, record: &RecordView<'_>) -> bool {
        let time = record.time();
        time >= self.since
            && self.until.is_none_or(|until| time < until)
            && self.level_mask & (1 << record.level().ordinal()) != 0
            && (self.ids.is_empty() || record.id().is_some_and(|id| self.ids.contains(&id)))
            && self.fields.iter().all(|(field, patterns)| {
                !field.is_of_record() || {
                    let value = record.text(field.record_field()).unwrap_or_default();
                    patterns.iter().any(|pattern| pattern.matches(value))
                }
            })
            && self.texts.iter().all(|text| {
                text.exact.is_match(record.message().as_bytes())
                    || record.data().any(|(_, value)| text.exact.is_match(value.as_bytes()))
            })
            && (self.mode == Mode::Engineer || self.mode.shows(record.level(), record.origin().audiences()))
            && self.expression.as_ref().is_none_or(|expression| expression.wants(record))
            && !self.without.iter().any(|left_out| left_out.wants(record))
    }

    /// Returns whether the record matches.
    pub fn wants(&self, record: &RecordView<'_>) -> bool {
        self.wants_origin(&record.origin()) && self.wants_of_origin(record)
    }
}

/// Returns whether the expression may look before or after its match, where a text and a batch differ.
fn looks_around(pattern: &str) -> bool {
    pattern.contains(['^', '$']) || [r"\A", r"\z", r"\b", r"\B", r"\<", r"\>"].iter().any(|assertion| pattern.contains(assertion))
}

fn same_without_case(lower: &str, name: &str) -> bool {
    name.chars().flat_map(char::to_lowercase).eq(lower.chars())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    use tampu_types::glob::matches_ignoring_case as matches;

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
