//! `slog` with `slog-term`'s text behind `slog-async`. Its queue is made as long as spdlog's, and who finds it full waits.

use std::{fs::File, io::LineWriter, path::Path, sync::Mutex};

use slog::{Drain, Logger, o};
use slog_async::{Async, AsyncGuard, OverflowStrategy};
use slog_term::{FullFormat, PlainDecorator};

use crate::call::cost::Peer;

/// Records that may wait.
const QUEUE: usize = 8192;

/// A logger.
pub struct Slog {
    logger: Logger,
    guard: Mutex<AsyncGuard>,
}

impl Slog {
    /// Writing to this file.
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
        // The thread behind ends when nobody can log any more.
        drop(self.logger);
        drop(self.guard);
        Ok(true)
    }
}
