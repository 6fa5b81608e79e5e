//! The place of users for commands: the data themselves, or a hub's API.

use std::sync::Arc;

use serde_json::Value;
use tampu_logbook::{
    client::{Client, ClientError},
    people::{
        Access, People, PeopleError,
        registry::{Explanation, Settings},
        token::ApiToken,
        user::{User, UserInfo},
    },
    store::PeopleStore,
};

use super::super::place::{Place, failed, refused};
use super::passwords::own_password;
use crate::failure::{Failure, Outcome};

/// The place of users: a directory or database, or a hub's API.
pub(super) enum Keeper {
    Here(Box<People>),
    There(Client),
}

/// Converts an error of users.
pub(super) fn wrong(error: PeopleError) -> Failure {
    match error {
        PeopleError::Store(error) => failed(error),
        error => Failure::Failed(error.to_string()),
    }
}

/// Converts an answer to JSON.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::failed("an answer as JSON", error))
}

impl Keeper {
    pub(super) fn open(place: &Place) -> Result<Keeper, Failure> {
        if let Some(hub) = place.remote("")? {
            return Ok(Keeper::There(hub));
        }
        let store: Box<dyn PeopleStore> = place.make()?;
        let store: Arc<dyn PeopleStore> = Arc::from(store);
        Ok(Keeper::Here(Box::new(People::new(store, Settings::default()).map_err(wrong)?)))
    }

    pub(super) fn users(&self) -> Result<Vec<UserInfo>, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.users().map_err(wrong)?.iter().map(UserInfo::from).collect()),
            Keeper::There(hub) => hub.users().map_err(refused),
        }
    }

    pub(super) fn add(&self, user: User, password: Option<&str>) -> Outcome {
        match self {
            Keeper::Here(people) => {
                let password = password.map(tampu_logbook::people::password::Password::new).transpose();
                let password = password.map_err(|error| Failure::Failed(error.to_string()))?;
                people.add_user(User { password, ..user }).map_err(wrong)
            }
            Keeper::There(hub) => hub.add_user(&user, password).map_err(refused),
        }
    }

    pub(super) fn set_password(&self, login: &str, password: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.set_password(login, password).map_err(wrong),
            Keeper::There(hub) => hub.set_password(login, password).map_err(refused),
        }
    }

    pub(super) fn set_inactive(&self, login: &str, inactive: bool) -> Outcome {
        match self {
            Keeper::Here(people) => {
                people.change_user(login, |user| user.inactive = inactive).map_err(wrong)?;
                if inactive { people.end_sessions(login).map_err(wrong) } else { Ok(()) }
            }
            Keeper::There(hub) => hub.set_inactive(login, inactive).map_err(refused),
        }
    }

    pub(super) fn drop_user(&self, login: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.drop_user(login).map_err(wrong),
            Keeper::There(hub) => hub.drop_user(login).map_err(refused),
        }
    }

    pub(super) fn bind(&self, login: &str, method: &str, subject: &str) -> Outcome {
        match self {
            // The methods stand in the configuration of the hub.
            Keeper::Here(people) => people.bind_user(login, method, subject).map(drop).map_err(wrong),
            Keeper::There(hub) => hub.bind_user(login, method, subject).map_err(refused),
        }
    }

    pub(super) fn unbind(&self, login: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.unbind_user(login).map(drop).map_err(wrong),
            Keeper::There(hub) => hub.unbind_user(login).map_err(refused),
        }
    }

    pub(super) fn explain(&self, login: Option<&str>) -> Result<Explanation, Failure> {
        match self {
            Keeper::Here(people) => {
                let who = match login {
                    Some(login) => people.rights_of(Some(login), None),
                    None => people.owner(),
                };
                who.and_then(|who| people.explain(&who)).map_err(wrong)
            }
            Keeper::There(hub) => hub.explain_user(login).map_err(refused),
        }
    }

    pub(super) fn groups(&self) -> Result<Vec<(String, Vec<String>)>, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.groups().map_err(wrong)?.into_iter().collect()),
            Keeper::There(hub) => hub.groups().map_err(refused),
        }
    }

    pub(super) fn set_group(&self, name: &str, members: &[String]) -> Outcome {
        match self {
            Keeper::Here(people) => people.set_group(name, members).map_err(wrong),
            Keeper::There(hub) => hub.set_group(name, members).map_err(refused),
        }
    }

    pub(super) fn access(&self, book: &str) -> Result<Access, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.access(book).map_err(wrong)?.0),
            Keeper::There(hub) => hub.access(book).map_err(refused),
        }
    }

    pub(super) fn set_access(&self, book: &str, access: &Access) -> Outcome {
        match self {
            Keeper::Here(people) => people.set_access(book, access).map_err(wrong),
            Keeper::There(hub) => hub.set_access(book, access).map_err(refused),
        }
    }

    pub(super) fn tokens(&self, login: &str) -> Result<Vec<ApiToken>, Failure> {
        match self {
            Keeper::Here(people) => people.tokens(Some(login)).map_err(wrong),
            Keeper::There(hub) => hub.tokens(login).map_err(refused),
        }
    }

    pub(super) fn make_token(&self, token: ApiToken) -> Result<String, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.make_token(token).map_err(wrong)?.1),
            Keeper::There(hub) => match hub.make_token(&token, None) {
                Err(ClientError::Refused { kind, .. }) if kind == "no-password" => {
                    hub.make_token(&token, Some(&own_password()?)).map_err(refused)
                }
                made => made.map_err(refused),
            },
        }
    }

    pub(super) fn drop_token(&self, login: &str, id: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.drop_token(login, id).map_err(wrong),
            Keeper::There(hub) => hub.drop_token(login, id).map_err(refused),
        }
    }
}
