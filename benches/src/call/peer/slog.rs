//! `slog` with `slog-term`'s text behind `slog-async`. Its queue is as long as spdlog's, and a caller that finds it
//! full waits.

use std::{fs::File, io::LineWriter, path::Path, sync::Mutex};

use slog::{Drain, Logger, o};
use slog_async::{Async, AsyncGuard, OverflowStrategy};
use slog_term::{FullFormat, PlainDecorator};

use crate::call::cost::Peer;

/// Length of the queue in records.
const QUEUE: usize = 8192;

pub struct Slog {
    logger: Logger,
    guard: Mutex<AsyncGuard>,
}

impl Slog {
    /// Creates a logger that writes to this file.
    pub fn to(path: &Path) -> Result<Slog, String> {
        let file = File::options().create(true).append(true).open(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let text = FullFormat::new(PlainDecorator::new(LineWriter::new(file))).build().fuse();
        let (behind, guard) = Async::new(text).chan_size(QUEUE).overflow_strategy(OverflowStrategy::Block).build_with_guard();
        Ok(Slog { logger: Logger::root(behind.fuse(), o!()), guard: Mutex::new(guard) })
    }
}

impl Peer for Slog {
    fn hand(&self) -> impl FnMut(u64, u64, &'static str) {
        let logger = self.logger.clone();
        move |number, angle, state| slog::info!(logger, "antenna {} at {} is {}", number, angle, state)
    }

    fn finish(self) -> Result<bool, String> {
        // The thread behind it ends when the last logger is dropped.
        drop(self.logger);
        drop(self.guard);
        Ok(true)
    }
}
