//! Waiting for receivers, with a report.

use std::time::{Duration, Instant};

use tampu_bulk::{directory::Following, sender::Flow, state::LinkStatus};

use super::sending::STOPPED;
use crate::{
    context::Context,
    failure::{Failure, Outcome},
    output::table::printable,
    progress,
};

/// Time between two checks, and between two drawings on a terminal.
const TURN: Duration = Duration::from_millis(200);
/// Time between two lines without a terminal, after the first.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Shortest wait that is reported.
const QUIET: Duration = Duration::from_secs(1);

/// Waits until so many receivers are connected.
pub fn wait(flow: &Flow, following: &Following, receivers: usize, most: Duration, context: &Context) -> Outcome {
    let began = Instant::now();
    let bar = progress::waiting();
    let mut due = QUIET;
    loop {
        let left = most.saturating_sub(began.elapsed());
        if flow.wait_for(receivers, left.min(TURN)) {
            bar.finish_and_clear();
            return Ok(());
        }
        let here = flow.connected();
        let what = if receivers == 1 { "receiver".to_owned() } else { format!("{receivers} receivers, {here} are here") };
        if flow.is_cancelled() {
            bar.finish_and_clear();
            return Err(Failure::Failed(STOPPED.to_owned()));
        }
        if context.interrupt.asked() {
            bar.finish_and_clear();
            return Err(Failure::Failed("interrupted".to_owned()));
        }
        let waited = began.elapsed();
        if waited >= most {
            bar.finish_and_clear();
            let why = reasons(flow, following);
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            let text = format!("{here} of {receivers} receivers of flow '{}' came within {} s{why}", flow.name(), most.as_secs());
            return Err(Failure::Unreachable(format!("{text}; start one with 'tampu bulk recv'")));
        }
        let why = reasons(flow, following);
        let why = if why.is_empty() { why } else { format!("; {why}") };
        let text = format!("waiting for {what}, {} s of {} s{why}", waited.as_secs(), most.as_secs());
        if bar.is_hidden() && waited >= due {
            eprintln!("tampu: {text}");
            due = waited + LINE_EVERY;
        }
        bar.set_message(text);
        bar.tick();
    }
}

/// Lists the reasons for which connected receivers do not count.
fn reasons(flow: &Flow, following: &Following) -> String {
    let refused = flow.state().receivers.into_iter().filter(|link| link.status == LinkStatus::Refused || !link.why.is_empty());
    let mut all: Vec<String> = refused.map(|link| format!("{}: {}", link.receiver, link.why)).collect();
    for one in following.unmatched() {
        let whose = if one.at_sender { "only the receiver has" } else { "does not have" };
        all.push(format!("{} {whose} flow '{}'", one.receiver, one.flow));
    }
    printable(&all.join("; ")).into_owned()
}
