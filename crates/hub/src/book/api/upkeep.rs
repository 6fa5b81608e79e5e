//! Holding all logbooks against themselves.
//!
//! That takes as long as it takes to read every attachment, so the answer is lines that come while it goes on, and whoever goes away ends it. One at
//! a time: it keeps a disk busy, and two find what one finds.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tampu_logbook::store::Store;

use super::{
    Answer, Call,
    Content::{Bytes as Kind, Nothing},
    Needs, Route,
};
use crate::book::{body::Told, problem::Problem};

/// What the answer is: a JSON object a line.
pub const LINES: &str = "application/x-ndjson";
/// Lines that are made before the socket takes them.
const AHEAD: usize = 16;

/// The routes.
pub const ROUTES: &[Route] = &[Route {
    method: Method::POST,
    path: "/check",
    id: "check",
    what: "Holds all logbooks against themselves, every byte of attachments too. JSON lines as it goes on: 'done' of 'total', each 'fault'; the last \
           has the number of 'faults', or says why it 'failed'. One at a time",
    query: &[],
    takes: Nothing,
    gives: (200, Kind(LINES)),
    needs: Needs::SiteAdmin,
    act: check,
}];

/// Whether one goes on.
#[derive(Debug, Default)]
pub struct Checking(Arc<AtomicBool>);

/// The only one; when it goes another can begin.
struct Turn(Arc<AtomicBool>);

impl Checking {
    fn begin(&self) -> Option<Turn> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| Turn(self.0.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn check(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let busy = || {
        Problem::new(StatusCode::CONFLICT, "busy", "the logbooks are being checked already").help("ask again when that is done")
    };
    let turn = call.api.checking.begin().ok_or_else(busy)?;
    let (tell, told) = sync_channel(AHEAD);
    let store = call.api.store.clone();
    let work = move || {
        let last = lines(&*store, &tell);
        // Whoever has read the last line can begin again.
        drop(turn);
        last.map(|last| tell.send(line(&last)))
    };
    let failed = |error: io::Error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", error.to_string());
    std::thread::Builder::new().name("book-check".to_owned()).spawn(work).map_err(failed)?;
    let mut answer = http::Response::new(Told::Pieces(Box::new(told.into_iter().map(Ok)), None));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(LINES));
    Ok(answer)
}

fn line(said: &Value) -> Bytes {
    Bytes::from(format!("{said}\n"))
}

/// Checks, and tells, until nobody listens any longer. The last line is left to tell.
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
