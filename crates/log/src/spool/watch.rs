//! Whether a collector keeps what is logged.
//!
//! Decision: one is there if its reader is announced, and it says of itself that it can write. The first is known at once; the
//! second is asked for each second, because a collector whose disk is full, or that has been stopped, is there and keeps nothing. Who
//! does not know the question is of an earlier release, and believed. One that comes and goes (it crashes at every start) counts
//! as gone until it has stayed for a second; but while it is there, nothing is begun because it was gone.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tampu_bus::Participant;
use tampu_types::{Level, TopicName};

use crate::{
    collector::ask::{self, AskFailed},
    logger::bus_post::topic_of,
};

/// How often it is looked whether one is announced.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is asked.
const ASK: Duration = Duration::from_secs(1);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(2);
/// Nobody who answers so soon was asked too much: there is nobody who knows the question.
const AT_ONCE: Duration = Duration::from_millis(1500);
/// How long one must have been there to count as back.
const SETTLED: Duration = Duration::from_secs(1);

/// What is known of collectors; see the module's page.
#[derive(Debug)]
pub(super) struct Watch(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Since when records are kept, or are not.
    since: Instant,
    keeps: bool,
    /// Why they are not.
    why: String,
    /// Since when nobody has kept them for longer than a moment.
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
    /// Looks until told to stop.
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
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Whether a collector keeps records, and has for a moment.
    pub(super) fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).away_since.is_none()
    }

    /// Why nobody has kept records for this long, if so.
    pub(super) fn is_away_for(&self, long: Duration) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let away = known.away_since.filter(|since| !known.keeps && since.elapsed() >= long);
        away.map(|_| known.why.clone())
    }
}

/// Asks collectors whether they can write; why none of them can.
fn ask(participant: &Participant, topic: &TopicName) -> Result<(), String> {
    let begun = Instant::now();
    match ask::keeps(participant, ANSWER) {
        Ok(None) | Err(AskFailed::Denied(_)) => Ok(()),
        Ok(Some(why)) => Err(why),
        Err(_) if begun.elapsed() < AT_ONCE && participant.is_collected(topic) => Ok(()),
        Err(error) => Err(format!("the collector does not answer: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_comes_and_goes_is_away() {
        let watch = Watch::default();
        assert!(!watch.is_there() && watch.is_away_for(Duration::ZERO).is_some());
        watch.see(Ok(()));
        assert!(!watch.is_there() && watch.is_away_for(Duration::ZERO).is_none(), "only just: no reason to begin, or to end");
        watch.0.lock().unwrap().since -= SETTLED;
        watch.see(Ok(()));
        assert!(watch.is_there() && watch.is_away_for(Duration::ZERO).is_none());
        watch.see(Err("its disk is full".into()));
        assert!(!watch.is_there());
        assert_eq!(watch.is_away_for(Duration::ZERO).as_deref(), Some("its disk is full"));
        assert_eq!(watch.is_away_for(Duration::from_secs(3600)), None);
    }
}
