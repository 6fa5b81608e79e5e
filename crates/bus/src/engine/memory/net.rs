//! The step that does the next due work, and faults of processes and links.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    bounds::SOON,
    ids::ProcessId,
    link::Fate,
    message::{Kind, Passing},
    state::{Due, State},
};
use crate::{clock::Gate, engine::EngineError};

/// Start of the monotonic clock: a second, so that earlier times are never before 0.
const START: u64 = 1_000_000_000;

/// The network. Its lock is never held while a callback runs or is dropped.
pub struct Net {
    state: Mutex<State>,
    now: AtomicU64,
}

impl Net {
    pub fn new(seed: u64) -> Arc<Net> {
        Arc::new(Net { state: Mutex::new(State::new(seed)), now: AtomicU64::new(START) })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        // If a test panicked in a callback, its own message is shown, not a poisoned lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub fn after(&self, time: Duration) -> u64 {
        self.now().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    pub fn wait(self: &Arc<Net>, gate: &Gate, seen: u64, until: u64) {
        while gate.openings() <= seen && self.now() < until {
            let moved = self.step(until);
            assert!(moved || until != u64::MAX, "a thread waits without a limit, and no message under way could end the wait");
        }
    }

    /// Does the next due work up to the limit; without any, moves the time to the limit.
    pub fn step(self: &Arc<Net>, limit: u64) -> bool {
        let mut state = self.lock();
        let now = self.now();
        let event = state.due.first_key_value().map(|(&at, _)| at);
        let drive = state.next_drive(now);
        let event_first = event.is_some_and(|(at, _)| drive.is_none_or(|(next, _)| at <= next));
        let next = if event_first { event.map(|(at, _)| at) } else { drive.map(|(at, _)| at) };
        let Some(at) = next.filter(|&at| at <= limit) else {
            if limit != u64::MAX {
                self.now.fetch_max(limit, Ordering::Relaxed);
            }
            return false;
        };
        self.now.fetch_max(at, Ordering::Relaxed);
        if event_first {
            if let Some((_, due)) = state.due.pop_first() {
                self.perform(state, due);
            }
        } else if let Some((_, id)) = drive {
            self.tick(state, id);
        }
        true
    }

    fn tick(&self, mut state: MutexGuard<'_, State>, id: u64) {
        let Some(drive) = state.drive(id) else { return };
        drive.running = true;
        drive.seen = drive.wake.openings();
        let work = drive.work.clone();
        drop(state);
        let next = work.tick(self.now());
        let earliest = self.now().saturating_add(SOON);
        if let Some(drive) = self.lock().drive(id) {
            drive.running = false;
            drive.next = next.max(earliest);
        }
    }

    /// Does due work, unless its process is dead, stopped or cut off meanwhile.
    fn perform(self: &Arc<Net>, mut state: MutexGuard<'_, State>, due: Due) {
        let to = due.to();
        let carried = due.carried();
        let process = &state.processes[to as usize];
        if process.alive && process.stopped_at.is_some() {
            let dropped = state.hold(due);
            drop(state);
            drop(dropped);
            return;
        }
        if let Some((from, len)) = carried {
            if let Due::Message { class, .. } = due {
                state.links.release((from, to), class, len);
            }
            let arrives = state.reaches(from, to);
            *(if arrives { &mut state.counts.delivered } else { &mut state.counts.unreachable }) += 1;
            state.note(self.now(), if arrives { "arrives" } else { "unreachable" }, from, to, "", len);
            if !arrives {
                drop(state);
                return;
            }
        } else if !process.alive {
            return;
        }
        match due {
            Due::Message { to, plane, key, bytes, .. } => {
                let calls = state.local_deliveries(plane, &key, to);
                drop(state);
                calls.iter().for_each(|deliver| deliver(bytes.clone(), &key));
            }
            Due::Question { ask, copy, answerer, from, to, key, payload } => {
                drop(state);
                self.pose(ask, copy, answerer, (from, to), key, payload);
            }
            Due::Part { ask, bytes, .. } => {
                drop(state);
                self.give_part(ask, bytes);
            }
            Due::Final { ask, copy, .. } => {
                drop(state);
                self.finish_copy(ask, copy);
            }
            Due::Unanswered { ask, .. } => {
                drop(state);
                self.give_up(ask);
            }
            Due::Presence { watch, key, .. } => {
                let call = state.reconcile(self.now(), watch, &key);
                drop(state);
                if let Some((seen, presence)) = call {
                    seen(presence);
                }
            }
            Due::CaughtUp { call, .. } => {
                drop(state);
                call();
            }
        }
    }

    /// Sends one message to several processes, each through its own link; returns the time of the last arrival.
    pub fn carry(
        &self,
        from: ProcessId,
        targets: &[ProcessId],
        kind: Kind,
        key: &str,
        bytes: &[u8],
        due: impl Fn(ProcessId) -> Due,
    ) -> u64 {
        self.carry_after(0, from, targets, (kind, key, bytes), due)
    }

    /// Sends like [`Net::carry`], with an earliest time of arrival.
    pub fn carry_after(
        &self,
        not_before: u64,
        from: ProcessId,
        targets: &[ProcessId],
        (kind, key, bytes): (Kind, &str, &[u8]),
        due: impl Fn(ProcessId) -> Due,
    ) -> u64 {
        let lost = self.lost_on_purpose(from, targets, (kind, key, bytes));
        let mut state = self.lock();
        let now = self.now();
        let mut last = now;
        for (index, &to) in targets.iter().enumerate() {
            let on_purpose = lost.get(index) == Some(&true);
            let fate = if on_purpose { Fate::Lost } else { state.decide(now, from, to, kind, bytes.len()) };
            state.account(now, fate, from, to, key, bytes.len());
            for at in fate.arrivals() {
                let at = at.max(not_before);
                last = last.max(at);
                state.schedule(at, due(to));
            }
        }
        last
    }

    /// Calls the test's closure, if there is one, without holding the lock.
    fn lost_on_purpose(&self, from: ProcessId, targets: &[ProcessId], (kind, key, bytes): (Kind, &str, &[u8])) -> Vec<bool> {
        let state = self.lock();
        let Some(lose_if) = state.lose_if.clone() else { return Vec::new() };
        let sender = state.host_name(from);
        let receivers: Vec<String> = targets.iter().map(|&to| state.host_name(to)).collect();
        drop(state);
        receivers.iter().map(|to| lose_if(&Passing { from: &sender, to, key, kind, bytes })).collect()
    }

    /// Returns an error if the process was stopped or has left.
    pub fn check(&self, process: ProcessId, doing: &str) -> Result<(), EngineError> {
        let state = self.lock();
        let process = &state.processes[process as usize];
        let why = match (process.alive, process.stopped_at) {
            (true, None) => return Ok(()),
            (true, Some(_)) => "the process is stopped",
            (false, _) => "the process is dead",
        };
        Err(EngineError::Refused { engine: super::bounds::NAME, doing: doing.to_owned(), why: why.to_owned() })
    }

    pub fn cut(&self, one: &str, other: &str) {
        let mut state = self.lock();
        let pair = state.host_pair(one, other);
        let now = self.now();
        state.cuts.entry(pair).or_default().since.get_or_insert(now);
        let lapse = now.saturating_add(state.lease);
        state.reconcile_all(lapse);
    }

    pub fn heal(&self, one: &str, other: &str) {
        let mut state = self.lock();
        let pair = state.host_pair(one, other);
        let (now, lease) = (self.now(), state.lease);
        let cut = state.cuts.entry(pair).or_default();
        // A cut shorter than the lease is a pause: no process was forgotten, so none is announced again.
        if cut.since.take().is_some_and(|since| now - since >= lease) {
            cut.healed_at = now;
        }
        let known = now + state.discovery;
        state.reconcile_all(known);
    }

    pub fn stop(&self, process: ProcessId) {
        let mut state = self.lock();
        let lapse = self.now().saturating_add(state.lease);
        state.processes[process as usize].stopped_at.get_or_insert(self.now());
        state.reconcile_all(lapse);
    }

    pub fn resume(&self, process: ProcessId) {
        let mut state = self.lock();
        let (now, lease) = (self.now(), state.lease);
        let resumed = &mut state.processes[process as usize];
        if resumed.stopped_at.take().is_some_and(|since| now - since >= lease) {
            resumed.linked_at = now;
        }
        resumed.held_bytes = 0;
        for due in std::mem::take(&mut resumed.held) {
            state.schedule(now, due);
        }
        let known = now + state.discovery;
        state.reconcile_all(known);
    }

    pub fn kill(&self, process: ProcessId) {
        let mut state = self.lock();
        let now = self.now();
        let killed = &mut state.processes[process as usize];
        killed.alive = false;
        killed.stopped_at = None;
        let held = std::mem::take(&mut killed.held);
        state.routes.clear();
        let gone: Vec<u64> = state.announcements.iter().filter(|(_, one)| one.process == process).map(|(&id, _)| id).collect();
        for id in gone {
            state.withdraw(now, id);
        }
        let asks = state.forget_questions(now, process);
        drop(state);
        drop((held, asks));
    }
}
