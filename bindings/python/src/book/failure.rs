//! Errors of the logbook by their kind.

use pyo3::{create_exception, prelude::*};
use tampu_logbook::{client::ClientError, store::StoreError};

use crate::failure::TampuError;

create_exception!(tampu, BookError, TampuError, "A failure of the logbook. `status` and `kind` are those of the API.");
create_exception!(tampu, NotAllowed, BookError, "The caller lacks a right, or has to log in. `right` names it, if known.");
create_exception!(tampu, NotFound, BookError, "The thing is not there, or the caller may not read it.");
create_exception!(tampu, BookConflict, BookError, "The entry was changed by another user since it was read.");
create_exception!(tampu, Locked, BookError, "Another user edits the entry.");
create_exception!(tampu, NotValid, BookError, "The request is not valid: an unknown attribute, a bad query.");
create_exception!(tampu, Unreachable, BookError, "The hub cannot be reached, or does not answer.");

/// Text before the name of a right in the hub's refusals: of a user who lacks it, and of a token that is narrower.
const RIGHT: &str = "the right '";

/// Returns the right that a refusal names.
fn missing_right(detail: &str) -> Option<&str> {
    let (_, rest) = detail.split_once(RIGHT)?;
    Some(rest.split_once('\'')?.0)
}

/// Makes the exception of a failed request.
pub fn of_client(error: &ClientError) -> PyErr {
    let text = error.to_string();
    let (status, kind, detail) = match error {
        ClientError::Refused { status, kind, detail, .. } => (Some(*status), kind.as_str(), detail.as_str()),
        _ => (None, "", ""),
    };
    let made = match (status, error) {
        (Some(401 | 403), _) => NotAllowed::new_err(text),
        (Some(404 | 410), _) => NotFound::new_err(text),
        (Some(412), _) => BookConflict::new_err(text),
        (Some(423), _) => Locked::new_err(text),
        (Some(400 | 409 | 413 | 415 | 422), _) => NotValid::new_err(text),
        (None, ClientError::Unreachable { .. }) => Unreachable::new_err(text),
        _ => BookError::new_err(text),
    };
    Python::attach(|py| {
        let value = made.value(py);
        let set = value
            .setattr("status", status)
            .and_then(|()| value.setattr("kind", kind))
            .and_then(|()| value.setattr("right", missing_right(detail)));
        set.map_or_else(|other| other, |()| made.clone_ref(py))
    })
}

/// Makes the exception of an error of the client's traits.
pub fn of_store(error: StoreError) -> PyErr {
    match error {
        StoreError::Client(error) => of_client(&error),
        error => local(error),
    }
}

/// Makes the exception of a failure on this side.
pub fn local(error: impl std::fmt::Display) -> PyErr {
    let made = BookError::new_err(error.to_string());
    Python::attach(|py| {
        let value = made.value(py);
        let set = value
            .setattr("status", py.None())
            .and_then(|()| value.setattr("kind", ""))
            .and_then(|()| value.setattr("right", py.None()));
        set.map_or_else(|other| other, |()| made.clone_ref(py))
    })
}
