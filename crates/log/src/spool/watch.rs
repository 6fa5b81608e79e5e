//! The search for a collector that keeps records.
//!
//! Decision: a collector is present if its reader is announced and it reports that it can write. The announcement is
//! known at once. The report is requested each second, because a collector with a full disk, or a stopped one, is
//! announced and keeps nothing. A collector that does not know the request is of an earlier release, and trusted. A
//! collector that crashes at every start counts as absent until it has stayed for a second. While it is announced,
//! however, its absence does not start the spool.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tampu_bus::{Participant, service::CallError};
use tampu_types::{Level, TopicName};

use crate::{collector::ask, logger::bus_sink::topic_of};

/// Interval at which announcements are read.
const LOOK: Duration = Duration::from_millis(50);
/// Interval at which an announced collector is asked.
const ASK: Duration = Duration::from_secs(1);
/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Longest time of a failed request that means an unknown service; an overloaded collector fails later.
const AT_ONCE: Duration = Duration::from_millis(1500);
/// Time after which a collector counts as back.
const SETTLED: Duration = Duration::from_secs(1);

/// Present knowledge of collectors; see the module's page.
#[derive(Debug)]
pub(super) struct Watch(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Since when records are kept, or are not.
    since: Instant,
    keeps: bool,
    /// Reason why they are absent.
    why: String,
    /// Time since which no collector has kept them for longer than a moment.
    away_since: Option<Instant>,
}

impl Default for Watch {
    fn default() -> Watch {
        let now = Instant::now();
        let why = "no collector is there".to_owned();
        Watch(Mutex::new(Known { since: now, keeps: false, why, away_since: Some(now) }))
    }
}

impl Watch {
    /// Watches until it is stopped.
    pub(super) fn run(&self, participant: &Participant, is_stopping: impl Fn() -> bool) {
        let Ok(topic) = topic_of(Level::Info) else { return };
        let mut asked: Option<(Instant, Result<(), String>)> = None;
        while !is_stopping() {
            if !participant.is_collected(&topic) {
                asked = None;
                self.see(Err("no collector is there".to_owned()));
            } else {
                if asked.as_ref().is_none_or(|(at, _)| at.elapsed() >= ASK) {
                    asked = Some((Instant::now(), ask(participant, &topic)));
                }
                if let Some((_, answer)) = &asked {
                    self.see(answer.clone());
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    fn see(&self, keeps: Result<(), String>) {
        let mut known = self.0.lock();
        let now = Instant::now();
        if known.keeps != keeps.is_ok() {
            (known.keeps, known.since) = (keeps.is_ok(), now);
        }
        match keeps {
            Ok(()) if now - known.since >= SETTLED => known.away_since = None,
            Ok(()) => {}
            Err(why) => {
                known.away_since.get_or_insert(now);
                known.why = why;
            }
        }
    }

    /// Returns whether a collector keeps records, and has done so for a moment.
    pub(super) fn is_there(&self) -> bool {
        self.0.lock().away_since.is_none()
    }

    /// Returns the reason if no collector has kept records for this long.
    pub(super) fn is_away_for(&self, long: Duration) -> Option<String> {
        let known = self.0.lock();
        let away = known.away_since.filter(|since| !known.keeps && since.elapsed() >= long);
        away.map(|_| known.why.clone())
    }
}

/// Asks collectors whether they can write; why none of them can.
fn ask(participant: &Participant, topic: &TopicName) -> Result<(), String> {
    let begun = Instant::now();
    let answer = ask::keeps(participant, ANSWER);
    judge(answer, begun.elapsed() < AT_ONCE && participant.is_collected(topic))
}

/// Judges an answer. `at_once` is true if nobody was there to answer although a collector is announced.
fn judge(answer: Result<Option<String>, CallError>, at_once: bool) -> Result<(), String> {
    match answer {
        Ok(None) | Err(CallError::Denied(_)) => Ok(()),
        Ok(Some(why)) => Err(why),
        // A collector that refuses has not said that it keeps records.
        Err(CallError::Refused { why, .. }) => Err(format!("the collector refuses to say if it keeps records: {why}")),
        Err(_) if at_once => Ok(()),
        Err(error) => Err(format!("the collector does not answer: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_refuses_the_question_keeps_nothing() {
        let refused = CallError::Refused { service: "log/keeps".to_owned(), why: "busy".to_owned() };
        assert!(judge(Err(refused), true).is_err_and(|why| why.ends_with("busy")));
        let unknown = CallError::Unanswered("log/keeps".to_owned());
        assert_eq!(judge(Err(unknown.clone()), true), Ok(()), "an earlier release does not know the question");
        assert!(judge(Err(unknown), false).is_err());
        assert_eq!((judge(Ok(None), false), judge(Ok(Some("full".into())), true)), (Ok(()), Err("full".into())));
    }

    #[test]
    fn one_that_comes_and_goes_is_away() {
        let watch = Watch::default();
        assert!(!watch.is_there() && watch.is_away_for(Duration::ZERO).is_some());
        watch.see(Ok(()));
        assert!(!watch.is_there() && watch.is_away_for(Duration::ZERO).is_none(), "only just: no reason to begin, or to end");
        watch.0.lock().since -= SETTLED;
        watch.see(Ok(()));
        assert!(watch.is_there() && watch.is_away_for(Duration::ZERO).is_none());
        watch.see(Err("its disk is full".into()));
        assert!(!watch.is_there());
        assert_eq!(watch.is_away_for(Duration::ZERO).as_deref(), Some("its disk is full"));
        assert_eq!(watch.is_away_for(Duration::from_secs(3600)), None);
    }
}
