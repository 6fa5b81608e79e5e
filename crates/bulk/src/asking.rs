//! Queries for the state of senders and receivers. Each sender and receiver serves its own state ([`STATE`]), so that a
//! client can find a slow receiver.
//!
//! A hub that collects answers with the transfers that it knows and keeps ([`TRANSFERS`]), and maintains their archive
//! ([`ARCHIVE`]).

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tampu_archive::{
    Doing,
    upkeep::{Done, Told, Upkeep},
};
use tampu_bus::{
    BusError, Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{CallError, Limits, Permission, Request, call, call_json},
};
use tampu_types::TopicName;

use crate::{
    Distributor, Receiver, Sender,
    transfers::{TransferPage, TransferQuery},
};

/// Name of the state service. The answer is JSON: `{"sender": SenderReport}`, `{"receiver": ReceiverReport}`, or both
/// of a distributor.
pub const STATE: &str = "bulk/state";

/// Name of a hub's service for running and kept transfers. A [`TransferQuery`] is answered with a [`TransferPage`].
pub const TRANSFERS: &str = "bulk/transfers";

/// Name of a hub's service for the maintenance of the archive of transfers. Its question is an [`Upkeep`].
pub const ARCHIVE: &str = "bulk/archive";

/// Longest answer that is sent or read, in bytes.
const ANSWER_LIMIT: usize = 4 << 20;
/// Number of receivers that a flow keeps in an answer before whole flows are left out.
const RECEIVERS_KEPT: usize = 8;

/// The answers of all processes.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The answered items.
    pub list: Vec<Value>,
    /// Answers that could not be read, or were too long.
    pub unreadable: u64,
    /// Processes that answered.
    pub answered: u64,
}

/// Serves a sender's state until the guard is dropped.
pub fn serve_sender(participant: &Participant, sender: &Arc<Sender>) -> Result<Guard, BusError> {
    serve(participant, sender, |sender: &Sender| json!({"sender": sender.state()}))
}

/// Serves a receiver's state until the guard is dropped.
pub fn serve_receiver(participant: &Participant, receiver: &Arc<Receiver>) -> Result<Guard, BusError> {
    serve(participant, receiver, |receiver: &Receiver| json!({"receiver": receiver.state()}))
}

/// Serves the states of both sides of a distributor until the guard is dropped.
pub fn serve_distributor(participant: &Participant, distributor: &Arc<Distributor>) -> Result<Guard, BusError> {
    serve(participant, distributor, |distributor: &Distributor| {
        let state = distributor.state();
        json!({"receiver": state.input, "sender": state.output})
    })
}

fn serve<T: Send + Sync + 'static>(
    participant: &Participant,
    of: &Arc<T>,
    state: impl Fn(&T) -> Value + Send + Sync + 'static,
) -> Result<Guard, BusError> {
    // The weak reference keeps the service from holding its owner open.
    let of: Weak<T> = Arc::downgrade(of);
    answer(participant, STATE, move || of.upgrade().map(|of| fitting(state(&of)).into_bytes()))
}

/// Answers a service with the result of `state`, in one part. Reading a state takes only short locks, so the engine's
/// worker does it.
fn answer(
    participant: &Participant,
    service: &str,
    state: impl Fn() -> Option<Vec<u8>> + Send + Sync + 'static,
) -> Result<Guard, BusError> {
    let handler = move |request: Request| {
        if let Some(state) = state() {
            request.part(&state);
        }
    };
    let permission = Permission::Verb(Access::of_host(), Verb::Read);
    tampu_bus::service::serve(participant, &TopicName::new(service)?, permission, &Limits::inline(), handler)
}

/// Encodes a state as JSON within the length limit. The last receivers of flows are left out first, then the last
/// flows. The answer states the number left out.
fn fitting(state: Value) -> String {
    fitted(state).to_string()
}

/// Shortens a state until its JSON is within the length limit.
pub(crate) fn fitted(mut state: Value) -> Value {
    while state.to_string().len() > ANSWER_LIMIT && ["sender", "receiver"].into_iter().any(|side| halve(&mut state[side])) {}
    state
}

/// Leaves out half of the receivers of the largest flow, or half of the flows. Returns whether there was anything to
/// leave out.
fn halve(side: &mut Value) -> bool {
    let count = |flow: &Value| flow["receivers"].as_array().map_or(0, Vec::len);
    let most = side["flows"].as_array_mut().and_then(|flows| flows.iter_mut().max_by_key(|flow| count(flow)));
    match most {
        Some(flow) if count(flow) > RECEIVERS_KEPT => leave_out(flow, "receivers", "receivers_left_out"),
        Some(_) => leave_out(side, "flows", "flows_left_out"),
        None => false,
    }
}

fn leave_out(of: &mut Value, list: &str, told: &str) -> bool {
    let Some(all) = of[list].as_array_mut().filter(|all| !all.is_empty()) else { return false };
    let left_out = all.drain(all.len() / 2..).count() as u64;
    of[told] = (of[told].as_u64().unwrap_or(0) + left_out).into();
    true
}

/// Returns the states of all senders and receivers that answer within this time. Without answers the list is empty.
pub fn ask(participant: &Participant, timeout: Duration) -> Result<Answers, CallError> {
    answers(participant, STATE, timeout)
}

/// Returns a page of the running and kept transfers, of the first hub that answers.
pub fn page(participant: &Participant, query: &TransferQuery, timeout: Duration) -> Result<TransferPage, CallError> {
    call_json(participant, TRANSFERS, query, timeout)?.first().json()
}

/// Runs an upkeep task of the archive of transfers. `doing` gets its progress until it returns `false`.
pub fn upkeep(
    participant: &Participant,
    task: &Upkeep,
    timeout: Duration,
    doing: &mut dyn FnMut(Doing) -> bool,
) -> Result<Done, CallError> {
    call_json(participant, ARCHIVE, task, timeout)?.first().until(|told: Told| told.judged(doing))
}

fn answers(participant: &Participant, service: &str, timeout: Duration) -> Result<Answers, CallError> {
    let mut found = Answers::default();
    for part in call(participant, service, Bytes::new(), timeout)? {
        let content = match part {
            Ok(part) => part.content.ok().filter(|content| content.len() <= ANSWER_LIMIT),
            Err(CallError::Unanswered(_)) => continue,
            Err(error) => return Err(error),
        };
        found.answered += 1;
        match content.and_then(|content| serde_json::from_slice::<Value>(&content).ok()) {
            Some(value) => found.list.push(value),
            None => found.unreadable += 1,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_states_keep_a_few_receivers_of_each_flow() {
        let receivers: Vec<Value> = (0..500).map(|_| json!({"why": "x".repeat(1000)})).collect();
        let flows: Vec<Value> = (0..20).map(|number| json!({"flow": number, "receivers": receivers})).collect();
        let state: Value = serde_json::from_str(&fitting(json!({"sender": {"flows": flows}}))).unwrap();
        let flows = state["sender"]["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 20);
        for flow in flows {
            let kept = flow["receivers"].as_array().unwrap().len() as u64;
            assert!(kept >= 8 && kept + flow["receivers_left_out"].as_u64().unwrap_or(0) == 500);
        }
        let flows: Vec<Value> = (0..10_000).map(|number| json!({"flow": number, "sender": "x".repeat(1000)})).collect();
        let text = fitting(json!({"receiver": {"flows": flows}}));
        let state: Value = serde_json::from_str(&text).unwrap();
        let kept = state["receiver"]["flows"].as_array().unwrap().len() as u64;
        assert!(text.len() <= ANSWER_LIMIT && kept > 0 && kept + state["receiver"]["flows_left_out"].as_u64().unwrap() == 10_000);
    }
}
