//! A receiver with datagrams: how many may be in flight, retransmissions, and the share that goes through a group.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{Link, congestion::Congestion};
use crate::{
    datagram::{Outlet, ROOM_A_DATAGRAM},
    frame::Kind,
    message::Nack,
    window::{Framed, Window},
};

/// Datagram bytes in flight to a receiver that states no limit.
const ROOM: usize = 1 << 20;
/// Most datagrams sent again for one request.
const REPAIRED_AT_ONCE: usize = 1024;
/// Time after which a receiver with missing acknowledgements gets the number of sent datagrams: the last ones may be
/// lost.
pub(super) const PROBE: Duration = Duration::from_millis(20);

/// The sending side of a receiver's datagrams.
pub(in super::super) struct Datagrams {
    outlet: Outlet,
    /// Bytes that may be in flight to it.
    room: usize,
    /// Part of it that the network can carry.
    congestion: Congestion,
    in_flight: usize,
    /// First frame that goes through the group, for a member of the flow's group.
    group: Option<u64>,
    /// Frames in flight to it that the window dropped when data was skipped. Their size is at most the limit of bytes
    /// in flight.
    kept: VecDeque<Framed>,
    kept_bytes: usize,
    /// Sequence before which frames are kept or were skipped.
    kept_before: u64,
}

impl Datagrams {
    /// Makes the sending side. With `grouped`, common data goes through the group, and data that only this receiver
    /// misses goes through `outlet`.
    pub fn new(outlet: Outlet, room: u32, grouped: bool) -> Datagrams {
        let room = if room == 0 { ROOM } else { (room as usize).min(ROOM) };
        Datagrams {
            outlet,
            room,
            congestion: Congestion::new(room),
            in_flight: 0,
            group: grouped.then_some(0),
            kept: VecDeque::new(),
            kept_bytes: 0,
            kept_before: 0,
        }
    }

    /// Returns true if the next frame may be sent. An abort does not overtake earlier frames.
    fn is_ready(&self, next: u64, acked: u64, window: &Window) -> bool {
        let under_way = next.saturating_sub(acked);
        let first = |framed: &Framed| framed.header.kind != Kind::Reset || under_way == 0;
        self.in_flight < self.congestion.window()
            && under_way < self.room as u64 / u64::from(ROOM_A_DATAGRAM)
            && window.get(next).is_none_or(first)
    }

    /// Returns true if the next frame may be sent, to this receiver alone.
    pub fn can_send(&self, next: u64, acked: u64, window: &Window) -> bool {
        self.group.is_none_or(|group| next < group) && self.is_ready(next, acked, window)
    }

    fn keep(&mut self, framed: &Framed) {
        self.kept_bytes += framed.wire_len();
        self.kept.push_back(framed.clone());
        while self.kept_bytes > self.room {
            let Some(first) = self.kept.pop_front() else { return };
            self.kept_bytes -= first.wire_len();
        }
    }

    fn get<'a>(&'a self, sequence: u64, window: &'a Window) -> Option<&'a Framed> {
        let kept = || self.kept.binary_search_by_key(&sequence, |framed| framed.header.sequence).ok();
        window.get(sequence).or_else(|| kept().and_then(|index| self.kept.get(index)))
    }
}

impl Link {
    /// Returns true if it gets the number of datagrams when it is silent.
    pub fn is_probed(&self) -> bool {
        self.datagrams.is_some() && self.sends() && self.acked < self.next
    }

    /// Returns true if its data may be lost on the way, and is to be kept until it has everything.
    pub fn may_miss(&self) -> bool {
        self.datagrams.is_some() && self.sends()
    }

    /// Returns true if it receives the group's data too.
    pub fn is_member(&self) -> bool {
        self.sends() && self.datagrams.as_ref().is_some_and(|datagrams| datagrams.group.is_some())
    }

    /// Returns true if this member of a group can take the next frame.
    pub fn is_ready(&self, window: &Window) -> bool {
        self.datagrams.as_ref().is_some_and(|datagrams| datagrams.is_ready(self.next, self.acked, window))
    }

    /// Returns true if it could take more without the other members of the group.
    pub fn waits_for_group(&self, window: &Window) -> bool {
        let in_step = self.datagrams.as_ref().is_some_and(|datagrams| datagrams.group.is_some_and(|group| self.next >= group));
        let idle = self.owed.is_empty() && self.partial.is_none();
        in_step && idle && self.sends() && self.next < window.end() && self.is_ready(window)
    }

    /// Accounts for a frame that the group is about to send. Returns true if this member should acknowledge it at once.
    pub fn asks(&mut self, framed: &Framed) -> bool {
        framed.is_data() && self.datagrams.as_mut().is_some_and(|datagrams| datagrams.congestion.sent(framed.bytes.len()))
    }

    /// Notes that the group has sent its next frame; starts and ends go on the connection.
    pub fn passed(&mut self, framed: &Framed) {
        if !framed.is_data() {
            self.owed.push_back(framed.clone());
        } else if let Some(datagrams) = &mut self.datagrams {
            datagrams.in_flight += framed.bytes.len();
            self.last_write = Instant::now();
        }
        self.next += 1;
    }

    /// Notes that the group has sent all frames before this one. Frames that this member did not get are sent to it
    /// singly.
    pub fn follow_group(&mut self, next: u64) {
        if let Some(datagrams) = self.datagrams.as_mut().filter(|datagrams| datagrams.group.is_some()) {
            datagrams.group = Some(next);
        }
    }

    /// Sends datagrams within the limit of bytes in flight; starts and ends go on the connection.
    pub(super) fn send_datagrams(&mut self, window: &Window) {
        if !self.sends() {
            return;
        }
        let Some(datagrams) = &mut self.datagrams else { return };
        while datagrams.can_send(self.next, self.acked, window)
            && let Some(framed) = window.get(self.next)
        {
            let mut goes_on = true;
            if framed.is_data() {
                let asks = datagrams.congestion.sent(framed.bytes.len());
                goes_on = if asks { datagrams.outlet.send(&framed.asking()) } else { datagrams.outlet.send(framed) };
                datagrams.in_flight += framed.bytes.len();
                self.last_write = Instant::now();
            } else {
                self.owed.push_back(framed.clone());
            }
            self.next += 1;
            if !goes_on {
                break;
            }
        }
        datagrams.outlet.flush();
    }

    /// Notes a new acknowledgement.
    pub(super) fn came(&mut self, window: &Window) {
        let (acked, next) = (self.acked, self.next);
        let Some(datagrams) = &mut self.datagrams else { return };
        datagrams.congestion.acked(acked, next, datagrams.in_flight);
        datagrams.in_flight = window.bytes_from(acked).saturating_sub(window.bytes_from(next));
        while let Some(first) = datagrams.kept.pop_front_if(|first| first.header.sequence < acked) {
            datagrams.kept_bytes -= first.wire_len();
        }
    }

    /// Keeps the frames in flight although the window drops them. Later frames are skipped, also at a second call.
    pub(super) fn keep_under_way(&mut self, window: &Window) {
        let (acked, next) = (self.acked, self.next);
        let Some(datagrams) = &mut self.datagrams else { return };
        let from = std::mem::replace(&mut datagrams.kept_before, window.end()).max(acked);
        for framed in window.from(from).take_while(|framed| framed.header.sequence < next).filter(|framed| framed.is_data()) {
            datagrams.keep(framed);
        }
    }

    /// Sends missing frames again that are still kept.
    pub(super) fn repair(&mut self, window: &Window) {
        let Ok(nack) = Nack::decode(self.reader.payload()) else { return };
        let Some(mut datagrams) = self.datagrams.take() else { return };
        datagrams.congestion.missing(&nack.missing, self.next);
        let mut bytes = 0;
        let wanted = nack.missing.iter().flat_map(|(from, to)| *from..(*to).min(self.next).max(*from)).take(REPAIRED_AT_ONCE);
        for sequence in wanted {
            let Some(framed) = datagrams.get(sequence, window).filter(|framed| framed.is_data()).cloned() else { continue };
            // One goes in any case: a frame may be longer than the window.
            if bytes > 0 && bytes + framed.bytes.len() > datagrams.congestion.window() {
                break;
            }
            bytes += framed.bytes.len();
            if !datagrams.outlet.send(&framed) {
                // The receiver asks for it again; meanwhile the other links get their turn.
                break;
            }
        }
        datagrams.outlet.flush();
        self.datagrams = Some(datagrams);
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use bytes::Bytes;
    use tampu_types::Incarnation;

    use super::*;
    use crate::{handler::Peer, message::Cause, sending::Numbering, state::LinkStatus};

    #[test]
    fn what_was_left_out_is_not_kept_when_more_is() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let peer = Peer { source: String::new(), incarnation: Incarnation::default(), address: String::new() };
        let mut link = Link::new(String::new(), peer);
        link.datagrams = Some(Datagrams::new(Outlet::new(socket, to).unwrap(), 0, false));
        link.status = LinkStatus::Live;
        let (mut flow, mut window) = (Numbering::new(1, 100), Window::new(1, 1 << 20));
        window.push(Framed::new(flow.start(0).unwrap(), Bytes::new(), false));
        let mut push = |window: &mut Window, count: usize| {
            (0..count).for_each(|_| window.push(Framed::new(flow.data(10).unwrap().0, Bytes::from_static(&[0; 10]), false)));
        };
        push(&mut window, 8);
        // The receiver has the start and gets four frames. The next frames are left out, and again three of the next five.
        (link.acked, link.next) = (2, 6);
        link.skip(&window, Cause::Slow);
        push(&mut window, 5);
        link.next = 12;
        link.skip(&window, Cause::Slow);
        let kept: Vec<u64> = link.datagrams.as_ref().unwrap().kept.iter().map(|framed| framed.header.sequence).collect();
        assert_eq!(kept, [2, 3, 4, 5, 10, 11], "what is under way");
    }
}
