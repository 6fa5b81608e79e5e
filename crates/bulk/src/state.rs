//! States of senders and receivers, with waiting receivers and their times. All times are in seconds, all sizes in
//! bytes.

use serde::Serialize;

use crate::{
    handler::Peer,
    message::{Fault, ProtectionLevel, Refusal, Transport},
    name::Name,
    receiving::LostRange,
    sending::Phase,
};

/// The state of a receiver.
#[derive(Debug, Clone, Serialize)]
pub struct ReceiverReport {
    /// The name of the stream.
    pub stream: Name,
    /// The name of its source.
    pub source: String,
    /// The incarnation of its source.
    pub incarnation: String,
    /// The address for connections.
    pub address: String,
    /// The number of refused callers.
    pub refused: u64,
    /// The states of its flows.
    pub flows: Vec<ReceivedFlowState>,
}

/// A receiver's flow.
#[derive(Debug, Clone, Serialize)]
pub struct ReceivedFlowState {
    /// The name of the flow.
    pub flow: Name,
    /// The owner of the flow.
    pub sender: Option<Peer>,
    /// True if the sender is connected.
    pub connected: bool,
    /// The transport of its data.
    pub transport: Option<Transport>,
    /// Protection of the connection, while there is one.
    pub protection: Option<ProtectionLevel>,
    /// The duration of the connection.
    pub connected_for: Option<f64>,
    /// The time for which a transfer has been held open since its connection broke.
    pub waits_for_sender: Option<f64>,
    /// The time for which the callback has run. The sender waits for it.
    pub in_callback: Option<f64>,
    /// The number of delivered bytes, of all transfers.
    pub bytes: u64,
    /// The number of received frames.
    pub frames: u64,
    /// The number of lost bytes.
    pub lost_bytes: u64,
    /// The number of transfers that began.
    pub transfers: u64,
    /// The number of refusals, because another sender has the flow or because its transport is not accepted.
    pub refused: u64,
}

/// The state of a sender.
#[derive(Debug, Clone, Serialize)]
pub struct SenderReport {
    /// The name of the stream.
    pub stream: Name,
    /// The name of its source.
    pub source: String,
    /// The incarnation of its source.
    pub incarnation: String,
    /// The states of its flows.
    pub flows: Vec<SentFlowState>,
}

/// A sender's flow.
#[derive(Debug, Clone, Serialize)]
pub struct SentFlowState {
    /// The name of the flow.
    pub flow: Name,
    /// The phase of the flow.
    pub phase: Phase,
    /// The running transfer, or the last one.
    pub transfer: u64,
    /// The number of its bytes so far.
    pub bytes: u64,
    /// The rate in bytes a second, over about the last second.
    pub rate: f64,
    /// The limit of the rate in bytes a second, if any.
    pub throttle: Option<f64>,
    /// True if no data is sent until the flow is resumed.
    pub paused: bool,
    /// The number of bytes that some receiver has not acknowledged.
    pub window: usize,
    /// The limit of these bytes.
    pub window_limit: usize,
    /// The time for which a call has waited.
    pub waits: Option<f64>,
    /// The receivers it waits for.
    pub waits_for: Vec<String>,
    /// The states of its receivers.
    pub receivers: Vec<LinkState>,
}

/// The relation of a receiver with its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkStatus {
    /// The receiver is not connected.
    Connecting,
    /// The receiver is connected and takes part from the next start on.
    Waiting,
    /// The receiver gets the data.
    Live,
    /// The receiver is too far behind. The sender does not wait for it, and skips data.
    Lagging,
    /// The connection broke. Unacknowledged data is kept for a while.
    Broken,
    /// The receiver was cut, because it was too slow or away for too long.
    Cut,
    /// The receiver refused the sender.
    Refused,
}

/// The reason for a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CutCause {
    /// The receiver took nothing for `wait`.
    SendTimeout,
    /// The receiver acknowledged nothing for `ack_wait`, at a start or at a stop.
    AckTimeout,
    /// The receiver made progress, but delayed others for `wait`.
    Slow,
    /// The connection was broken for longer than `resume`.
    Away,
    /// The receiver has left.
    Left,
    /// The receiver missed too many starts and ends to be sent all of them.
    TooFarBehind,
}

/// A receiver, as its sender sees it.
#[derive(Debug, Clone, Serialize)]
pub struct LinkState {
    /// The receiver in question.
    pub receiver: Peer,
    /// Its present relation.
    pub status: LinkStatus,
    /// The age of this status, in seconds.
    pub since: f64,
    /// The transport of the data.
    pub transport: Transport,
    /// Protection of the last connection.
    pub protection: ProtectionLevel,
    /// The number of bytes sent to it and not acknowledged.
    pub behind: u64,
    /// The number of bytes of the running transfer that it has acknowledged.
    pub acknowledged: u64,
    /// The number of bytes skipped for it or lost on the way, of all transfers.
    pub lost_bytes: u64,
    /// The number of its reconnections.
    pub reconnects: u32,
    /// The reason why it wants no more data of the running transfer.
    pub gave_up: Option<String>,
    /// The reason for its rejection of this sender, while it lasts.
    pub refusal: Option<Refusal>,
    /// The reason for its cut, while it lasts.
    pub cut: Option<CutCause>,
    /// The reason for its status, in words.
    pub why: String,
}

/// The delivery of a transfer to one receiver.
#[derive(Debug, Clone, Serialize)]
pub struct Delivery {
    /// The receiver in question.
    pub receiver: Peer,
    /// True if the receiver reports that it has everything.
    pub complete: bool,
    /// The number of bytes that it has acknowledged.
    pub acknowledged: u64,
    /// The skipped and lost ranges, as far as the sender knows.
    pub lost: Vec<LostRange>,
    /// The number of bytes in these ranges.
    pub lost_bytes: u64,
    /// The faults at the receiver.
    pub faults: Vec<Fault>,
    /// Its present relation.
    pub status: LinkStatus,
    /// The reason for its cut from this transfer.
    pub cut: Option<CutCause>,
    /// The reason in words.
    pub why: String,
}

/// The result of a transfer.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of the transfer.
    pub transfer: u64,
    /// The length of its data, in bytes.
    pub bytes: u64,
    /// The duration from start to stop.
    pub seconds: f64,
    /// The deliveries to its receivers.
    pub deliveries: Vec<Delivery>,
}

impl Report {
    /// Returns true if all receivers that took part have everything.
    pub fn complete(&self) -> bool {
        !self.deliveries.is_empty() && self.deliveries.iter().all(|delivery| delivery.complete)
    }

    /// Makes the report of a transfer that its sender gives up, which no receiver has completely. The state is the one
    /// before, and the seconds count from its start.
    pub fn given_up(state: &SentFlowState, seconds: f64, why: &str) -> Report {
        use LinkStatus::{Broken, Cut, Lagging, Live};
        let took_part = state.receivers.iter().filter(|link| matches!(link.status, Live | Lagging | Broken | Cut));
        let delivery = |link: &LinkState| Delivery {
            receiver: link.receiver.clone(),
            complete: false,
            acknowledged: link.acknowledged,
            lost: Vec::new(),
            lost_bytes: 0,
            faults: Vec::new(),
            status: link.status,
            cut: link.cut,
            why: format!("its sender aborted it: {why}"),
        };
        Report { transfer: state.transfer, bytes: state.bytes, seconds, deliveries: took_part.map(delivery).collect() }
    }
}
