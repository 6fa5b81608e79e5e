//! `tampu access ...`: the rules of who may do what, and the explanation of a decision.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tampu_hub::rules::file::PolicyFile;
use tampu_logbook::client::Client;

use super::{
    book::place::refused,
    hub_api::{HubApi, say},
};
use crate::{
    context::Context,
    failure::{Failure, Outcome},
    plural::counted,
};

/// Show, explain and change the rules of who may do what
///
/// The hub of this host answers, or with --hub http://HOST:PORT another one. WHO is local (the user of the hub's host), key (every process with the
/// domain's key), guest, host:NAME, user:LOGIN or token:LOGIN/ID. A verb is read, write, query, set, send, receive, backup or admin. WHAT is a topic
/// or a service (log/query), event/ATTRIBUTE, bulk/STREAM, book/NAME,
/// source/NAME (processes that write), backup, or config.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu access explain key backup log/archive\n  tampu access explain user:zoe read book/Shift\n  \
    tampu access allow key set log/levels --reason 'shift leaders debug from their desks'\n  \
    tampu access deny key write 'event/sr/vacuum/**'\n  tampu access deny host:pc7 write 'source/CONTROL/**'\n  tampu access list\n  tampu access revoke 12\n  \
    tampu access check /etc/tampu/policy.toml"
)]
pub struct Access {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    api: HubApi,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the rules in force, with their files and lines
    List,
    Explain(Explain),
    /// Add a rule that allows; it holds at once
    Allow(Rule),
    /// Add a rule that denies, whatever other rules allow; it holds at once
    Deny(Rule),
    Revoke(Revoke),
    Check(Check),
}

/// Say whether somebody may do something, and why: exit code 0 if allowed, 1 if refused
#[derive(Debug, Args)]
pub struct Explain {
    /// The acting principal: local, key, guest, host:NAME, user:LOGIN or token:LOGIN/ID
    who: String,
    /// The verb of the action
    #[arg(value_name = "VERB")]
    verb: String,
    /// The object of the action, such as log/archive or book/Shift
    what: String,
}

/// A rule to add.
#[derive(Debug, Args)]
pub struct Rule {
    /// The principals: anybody, local, key, guest, host:NAME, user:LOGIN or token:LOGIN/ID
    who: String,
    /// The verbs, separated by commas
    #[arg(value_name = "VERBS")]
    may: String,
    /// Pattern of names: * for one part, ** for any number of parts
    what: String,
    /// The reason, which refusals repeat
    #[arg(long = "reason", value_name = "TEXT")]
    why: Option<String>,
}

/// Remove a rule of the policy file
#[derive(Debug, Args)]
pub struct Revoke {
    /// The line at which the rule begins; 'tampu access list' shows it
    line: usize,
}

/// Check a policy file without using it
#[derive(Debug, Args)]
pub struct Check {
    /// The file to check
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Access {
    pub fn run(self, context: &Context) -> Outcome {
        if let Verb::Check(Check { file }) = &self.verb {
            return check(file, self.api.json);
        }
        let hub = self.api.hub(context)?;
        let json = self.api.json;
        match self.verb {
            Verb::List => list(&hub, json),
            Verb::Explain(asked) => explain(&hub, &asked, json),
            Verb::Allow(rule) => add(&hub, "allow", &rule, json),
            Verb::Deny(rule) => add(&hub, "deny", &rule, json),
            Verb::Revoke(Revoke { line }) => {
                hub.drop_rule(line).map_err(refused)?;
                say(&format!("the rule at line {line} is removed"), &json!({ "removed": line }), json)
            }
            Verb::Check(_) => Ok(()),
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Describes a rule in one line.
fn described(rule: &Value) -> String {
    let verbs: Vec<&str> = rule["may"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let place = match (rule["file"].as_str(), rule["line"].as_u64()) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => "the hub's configuration".to_owned(),
    };
    let why = rule["why"].as_str().map(|why| format!("  # {why}")).unwrap_or_default();
    format!("{:5} {} {} {}  ({place}){why}", text(rule, "effect"), text(rule, "who"), verbs.join(","), text(rule, "what"))
}

fn list(hub: &Client, as_json: bool) -> Outcome {
    let policy = hub.rules().map_err(refused)?;
    if as_json {
        return say("", &policy, true);
    }
    for rule in policy["rules"].as_array().into_iter().flatten() {
        say(&described(rule), rule, false)?;
    }
    let defaults = match text(&policy, "defaults") {
        "none" => "without a rule nobody may do anything",
        "local" => "without a rule the user of the hub's host may do everything, and nobody else anything",
        _ => {
            "without a rule the user of the hub's host may do everything, and holders of the key read, write, query, send and receive"
        }
    };
    say(&format!("{defaults}; new rules go to {}", text(&policy, "file")), &policy, false)
}

fn explain(hub: &Client, asked: &Explain, as_json: bool) -> Outcome {
    let found = hub.explain(&asked.who, &asked.verb, &asked.what).map_err(refused)?;
    let allowed = found["allowed"].as_bool().unwrap_or_default();
    let answer = if allowed { "may" } else { "may not" };
    let (who, verb, what) = (text(&found, "who"), text(&found, "verb"), text(&found, "what"));
    let lines = format!(
        "{who} {answer} {verb} {what}: {}\nto {} it: {}",
        text(&found, "why"),
        if allowed { "refuse" } else { "allow" },
        text(&found, "change")
    );
    if as_json {
        say("", &found, true)?;
    } else {
        lines.lines().try_for_each(|line| say(line, &found, false))?;
    }
    if allowed { Ok(()) } else { Err(Failure::Said) }
}

fn add(hub: &Client, effect: &str, rule: &Rule, as_json: bool) -> Outcome {
    let may: Vec<&str> = rule.may.split(',').map(str::trim).filter(|verb| !verb.is_empty()).collect();
    let mut body = json!({ "effect": effect, "who": rule.who, "may": may, "what": rule.what });
    if let Some(why) = &rule.why {
        body["why"] = json!(why);
    }
    let made = hub.add_rule(&body).map_err(refused)?;
    say(&described(&made), &made, as_json)
}

fn check(file: &Path, as_json: bool) -> Outcome {
    if !file.exists() {
        return Err(Failure::Failed(format!("{}: there is no such file", file.display())));
    }
    let read = PolicyFile::read(file).map_err(|error| Failure::Failed(error.to_string()))?;
    let rules = read.unwrap_or_default().rules.len();
    say(&format!("{}: {}, no fault", file.display(), counted(rules as u64, "rule")), &json!({ "rules": rules }), as_json)
}
