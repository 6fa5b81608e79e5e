//! A flow's receivers come and go: what those who connect them ask and tell.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use super::{
    super::{
        connecting::Made,
        link::{Datagrams, Wire},
    },
    Core, Inner,
};
use crate::{
    frame::{Header, Kind},
    handler::Peer,
    message::{CONTROL_LIMIT, Refusal, Transport},
    receiver::{chance, lock},
    shm::{Ring, Seat},
    state::LinkStatus,
};

impl Inner {
    /// What a Hello asks for: the transfer to go on with.
    pub(in crate::sender) fn transfer(&self) -> u64 {
        lock(&self.core).numbering.transfer()
    }

    /// Whether somebody still wants this receiver.
    pub(in crate::sender) fn wants(&self, key: &str) -> bool {
        let core = lock(&self.core);
        !core.closing && core.links.iter().any(|link| link.key == key && !link.removed)
    }

    /// Whether this receiver's connection is still to be kept; if not, whoever asks is about to let go of it.
    pub(in crate::sender) fn keeps(&self, key: &str) -> bool {
        let mut core = lock(&self.core);
        let closing = core.closing;
        let Some(link) = core.links.iter_mut().find(|link| link.key == key) else { return false };
        link.kept = !closing && (!link.removed || link.is_connected());
        link.kept
    }

    /// Sleeps until the next attempt, less where the receiver is not wanted any more.
    pub(in crate::sender) fn pause(&self, key: &str, time: Duration) {
        let until = Instant::now() + time;
        while self.wants(key) && Instant::now() < until {
            let core = lock(&self.core);
            let left = until.saturating_duration_since(Instant::now());
            drop(self.changed.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// It could not be connected to.
    pub(in crate::sender) fn failed(&self, key: &str, refusal: Option<Refusal>, why: String) {
        let mut core = lock(&self.core);
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

    /// Memory to share with a reader on this host, and a place for it there.
    pub(in crate::sender) fn offer(&self) -> Option<Seat> {
        let mut offered = lock(&self.offered);
        if offered.is_none() {
            // A machine without room for it has TCP.
            *offered = chance()
                .ok()
                .and_then(|token| Ring::create(self.ring_size(), self.settings.frame.max(CONTROL_LIMIT) as usize, token).ok());
        }
        offered.as_ref()?.slot()
    }

    /// The window, and as much as half of it that is being filled.
    fn ring_size(&self) -> usize {
        let window = self.settings.window.max(self.settings.frame as usize);
        window + window / 2
    }

    /// It is connected.
    pub(in crate::sender) fn attach(&self, key: &str, made: Made, address: String) {
        let Made { stream, reader, seat, datagrams, welcome } = made;
        let mut core = lock(&self.core);
        let Core { numbering, window, links, checked, ring, ring_from, patience, .. } = &mut *core;
        let seat = seat.filter(|_| welcome.transport == Transport::Shm);
        if seat.is_some() && ring.is_none() {
            ring.clone_from(&lock(&self.offered));
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
            link.transport = welcome.transport;
            link.frame = welcome.frame as usize;
            let grouped = welcome.transport == Transport::Multicast;
            let datagrams = datagrams.map(|outlet| Datagrams::new(outlet, welcome.room, grouped));
            let wire = Wire { stream, reader, seat: seat.map(|seat| (seat, *ring_from)), datagrams };
            link.attach(wire, (welcome.sequence, welcome.offset), window, &reset);
            if link.takes_part() {
                // It came again by a way that takes less.
                numbering.fit(numbering.frame().min(link.frame));
            }
            let past = if link.takes_part() { 0 } else { numbering.transfer() };
            link.tell_patience(self.session, *patience, past);
        }
        drop(core);
        self.changed.notify_all();
        self.wake();
    }

    /// Waits until the receiver's connection is gone. Says whether the receiver is still on the list.
    pub(in crate::sender) fn until_gone(&self, key: &str) -> bool {
        let mut core = lock(&self.core);
        loop {
            if core.closing {
                return false;
            }
            match core.links.iter().find(|link| link.key == key) {
                None => return false,
                Some(link) if !link.is_connected() => return true,
                Some(_) => {}
            }
            core = self.changed.wait_timeout(core, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
