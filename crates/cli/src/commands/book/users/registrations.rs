//! Registrations that wait for an administrator, by command; and the users of an export.

use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use tampu_logbook::{
    client::ClientError,
    people::{People, registration::Registration, registry::Settings, user::User},
    store::PeopleStore,
};

use super::{
    super::{
        place::{Place, refused},
        text::shown,
    },
    keeper::{Keeper, to_json, wrong},
};
use crate::failure::{Failure, Outcome};

/// A registration by its id or login.
#[derive(Debug, Args)]
pub struct Registered {
    /// The id of the registration, or its login if only one registration has it
    pub registration: String,
}

impl Keeper {
    fn registrations(&self) -> Result<Vec<Registration>, Failure> {
        match self {
            Keeper::Here(people) => people.registrations().map_err(wrong),
            Keeper::There(hub) => hub.registrations().map_err(refused),
        }
    }

    /// Returns the registration with an id, or the only one with a login.
    fn registration(&self, named: &str) -> Result<Registration, Failure> {
        let all = self.registrations()?;
        let by_id: Vec<&Registration> = all.iter().filter(|waiting| waiting.id == named).collect();
        let by_login = || all.iter().filter(|waiting| waiting.login == named).collect();
        let found: Vec<&Registration> = if by_id.is_empty() { by_login() } else { by_id };
        let named = shown(named, false);
        match found[..] {
            [one] => Ok(one.clone()),
            [] => Err(Failure::Failed(format!("there is no registration '{named}'; 'tampu book users pending' lists them"))),
            _ => Err(Failure::Failed(format!(
                "{} registrations have the login '{named}': give the id of one; 'tampu book users pending' lists them",
                found.len()
            ))),
        }
    }

    /// Lists the registrations that wait.
    pub(super) fn show_registrations(&self, say: &mut dyn FnMut(String, Value) -> Outcome) -> Outcome {
        self.registrations()?.into_iter().try_for_each(|waiting| {
            let taken = if waiting.taken { "  [the login or name is taken]" } else { "" };
            let Registration { id, login, full_name, email, from, .. } = &waiting;
            let text = [id, login, full_name, email, from].map(|field| shown(field, false)).join("  ");
            say(format!("{text}{taken}"), to_json(&waiting)?)
        })
    }

    /// Makes the user of a registration, and returns the login.
    pub(super) fn approve(&self, named: &str) -> Result<String, Failure> {
        let Registration { id, login, .. } = self.registration(named)?;
        match self {
            Keeper::Here(people) => people.approve(&id).map(drop).map_err(wrong)?,
            Keeper::There(hub) => hub.approve(&id).map(drop).map_err(refused)?,
        }
        Ok(login)
    }

    /// Drops a registration, and returns its login.
    pub(super) fn refuse(&self, named: &str) -> Result<String, Failure> {
        let Registration { id, login, .. } = self.registration(named)?;
        match self {
            Keeper::Here(people) => people.refuse(&id).map(drop).map_err(wrong)?,
            Keeper::There(hub) => hub.refuse(&id).map_err(refused)?,
        }
        Ok(login)
    }
}

/// Returns the users for an export. A hub gives them to administrators only, and without their passwords.
pub(in crate::commands::book) fn of_export(place: &Place) -> Result<Vec<User>, Failure> {
    let Some(hub) = place.remote("")? else {
        let store: Box<dyn PeopleStore> = place.open()?;
        return People::new(Arc::from(store), Settings::default()).and_then(|people| people.users()).map_err(wrong);
    };
    match hub.users() {
        Ok(users) => Ok(users.into_iter().map(User::from).collect()),
        Err(ClientError::Refused { kind, .. }) if kind == "no-right" => {
            eprintln!("tampu: the export has no users: the hub lists them to administrators only");
            Ok(Vec::new())
        }
        Err(error) => Err(refused(error)),
    }
}

/// Returns the report of an action for programs.
pub(super) fn report(what: &str, login: &str) -> Value {
    json!({ what: login })
}
