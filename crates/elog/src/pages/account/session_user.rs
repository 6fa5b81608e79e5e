//! The user of a request's session, whom pages about accounts ask for.

use http::StatusCode;
use tampu_logbook::people::{People, PeopleError, Principal, user::User};

use crate::pages::{layout, login_form, refusal, request::PageRequest, response::Response};

/// The user of a request's session.
pub struct SessionUser<'a> {
    pub people: &'a People,
    /// The user, or the owner of a site without users.
    pub principal: Principal,
}

impl<'a> SessionUser<'a> {
    /// Returns the user of the session, or the response that asks for a login.
    pub fn of(request: &PageRequest<'a>) -> Result<SessionUser<'a>, Box<Response>> {
        let site = request.site;
        let Some(people) = &site.people else {
            let text = "Error: this site has no users";
            return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
        };
        let Some(secret) = &request.session else { return Err(Box::new(login_form::answer(request, None))) };
        match people.by_session(secret) {
            // A request can have other credentials beside the cookie.
            Ok(principal) if principal.login == request.caller.login => Ok(SessionUser { people, principal }),
            Ok(_) | Err(PeopleError::Ended(..)) => Err(Box::new(login_form::answer(request, None))),
            Err(error) => Err(Box::new(refusal::people_failed(request, &error))),
        }
    }

    /// Returns the record of the user. The owner of a site without users has none.
    pub fn user(&self, request: &PageRequest<'_>) -> Result<User, Box<Response>> {
        match self.people.user(&self.principal.login) {
            Ok(user) => Ok(user),
            Err(PeopleError::NoUser(_)) => {
                let text =
                    "There are no users yet, and you are the owner: 'tampu book users add LOGIN --admin' adds the first one";
                Err(Box::new(layout::error(request, StatusCode::NOT_FOUND, text)))
            }
            Err(error) => Err(Box::new(refusal::people_failed(request, &error))),
        }
    }
}
