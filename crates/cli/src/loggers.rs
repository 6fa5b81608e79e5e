//! The loggers of all processes, asked from the command line.

use std::time::Duration;

use tampu_bus::Participant;
use tampu_log::logger::control::{self, ControlError, Heard, Question};

use crate::{connect::Connect, failure::Failure};

/// How long processes may take to answer. They do at once; who does not is stopped or hangs.
pub const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// A way to the processes that log.
pub struct Loggers {
    participant: Participant,
    connect: Connect,
}

impl Loggers {
    /// Joins the bus where somebody is.
    pub fn find(connect: &Connect, name: &str) -> Result<Loggers, Failure> {
        Ok(Loggers { participant: connect.join_hub(name)?, connect: connect.clone() })
    }

    /// Asks all of them; fails where nobody answers.
    pub fn ask(&self, question: &Question) -> Result<Heard, Failure> {
        let heard = control::ask(&self.participant, question, ANSWER_WAIT).map_err(|error| match error {
            ControlError::Ask(error) => Failure::Unreachable(self.connect.advise(&error.to_string())),
            other => Failure::Failed(other.to_string()),
        })?;
        if heard.processes.is_empty() && heard.unheeded.is_empty() {
            return Err(Failure::Unreachable(self.connect.advise("no process that logs has answered")));
        }
        Ok(heard)
    }
}

/// What is missing of an answer, a line each.
pub fn missing(heard: &Heard) -> Vec<String> {
    let mut lines: Vec<String> =
        heard.unheeded.iter().map(|(process, why)| format!("process {} ({process}): {why}", process.pid)).collect();
    if !heard.complete {
        lines.push(format!("not every process that logs has answered within {ANSWER_WAIT:?}: one is stopped or hangs"));
    }
    lines
}

/// Tells on standard error what is missing of an answer.
pub fn tell_missing(heard: &Heard) {
    missing(heard).iter().for_each(|line| eprintln!("tampu: {line}"));
}
