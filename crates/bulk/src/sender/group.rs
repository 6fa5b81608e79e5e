//! A flow's multicast group: data is sent once for all members, at the pace of the slowest.
//!
//! A member is a receiver with its own datagrams that has joined the group. It gets starts, ends, and the data that it
//! alone missed, on its own socket. A member that is behind the group after a broken connection catches up with its own
//! datagrams. A member that delays the others is disconnected like any slow receiver. Rejected: the pace of the fastest
//! member. Each slow member's data would be sent a second time, which a group should avoid.

use super::link::Link;
use crate::{datagram::Outlet, window::Window};

/// Sender to a flow's group.
pub(super) struct GroupSender {
    outlet: Outlet,
    /// Sequence of the next frame.
    next: u64,
}

impl GroupSender {
    pub fn new(outlet: Outlet) -> GroupSender {
        GroupSender { outlet, next: 0 }
    }

    /// Sends as much as all members in step can take.
    pub fn send(&mut self, window: &Window, links: &mut [Link]) {
        self.next = self.next.max(window.first());
        while let Some(framed) = window.get(self.next) {
            let mut in_step = 0;
            let next = self.next;
            for link in links.iter().filter(|link| link.is_member() && link.next == next) {
                if !link.is_ready(window) {
                    return self.end(links);
                }
                in_step += 1;
            }
            if in_step > 0 {
                let mut asks = false;
                for link in links.iter_mut().filter(|link| link.is_member() && link.next == next) {
                    asks |= link.asks(framed);
                }
                let goes_on =
                    !framed.is_data() || if asks { self.outlet.send(&framed.asking()) } else { self.outlet.send(framed) };
                links.iter_mut().filter(|link| link.is_member() && link.next == next).for_each(|link| link.passed(framed));
                if !goes_on {
                    self.next += 1;
                    return self.end(links);
                }
            }
            self.next += 1;
        }
        self.end(links);
    }

    fn end(&mut self, links: &mut [Link]) {
        self.outlet.flush();
        links.iter_mut().for_each(|link| link.follow_group(self.next));
    }
}
