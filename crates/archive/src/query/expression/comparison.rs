//! Comparisons of an expression: one subject of a record against a value.

use regex::bytes::Regex;
use tampu_types::{Level, glob::Glob, log_batch::RecordView};

use super::super::{Field, source_of};

/// A comparison of one subject.
#[derive(Debug, Clone)]
pub(super) struct Test {
    pub subject: Subject,
    pub comparison: Comparison,
    /// Holds if no value fits.
    pub is_negated: bool,
}

/// The thing that a comparison looks at. A record may have several values of it; one that fits is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    Level,
    Source,
    Message,
    Audience,
    TraceId,
    SpanId,
    Line,
    Field(Field),
    /// Named data of this name; case differs in no name.
    Data(String),
}

#[derive(Debug, Clone)]
pub(super) enum Comparison {
    /// Is there, and not empty.
    Exists,
    /// Matches a pattern with `*` and `?`, without case.
    Like(Glob),
    /// Equals this number, or matches its digits as a pattern.
    Equals(f64, Glob),
    Number(Order, f64),
    Level(Order, Level),
    Matches(Regex),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Order {
    fn holds<T: PartialOrd>(self, found: &T, limit: &T) -> bool {
        match self {
            Order::Less => found < limit,
            Order::AtMost => found <= limit,
            Order::Greater => found > limit,
            Order::AtLeast => found >= limit,
        }
    }
}

impl Comparison {
    fn fits(&self, value: &str) -> bool {
        match self {
            Comparison::Exists => !value.is_empty(),
            Comparison::Like(pattern) => pattern.matches(value),
            Comparison::Equals(number, digits) => number_of(value) == Some(*number) || digits.matches(value),
            Comparison::Number(order, limit) => number_of(value).is_some_and(|found| order.holds(&found, limit)),
            Comparison::Level(order, limit) => value.parse::<Level>().is_ok_and(|found| order.holds(&found, limit)),
            Comparison::Matches(expression) => expression.is_match(value.as_bytes()),
        }
    }
}

/// Reads a value as a number. `inf` and `nan` are words, not numbers.
pub(super) fn number_of(value: &str) -> Option<f64> {
    let value = value.trim();
    let begins = value.trim_start_matches(['+', '-']).starts_with(|first: char| first.is_ascii_digit() || first == '.');
    value.parse::<f64>().ok().filter(|number| begins && number.is_finite())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Subject {
    /// Returns whether one of the record's values fits. A field that a record does not have is an empty text.
    fn any(&self, record: &RecordView<'_>, fits: impl Fn(&str) -> bool) -> bool {
        let origin = record.origin();
        match self {
            Subject::Level => fits(record.level().name()),
            Subject::Source => fits(source_of(origin.source_object(), origin.process())),
            Subject::Message => fits(record.message()),
            Subject::Audience => origin.audiences().any(fits),
            Subject::TraceId => record.trace_id().is_some_and(|id| fits(&hexadecimal(&id))),
            Subject::SpanId => record.span_id().is_some_and(|id| fits(&hexadecimal(&id))),
            Subject::Line => origin.line().is_some_and(|line| fits(&line.to_string())),
            Subject::Field(field) => {
                let (field, is_of_record) = (field.record_field(), field.is_of_record());
                fits(if is_of_record { record.text(field) } else { origin.text(field) }.unwrap_or_default())
            }
            Subject::Data(wanted) => record.data().any(|(name, value)| name.eq_ignore_ascii_case(wanted) && fits(value)),
        }
    }
}

impl Test {
    pub fn holds(&self, record: &RecordView<'_>) -> bool {
        self.subject.any(record, |value| self.comparison.fits(value)) != self.is_negated
    }
}
