//! Filters that users save under names.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::people::log_filter::{LogFilter, MOST};

use crate::{
    api::call::{Answer, Call, nothing, ok},
    http::problem::Problem,
};

/// Longest name of a filter, in characters.
const NAME: usize = 128;
/// Longest filter, in bytes.
const FILTER: usize = 4096;

#[derive(Serialize, JsonSchema)]
pub struct SavedFilter {
    name: String,
    /// The filter, in the options of `tampu log query`.
    filter: String,
    /// True if all users see it.
    shared: bool,
    /// The login of the user who saved it.
    owner: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterToSave {
    /// The filter, in the options of `tampu log query`.
    filter: String,
    /// True if all users shall see it.
    #[serde(default)]
    shared: bool,
}

/// Lists the caller's filters, and those that others share.
pub fn list(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let all = call.api.people.log_filters(&call.who().login)?.into_iter();
    let shown = |(owner, LogFilter { name, filter, shared })| SavedFilter { name, filter, shared, owner };
    ok(&all.map(shown).collect::<Vec<_>>())
}

/// Saves a filter of the caller.
pub fn save(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let FilterToSave { filter, shared } = call.json()?;
    let (owner, name) = (call.who().login.clone(), call.var(0).trim().to_owned());
    if name.is_empty() || name.chars().count() > NAME || name.chars().any(char::is_control) {
        return Err(Problem::bad("path name", format!("a name has 1 to {NAME} characters, and no control characters")));
    }
    if filter.len() > FILTER || filter.chars().any(char::is_control) {
        return Err(Problem::bad("body filter", format!("a filter has at most {FILTER} bytes, in one line")));
    }
    let saved = LogFilter { name: name.clone(), filter: filter.clone(), shared };
    if !call.api.people.save_log_filter(&owner, &saved)? {
        let full = Problem::new(StatusCode::CONFLICT, "full", format!("you have {MOST} saved filters"));
        return Err(full.help("delete some of them"));
    }
    ok(&SavedFilter { name, filter, shared, owner })
}

/// Deletes a filter of the caller.
pub fn remove(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let gone = || Problem::new(StatusCode::NOT_FOUND, "not-there", "you have no saved filter of this name");
    call.api.people.drop_log_filter(&call.who().login, call.var(0))?.then_some(()).ok_or_else(gone)?;
    nothing()
}
