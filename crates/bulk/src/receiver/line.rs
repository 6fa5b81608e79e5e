//! The connection of a receiver: its socket, and the frames written to it, sealed on a protected connection.

use std::{
    io::{self, IoSlice, Write},
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    io::retry_on_intr,
    net::{SendAncillaryBuffer, SendFlags, sendmsg},
};

use super::flow::Answer;
use crate::{frame::Header, seal::RecordSealer};

/// Connection of a receiver.
pub(crate) struct Line {
    pub(crate) stream: TcpStream,
    sealer: Option<RecordSealer>,
    record: Vec<u8>,
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Line {
        Line { stream, sealer: None, record: Vec::new() }
    }

    /// Seals every frame from here on.
    pub(crate) fn protect(&mut self, sealer: RecordSealer) {
        self.sealer = Some(sealer);
    }

    /// Returns the socket, and the keys for what is written.
    pub(crate) fn into_parts(self) -> (TcpStream, Option<RecordSealer>) {
        (self.stream, self.sealer)
    }

    /// Writes one frame completely.
    pub(crate) fn write(&mut self, header: &Header, payload: &[u8]) -> io::Result<()> {
        let head = header.encode();
        let Some(sealer) = &mut self.sealer else { return write_all(&mut self.stream, &head, payload) };
        self.record.clear();
        sealer.seal(&head, payload, &mut self.record).map_err(io::Error::other)?;
        self.stream.write_all(&self.record)
    }

    /// Writes the answers to a sender.
    pub(super) fn answer(&mut self, answers: &mut Vec<Answer>) -> io::Result<()> {
        for (header, payload) in answers.drain(..) {
            self.write(&header.over(&payload, true), &payload)?;
        }
        Ok(())
    }
}

fn write_all(stream: &mut TcpStream, head: &[u8], payload: &[u8]) -> io::Result<()> {
    let pieces = [IoSlice::new(head), IoSlice::new(payload)];
    // Not `writev`: its SIGPIPE would end a program in C when its sender has gone.
    let send = || sendmsg(&*stream, &pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
    let mut written = retry_on_intr(send)?;
    if written < head.len() {
        stream.write_all(&head[written..])?;
        written = head.len();
    }
    stream.write_all(&payload[written - head.len()..])
}
