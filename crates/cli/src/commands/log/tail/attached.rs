//! `--attach`: records below the levels of their processes, while a reader is attached.

use std::time::Duration;

use tampu_bus::Participant;
use tampu_log::logger::{
    Threshold,
    attach::{AttachRequest, Attachment},
    control::{self, Heard, Question},
};
use tampu_types::Level;

use crate::{failure::Failure, filter::FilterArgs, loggers::ANSWER_WAIT};

/// Time for processes to receive the request before they are asked about it.
const HEARING: Duration = Duration::from_millis(500);

/// Attaches this process until the guard is dropped, and prints the result on standard error as soon as it is known.
pub fn begin(participant: &Participant, filter: &FilterArgs) -> Result<Attachment, Failure> {
    let wanted = filter.attachment()?;
    let attachment =
        Attachment::begin(participant, &wanted).map_err(|error| Failure::Unreachable(format!("attaching: {error}")))?;
    let participant = participant.clone();
    // Runs beside the records, which do not wait for it; it ends by itself or with the command.
    std::thread::spawn(move || {
        std::thread::sleep(HEARING);
        if let Ok(heard) = control::ask(&participant, &Question::default(), ANSWER_WAIT) {
            eprintln!("{}", told(&heard, &wanted));
        }
    });
    Ok(attachment)
}

/// Counts the loggers that publish the requested records, and the others.
fn told(heard: &Heard, wanted: &AttachRequest) -> String {
    let least = wanted.level.unwrap_or(Level::Trace);
    let publishes = |from: Threshold| from.passes(least);
    let (mut there, mut not) = (0, 0);
    for process in heard.processes.values() {
        for logger in process.loggers.iter().filter(|logger| wanted.concerns(&process.source, &logger.name)) {
            let all = publishes(logger.central) || logger.attached.is_some_and(publishes);
            *(if all { &mut there } else { &mut not }) += 1;
        }
    }
    let refused = if not > 0 { format!("; {not} take no attachment (attach = false, or they may not)") } else { String::new() };
    format!("attached: {there} loggers publish from {least} on{refused}")
}

#[cfg(test)]
mod tests {
    use tampu_log::logger::control::{LoggerState, ProcessLoggers};
    use tampu_types::Incarnation;

    use super::*;

    #[test]
    fn who_publishes_and_who_does_not_is_counted() {
        let from = |level| Threshold::From(level);
        let logger = |name: &str, central, attached| LoggerState { name: name.into(), central, local: Threshold::Off, attached };
        let loggers = vec![
            logger("a", from(Level::Info), Some(from(Level::Debug))),
            logger("b", from(Level::Trace), None),
            logger("c", from(Level::Info), None),
            logger("other", from(Level::Info), None),
        ];
        let process = ProcessLoggers { source: "DV01".into(), loggers, ..ProcessLoggers::default() };
        let heard = Heard { processes: [(Incarnation::default(), process)].into(), ..Heard::default() };
        let wanted = AttachRequest { level: Some(Level::Debug), sources: Vec::new(), loggers: vec!["?".into()] };
        let text = told(&heard, &wanted);
        assert_eq!(text, "attached: 2 loggers publish from Debug on; 1 take no attachment (attach = false, or they may not)");
    }
}
