//! Expressions over a record's fields and its named data, as `scan = 7 or elevation > 60`.
//!
//! The other conditions of a query are combined with AND; this is the one that knows OR, NOT and numbers.
//! `spec/log-services.md` defines the language. An expression of a stranger is bounded in length, depth and number of
//! comparisons, and takes a time proportional to the record's values for each comparison.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tampu_types::{
    log_batch::RecordView,
    logic::{self, Logic},
};

pub use self::parser::BadExpression;
use self::{comparison::Test, parser::Parser};

mod comparison;
mod parser;

/// A condition with OR, NOT, parentheses and comparisons of numbers; see `spec/log-services.md`. It is kept with the
/// text it was read from; two are equal if their texts are.
///
/// ```
/// use tampu_archive::query::Expression;
///
/// let expression: Expression = "scan = 7 or (elevation > 60 and not mode = stow)".parse()?;
/// assert_eq!(expression.to_string(), "scan = 7 or (elevation > 60 and not mode = stow)");
/// let error = "elevation > high".parse::<Expression>().unwrap_err().to_string();
/// assert!(error.contains("character 13"), "{error}");
/// # Ok::<(), tampu_archive::query::BadExpression>(())
/// ```
#[derive(Debug, Clone)]
pub struct Expression {
    text: Box<str>,
    logic: Logic<Test>,
}

impl Expression {
    /// Returns whether the record meets the expression.
    pub fn wants(&self, record: &RecordView<'_>) -> bool {
        self.logic.holds(&|test: &Test| test.holds(record))
    }
}

impl FromStr for Expression {
    type Err = BadExpression;

    fn from_str(text: &str) -> Result<Expression, BadExpression> {
        let mut parser = Parser::new(text)?;
        let logic = logic::condition(&mut parser)?;
        parser.end()?;
        Ok(Expression { text: text.trim().into(), logic })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expression, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tampu_types::{
        Datum, Level, LogRecord,
        log_batch::{LogBatchView, encode_records},
    };

    use super::{
        parser::{MAX_COMPARISONS, MAX_EXPRESSION},
        *,
    };

    fn record() -> LogRecord {
        let mut record = LogRecord::new(Level::Warning, "drive oscillates");
        record.process = "CONTROL/DV07".into();
        record.source_object = "DV07".into();
        record.routine = "track".into();
        record.line = Some(117);
        record.audiences = vec!["Operator".into()];
        record.trace_id = Some([0xab; 16]);
        record.data.push(Datum::new("scan", "7"));
        record.data.push(Datum::new("elevation", "60.5"));
        record.data.push(Datum::new("mode", "Tracking"));
        record.data.push(Datum::new("level", "low"));
        record.data.push(Datum::new("scan", "9"));
        record.data.push(Datum::new("rate (Hz)", "1e3"));
        record
    }

    fn wants(expression: &str) -> bool {
        let batch = encode_records(&[record()]).unwrap();
        let view = LogBatchView::parse(&batch).unwrap();
        let expression: Expression = expression.parse().unwrap_or_else(|error| panic!("{error}"));
        view.records().next().unwrap().is_ok_and(|record| expression.wants(&record))
    }

    #[test]
    fn comparisons_of_all_kinds() {
        for (expression, expected) in [
            ("scan = 7", true),
            ("scan = 9", true),
            ("scan = 07.0", true),
            ("scan=8", false),
            ("scan == 7", true),
            ("scan != 7", false),
            ("scan != 8", true),
            ("other != 8", true),
            ("elevation > 60", true),
            ("elevation >= 60.5", true),
            ("elevation < 60.5", false),
            ("elevation <= 6.05e1", true),
            ("mode > 3", false),
            ("mode = track*", true),
            ("mode = \"track*\"", true),
            ("mode = tracking", true),
            ("mode", true),
            ("not other", true),
            ("level = Warning", true),
            ("level >= Notice", true),
            ("level > Warning", false),
            ("data.level = low", true),
            ("process = control/*", true),
            ("source = dv07", true),
            ("routine = track", true),
            ("line = 117", true),
            ("line = 11", false),
            ("line > 100 and line <= 117", true),
            ("line != 117", false),
            ("data.line", false),
            ("file", false),
            ("audience = operator", true),
            ("message ~ 'oscill[a-z]+'", true),
            ("message ~ ^osc", false),
            ("mode ~ king$", true),
            ("trace_id = abababababababababababababababab", true),
            ("span_id", false),
            ("\"rate (Hz)\" = 1000", true),
            ("scan = 8 or elevation > 60", true),
            ("scan = 8 and elevation > 60", false),
            ("scan = 8 or scan = 7 and elevation > 61", false),
            ("(scan = 8 or scan = 7) and elevation > 60", true),
            ("not (scan = 7 and elevation > 60)", false),
            ("NOT scan = 8 AND Mode = tracking OR file", true),
        ] {
            assert_eq!(wants(expression), expected, "{expression}");
        }
    }

    #[test]
    fn faults_are_named_with_their_place() {
        let deep = "(".repeat(40) + "a" + &")".repeat(40);
        let many = vec!["a = 1"; MAX_COMPARISONS + 1].join(" or ");
        let long = "a".repeat(MAX_EXPRESSION + 1);
        for (expression, at, why) in [
            ("", 1, "a name"),
            ("scan =", 7, "a value"),
            ("scan = 7 or", 12, "a name"),
            ("(scan = 7", 10, "')'"),
            ("scan = 7)", 9, "'and' or 'or'"),
            ("scan 7", 6, "'and' or 'or'"),
            ("mode > high", 8, "number"),
            ("level > high", 9, "level"),
            ("message ~ '('", 11, "unclosed"),
            ("mode = 'x", 8, "closing '"),
            ("= 3", 1, "a name"),
            ("data. = 3", 1, "name"),
            (&deep, 34, "parentheses"),
            (&many, 2305, "256"),
            (&long, 1, "4096"),
        ] {
            let error = expression.parse::<Expression>().expect_err(expression);
            assert_eq!(error.at, at, "{error}");
            assert!(error.why.contains(why), "{error}");
            assert!(error.text.chars().count() <= 80, "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_is_read_again(text in "[a-c0-9 ()=<>!~'\"\\\\.\\*]{0,40}|(not|and|or|a|7|=|>|\\(|\\)| ){0,30}|.{0,60}") {
            if let Ok(expression) = text.parse::<Expression>() {
                let again: Expression = expression.to_string().parse().unwrap();
                prop_assert_eq!(format!("{:?}", again), format!("{expression:?}"));
                let batch = encode_records(&[record()]).unwrap();
                let view = LogBatchView::parse(&batch).unwrap();
                let _ = expression.wants(&view.records().next().unwrap().unwrap());
            }
        }

        /// De Morgan's laws and the order of `and` and `or`, over drawn records.
        #[test]
        fn not_and_or_are_those_of_logic(scan in 0_i32..4, elevation in 0_i32..4, s in 0_i32..4, e in 0_i32..4) {
            let mut record = LogRecord::new(Level::Info, "x");
            record.data.push(Datum::new("scan", scan.to_string()));
            record.data.push(Datum::new("elevation", elevation.to_string()));
            let batch = encode_records(&[record]).unwrap();
            let view = LogBatchView::parse(&batch).unwrap();
            let record = view.records().next().unwrap().unwrap();
            let wants = |text: String| text.parse::<Expression>().unwrap().wants(&record);
            let (a, b) = (scan == s, elevation > e);
            prop_assert_eq!(wants(format!("not (scan = {s} or elevation > {e})")), !(a || b));
            prop_assert_eq!(wants(format!("not scan = {s} and not elevation > {e}")), !a && !b);
            prop_assert_eq!(wants(format!("scan = {s} or scan = 3 and elevation > {e}")), a || scan == 3 && b);
        }
    }
}
