//! A service that a session's client answers, and the questions that wait for its answers.
//!
//! ```text
//! bus -> the hook -> QUESTION -> client -> ANSWER -> parts on the bus
//!                                  '-- after its time, or when nobody reads the answer: CANCEL
//! ```
//! Decision: the hub asks the hook for the asking principal before the client hears of a question, with the same verbs and
//! resources as for a question of a client. So a client decides about no rights. Rejected: the principal in QUESTION as
//! the only protection, because each language would need the rules of the host.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value as Json;
use tampu_bus::{
    BusError, Participant,
    access::{Principal, Resource, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, serve},
};
use tampu_types::{
    TopicName,
    gateway::{
        Kind,
        frame::{FLAG_LAST, FLAG_REFUSED},
        messages::{Code, End, Serve},
        question::{Answer, Passed},
    },
};
use tampu_workers::RunningGuard;

use super::{
    limits::{ALL_PASSED, ANSWER, ANSWER_TIME, PASSED_QUESTION, PASSED_QUESTIONS},
    outgoing::Outgoing,
    rights,
    shared::{GatewayShared, count},
};

/// Longest and shortest time for an answer that a client may set, in ms.
const TIMES: std::ops::RangeInclusive<u32> = 1000..=600_000;

/// A service that a client answers.
pub(super) struct Service {
    waiting: Arc<Waiting>,
    /// Its place on the bus.
    guard: Mutex<Option<Guard>>,
}

/// Settings of a service, and its way to the client.
pub(super) struct ServicePlace {
    pub id: u32,
    pub service: TopicName,
    /// Name of the offer, whose questions alone are passed on.
    pub name: Option<String>,
    /// Right that each question needs, if the service's name does not say it.
    pub asked: Option<(Verb, Resource)>,
    /// Time for an answer.
    pub time: Duration,
    pub outgoing: Arc<Outgoing>,
    /// Returns true while the client has no connection.
    pub is_detached: Box<dyn Fn() -> bool + Send + Sync>,
    pub gateway: Arc<GatewayShared>,
}

/// Questions of a service that wait for their answers.
struct Waiting {
    place: ServicePlace,
    /// Incarnation of the session, for questions that name a process.
    process: String,
    next: AtomicU64,
    questions: Mutex<HashMap<u64, Question>>,
}

/// A question under way to the client.
struct Question {
    request: Request,
    until: Instant,
    /// True if each part of the answer has rights of its own.
    is_list: bool,
    /// Text for the audit, if the question changes something.
    change: Option<String>,
    _place: RunningGuard,
}

impl Service {
    /// Serves it on the bus as this participant.
    pub fn open(participant: &Participant, place: ServicePlace) -> Result<Service, BusError> {
        let (name, access) = (place.service.clone(), place.gateway.access.clone());
        let process = participant.incarnation().to_string();
        let waiting = Arc::new(Waiting { place, process, next: AtomicU64::new(1), questions: Mutex::default() });
        let limits = Limits { at_once: PASSED_QUESTIONS, question: PASSED_QUESTION, answer: ANSWER, ..Limits::inline() };
        let of = waiting.clone();
        let guard = serve(participant, &name, Permission::ByHandler(access), &limits, move |request| of.pass(request))?;
        Ok(Service { waiting, guard: Mutex::new(Some(guard)) })
    }

    /// Passes a part of the client's answer on.
    pub fn answer(&self, flags: u8, answer: &Answer<'_>) {
        self.waiting.answer(flags, answer);
    }

    /// Refuses the questions whose time is over.
    pub fn expire(&self, now: Instant) {
        self.waiting.expire(now);
    }

    /// Returns the number of questions that wait for their answer.
    pub fn waiting(&self) -> usize {
        self.waiting.questions.lock().len()
    }

    /// Leaves the bus, and refuses the questions that wait.
    pub fn stop(&self) {
        drop(self.guard.lock().take());
        let left: Vec<Question> = self.waiting.questions.lock().drain().map(|(_, question)| question).collect();
        for question in left {
            question.request.refuse("its program answers no further questions");
        }
    }
}

impl Waiting {
    /// Sends a question to the client, or refuses it. It must not wait, because the engine's worker calls it.
    fn pass(&self, request: Request) {
        let octets = request.question().clone();
        let json: Json = serde_json::from_slice(&octets).unwrap_or(Json::Null);
        if !self.is_meant(&json) {
            return;
        }
        let is_list = rights::has_rights_by_part(self.place.service.as_str(), &octets);
        if is_list && !rights::is_plain_list(&octets) {
            return request.refuse("a command needs the `name` of an offer");
        }
        let mut change = None;
        let rights = match &self.place.asked {
            Some(asked) => vec![asked.clone()],
            None => rights::of_question(self.place.service.as_str(), &octets),
        };
        for (verb, resource) in rights {
            if let Err(denied) = request.require_for(verb, &resource) {
                return request.deny(denied);
            }
            if verb == Verb::Set {
                let name = self.place.name.as_deref().unwrap_or(self.place.service.as_str());
                change = Some(format!("{name}: {}", json.get("do").unwrap_or(&json)));
            }
        }
        // A command that waits for the client's return could be carried out long after its caller has given it up.
        if (self.place.is_detached)() {
            return request.refuse("its program has lost its connection with the hub; try again");
        }
        let Some(place) = self.place.gateway.passed.try_enter(ALL_PASSED) else {
            return request.refuse(format_args!("the hub passes {ALL_PASSED} questions on already; try again"));
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let asker = request.asker().map_or_else(String::new, Principal::word);
        let mut body = Vec::new();
        let timeout_ms = u32::try_from(self.place.time.as_millis()).unwrap_or(u32::MAX);
        Passed { number, timeout_ms, asker: &asker, question: &octets }.encode(&mut body);
        let question = Question { request, until: Instant::now() + self.place.time, is_list, change, _place: place };
        // Before the frame goes, whose answer may come at once.
        self.questions.lock().insert(number, question);
        if self.place.outgoing.send(Kind::Question, 0, self.place.id, &body).is_err()
            && let Some(question) = self.take(number)
        {
            return question.request.refuse("its program is ending, or takes nothing from the hub");
        }
        count(&self.place.gateway.counters.passed);
    }

    /// Returns true unless the question is for another offer or another process.
    fn is_meant(&self, question: &Json) -> bool {
        let Some(own) = &self.place.name else { return true };
        let differs = |member: &str, own: &str| question.get(member).and_then(Json::as_str).is_some_and(|other| other != own);
        !differs("name", own) && !differs("process", &self.process)
    }

    fn take(&self, number: u64) -> Option<Question> {
        self.questions.lock().remove(&number)
    }

    fn answer(&self, flags: u8, answer: &Answer<'_>) {
        // It is answered without the lock, which the engine's worker needs: the bus may wait for that worker.
        let Some(question) = self.take(answer.number) else { return };
        if flags & FLAG_REFUSED != 0 {
            return question.request.refuse(refusal_of(answer.content));
        }
        let is_last = flags & FLAG_LAST != 0;
        let goes_on = answer.content.is_empty()
            || !question.may_have(self.place.service.as_str(), answer.content)
            || question.request.part(answer.content);
        match (is_last, goes_on) {
            (false, true) => {
                self.questions.lock().insert(answer.number, question);
            }
            (false, false) => self.cancel(answer.number),
            (true, _) => {
                if let Some(change) = &question.change {
                    question.request.carried_out(Verb::Set, change);
                }
            }
        }
    }

    fn expire(&self, now: Instant) {
        let late: Vec<u64> =
            self.questions.lock().iter().filter(|(_, question)| question.until <= now).map(|(number, _)| *number).collect();
        for number in late {
            if let Some(question) = self.take(number) {
                let seconds = self.place.time.as_secs_f64();
                question.request.refuse(format_args!("its program has not answered within {seconds} s"));
                count(&self.place.gateway.counters.expired);
                self.cancel(number);
            }
        }
    }

    /// Reports to the client that nobody reads an answer.
    fn cancel(&self, number: u64) {
        // A closed session has nobody to hear it.
        let _ = self.place.outgoing.send(Kind::Cancel, 0, self.place.id, &number.to_le_bytes());
    }
}

impl Question {
    /// Returns true if the asking principal may have this part of the answer.
    fn may_have(&self, service: &str, content: &[u8]) -> bool {
        !self.is_list
            || rights::of_part(service, content)
                .is_some_and(|of| self.request.may(Verb::Read, &of) || self.request.may(Verb::Set, &of))
    }
}

/// Returns the time for an answer.
pub(super) fn time_of(wanted: &Serve) -> Result<Duration, End> {
    let time_ms = wanted.time_ms.unwrap_or(ANSWER_TIME);
    match TIMES.contains(&time_ms) {
        true => Ok(Duration::from_millis(u64::from(time_ms))),
        false => {
            let why = format_args!("`time_ms` is {time_ms}: give {} to {} ms", TIMES.start(), TIMES.end());
            Err(End::because(Code::Bad, why))
        }
    }
}

/// Returns the reason in a client's refusal.
pub(super) fn refusal_of(content: &[u8]) -> String {
    let json: Json = serde_json::from_slice(content).unwrap_or(Json::Null);
    json.get("error").and_then(Json::as_str).map_or_else(|| "its program gives no reason".to_owned(), str::to_owned)
}
