//! A running call: room for a frame, the wait until it is taken or acknowledged, and the receivers that exceed their
//! time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    super::{error::SendError, link::Link},
    core::{FlowCore, FlowShared, TURN},
    settings::Slow,
};
use crate::{
    frame::END,
    message::Cause,
    shm::Ring,
    state::{CutCause, LinkStatus},
    window::{Framed, Window},
};
use parking_lot::MutexGuard;

/// Pause during which no other work is due.
const SHORT_PAUSE: Duration = Duration::from_millis(10);
/// Number of bytes after which answers are read although no call waits.
const LOOK_EVERY: usize = 256 << 10;
/// Bytes of short datagrams that are joined for a system call.
const DATAGRAMS_AT_ONCE: usize = 60_000;
/// Bytes of frames that are joined for a system call while the next one is at hand. They stay in a processor's cache.
const FRAMES_AT_ONCE: usize = 256 << 10;

/// Answers if a call that waits for a pause or a rate goes on waiting.
pub(super) type GoesOn<'a> = &'a mut dyn FnMut() -> bool;

/// Running call, during which the worker leaves the sockets to it.
pub(super) struct Call<'a> {
    inner: &'a FlowShared,
    _one: MutexGuard<'a, ()>,
}

impl<'a> Call<'a> {
    pub(super) fn begin(inner: &'a FlowShared) -> Call<'a> {
        let one = inner.calls.lock();
        inner.core.lock().caller = true;
        Call { inner, _one: one }
    }

    /// Adds a frame: waits for room, writes, and waits until the fastest receiver has taken it. With `more`, the caller has
    /// the next frame at hand, and several are written together.
    pub(super) fn push(
        &self,
        mut core: MutexGuard<'a, FlowCore>,
        mut framed: Framed,
        more: bool,
    ) -> Result<MutexGuard<'a, FlowCore>, SendError> {
        let (length, sequence) = (framed.bytes.len(), framed.header.sequence);
        // More of the block follows: one call of the kernel sends many short datagrams. A throttled flow has time for single ones.
        let may_wait = framed.is_data() && core.throttle.rate().is_none();
        let continues = !framed.header.has(END);
        let wire = framed.wire_len();
        let has_room = |core: &FlowCore| core.window.has_room(length);
        if !has_room(&core) {
            core = self.wait_until(core, Duration::MAX, has_room);
        }
        if let Some(ring) = core.ring.clone() {
            core = self.share(core, &ring, &mut framed);
        }
        if core.ended {
            return Err(SendError::Closed);
        }
        core.push(framed);
        core.unlooked += length;
        core.unwritten += wire;
        core.more = may_wait && more && core.unwritten < FRAMES_AT_ONCE;
        let joins = may_wait && continues && core.unwritten < DATAGRAMS_AT_ONCE && core.goes_as_datagrams();
        if core.more || joins {
            return Ok(core);
        }
        core.write();
        let taken = |core: &FlowCore| {
            let mut live = core.links.iter().filter(|link| link.status == LinkStatus::Live && link.is_connected()).peekable();
            live.peek().is_none() || live.any(|link| link.has_taken(sequence + 1, &core.window))
        };
        if !taken(&core) {
            core = self.wait_until(core, Duration::MAX, taken);
        }
        if core.unlooked >= LOOK_EVERY {
            core.read();
        }
        core.release();
        if core.ended { Err(SendError::Closed) } else { Ok(core) }
    }

    /// Copies a payload from other memory into the shared memory, when there is room.
    fn share(&self, mut core: MutexGuard<'a, FlowCore>, ring: &Arc<Ring>, framed: &mut Framed) -> MutexGuard<'a, FlowCore> {
        while !ring.holds(&framed.bytes) && !core.ended {
            match ring.copy(&framed.bytes) {
                Some(bytes) => framed.bytes = bytes,
                // The spare room is free then, so this does not occur; otherwise readers find no entry and connect again.
                None if core.window.is_empty() => break,
                None => {
                    let before = core.window.first();
                    core = self.wait_until(core, Duration::MAX, |core| core.window.first() > before || core.window.is_empty());
                }
            }
        }
        core
    }

    /// Waits for the throttle. Meanwhile receivers get signs of life and their backlog.
    pub(super) fn pause(
        &self,
        mut core: MutexGuard<'a, FlowCore>,
        goes_on: GoesOn<'_>,
    ) -> Result<MutexGuard<'a, FlowCore>, SendError> {
        loop {
            // Another rate changes what is left.
            let left = core.throttle.ahead(Instant::now());
            if left.is_zero() || core.ended || core.is_cancelled() {
                return Ok(core);
            }
            if left < SHORT_PAUSE {
                drop(core);
                std::thread::sleep(left);
                core = self.inner.core.lock();
            } else {
                core.pump(self.inner.session, self.inner.settings.resume);
                core = self.inner.wait(core, left.min(TURN), false);
                core = self.unless_ended(core, goes_on)?;
            }
        }
    }

    /// Waits while the flow is paused. Meanwhile receivers get signs of life and their backlog.
    pub(super) fn while_paused(
        &self,
        mut core: MutexGuard<'a, FlowCore>,
        goes_on: GoesOn<'_>,
    ) -> Result<MutexGuard<'a, FlowCore>, SendError> {
        while core.paused && !core.ended && !core.is_cancelled() {
            core.pump(self.inner.session, self.inner.settings.resume);
            core = self.inner.wait(core, TURN, false);
            core = self.unless_ended(core, goes_on)?;
        }
        if core.is_cancelled() {
            return Err(self.was_cancelled());
        }
        if core.ended { Err(SendError::Closed) } else { Ok(core) }
    }

    /// Asks the caller if its wait goes on. The caller may take locks of its own for the answer.
    fn unless_ended(&self, core: MutexGuard<'a, FlowCore>, goes_on: GoesOn<'_>) -> Result<MutexGuard<'a, FlowCore>, SendError> {
        drop(core);
        if goes_on() { Ok(self.inner.core.lock()) } else { Err(self.was_cancelled()) }
    }

    fn was_cancelled(&self) -> SendError {
        SendError::Cancelled { flow: self.inner.settings.name.clone() }
    }

    /// Waits until all required receivers have finished with this frame. Receivers without progress for too long are
    /// cut.
    pub(super) fn acknowledged(
        &self,
        core: MutexGuard<'a, FlowCore>,
        sequence: u64,
    ) -> Result<MutexGuard<'a, FlowCore>, SendError> {
        let all = |core: &FlowCore| core.links.iter().filter(|link| link.is_waited_for()).all(|link| link.answered > sequence);
        let mut core = core;
        if !all(&core) {
            core.read();
            core.release();
        }
        if !all(&core) {
            let ack_wait = core.patience.ack_wait;
            core = self.wait_until(core, ack_wait, all);
        }
        if core.ended { Err(SendError::Closed) } else { Ok(core) }
    }

    /// Waits for a condition, and decides about receivers that take too long.
    fn wait_until(
        &self,
        mut core: MutexGuard<'a, FlowCore>,
        ack_wait: Duration,
        done: impl Fn(&FlowCore) -> bool,
    ) -> MutexGuard<'a, FlowCore> {
        let settings = &self.inner.settings;
        let began = Instant::now();
        core.waits_since = Some(began);
        loop {
            core.pump(self.inner.session, settings.resume);
            if done(&core) || core.ended {
                break;
            }
            core.mark_holders();
            let before = Instant::now();
            core = self.inner.wait(core, TURN, false);
            // Short waits count too: many of them, frame after frame, may hold up a flow.
            self.count_held(&mut core, before.elapsed());
            core.pump(self.inner.session, settings.resume);
            if done(&core) || core.ended {
                break;
            }
            self.judge(&mut core, began, ack_wait);
        }
        core.waits_since = None;
        core.waits_for.clear();
        core
    }

    /// Counts the time that receivers have delayed others, and returns whether it is too long.
    fn count_held(&self, core: &mut FlowCore, passed: Duration) {
        let wait = core.patience.wait;
        for index in 0..core.links.len() {
            let link = &mut core.links[index];
            link.held_others += if link.holds_others { passed } else { Duration::ZERO };
            if link.held_others > wait && link.holds_others && link.takes_part() {
                self.leave_behind(link, &core.window, CutCause::Slow, wait);
            }
        }
        core.release();
    }

    /// Cuts or skips a slow receiver.
    fn leave_behind(&self, link: &mut Link, window: &Window, why: CutCause, wait: Duration) {
        let how = if why == CutCause::Slow { "held up the others" } else { "took nothing" };
        let cause = if link.is_connected() { Cause::Slow } else { Cause::Away };
        match self.inner.settings.slow {
            Slow::Cut => link.cut(why, format!("{how} for {} s", wait.as_secs_f64())),
            Slow::Skip => link.skip(window, cause),
        }
    }

    /// Cuts the receivers whose waiting time has expired.
    fn judge(&self, core: &mut FlowCore, began: Instant, ack_wait: Duration) {
        let (wait, hurried) = (core.patience.wait, core.hurried);
        let FlowCore { window, links, numbering, waits_for, .. } = &mut *core;
        waits_for.clear();
        let full = !window.has_room(numbering.frame());
        let first = window.first();
        for link in links.iter_mut().filter(|link| link.takes_part()) {
            if link.waits_for_group(window) {
                // The sender does not wait for this receiver.
                link.progress = Instant::now();
                continue;
            }
            let holds = if ack_wait == Duration::MAX {
                link.hold <= first || !link.has_taken(window.end(), window)
            } else {
                link.acked < window.end()
            };
            if !holds {
                continue;
            }
            waits_for.push(link.peer.to_string());
            let stuck = began.max(link.progress).elapsed();
            if link.status == LinkStatus::Lagging && full && link.hold <= first {
                link.skip(window, Cause::Slow);
                continue;
            }
            if ack_wait != Duration::MAX {
                // At the end of a transfer nothing is left out, and a broken connection has its own time limit.
                let has_no_time = link.status == LinkStatus::Live || (hurried && link.status == LinkStatus::Broken);
                if has_no_time && stuck > ack_wait {
                    link.cut(CutCause::AckTimeout, format!("acknowledged nothing for {} s", ack_wait.as_secs_f64()));
                }
            } else if stuck > wait {
                self.leave_behind(link, window, CutCause::SendTimeout, wait);
            }
        }
        core.release();
    }

    pub(super) fn somebody(&self, core: &FlowCore) -> Result<(), SendError> {
        if self.inner.settings.receivers > 0 && !core.links.iter().any(Link::takes_part) {
            let flow = self.inner.settings.name.clone();
            return Err(SendError::NobodyLeft { flow, why: self.why_nobody(core) });
        }
        Ok(())
    }

    pub(super) fn why_nobody(&self, core: &FlowCore) -> String {
        let told: Vec<String> = core.links.iter().map(|link| format!("{}: {}", link.peer, link.why)).collect();
        if told.is_empty() { "there was none".to_owned() } else { told.join("; ") }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut core = self.inner.core.lock();
        core.caller = false;
        // The next call is about to write. If it does not come, the worker writes at its next turn.
        let unsent = !core.more && (core.has_unsent() || core.unwritten > 0);
        drop(core);
        if unsent {
            self.inner.wake();
            self.inner.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use bytes::Bytes;

    use super::*;
    use crate::{
        Name, Receiver, Sender,
        handler::{CallbackError, Data, End, Handler, Start},
        message::Transport,
        receiver::{FlowSettings, Identity, ReceiverSettings},
        sender::SendFlow,
    };

    struct Count(mpsc::Sender<usize>);

    impl Handler for Count {
        fn start(&mut self, _: &Start<'_>) -> Result<u64, CallbackError> {
            Ok(0)
        }

        fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
            self.0.send(data.bytes.len()).map_err(|_| CallbackError::failed("nobody counts"))
        }

        fn stop(&mut self, _: &End) -> Result<(), CallbackError> {
            Ok(())
        }
    }

    #[test]
    fn frames_are_joined_while_the_next_one_is_at_hand_and_none_stays_behind() {
        let (told, came) = mpsc::channel();
        let name = Name::new("flow").unwrap();
        let flows: Vec<(FlowSettings, Box<dyn Handler>)> = vec![(FlowSettings::new(name.clone()), Box::new(Count(told)))];
        let place = ReceiverSettings::default();
        let receiver = Receiver::open(Identity::alone("lab", "receiver"), name.clone(), place, flows).unwrap();
        let settings = SendFlow { transport: Some(Transport::Tcp), ..SendFlow::new(name.clone()) };
        let sender = Sender::open(Identity::alone("lab", "sender"), name.clone(), vec![settings]).unwrap();
        sender.connect(&receiver.target()).unwrap();
        let flow = sender.flow(&name).unwrap();
        assert!(flow.wait_for(1, Duration::from_secs(60)));
        flow.start(b"").unwrap();
        let unwritten = || flow.inner.core.lock().unwritten;
        let pass_on = |length, more| {
            flow.pass_on(Bytes::from(vec![1; length]), true, more).unwrap();
            unwritten()
        };
        // The worker of the flow writes what waits at its turn, so not every frame is seen waiting.
        let mut waited = 0;
        for _ in 0..100 {
            waited += usize::from(pass_on(1000, true) > 0);
            assert_eq!(pass_on(1000, false), 0, "the second one is written with it");
        }
        assert!(waited > 0);
        assert_eq!(pass_on(FRAMES_AT_ONCE, true), 0, "so many bytes wait for nothing");
        // The next one does not come.
        pass_on(1000, true);
        let mut left = 201_000 + FRAMES_AT_ONCE;
        while left > 0 {
            left -= came.recv_timeout(Duration::from_secs(60)).expect("all of it arrives");
        }
        assert!(flow.stop().unwrap().complete());
    }
}
