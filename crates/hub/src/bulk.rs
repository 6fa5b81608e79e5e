//! Bulk data in the hub: log records of transfers. The data itself never passes through a hub.

use tampu_bulk::transfers::{Outcome, Transfer, Transfers, TransfersError};
use tampu_bus::Participant;
use tampu_log::{Logger, info, warning};

/// Starts the account of bulk transfers and logs the beginning and the end of each.
pub(crate) fn start_transfers(participant: &Participant, logger: Logger) -> Result<Transfers, TransfersError> {
    Transfers::start(participant, move |transfer| log_transfer(&logger, transfer))
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
