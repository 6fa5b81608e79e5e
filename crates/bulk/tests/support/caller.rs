//! A sender that speaks frame by frame, and so can say anything.

#![allow(dead_code)]

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use tampu_bulk::{
    Receiver,
    frame::{HEADER_LEN, Header, Kind},
    message::{Hello, ProtectionLevel, Transport, Welcome},
};
use tampu_types::Incarnation;

use super::WAIT;

/// A caller that speaks frame by frame.
pub struct Caller {
    pub stream: TcpStream,
    pub session: u32,
}

impl Caller {
    pub fn hello(receiver: &Receiver, incarnation: Incarnation) -> Hello {
        Hello {
            version: 1,
            transport: Transport::Tcp,
            checked: false,
            frame: 1 << 20,
            session: 77,
            ack_every: 1 << 20,
            transfer: 0,
            token: receiver.target().token,
            incarnation,
            domain: "test".to_owned(),
            source: "caller".to_owned(),
            stream: "correlator".to_owned(),
            flow: "spectra".to_owned(),
            place: String::new(),
            port: 0,
            protection: ProtectionLevel::None,
            group_key: None,
        }
    }

    pub fn connect(receiver: &Receiver) -> Caller {
        let stream = TcpStream::connect(receiver.address()).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        Caller { stream, session: 77 }
    }

    pub fn welcomed(receiver: &Receiver, incarnation: Incarnation) -> Caller {
        Caller::welcomed_by(receiver, incarnation, Transport::Tcp).0
    }

    pub fn welcomed_by(receiver: &Receiver, incarnation: Incarnation, transport: Transport) -> (Caller, Welcome) {
        Caller::welcomed_after(receiver, Hello { transport, ..Caller::hello(receiver, incarnation) })
    }

    /// One whose datagrams come from this port.
    pub fn welcomed_from(receiver: &Receiver, transport: Transport, place: &str, port: u16) -> (Caller, Welcome) {
        let hello = Caller::hello(receiver, a_dead_life());
        Caller::welcomed_after(receiver, Hello { transport, place: place.to_owned(), port, ..hello })
    }

    fn welcomed_after(receiver: &Receiver, hello: Hello) -> (Caller, Welcome) {
        let mut caller = Caller::connect(receiver);
        caller.send(Header::of(Kind::Hello), &hello.encode());
        let (header, payload) = caller.read().unwrap();
        assert_eq!(header.kind, Kind::Welcome);
        (caller, Welcome::decode(&payload).unwrap())
    }

    pub fn send(&mut self, header: Header, payload: &[u8]) {
        let header = Header { session: if header.kind == Kind::Hello { 0 } else { self.session }, ..header }.over(payload, true);
        self.stream.write_all(&header.encode()).unwrap();
        self.stream.write_all(payload).unwrap();
    }

    /// Returns its address, as its receiver reports it.
    pub fn address(&self) -> String {
        self.stream.local_addr().unwrap().to_string()
    }

    /// A frame whose payload is not what its checksum says.
    pub fn send_changed(&mut self, header: Header, payload: &[u8]) {
        let header = Header { session: self.session, ..header }.over(b"something else", true);
        let header = Header { length: payload.len() as u32, ..header };
        self.stream.write_all(&[&header.encode()[..], payload].concat()).unwrap();
    }

    /// The next frame; `None` at the end.
    pub fn read(&mut self) -> Option<(Header, Vec<u8>)> {
        let mut head = [0; HEADER_LEN];
        self.stream.read_exact(&mut head).ok()?;
        let header = Header::decode(&head, 1 << 20).unwrap();
        let mut payload = vec![0; header.length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some((header, payload))
    }

    /// The next frame of this kind.
    pub fn next(&mut self, kind: Kind) -> (Header, Vec<u8>) {
        std::iter::from_fn(|| self.read()).find(|(header, _)| header.kind == kind).unwrap()
    }

    /// Returns the messages until the end of the connection.
    pub fn rest(mut self) -> Vec<(Header, Vec<u8>)> {
        std::iter::from_fn(|| self.read()).collect()
    }
}

pub fn start() -> Header {
    Header { transfer: 1, sequence: 1, ..Header::of(Kind::Start) }
}

pub fn data(sequence: u64, offset: u64) -> Header {
    Header { transfer: 1, sequence, offset, ..Header::of(Kind::Data) }
}

/// The life of a process that is no more.
pub fn a_dead_life() -> Incarnation {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let life = Incarnation { pid: child.id(), ..tampu_bus::host::incarnation() };
    child.wait().unwrap();
    life
}
