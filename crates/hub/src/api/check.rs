//! The check of all logbooks.
//!
//! It reads every attachment, so it takes long. The response therefore consists of lines that are sent while the check
//! runs, and the check ends when the client disconnects. One check runs at a time: it keeps a disk busy, and two would
//! find the same.

use std::{
    io,
    sync::mpsc::{SyncSender, sync_channel},
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tampu_logbook::store::{
    Store,
    quota::{Quota, UsedSpace},
};
use tampu_workers::{OnPanic, WorkerThread};

use super::call::{Answer, Call, GET, POST, Route, ok};
use crate::http::{
    body::ResponseBody,
    problem::Problem,
    route::{Content, Login, json_of},
};

/// The media type of the response: one JSON object on each line.
pub const LINES: &str = "application/x-ndjson";
/// Maximum number of lines in the queue to the socket.
const AHEAD: usize = 16;

/// The route of the check.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/check",
        id: "check",
        what: "Checks all logbooks, every byte of attachments included. The response is JSON lines while it runs: 'done' of 'total', each 'fault'; the last \
           line has the number of 'faults', or the reason why it 'failed'. One check runs at a time",
        gives: (200, Content::Bytes(LINES)),
        login: Login::Admin,
        act: check,
        ..POST
    },
    Route {
        path: "/usage",
        id: "usage",
        what: "Returns the space of files by logbook and user, and the quotas in bytes; 0 is no limit",
        gives: (200, json_of::<Usage>()),
        login: Login::Admin,
        act: |call| {
            ok(&Usage { quota: call.api.setting_changes.in_force().config.book.quota(), used: call.api.store.used_space()? })
        },
        ..GET
    },
];

/// The space of files, and the quotas.
#[derive(Serialize, JsonSchema)]
struct Usage {
    quota: Quota,
    used: Vec<UsedSpace>,
}

fn check(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let busy = || {
        Problem::new(StatusCode::CONFLICT, "busy", "the logbooks are being checked already")
            .help("retry when the check has ended")
    };
    let turn = call.api.checking.begin().ok_or_else(busy)?;
    let (tell, told) = sync_channel(AHEAD);
    let store = call.api.store.clone();
    let work = move || {
        let last = lines(&*store, &tell);
        // A client that has read the last line can begin another check.
        drop(turn);
        last.map(|last| tell.send(line(&last)))
    };
    let failed = |error: io::Error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", error.to_string());
    WorkerThread::named("book-check").spawn(OnPanic::ReportOnly, work).map_err(failed)?;
    let mut answer = http::Response::new(ResponseBody::Pieces(Box::new(told.into_iter().map(Ok)), None));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    Ok(answer)
}

fn line(said: &Value) -> Bytes {
    Bytes::from(format!("{said}\n"))
}

/// Runs the check and sends its lines until the client disconnects. Returns the last line.
fn lines(store: &dyn Store, tell: &SyncSender<Bytes>) -> Option<Value> {
    let tell = |said: Value| tell.send(line(&said)).is_ok();
    let mut shown = None;
    let found = store.check(&mut |done, total| {
        let share = done * 100 / total.max(1);
        shown.replace(share) == Some(share) || tell(json!({ "done": done, "total": total }))
    });
    match found {
        Ok(faults) => faults.iter().all(|fault| tell(json!({ "fault": fault }))).then(|| json!({ "faults": faults.len() })),
        Err(error) => Some(json!({ "failed": error.to_string() })),
    }
}
