//! Templates: named initial contents of entries, stored beside their book for all users.
//!
//! In text and values, `{date}`, `{time}`, `{author}`, `{book}` and `{shift}` are replaced when an entry is made. So is
//! every other name for which the caller passes a value. Other text in braces stays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_types::Time;

use crate::{
    book::{EntryAttribute, same_name},
    entry::{Content, Encoding},
};

/// A template of entries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    /// The attributes that entries begin with.
    pub attributes: Vec<EntryAttribute>,
    /// The markup of the text.
    #[serde(default)]
    pub encoding: Encoding,
    /// The text, with placeholders.
    pub text: String,
}

/// The values of placeholders.
#[derive(Debug, Clone, Default)]
pub struct Values(Vec<(String, String)>);

impl Values {
    /// Returns the built-in values for a time (UTC), an author and a book.
    pub fn at(time: Time, author: &str, book: &str) -> Values {
        let text = time.to_acs();
        let (date, clock) = (text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default());
        let hour: u32 = clock.get(..2).and_then(|hour| hour.parse().ok()).unwrap_or_default();
        let shift = ["night", "morning", "evening"][(hour as usize / 8).min(2)];
        let known = [("date", date), ("time", clock), ("author", author), ("book", book), ("shift", shift)];
        Values(known.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
    }

    /// Adds a value, or replaces the value of the same name.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| !same_name(known, name));
        self.0.push((name.to_owned(), value.to_owned()));
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str())
    }

    /// Returns a text with the values in place of their names. Names inside values are not replaced.
    pub fn fill(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            out.push_str(before);
            let value = from.find('}').and_then(|close| Some((self.get(&from[1..close])?, close)));
            match value {
                Some((value, close)) => {
                    out.push_str(value);
                    rest = &from[close + 1..];
                }
                None => {
                    out.push('{');
                    rest = &from[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

impl Template {
    /// Returns the names in braces without a value, each once. A name is a word of letters, digits and `_`.
    pub fn unknown(&self, values: &Values) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for text in self.attributes.iter().flat_map(|said| &said.values).chain([&self.text]) {
            for part in text.split('{').skip(1) {
                let Some((name, _)) = part.split_once('}') else { continue };
                let is_name =
                    name.starts_with(|c: char| c.is_alphabetic()) && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                if is_name && values.get(name).is_none() && !names.iter().any(|known| same_name(known, name)) {
                    names.push(name.to_owned());
                }
            }
        }
        names
    }

    /// Returns the content of an entry made from the template.
    pub fn content(&self, values: &Values) -> Content {
        let filled = |said: &EntryAttribute| EntryAttribute {
            name: said.name.clone(),
            values: said.values.iter().map(|value| values.fill(value).replace(['\n', '\r'], " ")).collect(),
        };
        let attributes = self.attributes.iter().map(filled).collect();
        Content { attributes, encoding: self.encoding, text: values.fill(&self.text), ..Content::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_what_they_stand_for() {
        let mut values = Values::at(Time(1_221_000_000_000_000_000), "Zoe", "Shift");
        values.set("run", "{date}");
        for (text, filled) in [
            ("{Date} {time}: {author} in {book}, {shift} shift", "2008-09-09 22:40: Zoe in Shift, evening shift"),
            ("run {run}", "run {date}"),
            ("{unknown} { {date", "{unknown} { {date"),
            ("{{date}}", "{2008-09-09}"),
            ("", ""),
        ] {
            assert_eq!(values.fill(text), filled, "{text}");
        }
    }

    #[test]
    fn names_without_a_value_are_told() {
        let attributes = vec![EntryAttribute::new("Run", "{run} {author}")];
        let text = "{Date} {Run} {beam} {} {a b} {{x} {1} {cut".to_owned();
        let template = Template { attributes, text, ..Template::default() };
        let mut values = Values::at(Time(0), "Zoe", "Shift");
        assert_eq!(template.unknown(&values), ["run", "beam", "x"]);
        values.set("RUN", "7");
        assert_eq!(template.unknown(&values), ["beam", "x"]);
    }
}
