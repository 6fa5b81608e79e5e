//! The acceptor of a program that was built without Kerberos: there is none.

use std::path::Path;

use crate::login::kerberos_settings::WITHOUT;

/// A client that a ticket has proved.
#[derive(Debug)]
pub struct Proved {
    /// The principal, such as `zoe@EXAMPLE.ORG`.
    pub principal: String,
    /// The token that proves this server to the client.
    pub answer: Vec<u8>,
}

/// An acceptor of which no value exists.
#[derive(Debug)]
pub enum Acceptor {}

impl Acceptor {
    /// Fails, because the program has no Kerberos.
    pub fn new(_: &Path, _: &Path) -> Result<Acceptor, String> {
        Err(WITHOUT.to_owned())
    }

    /// Verifies a token of a client.
    pub fn accept(&self, _: &[u8]) -> Result<Proved, String> {
        match *self {}
    }
}
