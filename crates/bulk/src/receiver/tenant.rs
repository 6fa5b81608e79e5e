//! A sender that was admitted to a flow, and the frames written back to it.

use std::{
    io::{self, IoSlice, Write},
    net::TcpStream,
};

use super::{
    callers::AdmittedSender,
    datagrams::Datagrams,
    flow::Answer,
    slot::{ReceiverState, Slot},
};
use crate::{
    frame::Header,
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
    pub(super) fn silent(&self, shared: &ReceiverState, stream: &mut TcpStream) -> String {
        let text = format!("nothing came for {} s", shared.settings.silence.as_secs_f64());
        let mut answers = Vec::new();
        let mut flow = self.slot.flow.lock();
        if self.is_mine() {
            flow.timeout(self.hello.session, &text, &mut answers);
        }
        drop(flow);
        // A stopped sender reads this answer when it continues; a dead sender does not.
        let _ = answer(stream, &mut answers);
        text
    }
}

pub(super) fn answer(stream: &mut TcpStream, answers: &mut Vec<Answer>) -> io::Result<()> {
    for (header, payload) in answers.drain(..) {
        write(stream, &header.over(&payload, true), &payload)?;
    }
    Ok(())
}

/// Writes one frame completely.
pub(crate) fn write(stream: &mut TcpStream, header: &Header, payload: &[u8]) -> io::Result<()> {
    let head = header.encode();
    let mut written = stream.write_vectored(&[IoSlice::new(&head), IoSlice::new(payload)])?;
    if written < head.len() {
        stream.write_all(&head[written..])?;
        written = head.len();
    }
    stream.write_all(&payload[written - head.len()..])
}
