//! Templates, as records of a store.

use super::{
    error::StoreError,
    model::Result,
    traits::{Entries, Records, Templates},
};
use crate::{book::check_said, entry::Content, template::Template};

/// The kind of the records.
const KIND: &str = "template";

fn key(book: &str, name: &str) -> String {
    format!("{}/{}", book.to_lowercase(), name.to_lowercase())
}

fn missing(book: &str, name: &str) -> StoreError {
    StoreError::NoTemplate { book: book.to_owned(), name: name.to_owned() }
}

/// A store keeps templates as records.
impl<T: Entries + Records + ?Sized> Templates for T {
    fn template(&self, book: &str, name: &str) -> Result<Template> {
        let record = self.record(KIND, &key(book, name))?.ok_or_else(|| missing(book, name))?;
        let template = serde_json::from_value(record.value);
        template.map_err(|error| StoreError::Damaged(format!("template {book}/{name}: {error}")))
    }

    fn save_template(&self, book: &str, name: &str, template: &Template) -> Result<()> {
        let book = self.book(book)?.name;
        check_said(&template.attributes)?;
        Content { text: template.text.clone(), ..Content::default() }.check()?;
        let value = serde_json::to_value(template).map_err(|error| StoreError::Damaged(error.to_string()))?;
        self.put_record(KIND, &key(&book, name), &value, None)?;
        Ok(())
    }

    fn templates(&self, book: &str) -> Result<Vec<String>> {
        let prefix = key(&self.book(book)?.name, "");
        let all = self.records(KIND)?.into_iter();
        Ok(all.filter_map(|(name, _)| name.strip_prefix(&prefix).map(str::to_owned)).collect())
    }

    fn drop_template(&self, book: &str, name: &str) -> Result<()> {
        if self.drop_record(KIND, &key(book, name))? { Ok(()) } else { Err(missing(book, name)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        book::{Book, EntryAttribute},
        entry::Encoding,
        store::sqlite::SqliteStore,
        template::Values,
    };
    use tampu_types::Time;

    #[test]
    fn templates_are_kept_by_book_and_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put_book(&Book::new("Shift", vec![])).unwrap();
        let attributes = vec![EntryAttribute::new("Author", "{author}")];
        let template = Template { attributes, encoding: Encoding::Plain, text: "{date}: all quiet".to_owned() };
        store.save_template("shift", "Quiet", &template).unwrap();
        assert!(matches!(store.save_template("None", "x", &template), Err(StoreError::NoBook(_))));
        assert_eq!(
            (store.templates("Shift").unwrap(), store.template("Shift", "quiet").unwrap()),
            (vec!["quiet".to_owned()], template.clone())
        );
        let content = template.content(&Values::at(Time(0), "Max\nforged", "Shift"));
        assert_eq!((content.attributes[0].joined(), content.text.as_str()), ("Max forged".to_owned(), "1970-01-01: all quiet"));
        store.drop_template("Shift", "Quiet").unwrap();
        assert!(matches!(store.drop_template("Shift", "Quiet"), Err(StoreError::NoTemplate { .. })));
        assert!(matches!(store.template("Shift", "Quiet"), Err(StoreError::NoTemplate { .. })));
        assert_eq!(store.templates("Shift").unwrap(), Vec::<String>::new());
    }
}
