//! Exclusions of a query, and audience modes.
//!
//! A [`Condition`] describes records to exclude: a record that meets all parts of it is excluded. [`Mode`] is ACS's
//! audience mode. It is a separate field, because Operator is an "or" of levels and audiences that no list of
//! conditions can express.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tampu_types::Level;

use super::{Field, Query};

/// Condition for excluding records: all parts of it must be met. An empty condition excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// Levels of the records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// Audiences of which the record must name one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// Records whose fields match one of the names or patterns given for each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<Field, Vec<String>>,
    /// Names or patterns of sources; see [`Query::sources`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Text in the message or a value beside it, without case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Records whose message, or a value beside it, matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

impl Condition {
    /// Returns the query that finds the excluded records, except for audiences: a query for some audiences also finds
    /// records for everybody.
    pub(super) fn as_query(&self) -> Query {
        Query {
            levels: self.levels.clone(),
            audiences: self.audiences.clone(),
            fields: self.fields.clone(),
            sources: self.sources.clone(),
            text: self.text.clone(),
            regex: self.regex.clone(),
            ..Query::default()
        }
    }
}

/// ACS's audience modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Shows all records.
    #[default]
    Engineer,
    /// Shows records for Operator or SciLog, and other records of level Warning or above that are not for Developer.
    Operator,
    /// Shows records of level Notice for the audience SciLog.
    SciLog,
}

/// Error for a word that is not an audience mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid audience mode '{0}': modes are engineer, operator and scilog")]
pub struct BadMode(pub String);

impl Mode {
    /// All audience modes.
    pub const ALL: [Mode; 3] = [Mode::Engineer, Mode::Operator, Mode::SciLog];

    /// Returns the name, as in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Engineer => "engineer",
            Mode::Operator => "operator",
            Mode::SciLog => "scilog",
        }
    }

    /// Returns whether a record of this level for these audiences is shown.
    pub fn shows<'a>(self, level: Level, audiences: impl IntoIterator<Item = &'a str>) -> bool {
        match self {
            Mode::Engineer => true,
            Mode::SciLog => level == Level::Notice && audiences.into_iter().any(|name| name.eq_ignore_ascii_case("SciLog")),
            Mode::Operator => {
                let mut for_developers = false;
                for name in audiences {
                    if name.eq_ignore_ascii_case("Operator") || name.eq_ignore_ascii_case("SciLog") {
                        return true;
                    }
                    for_developers |= name.eq_ignore_ascii_case("Developer");
                }
                level >= Level::Warning && !for_developers
            }
        }
    }

    /// Returns whether some record of this level is shown.
    pub fn may_show(self, level: Level) -> bool {
        self != Mode::SciLog || level == Level::Notice
    }

    /// Returns the audiences of which a shown record of this level names one; `None` if it may name others.
    pub fn audiences_at(self, level: Level) -> Option<&'static [&'static str]> {
        match self {
            Mode::SciLog => Some(&["SciLog"]),
            Mode::Operator if level < Level::Warning => Some(&["Operator", "SciLog"]),
            Mode::Operator | Mode::Engineer => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = BadMode;

    fn from_str(text: &str) -> Result<Mode, BadMode> {
        Mode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(text)).ok_or_else(|| BadMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{
        Datum, LogRecord,
        log_batch::{LogBatchView, encode_records},
    };

    use super::*;

    fn found(query: &Query, record: &LogRecord) -> bool {
        let batch = encode_records(std::slice::from_ref(record)).unwrap();
        let view = LogBatchView::parse(&batch).unwrap();
        let matcher = query.compile().unwrap();
        view.records().next().unwrap().is_ok_and(|record| matcher.wants(&record))
    }

    #[test]
    fn the_modes_are_those_of_acs() {
        let cases: [(Level, &[&str], [bool; 3]); 10] = [
            (Level::Trace, &[], [true, false, false]),
            (Level::Notice, &[], [true, false, false]),
            (Level::Warning, &[], [true, true, false]),
            (Level::Emergency, &["Developer"], [true, false, false]),
            (Level::Emergency, &["Sysadmin"], [true, true, false]),
            (Level::Trace, &["operator"], [true, true, false]),
            (Level::Info, &["SciLog"], [true, true, false]),
            (Level::Notice, &["SciLog"], [true, true, true]),
            (Level::Error, &["SciLog"], [true, true, false]),
            (Level::Error, &["Developer", "Operator"], [true, true, false]),
        ];
        for (level, audiences, expected) in cases {
            let mut record = LogRecord::new(level, "x");
            record.audiences = audiences.iter().map(|name| (*name).to_owned()).collect();
            for (mode, expected) in Mode::ALL.into_iter().zip(expected) {
                assert_eq!(mode.shows(level, audiences.iter().copied()), expected, "{mode} {level} {audiences:?}");
                assert_eq!(found(&Query { mode, ..Query::default() }, &record), expected, "{mode} {level} {audiences:?}");
                if expected {
                    assert!(mode.may_show(level));
                    let partitions = mode.audiences_at(level);
                    let within = |names: &[&str]| audiences.iter().any(|a| names.iter().any(|n| n.eq_ignore_ascii_case(a)));
                    assert!(partitions.is_none_or(within), "what is shown is subscribed to: {mode} {level} {audiences:?}");
                }
            }
        }
        assert_eq!("Operator".parse::<Mode>(), Ok(Mode::Operator));
        assert!("dba".parse::<Mode>().unwrap_err().to_string().contains("'dba'"));
    }

    #[test]
    fn what_a_condition_says_is_left_out_and_nothing_else() {
        let mut record = LogRecord::new(Level::Debug, "servo: no error");
        record.process = "CONTROL/DV01".into();
        record.audiences = vec!["Developer".into()];
        record.data.push(Datum::new("axis", "azimuth"));
        let without = |condition: &str| {
            let query = format!("{{\"without\": [{condition}]}}");
            !found(&Query::from_json(query.as_bytes()).unwrap(), &record)
        };
        for (condition, left_out) in [
            (r#"{"levels": ["Debug"]}"#, true),
            (r#"{"levels": ["Info"]}"#, false),
            (r#"{"audiences": ["developer"]}"#, true),
            (r#"{"audiences": ["Operator"]}"#, false),
            (r#"{"fields": {"process": ["control/*"]}}"#, true),
            (r#"{"fields": {"process": ["control/*"]}, "levels": ["Info"]}"#, false),
            (r#"{"sources": ["control/*"]}"#, true),
            (r#"{"sources": ["CORR"]}"#, false),
            (r#"{"text": "AZIMUTH"}"#, true),
            (r#"{"regex": "^servo"}"#, true),
            (r#"{"regex": "^no"}"#, false),
            (r#"{}"#, false),
            (r#"{"levels": ["Info"]}, {"text": "servo"}"#, true),
        ] {
            assert_eq!(without(condition), left_out, "{condition}");
        }
        // A record without audiences is for everybody, and no condition on audiences names it.
        record.audiences.clear();
        let query = Query::from_json(br#"{"without": [{"audiences": ["Developer"]}]}"#).unwrap();
        assert!(found(&query, &record));
    }
}
