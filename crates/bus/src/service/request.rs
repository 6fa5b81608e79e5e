//! The answering side.
//!
//! ```text
//! part:     u8[16] incarnation of the answering process | content
//! refusal:  u8[16] incarnation                          | {"error": "...", "denied": {...}}
//! ```

use std::{
    cell::Cell,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tampu_types::{Incarnation, TopicName};
use tampu_workers::{OnPanic, Running, RunningGuard, WorkerThread};

use super::limits::Limits;
use crate::{
    access::{Access, Denied, Principal, Resource, UnsealedQuestion, Verb},
    engine::{EngineError, Guard, Question},
    error::BusError,
    participant::{Participant, Shared, SourceInfo},
};

/// Length of the content of one part that [`Request::answer`] sends, in bytes.
pub const PART_LENGTH: usize = 1_000_000;

/// A refusal on the wire.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refusal {
    pub error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Denied>,
}

/// Rule that decides which processes may ask.
#[derive(Debug, Clone)]
pub enum Permission {
    /// Every member of the domain may ask.
    Everybody,
    /// The hook decides with this verb about the service.
    Verb(Access, Verb),
    /// The handler calls the hook, because the verb depends on the question ([`Request::require`]).
    ByHandler(Access),
}

impl Permission {
    fn access(&self) -> Option<&Access> {
        match self {
            Permission::Everybody => None,
            Permission::Verb(access, _) | Permission::ByHandler(access) => Some(access),
        }
    }

    fn bound_to(&self, participant: &Participant) -> Permission {
        match self {
            Permission::Everybody => Permission::Everybody,
            Permission::Verb(access, verb) => Permission::Verb(access.bound_to(participant), *verb),
            Permission::ByHandler(access) => Permission::ByHandler(access.bound_to(participant)),
        }
    }
}

struct Rules {
    name: String,
    resource: Resource,
    permission: Permission,
    limits: Limits,
    from: Incarnation,
    participant: Weak<Shared>,
}

/// Answers a service with `handler` until the guard is dropped. Then no further question comes, and answers under way have
/// `Limits::ending` to be given.
///
/// Questions that are too long, denied by the permission, or without a free place are refused here and never reach the
/// handler. `Limits::thread` decides if the handler runs on the engine's worker, where it must not wait, or on a thread
/// of its own.
pub fn serve(
    participant: &Participant,
    name: &TopicName,
    permission: Permission,
    limits: &Limits,
    handler: impl Fn(Request) + Send + Sync + 'static,
) -> Result<Guard, BusError> {
    let rules = Arc::new(Rules {
        name: name.to_string(),
        resource: Resource::Service(name.to_string()),
        permission: permission.bound_to(participant),
        limits: limits.clone(),
        from: participant.incarnation(),
        // Weak, because the participant holds the answerer.
        participant: Arc::downgrade(participant.shared()),
    });
    let handler = Arc::new(handler);
    let answerer = move |question: Box<dyn Question>| {
        let Some(request) = admit(&rules, question) else { return };
        let Some(name) = rules.limits.thread else { return handler(request) };
        let handler = handler.clone();
        // Without a thread the request is dropped, and its asker gets the error that no service answers.
        let _ = WorkerThread::named(name).spawn(OnPanic::ReportOnly, move || handler(request));
    };
    let declared = participant.answer(name, Arc::new(answerer))?;
    Ok(Box::new(Serving { declared: Some(declared), running: limits.running.clone(), ending: limits.ending }))
}

/// Service that is being answered.
struct Serving {
    declared: Option<Guard>,
    running: Running,
    ending: Duration,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.declared.take());
        if !self.ending.is_zero() {
            self.running.wait_until_idle(self.ending);
        }
    }
}

/// Refuses the question, or assigns a place to it.
fn admit(rules: &Arc<Rules>, question: Box<dyn Question>) -> Option<Request> {
    let unsealed = UnsealedQuestion::read(question.payload());
    let length = unsealed.content.len();
    let limits = &rules.limits;
    let mut request = Request {
        rules: rules.clone(),
        question,
        content: unsealed.content.clone(),
        asker: None,
        sent: Cell::new(0),
        place: None,
    };
    if length > limits.question {
        request.refuse(format_args!("the question has {length} bytes, the longest allowed is {}", limits.question));
        return None;
    }
    let host = rules.participant.upgrade().and_then(|shared| shared.asking_host(request.question.key()));
    request.asker = rules.permission.access().map(|access| access.asker(&rules.name, &unsealed, host.as_deref()));
    if let Permission::Verb(_, verb) = rules.permission
        && let Err(denied) = request.require(verb)
    {
        request.deny(denied);
        return None;
    }
    request.place = limits.running.try_enter(limits.at_once);
    if request.place.is_none() {
        request.refuse(format_args!("{} questions are being answered already; try again", limits.at_once));
        return None;
    }
    Some(request)
}

/// A question to answer. The asker's wait for this process ends when it is dropped.
pub struct Request {
    rules: Arc<Rules>,
    question: Box<dyn Question>,
    /// The question without its proof.
    content: Bytes,
    /// The asking principal, if a hook decides about it.
    asker: Option<Principal>,
    /// Bytes of the answer so far.
    sent: Cell<usize>,
    place: Option<RunningGuard>,
}

impl Request {
    /// Makes a request that does not come from the bus, for tests of handlers: each part of the answer goes to `reply`.
    pub fn outside(question: Bytes, reply: impl Fn(Bytes) + Send + 'static) -> Request {
        let rules = Rules {
            name: "outside".to_owned(),
            resource: Resource::Service("outside".to_owned()),
            permission: Permission::Everybody,
            limits: Limits { answer: usize::MAX, ..Limits::inline() },
            from: Incarnation::default(),
            participant: Weak::new(),
        };
        let content = question.clone();
        let question = Box::new(Outside { question, reply: Box::new(reply) });
        Request { rules: Arc::new(rules), question, content, asker: None, sent: Cell::new(0), place: None }
    }

    /// Returns the question as sent.
    pub fn question(&self) -> &Bytes {
        &self.content
    }

    /// Returns the principal that asks: the user of this host if it has proved that, else the asking host if its name is
    /// proved, else any member of the bus. Without a hook it is unknown.
    pub fn asker(&self) -> Option<&Principal> {
        self.asker.as_ref()
    }

    /// Returns the question as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(self.question()).map_err(|why| format!("the question cannot be read: {why}"))
    }

    /// Returns the question as JSON; an empty one is the default.
    pub fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, String> {
        if self.question().iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { self.json() }
    }

    /// Returns the time that the answer may take.
    pub fn time(&self) -> Duration {
        self.rules.limits.time
    }

    /// Asks the hook if the asking principal may do this to the service. Without a hook every member may.
    pub fn require(&self, verb: Verb) -> Result<(), Denied> {
        self.require_for(verb, &self.rules.resource)
    }

    /// Reports if the asking process belongs to the user of this host. Without a hook that is not known.
    pub fn is_local(&self) -> bool {
        matches!(self.asker, Some(Principal::User(_)))
    }

    /// Asks the hook if the asking principal may do this to another resource than the service.
    pub fn require_for(&self, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        match (self.rules.permission.access(), &self.asker) {
            (Some(access), Some(asker)) => access.ask_for(asker, verb, resource),
            _ => Ok(()),
        }
    }

    /// Reports if the asking principal may do this to a resource, without an audit record.
    pub fn may(&self, verb: Verb, resource: &Resource) -> bool {
        match (self.rules.permission.access(), &self.asker) {
            (Some(access), Some(asker)) => access.permits(asker, verb, resource),
            _ => true,
        }
    }

    /// Audits an administrative action that was carried out for the asking principal.
    pub fn carried_out(&self, verb: Verb, detail: &str) {
        if let (Some(access), Some(asker)) = (self.rules.permission.access(), &self.asker) {
            access.carried_out(asker, verb, &self.rules.resource, detail);
        }
    }

    /// Answers with the outcome of an action, or refuses with its error. The audit has an action that needed more than the
    /// right to read.
    pub fn conclude<T: Serialize, E: fmt::Display>(&self, verb: Verb, what: &impl fmt::Display, outcome: Result<T, E>) {
        match outcome {
            Ok(done) => {
                if verb != Verb::Read {
                    self.carried_out(verb, &what.to_string());
                }
                self.answer(&done);
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Sends one part. Returns false if nobody reads it: the asker is gone, or the answer is longer than allowed.
    pub fn part(&self, content: &[u8]) -> bool {
        let limit = self.rules.limits.answer;
        let before = self.sent.get();
        if before > limit {
            return false;
        }
        self.sent.set(before.saturating_add(content.len()));
        if self.sent.get() > limit {
            self.refuse(format_args!("the answer has more than {limit} bytes; ask for less"));
            return false;
        }
        self.send(content)
    }

    /// Sends a value as JSON, split into full parts. Returns false if nobody reads it.
    pub fn answer(&self, value: &impl Serialize) -> bool {
        match serde_json::to_vec(value) {
            Ok(json) => json.chunks(PART_LENGTH).all(|part| self.part(part)),
            Err(error) => {
                self.refuse(error);
                false
            }
        }
    }

    /// Refuses the question with a reason for the asker.
    pub fn refuse(&self, why: impl fmt::Display) {
        self.send_refusal(&Refusal { error: why.to_string(), denied: None });
    }

    /// Refuses the question with the hook's decision.
    pub fn deny(&self, denied: Denied) {
        self.send_refusal(&Refusal { error: denied.to_string(), denied: Some(denied) });
    }

    /// Calls `gone` when the asking process leaves the bus or dies, until the guard is dropped. Without a name in the
    /// question no process is watched.
    pub fn watch_asker(&self, asker: Option<Incarnation>, gone: impl Fn() + Send + Sync + 'static) -> Option<Guard> {
        let (asker, participant) = (asker?, self.rules.participant.upgrade()?);
        Some(participant.watch_sources(move |source: &SourceInfo, here: bool| {
            if !here && source.incarnation == asker {
                gone();
            }
        }))
    }

    fn send_refusal(&self, refusal: &Refusal) {
        // Texts and names always convert to JSON.
        self.send(&serde_json::to_vec(refusal).unwrap_or_default());
    }

    fn send(&self, content: &[u8]) -> bool {
        let mut part = Vec::with_capacity(16 + content.len());
        part.extend_from_slice(&self.rules.from.to_bytes());
        part.extend_from_slice(content);
        self.question.reply(Bytes::from(part)).is_ok()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({}, {} bytes)", self.rules.resource, self.question().len())
    }
}

struct Outside {
    question: Bytes,
    reply: Box<dyn Fn(Bytes) + Send>,
}

impl Question for Outside {
    fn key(&self) -> &str {
        ""
    }

    fn payload(&self) -> &Bytes {
        &self.question
    }

    fn reply(&self, part: Bytes) -> Result<(), EngineError> {
        (self.reply)(part);
        Ok(())
    }
}
