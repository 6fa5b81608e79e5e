//! Names of a hub's logbooks: other names, deletion and return.

use serde_json::json;

use super::{Client, Result, address::encoded};
use crate::{book::Book, store::naming::DeletedBook};

impl Client {
    /// Gives a logbook another name.
    pub fn rename_book(&self, name: &str, to: &str) -> Result<Book> {
        self.parse(self.call("POST", &format!("/books/{}/rename", encoded(name)), Some(&json!({ "name": to })), &[])?)
    }

    /// Deletes a logbook, until it is restored.
    pub fn delete_book(&self, name: &str) -> Result<DeletedBook> {
        self.parse(self.call("DELETE", &format!("/books/{}", encoded(name)), None, &[])?)
    }

    /// Returns the deleted logbooks.
    pub fn deleted_books(&self) -> Result<Vec<DeletedBook>> {
        self.get("/deleted-books")
    }

    /// Restores a deleted logbook, under its name or another one.
    pub fn undelete_book(&self, number: u32, to: Option<&str>) -> Result<Book> {
        self.parse(self.call("POST", &format!("/deleted-books/{number}/restore"), Some(&json!({ "name": to })), &[])?)
    }

    /// Removes the texts and files of a deleted logbook for good.
    pub fn purge_book(&self, number: u32, reason: &str) -> Result<DeletedBook> {
        self.parse(self.call("POST", &format!("/deleted-books/{number}/purge"), Some(&json!({ "reason": reason })), &[])?)
    }
}
