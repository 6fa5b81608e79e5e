//! The transfers of `suite/transfers.rs`, over TCP.

mod support;

use tampu_bulk::message::{Cause, Transport};

/// The transport of the data.
pub const WAY: Transport = Transport::Tcp;

/// The causes in the reports of a skipped receiver.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");
