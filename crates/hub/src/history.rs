//! The history of events in the hub: its service, a watch over its archive, and log records of both.

use tampu_archive::Options;
use tampu_bus::{Participant, access::Access};
use tampu_event::history::{DIRECTORY, History, HistoryError, HistoryNotice};
use tampu_log::{Logger, warning};

use crate::{collecting::Watch, config::Config};

/// A history of events, with a watch that logs its problems.
pub(crate) struct EventHistory {
    // Ends first, because it reads the archive.
    _watch: Watch,
    history: History,
}

impl EventHistory {
    /// Starts the history in the domain's data directory.
    pub(crate) fn start(
        config: &Config,
        options: Options,
        participant: Participant,
        access: Access,
        logger: Logger,
    ) -> Result<EventHistory, HistoryError> {
        let (directory, notices) = (config.domain_data().join(DIRECTORY), logger.clone());
        let history = History::start(&config.events, &directory, options, participant, access, move |notice| {
            log_notice(&notices, notice);
        })?;
        let archive = history.archive();
        let watched = (archive.clone(), archive.clone(), archive.clone());
        let watch = Watch::start(
            "the events' archive",
            move || watched.0.stuck(),
            move || watched.1.compaction_stuck(),
            move || watched.2.news(),
            logger,
        )
        .map_err(HistoryError::Worker)?;
        Ok(EventHistory { _watch: watch, history })
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }
}

fn log_notice(logger: &Logger, notice: &HistoryNotice) {
    match notice {
        HistoryNotice::NotWritten { unrecorded, .. } => warning!(logger, "{notice}"; unrecorded = *unrecorded),
        HistoryNotice::Refused { events, .. } => warning!(logger, "{notice}"; events = *events),
        HistoryNotice::Dropped { events } => warning!(logger, "{notice}"; events = *events),
    }
}
