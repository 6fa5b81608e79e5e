//! Retention, quotas and routes of this hub, with the places that set them, and their changes while it runs.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Answer, Call, DELETE, GET, PUT, Route, ok};
use crate::{
    config::shown::ShownSettings,
    http::{
        problem::Problem,
        route::{Login, json_of},
    },
    setting_changes::{Asked, ChangeError},
};

/// The routes of the settings.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/settings",
        id: "showSettings",
        what: "Returns routes, quotas and retention of this hub: the values in force, the defaults, the lines of the configuration, and the changes",
        gives: (200, json_of::<ShownSettings>()),
        login: Login::Admin,
        act: |call| ok(&shown(call)),
        ..GET
    },
    Route {
        path: "/settings/{name}",
        id: "changeSetting",
        what: "Changes a setting until it is reset; the hub uses it within a second. Returns all settings",
        query: CONFIRM,
        takes: json_of::<NewValue>(),
        gives: (200, json_of::<ShownSettings>()),
        login: Login::Admin,
        act: change,
        ..PUT
    },
    Route {
        path: "/settings/{name}",
        id: "resetSetting",
        what: "Takes the change of a setting back, so that the configuration file or the default sets it. Returns all settings",
        gives: (200, json_of::<ShownSettings>()),
        login: Login::Admin,
        query: CONFIRM,
        act: reset,
        ..DELETE
    },
];

/// The confirmation of a change that removes records.
const CONFIRM: &[(&str, &str, &str)] =
    &[("confirm", "boolean", "changes the setting even if that removes records; without it such a change is refused")];

/// A new value of a setting.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewValue {
    /// The value, as the configuration file has it; for `quota.source` and `route` a list of tables, for `target` a table
    /// of tables.
    pub value: Value,
}

fn shown(call: &Call<'_>) -> ShownSettings {
    let changes = &call.api.setting_changes;
    ShownSettings::of(changes.configured(), &changes.in_force())
}

fn change(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewValue { value } = call.json()?;
    let (by, from, confirmed) = (call.by(), call.auth.from.to_string(), call.flag("confirm")?);
    call.api.setting_changes.set(call.var(0), value, &Asked { by: &by, from: &from, confirmed })?;
    ok(&shown(call))
}

fn reset(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let (by, from, confirmed) = (call.by(), call.auth.from.to_string(), call.flag("confirm")?);
    if !call.api.setting_changes.reset(call.var(0), &Asked { by: &by, from: &from, confirmed })? {
        let why = format!("no change of '{}' overrides the configuration", call.var(0).escape_debug());
        return Err(Problem::new(StatusCode::NOT_FOUND, "no-change", why));
    }
    ok(&shown(call))
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Problem {
        let (status, kind) = match &error {
            ChangeError::Value(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad-setting"),
            ChangeError::Fixed(_) => (StatusCode::NOT_FOUND, "no-setting"),
            ChangeError::Elsewhere(_) | ChangeError::Closed => (StatusCode::CONFLICT, "not-here"),
            ChangeError::Removes { .. } => (StatusCode::CONFLICT, "removes-records"),
            ChangeError::File { .. } | ChangeError::Text { .. } | ChangeError::Gone { .. } | ChangeError::Unfit { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed")
            }
        };
        let problem = Problem::new(status, kind, error.to_string());
        if kind == "removes-records" { problem.help("to change it, add 'confirm=true' to the query") } else { problem }
    }
}
