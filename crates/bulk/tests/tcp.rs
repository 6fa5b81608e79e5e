//! The transfers of `suite/transfers.rs`, over TCP.

mod support;

use tampu_bulk::message::{Cause, Transport};

/// The transport of the data.
pub const WAY: Transport = Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

/// The causes in the reports of a skipped receiver.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");
