//! Data that goes once for all: a flow's multicast group, at the pace of its slowest member.
//!
//! A member is a receiver with datagrams of its own that has joined the group; it gets its beginnings and ends, and what it alone
//! misses, for itself. Who is behind the group, because its connection broke, catches up with datagrams of its own. A member that holds
//! the others up is cut as any slow receiver is. Rejected: the pace of the fastest, where each slow member's data is sent a second time,
//! which is what a group is there to avoid.

use super::link::Link;
use crate::{datagram::Outlet, window::Window};

/// Sends to a flow's group.
pub(super) struct GroupSender {
    outlet: Outlet,
    /// The next frame.
    next: u64,
}

impl GroupSender {
    pub fn new(outlet: Outlet) -> GroupSender {
        GroupSender { outlet, next: 0 }
    }

    /// Sends what all members that are in step can take.
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
                let goes_on = !framed.is_data() || self.outlet.send(framed);
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
