//! `tampu settings ...`: retention, quotas and routes of a hub, and their changes while it runs.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::Value;
use tampu_logbook::client::{Client, ClientError};
use tampu_types::terminal::harmless;

use super::book::place::{Place, refused};
use crate::{
    connect::from_environment,
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Show and change retention, quotas and routes of a running hub
///
/// The hub of this host answers, or with --hub http://HOST:PORT another one, to administrators. A change overrides the configuration file until it is
/// reset, and the log names the person who made it. A tighter retention removes records, and needs --yes. Without a verb: list.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu settings\n  tampu settings set collector.keep_days 365 --yes\n  \
    tampu settings set quota.source '[{\"names\": \"CORR/*\", \"records_per_s\": 0}]'\n  \
    tampu settings set target '{\"night\": {\"files\": 3}}'\n  \
    tampu settings set route '[{\"min_level\": \"Error\", \"to\": [\"night\"]}]'\n  tampu settings reset collector.keep_days")]
pub struct Settings {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Write the answer as JSON
    #[arg(long, global = true)]
    json: bool,
    /// With --hub: the token of an administrator [env: TAMPU_BOOK_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the settings in force with their sources (the default)
    List,
    Set(Set),
    Reset(Reset),
}

/// Change a setting; the hub uses it within a second
#[derive(Debug, Args)]
pub struct Set {
    /// The setting, such as collector.keep_days, quota.records_per_s, quota.source, route or target
    name: String,
    /// The value as JSON; other texts are texts
    value: String,
    /// Change it even if that removes records
    #[arg(long)]
    yes: bool,
}

/// Take a change back: the configuration file or the default sets it again
#[derive(Debug, Args)]
pub struct Reset {
    /// The setting to reset
    name: String,
    /// Reset it even if that removes records
    #[arg(long)]
    yes: bool,
}

impl Settings {
    pub fn run(self, context: &Context) -> Outcome {
        let token = self.token.map_or_else(|| from_environment("TAMPU_BOOK_TOKEN"), |token| Ok(Some(token)))?;
        let place = Place::find(&context.common.connect, None, token)?;
        let hub = place.remote("")?.ok_or_else(|| {
            Failure::Unreachable(
                "no hub with the role book runs on this host; start one with 'tampu up', or name one with --hub http://HOST:PORT"
                    .to_owned(),
            )
        })?;
        let (settings, only) = match self.verb.unwrap_or(Verb::List) {
            Verb::List => (hub.settings(), None),
            Verb::Set(Set { name, value, yes }) => (set(&hub, &name, value, yes), Some(name)),
            Verb::Reset(Reset { name, yes }) => (hub.reset_setting(&name, yes), Some(name)),
        };
        let settings = settings.map_err(unconfirmed)?;
        if self.json {
            return say(&settings.to_string());
        }
        let wanted = |(name, _): &(String, String)| only.as_ref().is_none_or(|only| is_of(name, only));
        rows(&settings).into_iter().filter(wanted).try_for_each(|(_, line)| say(&harmless(&line, true)))
    }
}

fn set(hub: &Client, name: &str, value: String, confirm: bool) -> Result<Value, ClientError> {
    hub.change_setting(name, &serde_json::from_str(&value).unwrap_or(Value::String(value)), confirm)
}

/// Names the flag that confirms a change.
fn unconfirmed(error: ClientError) -> Failure {
    match error {
        ClientError::Refused { kind, detail, .. } if kind == "removes-records" => {
            Failure::Failed(format!("{detail} (--yes does it)"))
        }
        error => refused(error),
    }
}

fn say(line: &str) -> Outcome {
    written(writeln!(io::stdout(), "{line}"))
}

/// Returns true for a setting, and for the tables of a list of this name.
fn is_of(name: &str, only: &str) -> bool {
    name == only || only == "target" && name.starts_with("target.")
}

/// Returns the settings and tables with their names, a line for each.
fn rows(settings: &Value) -> Vec<(String, String)> {
    let all = |of: &str| settings[of].as_array().cloned().unwrap_or_default();
    let parts = ["retention", "quotas", "sources", "routes", "targets"];
    parts.iter().flat_map(|part| all(part)).map(|one| row(settings, &one)).collect()
}

fn row(settings: &Value, one: &Value) -> (String, String) {
    let name = one["name"].as_str().unwrap_or_default().to_owned();
    let list = name.split_once('.').filter(|(of, _)| *of == "target").map_or(name.as_str(), |(of, _)| of);
    let change = &settings["changes"][list];
    let source = match (change["by"].as_str(), one["line"].as_u64()) {
        (Some(by), _) => format!("changed by {by} at {}", change["at"].as_str().unwrap_or_default()),
        (None, Some(line)) => format!("line {line} of {}", settings["file"].as_str().unwrap_or_default()),
        (None, None) => "default".to_owned(),
    };
    let value = &one["value"];
    (name.clone(), format!("{name} = {value}  ({source})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_setting_has_its_value_and_source() {
        let settings = json!({
            "file": "/etc/tampu.toml",
            "retention": [{ "name": "collector.keep_days", "value": 30, "default": 0, "line": 2 },
                          { "name": "collector.keep_gb", "value": 0, "default": 0, "line": null }],
            "quotas": [], "sources": [],
            "routes": [{ "name": "route", "value": { "to": ["night"] }, "line": null }],
            "targets": [{ "name": "target.night", "value": {}, "line": null }],
            "changes": { "target": { "by": "user:zoe", "at": "2026-11-30T00:00:00.000" } },
        });
        let lines: Vec<String> = rows(&settings).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                "collector.keep_days = 30  (line 2 of /etc/tampu.toml)",
                "collector.keep_gb = 0  (default)",
                "route = {\"to\":[\"night\"]}  (default)",
                "target.night = {}  (changed by user:zoe at 2026-11-30T00:00:00.000)",
            ]
        );
        assert!(is_of("target.night", "target") && !is_of("route", "target") && is_of("route", "route"));
    }
}
