//! How senders and receivers stand, as it is shown: who waits for whom, since when. All times are seconds, all sizes bytes.

use serde::Serialize;

use crate::{
    handler::Peer,
    message::{Fault, Refusal, Transport},
    name::Name,
    receiving::LostRange,
    sending::Phase,
};

/// A receiver.
#[derive(Debug, Clone, Serialize)]
pub struct ReceiverReport {
    /// Which stream.
    pub stream: Name,
    /// Who it is.
    pub source: String,
    /// Which life of it.
    pub incarnation: String,
    /// Where it takes connections.
    pub address: String,
    /// Callers that were sent away.
    pub refused: u64,
    /// Its flows.
    pub flows: Vec<ReceivedFlowState>,
}

/// A receiver's flow.
#[derive(Debug, Clone, Serialize)]
pub struct ReceivedFlowState {
    /// Which.
    pub flow: Name,
    /// Who has it.
    pub sender: Option<Peer>,
    /// Whether it is connected.
    pub connected: bool,
    /// How its data comes.
    pub transport: Option<Transport>,
    /// For how long it has been connected.
    pub connected_for: Option<f64>,
    /// A transfer was under way when the connection broke, and has been held open for so long.
    pub waits_for_sender: Option<f64>,
    /// The callback runs, and has for so long: the sender waits for it.
    pub in_callback: Option<f64>,
    /// Bytes handed over, of all transfers.
    pub bytes: u64,
    /// Frames that came.
    pub frames: u64,
    /// Bytes lost.
    pub lost_bytes: u64,
    /// Transfers that began.
    pub transfers: u64,
    /// Times that a sender was sent away because another has the flow, or because it came by a way that is not taken.
    pub refused: u64,
}

/// A sender.
#[derive(Debug, Clone, Serialize)]
pub struct SenderReport {
    /// Which stream.
    pub stream: Name,
    /// Who it is.
    pub source: String,
    /// Which life of it.
    pub incarnation: String,
    /// Its flows.
    pub flows: Vec<SentFlowState>,
}

/// A sender's flow.
#[derive(Debug, Clone, Serialize)]
pub struct SentFlowState {
    /// Which.
    pub flow: Name,
    /// Where it stands.
    pub phase: Phase,
    /// The transfer under way, or the last one.
    pub transfer: u64,
    /// Bytes of it so far.
    pub bytes: u64,
    /// Bytes a second in the last second or so.
    pub rate: f64,
    /// Bytes that somebody has not acknowledged.
    pub window: usize,
    /// The most they can be.
    pub window_limit: usize,
    /// A call waits, for so long now.
    pub waits: Option<f64>,
    /// For whom.
    pub waits_for: Vec<String>,
    /// Its receivers.
    pub receivers: Vec<LinkState>,
}

/// What a receiver is to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkStatus {
    /// Not connected yet, or no longer.
    Connecting,
    /// Connected; takes part from the next start on.
    Waiting,
    /// Gets the data.
    Live,
    /// Is so far behind that nobody waits for it any more, and data is skipped.
    Lagging,
    /// Its connection broke; what it has not acknowledged is kept for a while.
    Broken,
    /// It was cut, because it was too slow or away for too long.
    Cut,
    /// It sent the sender away.
    Refused,
}

/// Why a receiver was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CutCause {
    /// It took nothing for `wait`.
    SendTimeout,
    /// It acknowledged nothing for `ack_wait`, at a start or at a stop.
    AckTimeout,
    /// It got on, but held up others for `wait`.
    Slow,
    /// Its connection was away for longer than `resume`.
    Away,
    /// It has left.
    Left,
    /// It missed so many beginnings and ends that it cannot be told of all.
    TooFarBehind,
}

/// A receiver, as its sender sees it.
#[derive(Debug, Clone, Serialize)]
pub struct LinkState {
    /// Who.
    pub receiver: Peer,
    /// What it is.
    pub status: LinkStatus,
    /// Since when, s ago.
    pub since: f64,
    /// How data goes.
    pub transport: Transport,
    /// Bytes that were given to it and that it has not acknowledged.
    pub behind: u64,
    /// Bytes of the transfer under way that it has acknowledged.
    pub acknowledged: u64,
    /// Bytes skipped for it or lost on the way, of all transfers.
    pub lost_bytes: u64,
    /// Times it had to come again.
    pub reconnects: u32,
    /// It wants no more data of the transfer under way, and says why.
    pub gave_up: Option<String>,
    /// Why it sends this sender away, while it does.
    pub refusal: Option<Refusal>,
    /// Why it was cut, while it is.
    pub cut: Option<CutCause>,
    /// Why it is what it is.
    pub why: String,
}

/// How a transfer went, to one receiver.
#[derive(Debug, Clone, Serialize)]
pub struct Delivery {
    /// Who.
    pub receiver: Peer,
    /// Whether it has all of it, as it says itself.
    pub complete: bool,
    /// Bytes it has acknowledged.
    pub acknowledged: u64,
    /// What was skipped or lost, as far as the sender knows.
    pub lost: Vec<LostRange>,
    /// Bytes of it.
    pub lost_bytes: u64,
    /// What went wrong there.
    pub faults: Vec<Fault>,
    /// What it is now.
    pub status: LinkStatus,
    /// Why it was cut from this transfer, if it was.
    pub cut: Option<CutCause>,
    /// Why.
    pub why: String,
}

/// How a transfer went.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Which.
    pub transfer: u64,
    /// Where its data ended.
    pub bytes: u64,
    /// From start to stop.
    pub seconds: f64,
    /// To whom.
    pub deliveries: Vec<Delivery>,
}

impl Report {
    /// Whether all who took part have all of it.
    pub fn complete(&self) -> bool {
        !self.deliveries.is_empty() && self.deliveries.iter().all(|delivery| delivery.complete)
    }

    /// Of a transfer that its sender gives up: nobody has all of it. The state is that of before, the seconds are from its start.
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
            why: format!("its sender gave it up: {why}"),
        };
        Report { transfer: state.transfer, bytes: state.bytes, seconds, deliveries: took_part.map(delivery).collect() }
    }
}
