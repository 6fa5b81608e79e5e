//! Registrations that wait for an administrator.

use http::StatusCode;
use tampu_logbook::{
    mail::accounts::approved,
    people::{Registration, user::UserInfo},
};

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
        act: |call| {
            let user = call.api.people.approve(call.var(0))?;
            let site = call.api.settings.elog_url.trim_end_matches('/');
            if let (Some(outbox), Some(mail)) = (&call.api.mail, approved(&user, site))
                && let Err(error) = outbox.send(&mail)
            {
                outbox.log_failure(format!("the approval of '{}' was not mailed: {error}", user.login));
            }
            json(StatusCode::CREATED, &UserInfo::from(&user))
        },
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
