//! Watches a flow while it sends: draws the bar, and reports progress and waiting receivers. Notices when no reader is
//! left.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tampu_bulk::{
    sender::Flow,
    state::{LinkStatus, SentFlowState},
};

use super::report::event;
use crate::{failure::Failure, output::table::printable};

/// Time between two checks.
const TURN: Duration = Duration::from_millis(200);
/// Shortest wait in seconds that is reported.
const LONG: f64 = 1.0;
/// Time after which the report is repeated.
const AGAIN: f64 = 10.0;

/// The item that is being sent.
#[derive(Debug, Clone, Default)]
pub struct Now {
    pub name: String,
    pub total: Option<u64>,
    /// A transfer runs.
    pub runs: bool,
}

struct Shared {
    now: Mutex<Now>,
    /// True if no receiver wants more of it.
    unwanted: AtomicBool,
    ended: AtomicBool,
}

/// The watch over a flow, until dropped.
pub struct Watch {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins. With an interval, progress is printed as JSON lines.
    pub fn begin(flow: Flow, bar: ProgressBar, json: Option<Duration>) -> Result<Watch, Failure> {
        let shared = Arc::new(Shared { now: Mutex::default(), unwanted: AtomicBool::new(false), ended: AtomicBool::new(false) });
        let of = shared.clone();
        let worker = std::thread::Builder::new()
            .name("bulk-watch".to_owned())
            .spawn(move || watch(&of, &flow, &bar, json))
            .map_err(|error| Failure::failed("starting a thread", error))?;
        Ok(Watch { shared, worker: Some(worker) })
    }

    /// Sets the item that is being sent.
    pub fn on(&self, now: Now) {
        self.shared.unwanted.store(false, Ordering::Relaxed);
        *self.shared.now.lock() = now;
    }

    /// Returns true once every receiver has abandoned the transfer.
    pub fn nobody_wants_it(&self) -> bool {
        self.shared.unwanted.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

fn watch(shared: &Shared, flow: &Flow, bar: &ProgressBar, json: Option<Duration>) {
    let (mut told, mut waited) = (Instant::now(), LONG);
    while !shared.ended.load(Ordering::Acquire) {
        std::thread::park_timeout(TURN);
        let now = shared.now.lock().clone();
        if !now.runs {
            continue;
        }
        let state = flow.state();
        let mut taking = state.receivers.iter().filter(|link| takes_part(link.status)).peekable();
        if taking.peek().is_some() && taking.all(|link| link.gave_up.is_some()) {
            shared.unwanted.store(true, Ordering::Relaxed);
        }
        let waits = state.waits.unwrap_or(0.0);
        if waits < LONG {
            waited = LONG;
            bar.set_message(printable(&now.name).into_owned());
        } else {
            let text = format!("{}: waits for {}, {waits:.0} s", now.name, state.waits_for.join(", "));
            let text = printable(&text).into_owned();
            if bar.is_hidden() && waits >= waited && json.is_none() {
                eprintln!("tampu: {text}");
                waited = waits + AGAIN;
            }
            bar.set_message(text);
        }
        if json.is_some_and(|interval| told.elapsed() >= interval) {
            told = Instant::now();
            // The command itself notices when the reader is gone.
            let _ = writeln!(std::io::stdout().lock(), "{}", progress(&now, &state));
        }
    }
}

fn takes_part(status: LinkStatus) -> bool {
    matches!(status, LinkStatus::Live | LinkStatus::Lagging | LinkStatus::Broken)
}

fn progress(now: &Now, state: &SentFlowState) -> Value {
    event(
        "progress",
        json!({"name": now.name, "transfer": state.transfer, "bytes": state.bytes, "total": now.total, "bytes_per_s": state.rate,
            "behind": state.window, "waits_s": state.waits, "waits_for": state.waits_for}),
    )
}
