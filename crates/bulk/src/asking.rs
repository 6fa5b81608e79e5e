//! Asking how senders and receivers stand: a service that each of them answers for itself ([`STATE`]), so that somebody else can
//! see who waits for whom. A hub answers another with the transfers it has heard of ([`TRANSFERS`]).

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tampu_bus::{
    AskError, BusError, Participant,
    engine::{Guard, Question},
};
use tampu_types::TopicName;

use crate::{Distributor, Receiver, Sender};

/// The service's name. The answer is JSON: `{"sender": SenderReport}`, `{"receiver": ReceiverReport}`, or both of a distributor.
pub const STATE: &str = "bulk/state";

/// What a hub answers: an array of transfers, the oldest first.
pub const TRANSFERS: &str = "bulk/transfers";

/// The longest answer that is given and read, bytes.
const ANSWER_LIMIT: usize = 4 << 20;
/// A flow has this many receivers at least in an answer, before flows are left out.
const RECEIVERS_KEPT: usize = 8;

/// What came.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// What was told.
    pub list: Vec<Value>,
    /// How many things were left out by those who answered, because all of them were too long.
    pub left_out: u64,
    /// Answers that could not be read, or were too long.
    pub unreadable: u64,
}

/// Answers for a sender, until the guard is dropped.
pub fn serve_sender(participant: &Participant, sender: &Arc<Sender>) -> Result<Guard, BusError> {
    serve(participant, sender, |sender: &Sender| json!({"sender": sender.state()}))
}

/// Answers for a receiver, until the guard is dropped.
pub fn serve_receiver(participant: &Participant, receiver: &Arc<Receiver>) -> Result<Guard, BusError> {
    serve(participant, receiver, |receiver: &Receiver| json!({"receiver": receiver.state()}))
}

/// Answers for both sides of a distributor, until the guard is dropped.
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
    // Weak: whoever answers does not keep it open.
    let of: Weak<T> = Arc::downgrade(of);
    let answerer = Arc::new(move |question: Box<dyn Question>| {
        // Looking at the state waits for nothing but short locks, so it may be done where questions arrive.
        if let Some(of) = of.upgrade() {
            // An asker that is gone needs no answer.
            let _ = question.reply(Bytes::from(fitting(state(&of))));
        }
    });
    participant.answer(&TopicName::new(STATE)?, answerer)
}

/// A state as JSON that is not too long: receivers of flows, then flows, are left out from behind, and beside them stands how many.
fn fitting(mut state: Value) -> String {
    loop {
        let text = state.to_string();
        let halved = text.len() > ANSWER_LIMIT && ["sender", "receiver"].into_iter().any(|side| halve(&mut state[side]));
        if !halved {
            return text;
        }
    }
}

/// Leaves out half of the receivers of the flow that has most, or of the flows. Says whether there was anything to leave out.
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

/// An answer to [`TRANSFERS`]: the newest of these that fit, the oldest first; before them, where some are left out, how many.
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

/// How everybody stands who answers within this time. Nobody there is no error: the list is empty.
pub fn ask(participant: &Participant, timeout: Duration) -> Result<Answers, AskError> {
    answers(participant, STATE, timeout)
}

/// The transfers that hubs have heard of.
pub fn transfers(participant: &Participant, timeout: Duration) -> Result<Answers, AskError> {
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

fn answers(participant: &Participant, service: &str, timeout: Duration) -> Result<Answers, AskError> {
    let mut found = Answers::default();
    let Ok(service) = TopicName::new(service) else { return Ok(found) };
    for answer in participant.ask(&service, Bytes::new(), timeout)? {
        match answer {
            Ok(bytes) if bytes.len() <= ANSWER_LIMIT => match serde_json::from_slice::<Value>(&bytes) {
                Ok(value) => found.list.push(value),
                Err(_) => found.unreadable += 1,
            },
            Ok(_) => found.unreadable += 1,
            Err(AskError::Unanswered(_)) => {}
            Err(error) => return Err(error),
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
