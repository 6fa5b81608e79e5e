//! `tracing` with `tracing-subscriber`'s text and `tracing-appender`'s thread. By default the appender drops records
//! when its queue is full. Here it waits, so that every logger of the table does the same work.

use std::{fs::File, path::Path};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

use crate::call::cost::Peer;

/// The process's subscriber.
#[derive(Debug)]
pub struct Tracing {
    guard: WorkerGuard,
}

impl Tracing {
    /// Creates a subscriber that writes to this file.
    pub fn to(path: &Path) -> Result<Tracing, String> {
        let file = File::options().create(true).append(true).open(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (writer, guard) = NonBlockingBuilder::default().lossy(false).finish(file);
        tracing_subscriber::fmt().with_writer(writer).with_ansi(false).try_init().map_err(|e| e.to_string())?;
        Ok(Tracing { guard })
    }
}

impl Peer for Tracing {
    fn hand(&self) -> impl FnMut(u64, u64, &'static str) {
        |number, angle, state| tracing::info!("antenna {} at {} is {}", number, angle, state)
    }

    fn finish(self) -> Result<bool, String> {
        drop(self.guard);
        Ok(true)
    }
}
