//! `tampu event doctor`.

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use tampu_bus::SourceInfo;
use tampu_event::history::ask::HistoryQuery;
use tampu_event::{
    Client,
    ask::{self, Answer, Facts, Subscriber},
    client::{AttributeInfo, ClientSettings},
};
use tampu_types::{
    Incarnation, Time,
    event::{AttributeName, AttributePattern, Reason},
};

use super::list::failed;
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    keeper::Keeper,
    near,
    output::table::print_line,
    plural::counted,
    time_expression::now,
    time_text,
};

/// Clocks that differ by more make times useless, ns.
const SKEW: i64 = 1_000_000_000;

/// Find out why no events of an attribute arrive
///
/// No such attribute, not polled, no threshold, an error, a second source, a source that is dead or hangs, a subscriber that is behind, a clock that
/// is off. Ends with 1 if something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tampu event doctor lab/cryostat/1/temperature")]
pub struct Doctor {
    /// Name of the attribute
    name: AttributeName,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Time limit for answers of servers; a server that hangs never answers.
const ANSWER: Duration = Duration::from_secs(3);
/// Time after which a subscriber that reads nothing of its backlog hangs, and the interval of the checks.
const STANDING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(250);
/// Number of near names in a message.
const OFFERED: usize = 5;

impl Doctor {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-doctor")?;
        // The client also knows the declarations of servers that hang.
        let client =
            Client::start(participant.clone(), ClientSettings::default()).map_err(|error| Failure::failed("events", error))?;
        client.know_all();
        let pattern = AttributePattern::from(&self.name);
        let asked = now();
        let found = ask::doctor(&participant, &pattern, ANSWER).map_err(failed)?;
        let answered = now();
        let mut out = std::io::stdout().lock();
        let mut wrong = Vec::new();
        for answer in &found {
            for facts in &answer.attributes {
                if self.json {
                    let mut object = serde_json::json!({ "source": answer.source, "facts": facts });
                    time_text::in_json(&mut object);
                    written(writeln!(out, "{object}"))?;
                } else {
                    print_line(&mut out, &summary(answer, facts))?;
                }
                wrong.extend(causes(facts, asked, answered));
            }
        }
        wrong.extend(standing(found.clone(), || ask::doctor(&participant, &pattern, ANSWER).map_err(failed))?);
        let silent: Vec<SourceInfo> = self
            .declared(&client, found.is_empty())
            .into_iter()
            .filter(|source| found.iter().all(|answer| answer.incarnation != source.incarnation))
            .collect();
        for source in &silent {
            let (source, pid) = (&source.source, source.incarnation.pid);
            wrong.push(format!(
                "its source hangs: {source} (process {pid}) has it and does not answer within {} s; it is stopped or busy, or the way to it is cut",
                ANSWER.as_secs()
            ));
        }
        if found.is_empty() && silent.is_empty() {
            wrong.push(match self.last_word(context) {
                Some(word) => word,
                None => self.nobody(&client.attributes()),
            });
        }
        match several(&found) {
            Several::Rivals(what) => wrong.push(what),
            Several::Redundant(what) if !self.json => print_line(&mut out, &what)?,
            Several::Redundant(_) | Several::No => {}
        }
        if self.json {
            written(writeln!(out, "{}", serde_json::json!({ "attribute": self.name, "causes": wrong })))?;
        } else if wrong.is_empty() {
            return written(writeln!(out, "no fault found: an event follows when it changes enough"));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        if !self.json {
            wrong.iter().try_for_each(|cause| print_line(&mut out, &format!("- {cause}")))?;
        }
        let causes = counted(wrong.len() as u64, "possible cause");
        Err(Failure::Failed(format!("{causes} why no events of {} arrive", self.name)))
    }

    /// Returns the sources that declare the attribute. Without an answer, it waits a moment for declarations.
    fn declared(&self, client: &Client, wait: bool) -> Vec<SourceInfo> {
        let until = Instant::now() + Duration::from_millis(if wait { 500 } else { 0 });
        loop {
            let known = client.owners(&self.name);
            if !known.is_empty() || Instant::now() >= until {
                return known.into_iter().map(|known| known.source).collect();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the history's last report of the source of an attribute that no server has.
    fn last_word(&self, context: &Context) -> Option<String> {
        let keeper = Keeper::find(&context.common.connect, "tampu-event-doctor").ok()?;
        let asked = HistoryQuery {
            attributes: vec![AttributePattern::from(&self.name)],
            newest_first: true,
            limit: Some(1),
            ..HistoryQuery::default()
        };
        let mut word = None;
        // Without a history nothing is reported about the past.
        let _ = keeper.history(&asked, &mut |kept| {
            let (source, time) = (kept.source, time_text::with_zone(kept.time));
            let is_here = || keeper.participant().sources().iter().any(|source| source.incarnation == kept.incarnation);
            word = Some(match kept.reason {
                Reason::SourceHung => format!("its source hangs: {source} had it, and has been silent since {time}"),
                Reason::SourceDied => format!("its source is dead: {source} had it and died at {time}"),
                Reason::SourceLeft => format!("its source is not running: {source} had it and ended at {time}"),
                _ if is_here() => format!("its source hangs: {source} had it, is on the bus and does not answer"),
                _ => format!("its source is not here: {source} had it; the last that was kept of it is of {time}"),
            });
            false
        });
        word
    }

    fn nobody(&self, all: &[Arc<AttributeInfo>]) -> String {
        let wanted = self.name.folded();
        let device = |name: &AttributeName| name.folded().rsplit_once('/').map(|(device, _)| device.to_owned());
        let names = || all.iter().map(|attribute| &attribute.config.name);
        let here: Vec<&str> =
            names().filter(|name| device(name) == device(&self.name)).map(AttributeName::as_str).take(OFFERED).collect();
        if !here.is_empty() {
            return format!("no such attribute: the device {} has {}", self.name.device(), here.join(", "));
        }
        let near = near::near(wanted, names().map(AttributeName::as_str), OFFERED);
        match (all.len(), near.as_slice()) {
            (0, _) => {
                format!("no such attribute: no server that has any is on the bus, so {} is not running", self.name.device())
            }
            (count, []) => format!(
                "no such attribute: none of the {count} on the bus is of the device {}; is its server running?",
                self.name.device()
            ),
            (_, near) => format!("no such attribute; there is {}", near.join(", ")),
        }
    }
}

/// Finds subscribers that have a backlog and read nothing. The server waits for none of them until its stream is full,
/// so it calls them live until then. Servers are asked again until all have moved, or the time is up.
fn standing(
    mut found: Vec<Answer<Facts>>,
    mut ask: impl FnMut() -> Result<Vec<Answer<Facts>>, Failure>,
) -> Result<Vec<String>, Failure> {
    let until = Instant::now() + STANDING;
    let mut suspects = waiting(&found);
    while !suspects.is_empty() && Instant::now() < until {
        std::thread::sleep(LOOK);
        found = ask()?;
        let now = waiting(&found);
        suspects.retain(|suspect| now.contains(suspect));
    }
    let behind = |(incarnation, source, at): &Suspect| {
        let all = found.iter().filter(|answer| answer.incarnation == *incarnation).flat_map(|answer| &answer.attributes);
        all.flat_map(|facts| &facts.subscribers)
            .find(|one| one.source == *source && one.at == Some(*at))
            .map_or(0, |one| one.behind)
    };
    let told = |suspect: &Suspect| {
        let (source, seconds) = (&suspect.1, STANDING.as_secs());
        format!(
            "the subscriber {source} is behind by {} samples, and has taken none for {seconds} s: it hangs or is stopped",
            behind(suspect)
        )
    };
    Ok(suspects.iter().map(told).collect())
}

/// Incarnation of the server, the subscriber and its position: names of processes may be equal.
type Suspect = (Incarnation, String, u64);

fn waiting(found: &[Answer<Facts>]) -> Vec<Suspect> {
    let mut suspects = Vec::new();
    for answer in found {
        let subscribers = answer.attributes.iter().flat_map(|facts| &facts.subscribers);
        // Faults of the other subscribers are reported separately.
        let seems_well = |one: &&Subscriber| one.lost == 0 && ["live", "catching up"].contains(&one.state.as_str());
        for subscriber in subscribers.filter(seems_well).filter(|one| one.behind > 0) {
            suspects.extend(subscriber.at.map(|at| (answer.incarnation, subscriber.source.clone(), at)));
        }
    }
    suspects
}

/// Number of sources of an attribute, and whether they declare it.
#[derive(Debug, PartialEq, Eq)]
enum Several {
    No,
    Redundant(String),
    Rivals(String),
}

fn several(found: &[Answer<Facts>]) -> Several {
    if found.len() < 2 {
        return Several::No;
    }
    let sources = found.iter().map(|answer| answer.source.as_str()).collect::<Vec<_>>().join(", ");
    let what = |how: &str| format!("{} {how} have it: {sources}", found.len());
    if found.iter().flat_map(|answer| &answer.attributes).all(|facts| facts.redundant) {
        Several::Redundant(what("redundant sources"))
    } else {
        Several::Rivals(what("processes"))
    }
}

fn summary(answer: &Answer<Facts>, facts: &Facts) -> String {
    let pushed = if facts.pushed_at == Time(0) { "never".to_owned() } else { time_text::with_zone(facts.pushed_at) };
    format!(
        "{} of {}: {} (the last {pushed}), {}, {} held back by the criteria, {}",
        facts.name,
        answer.source,
        counted(facts.pushes, "reading"),
        counted(facts.number, "event"),
        facts.held_back,
        counted(facts.subscribers.iter().filter(|subscriber| subscriber.state != "gone").count() as u64, "subscriber")
    )
}

/// Lists the faults that the server's facts show.
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
        wrong.push(format!("the poll is late: the last reading is of {}", time_text::with_zone(facts.pushed_at)));
    }
    if let Some(failing) = &facts.failing {
        wrong.push(format!("it cannot be read: {}; the same error again is not sent", failing.escape_debug()));
    }
    // If the server's code decides what to send, thresholds hold nothing back.
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
    fn a_redundant_pair_is_healthy_and_rivals_are_not() {
        let of = |redundant: &[bool]| -> Vec<Answer<Facts>> {
            let answer = |&redundant: &bool| Answer {
                source: "server".to_owned(),
                incarnation: tampu_types::Incarnation { boot: 1, pid: 2, start: 3 },
                attributes: vec![Facts { redundant, ..healthy() }],
            };
            redundant.iter().map(answer).collect()
        };
        assert_eq!(several(&of(&[true])), Several::No);
        assert_eq!(several(&of(&[true, true])), Several::Redundant("2 redundant sources have it: server, server".to_owned()));
        assert_eq!(several(&of(&[true, false])), Several::Rivals("2 processes have it: server, server".to_owned()));
        let older: Facts = serde_json::from_str(r#"{"name":"a/b/c/d"}"#).unwrap();
        assert!(!older.redundant);
    }

    #[test]
    fn a_subscriber_that_takes_nothing_is_told_and_one_that_moves_is_not() {
        let answer = |subscribers: &[(&str, u64, Option<u64>)]| {
            let one = |&(source, behind, at): &(&str, u64, Option<u64>)| Subscriber {
                source: source.into(),
                state: "live".into(),
                behind,
                at,
                ..Subscriber::default()
            };
            let facts = Facts { subscribers: subscribers.iter().map(one).collect(), ..healthy() };
            let incarnation = Incarnation { boot: 1, pid: 2, start: 3 };
            vec![Answer { source: "server".to_owned(), incarnation, attributes: vec![facts] }]
        };
        let nobody = || panic!("nobody is to be asked again");
        assert_eq!(standing(answer(&[("panel", 0, Some(9)), ("older", 5, None)]), nobody).unwrap(), [""; 0]);
        let first = answer(&[("panel", 4, Some(5)), ("stands", 4, Some(5)), ("done", 1, Some(8))]);
        let mut asked = 0;
        let told = standing(first, || {
            asked += 1;
            Ok(answer(&[("panel", 4, Some(5 + asked)), ("stands", 4 + asked, Some(5)), ("done", 0, Some(9))]))
        });
        let told = told.unwrap();
        assert!(told.len() == 1 && told[0].starts_with("the subscriber stands is behind by ") && asked > 1, "{told:?}");
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
        let lagging = Subscriber { source: "panel".into(), state: "lagging".into(), behind: 7, lost: 2, at: Some(5) };
        assert!(told(&Facts { subscribers: vec![lagging], ..healthy() })[0].contains("behind by 7"));
    }
}
