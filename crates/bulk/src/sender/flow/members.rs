//! Receivers that join and leave a flow: the interface for the workers that connect them.

use std::time::{Duration, Instant};

use super::{
    super::{
        connecting::Made,
        link::{Datagrams, Wire},
    },
    core::{FlowCore, FlowShared},
};
use crate::{
    frame::{Header, Kind},
    handler::Peer,
    message::{CONTROL_LIMIT, Refusal, Transport},
    open::random_bytes,
    shm::{Ring, Seat},
    state::LinkStatus,
};

impl FlowShared {
    /// Returns the transfer that a Hello asks to continue.
    pub(in crate::sender) fn transfer(&self) -> u64 {
        self.core.lock().numbering.transfer()
    }

    /// Returns true if this receiver is still wanted.
    pub(in crate::sender) fn wants(&self, key: &str) -> bool {
        let core = self.core.lock();
        !core.closing && core.links.iter().any(|link| link.key == key && !link.removed)
    }

    /// Returns true if this receiver's connection is to be kept; if false, the caller drops it.
    pub(in crate::sender) fn keeps(&self, key: &str) -> bool {
        let mut core = self.core.lock();
        let closing = core.closing;
        let Some(link) = core.links.iter_mut().find(|link| link.key == key) else { return false };
        link.kept = !closing && (!link.removed || link.is_connected());
        link.kept
    }

    /// Sleeps until the next attempt, or less if the receiver is not wanted any longer.
    pub(in crate::sender) fn pause(&self, key: &str, time: Duration) {
        let until = Instant::now() + time;
        while self.wants(key) && Instant::now() < until {
            let mut core = self.core.lock();
            let left = until.saturating_duration_since(Instant::now());
            self.changed.wait_for(&mut core, left);
        }
    }

    /// Notes a failed connection attempt.
    pub(in crate::sender) fn failed(&self, key: &str, refusal: Option<Refusal>, why: String) {
        let mut core = self.core.lock();
        for link in core.links.iter_mut().filter(|link| link.key == key && !link.is_connected()) {
            match link.status {
                LinkStatus::Connecting | LinkStatus::Refused => {
                    link.turn(if refusal.is_some() { LinkStatus::Refused } else { LinkStatus::Connecting }, why.clone());
                    link.refusal = refusal;
                }
                _ => link.why.clone_from(&why),
            }
        }
    }

    /// Offers shared memory to a reader on this host, and returns its seat.
    pub(in crate::sender) fn offer(&self) -> Option<Seat> {
        let mut offered = self.offered.lock();
        if offered.is_none() {
            // A machine without room for shared memory uses TCP.
            *offered = random_bytes()
                .ok()
                .and_then(|token| Ring::create(self.ring_size(), self.settings.frame.max(CONTROL_LIMIT) as usize, token).ok());
        }
        offered.as_ref()?.slot()
    }

    /// Returns the size of the ring: the window, plus half of it for a block being filled.
    fn ring_size(&self) -> usize {
        let window = self.settings.window.max(self.settings.frame as usize);
        window + window / 2
    }

    /// Notes a new connection.
    pub(in crate::sender) fn attach(&self, key: &str, made: Made, address: String) {
        let Made { stream, reader, seat, datagrams, sealer, welcome } = made;
        let mut core = self.core.lock();
        let FlowCore { numbering, window, links, checked, ring, ring_from, patience, .. } = &mut *core;
        let seat = seat.filter(|_| welcome.transport == Transport::Shm);
        if seat.is_some() && ring.is_none() {
            ring.clone_from(&self.offered.lock());
            *ring_from = window.end();
        }
        *checked |= welcome.checked;
        let reset = Header {
            session: self.session,
            transfer: numbering.transfer(),
            sequence: window.end().saturating_sub(1),
            offset: numbering.offset(),
            ..Header::of(Kind::Reset)
        };
        if let Some(link) = links.iter_mut().find(|link| link.key == key && !link.removed) {
            link.peer = Peer { source: welcome.source.clone(), incarnation: welcome.incarnation, address };
            (link.transport, link.protection) = (welcome.transport, welcome.protection);
            link.frame = welcome.frame as usize;
            let grouped = welcome.transport == Transport::Multicast;
            let datagrams = datagrams.map(|outlet| Datagrams::new(outlet, welcome.room, grouped));
            let wire = Wire { stream, reader, seat: seat.map(|seat| (seat, *ring_from)), datagrams, sealer };
            link.attach(wire, (welcome.sequence, welcome.offset), window, &reset);
            if link.takes_part() {
                // The receiver came back by a transport with shorter frames.
                numbering.fit(numbering.frame().min(link.frame));
            }
            let past = if link.takes_part() { 0 } else { numbering.transfer() };
            link.tell_patience(self.session, *patience, past);
        }
        drop(core);
        self.changed.notify_all();
        self.wake();
    }

    /// Waits until the receiver's connection is gone. Returns whether the receiver is still wanted.
    pub(in crate::sender) fn until_gone(&self, key: &str) -> bool {
        let mut core = self.core.lock();
        loop {
            if core.closing {
                return false;
            }
            match core.links.iter().find(|link| link.key == key) {
                None => return false,
                Some(link) if !link.is_connected() => return true,
                Some(_) => {}
            }
            self.changed.wait_for(&mut core, Duration::from_millis(100));
        }
    }
}
