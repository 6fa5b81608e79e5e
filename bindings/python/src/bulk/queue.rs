//! The queue between the connections of a receiver and its program.
//!
//! Data is acknowledged when it is in the queue, which has a bound in bytes; a full queue makes the sender wait. A start
//! and an end are acknowledged when the program has taken the item behind them: then it has worked on them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use tampu_bulk::{
    handler::{CallbackError, Connection, Data, End, Handler, Start},
    message::Fault,
    receiving::LostRange,
};

use crate::{
    bell::{Bell, SIGNALS},
    bulk::item::{Content, Item},
};

/// Items without data that wait. Beyond it the connections wait for room too.
const ITEMS: usize = 65_536;

/// Text for the sender of a transfer that nobody reads.
const NOBODY: &str = "the receiver has stopped reading";

type Answer = Result<u64, CallbackError>;

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    bytes: usize,
    closed: bool,
    /// The reader has found the queue empty and waits for the bell.
    armed: bool,
    questions: u64,
    answers: HashMap<u64, Answer>,
    /// The item that the program has: its flow, its question, and the answer so far.
    current: Option<(Arc<str>, Option<u64>, Answer)>,
    /// Flows whose running transfer the program does not want, until their data knows.
    refused: HashMap<Arc<str>, CallbackError>,
    /// The same flows, until their transfer ends.
    unwanted: HashSet<Arc<str>>,
}

/// Queue of all flows of a receiver.
pub struct ItemQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    bell: Bell,
    limit: usize,
}

impl ItemQueue {
    /// Makes a queue of at most so many bytes of data. One frame always fits.
    pub fn bounded(limit: usize) -> std::io::Result<ItemQueue> {
        Ok(ItemQueue { waiting: Mutex::default(), changed: Condvar::new(), bell: Bell::new()?, limit })
    }

    /// Adds an item, and waits for the program's answer if it is a question.
    fn put(&self, flow: &Arc<str>, content: Content, asks: bool) -> Answer {
        let length = if let Content::Data { bytes, .. } = &content { bytes.len() } else { 0 };
        let nobody = || Err(CallbackError::give_up(NOBODY));
        let mut waiting = self.waiting.lock();
        loop {
            if length > 0
                && let Some(refused) = waiting.refused.remove(flow)
            {
                return Err(refused);
            }
            let is_full = waiting.bytes + length > self.limit || waiting.items.len() >= ITEMS;
            if waiting.closed || waiting.items.is_empty() || !is_full {
                break;
            }
            self.changed.wait(&mut waiting);
        }
        if waiting.closed {
            return nobody();
        }
        waiting.questions += u64::from(asks);
        let question = asks.then_some(waiting.questions);
        waiting.bytes += length;
        waiting.items.push_back(Item { flow: flow.clone(), content, question });
        self.wake(&mut waiting);
        let Some(question) = question else { return Ok(0) };
        loop {
            if let Some(answer) = waiting.answers.remove(&question) {
                return answer;
            }
            if waiting.closed {
                return nobody();
            }
            self.changed.wait(&mut waiting);
        }
    }

    /// Adds an item that nothing waits for.
    pub fn tell(&self, flow: &Arc<str>, content: Content) {
        // A program that has stopped reading needs no report.
        let _ = self.put(flow, content, false);
    }

    fn wake(&self, waiting: &mut Waiting) {
        self.changed.notify_all();
        if std::mem::take(&mut waiting.armed) {
            self.bell.ring();
        }
    }

    /// Answers the item that the program has.
    fn answer(waiting: &mut Waiting) {
        if let Some((_, Some(question), answer)) = waiting.current.take() {
            waiting.answers.insert(question, answer);
        }
    }

    /// Takes the next item, and answers the one before. `Ok(None)`: there is none; `Err`: the queue has ended.
    fn take(&self, waiting: &mut Waiting) -> Result<Option<Item>, ()> {
        ItemQueue::answer(waiting);
        let taken = loop {
            let Some(item) = waiting.items.pop_front() else { break None };
            match &item.content {
                Content::Data { bytes, .. } => {
                    waiting.bytes -= bytes.len();
                    if waiting.unwanted.contains(&item.flow) {
                        continue;
                    }
                }
                Content::Start { .. } | Content::End { .. } => {
                    waiting.unwanted.remove(&item.flow);
                    waiting.refused.remove(&item.flow);
                }
                _ => {}
            }
            waiting.current = Some((item.flow.clone(), item.question, Ok(0)));
            break Some(item);
        };
        self.changed.notify_all();
        if taken.is_none() && waiting.closed { Err(()) } else { Ok(taken) }
    }

    /// Takes the next item as [`ItemQueue::take`] does. If there is none, the bell rings with the next one.
    pub fn take_or_arm(&self) -> Result<Option<Item>, ()> {
        self.bell.silence();
        let mut waiting = self.waiting.lock();
        let taken = self.take(&mut waiting);
        waiting.armed = matches!(taken, Ok(None));
        taken
    }

    /// Waits for the next item, at most so long. Other threads of Python run meanwhile, and signals are handled.
    pub fn wait(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Result<Option<Item>, ()>> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = until.map_or(SIGNALS, |until| until.saturating_duration_since(Instant::now()).min(SIGNALS));
            let taken = py.detach(|| {
                let mut waiting = self.waiting.lock();
                let taken = self.take(&mut waiting);
                if matches!(taken, Ok(None)) && !left.is_zero() {
                    self.changed.wait_for(&mut waiting, left);
                    return self.take(&mut waiting);
                }
                taken
            });
            if !matches!(taken, Ok(None)) || left.is_zero() {
                return Ok(taken);
            }
            py.check_signals()?;
        }
    }

    /// Says that the program has so many bytes of the transfer whose start it was given last.
    pub fn have(&self, bytes: u64) {
        if let Some((_, Some(_), answer @ Ok(_))) = &mut self.waiting.lock().current {
            *answer = Ok(bytes);
        }
    }

    /// Refuses the item that the program has: the rest of its transfer, or its end.
    pub fn refuse(&self, text: &str) {
        let mut waiting = self.waiting.lock();
        let Some((flow, question, answer)) = &mut waiting.current else { return };
        let (flow, why) = (flow.clone(), CallbackError::give_up(text));
        *answer = Err(why.clone());
        if question.is_none() {
            waiting.refused.insert(flow.clone(), why);
        }
        waiting.unwanted.insert(flow);
        self.changed.notify_all();
    }

    /// Ends the queue. The program gets what is in it; connections get no more into it.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        ItemQueue::answer(&mut waiting);
        waiting.closed = true;
        self.wake(&mut waiting);
    }

    /// Returns the descriptor that becomes readable when the bell rings.
    pub fn descriptor(&self) -> i32 {
        self.bell.descriptor()
    }
}

/// Handler of a flow that fills the queue.
pub struct Filler {
    pub flow: Arc<str>,
    pub queue: Arc<ItemQueue>,
    /// Shared by all handlers of an opening.
    pub _opening: Arc<()>,
}

impl Filler {
    fn ask(&self, content: Content) -> Answer {
        self.queue.put(&self.flow, content, true)
    }
}

impl Handler for Filler {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let parameter = Bytes::copy_from_slice(start.parameter);
        self.ask(Content::Start { transfer: start.transfer, sender: start.sender.clone(), parameter })
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let bytes = Bytes::copy_from_slice(data.bytes);
        let content = Content::Data { bytes, offset: data.offset, end_of_block: data.end_of_block };
        self.queue.put(&self.flow, content, false).map(drop)
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        self.ask(Content::End { end: end.clone(), reset: false }).map(drop)
    }

    fn reset(&mut self, end: &End) -> Result<(), CallbackError> {
        self.ask(Content::End { end: end.clone(), reset: true }).map(drop)
    }

    fn lost(&mut self, lost: &LostRange) {
        self.queue.tell(&self.flow, Content::Lost(*lost));
    }

    fn fault(&mut self, fault: &Fault) {
        self.queue.tell(&self.flow, Content::Fault(fault.clone()));
    }

    fn connection(&mut self, change: &Connection) {
        self.queue.tell(&self.flow, Content::Connection(change.clone()));
    }
}
