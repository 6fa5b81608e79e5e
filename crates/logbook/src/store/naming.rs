//! Names of logbooks: a logbook gets another name, is deleted and restored.
//!
//! Entries, revisions and files refer to a logbook by its number, and so a new name costs one row. Records that name the
//! logbook (rights, templates, rules of notifications, tokens, drafts, saved searches, the order of the tabs) are
//! rewritten in the same transaction. The former name stays as a record, so that addresses and imports find the logbook,
//! and rules of the site about the former name go on to hold for it.
//!
//! A deleted logbook has the name `/deleted/NUMBER`. No request can name it, because names of logbooks have no slash.
//! Its rights and templates wait under that name, and a new logbook of the former name does not get them. Rejected: a
//! column that hides the logbook, because every query would have to respect it.

use serde_json::{Value, json};

pub use super::model::DeletedBook;
use super::{
    Result, StoreError,
    book_row::{BookRow, json as as_text},
    now,
    purge::{Purge, PurgeEntry, PurgeTables},
    traits::Records,
    write::Write,
};
use crate::{
    book::{Book, Invalid, change::BookChange, same_name},
    people::access,
};

/// The kind of the records of former names, which are named by the name in lower case.
const FORMER: &str = "former-name";
/// The kind of the records of deleted logbooks, which are named by the number.
const DELETED: &str = "deleted-book";
/// The kind of the records of templates.
const TEMPLATE: &str = "template";
/// The beginning of the names of deleted logbooks.
const HIDDEN: &str = "/deleted/";
/// Kinds of records whose values name logbooks.
const NAMING: [&str; 7] = ["notify", "notify-due", "token", "user", "elog", "mail-in", FORMER];

/// Returns true for the name of a deleted logbook.
pub fn is_hidden(name: &str) -> bool {
    name.starts_with('/')
}

fn hidden_name(num: i64) -> String {
    format!("{HIDDEN}{num}")
}

/// Returns the name that a logbook has, if `name` is a former one.
pub fn current_name(store: &(impl Records + ?Sized), name: &str) -> Result<Option<String>> {
    let record = store.record(FORMER, &name.to_lowercase())?;
    let current = record.and_then(|record| record.value["book"].as_str().map(str::to_owned));
    Ok(current.filter(|current| !is_hidden(current)))
}

/// Returns the former names of logbooks, in lower case, each with the name that its logbook has.
pub fn former_names(store: &(impl Records + ?Sized)) -> Result<Vec<(String, String)>> {
    let pair = |(former, record): (String, super::Record)| {
        let former = former.split('/').next().unwrap_or_default().to_owned();
        record.value["book"].as_str().map(|book| (former, book.to_owned()))
    };
    Ok(store.records(FORMER)?.into_iter().filter_map(pair).collect())
}

/// Returns true if `name` is a former name of a deleted logbook.
pub fn is_name_of_deleted(store: &(impl Records + ?Sized), name: &str, number: u32) -> Result<bool> {
    let (name, hidden) = (name.to_lowercase(), hidden_name(i64::from(number)));
    Ok(former_names(store)?.iter().any(|(former, book)| *former == name && *book == hidden))
}

/// Returns the deleted logbooks, in the order of their numbers.
pub fn deleted_books(store: &(impl Records + ?Sized)) -> Result<Vec<DeletedBook>> {
    let damaged = |error: serde_json::Error| StoreError::Damaged(format!("{DELETED}: {error}"));
    let read = |(_, record): (String, super::Record)| serde_json::from_value::<DeletedBook>(record.value).map_err(damaged);
    let mut found = store.records(DELETED)?.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    found.sort_by_key(|deleted| deleted.number);
    Ok(found)
}

/// The operations that names need, beside those of a purge.
pub trait NameTables: PurgeTables {
    /// Prevents other changes of names until the transaction ends.
    fn lock_names(&mut self) -> Result<()>;
    /// Sets the name and the settings of a book.
    fn name_book(&mut self, num: i64, book: &Book) -> Result<()>;
    /// Returns a deleted book.
    fn hidden_row(&mut self, num: i64) -> Result<Option<BookRow>>;
    /// Returns the ids of all entries that a book has or had.
    fn all_ids(&mut self, num: i64) -> Result<Vec<u32>>;
    /// Returns the names and values of all records of a kind.
    fn texts_of(&mut self, kind: &str) -> Result<Vec<(String, String)>>;
    /// Writes a record.
    fn write_text(&mut self, kind: &str, name: &str, text: &str) -> Result<()>;
    /// Removes a record.
    fn remove_text(&mut self, kind: &str, name: &str) -> Result<()>;
    /// Returns all drafts by their numbers.
    fn draft_texts(&mut self) -> Result<Vec<(i64, String)>>;
    /// Replaces a draft, or deletes it.
    fn set_draft_text(&mut self, number: i64, text: Option<&str>) -> Result<()>;
    /// Returns all saved searches: owner, name, query.
    fn queries(&mut self) -> Result<Vec<[String; 3]>>;
    /// Replaces the query of a saved search.
    fn set_query(&mut self, saved: &[String; 3]) -> Result<()>;
}

impl<T: NameTables> Naming for T {}

/// Changes of names, in terms of tables.
pub trait Naming: NameTables + Write {
    /// Gives a book another name. Returns the book with it.
    fn rename_book(&mut self, name: &str, to: &str, by: &str) -> Result<Book> {
        self.lock_names()?;
        let book_row = self.book_row(name)?;
        let was = book_row.book.name.clone();
        let book = Book { name: to.to_owned(), ..book_row.book.clone() };
        book.check()?;
        if was == to {
            return Ok(book);
        }
        self.need_free(&book_row, to)?;
        self.take_name(&book_row, &book, by, &format!("renamed from {was}"))?;
        if !same_name(&was, to) {
            self.set_former(&was, to)?;
            self.free_former(to, to)?;
        }
        Ok(book)
    }

    /// Fails if another book has a name.
    fn need_free(&mut self, book_row: &BookRow, name: &str) -> Result<()> {
        match self.book_row(name) {
            Ok(other) if other.num != book_row.num => Err(StoreError::BookExists(other.book.name)),
            Ok(_) | Err(StoreError::NoBook(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Hides a book and what belongs to it, until it is restored or purged.
    fn delete_book(&mut self, name: &str, by: &str) -> Result<DeletedBook> {
        self.lock_names()?;
        let book_row = self.book_row(name)?;
        let BookRow { num, entries, .. } = book_row;
        let hidden = Book { name: hidden_name(num), ..book_row.book.clone() };
        let name = book_row.book.name.clone();
        let number = u32::try_from(num).map_err(|_| StoreError::Damaged(format!("book {num}: invalid number")))?;
        self.take_name(&book_row, &hidden, by, "deleted")?;
        let deleted = DeletedBook { number, name, entries, at: now(), by: by.to_owned(), purged: None };
        self.write_text(DELETED, &number.to_string(), &as_text(&deleted)?)?;
        Ok(deleted)
    }

    /// Returns a deleted book that was not purged.
    fn deleted(&mut self, number: u32) -> Result<(BookRow, DeletedBook)> {
        let missing = || StoreError::NoDeletedBook(number);
        let found = self.texts_of(DELETED)?.into_iter().find(|(name, _)| *name == number.to_string());
        let (_, text) = found.ok_or_else(missing)?;
        let deleted: DeletedBook =
            serde_json::from_str(&text).map_err(|error| StoreError::Damaged(format!("{DELETED} {number}: {error}")))?;
        if let Some(purged) = &deleted.purged {
            return Err(
                Invalid::Purge(format!("the logbook '{}' was purged ({purged}): nothing of it is left", deleted.name)).into()
            );
        }
        let book_row = self.hidden_row(i64::from(number))?.ok_or_else(missing)?;
        Ok((book_row, deleted))
    }

    /// Restores a deleted book, under its name or another one.
    fn undelete_book(&mut self, number: u32, to: Option<&str>, by: &str) -> Result<Book> {
        self.lock_names()?;
        let (book_row, deleted) = self.deleted(number)?;
        let book = Book { name: to.unwrap_or(&deleted.name).to_owned(), ..book_row.book.clone() };
        book.check()?;
        self.need_free(&book_row, &book.name)?;
        self.take_name(&book_row, &book, by, "undeleted")?;
        self.remove_text(DELETED, &number.to_string())?;
        self.free_former(&book.name, &book.name)?;
        if !same_name(&book.name, &deleted.name) {
            self.set_former(&deleted.name, &book.name)?;
        }
        Ok(book)
    }

    /// Removes the texts and files of a deleted book for good. Its number, its name and the reason stay.
    fn purge_book(&mut self, number: u32, reason: &str, by: &str) -> Result<DeletedBook> {
        let purge = Purge { reason: reason.to_owned(), ..Purge::default() };
        purge.check()?;
        self.lock_names()?;
        self.lock_all()?;
        let (book_row, deleted) = self.deleted(number)?;
        for id in self.all_ids(book_row.num)? {
            match self.purge_in(&book_row, id, &purge, by) {
                Ok(_) | Err(StoreError::NoEntry(_)) => {}
                // The entry was moved to another book, and is not this book's.
                Err(StoreError::Gone(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let name = &book_row.book.name;
        self.set_book(book_row.num, &Book::new(name, vec![]))?;
        let prefix = format!("{name}/");
        for (template, _) in self.texts_of(TEMPLATE)?.into_iter().filter(|(template, _)| template.starts_with(&prefix)) {
            self.remove_text(TEMPLATE, &template)?;
        }
        self.remove_text(access::KIND, name)?;
        for (draft, text) in self.draft_texts()? {
            if is_of_book(&text, name) {
                self.set_draft_text(draft, None)?;
            }
        }
        // The former configurations can have texts, too.
        let changes = super::book_changes::change_name(book_row.num, 0);
        let of_book = changes.split('/').next().unwrap_or_default().to_owned() + "/";
        for (change, _) in self.texts_of(super::book_changes::BOOK_CHANGE)? {
            if change.starts_with(&of_book) {
                self.remove_text(super::book_changes::BOOK_CHANGE, &change)?;
            }
        }
        let purged = DeletedBook { purged: Some(format!("{by}: {}", reason.trim())), ..deleted };
        self.write_text(DELETED, &number.to_string(), &as_text(&purged)?)?;
        Ok(purged)
    }

    /// Writes the name of a book into its row and into everything that names it.
    fn take_name(&mut self, book_row: &BookRow, book: &Book, by: &str, what: &str) -> Result<()> {
        let (from, to) = (book_row.book.name.as_str(), book.name.as_str());
        self.name_book(book_row.num, book)?;
        let change = BookChange {
            number: self.last_book_change(book_row.num)? + 1,
            at: now(),
            by: by.to_owned(),
            what: what.to_owned(),
            before: Some(book_row.book.clone()),
            after: book.clone(),
        };
        self.keep_book_change(book_row.num, &change)?;
        let (folded, new) = (from.to_lowercase(), to.to_lowercase());
        // Rights of a book that is gone do not become those of this one.
        self.move_texts(access::KIND, |name| (name == folded).then(|| new.clone()))?;
        self.move_texts(TEMPLATE, |name| {
            name.strip_prefix(&folded).and_then(|rest| rest.strip_prefix('/')).map(|rest| format!("{new}/{rest}"))
        })?;
        for kind in NAMING {
            for (name, text) in self.texts_of(kind)? {
                if let Some(text) = with_name(&text, from, to) {
                    self.write_text(kind, &name, &text)?;
                }
            }
        }
        for (number, text) in self.draft_texts()? {
            if is_of_book(&text, from)
                && let Some(text) = with_name(&text, from, to)
            {
                self.set_draft_text(number, Some(&text))?;
            }
        }
        if !is_hidden(from) && !is_hidden(to) {
            for [owner, name, query] in self.queries()? {
                if let Some(query) = query_with_name(&query, from, to) {
                    self.set_query(&[owner, name, query])?;
                }
            }
        }
        Ok(())
    }

    /// Keeps a former name of a book.
    fn set_former(&mut self, former: &str, book: &str) -> Result<()> {
        self.free_former(former, book)?;
        self.write_text(FORMER, &former.to_lowercase(), &json!({ "book": book }).to_string())
    }

    /// Frees the record of a former name for a book. The record of another book with this former name moves aside: addresses
    /// do not find that book by it any longer, but rules do.
    fn free_former(&mut self, former: &str, book: &str) -> Result<()> {
        let name = former.to_lowercase();
        let all = self.texts_of(FORMER)?;
        let Some((_, text)) = all.iter().find(|(known, _)| *known == name) else { return Ok(()) };
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        if value["book"].as_str().is_some_and(|other| !same_name(other, book)) {
            let aside = (1..).map(|n: u32| format!("{name}/{n}")).find(|aside| all.iter().all(|(known, _)| known != aside));
            if let Some(aside) = aside {
                self.write_text(FORMER, &aside, text)?;
            }
        }
        self.remove_text(FORMER, &name)
    }

    /// Gives records of a kind other names. A record that had such a name is replaced.
    fn move_texts(&mut self, kind: &str, new_name: impl Fn(&str) -> Option<String>) -> Result<()> {
        for (name, text) in self.texts_of(kind)? {
            if let Some(new) = new_name(&name).filter(|new| *new != name) {
                self.remove_text(kind, &name)?;
                self.write_text(kind, &new, &text)?;
            }
        }
        Ok(())
    }
}

/// Returns true if a draft belongs to a book.
fn is_of_book(draft: &str, book: &str) -> bool {
    let draft: Value = serde_json::from_str(draft).unwrap_or_default();
    draft["book"].as_str().is_some_and(|name| same_name(name, book))
}

/// Returns a JSON text in which the fields for books have the new name; `None` if it does not name the book.
fn with_name(text: &str, from: &str, to: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    replace(&mut value, from, to, false).then(|| value.to_string())
}

/// Replaces a name in the fields for books; returns whether there was one.
fn replace(value: &mut Value, from: &str, to: &str, is_name: bool) -> bool {
    match value {
        Value::String(text) if is_name && same_name(text, from) => {
            to.clone_into(text);
            true
        }
        Value::Array(items) => {
            let mut found = false;
            for item in items {
                found |= replace(item, from, to, is_name);
            }
            found
        }
        Value::Object(fields) => fields.iter_mut().fold(false, |found, (name, field)| {
            let names = matches!(name.as_str(), "book" | "books" | "groups" | "notify");
            // The groups of a user are not those of logbooks.
            let names = names && (name != "groups" || field.as_array().is_some_and(|all| all.iter().all(Value::is_array)));
            replace(field, from, to, names && !field.is_object()) || found
        }),
        _ => false,
    }
}

/// Returns a query in which `book:NAME` has the new name.
fn query_with_name(query: &str, from: &str, to: &str) -> Option<String> {
    let quoted = format!("book:\"{}\"", to.replace('"', "\\\""));
    let mut result = String::with_capacity(query.len());
    let (mut rest, mut found) = (query, false);
    while let Some(at) = rest.find("book:") {
        let (before, term) = rest.split_at(at);
        result.push_str(before);
        let begins = result.chars().next_back().is_none_or(|last| last.is_whitespace() || matches!(last, '(' | '-'));
        let value = &term["book:".len()..];
        let end = match value.strip_prefix('"') {
            Some(inside) => inside.find('"').map_or(value.len(), |end| end + 2),
            None => value.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(value.len()),
        };
        let (name, after) = value.split_at(end);
        if begins && same_name(name.trim_matches('"'), from) {
            result.push_str(&quoted);
            found = true;
        } else {
            result.push_str("book:");
            result.push_str(name);
        }
        rest = after;
    }
    result.push_str(rest);
    found.then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_follow_a_name() {
        let follow = |query: &str| query_with_name(query, "Shift Log", "Night");
        assert_eq!(follow("book:\"shift log\" beam").as_deref(), Some("book:\"Night\" beam"));
        assert_eq!(follow("a (book:\"Shift Log\" or book:Other)").as_deref(), Some("a (book:\"Night\" or book:Other)"));
        assert_eq!(follow("notebook:\"shift log\""), None);
        assert_eq!(query_with_name("book:Shift -x", "shift", "Day Log").as_deref(), Some("book:\"Day Log\" -x"));
    }

    #[test]
    fn only_fields_of_books_follow_a_name() {
        let text = r#"{"books":["A","b"],"groups":["a"],"rules":[{"book":"a","query":"a"}],"login":"a"}"#;
        let is = with_name(text, "A", "N").unwrap();
        let is: Value = serde_json::from_str(&is).unwrap();
        assert_eq!(is, json!({"books":["N","b"],"groups":["a"],"rules":[{"book":"N","query":"a"}],"login":"a"}));
        assert_eq!(with_name(text, "C", "N"), None);
    }
}
