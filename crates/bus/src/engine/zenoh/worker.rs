//! Starts the engine's threads.

use tampu_workers::{OnPanic, WorkerThread};

use super::settings::NAME;
use crate::engine::EngineError;

/// Starts a detached thread. A panic in it is reported.
pub(super) fn worker(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<(), EngineError> {
    WorkerThread::named(name).spawn(OnPanic::ReportOnly, work).map(drop).map_err(|why| EngineError::Refused {
        engine: NAME,
        doing: format!("starting the worker {name}"),
        why: why.to_string(),
    })
}
