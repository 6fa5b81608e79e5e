//! The caller of a request, for pages that people read: a principal with its full name and groups.

use std::net::IpAddr;

use super::Rights;

/// The person or program that sent a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The login; empty for a guest.
    pub login: String,
    /// The full name of the user.
    pub full_name: String,
    /// The mail address, or an empty text.
    pub email: String,
    /// The client's address; behind a trusted proxy, the address that the proxy reports.
    pub from: IpAddr,
    /// The rights by book, as read when the request arrived.
    pub rights: Rights,
}
