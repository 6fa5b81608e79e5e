//! Routes, quotas and retention of this hub, with the places that set them.

use super::call::{Answer, Call, GET, Route, ok};
use crate::{
    config::shown::ShownSettings,
    http::{
        problem::Problem,
        route::{Login, json_of},
    },
};

/// The route of the settings.
pub const ROUTES: &[Route] = &[Route {
    path: "/settings",
    id: "showSettings",
    what: "Returns routes, quotas and retention of this hub: the values in force, the defaults, and the lines of the configuration",
    gives: (200, json_of::<ShownSettings>()),
    login: Login::Admin,
    act: show,
    ..GET
}];

fn show(call: &mut Call<'_>) -> Result<Answer, Problem> {
    ok(&call.api.hub_settings)
}
