//! `tampu event doctor`.

use std::{io::Write, time::Duration};

use clap::Args;
use tampu_event::ask::{self, Answer, Facts};
use tampu_types::{
    Time,
    event::{AttributeName, AttributePattern},
};

use super::list::failed;
use crate::{
    commands::Context,
    connect::ANSWER_TIMEOUT,
    failure::{Failure, Outcome, written},
    time_expression::now,
};

/// Clocks that differ by more make times useless, ns.
const SKEW: i64 = 1_000_000_000;

/// Say why no events of an attribute come
///
/// Ends with 1 if something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tampu event doctor lab/cryostat/1/temperature")]
pub struct Doctor {
    /// The attribute
    name: AttributeName,
}

impl Doctor {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-doctor")?;
        let pattern = AttributePattern::from(&self.name);
        let asked = now();
        let found = ask::doctor(&participant, &pattern, ANSWER_TIMEOUT).map_err(failed)?;
        let mut out = std::io::stdout().lock();
        let wrong = if found.is_empty() {
            vec![self.nobody(&ask::list(&participant, None, ANSWER_TIMEOUT).map_err(failed)?)]
        } else {
            let mut wrong = Vec::new();
            for answer in &found {
                for facts in &answer.attributes {
                    written(writeln!(out, "{}", summary(answer, facts)))?;
                    wrong.extend(causes(facts, asked, now()));
                }
            }
            if found.len() > 1 {
                wrong.push(format!(
                    "{} processes have it: {}",
                    found.len(),
                    found.iter().map(|answer| answer.source.as_str()).collect::<Vec<_>>().join(", ")
                ));
            }
            wrong
        };
        if wrong.is_empty() {
            return written(writeln!(out, "nothing is wrong: events come when it changes enough"));
        }
        for cause in &wrong {
            written(writeln!(out, "- {cause}"))?;
        }
        let count = wrong.len();
        Err(Failure::Failed(format!(
            "{count} {} may keep events of {} from coming",
            if count == 1 { "thing" } else { "things" },
            self.name
        )))
    }

    fn nobody(&self, all: &[Answer<ask::Described>]) -> String {
        let names = all.iter().flat_map(|answer| &answer.attributes).map(|attribute| &attribute.config.name);
        let near: Vec<&str> = names
            .filter(|name| {
                name.folded().rsplit_once('/').map(|(device, _)| device)
                    == self.name.folded().rsplit_once('/').map(|(device, _)| device)
            })
            .map(AttributeName::as_str)
            .take(5)
            .collect();
        let servers = all.len();
        match near.as_slice() {
            [] if servers == 0 => {
                format!("no such attribute: no server that has any is on the bus, so {} is not running", self.name.device())
            }
            [] => format!(
                "no such attribute: none of the {servers} servers on the bus has the device {}; is its server running?",
                self.name.device()
            ),
            near => format!("no such attribute: the device {} has {}", self.name.device(), near.join(", ")),
        }
    }
}

fn summary(answer: &Answer<Facts>, facts: &Facts) -> String {
    let pushed = if facts.pushed_at == Time(0) { "never".to_owned() } else { facts.pushed_at.to_acs() };
    format!(
        "{} of {}: {} readings (the last {pushed}), {} events, {} held back by the criteria, {} subscribers",
        facts.name,
        answer.source,
        facts.pushes,
        facts.number,
        facts.held_back,
        facts.subscribers.iter().filter(|subscriber| subscriber.state != "gone").count()
    )
}

/// What is wrong, as far as the server's facts tell.
fn causes(facts: &Facts, asked: Time, answered: Time) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(by) = &facts.taken_by {
        wrong.push(format!("another process has an attribute of this name: {by}; this one is silent"));
    }
    if facts.pushes == 0 {
        wrong.push(match facts.polled_ms {
            None => "not polled, and its server has never pushed it".to_owned(),
            Some(ms) => format!("polled every {ms} ms, but its server has not read it yet: a poll before it may hang"),
        });
    }
    let due = facts.polled_ms.map(|ms| Duration::from_millis(u64::from(ms) * 3 + 1000).as_nanos() as i64);
    if due.is_some_and(|due| facts.pushes > 0 && facts.now.0 - facts.pushed_at.0 > due) {
        wrong.push(format!("the poll is late: the last reading is of {}", facts.pushed_at.to_acs()));
    }
    if let Some(failing) = &facts.failing {
        wrong.push(format!("it cannot be read: {}; the same error again is not sent", failing.escape_debug()));
    }
    // Where the server's code sends what it likes, thresholds hold nothing back.
    if !facts.change_by_value && (facts.held_back > 0 || facts.pushes == 0) {
        wrong.push("no threshold is set, so no change of its value is sent: tampu event conf NAME --abs X".to_owned());
    }
    for subscriber in facts.subscribers.iter().filter(|subscriber| subscriber.state == "lagging" || subscriber.lost > 0) {
        let (source, behind, lost) = (&subscriber.source, subscriber.behind, subscriber.lost);
        wrong.push(format!("the subscriber {source} is behind by {behind} samples, and has lost {lost}"));
    }
    let skew = (facts.now.0 - answered.0).max(asked.0 - facts.now.0);
    if skew > SKEW {
        wrong.push(format!("the server's clock and this host's differ by {:.1} s", skew as f64 / 1e9));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Facts {
        let now = Time(5_000_000_000);
        Facts { pushes: 3, pushed_at: now, change_by_value: true, now, ..Facts::default() }
    }

    fn told(facts: &Facts) -> Vec<String> {
        causes(facts, Time(5_000_000_000), Time(5_000_000_000))
    }

    #[test]
    fn each_cause_is_told_and_health_is_none() {
        assert_eq!(told(&healthy()), [""; 0]);
        let cases = [
            (Facts { pushes: 0, ..healthy() }, "not polled"),
            (Facts { change_by_value: false, held_back: 1, ..healthy() }, "no threshold"),
            (Facts { taken_by: Some("x".into()), ..healthy() }, "another process"),
            (Facts { failing: Some("Io: gone".into()), ..healthy() }, "cannot be read"),
            (Facts { polled_ms: Some(100), pushed_at: Time(1), ..healthy() }, "the poll is late"),
            (Facts { now: Time(9_000_000_000), ..healthy() }, "differ by 4.0 s"),
        ];
        for (facts, cause) in cases {
            let told = told(&facts);
            assert!(told.len() == 1 && told[0].contains(cause), "{cause}: {told:?}");
        }
        let lagging = ask::Subscriber { source: "panel".into(), state: "lagging".into(), behind: 7, lost: 2 };
        assert!(told(&Facts { subscribers: vec![lagging], ..healthy() })[0].contains("behind by 7"));
    }
}
