//! The work for all receivers of a flow at each turn, without waiting. A running call does it, else the flow's worker.

use std::time::Duration;

use super::{
    super::link::Link,
    core::{FlowCore, PING},
};
use crate::{
    message::Transport,
    sending::Phase,
    state::{CutCause, LinkStatus},
    window::Framed,
};

impl FlowCore {
    /// Returns true if a call that sends must end.
    pub(in crate::sender) fn is_cancelled(&self) -> bool {
        self.cancelled || self.halted
    }

    /// Limits frames to the length that all present receivers accept. A receiver that leaves or joins during a transfer
    /// changes nothing for the others.
    pub(super) fn fit(&mut self) {
        let there = self.links.iter().filter(|link| link.takes_part() || link.status == LinkStatus::Waiting);
        self.numbering.fit(there.map(|link| link.frame).min().unwrap_or(usize::MAX));
    }

    /// Releases the frames that all participating receivers have.
    pub(super) fn release(&mut self) {
        let held = self.links.iter().filter(|link| link.takes_part()).map(|link| link.hold).min();
        self.window.release(held.unwrap_or(self.window.end()));
    }

    pub(super) fn read(&mut self) {
        let transfer = self.numbering.transfer();
        for link in &mut self.links {
            link.read(&self.window, transfer, self.start);
        }
        self.unlooked = 0;
    }

    /// Returns true if no receiver gets it on a connection or in memory.
    pub(super) fn goes_as_datagrams(&self) -> bool {
        self.links.iter().filter(|link| link.is_connected() && link.takes_part()).all(Link::may_miss)
    }

    pub(super) fn write(&mut self) {
        (self.unwritten, self.more) = (0, false);
        if let Some(group) = &mut self.group {
            group.send(&self.window, &mut self.links);
        }
        for link in &mut self.links {
            link.write(&self.window);
        }
    }

    /// Adds a frame whose payload is in place.
    pub(super) fn push(&mut self, framed: Framed) {
        if let Some(ring) = &self.ring {
            ring.publish(&framed);
            self.links.iter_mut().for_each(|link| link.told(framed.header.sequence));
        }
        self.window.push(framed);
    }

    /// Drops everything that began with frame `from` except a reset, which remains to be sent.
    pub(super) fn reset(&mut self, reset: Framed, from: u64) {
        self.window.push(reset.clone());
        for link in self.links.iter_mut().filter(|link| link.takes_part()) {
            if link.acked <= from {
                link.told(reset.header.sequence);
            } else if !link.reset_shared(reset.header.sequence) {
                link.reset(reset.clone(), &self.window);
            }
        }
        if let Some(ring) = &self.ring {
            ring.publish(&reset);
        }
    }

    /// Finds the receivers whose full window stops others.
    pub(super) fn mark_holders(&mut self) {
        let window = &self.window;
        let full = !window.has_room(self.numbering.frame());
        // True if a receiver could go on without the others.
        let others_ready = self.links.iter().any(|link| link.status == LinkStatus::Live && link.could_go_on(window));
        for link in &mut self.links {
            let holds = link.takes_part() && link.hold <= window.first() && !link.waits_for_group(window);
            link.holds_others = full && others_ready && holds;
        }
    }

    /// Returns true if readers of shared memory and of datagrams have everything sent: memory ends with the sender, datagrams may be lost.
    pub(super) fn is_read(&self) -> bool {
        self.links
            .iter()
            .filter(|link| link.status == LinkStatus::Live && (link.transport == Transport::Shm || link.may_miss()))
            .all(|link| link.acked >= self.window.end())
    }

    /// Does all work that needs no waiting.
    pub(super) fn pump(&mut self, session: u32, resume: Duration) {
        self.read();
        self.write();
        for link in &mut self.links {
            link.ping(session, PING);
            if link.status != LinkStatus::Broken {
                continue;
            }
            if link.answered >= self.window.end() && self.numbering.phase() != Phase::Data {
                // No transfer is open between the two.
                let why = std::mem::take(&mut link.why);
                link.turn(LinkStatus::Connecting, why);
            } else if link.removed {
                link.cut(CutCause::Left, "it has left");
            } else if link.since.elapsed() >= resume {
                link.cut(CutCause::Away, "its connection was away for too long");
            }
        }
        // The report names each participant of the current or last transfer.
        let transfer = self.numbering.transfer();
        self.links.retain(|link| !link.removed || link.is_connected() || link.takes_part() || link.took_part == transfer);
        self.release();
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.links.iter().any(|link| link.has_unsent(&self.window))
    }
}
