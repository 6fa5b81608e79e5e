//! A sender that was admitted to a flow.

use super::{
    callers::AdmittedSender,
    datagrams::Datagrams,
    line::Line,
    slot::{ReceiverState, Slot},
};
use crate::{
    handler::Peer,
    message::{Hello, Welcome},
    shm::View,
};

/// Sender that was admitted.
pub(super) struct Tenant<'a> {
    pub(super) slot: &'a Slot,
    pub(super) peer: Peer,
    pub(super) number: u64,
    pub(super) hello: Hello,
    pub(super) welcome: Welcome,
    pub(super) resumed: bool,
    /// Sender's memory, for that transport.
    pub(super) view: Option<View>,
    /// The socket for datagrams.
    pub(super) datagrams: Option<Datagrams>,
    /// Admission, by which it counts among connected senders.
    pub(super) _place: AdmittedSender<'a>,
}

impl Tenant<'_> {
    pub(super) fn is_mine(&self) -> bool {
        self.slot.is_held_by(self.number)
    }

    /// Reports a timeout to both ends, and returns the text.
    pub(super) fn silent(&self, shared: &ReceiverState, line: &mut Line) -> String {
        let text = format!("nothing came for {} s", shared.settings.silence.as_secs_f64());
        let mut answers = Vec::new();
        let mut flow = self.slot.flow.lock();
        if self.is_mine() {
            flow.timeout(self.hello.session, &text, &mut answers);
        }
        drop(flow);
        // A stopped sender reads this answer when it continues; a dead sender does not.
        let _ = line.answer(&mut answers);
        text
    }
}
