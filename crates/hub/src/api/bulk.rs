//! Bulk transfers: the running ones, and those that the archive keeps.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tampu_bulk::{
    asking,
    transfers::{Outcome, PAGE, ReceiverOutcome, Transfer, TransferQuery},
};
use tampu_bus::{Participant, access::Verb};
use tampu_types::Time;

use super::{
    call::{Answer, Call, GET, Route, ok},
    log::RecordCursor,
    on_bus::{OF_PROCESSES, PATIENCE, bounded, service},
    when::{SINCE, UNTIL},
};
use crate::http::{admission::WorkKind, problem::Problem, route::json_of};

/// Routes of bulk transfers.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/bulk/running",
        id: "runningTransfers",
        what: "Returns the states of all senders and receivers: flows, waits, losses (spec/bulk.md)",
        gives: (200, json_of::<RunningBulk>()),
        work: WorkKind::Search,
        act: running,
        ..GET
    },
    Route {
        path: "/bulk/transfers",
        id: "listTransfers",
        what: "Lists the running transfers and those that the archive keeps, the newest first; 'next' continues (for 'after')",
        query: &[
            ("stream", "string", "pattern of streams"),
            ("flow", "string", "pattern of flows"),
            ("source", "string", "pattern of senders"),
            ("receiver", "string", "pattern of receivers"),
            ("host", "string", "pattern of the senders' hosts"),
            ("parameter", "string", "text that occurs in the sender's text or the name of the file"),
            ("outcome", "string", "under_way, complete, incomplete or broken_off"),
            SINCE,
            UNTIL,
            ("limit", "integer", "kept transfers of the page, 1 to 1000; 100, if missing"),
            ("after", "string", "'next' of another page, which has no running transfers"),
        ],
        gives: (200, json_of::<TransferList>()),
        work: WorkKind::Search,
        act: list,
        ..GET
    },
    Route {
        path: "/bulk/transfers/{id}",
        id: "showTransfer",
        what: "Returns a running or kept transfer by its id, as links have it",
        gives: (200, json_of::<ShownTransfer>()),
        work: WorkKind::Search,
        act: show,
        ..GET
    },
];

/// The states of senders and receivers.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct RunningBulk {
    /// Of each process `{"sender": ...}`, `{"receiver": ...}`, or both.
    processes: Vec<Value>,
    /// Processes whose answer cannot be read.
    unreadable: u64,
}

/// A page of transfers.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct TransferList {
    transfers: Vec<ShownTransfer>,
    /// Place to continue from; null if nothing follows.
    next: Option<String>,
    /// False if the search ran out of time; it continues at `next`.
    complete: bool,
    /// Running transfers that the page has no room for.
    left_out: u64,
}

/// The result of a transfer for a receiver.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct TransferReceiver {
    source: String,
    incarnation: String,
    address: String,
    complete: bool,
    acknowledged: u64,
    lost_bytes: u64,
    /// State of its connection at the end.
    status: String,
}

/// A transfer in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::api) struct ShownTransfer {
    /// `INCARNATION.NUMBER.STREAM#FLOW`.
    pub id: String,
    stream: String,
    flow: String,
    /// Number of the transfer in its flow.
    transfer: String,
    source: String,
    incarnation: String,
    /// Host of the sender.
    host: String,
    /// The sender's text.
    parameter: String,
    /// Name of the file, if the transfer is one.
    file: Option<String>,
    /// Size of the file in bytes, if its sender knew it.
    size: Option<u64>,
    began: String,
    ended: Option<String>,
    /// under_way, complete, incomplete or broken_off.
    outcome: String,
    bytes: u64,
    seconds: Option<f64>,
    bytes_per_s: Option<f64>,
    receivers: u64,
    lost_bytes: u64,
    why: Vec<String>,
    /// Results for the receivers; at most 32, first those with missing data.
    deliveries: Vec<TransferReceiver>,
}

impl ShownTransfer {
    fn of(one: Transfer) -> ShownTransfer {
        let receiver = |one: ReceiverOutcome| TransferReceiver {
            source: one.source,
            incarnation: one.incarnation,
            address: one.address,
            complete: one.complete,
            acknowledged: one.acknowledged,
            lost_bytes: one.lost_bytes,
            status: one.status,
        };
        let has_ended = one.seconds > 0.0;
        let (file, parameter) = one.file_and_text();
        ShownTransfer {
            id: one.id(),
            stream: one.stream.to_string(),
            flow: one.flow.to_string(),
            transfer: one.transfer.to_string(),
            source: one.source,
            incarnation: one.incarnation.to_string(),
            host: one.host,
            parameter,
            size: file.as_ref().and_then(|label| label.size),
            file: file.map(|label| label.file.into()),
            began: one.began.to_rfc3339(),
            ended: one.ended.map(Time::to_rfc3339),
            outcome: one.outcome.name().to_owned(),
            bytes: one.bytes,
            seconds: has_ended.then_some(one.seconds),
            bytes_per_s: has_ended.then_some(one.bytes_per_s),
            receivers: one.receivers,
            lost_bytes: one.lost_bytes,
            why: one.why,
            deliveries: one.deliveries.into_iter().map(receiver).collect(),
        }
    }
}

/// Returns running and kept transfers, the newest first.
pub(in crate::api) fn find(participant: &Participant, query: &TransferQuery) -> Result<TransferList, Problem> {
    let page = asking::page(participant, query, PATIENCE)?;
    Ok(TransferList {
        transfers: page.transfers.into_iter().map(ShownTransfer::of).collect(),
        next: page.cursor.map(|place| RecordCursor(place).to_string()),
        complete: page.complete,
        left_out: page.left_out,
    })
}

impl TransferList {
    /// Returns the transfers themselves, and true if there are more.
    pub(in crate::api) fn into_transfers(self) -> (Vec<ShownTransfer>, bool) {
        let has_more = self.next.is_some() || self.left_out > 0;
        (self.transfers, has_more)
    }
}

/// Returns a running or kept transfer.
pub(in crate::api) fn by_id(participant: &Participant, id: &str) -> Result<Option<ShownTransfer>, Problem> {
    let query = TransferQuery { id: Some(id.to_owned()), limit: Some(1), ..TransferQuery::default() };
    Ok(find(participant, &query)?.transfers.into_iter().next())
}

fn running(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(asking::STATE))?;
    let answers = asking::ask(participant, OF_PROCESSES)?;
    ok(&RunningBulk { processes: answers.list, unreadable: answers.unreadable })
}

fn list(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(asking::TRANSFERS))?;
    let (since, until) = call.range()?;
    let pattern = |name: &str| call.parameter(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let outcome = pattern("outcome").map(|name| {
        let unknown = || Problem::bad("query outcome", "write under_way, complete, incomplete or broken_off");
        Outcome::from_name(&name.to_ascii_lowercase()).ok_or_else(unknown)
    });
    let query = TransferQuery {
        since,
        until,
        id: None,
        stream: pattern("stream"),
        flow: pattern("flow"),
        source: pattern("source"),
        receiver: pattern("receiver"),
        host: pattern("host"),
        parameter: pattern("parameter"),
        outcome: outcome.transpose()?,
        after: call.parsed::<RecordCursor>("after")?.map(|RecordCursor(place)| place),
        limit: Some(bounded(call, "limit", 100, 1, PAGE)?),
    };
    ok(&find(participant, &query)?)
}

fn show(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(asking::TRANSFERS))?;
    let id = call.var(0);
    let found = by_id(participant, id)?;
    let missing = || Problem::new(http::StatusCode::NOT_FOUND, "no-transfer", format!("the archive has no transfer {id}"));
    ok(&found.ok_or_else(|| missing().help("the log has its begin and its end: GET /api/v1/log/query?contains=bulk+transfer"))?)
}
