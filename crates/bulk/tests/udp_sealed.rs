//! The transfers of `suite/transfers.rs`, as encrypted datagrams.

mod support;

use tampu_bulk::message::{Cause, Transport};

/// The transport of the data.
pub const WAY: Transport = Transport::Udp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Encrypted;

/// The causes in the reports of a skipped receiver.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");
