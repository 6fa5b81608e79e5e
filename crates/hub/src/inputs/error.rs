//! Errors of the inputs.

use std::{io, net::SocketAddr};

/// Errors of starting an input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The address cannot be bound.
    #[error("cannot receive {input} messages at {address}: {why}{}", advice(.why))]
    Listen {
        /// The input's name.
        input: &'static str,
        address: SocketAddr,
        why: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread for {input} messages: {why}")]
    Worker {
        /// The input's name.
        input: &'static str,
        why: io::Error,
    },
}

fn advice(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::PermissionDenied => "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, or take a higher one",
        io::ErrorKind::AddrInUse => {
            "; another program has the port, perhaps this host's own syslog daemon: give another one in the configuration"
        }
        _ => "",
    }
}
