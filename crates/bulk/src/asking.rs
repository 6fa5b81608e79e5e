//! Queries for the state of senders and receivers. Each sender and receiver serves its own state ([`STATE`]), so that a
//! client can find a slow receiver.
//!
//! A hub answers another hub with the transfers that it knows ([`TRANSFERS`]).

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tampu_bus::{
    BusError, Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{CallError, Limits, Permission, Request, call},
};
use tampu_types::TopicName;

use crate::{Distributor, Receiver, Sender};

/// Name of the state service. The answer is JSON: `{"sender": SenderReport}`, `{"receiver": ReceiverReport}`, or both
/// of a distributor.
pub const STATE: &str = "bulk/state";

/// Name of a hub's service for transfers. The answer is an array of transfers, the oldest first.
pub const TRANSFERS: &str = "bulk/transfers";

/// Longest answer that is sent or read, in bytes.
const ANSWER_LIMIT: usize = 4 << 20;
/// Number of receivers that a flow keeps in an answer before whole flows are left out.
const RECEIVERS_KEPT: usize = 8;

/// The answers of all processes.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The answered items.
    pub list: Vec<Value>,
    /// The number of items that the answering processes left out, because the whole answer was too long.
    pub left_out: u64,
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
pub(crate) fn answer(
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

/// Encodes an answer to [`TRANSFERS`]: the newest transfers that fit, the oldest first. If some are left out, their
/// number comes first.
pub fn newest<'a, T: Serialize + 'a>(all: impl DoubleEndedIterator<Item = &'a T> + ExactSizeIterator) -> Vec<u8> {
    let (mut kept, mut length, mut left) = (Vec::new(), 64, all.len());
    for one in all.rev() {
        let text = serde_json::to_string(one).unwrap_or_default();
        length += text.len() + 1;
        if length > ANSWER_LIMIT {
            break;
        }
        kept.push(text);
        left -= 1;
    }
    if left > 0 {
        kept.push(json!({"left_out": left}).to_string());
    }
    kept.reverse();
    format!("[{}]", kept.join(",")).into_bytes()
}

/// Returns the states of all senders and receivers that answer within this time. Without answers the list is empty.
pub fn ask(participant: &Participant, timeout: Duration) -> Result<Answers, CallError> {
    answers(participant, STATE, timeout)
}

/// Returns the transfers that hubs know.
pub fn transfers(participant: &Participant, timeout: Duration) -> Result<Answers, CallError> {
    let mut answers = answers(participant, TRANSFERS, timeout)?;
    for answer in std::mem::take(&mut answers.list) {
        match answer {
            Value::Array(all) => answers.take_transfers(all),
            _ => answers.unreadable += 1,
        }
    }
    Ok(answers)
}

impl Answers {
    fn take_transfers(&mut self, all: Vec<Value>) {
        for one in all {
            match one["left_out"].as_u64() {
                Some(left_out) => self.left_out += left_out,
                None => self.list.push(one),
            }
        }
    }
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
    fn long_answers_keep_what_fits_and_say_how_much_they_left_out() {
        let all: Vec<Value> = (0..1000).map(|number| json!({"transfer": number, "why": "x".repeat(10_000)})).collect();
        let bytes = newest(all.iter());
        assert!(bytes.len() <= ANSWER_LIMIT);
        let mut answers = Answers::default();
        answers.take_transfers(serde_json::from_slice(&bytes).unwrap());
        assert_eq!(answers.list.len() as u64 + answers.left_out, 1000);
        assert_eq!(answers.list.last(), all.last());
        let few = newest(all[..3].iter());
        assert_eq!(serde_json::from_slice::<Vec<Value>>(&few).unwrap(), all[..3]);
        assert_eq!(newest([].iter() as std::slice::Iter<'_, Value>), b"[]");
    }

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
