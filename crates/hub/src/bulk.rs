//! Bulk data in the hub: the account of transfers, and log records of them. The data itself never passes through a hub.

use std::sync::Arc;

use tampu_bulk::transfers::{DIRECTORY, Outcome, Transfer, TransferNews, Transfers, TransfersError};
use tampu_bus::{Participant, access::Access};
use tampu_log::{Logger, info, warning};

use crate::{collecting::Watch, config::Config};

/// The account of bulk transfers, with a watch that logs the problems of its archive.
pub(crate) struct TransferHistory {
    // Ends first, because it reads the archive.
    _watch: Watch,
    pub transfers: Arc<Transfers>,
}

impl TransferHistory {
    /// Starts the account of bulk transfers and logs the beginning and the end of each.
    pub(crate) fn start(
        config: &Config,
        participant: &Participant,
        access: Access,
        logger: Logger,
    ) -> Result<TransferHistory, TransfersError> {
        let (directory, teller) = (config.domain_data().join(DIRECTORY), logger.clone());
        let transfers = Transfers::start(participant, &directory, config.archive(), access, move |news| match news {
            TransferNews::Changed(one) => log_transfer(&teller, one),
            TransferNews::NotKept(one, why) => {
                let (number, stream, flow) = (one.transfer, one.stream.as_str(), one.flow.as_str());
                warning!(teller, "bulk transfer {number} of {stream}#{flow} is not kept in the archive: {why}");
            }
        })?;
        let archive = transfers.archive();
        let watched = (archive.clone(), archive.clone(), archive.clone());
        let watch = Watch::start(
            "the transfers' archive",
            move || watched.0.stuck(),
            move || watched.1.compaction_stuck(),
            move || watched.2.news(),
            logger,
        )
        .map_err(TransfersError::Thread)?;
        Ok(TransferHistory { _watch: watch, transfers: Arc::new(transfers) })
    }
}

fn log_transfer(logger: &Logger, one: &Transfer) {
    let (stream, flow, source, parameter) = (one.stream.as_str(), one.flow.as_str(), one.source.as_str(), one.parameter.as_str());
    let (number, bytes, rate) = (one.transfer, one.bytes, one.bytes_per_s);
    match one.outcome {
        Outcome::UnderWay => {
            info!(logger, "bulk transfer {number} of {stream}#{flow} begins"; source = source, parameter = parameter);
        }
        Outcome::Complete => {
            let receivers = if one.receivers == 1 { "1 receiver".to_owned() } else { format!("{} receivers", one.receivers) };
            info!(logger, "bulk transfer {number} of {stream}#{flow} is complete: {bytes} bytes to {receivers}"; source = source, parameter = parameter, bytes_per_s = rate);
        }
        Outcome::Incomplete | Outcome::BrokenOff => {
            let why = one.why.join("; ");
            warning!(logger, "bulk transfer {number} of {stream}#{flow} is not complete: {why}"; source = source, parameter = parameter, bytes = bytes, lost_bytes = one.lost_bytes);
        }
    }
}
