//! Rules by which users are mailed new entries, and their quiet hours.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_elog::pages::{Zone, mails::rule_test};
use tampu_logbook::{
    mail::MailError,
    notify::{NotifyError, NotifyRule, NotifySettings, QuietHours, rule, webhook},
    people::{Right, user::User},
};

use super::call::{Answer, Call, DELETE, GET, POST, PUT, Route, SHORT, json, nothing, ok};
use crate::http::{
    problem::Problem,
    route::{Content::Nothing, Login, json_of},
};

/// Routes of notifications.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/users/{login}/rules",
        id: "listNotifyRules",
        what: "Returns the rules by which a user is mailed new entries, and the quiet hours; the user's own, or for administrators of the site anybody's",
        gives: (200, json_of::<NotifySettings>()),
        login: Login::Required,
        act: |call| {
            let user = user(call)?;
            let mut settings = rule::read(&*call.api.store, &user.login)?;
            settings.rules.iter_mut().for_each(|rule| rule.secret = None);
            ok(&settings)
        },
        ..GET
    },
    Route {
        path: "/users/{login}/rules",
        id: "addNotifyRule",
        what: "Adds a rule; the logbook names it",
        takes: json_of::<NewRule>(),
        gives: (201, json_of::<NotifyRule>()),
        login: Login::Required,
        body: SHORT,
        act: add,
        ..POST
    },
    Route {
        path: "/users/{login}/rules/{rule}",
        id: "removeNotifyRule",
        what: "Removes a rule",
        gives: (204, Nothing),
        login: Login::Required,
        act: |call| {
            let user = user(call)?;
            rule::remove(&*call.api.store, &user.login, call.var(1))?;
            nothing()
        },
        ..DELETE
    },
    Route {
        path: "/users/{login}/rules/{rule}/test",
        id: "testNotifyRule",
        what: "Puts a mail for a test of a rule into the queue",
        gives: (200, json_of::<RuleTested>()),
        login: Login::Required,
        act: test,
        ..POST
    },
    Route {
        path: "/users/{login}/quiet",
        id: "setQuietHours",
        what: "Sets the quiet hours of a user; mails by rules wait for their end",
        takes: json_of::<QuietHours>(),
        gives: (204, Nothing),
        login: Login::Required,
        body: SHORT,
        act: set_quiet,
        ..PUT
    },
    Route {
        path: "/users/{login}/quiet",
        id: "dropQuietHours",
        what: "Removes the quiet hours of a user",
        gives: (204, Nothing),
        login: Login::Required,
        act: |call| {
            let user = user(call)?;
            rule::set_quiet(&*call.api.store, &user.login, None)?;
            nothing()
        },
        ..DELETE
    },
];

/// A rule to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRule {
    /// The logbook; without it, all logbooks that the user may read.
    #[serde(default)]
    book: Option<String>,
    /// The entries that the rule is about.
    #[serde(default)]
    about: tampu_logbook::notify::RuleAbout,
    /// A query that entries have to match.
    #[serde(default)]
    query: String,
    /// An address (https) that gets entries in place of mail; the site allows its host.
    #[serde(default)]
    webhook: Option<String>,
    /// The time at which mails are sent.
    #[serde(default)]
    digest: tampu_logbook::notify::Digest,
}

/// A mail for the test of a rule.
#[derive(Debug, Serialize, JsonSchema)]
struct RuleTested {
    /// The address of the user.
    to: String,
    /// The name of the mail in the queue.
    id: String,
}

/// Returns the user of the path: the caller, or for an administrator of the site any user.
fn user(call: &Call<'_>) -> Result<User, Problem> {
    let login = call.var(0);
    if login != call.who().login {
        call.need_admin()?;
    }
    Ok(call.api.people.user(login)?)
}

fn add(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewRule { book, about, query, webhook, digest } = call.json()?;
    let user = user(call)?;
    let mut new = NotifyRule { book, about, query, webhook, digest, ..NotifyRule::default() };
    if let Some(book) = &new.book {
        let rights = call.api.people.rights_of(Some(&user.login), None)?.rights;
        // A logbook that the user may not read is not there.
        let found = call.api.store.book(book).ok().filter(|book| rights.may(Right::Read, &book.name));
        let missing = || {
            let text = format!("there is no logbook '{}' that '{}' may read", book.escape_debug(), user.login);
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", text).at("body book")
        };
        new.book = Some(found.ok_or_else(missing)?.name);
    }
    let books = call.api.store.books()?;
    let attributes: Vec<String> = books.into_iter().flat_map(|info| info.book.attributes).map(|one| one.name).collect();
    new.check(&attributes)?;
    if let Some(url) = &new.webhook {
        webhook::check(url, &call.api.settings.webhook_hosts)?;
    }
    json(StatusCode::CREATED, &rule::add(&*call.api.store, &user.login, new)?)
}

fn test(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let user = user(call)?;
    let settings = rule::read(&*call.api.store, &user.login)?;
    let id = call.var(1);
    let missing = || NotifyError::NoRule { login: user.login.clone(), id: id.to_owned() };
    let rule = settings.rules.iter().find(|rule| rule.id == id).ok_or_else(missing)?;
    let outbox = call.api.mail.as_deref().ok_or(MailError::NotConfigured)?;
    let no_address = || {
        let text = format!("'{}' has no usable mail address", user.login);
        Problem::new(StatusCode::CONFLICT, "no-address", text).help("set it on the page Config, or with PATCH /users/{login}")
    };
    let sent = rule_test::send(outbox, &user, rule, &call.by().to_string())?.ok_or_else(no_address)?;
    ok(&RuleTested { to: sent.to, id: sent.id })
}

fn set_quiet(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let quiet: QuietHours = call.json()?;
    let user = user(call)?;
    if !quiet.zone.is_empty() {
        Zone::named(&quiet.zone).map_err(|why| Problem::bad("body zone", why.to_string()))?;
    }
    rule::set_quiet(&*call.api.store, &user.login, Some(quiet))?;
    nothing()
}

impl From<NotifyError> for Problem {
    fn from(error: NotifyError) -> Problem {
        match error {
            NotifyError::Store(error) => error.into(),
            NotifyError::Invalid(text) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", text),
            error @ NotifyError::NoRule { .. } => Problem::new(StatusCode::NOT_FOUND, "not-there", error.to_string()),
            error @ NotifyError::Busy(_) => Problem::new(StatusCode::CONFLICT, "busy", error.to_string()),
        }
    }
}
