//! Retention, quotas and routes of this hub, with the places that set them, and their changes while it runs.

use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Answer, Call, DELETE, GET, PUT, Route, ok};
use crate::{
    config::shown::ShownSettings,
    http::{
        headers::set,
        problem::{Problem, Removals},
        route::{IfMatch, Login, json_of},
    },
    setting_changes::{Asked, ChangeError},
};

mod removal;

/// The routes of the settings.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/settings",
        id: "showSettings",
        what: "Returns routes, quotas and retention of this hub: the values in force, the defaults, the lines of the configuration, and the changes",
        gives: (200, json_of::<ShownSettings>()),
        login: Login::Admin,
        act: |call| shown(call),
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
        if_match: IfMatch::Optional,
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
        if_match: IfMatch::Optional,
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

/// Answers with all settings; the ETag is the version of the changes.
fn shown(call: &Call<'_>) -> Result<Answer, Problem> {
    let changes = &call.api.setting_changes;
    let shown = ShownSettings::of(changes.configured(), &changes.in_force());
    let mut answer = ok(&shown)?;
    set(answer.headers_mut(), header::ETAG, &format!("\"{}\"", shown.version));
    Ok(answer)
}

/// Returns the version that the caller has read, if the caller names one.
fn version<'c>(call: &'c Call<'_>) -> Option<&'c str> {
    let said = call.head.headers.get(header::IF_MATCH)?.to_str().unwrap_or_default().trim();
    (said != "*").then(|| said.trim_matches('"'))
}

fn change(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewValue { value } = call.json()?;
    let (by, from, confirmed) = (call.by(), call.auth.from.to_string(), call.flag("confirm")?);
    let asked = Asked { by: &by, from: &from, confirmed, version: version(call) };
    call.api.setting_changes.set(call.var(0), value, &asked).map_err(|error| refused(call, error))?;
    shown(call)
}

fn reset(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let (by, from, confirmed) = (call.by(), call.auth.from.to_string(), call.flag("confirm")?);
    let asked = Asked { by: &by, from: &from, confirmed, version: version(call) };
    if !call.api.setting_changes.reset(call.var(0), &asked).map_err(|error| refused(call, error))? {
        let why = format!("no change of '{}' overrides the configuration", call.var(0).escape_debug());
        return Err(Problem::new(StatusCode::NOT_FOUND, "no-change", why));
    }
    shown(call)
}

/// Returns the problem of a change. One that removes records names them.
fn refused(call: &Call<'_>, error: ChangeError) -> Problem {
    let removes = match &error {
        ChangeError::Removes { retention, .. } => removal::of(&call.api.bus, retention),
        _ => None,
    };
    let mut problem = Problem::from(error);
    if let Some(removes) = removes {
        problem.detail = format!("{}; {}", problem.detail, removal::words(&removes));
        problem.removes = Some(Box::new(Removals(removes)));
    }
    problem
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Problem {
        let (status, kind) = match &error {
            ChangeError::Value(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad-setting"),
            ChangeError::Fixed { .. } => (StatusCode::NOT_FOUND, "no-setting"),
            ChangeError::Elsewhere(_) | ChangeError::Closed => (StatusCode::CONFLICT, "not-here"),
            ChangeError::Changed => (StatusCode::PRECONDITION_FAILED, "changed"),
            ChangeError::Removes { .. } | ChangeError::Unconfirmed => (StatusCode::CONFLICT, "removes-records"),
            ChangeError::Unsynced { .. } | ChangeError::Uncopied { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "changed-unsafely")
            }
            ChangeError::File { .. }
            | ChangeError::Text { .. }
            | ChangeError::Gone { .. }
            | ChangeError::Lost { .. }
            | ChangeError::Running { .. }
            | ChangeError::Archive(_)
            | ChangeError::Unfit { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        };
        let problem = Problem::new(status, kind, error.to_string());
        match error {
            ChangeError::Removes { .. } => problem.help("to change it, add 'confirm=true' to the query"),
            ChangeError::Changed => problem.at("header If-Match").help("read them again, and change what holds now"),
            _ => problem,
        }
    }
}
