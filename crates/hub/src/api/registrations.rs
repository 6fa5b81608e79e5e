//! Registrations that wait for an administrator.

use http::StatusCode;
use tampu_logbook::people::{Registration, user::UserInfo};

use super::call::{DELETE, GET, POST, Route, json, nothing, ok};
use crate::http::route::{Content::Nothing, Login, json_of};

/// Routes of registrations.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/registrations",
        id: "listRegistrations",
        what: "Lists the registrations that wait for approval, the oldest first",
        gives: (200, json_of::<Vec<Registration>>()),
        login: Login::Admin,
        act: |call| ok(&call.api.people.registrations()?),
        ..GET
    },
    Route {
        path: "/registrations/{id}/approve",
        id: "approveRegistration",
        what: "Makes the user of a registration, with the password that the person chose",
        gives: (201, json_of::<UserInfo>()),
        login: Login::Admin,
        act: |call| json(StatusCode::CREATED, &UserInfo::from(&call.api.people.approve(call.var(0))?)),
        ..POST
    },
    Route {
        path: "/registrations/{id}",
        id: "refuseRegistration",
        what: "Drops a registration",
        gives: (204, Nothing),
        login: Login::Admin,
        act: |call| {
            call.api.people.refuse(call.var(0))?;
            nothing()
        },
        ..DELETE
    },
];
