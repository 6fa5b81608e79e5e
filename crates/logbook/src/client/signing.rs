//! Signatures of entries through a hub.

use serde_json::json;

use super::{Client, Result, address::encoded, logbook::path};
use crate::{
    entry::EntryRef,
    signature::{Signature, verify::Verification},
};

impl Client {
    /// Signs a revision of an entry for a user, with the user's password.
    pub fn sign(&self, at: &EntryRef, revision: u32, meaning: &str, login: Option<&str>, password: &str) -> Result<Signature> {
        let mut body = json!({ "meaning": meaning, "revision": revision, "password": password });
        if let Some(login) = login {
            body["login"] = login.into();
        }
        self.parse(self.call("POST", &format!("{}/signatures", path(at)), Some(&body), &[])?)
    }

    /// Verifies the signatures of a book.
    pub fn verify(&self, book: &str) -> Result<Verification> {
        self.parse(self.call("POST", &format!("/books/{}/verify", encoded(book)), None, &[])?)
    }
}
