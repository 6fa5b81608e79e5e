//! The hub's own log, and panics of worker threads in it.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use tampu_bus::{Participant, access::Access};
use tampu_log::{
    LogSettings, Logger, alert,
    logger::{BadSettings, Reread, config::LogFile},
};
use tampu_types::SourceName;
use tampu_workers::Consequence;

use super::error::HubError;
use crate::{
    config::{Config, default_log},
    reread::ChangingSettings,
};

/// Reports panics of worker threads in the hub's log, or on standard error once the hub has ended.
pub(crate) fn report_panics(log: &Arc<Logger>) {
    let log = Arc::downgrade(log);
    tampu_workers::set_reporter(move |report| {
        let text = report.to_string();
        let Some(log) = log.upgrade() else {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "tampu: {text}");
            return;
        };
        alert!(log, "{text}"; worker = report.worker);
        if report.consequence == Consequence::EndProcess {
            log.flush(Duration::from_secs(1));
        }
    });
}

pub(crate) fn start_log(
    config: &Config,
    participant: Participant,
    access: Access,
    changing: Arc<dyn ChangingSettings>,
) -> Result<Logger, HubError> {
    let mut settings = log_settings(config, participant.source());
    settings.rings = participant.log_rings();
    settings.access = access;
    let (config, source) = (config.clone(), participant.source().clone());
    settings.reread = Some(Reread::new(move || {
        let LogFile { log, logger, .. } = changing.log().map_err(|why| BadSettings::new("the hub's configuration", why))?;
        Ok(log_settings(&Config { log, logger, ..config.clone() }, &source))
    }));
    Logger::on(participant, settings).map_err(HubError::Log)
}

/// Returns the settings of the hub's own log.
fn log_settings(config: &Config, source: &SourceName) -> LogSettings {
    let mut settings = LogSettings::isolated(config.domain.clone(), source.clone());
    let log = config.log_flags.clone().over(config.log.clone()).over(default_log());
    LogFile { log, logger: config.logger.clone(), topic: Vec::new() }.apply(&mut settings);
    settings
}
