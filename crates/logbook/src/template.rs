//! Templates: what entries of a book begin with, under a name. A book's templates are kept beside it, for everybody.
//!
//! In the text and in values `{date}`, `{time}`, `{author}`, `{book}`, `{shift}` stand for what they say when an entry is made, and so does
//! any other name that is given a value then. What stands in braces and is no such name stays as it is.

use serde::{Deserialize, Serialize};
use tampu_types::Time;

use crate::{
    book::{EntryAttribute, check_said, same_name},
    entry::{Content, Encoding},
    store::{Result, Store, StoreError},
};

/// The kind of its records.
const KIND: &str = "template";

/// A template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Template {
    /// What an entry says about itself.
    pub attributes: Vec<EntryAttribute>,
    /// How the text is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// The text.
    pub text: String,
}

/// What placeholders stand for.
#[derive(Debug, Clone, Default)]
pub struct Values(Vec<(String, String)>);

impl Values {
    /// What is so at a time, UTC, for an author and a book.
    pub fn at(time: Time, author: &str, book: &str) -> Values {
        let text = time.to_acs();
        let (date, clock) = (text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default());
        let hour: u32 = clock.get(..2).and_then(|hour| hour.parse().ok()).unwrap_or_default();
        let shift = ["night", "morning", "evening"][(hour as usize / 8).min(2)];
        let known = [("date", date), ("time", clock), ("author", author), ("book", book), ("shift", shift)];
        Values(known.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
    }

    /// One more, or another value for one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| !same_name(known, name));
        self.0.push((name.to_owned(), value.to_owned()));
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str())
    }

    /// A text with the values in place of their names. What a value says is not looked at again.
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
    /// Names in braces that have no value, each once: what is read as a name is a word of letters, digits and `_`.
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

    /// What an entry made of it says.
    pub fn content(&self, values: &Values) -> Content {
        let filled = |said: &EntryAttribute| EntryAttribute {
            name: said.name.clone(),
            values: said.values.iter().map(|value| values.fill(value).replace(['\n', '\r'], " ")).collect(),
        };
        let attributes = self.attributes.iter().map(filled).collect();
        Content { attributes, encoding: self.encoding, text: values.fill(&self.text), ..Content::default() }
    }
}

fn key(book: &str, name: &str) -> String {
    format!("{}/{}", book.to_lowercase(), name.to_lowercase())
}

/// Keeps a template of a book, in place of another of its name.
pub fn save(store: &dyn Store, book: &str, name: &str, template: &Template) -> Result<()> {
    let book = store.book(book)?.name;
    check_said(&template.attributes)?;
    Content { text: template.text.clone(), ..Content::default() }.check()?;
    let value = serde_json::to_value(template).map_err(|error| StoreError::Damaged(error.to_string()))?;
    store.put_record(KIND, &key(&book, name), &value, None)?;
    Ok(())
}

/// A template of a book; none if there is none of this name.
pub fn load(store: &dyn Store, book: &str, name: &str) -> Result<Option<Template>> {
    let Some(record) = store.record(KIND, &key(book, name))? else { return Ok(None) };
    let template = serde_json::from_value(record.value);
    template.map(Some).map_err(|error| StoreError::Damaged(format!("template {book}/{name}: {error}")))
}

/// The names of a book's templates, in order.
pub fn names(store: &dyn Store, book: &str) -> Result<Vec<String>> {
    let begin = key(book, "");
    let all = store.records(KIND)?.into_iter();
    Ok(all.filter_map(|(name, _)| name.strip_prefix(&begin).map(str::to_owned)).collect())
}

/// Throws a template away; whether it was there.
pub fn forget(store: &dyn Store, book: &str, name: &str) -> Result<bool> {
    store.drop_record(KIND, &key(book, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{book::Book, store::sqlite::SqliteStore};

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

    #[test]
    fn templates_are_kept_by_book_and_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put_book(&Book::new("Shift", vec![])).unwrap();
        let attributes = vec![EntryAttribute::new("Author", "{author}")];
        let template = Template { attributes, encoding: Encoding::Plain, text: "{date}: all quiet".to_owned() };
        save(&store, "shift", "Quiet", &template).unwrap();
        assert!(matches!(save(&store, "None", "x", &template), Err(StoreError::NoBook(_))));
        assert_eq!(
            (names(&store, "Shift").unwrap(), load(&store, "Shift", "quiet").unwrap()),
            (vec!["quiet".to_owned()], Some(template.clone()))
        );
        let content = template.content(&Values::at(Time(0), "Max\nforged", "Shift"));
        assert_eq!((content.attributes[0].joined(), content.text.as_str()), ("Max forged".to_owned(), "1970-01-01: all quiet"));
        assert!(forget(&store, "Shift", "Quiet").unwrap() && !forget(&store, "Shift", "Quiet").unwrap());
        assert_eq!((load(&store, "Shift", "Quiet").unwrap(), names(&store, "Shift").unwrap()), (None, vec![]));
    }
}
