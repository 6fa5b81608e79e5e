//! Routes, quotas and retention as people see them: each value with its source.
//!
//! Decision: values and defaults are taken from the configuration as it is serialized, by the names of the file. So a
//! view cannot differ from the settings that hold.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Config, Role};
use crate::setting_changes::{InForce, changeable_names, fixed_why};

/// Settings that decide how long data are kept.
const RETENTION: &[&str] = &[
    "collector.keep_days",
    "collector.keep_gb",
    "collector.keep_at_least_days",
    "collector.min_free_gb",
    "collector.keep_attached",
    "events.history",
    "events.keep",
    "events.leave_out",
    "events.longest_kb",
    "spool.per_source_mb",
    "spool.total_mb",
];

/// Settings that decide how much each source, user or logbook may have.
const QUOTAS: &[&str] = &[
    "quota.bytes_per_s",
    "quota.records_per_s",
    "quota.streams",
    "book.site_gb",
    "book.book_gb",
    "book.user_gb",
    "book.attachment_mb",
    "book.waiting_mb",
    "book.min_free_mb",
    "book.changes_per_minute",
    "book.changes_burst",
];

/// Routes, quotas and retention of a hub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownSettings {
    /// The hub's configuration file; null without one.
    pub file: Option<String>,
    /// True if this hub collects, so that its retention, quotas of sources and routes have an effect.
    pub collects: bool,
    /// Settings of the retention.
    pub retention: Vec<ShownSetting>,
    /// Settings of the limits of sources, users and logbooks.
    pub quotas: Vec<ShownSetting>,
    /// Quotas of some sources, `[[quota.source]]`; later ones override earlier ones.
    pub sources: Vec<ShownTable>,
    /// Routes of live records, `[[route]]`, in their order.
    pub routes: Vec<ShownTable>,
    /// Targets of the routes, `[target.NAME]`.
    pub targets: Vec<ShownTable>,
    /// Names of the settings that administrators can change while the hub runs; `quota.source`, `route` and `target` are
    /// such lists as a whole.
    pub changeable: Vec<String>,
    /// Changes that override the configuration file, by the names of the settings.
    pub changes: BTreeMap<String, ShownChange>,
    /// The version of the changes, as in the ETag.
    pub version: String,
}

/// A change of a setting while the hub ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownChange {
    /// Login of the person who changed it; of the hub's own user, the user's name.
    pub by: String,
    /// The time of the change, UTC.
    pub at: String,
}

/// A setting with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownSetting {
    /// Name in the file, such as `collector.keep_days`.
    pub name: String,
    /// The value in force.
    pub value: Value,
    /// The value without a line in the file.
    pub default: Value,
    /// Line of the file that sets it, if no change overrides it; null for the default.
    pub line: Option<usize>,
    /// The reason why only the configuration file sets it; null if administrators can change it, or if no setting of this
    /// hub can be changed.
    pub fixed: Option<String>,
}

/// A table of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShownTable {
    /// Name of the table, such as `target.night` or `route`.
    pub name: String,
    /// Its settings that differ from the defaults, as they stand in a file.
    pub value: Value,
    /// The line at which it begins.
    pub line: Option<usize>,
}

impl ShownSettings {
    /// Takes the settings in force on a hub.
    pub fn of(configured: &Config, in_force: &InForce) -> ShownSettings {
        let InForce { config, changes, .. } = in_force;
        // Plain structures always have a JSON.
        let json = |config: &Config| serde_json::to_value(config).unwrap_or_default();
        let (given, usual) = (json(config), json(&Config::default()));
        let at = |of: &Value, name: &str| of.pointer(&format!("/{}", name.replace('.', "/"))).cloned().unwrap_or_default();
        let settings = |names: &[&str]| {
            let setting = |name: &&str| ShownSetting {
                name: (*name).to_owned(),
                value: at(&given, name),
                default: at(&usual, name),
                line: config.lines.get(*name).copied().filter(|_| !changes.contains_key(*name)),
                fixed: fixed_why(configured, name).map(str::to_owned),
            };
            names.iter().map(setting).collect()
        };
        let list = |name: &str, usual: &Value| {
            let all = at(&given, name);
            let table = |(nth, value): (usize, &Value)| ShownTable {
                name: name.to_owned(),
                value: different(value, usual),
                line: config.lines.get(&format!("{name}[{nth}]")).copied().filter(|_| !changes.contains_key(name)),
            };
            all.as_array().into_iter().flatten().enumerate().map(table).collect()
        };
        let usual_target = serde_json::to_value(crate::routes::settings::TargetSettings::default()).unwrap_or_default();
        let usual_route = serde_json::to_value(crate::routes::settings::RouteSettings::default()).unwrap_or_default();
        let target = |(name, value): (&String, &Value)| {
            let name = format!("target.{name}");
            let inside = format!("{name}.");
            let is_changed = changes.contains_key("target");
            let lines = config.lines.iter().filter(|(setting, _)| setting.starts_with(&inside) && !is_changed);
            ShownTable { value: different(value, &usual_target), line: lines.map(|(_, line)| *line).min(), name }
        };
        ShownSettings {
            file: config.file.as_ref().map(|file| file.display().to_string()),
            collects: config.roles.contains(&Role::Collector),
            retention: settings(RETENTION),
            quotas: settings(QUOTAS),
            sources: list("quota.source", &Value::Null),
            routes: list("route", &usual_route),
            targets: at(&given, "target").as_object().into_iter().flatten().map(target).collect(),
            changeable: changeable_names(configured).into_iter().map(str::to_owned).collect(),
            changes: changes
                .iter()
                .map(|(name, one)| (name.clone(), ShownChange { by: one.by.clone(), at: one.at.clone() }))
                .collect(),
            version: in_force.version(),
        }
    }
}

/// Returns the members that differ from the defaults.
fn different(value: &Value, usual: &Value) -> Value {
    let members = value.as_object().into_iter().flatten();
    members
        .filter(|(name, value)| usual.get(name.as_str()) != Some(*value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::{config::lines::lines_of, setting_changes::Change};

    #[test]
    fn settings_have_their_values_and_sources() {
        let text = "[collector]\nkeep_days = 365\n[[quota.source]]\nnames = \"CORR/*\"\nrecords_per_s = 0\n\
            [[route]]\nmin_level = \"Error\"\nto = [\"night\"]\n[target.night]\nfile = \"/n.log\"\n";
        let config =
            Config { file: Some("/etc/t.toml".into()), lines: lines_of(text), ..Config::parse(text, Path::new("t")).unwrap() };
        let in_force = |config: &Config| InForce { config: config.clone(), changes: BTreeMap::new(), ignored: Vec::new() };
        let shown = ShownSettings::of(&config, &in_force(&config));
        let days = &shown.retention[0];
        assert_eq!((&days.value, &days.default, days.line), (&json!(365), &json!(0), Some(2)));
        assert_eq!((shown.file.as_deref(), shown.collects), (Some("/etc/t.toml"), true));
        assert!(shown.changeable.contains(&"route".to_owned()) && shown.changes.is_empty());
        let [sources, routes, targets] = [&shown.sources[0], &shown.routes[0], &shown.targets[0]];
        assert_eq!((&sources.value, sources.line), (&json!({"names": "CORR/*", "records_per_s": 0}), Some(3)));
        assert_eq!((&routes.value, routes.line), (&json!({"min_level": "Error", "to": ["night"]}), Some(6)));
        assert_eq!((targets.name.as_str(), &targets.value, targets.line), ("target.night", &json!({"file": "/n.log"}), Some(10)));

        // A change is not on a line of the file.
        let changed = Change { by: "user:zoe".to_owned(), at: "2026-11-30T00:00:00.000".to_owned(), value: json!(0) };
        let names = ["collector.keep_days", "route"];
        let changes = names.map(|name| (name.to_owned(), changed.clone())).into();
        let shown = ShownSettings::of(&config, &InForce { config: config.clone(), changes, ignored: Vec::new() });
        assert_eq!((shown.retention[0].line, shown.routes[0].line, shown.targets[0].line), (None, None, Some(10)));
        assert_eq!(shown.changes["route"].by, "user:zoe");
    }

    #[test]
    fn every_shown_setting_exists_and_has_a_default() {
        let config = Config::default();
        let shown =
            ShownSettings::of(&config, &InForce { config: config.clone(), changes: BTreeMap::new(), ignored: Vec::new() });
        for one in shown.retention.iter().chain(&shown.quotas) {
            assert!(!one.value.is_null() && one.value == one.default && one.line.is_none(), "{one:?}");
        }
        // A setting can be changed, or has the reason why it cannot.
        for one in shown.retention.iter().chain(&shown.quotas) {
            assert_eq!(one.fixed.is_none(), shown.changeable.contains(&one.name), "{one:?}");
        }
        assert!(shown.routes.is_empty() && shown.targets.is_empty() && shown.sources.is_empty() && shown.file.is_none());
    }
}
