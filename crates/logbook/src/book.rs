//! Logbooks and the attributes of their entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod change;
pub mod computed;
pub mod computing;
pub mod elog_options;
pub mod locked;

/// Characters a book's name may have.
pub const MAX_NAME: usize = 128;
/// Bytes of an attribute's value.
pub const MAX_VALUE: usize = 16 * 1024;
/// Attributes of a book or an entry.
pub const MAX_ATTRIBUTES: usize = 256;
/// Names that mean something else in ELOG's files.
const RESERVED: [&str; 8] = ["id", "text", "date", "encoding", "reply to", "locked by", "in reply to", "attachment"];

/// A logbook: its name and the attributes of its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Book {
    /// Its name; unique, compared without case.
    pub name: String,
    /// The top group it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The purpose of the book, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The attributes of its entries, in display order.
    pub attributes: Vec<AttributeDef>,
    /// The options of the ELOG configuration that the book was imported from, unchanged, for ELOG's pages and for export.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elog: Vec<(String, String)>,
}

/// One attribute of a book.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttributeDef {
    /// Its name; compared without case.
    pub name: String,
    /// The type of the values.
    pub kind: AttributeKind,
    /// The options to choose from, for types that have options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// If true, an entry can have several values although the type has one: under a condition of ELOG's pages it has options.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub several: bool,
    /// If true, an entry can bring a new value, which becomes an option.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extendable: bool,
    /// If true, an entry needs a value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// If true, the value of the first revision cannot change, but by an option of ELOG's pages such as `Subst on edit`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    /// A hint for people who fill it in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// If true, a value of the type text can have several lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi_line: bool,
    /// The rule by which the logbook computes the value from other attributes; nobody writes it then. See [`computed`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub computed: String,
}

/// The types of attributes, which are ELOG's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttributeKind {
    /// One line of text.
    #[default]
    Text,
    /// One of the options.
    Options,
    /// Any number of the options.
    Multiple,
    /// One of the options, all of which are shown.
    Radio,
    /// `1` or `0`.
    Boolean,
    /// A number, which may have a fraction.
    Numeric,
    /// A day: unix seconds of some moment in it, as ELOG writes it.
    Date,
    /// A moment: unix seconds.
    DateTime,
    /// One of the users.
    UserList,
    /// Any number of the users.
    UserLists,
    /// Any number of free labels. The book remembers them, to offer them again.
    Tags,
}

/// The reasons to reject a book or the content of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The name of a book.
    #[error("invalid logbook name '{0}'; use 1 to 128 characters without control characters, '/', '\\' and blanks at an end")]
    BookName(String),
    /// The name of an attribute.
    #[error("invalid attribute name '{0}'; use 1 to 128 characters without ':' and line ends, and none of ELOG's own names ({list})", list = RESERVED.join(", "))]
    AttributeName(String),
    /// Two of the same name.
    #[error("the attribute '{0}' is given twice")]
    Twice(String),
    /// More attributes than a book can have.
    #[error("{0} attributes; at most {MAX_ATTRIBUTES}")]
    TooMany(usize),
    /// A value is needed.
    #[error("the attribute '{0}' needs a value")]
    Missing(String),
    /// A value that is not among the options.
    #[error("invalid value '{value}' of '{name}'; its options are: {options}")]
    NoOption {
        name: String,
        /// The value that was given.
        value: String,
        /// The possible values, separated by commas.
        options: String,
    },
    /// A value of another type.
    #[error("invalid value '{value}' of '{name}'; expected {expected}")]
    NoValue {
        name: String,
        /// The value that was given.
        value: String,
        /// The expected form, in words.
        expected: &'static str,
    },
    /// Several values where one can be.
    #[error("'{0}' takes one value")]
    Single(String),
    /// A rule of a computed attribute that cannot be read.
    #[error("invalid rule of the computed attribute '{name}': {why}")]
    Computed {
        name: String,
        /// The reason, in words.
        why: String,
    },
    /// A value with line ends, or too long.
    #[error("a value of '{0}' has a line end, or more than {MAX_VALUE} bytes")]
    Line(String),
    /// A value that stays as it was.
    #[error("'{0}' is locked: the value of the first revision cannot change")]
    Locked(String),
    /// The name of an attachment.
    #[error("invalid attachment name '{0}'; use 1 to 255 characters without control characters and without a path")]
    AttachmentName(String),
    /// A time zone of more than a day.
    #[error("invalid time zone of {0} minutes; at most a day east or west of UTC")]
    Zone(i16),
    /// Too much text, too many attachments or links.
    #[error("{0}")]
    TooLarge(String),
    /// A purge of something that is not there, or that cannot be purged.
    #[error("invalid purge: {0}")]
    Purge(String),
}

impl Invalid {
    /// Returns the name of the attribute that is invalid.
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Invalid::AttributeName(name)
            | Invalid::Twice(name)
            | Invalid::Missing(name)
            | Invalid::NoOption { name, .. }
            | Invalid::NoValue { name, .. }
            | Invalid::Single(name)
            | Invalid::Line(name)
            | Invalid::Locked(name) => Some(name),
            _ => None,
        }
    }
}

/// An attribute of an entry: a name and its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EntryAttribute {
    /// The attribute's name.
    pub name: String,
    /// Its values: none, one, or several where the attribute takes several.
    pub values: Vec<String>,
}

impl EntryAttribute {
    /// One value; none if it is empty.
    pub fn new(name: &str, value: &str) -> EntryAttribute {
        let values = if value.is_empty() { vec![] } else { vec![value.to_owned()] };
        EntryAttribute { name: name.to_owned(), values }
    }

    /// The values as ELOG joins them.
    pub fn joined(&self) -> String {
        self.values.join(" | ")
    }
}

/// Returns whether two names mean the same book or attribute: they are compared without case.
pub fn same_name(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

impl AttributeKind {
    /// Returns whether the type takes several values.
    pub fn is_multiple(self) -> bool {
        matches!(self, AttributeKind::Multiple | AttributeKind::UserLists | AttributeKind::Tags)
    }

    /// Returns whether values are ordered as numbers.
    pub fn is_number(self) -> bool {
        matches!(self, AttributeKind::Numeric | AttributeKind::Date | AttributeKind::DateTime | AttributeKind::Boolean)
    }
}

impl AttributeDef {
    /// An attribute of this kind.
    pub fn new(name: &str, kind: AttributeKind) -> AttributeDef {
        AttributeDef { name: name.to_owned(), kind, ..AttributeDef::default() }
    }

    /// One with options.
    pub fn with_options(name: &str, kind: AttributeKind, options: &[&str]) -> AttributeDef {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        AttributeDef { options, ..AttributeDef::new(name, kind) }
    }

    /// Returns true if an entry can have several values of the attribute.
    pub fn takes_several(&self) -> bool {
        self.several || self.kind.is_multiple()
    }

    /// Returns true if a value can have several lines.
    pub fn takes_lines(&self) -> bool {
        self.multi_line && self.kind == AttributeKind::Text
    }

    /// Checks values of the attribute. A new option of an extendable attribute is valid.
    pub fn accepts(&self, values: &[String]) -> Result<(), Invalid> {
        let name = || self.name.clone();
        if self.required && values.iter().all(|value| value.trim().is_empty()) {
            return Err(Invalid::Missing(name()));
        }
        if values.len() > 1 && !self.takes_several() {
            return Err(Invalid::Single(name()));
        }
        for value in values {
            if !self.takes_lines() && value.contains('\n') || value.contains(['\r', '\0']) || value.len() > MAX_VALUE {
                return Err(Invalid::Line(name()));
            }
            let wrong = |expected| Invalid::NoValue { name: name(), value: value.clone(), expected };
            match self.kind {
                AttributeKind::Boolean if !matches!(value.as_str(), "0" | "1") => return Err(wrong("0 or 1")),
                AttributeKind::Numeric if number(value).is_none() => return Err(wrong("a number")),
                AttributeKind::Date | AttributeKind::DateTime if value.parse::<i64>().is_err() => {
                    return Err(wrong("a time in seconds since 1970"));
                }
                AttributeKind::Options | AttributeKind::Radio | AttributeKind::Multiple
                    if !self.extendable && !self.options.contains(value) =>
                {
                    return Err(Invalid::NoOption { name: name(), value: value.clone(), options: self.options.join(", ") });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A value as a number.
pub fn number(value: &str) -> Option<f64> {
    value.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

impl Book {
    /// A book with these attributes.
    pub fn new(name: &str, attributes: Vec<AttributeDef>) -> Book {
        Book { name: name.to_owned(), attributes, ..Book::default() }
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&AttributeDef> {
        self.attributes.iter().find(|attribute| same_name(&attribute.name, name))
    }

    /// Checks the name and the attributes of the book.
    pub fn check(&self) -> Result<(), Invalid> {
        let bad = self.name.is_empty()
            || self.name.chars().count() > MAX_NAME
            || self.name.trim() != self.name
            || matches!(self.name.as_str(), "." | "..")
            || self.name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'));
        if bad {
            return Err(Invalid::BookName(self.name.clone()));
        }
        if self.attributes.len() > MAX_ATTRIBUTES {
            return Err(Invalid::TooMany(self.attributes.len()));
        }
        for (at, attribute) in self.attributes.iter().enumerate() {
            check_attribute_name(&attribute.name)?;
            if self.attributes[..at].iter().any(|other| same_name(&other.name, &attribute.name)) {
                return Err(Invalid::Twice(attribute.name.clone()));
            }
            let wrong = |why| Invalid::Computed { name: attribute.name.clone(), why };
            let is_known = |name: &str| self.attributes[..at].iter().any(|def| same_name(&def.name, name));
            computed::check(&attribute.computed, &is_known).map_err(wrong)?;
        }
        Ok(())
    }

    /// Checks the attributes of an entry of the book. Attributes that the book does not have are valid: a book's
    /// configuration changes, and entries are copied between books.
    pub fn accepts(&self, said: &[EntryAttribute]) -> Result<(), Invalid> {
        check_said(said)?;
        self.check_lines(said)?;
        for attribute in &self.attributes {
            let values = said.iter().find(|said| same_name(&said.name, &attribute.name)).map_or(&[][..], |said| &said.values);
            attribute.accepts(values)?;
        }
        Ok(())
    }

    /// Checks that attributes the book does not have are of one line.
    fn check_lines(&self, said: &[EntryAttribute]) -> Result<(), Invalid> {
        let lines =
            |said: &&EntryAttribute| self.attribute(&said.name).is_none() && said.values.iter().any(|value| value.contains('\n'));
        match said.iter().find(lines) {
            Some(said) => Err(Invalid::Line(said.name.clone())),
            None => Ok(()),
        }
    }

    /// Checks that the book has all these attributes. Stores accept others. This check is for a person's input, where
    /// an unknown name is a mistake.
    pub fn check_names(&self, said: &[EntryAttribute]) -> Result<(), UnknownAttribute> {
        match said.iter().find(|said| self.attribute(&said.name).is_none()) {
            Some(said) => Err(UnknownAttribute::of(&said.name, [self])),
            None => Ok(()),
        }
    }

    /// Checks an edit from `was` to `is`. Only changed attributes are checked. So an old value stays valid after a
    /// change of the book's configuration, until a user edits it.
    pub fn accepts_change(&self, was: &[EntryAttribute], is: &[EntryAttribute]) -> Result<(), Invalid> {
        check_said(is)?;
        self.check_lines(is)?;
        for attribute in &self.attributes {
            let values = |said: &[EntryAttribute]| -> Vec<String> {
                said.iter()
                    .find(|said| same_name(&said.name, &attribute.name))
                    .map(|said| said.values.clone())
                    .unwrap_or_default()
            };
            let (was, is) = (values(was), values(is));
            if was == is {
                continue;
            }
            let new: Vec<String> = is.iter().filter(|value| !was.contains(value)).cloned().collect();
            if is.iter().all(|value| value.trim().is_empty()) || is.len() > 1 && !attribute.takes_several() {
                attribute.accepts(&is)?;
            } else if !new.is_empty() {
                attribute.accepts(&new)?;
            }
        }
        Ok(())
    }

    /// Adds new options of extendable attributes. Returns whether there were any.
    pub fn extend(&mut self, said: &[EntryAttribute]) -> bool {
        let mut new = false;
        for attribute in
            self.attributes.iter_mut().filter(|attribute| attribute.extendable || attribute.kind == AttributeKind::Tags)
        {
            let values = said.iter().filter(|said| same_name(&said.name, &attribute.name)).flat_map(|said| &said.values);
            for value in values {
                if !attribute.options.contains(value) {
                    attribute.options.push(value.clone());
                    new = true;
                }
            }
        }
        new
    }
}

/// An error: no book has an attribute of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no attribute '{name}' in {}; there are: {}", .books.join(", "), .known.join(", "))]
pub struct UnknownAttribute {
    /// The unknown name.
    pub name: String,
    /// The names of the books.
    pub books: Vec<String>,
    /// The attributes that the books have.
    pub known: Vec<String>,
}

impl UnknownAttribute {
    fn of<'a>(name: &str, books: impl IntoIterator<Item = &'a Book>) -> UnknownAttribute {
        let mut error = UnknownAttribute { name: name.to_owned(), books: Vec::new(), known: Vec::new() };
        for book in books {
            error.books.push(format!("'{}'", book.name));
            for attribute in &book.attributes {
                if !error.known.iter().any(|known| same_name(known, &attribute.name)) {
                    error.known.push(attribute.name.clone());
                }
            }
        }
        error
    }
}

/// Checks that at least one of these books has an attribute of this name, as for the order of a search.
pub fn check_sort<'a>(name: &str, books: impl IntoIterator<Item = &'a Book> + Clone) -> Result<(), UnknownAttribute> {
    let known = books.clone().into_iter().any(|book| book.attribute(name).is_some());
    if known { Ok(()) } else { Err(UnknownAttribute::of(name, books)) }
}

/// Checks the rules for attributes of any entry, independent of its book.
pub fn check_said(said: &[EntryAttribute]) -> Result<(), Invalid> {
    if said.len() > MAX_ATTRIBUTES {
        return Err(Invalid::TooMany(said.len()));
    }
    for (at, attribute) in said.iter().enumerate() {
        check_attribute_name(&attribute.name)?;
        if said[..at].iter().any(|other| same_name(&other.name, &attribute.name)) {
            return Err(Invalid::Twice(attribute.name.clone()));
        }
        if attribute.values.iter().any(|value| value.contains(['\r', '\0']) || value.len() > MAX_VALUE) {
            return Err(Invalid::Line(attribute.name.clone()));
        }
    }
    Ok(())
}

fn check_attribute_name(name: &str) -> Result<(), Invalid> {
    let bad = name.is_empty()
        || name.chars().count() > MAX_NAME
        || name.trim() != name
        || name.chars().any(|c| c.is_control() || c == ':')
        || RESERVED.contains(&name.to_lowercase().as_str());
    if bad { Err(Invalid::AttributeName(name.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_to_their_kind() {
        let options = AttributeDef::with_options("Type", AttributeKind::Options, &["Routine", "Problem"]);
        let numeric = AttributeDef::new("Energy", AttributeKind::Numeric);
        let yes = AttributeDef::new("Done", AttributeKind::Boolean);
        let day = AttributeDef::new("Day", AttributeKind::Date);
        let several = AttributeDef::with_options("System", AttributeKind::Multiple, &["A", "B"]);
        for (attribute, values, good) in [
            (&options, &["Routine"][..], true),
            (&options, &["routine"], false),
            (&options, &["Routine", "Problem"], false),
            (&options, &[], true),
            (&several, &["A", "B"], true),
            (&several, &["A", "C"], false),
            (&numeric, &["4.5e2"], true),
            (&numeric, &["many"], false),
            (&numeric, &["inf"], false),
            (&yes, &["1"], true),
            (&yes, &["yes"], false),
            (&day, &["1221048000"], true),
            (&day, &["2008-09-10"], false),
            (&options, &["Routine\nType: forged"], false),
        ] {
            let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
            assert_eq!(attribute.accepts(&values).is_ok(), good, "{} {values:?}", attribute.name);
        }
        let required = AttributeDef { required: true, ..AttributeDef::default() };
        assert!(required.accepts(&[]).is_err() && required.accepts(&[" ".to_owned()]).is_err());
    }

    #[test]
    fn new_options_of_extendable_attributes_are_taken_in() {
        let mut book = Book::new("b", vec![AttributeDef::with_options("Type", AttributeKind::Options, &["A"])]);
        let said = [EntryAttribute::new("type", "B")];
        assert!(book.accepts(&said).is_err() && !book.extend(&said));
        book.attributes[0].extendable = true;
        assert!(book.accepts(&said).is_ok() && book.extend(&said) && !book.extend(&said));
        assert_eq!(book.attributes[0].options, ["A", "B"]);
    }

    #[test]
    fn what_was_good_once_stays_good_until_it_is_changed() {
        let kind = AttributeKind::Options;
        let book = Book::new(
            "b",
            vec![
                AttributeDef { required: true, ..AttributeDef::with_options("Type", kind, &["A", "B"]) },
                AttributeDef::with_options("Systems", AttributeKind::Multiple, &["X", "Y"]),
            ],
        );
        let said = |one: &str, several: &[&str]| {
            let values = several.iter().map(|&value| value.to_owned()).collect();
            [EntryAttribute::new("Type", one), EntryAttribute { name: "systems".to_owned(), values }]
        };
        for (was, is, good) in [
            (said("Old", &["Gone"]), said("Old", &["Gone"]), true),
            (said("", &[]), said("", &["X"]), true),
            (said("Old", &["Gone"]), said("A", &["Gone", "X"]), true),
            (said("Old", &["Gone"]), said("A", &[]), true),
            (said("A", &[]), said("Old", &[]), false),
            (said("A", &[]), said("", &[]), false),
            (said("A", &["Gone"]), said("A", &["Gone", "Z"]), false),
        ] {
            assert_eq!(book.accepts_change(&was, &is).is_ok(), good, "{was:?} {is:?}");
        }
        assert!(book.accepts(&said("Old", &[])).is_err());
    }

    #[test]
    fn names_that_elog_could_not_write_are_refused() {
        for name in ["", "Reply to", "a:b", "a\nb", " a", "ID"] {
            let book = Book::new("b", vec![AttributeDef::new(name, AttributeKind::Text)]);
            assert!(book.check().is_err(), "{name:?}");
        }
        for name in ["", "a/b", "..", "a\\b", "a\u{7}", " a"] {
            assert!(Book::new(name, vec![]).check().is_err(), "{name:?}");
        }
        assert!(Book::new("LHCb shift log", vec![AttributeDef::new("Run number", AttributeKind::Text)]).check().is_ok());
    }
}
