//! Bulk transfers: the running ones, and those that hubs remember.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tampu_bulk::asking;
use tampu_bus::{Participant, access::Verb};
use tampu_types::Time;

use super::{
    call::{Answer, Call, GET, Route, ok},
    on_bus::{OF_PROCESSES, bounded, service},
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
        what: "Lists the transfers that hubs remember, the newest first",
        query: &[
            ("stream", "string", "only of this stream"),
            ("flow", "string", "only of this flow"),
            ("outcome", "string", "under_way, complete, incomplete or broken_off"),
            SINCE,
            UNTIL,
            ("limit", "integer", "transfers, 1 to 1000; 100, if missing"),
        ],
        gives: (200, json_of::<TransferList>()),
        work: WorkKind::Search,
        act: list,
        ..GET
    },
    Route {
        path: "/bulk/transfers/{id}",
        id: "showTransfer",
        what: "Returns a transfer that hubs remember by its id, as links have it",
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

/// Transfers that hubs remember.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct TransferList {
    transfers: Vec<ShownTransfer>,
    /// Older transfers that the hubs left out of their answers.
    left_out: u64,
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
    parameter: String,
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
    #[serde(skip)]
    begin: Time,
    #[serde(skip)]
    end: Option<Time>,
}

impl ShownTransfer {
    fn of(one: &Value) -> ShownTransfer {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let time = |name: &str| one[name].as_i64().map(Time);
        let (begin, end, number) = (time("began").unwrap_or_default(), time("ended"), one["transfer"].as_u64().unwrap_or(0));
        let (stream, flow, incarnation) = (text("stream"), text("flow"), text("incarnation"));
        ShownTransfer {
            id: format!("{incarnation}.{number}.{stream}#{flow}"),
            stream,
            flow,
            transfer: number.to_string(),
            source: text("source"),
            incarnation,
            parameter: text("parameter"),
            began: begin.to_rfc3339(),
            ended: end.map(Time::to_rfc3339),
            outcome: text("outcome"),
            bytes: one["bytes"].as_u64().unwrap_or(0),
            seconds: one["seconds"].as_f64(),
            bytes_per_s: one["bytes_per_s"].as_f64(),
            receivers: one["receivers"].as_u64().unwrap_or(0),
            lost_bytes: one["lost_bytes"].as_u64().unwrap_or(0),
            why: one["why"].as_array().into_iter().flatten().filter_map(|why| Some(why.as_str()?.to_owned())).collect(),
            begin,
            end,
        }
    }

    /// Returns true if the transfer ran at some time of the range.
    pub(in crate::api) fn meets(&self, since: Option<Time>, until: Option<Time>) -> bool {
        let ends_late = since.is_none_or(|since| self.end.is_none_or(|end| end >= since));
        ends_late && until.is_none_or(|until| self.begin < until)
    }
}

/// Returns the transfers that hubs remember, the newest first, and how many they left out.
pub(in crate::api) fn remembered(participant: &Participant) -> Result<(Vec<ShownTransfer>, u64), Problem> {
    let answers = asking::transfers(participant, OF_PROCESSES)?;
    let mut all: Vec<ShownTransfer> = answers.list.iter().map(ShownTransfer::of).collect();
    all.sort_by(|a, b| (b.begin, &b.id).cmp(&(a.begin, &a.id)));
    // Several hubs may keep the same account.
    all.dedup_by(|a, b| a.id == b.id);
    Ok((all, answers.left_out))
}

fn running(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(asking::STATE))?;
    let answers = asking::ask(participant, OF_PROCESSES)?;
    ok(&RunningBulk { processes: answers.list, unreadable: answers.unreadable })
}

fn list(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(asking::TRANSFERS))?;
    let (since, until) = call.range()?;
    let limit = bounded(call, "limit", 100, 1, 1000)? as usize;
    let wanted = |name: &str, value: &str| {
        let asked = call.parameter(name).filter(|text| !text.is_empty());
        asked.is_none_or(|asked| asked.eq_ignore_ascii_case(value))
    };
    let (mut transfers, left_out) = remembered(participant)?;
    transfers.retain(|one| {
        wanted("stream", &one.stream) && wanted("flow", &one.flow) && wanted("outcome", &one.outcome) && one.meets(since, until)
    });
    transfers.truncate(limit);
    ok(&TransferList { transfers, left_out })
}

fn show(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(asking::TRANSFERS))?;
    let id = call.var(0);
    let found = remembered(participant)?.0.into_iter().find(|one| one.id == id);
    let missing = || Problem::new(http::StatusCode::NOT_FOUND, "no-transfer", format!("no hub remembers a transfer {id}"));
    ok(&found.ok_or_else(|| missing().help("the log has its begin and its end: GET /api/v1/log/query?contains=bulk+transfer"))?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_transfer_meets_the_ranges_in_which_it_ran() {
        let transfer = |ended: Value| {
            ShownTransfer::of(
                &json!({ "stream": "s", "flow": "f", "transfer": 7, "incarnation": "i", "began": 10, "ended": ended }),
            )
        };
        let (done, running) = (transfer(json!(20)), transfer(Value::Null));
        assert_eq!((done.id.as_str(), done.transfer.as_str()), ("i.7.s#f", "7"));
        for (since, until, meets) in [(0, 10, false), (0, 11, true), (15, 16, true), (20, 30, true), (21, 30, false)] {
            assert_eq!(done.meets(Some(Time(since)), Some(Time(until))), meets, "{since} {until}");
        }
        assert!(running.meets(Some(Time(1000)), None) && !running.meets(None, Some(Time(10))));
    }
}
