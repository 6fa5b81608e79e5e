//! The node's work for the records of its host: the keeper of log rings, and the spool.

use std::{path::Path, sync::Arc, time::Duration};

use tampu_bus::{Participant, run_dir::DomainDir};
use tampu_log::{
    Logger, alert, debug, info, notice,
    recovery::{News, RingKeeper},
    spool::{self, Spool, SpoolOptions},
    warning,
};
use tampu_workers::OnPanic;

use super::error::HubError;
use crate::config::Config;

/// Starts the keeper of the log rings of this host's processes.
pub(super) fn keep_rings(dir: &DomainDir, participant: Participant, logger: Logger) -> Result<RingKeeper, HubError> {
    let tell = move |path: &Path, news: News| match news {
        News::Recovered(recovered) if recovered.ended && recovered.damage.is_empty() => {
            debug!(logger, "{} ended; {} records recovered from its log rings", recovered.source, recovered.records);
        }
        News::Recovered(recovered) if recovered.damage.is_empty() => {
            info!(logger, "{} died; {} records recovered from its log rings", recovered.source, recovered.records);
        }
        News::Recovered(recovered) => {
            warning!(logger, "{} died; {} records recovered from its log rings, not all", recovered.source, recovered.records; damage = recovered.damage.join("; "));
        }
        News::NotRecovered(why) => warning!(logger, "log rings in {} are not recovered: {why}", path.display()),
        News::Adopted { source, incarnation, is_expected: true } => {
            debug!(logger, "the node drains the log rings of {source} (process {})", incarnation.pid);
        }
        News::Adopted { source, incarnation, is_expected: false } => {
            info!(logger, "{source} (process {}) does not drain its log rings; the node does", incarnation.pid);
        }
        News::NotAdopted(why) => warning!(logger, "the log rings in {} cannot be drained: {why}", path.display()),
    };
    RingKeeper::start(participant, dir.log_rings(), OnPanic::EndProcess, tell).map_err(HubError::Log)
}

/// Starts the spool. Without one the hub still runs, and logs it.
pub(super) fn start_spool(config: &Config, participant: Participant, logger: &Logger) -> Option<Arc<Spool>> {
    let options = SpoolOptions {
        per_source: config.spool.per_source_mb << 20,
        total: config.spool.total_mb << 20,
        after: Duration::from_millis(config.spool.after_ms),
        on_panic: OnPanic::EndProcess,
        ..SpoolOptions::default()
    };
    let directory = config.spool_dir();
    let teller = logger.clone();
    match Spool::start(participant, &directory, options, move |news| tell_spool(&teller, news)) {
        Ok(spool) => Some(Arc::new(spool)),
        Err(error) => {
            warning!(logger, "the spool cannot be opened; records stay in the log rings while no collector runs: {error}");
            None
        }
    }
}

fn tell_spool(logger: &Logger, news: spool::News) {
    match news {
        spool::News::Began(why) => notice!(logger, "records of this host are spooled: {why}"),
        spool::News::Replayed { records, .. } => notice!(logger, "{records} spooled records are with the collector"),
        spool::News::Refused { source, records, bytes, why } => {
            warning!(logger, "{records} records from {source} not kept: {why}"; source = source.as_str(), records = records, bytes = bytes);
        }
        spool::News::Missed { source, what } => warning!(logger, "{what}"; source = source.as_str()),
        spool::News::Stuck(Some(why)) => alert!(logger, "the spool cannot be written: {why}"),
        spool::News::Stuck(None) => notice!(logger, "the spool is written again"),
        spool::News::Damaged(fault) => warning!(logger, "the spool: {}: {}", fault.file.display(), fault.what),
        spool::News::Failed(why) => warning!(logger, "the spool: {why}"),
    }
}
