//! What a query leaves out, and whom it shows records to.
//!
//! A [`Condition`] is what a record must not be: everything it says must hold for a record to be left out, as everything a query
//! says must hold for one to be found. [`Mode`] is ACS's audience mode. It is a member of its own, because Operator is an "or"
//! of levels and audiences that no list of conditions says.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tampu_types::Level;

use super::{Field, Query};

/// Records to leave out: those for which all of this holds. One that says nothing leaves nothing out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// Of these levels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
    /// That name one of these audiences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// Whose fields match one of the names or patterns given for each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<Field, Vec<String>>,
    /// With this text in the message or a value beside it, without case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whose message, or a value beside it, matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

impl Condition {
    /// The query that finds what this leaves out, but for audiences: a query for some also finds what is for everybody.
    pub(super) fn as_query(&self) -> Query {
        Query {
            levels: self.levels.clone(),
            audiences: self.audiences.clone(),
            fields: self.fields.clone(),
            text: self.text.clone(),
            regex: self.regex.clone(),
            ..Query::default()
        }
    }
}

/// Whom records are shown to: ACS's audience modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everything.
    #[default]
    Engineer,
    /// What is for the audience Operator or SciLog; of the rest what is Warning or graver and not for Developer.
    Operator,
    /// What is for the audience SciLog, of level Notice.
    SciLog,
}

/// A word that is no audience mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no audience mode: modes are engineer, operator and scilog")]
pub struct BadMode(pub String);

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Engineer, Mode::Operator, Mode::SciLog];

    /// Its name, as in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Engineer => "engineer",
            Mode::Operator => "operator",
            Mode::SciLog => "scilog",
        }
    }

    /// Whether a record of this level that names these audiences is shown.
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

    /// Whether some record of this level is shown.
    pub fn may_show(self, level: Level) -> bool {
        self != Mode::SciLog || level == Level::Notice
    }

    /// The audiences outside of which no record of this level is shown; `None` where there are others.
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
            (r#"{"text": "AZIMUTH"}"#, true),
            (r#"{"regex": "^servo"}"#, true),
            (r#"{"regex": "^no"}"#, false),
            (r#"{}"#, false),
            (r#"{"levels": ["Info"]}, {"text": "servo"}"#, true),
        ] {
            assert_eq!(without(condition), left_out, "{condition}");
        }
        // Whoever names no audience is for everybody, and named by no condition.
        record.audiences.clear();
        let query = Query::from_json(br#"{"without": [{"audiences": ["Developer"]}]}"#).unwrap();
        assert!(found(&query, &record));
    }
}
