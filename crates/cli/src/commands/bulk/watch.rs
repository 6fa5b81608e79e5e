//! Looks at a flow while it sends: draws the bar, tells of progress and of who is waited for, and notices when nobody wants more.

use std::{
    io::Write,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tampu_bulk::{
    sender::Flow,
    state::{LinkStatus, SentFlowState},
};

use super::event;
use crate::{failure::Failure, output::table::printable};

/// How often it looks.
const TURN: Duration = Duration::from_millis(200);
/// A wait this long is told.
const LONG: f64 = 1.0;
/// And again after this time.
const AGAIN: f64 = 10.0;

/// What is being sent now.
#[derive(Debug, Clone, Default)]
pub struct Now {
    pub name: String,
    pub total: Option<u64>,
    /// A transfer runs.
    pub runs: bool,
}

struct Shared {
    now: Mutex<Now>,
    /// No receiver wants more of it.
    unwanted: AtomicBool,
    ended: AtomicBool,
}

/// The watch over a flow, until dropped.
pub struct Watch {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins. With an interval, progress is told as JSON lines.
    pub fn begin(flow: Flow, bar: ProgressBar, json: Option<Duration>) -> Result<Watch, Failure> {
        let shared = Arc::new(Shared { now: Mutex::default(), unwanted: AtomicBool::new(false), ended: AtomicBool::new(false) });
        let of = shared.clone();
        let worker = std::thread::Builder::new()
            .name("bulk-watch".to_owned())
            .spawn(move || watch(&of, &flow, &bar, json))
            .map_err(|error| Failure::failed("starting a thread", error))?;
        Ok(Watch { shared, worker: Some(worker) })
    }

    /// Says what is sent from now on.
    pub fn on(&self, now: Now) {
        self.shared.unwanted.store(false, Ordering::Relaxed);
        *self.shared.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Whether all receivers have given the transfer up.
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
        let now = shared.now.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
            // A reader that has gone is noticed by the command itself.
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
