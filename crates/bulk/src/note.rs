//! A sender's report about a transfer, for an account of transfers. Its size is limited, and it names the parts that it
//! left out.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{file::FileLabel, name::Name, state::Report};

/// Longest note in bytes.
pub const NOTE_LIMIT: usize = 256 << 10;
/// Characters of the parameter that a shortened note keeps.
const PARAMETER_KEPT: usize = 4096;
/// Ranges of lost data that a shortened note keeps for each receiver.
const RANGES_KEPT: usize = 16;

/// The begin or the end of a transfer, as its sender reports it.
#[derive(Debug, Clone, Serialize)]
pub struct TransferNote<'a> {
    /// The name of the stream.
    pub stream: &'a Name,
    /// The name of the flow.
    pub flow: &'a Name,
    /// Number of the transfer in this incarnation of the flow.
    pub transfer: u64,
    /// Parameter of the transfer, as text if it is text.
    pub parameter: String,
    /// Report of the end; `None` at the start.
    pub report: Option<&'a Report>,
}

impl TransferNote<'_> {
    /// Encodes the note as JSON. If it would be too long, the parameter is shortened, and each receiver keeps its first
    /// ranges. As many receivers as fit are kept, first those with missing data. The note states the numbers left out.
    pub fn encode(&self) -> Vec<u8> {
        // Texts and numbers always have a JSON.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        if bytes.len() <= NOTE_LIMIT {
            return bytes;
        }
        let mut note = serde_json::to_value(self).unwrap_or_default();
        note["shortened"] = Value::Bool(true);
        note["parameter"] = FileLabel::shorten(&self.parameter, PARAMETER_KEPT).into();
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
