//! The way of commands for administrators to the HTTP API of a hub, and their answers.

use std::io::{self, Write};

use clap::Args;
use serde_json::Value;
use tampu_logbook::client::Client;
use tampu_types::terminal::harmless;

use super::book::place::Place;
use crate::{
    connect::from_environment,
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Options of commands that ask a hub over HTTP.
#[derive(Debug, Args)]
pub struct HubApi {
    /// Write the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// With --hub: the token of an administrator [env: TAMPU_BOOK_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
}

impl HubApi {
    /// Returns the hub of this host, or the one that --hub names.
    pub fn hub(&self, context: &Context) -> Result<Client, Failure> {
        self.running(context)?.ok_or_else(|| {
            Failure::Unreachable(
                "no hub with the role book runs on this host; start one with 'tampu up', or name one with --hub http://HOST:PORT"
                    .to_owned(),
            )
        })
    }

    /// Returns the hub, if one runs or is named.
    pub fn running(&self, context: &Context) -> Result<Option<Client>, Failure> {
        let token = self.token.clone().map_or_else(|| from_environment("TAMPU_BOOK_TOKEN"), |token| Ok(Some(token)))?;
        Place::running(&context.common.connect, token)
    }
}

/// Prints a text for people, or the JSON.
pub fn say(text: &str, value: &Value, as_json: bool) -> Outcome {
    let line = if as_json { value.to_string() } else { harmless(text, true) };
    written(writeln!(io::stdout(), "{line}"))
}
