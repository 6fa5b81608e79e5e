//! Services that a session's client answers.
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
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value as Json;
use tampu_bus::{
    access::{Principal, Resource, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, serve},
};
use tampu_types::{
    TopicName,
    gateway::{
        Kind,
        frame::{FLAG_LAST, FLAG_REFUSED},
        messages::{Code, End, Opened, Serve},
        question::{Answer, Passed},
    },
};
use tampu_workers::RunningGuard;

use super::{
    limits::{ALL_PASSED, ANSWER, ANSWER_TIME, PASSED_QUESTION, PASSED_QUESTIONS, SERVICES},
    rights,
    session::{Entry, Session},
    shared::{GatewayShared, count},
};

/// Beginnings of the names of services that programs of this project answer.
const RESERVED: [&str; 5] = ["log/", "event/", "hub/", "site/", "bulk/"];
/// Service whose questions name an offer; clients may answer it.
const OFFERS: &str = "bulk/control";
/// Longest name of an offer, in bytes.
const NAME: usize = 200;
/// Longest and shortest time for an answer that a client may set, in ms.
const TIMES: std::ops::RangeInclusive<u32> = 1000..=600_000;

/// A service that a client answers.
pub(super) struct Service {
    waiting: Arc<Waiting>,
    /// Its place on the bus.
    guard: Mutex<Option<Guard>>,
}

/// Questions of a service that wait for their answers.
struct Waiting {
    id: u32,
    service: String,
    /// Name of the offer, whose questions alone are passed on.
    name: Option<String>,
    /// Incarnation of the session, for questions that name a process.
    process: String,
    time: Duration,
    session: Weak<Session>,
    gateway: Arc<GatewayShared>,
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

/// Begins to answer a service of the bus through the client.
pub(super) fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, wanted: &Serve) -> Result<(), End> {
    let bad = |why: &dyn std::fmt::Display| End::because(Code::Bad, why);
    if !session.serves {
        return Err(bad(&"SERVE needs the feature `serve` in HELLO"));
    }
    // Bounds for guests would have to be small, and nobody has asked for services of visitors without a login.
    if session.is_guest() {
        return Err(End::because(Code::Denied, "a guest answers no services"));
    }
    if session.counts().services >= SERVICES {
        return Err(End::because(Code::Limit, format_args!("a session answers at most {SERVICES} services")));
    }
    let topic = TopicName::new(&wanted.service).map_err(|why| bad(&why))?;
    let of_offers = topic.as_str().eq_ignore_ascii_case(OFFERS);
    if !of_offers && RESERVED.iter().any(|start| topic.as_str().to_ascii_lowercase().starts_with(start)) {
        return Err(bad(&format_args!("the service {topic} is one of the hub's own; choose a name that does not begin like it")));
    }
    let resource = match &wanted.name {
        Some(name) if name.is_empty() || name.len() > NAME || name.chars().any(|each| each.is_control() || each == '#') => {
            let why = "give 1 to 200 bytes without control characters and '#'";
            return Err(bad(&format_args!("invalid name '{}' of an offer: {why}", name.escape_debug())));
        }
        Some(name) => Resource::Service(format!("{topic}/{name}")),
        None if of_offers => return Err(bad(&format_args!("{OFFERS} needs the `name` of the offer"))),
        None => Resource::Service(topic.to_string()),
    };
    let time_ms = wanted.time_ms.unwrap_or(ANSWER_TIME);
    if !TIMES.contains(&time_ms) {
        return Err(bad(&format_args!("`time_ms` is {time_ms}: give {} to {} ms", TIMES.start(), TIMES.end())));
    }
    session.require(gateway, Verb::Write, &Resource::Source(session.source.to_string()))?;
    session.require(gateway, Verb::Write, &resource)?;
    let participant = session.publishers.join(&session.source, &gateway.join)?;
    let waiting = Arc::new(Waiting {
        id,
        service: topic.to_string(),
        name: wanted.name.clone(),
        process: participant.incarnation().to_string(),
        time: Duration::from_millis(u64::from(time_ms)),
        session: Arc::downgrade(session),
        gateway: gateway.clone(),
        next: AtomicU64::new(1),
        questions: Mutex::default(),
    });
    let opened = Opened { incarnation: Some(participant.incarnation()), stream: None };
    // The client hears of the service before it hears of its first question. A closed session has nobody to hear it.
    let _ = session.send_json(Kind::Opened, id, &opened);
    let limits = Limits { at_once: PASSED_QUESTIONS, question: PASSED_QUESTION, answer: ANSWER, ..Limits::inline() };
    let of = waiting.clone();
    let handler = move |request: Request| of.pass(request);
    let guard = serve(&participant, &topic, Permission::ByHandler(gateway.access.clone()), &limits, handler)
        .map_err(|why| End::because(Code::Failed, why))?;
    let service = Arc::new(Service { waiting, guard: Mutex::new(Some(guard)) });
    session.entries.lock().insert(id, Entry::Service(service));
    Ok(())
}

impl Service {
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
        let Some(session) = self.session.upgrade() else { return };
        let octets = request.question().clone();
        let json: Json = serde_json::from_slice(&octets).unwrap_or(Json::Null);
        if !self.is_meant(&json) {
            return;
        }
        let is_list = rights::has_rights_by_part(&self.service, &octets);
        if is_list && !rights::is_plain_list(&octets) {
            return request.refuse("a command needs the `name` of an offer");
        }
        let mut change = None;
        for (verb, resource) in rights::of_question(&self.service, &octets) {
            if let Err(denied) = request.require_for(verb, &resource) {
                return request.deny(denied);
            }
            if verb == Verb::Set {
                let name = self.name.as_deref().unwrap_or(&self.service);
                change = Some(format!("{name}: {}", json.get("do").unwrap_or(&json)));
            }
        }
        // A command that waits for the client's return could be carried out long after its caller has given it up.
        if session.detached_since().is_some() {
            return request.refuse("its program has lost its connection with the hub; try again");
        }
        let Some(place) = self.gateway.passed.try_enter(ALL_PASSED) else {
            return request.refuse(format_args!("the hub passes {ALL_PASSED} questions on already; try again"));
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let asker = request.asker().map_or_else(String::new, Principal::word);
        let mut body = Vec::new();
        let timeout_ms = u32::try_from(self.time.as_millis()).unwrap_or(u32::MAX);
        Passed { number, timeout_ms, asker: &asker, question: &octets }.encode(&mut body);
        let question = Question { request, until: Instant::now() + self.time, is_list, change, _place: place };
        // Before the frame goes, whose answer may come at once.
        self.questions.lock().insert(number, question);
        if session.outgoing.send(Kind::Question, 0, self.id, &body).is_err()
            && let Some(question) = self.take(number)
        {
            return question.request.refuse("its program is ending, or takes nothing from the hub");
        }
        count(&self.gateway.counters.passed);
    }

    /// Returns true unless the question is for another offer or another process.
    fn is_meant(&self, question: &Json) -> bool {
        let Some(own) = &self.name else { return true };
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
            || !question.may_have(&self.service, answer.content)
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
                let seconds = self.time.as_secs_f64();
                question.request.refuse(format_args!("its program has not answered within {seconds} s"));
                count(&self.gateway.counters.expired);
                self.cancel(number);
            }
        }
    }

    /// Reports to the client that nobody reads an answer.
    fn cancel(&self, number: u64) {
        if let Some(session) = self.session.upgrade() {
            // A closed session has nobody to hear it.
            let _ = session.outgoing.send(Kind::Cancel, 0, self.id, &number.to_le_bytes());
        }
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

/// Returns the reason in a client's refusal.
fn refusal_of(content: &[u8]) -> String {
    let json: Json = serde_json::from_slice(content).unwrap_or(Json::Null);
    json.get("error").and_then(Json::as_str).map_or_else(|| "its program gives no reason".to_owned(), str::to_owned)
}
