//! Responses to requests that failed or are not allowed.

use http::{StatusCode, header::HeaderValue};
use tampu_logbook::{
    people::{PeopleError, hashing},
    store::StoreError,
};

use crate::pages::{
    access::AccessDenied,
    html::{SafeHtml, put},
    layout, login_form,
    request::{BookRequest, PageRequest},
    response::{LoggedFailure, Response},
};

impl PageRequest<'_> {
    /// Rejects a change of a user who has made too many.
    pub(super) fn too_many_changes(&self, seconds: u32) -> Response {
        let text = format!("Error: too many changes by one user; the next one is possible in {seconds} s. Nothing was changed");
        let mut answer = layout::error(self, StatusCode::TOO_MANY_REQUESTS, &text);
        retry_after(&mut answer, u64::from(seconds));
        answer
    }

    pub(super) fn no_book(&self, name: &str) -> Response {
        layout::error(self, StatusCode::NOT_FOUND, &format!("The logbook \"{name}\" is not defined here"))
    }

    /// Answers a failure of the store. The page names only causes that a person can act on; the hub logs the rest.
    pub fn failed(&self, error: &StoreError) -> Response {
        let (status, text) = match error {
            StoreError::NoBook(name) => return self.no_book(name),
            // ELOG answers with status 200 here, and its programs look for the text.
            StoreError::Gone(gone) if gone.moved_to.as_ref().is_some_and(|to| !self.reads(&to.book)) => {
                (StatusCode::OK, format!("{}: entry {} was moved", self.word("This entry has been deleted"), gone.at))
            }
            StoreError::NoEntry(_) => {
                (StatusCode::OK, format!("{}, or never existed: {error}", self.word("This entry has been deleted")))
            }
            StoreError::Gone(_) => (StatusCode::OK, format!("{}: {error}", self.word("This entry has been deleted"))),
            StoreError::Query(_) => (StatusCode::NOT_FOUND, format!("Invalid search: {error}")),
            StoreError::Invalid(_) | StoreError::OtherSearch | StoreError::NoBlob(_) => {
                (StatusCode::BAD_REQUEST, error.to_string())
            }
            StoreError::BookChanged(_) => (StatusCode::CONFLICT, error.to_string()),
            StoreError::NoBookChange { .. } => (StatusCode::NOT_FOUND, error.to_string()),
            StoreError::Signed(_) | StoreError::SignedAlready { .. } => (StatusCode::CONFLICT, error.to_string()),
            StoreError::Changed { .. } | StoreError::Answered(_) | StoreError::Locked { .. } => {
                (StatusCode::OK, error.to_string())
            }
            StoreError::Full(_) | StoreError::OverQuota(_) => (StatusCode::INSUFFICIENT_STORAGE, error.to_string()),
            StoreError::Busy => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            full if full.is_disk_full() => {
                (StatusCode::INSUFFICIENT_STORAGE, "The disk of the logbook is full; nothing was changed".to_owned())
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "The logbook's store failed; the site's log says more".to_owned()),
        };
        let mut response = layout::error(self, status, &text);
        if matches!(error, StoreError::Busy) {
            retry_after(&mut response, 1);
            return response;
        }
        if status.is_server_error() {
            response.extensions_mut().insert(LoggedFailure(error.to_string()));
        }
        response
    }
}

impl BookRequest<'_> {
    /// Rejects a command that the caller may not use.
    pub fn refuse(&self, denied: AccessDenied) -> Response {
        match denied {
            AccessDenied::Login => login_form::answer(self, Some(&self.book)),
            AccessDenied::Forbidden(_) if self.origin.from_other_site => {
                let text =
                    "Error: a link on another site cannot change anything here: open a page of the logbook, or type the address";
                layout::error(self, StatusCode::FORBIDDEN, text)
            }
            AccessDenied::Forbidden(why) => layout::error(self, StatusCode::FORBIDDEN, &format!("Error: {why}")),
        }
    }
}

/// Answers a failed check of a user or password.
pub fn people_failed(request: &PageRequest<'_>, error: &PeopleError) -> Response {
    match error {
        PeopleError::Wait(time) | PeopleError::TooOften(time) => {
            let mut answer = layout::error(request, StatusCode::TOO_MANY_REQUESTS, &format!("Error: {error}"));
            retry_after(&mut answer, time.as_secs() + 1);
            answer
        }
        PeopleError::Busy => {
            let mut answer = layout::error(request, StatusCode::SERVICE_UNAVAILABLE, &format!("Error: {error}"));
            retry_after(&mut answer, u64::from(hashing::RETRY_AFTER));
            answer
        }
        PeopleError::Refused(why) => layout::error(request, StatusCode::FORBIDDEN, &format!("Error: {why}")),
        PeopleError::Store(error) => request.failed(error),
        PeopleError::User(_) | PeopleError::Password(_) | PeopleError::Invalid(_) | PeopleError::IsThere(_) => {
            layout::error(request, StatusCode::UNPROCESSABLE_ENTITY, &format!("Error: {error}"))
        }
        PeopleError::NoUser(_) | PeopleError::NoRegistration(_) => {
            layout::error(request, StatusCode::NOT_FOUND, &format!("Error: {error}"))
        }
        PeopleError::Away { method, .. } => {
            let text = format!(
                "Error: the login method '{method}' does not respond: try again later. Open sessions go on, and users of the \
                 logbook itself can log in"
            );
            let mut answer = layout::error(request, StatusCode::SERVICE_UNAVAILABLE, &text);
            retry_after(&mut answer, 10);
            answer
        }
        PeopleError::NotBound { .. }
        | PeopleError::NotRegistered { .. }
        | PeopleError::NameInUse { .. }
        | PeopleError::PasswordElsewhere { .. } => {
            layout::error(request, StatusCode::FORBIDDEN, &format!("Error: {error}: ask an administrator"))
        }
        PeopleError::NoProof { .. } => layout::error(request, StatusCode::FORBIDDEN, &format!("Error: {error}")),
        PeopleError::Unproved(why) => layout::error(request, StatusCode::FORBIDDEN, &format!("Error: {why}")),
        PeopleError::Wrong => layout::error(request, StatusCode::UNAUTHORIZED, &format!("Error: {error}")),
        other => {
            let mut answer = layout::error(request, StatusCode::INTERNAL_SERVER_ERROR, "Error: the site's log says more");
            answer.extensions_mut().insert(LoggedFailure(other.to_string()));
            answer
        }
    }
}

/// Answers with an error in HTML, in the element in which ELOG's programs search for it.
pub fn html_error(request: &PageRequest<'_>, status: StatusCode, html: &str) -> Response {
    let mut body = String::new();
    put!(&mut body, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", SafeHtml(html));
    layout::plain(request, status, "ELOG error", &body)
}

/// Sets the header with the seconds to wait.
fn retry_after(answer: &mut Response, seconds: u64) {
    answer.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
}
