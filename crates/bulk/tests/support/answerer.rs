//! A receiver that speaks frame by frame, and so can say anything.

#![allow(dead_code)]

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use tampu_bulk::{
    Target,
    frame::{HEADER_LEN, Header, Kind},
    message::{Hello, ProtectionLevel, Token, Transport, Welcome},
};

use super::WAIT;

/// The address for senders.
pub struct Door {
    listener: TcpListener,
}

impl Door {
    pub fn open() -> Door {
        Door { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    pub fn target(&self) -> Target {
        Target { address: self.listener.local_addr().unwrap().to_string(), token: Token([7; 16]) }
    }

    /// The next sender, after its Hello was answered with a Welcome.
    pub fn welcome(&self) -> Answerer {
        self.welcome_with(|_| ())
    }

    /// The same, with another Welcome.
    pub fn welcome_with(&self, change: impl FnOnce(&mut Welcome)) -> Answerer {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let mut answerer = Answerer { stream, session: 0 };
        let (header, payload) = answerer.read();
        assert_eq!(header.kind, Kind::Hello);
        let hello = Hello::decode(&payload).unwrap();
        let mut welcome = Welcome {
            version: 1,
            transport: Transport::Tcp,
            checked: false,
            frame: hello.frame,
            sequence: 0,
            offset: 0,
            incarnation: tampu_bus::host::incarnation(),
            source: "answerer".to_owned(),
            place: String::new(),
            room: 0,
            protection: ProtectionLevel::None,
        };
        change(&mut welcome);
        answerer.say(Header::of(Kind::Welcome), &welcome.encode());
        answerer.session = hello.session;
        answerer
    }
}

pub struct Answerer {
    stream: TcpStream,
    session: u32,
}

impl Answerer {
    pub fn read(&mut self) -> (Header, Vec<u8>) {
        let mut head = [0; HEADER_LEN];
        self.stream.read_exact(&mut head).unwrap();
        let header = Header::decode(&head, 1 << 20).unwrap();
        let mut payload = vec![0; header.length as usize];
        self.stream.read_exact(&mut payload).unwrap();
        (header, payload)
    }

    /// The next frame of this kind.
    pub fn until(&mut self, kind: Kind) -> Header {
        loop {
            let (header, _) = self.read();
            if header.kind == kind {
                return header;
            }
        }
    }

    pub fn say(&mut self, header: Header, payload: &[u8]) {
        let header = Header { session: self.session, ..header }.over(payload, true);
        self.stream.write_all(&header.encode()).unwrap();
        self.stream.write_all(payload).unwrap();
    }

    /// All before and with this frame is done with.
    pub fn acknowledge(&mut self, done: &Header) {
        let header =
            Header { transfer: done.transfer, sequence: done.sequence + 1, offset: done.offset, ..Header::of(Kind::Ack) };
        self.say(header, b"");
    }
}
