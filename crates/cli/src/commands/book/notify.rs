//! `tampu book notify ...`: rules by which users are mailed new entries.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tampu_logbook::{
    client::Client,
    notify::{Digest, NotifyRule, QuietHours, RuleAbout},
};
use tampu_types::terminal::harmless;

use super::place::{Place, refused};
use crate::failure::{Failure, Outcome, written};

/// Rules by which you are mailed what others write
///
/// The hub sends the mails; its configuration needs [mail]. With --login an administrator manages the rules of somebody else.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book notify add --login zoe --book Shift 'HV type:Problem'\n  \
    tampu book notify add --login zoe --about replies --digest daily\n  tampu book notify quiet --login zoe 22:00 07:00")]
pub struct Notify {
    #[command(subcommand)]
    verb: Verb,
    /// The user whose rules are meant; by default your own
    #[arg(long, global = true, value_name = "LOGIN")]
    login: Option<String>,
    /// Write the answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the rules and the quiet hours
    List,
    /// Add a rule
    Add {
        /// A query that entries have to match, as for 'tampu book search'
        #[arg(value_name = "QUERY", default_value = "", hide_default_value = true)]
        query: String,
        /// The logbook; without it, all logbooks that the user may read
        #[arg(long, short, value_name = "NAME")]
        book: Option<String>,
        /// The entries: all, replies (to the user), mentions (of @ and the login)
        #[arg(long, default_value = "all", value_name = "KIND")]
        about: RuleAbout,
        /// An address (https) that gets the entries in place of mail; [book] webhook_hosts of the hub allows its host
        #[arg(long, value_name = "URL")]
        webhook: Option<String>,
        /// The time of mails: off (at once), hourly, daily
        #[arg(long, default_value = "off", value_name = "KIND")]
        digest: Digest,
    },
    /// Remove a rule
    Remove {
        /// The name of the rule; 'list' shows it
        #[arg(value_name = "RULE")]
        id: String,
    },
    /// Send a mail for a test of a rule
    Test {
        /// The name of the rule; 'list' shows it
        #[arg(value_name = "RULE")]
        id: String,
    },
    /// Set the hours without such mails, or remove them
    Quiet {
        /// The beginning, as 22:00
        #[arg(required_unless_present = "off", requires = "to")]
        from: Option<String>,
        /// The end, as 07:00
        to: Option<String>,
        /// The local time of both, as Europe/Zurich; by default that of the logbook
        #[arg(long, value_name = "ZONE", default_value = "", hide_default_value = true)]
        zone: String,
        /// Remove the hours
        #[arg(long, conflicts_with = "from")]
        off: bool,
    },
}

impl Notify {
    pub fn run(self, place: &Place) -> Outcome {
        let hub = place.remote("")?.ok_or_else(|| {
            let help = "start one with 'tampu up', or name one with --hub http://HOST:PORT";
            match place.is_named() {
                // A place that is named is used without a hub, even if one runs there.
                true => Failure::Usage(format!(
                    "rules need a running hub, so name no place of logbooks with --data or TAMPU_DATA_DIR; {help}"
                )),
                false => Failure::Unreachable(format!("no hub with the role book runs on this host; {help}")),
            }
        })?;
        let login = match self.login {
            Some(login) => login,
            None => hub.own_login().map_err(refused)?,
        };
        let as_json = self.json;
        match self.verb {
            Verb::List => list(&hub, &login, as_json),
            Verb::Add { query, book, about, webhook, digest } => {
                let rule = NotifyRule { query, book, about, webhook, digest, ..NotifyRule::default() };
                let rule = hub.add_notify_rule(&login, &rule).map_err(refused)?;
                let secret = rule.secret.as_ref().map(|secret| format!("\nsecret of its signatures, shown only now: {secret}"));
                say(&format!("{}: {}{}", rule.id, rule.described(), secret.unwrap_or_default()), &json!(rule), as_json)
            }
            Verb::Remove { id } => {
                hub.remove_notify_rule(&login, &id).map_err(refused)?;
                say(&format!("{id} removed"), &json!({ "removed": id }), as_json)
            }
            Verb::Test { id } => {
                let tested = hub.test_notify_rule(&login, &id).map_err(refused)?;
                let to = tested["to"].as_str().unwrap_or_default();
                say(&format!("a message to {to} is in the queue"), &tested, as_json)
            }
            Verb::Quiet { from, to, zone, off: _ } => {
                let quiet = from.zip(to).map(|(from, to)| QuietHours { from, to, zone });
                hub.set_quiet_hours(&login, quiet.as_ref()).map_err(refused)?;
                let text = match &quiet {
                    Some(quiet) => format!("no mail by rules from {} to {}", quiet.from, quiet.to),
                    None => "mail by rules at all hours".to_owned(),
                };
                say(&text, &json!(quiet), as_json)
            }
        }
    }
}

fn list(hub: &Client, login: &str, as_json: bool) -> Outcome {
    let settings = hub.notify_rules(login).map_err(refused)?;
    if as_json {
        return say("", &json!(settings), true);
    }
    for rule in &settings.rules {
        say(&format!("{}: {}", rule.id, rule.described()), &Value::Null, false)?;
    }
    if settings.rules.is_empty() {
        say(&format!("'{login}' has no rules"), &Value::Null, false)?;
    }
    match &settings.quiet {
        Some(quiet) => say(&format!("quiet from {} to {} {}", quiet.from, quiet.to, quiet.zone), &Value::Null, false),
        None => Ok(()),
    }
}

/// Prints a text for people, or the JSON.
fn say(text: &str, value: &Value, as_json: bool) -> Outcome {
    let line = if as_json { value.to_string() } else { harmless(text, true) };
    written(writeln!(io::stdout(), "{}", line.trim_end()))
}
