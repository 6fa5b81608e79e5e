//! Errors of bulk data, which name the flow and the addresses of its receivers.

use pyo3::{create_exception, prelude::*};
use tampu_bulk::{
    directory::AnnounceError,
    receiver::OpenError,
    sender::{Flow, SendError},
};

use crate::failure::TampuError;

create_exception!(tampu, BulkError, TampuError, "A failure of bulk data. `flow` and `addresses` say where.");
create_exception!(tampu, NoReceiver, BulkError, "A transfer needs more receivers than are connected.");
create_exception!(tampu, NobodyLeft, BulkError, "All receivers of a transfer are gone, or do not want it.");
create_exception!(tampu, WrongOrder, BulkError, "The call is not possible now: data before a start, a second stop.");
create_exception!(tampu, Cancelled, BulkError, "A command of another program has stopped the transfer.");
create_exception!(tampu, NotOffered, BulkError, "No program offers the control, or none has answered in time.");
create_exception!(tampu, Closed, BulkError, "The sender or receiver was closed.");
create_exception!(tampu, CannotListen, BulkError, "A receiver cannot have the address it shall listen at.");
create_exception!(tampu, Denied, BulkError, "The access rules of the site keep this program from the stream.");

/// Kind of an exception.
#[derive(Clone, Copy)]
pub enum Kind {
    Other,
    NoReceiver,
    NobodyLeft,
    WrongOrder,
    Cancelled,
    NotOffered,
    Closed,
    CannotListen,
    Denied,
}

/// Makes an exception.
pub fn raise(kind: Kind, text: String, flow: Option<&str>, addresses: Vec<String>) -> PyErr {
    let error = match kind {
        Kind::Other => BulkError::new_err(text),
        Kind::NoReceiver => NoReceiver::new_err(text),
        Kind::NobodyLeft => NobodyLeft::new_err(text),
        Kind::WrongOrder => WrongOrder::new_err(text),
        Kind::Cancelled => Cancelled::new_err(text),
        Kind::NotOffered => NotOffered::new_err(text),
        Kind::Closed => Closed::new_err(text),
        Kind::CannotListen => CannotListen::new_err(text),
        Kind::Denied => Denied::new_err(text),
    };
    Python::attach(|py| {
        let value = error.value(py);
        value
            .setattr("flow", flow)
            .and_then(|()| value.setattr("addresses", addresses))
            .map_or_else(|other| other, |()| error.clone_ref(py))
    })
}

/// Makes the exception of any other failure.
pub fn other(error: impl std::fmt::Display) -> PyErr {
    raise(Kind::Other, error.to_string(), None, Vec::new())
}

/// Makes the exception of a closed sender or receiver.
pub fn closed(what: &str) -> PyErr {
    raise(Kind::Closed, format!("the {what} is closed"), None, Vec::new())
}

/// Makes the exception of a call of a flow.
pub fn of_sending(error: &SendError, flow: &Flow) -> PyErr {
    let kind = match error {
        SendError::Misuse(_) => Kind::WrongOrder,
        SendError::NoReceiver { .. } => Kind::NoReceiver,
        SendError::NobodyLeft { .. } => Kind::NobodyLeft,
        SendError::Cancelled { .. } => Kind::Cancelled,
        SendError::Closed => Kind::Closed,
    };
    let name = flow.name().as_str();
    let text = match error {
        SendError::Misuse(_) | SendError::Closed => format!("flow '{name}': {error}"),
        _ => error.to_string(),
    };
    let addresses = flow.state().receivers.into_iter().map(|link| link.receiver.address).filter(|text| !text.is_empty());
    raise(kind, text, Some(name), addresses.collect())
}

/// Makes the exception of a sender or receiver that could not be opened.
pub fn of_opening(error: &OpenError) -> PyErr {
    match error {
        OpenError::Listen { address, .. } => raise(Kind::CannotListen, error.to_string(), None, vec![address.to_string()]),
        OpenError::Twice(flow) => raise(Kind::Other, error.to_string(), Some(flow.as_str()), Vec::new()),
        OpenError::Group { flow, .. } => raise(Kind::Other, error.to_string(), Some(flow.as_str()), Vec::new()),
        _ => other(error),
    }
}

/// Makes the exception of a failed announcement.
pub fn of_announcing(error: &AnnounceError) -> PyErr {
    match error {
        AnnounceError::Denied(_) => raise(Kind::Denied, error.to_string(), None, Vec::new()),
        AnnounceError::Open(error) => of_opening(error),
        _ => other(error),
    }
}
