//! `tampu settings ...`: retention, quotas and routes of a hub, and their changes while it runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tampu_hub::setting_changes::{ChangeError, OfflineReset, SettingChanges, reset_offline};
use tampu_logbook::client::{Client, ClientError};
use tampu_types::terminal::harmless;

use super::{
    book::place::refused,
    hub_api::{HubApi, say},
    up::HubArgs,
};
use crate::{
    context::Context,
    failure::{Failure, Outcome},
    private,
};

/// Show and change retention, quotas and routes of a running hub
///
/// The hub of this host answers, or with --hub http://HOST:PORT another one, to administrators. A change overrides the configuration file until it is
/// reset, and the log names the person who made it. A tighter retention removes records, and needs --yes. Without a verb: list.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu settings\n  tampu settings set collector.keep_days 365 --yes\n  \
    tampu settings set quota.source '[{\"names\": \"CORR/*\", \"records_per_s\": 0}]'\n  \
    tampu settings set target '{\"night\": {\"files\": 3}}'\n  \
    tampu settings set route '[{\"min_level\": \"Error\", \"to\": [\"night\"]}]'\n  tampu settings reset collector.keep_days\n  \
    tampu settings reset route --offline --config /etc/tampu/tampu.toml")]
pub struct Settings {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    api: HubApi,
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
///
/// With --offline it is done in the files of a hub that does not run, as one that cannot start because of a change.
#[derive(Debug, Args)]
pub struct Reset {
    /// The setting to reset
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Reset it even if that removes records
    #[arg(long)]
    yes: bool,
    /// Reset it in the files of this host's hub, which does not run
    #[arg(long)]
    offline: bool,
    /// Reset all changes, also those that cannot be read; the former file is kept beside the new one
    #[arg(long, requires = "offline")]
    all: bool,
    /// With --offline: the hub's configuration file (TOML)
    #[arg(short, long, env = "TAMPU_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// With --offline: Tampu's data directory [env: TAMPU_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Settings {
    pub fn run(self, context: &Context) -> Outcome {
        let verb = self.verb.unwrap_or(Verb::List);
        if let Verb::Reset(reset) = &verb
            && reset.offline
        {
            return reset.offline(&self.api, context);
        }
        let hub = self.api.hub(context)?;
        let (settings, only) = match verb {
            Verb::List => (hub.settings(), None),
            Verb::Set(Set { name, value, yes }) => (set(&hub, &name, value, yes), Some(name)),
            Verb::Reset(Reset { name, yes, .. }) => {
                let name = name.unwrap_or_default();
                (hub.reset_setting(&name, yes), Some(name))
            }
        };
        let settings = settings.map_err(unconfirmed)?;
        if self.api.json {
            return say("", &settings, true);
        }
        let wanted = |(name, _): &(String, String)| only.as_ref().is_none_or(|only| is_of(name, only));
        let rows = rows(&settings).into_iter().filter(wanted);
        rows.map(|(_, line)| harmless(&line, false)).try_for_each(|line| say(&line, &settings, false))
    }
}

impl Reset {
    /// Resets changes in the files of a hub that does not run.
    fn offline(&self, api: &HubApi, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        if connect.hub.is_some() {
            return Err(Failure::Usage("--offline is for the files of this host's hub, so without --hub".to_owned()));
        }
        if api.running(context)?.is_some() {
            return Err(Failure::Failed("the hub runs: reset it without --offline, or stop the hub".to_owned()));
        }
        let hub = HubArgs { config: self.config.clone(), data: self.data.clone(), ..HubArgs::default() };
        let config = hub.load(connect)?;
        private::follow(&config.domain_data());
        let reset = reset_offline(&config, self.name.as_deref(), self.yes).map_err(|error| match error {
            ChangeError::Unconfirmed => Failure::Failed(format!("{error} (--yes does it)")),
            error => Failure::Failed(error.to_string()),
        })?;
        let Some(OfflineReset { file, names, kept }) = reset else {
            let what = self.name.as_ref().map_or_else(String::new, |name| format!(" of '{name}'"));
            let file = config.settings_file();
            return Err(Failure::Failed(harmless(&format!("{} has no change{what}", file.display()), false)));
        };
        let shown = |name: &String| harmless(name, false);
        let what = match names.as_slice() {
            [] => "all changes, which cannot be read".to_owned(),
            names => names.iter().map(shown).collect::<Vec<_>>().join(", "),
        };
        let kept_words = kept.as_ref().map(|kept| format!("; the former file is {}", kept.display())).unwrap_or_default();
        let unfit = SettingChanges::open(&config).err().map(|why| why.to_string());
        let told = json!({ "file": file, "reset": names, "kept": kept, "unfit": unfit });
        say(&format!("reset in {}: {what}{kept_words}", file.display()), &told, api.json)?;
        match unfit {
            Some(why) => Err(Failure::Failed(format!("the hub still cannot start: {why}"))),
            None => Ok(()),
        }
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
