//! The transfers of `suite/transfers.rs`, over TCP.

mod support;

use tampu_bulk::message::{Cause, Transport};

/// Which way data goes.
pub const WAY: Transport = Transport::Tcp;

/// How what a skipped receiver has lost is told.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");
