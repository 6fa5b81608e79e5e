//! The handler of a receiver of files: each transfer becomes a file.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
    time::Instant,
};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tampu_bulk::{
    Name,
    handler::{CallbackError, Connection, Data, End, Handler, Start},
    message::Fault,
    receiving::LostRange,
    store::{Incoming, Store, Taken, why_incomplete},
};

/// A report of a handler to the command.
#[derive(Debug)]
pub enum News {
    /// A transfer began.
    Began(Arc<Running>),
    /// One has ended.
    Ended(Box<Ended>),
    /// A message: a sender was added or removed, or an error.
    Said(String),
}

/// A transfer that is being received.
#[derive(Debug)]
pub struct Running {
    /// Name of the flow.
    pub flow: Name,
    /// Its number in this incarnation of the sender.
    pub transfer: u64,
    /// Name of the sender.
    pub sender: String,
    /// Name of the file, or the content of the parameter.
    pub name: String,
    /// Expected number of bytes, if the sender states it.
    pub total: Option<u64>,
    /// Bytes that were here before.
    pub had: u64,
    /// Number of received bytes.
    pub bytes: AtomicU64,
    /// Begin of the transfer.
    pub began: Instant,
}

/// Result of a transfer.
#[derive(Debug, Serialize)]
pub struct Ended {
    pub stream: Name,
    pub flow: Name,
    pub transfer: u64,
    pub sender: String,
    /// Name given by the sender.
    pub name: String,
    /// Text given by the sender.
    pub parameter: String,
    /// True if the kept part can be continued, which needs a name.
    #[serde(skip)]
    pub can_continue: bool,
    /// Path of the file, or of its kept part.
    pub path: Option<PathBuf>,
    pub complete: bool,
    /// Reason of an incomplete transfer.
    pub why: Option<String>,
    /// Number of received bytes.
    pub bytes: u64,
    /// Bytes that were here before.
    pub had: u64,
    pub seconds: f64,
    pub bytes_per_s: f64,
    pub lost_bytes: u64,
    pub lost: Vec<LostRange>,
    pub faults: Vec<Fault>,
}

/// The running transfers, for display.
pub type Table = Arc<Mutex<Vec<Arc<Running>>>>;

/// The handler of a flow.
pub struct Taking {
    pub store: Arc<Store>,
    pub stream: Name,
    pub flow: Name,
    pub running: Table,
    /// Bounded queue: the transfer waits if there is no reader.
    pub news: SyncSender<News>,
    pub current: Option<Current>,
}

/// The transfer under way.
pub struct Current {
    running: Arc<Running>,
    parameter: String,
    can_continue: bool,
    /// The open file; `None` if it could not be begun, or a write failed.
    incoming: Option<Incoming>,
    /// Error of this receiver.
    failed: Option<String>,
    /// Path of the kept part.
    kept: Option<PathBuf>,
}

impl Taking {
    fn tell(&self, news: News) {
        // The listener ends only when the receiver is about to end.
        let _ = self.news.send(news);
    }

    fn fail(&mut self, error: &io::Error) -> CallbackError {
        let Some(current) = &mut self.current else { return CallbackError::give_up(error.to_string()) };
        let text = format!("{}: {error}", current.running.name);
        current.kept = current.incoming.take().and_then(|mut incoming| incoming.give_up());
        current.failed = Some(text.clone());
        CallbackError::give_up(text)
    }
}

fn lock(table: &Table) -> MutexGuard<'_, Vec<Arc<Running>>> {
    table.lock()
}

impl Handler for Taking {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let Taken { incoming, name, parameter, is_named: can_continue } = self.store.take(&self.flow, start);
        let had = incoming.as_ref().map_or(0, |incoming| incoming.had);
        let running = Arc::new(Running {
            flow: self.flow.clone(),
            transfer: start.transfer,
            sender: start.sender.to_string(),
            name,
            total: incoming.as_ref().ok().and_then(|incoming| incoming.label().size),
            had,
            bytes: AtomicU64::new(0),
            began: Instant::now(),
        });
        lock(&self.running).push(running.clone());
        self.tell(News::Began(running.clone()));
        let mut current = Current { running, parameter, can_continue, incoming: None, failed: None, kept: None };
        let begun = incoming.map(|incoming| current.incoming = Some(incoming));
        self.current = Some(current);
        begun.map(|()| had).map_err(|error| self.fail(&error))
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let Some(Current { running, incoming: Some(incoming), .. }) = &mut self.current else { return Ok(()) };
        match incoming.write(data.bytes, data.offset) {
            Ok(()) => {
                running.bytes.fetch_add(data.bytes.len() as u64, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        lock(&self.running).retain(|one| !Arc::ptr_eq(one, &current.running));
        let running = &current.running;
        let mut path = current.kept.take();
        let mut why = current.failed.take();
        match current.incoming.take() {
            Some(incoming) if end.complete => match incoming.complete(end.offset) {
                Ok(place) => path = Some(place),
                Err(error) => why = Some(format!("{}: {error}", running.name)),
            },
            Some(mut incoming) => path = incoming.give_up(),
            None => {}
        }
        let complete = end.complete && why.is_none();
        why = why.or_else(|| why_incomplete(end));
        let seconds = end.took.as_secs_f64();
        // The sender already knows about an incomplete transfer.
        let told = why.clone().filter(|_| end.complete).map(CallbackError::give_up);
        self.tell(News::Ended(Box::new(Ended {
            stream: self.stream.clone(),
            flow: self.flow.clone(),
            transfer: end.transfer,
            sender: running.sender.clone(),
            name: running.name.clone(),
            parameter: current.parameter,
            can_continue: current.can_continue,
            path,
            complete,
            why,
            bytes: end.bytes,
            had: running.had,
            seconds,
            bytes_per_s: super::report::rate(end.bytes, seconds),
            lost_bytes: end.lost_bytes,
            lost: end.lost.clone(),
            faults: end.faults.clone(),
        })));
        told.map_or(Ok(()), Err)
    }

    fn fault(&mut self, fault: &Fault) {
        self.tell(News::Said(format!("flow '{}': {}: {}", self.flow, fault.kind, fault.text)));
    }

    fn connection(&mut self, change: &Connection) {
        let flow = &self.flow;
        let text = match change {
            Connection::Connected { sender, transport, resumed: false } => {
                format!("{sender} is connected to flow '{flow}' over {transport}")
            }
            Connection::Connected { sender, resumed: true, .. } => format!("{sender} is back on flow '{flow}' and goes on"),
            Connection::Refused { sender, text, .. } => format!("{sender} was sent away from flow '{flow}': {text}"),
            Connection::Disconnected { sender, why } => format!("{sender} is gone from flow '{flow}': {why}"),
        };
        self.tell(News::Said(text));
    }
}
