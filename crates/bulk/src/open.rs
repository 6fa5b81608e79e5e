//! Opening senders and receivers: errors, worker threads, random tokens.

use std::{io, net::SocketAddr, thread::JoinHandle};

use tampu_workers::{OnPanic, WorkerThread};

use crate::name::Name;

/// Errors of opening a sender or receiver.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The listener could not be bound.
    #[error("cannot listen at {address}: {why}; choose another port, or 0 for any that is free")]
    Listen {
        /// Address to listen at.
        address: SocketAddr,
        /// Error of the system.
        why: io::Error,
    },
    /// Two flows have one name.
    #[error("the stream has two flows called '{0}'")]
    Twice(Name),
    /// The settings of the flow exclude a multicast group, or the group cannot be reached.
    #[error("flow '{flow}' cannot be sent to a group: {why}")]
    Group {
        /// Name of the flow.
        flow: Name,
        /// Reason of the failure.
        why: String,
    },
    /// A thread could not be started, or there are no random bytes.
    #[error("{doing}: {why}")]
    System {
        /// Action that failed.
        doing: &'static str,
        /// Error of the system.
        why: io::Error,
    },
}

/// Returns random bytes of the system, for tokens and keys.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], OpenError> {
    use std::io::Read;
    let mut bytes = [0; N];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|why| OpenError::System { doing: "reading /dev/urandom", why })?;
    Ok(bytes)
}

/// Starts a thread of the stream. A panic in it is reported and ends it.
pub(crate) fn spawn(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let spawned = WorkerThread::named(name).spawn(OnPanic::ReportOnly, work);
    spawned.map_err(|why| OpenError::System { doing: "starting a thread", why })
}
