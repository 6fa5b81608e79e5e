//! Errors of starting the logbook.

use std::{io, net::SocketAddr};

use tampu_logbook::{export::pdf::PdfError, mail::MailError, people::PeopleError, store::StoreError};

use crate::login::LoginError;

/// Errors of starting the logbook.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The store cannot be opened.
    #[error("the logbook: {0}")]
    Store(#[from] StoreError),
    /// The users cannot be read.
    #[error("the logbook's users: {0}")]
    People(#[from] PeopleError),
    /// The sender of mail cannot start.
    #[error("the logbook's mail: {0}")]
    Mail(#[from] MailError),
    /// The layout of PDF cannot be used.
    #[error("the logbook's layout of PDF: {0}")]
    Pdf(Box<PdfError>),
    /// The zone of the configuration is unknown.
    #[error("the logbook's zone: {0}")]
    Zone(String),
    /// The address cannot be bound.
    #[error("the logbook cannot be served at {address}: {why}{}", listen_advice(.why))]
    Listen { address: SocketAddr, why: io::Error },
    /// A login method cannot be started.
    #[error("the logbook: {0}")]
    Login(#[from] LoginError),
    /// A thread cannot be started, or the file with the address cannot be written.
    #[error("the logbook: {what}: {why}")]
    Io {
        /// The part that failed.
        what: String,
        why: io::Error,
    },
}

/// Returns the remedy for an address that cannot be listened at.
fn listen_advice(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program has the port: give another one with --book-listen or --elog-listen ([book] listen, elog_listen), \
             or port 0 for any free one"
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, or take a higher one",
        io::ErrorKind::AddrNotAvailable => "; this computer has no such address",
        _ => "",
    }
}
