//! `tampu book users signing`: the meanings of signatures in a logbook, and the people who may sign.

use clap::Args;
use serde_json::{Value, json};
use tampu_logbook::{people::Access, signature::policy::Meaning};

use super::keeper::Keeper;
use crate::failure::{Failure, Outcome};

/// Show or set who may sign entries of a logbook, and with which meaning
///
/// Without options the command shows the rules.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu book users signing Shift --meaning author --meaning reviewed=group:operators --meaning approved=user:zoe+group:leads --lock\n  \
    tampu book users signing Shift"
)]
pub struct Signing {
    /// The logbook; '*' sets the default for all logbooks
    book: String,
    /// A meaning and the people who may sign with it: MEANING=group:NAME+user:LOGIN; without people, everybody with a login. Repeatable; the meanings replace
    /// those before
    #[arg(long = "meaning", value_name = "MEANING[=WHO]")]
    meanings: Vec<Meaning>,
    /// Entries that are signed from now on cannot be edited, moved or deleted, only answered
    #[arg(long, requires = "meanings")]
    lock: bool,
    /// Remove all meanings; signatures stay
    #[arg(long, conflicts_with_all = ["meanings", "lock"])]
    none: bool,
}

/// Shows the rules, a line for each meaning.
pub(super) fn show(book: &str, access: &Access, say: &mut dyn FnMut(String, Value) -> Outcome) -> Outcome {
    let signing = &access.signing;
    for meaning in &signing.meanings {
        let by: Vec<String> = meaning.by.iter().map(ToString::to_string).collect();
        let object = json!({ "book": book, "meaning": meaning.meaning, "by": meaning.by });
        say(format!("signed as {}: by {}", meaning.meaning, by.join(", ")), object)?;
    }
    if signing.meanings.is_empty() {
        return say("nobody signs".to_owned(), json!({ "book": book, "meanings": [] }));
    }
    let text = if signing.lock { "signed entries are locked" } else { "signed entries can be changed" };
    say(text.to_owned(), json!({ "book": book, "lock": signing.lock }))
}

impl Signing {
    pub(super) fn run(self, keeper: &Keeper, say: &mut dyn FnMut(String, Value) -> Outcome) -> Outcome {
        let mut access = keeper.access(&self.book)?;
        if self.none || !self.meanings.is_empty() {
            access.signing.meanings = self.meanings;
            access.signing.lock = self.lock;
            access.signing.check().map_err(|error| Failure::Usage(format!("--meaning: {error}")))?;
            keeper.set_access(&self.book, &access)?;
        }
        show(&self.book, &access, say)
    }
}
