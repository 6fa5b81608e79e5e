//! The audit: refused and administrative actions as records of the hub's log, from the logger `audit`.

use std::{sync::OnceLock, time::Instant};

use serde_json::Value;
use tampu_bus::{
    BusError, Participant,
    access::{Access, Act, Outcome, PeriodLimit, Principal, Resource, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, serve},
};
use tampu_log::{Logger, logger::control::AUDIT, notice, warning};
use tampu_types::TopicName;

/// Longest question there in bytes, as for the servers.
const QUESTION: usize = 4 << 20;
/// Records a minute for each host and topic: streams are announced twice a second.
const TOPIC_RECORDS: u64 = 1;

/// Audits changes of criteria until the guard is dropped. Every process that serves `event/conf` gets each question. The
/// hub answers none of them; the servers carry them out, by the same rules.
pub(crate) fn hear_criteria(participant: &Participant, access: &Access) -> Result<Guard, BusError> {
    let limits = Limits { question: QUESTION, ..Limits::inline() };
    let hear = |request: Request| {
        let Ok(question) = request.json_or_default::<Value>() else { return };
        let Some(set) = question.get("set").filter(|set| !set.is_null()) else { return };
        let pattern = question["pattern"].as_str().unwrap_or("**");
        if request.require_for(Verb::Set, &Resource::Attribute(pattern.to_owned())).is_ok() {
            request.carried_out(Verb::Set, &format!("criteria of {pattern}: {set}"));
        }
    };
    serve(participant, &TopicName::new(tampu_event::topics::CONF)?, Permission::ByHandler(access.clone()), &limits, hear)
}

/// Log of refused and administrative actions.
pub(crate) struct Audit {
    /// The logger. Until there is one, nobody can ask the hub anything.
    logger: OnceLock<Logger>,
    limit: PeriodLimit<(Principal, Verb)>,
    /// The limit for each host and topic.
    topics: PeriodLimit<(String, String)>,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { logger: OnceLock::new(), limit: PeriodLimit::default(), topics: PeriodLimit::of(TOPIC_RECORDS) }
    }
}

impl Audit {
    /// Logs through this logger from here on.
    pub(crate) fn log_to(&self, logger: &Logger) {
        // Set once, at the start.
        let _ = self.logger.set(logger.named(AUDIT));
    }

    /// Logs an action that arrived over the bus.
    pub(crate) fn act(&self, act: &Act<'_>) {
        let what = act.resource.to_string();
        match act.outcome {
            Outcome::Done(detail) => self.done(&act.principal.to_string(), act.verb, &what, "bus", detail),
            Outcome::Refused(why) => self.refused(act.principal, act.verb, &what, "bus", why),
        }
    }

    /// Logs an administrative action that was carried out. `from` is `bus` or the address of the caller.
    pub(crate) fn done(&self, who: &str, verb: Verb, what: &str, from: &str, detail: &str) {
        let Some(logger) = self.logger.get() else { return };
        notice!(logger, "{who} did {verb} {what}: {detail}";
            who = who, verb = verb.name(), what = what, from = from, outcome = "done");
    }

    /// Logs a refused action. Of a flood only the first ones of a minute are logged, and the number of the others.
    pub(crate) fn refused(&self, who: &Principal, verb: Verb, what: &str, from: &str, why: &str) {
        if let Some(unlogged) = self.limit.admit((who.clone(), verb), Instant::now()) {
            self.log_refusal(who, verb, what, from, why, unlogged);
        }
    }

    /// Logs that a host announces a stream of a topic that it may not write, once a minute.
    pub(crate) fn refused_topic(&self, host: &str, topic: &TopicName, why: impl FnOnce() -> String) {
        let cause = (host.to_owned(), topic.key());
        if let Some(unlogged) = self.topics.admit(cause, Instant::now()) {
            let what = Resource::Topic(topic.to_string()).to_string();
            self.log_refusal(&Principal::Host(host.to_owned()), Verb::Write, &what, "bus", &why(), unlogged);
        }
    }

    fn log_refusal(&self, who: &Principal, verb: Verb, what: &str, from: &str, why: &str, unlogged: u64) {
        let Some(logger) = self.logger.get() else { return };
        let name = who.to_string();
        let more = if unlogged > 0 { format!("; {unlogged} more refusals before this one") } else { String::new() };
        warning!(logger, "{name} may not {verb} {what}: {why}{more}";
            who = name.as_str(), verb = verb.name(), what = what, from = from, outcome = "refused", unlogged = unlogged);
    }
}
