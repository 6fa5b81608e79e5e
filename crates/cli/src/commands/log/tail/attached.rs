//! `--attach`: records that levels keep in their processes, while somebody looks.

use std::time::Duration;

use tampu_bus::Participant;
use tampu_log::logger::{
    Threshold,
    attach::{Attachment, Wanted},
    control::{self, Heard, Question},
};
use tampu_types::Level;

use crate::{failure::Failure, filter::FilterArgs, loggers::ANSWER_WAIT};

/// How long processes are given to hear of it before they are asked whether they have.
const HEARING: Duration = Duration::from_millis(500);

/// Attaches this process until the guard is dropped, and says on standard error what came of it as soon as it is known.
pub fn begin(participant: &Participant, filter: &FilterArgs) -> Result<Attachment, Failure> {
    let wanted = filter.attachment()?;
    let attachment =
        Attachment::begin(participant, &wanted).map_err(|error| Failure::Unreachable(format!("attaching: {error}")))?;
    let participant = participant.clone();
    // Beside the records, which do not wait for it; it ends by itself, or with the command.
    std::thread::spawn(move || {
        std::thread::sleep(HEARING);
        if let Ok(heard) = control::ask(&participant, &Question::default(), ANSWER_WAIT) {
            eprintln!("{}", told(&heard, &wanted));
        }
    });
    Ok(attachment)
}

/// How many loggers publish what is wanted, and how many do not.
fn told(heard: &Heard, wanted: &Wanted) -> String {
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
        let wanted = Wanted { level: Some(Level::Debug), sources: Vec::new(), loggers: vec!["?".into()] };
        let text = told(&heard, &wanted);
        assert_eq!(text, "attached: 2 loggers publish from Debug on; 1 take no attachment (attach = false, or they may not)");
    }
}
