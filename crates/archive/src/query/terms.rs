//! Conditions of a query as named texts: the options of `tampu log query`, and the parameters of the hub's API.

use std::str::FromStr;

use tampu_types::Level;

use super::{BadExpression, BadMode, Condition, Field, Query};

/// Names of the conditions, as [`Query::add_term`] takes them.
pub const TERMS: [&str; 18] = [
    "min_level",
    "level",
    "audience",
    "mode",
    "host",
    "process",
    "source",
    "logger",
    "stack",
    "field",
    "word",
    "contains",
    "regex",
    "where",
    "exclude",
    "exclude_regex",
    "not",
    "id",
];

/// Error of a condition that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTerm {
    /// No condition has this name.
    #[error("unknown condition '{0}'; conditions are {names}", names = TERMS.join(", "))]
    Name(String),
    /// The text is not a level.
    #[error("'{0}' is not a level; levels are {names}", names = Level::ALL.map(Level::name).join(", "))]
    Level(String),
    /// The text is not an audience mode.
    #[error(transparent)]
    Mode(#[from] BadMode),
    /// The text has no name before an equals sign.
    #[error("write NAME=PATTERN; names are {names}", names = fields())]
    NoPattern,
    /// No field has this name.
    #[error("unknown field '{0}'; fields are {names}", names = fields())]
    Field(String),
    /// The text is not an expression.
    #[error(transparent)]
    Expression(#[from] BadExpression),
    /// The text is not a record's id.
    #[error(transparent)]
    Id(#[from] tampu_types::identity::BadRecordId),
}

fn fields() -> String {
    Field::ALL.map(Field::name).join(", ")
}

/// A field and a name or pattern for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPattern {
    /// Field that is compared.
    pub field: Field,
    /// Name or pattern.
    pub pattern: String,
}

impl FromStr for FieldPattern {
    type Err = BadTerm;

    /// Reads a field's name and a pattern, as `NAME=PATTERN`.
    fn from_str(text: &str) -> Result<FieldPattern, BadTerm> {
        let (name, pattern) = text.split_once('=').ok_or(BadTerm::NoPattern)?;
        let field = Field::from_name(name.trim()).ok_or_else(|| BadTerm::Field(name.to_owned()))?;
        Ok(FieldPattern { field, pattern: pattern.to_owned() })
    }
}

impl FromStr for Condition {
    type Err = BadTerm;

    /// Reads an exclusion as `NAME=PATTERN`, where the name is that of a field, `level`, `audience` or `source`.
    fn from_str(text: &str) -> Result<Condition, BadTerm> {
        let value = |value: &str| vec![value.to_owned()];
        match text.split_once('=').map(|(name, value)| (name.trim(), value)) {
            Some(("level", name)) => Ok(Condition { levels: vec![level(name)?], ..Condition::default() }),
            Some(("audience", name)) => Ok(Condition { audiences: value(name), ..Condition::default() }),
            Some(("source", name)) => Ok(Condition { sources: value(name), ..Condition::default() }),
            _ => {
                let FieldPattern { field, pattern } = text.parse()?;
                Ok(Condition { fields: [(field, vec![pattern])].into(), ..Condition::default() })
            }
        }
    }
}

fn level(text: &str) -> Result<Level, BadTerm> {
    Level::of_word(text).ok_or_else(|| BadTerm::Level(text.to_owned()))
}

impl Query {
    /// Adds a condition by its name. Lists of levels and names have commas; each other condition has one value.
    pub fn add_term(&mut self, name: &str, value: &str) -> Result<(), BadTerm> {
        let listed = || value.split(',').map(str::to_owned);
        match name {
            "min_level" => self.min_level = Some(level(value)?),
            "level" => self.levels.extend(value.split(',').map(level).collect::<Result<Vec<_>, _>>()?),
            "audience" => self.audiences.extend(listed()),
            "mode" => self.mode = value.parse()?,
            "host" => self.fields.entry(Field::Host).or_default().extend(listed()),
            "process" => self.fields.entry(Field::Process).or_default().extend(listed()),
            "logger" => self.fields.entry(Field::Logger).or_default().extend(listed()),
            "source" => self.sources.extend(listed()),
            "stack" => self.fields.entry(Field::StackId).or_default().push(value.to_owned()),
            "field" => {
                let FieldPattern { field, pattern } = value.parse()?;
                self.fields.entry(field).or_default().push(pattern);
            }
            "word" => self.words.push(value.to_owned()),
            "contains" => self.text = Some(value.to_owned()),
            "regex" => self.regex = Some(value.to_owned()),
            "where" => self.expression = Some(value.parse()?),
            "exclude" => self.without.push(Condition { text: Some(value.to_owned()), ..Condition::default() }),
            "exclude_regex" => self.without.push(Condition { regex: Some(value.to_owned()), ..Condition::default() }),
            "not" => self.without.push(value.parse()?),
            "id" => self.ids.push(value.parse()?),
            _ => return Err(BadTerm::Name(name.to_owned())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(terms: &[(&str, &str)]) -> Result<Query, BadTerm> {
        let mut query = Query::default();
        terms.iter().try_for_each(|(name, value)| query.add_term(name, value)).map(|()| query)
    }

    #[test]
    fn every_name_is_a_condition_and_its_values_are_read() {
        for name in TERMS {
            let value = match name {
                "min_level" | "level" => "warn",
                "mode" => "operator",
                "where" => "scan = 7 or elevation > 60",
                "field" | "not" => "file=a.cpp",
                "id" => "00000001-00000002-0000000000000003.4.5",
                _ => "x",
            };
            assert_ne!(query(&[(name, value)]).unwrap(), Query::default(), "{name}");
        }
        let both = query(&[("host", "a,b"), ("field", "host=c"), ("level", "info,err"), ("not", "level=debug")]).unwrap();
        assert_eq!(both.fields[&Field::Host], ["a", "b", "c"]);
        assert_eq!(both.levels, [Level::Info, Level::Error]);
        assert_eq!(both.without[0].levels, [Level::Debug]);
    }

    #[test]
    fn errors_name_the_choices() {
        for (name, value, part) in [
            ("colour", "red", "unknown condition 'colour'; conditions are min_level"),
            ("level", "loud", "'loud' is not a level; levels are Trace"),
            ("field", "file", "write NAME=PATTERN; names are"),
            ("not", "colour=red", "unknown field 'colour'; fields are"),
            ("mode", "x", "engineer"),
            ("where", "scan =", ""),
            ("id", "7", "'7' is not a record id"),
        ] {
            let error = query(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
