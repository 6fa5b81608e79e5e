//! Client of the loggers of all processes for the command line.

use std::time::Duration;

use tampu_bus::Participant;
use tampu_log::logger::control::{self, Heard, Question};

use crate::{connect::Connect, failure::Failure, output::table::printable};

/// Time limit for answers of processes. A process that does not answer at once is stopped or hangs.
pub const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// A way to the processes that log.
pub struct Loggers {
    participant: Participant,
    connect: Connect,
}

impl Loggers {
    /// Joins a bus with other participants.
    pub fn find(connect: &Connect, name: &str) -> Result<Loggers, Failure> {
        Ok(Loggers { participant: connect.join_hub(name)?, connect: connect.clone() })
    }

    /// Sends the request to all of them; fails without any reply.
    pub fn ask(&self, question: &Question) -> Result<Heard, Failure> {
        let heard = control::ask(&self.participant, question, ANSWER_WAIT).map_err(|error| self.connect.call_failed(&error))?;
        if heard.processes.is_empty() && heard.unheeded.is_empty() {
            return Err(Failure::Unreachable(self.connect.advise("no process that logs has answered")));
        }
        Ok(heard)
    }
}

/// Returns a line for each part that is missing from an answer.
pub fn missing(heard: &Heard) -> Vec<String> {
    let mut lines: Vec<String> =
        heard.unheeded.iter().map(|(process, why)| format!("process {} ({process}): {why}", process.pid)).collect();
    if !heard.complete {
        lines.push(format!("not every process that logs has answered within {ANSWER_WAIT:?}: one is stopped or hangs"));
    }
    lines
}

/// Prints the missing parts of a reply on standard error.
pub fn tell_missing(heard: &Heard) {
    missing(heard).iter().for_each(|line| eprintln!("tampu: {}", printable(line)));
}
