//! What a sender tells of a transfer for whoever keeps an account of them: never longer than is read, and it says what was left out.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{name::Name, state::Report};

/// The longest note, bytes.
pub const NOTE_LIMIT: usize = 256 << 10;
/// Letters of a parameter in a note that would be too long.
const PARAMETER_KEPT: usize = 4096;
/// Ranges of lost data of each receiver in such a note.
const RANGES_KEPT: usize = 16;

/// How a transfer began or ended, as its sender tells it.
#[derive(Debug, Clone, Serialize)]
pub struct TransferNote<'a> {
    /// Which stream.
    pub stream: &'a Name,
    /// Which flow.
    pub flow: &'a Name,
    /// Its number in this life of the flow.
    pub transfer: u64,
    /// The parameter, as text where it is text.
    pub parameter: String,
    /// `None`: it has begun.
    pub report: Option<&'a Report>,
}

impl TransferNote<'_> {
    /// As JSON. One that would be too long has a shorter parameter, the first ranges of each receiver, and as many receivers as fit,
    /// those that have not got all before the others; beside each stands how many were left out.
    pub fn encode(&self) -> Vec<u8> {
        // A note is text and numbers: nothing in it that JSON does not have.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        if bytes.len() <= NOTE_LIMIT {
            return bytes;
        }
        let mut note = serde_json::to_value(self).unwrap_or_default();
        note["shortened"] = Value::Bool(true);
        note["parameter"] = self.parameter.chars().take(PARAMETER_KEPT).collect::<String>().into();
        let deliveries =
            note.pointer_mut("/report/deliveries").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let (mut deliveries, whole): (Vec<Value>, Vec<Value>) =
            deliveries.into_iter().partition(|one| one["complete"] == json!(false));
        deliveries.extend(whole);
        for delivery in &mut deliveries {
            if let Some(lost) = delivery["lost"].as_array_mut().filter(|lost| lost.len() > RANGES_KEPT) {
                let left_out = lost.drain(RANGES_KEPT..).count();
                delivery["lost_left_out"] = left_out.into();
            }
        }
        let all = deliveries.len();
        loop {
            if self.report.is_some() {
                note["report"]["deliveries"] = deliveries.clone().into();
                note["report"]["deliveries_left_out"] = (all - deliveries.len()).into();
            }
            let bytes = serde_json::to_vec(&note).unwrap_or_default();
            if bytes.len() <= NOTE_LIMIT || deliveries.is_empty() {
                return bytes;
            }
            deliveries.truncate(deliveries.len() / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        handler::Peer,
        message::Cause,
        receiving::{LostRange, RANGES_KEPT},
        state::{Delivery, LinkStatus},
    };

    fn delivery(number: usize, complete: bool) -> Delivery {
        let lost = |at: u64| LostRange { from: 2 * at, to: Some(2 * at + 1), frames: 1, cause: Cause::Slow };
        Delivery {
            receiver: Peer {
                source: format!("archive{number}"),
                incarnation: Default::default(),
                address: "10.0.0.1:1".to_owned(),
            },
            complete,
            acknowledged: 0,
            lost: if complete { Vec::new() } else { (0..RANGES_KEPT as u64).map(lost).collect() },
            lost_bytes: if complete { 0 } else { RANGES_KEPT as u64 },
            faults: Vec::new(),
            status: LinkStatus::Live,
            cut: None,
            why: "\u{1}".repeat(1000),
        }
    }

    #[test]
    fn a_long_note_is_shortened_and_says_so() {
        let (stream, flow) = (Name::new("s").unwrap(), Name::new("f").unwrap());
        let deliveries = (0..100).map(|number| delivery(number, number != 70)).collect();
        let report = Report { transfer: 3, bytes: 7, seconds: 1.0, deliveries };
        let note = |parameter: &str, report| {
            let note = TransferNote { stream: &stream, flow: &flow, transfer: 3, parameter: parameter.to_owned(), report };
            let bytes = note.encode();
            assert!(bytes.len() <= NOTE_LIMIT);
            serde_json::from_slice::<Value>(&bytes).unwrap()
        };
        let nobody = Report { deliveries: Vec::new(), ..report.clone() };
        let short = note("uid", Some(&nobody));
        assert_eq!((&short["parameter"], &short["shortened"]), (&json!("uid"), &Value::Null));
        let begun = note(&"é".repeat(1 << 20), None);
        assert_eq!((begun["parameter"].as_str().unwrap().chars().count(), &begun["report"]), (PARAMETER_KEPT, &Value::Null));
        let ended = note("uid", Some(&report));
        let kept = ended["report"]["deliveries"].as_array().unwrap();
        assert_eq!(ended["shortened"], json!(true));
        assert_eq!(kept.len() as u64 + ended["report"]["deliveries_left_out"].as_u64().unwrap(), 100);
        assert_eq!(kept[0]["receiver"]["source"], json!("archive70"), "who has not got all comes first");
        assert_eq!(
            kept[0]["lost"].as_array().unwrap().len() as u64 + kept[0]["lost_left_out"].as_u64().unwrap(),
            RANGES_KEPT as u64
        );
        assert_eq!(kept[0]["lost_bytes"], json!(RANGES_KEPT));
    }
}
