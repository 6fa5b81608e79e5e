//! The hand-shake: who wants to send what by which way, and the receiver's yes or no.

use tampu_types::Incarnation;

use super::{Cursor, put_text};
use crate::frame::BadFrame;

/// What lets a sender in: whoever could read the receiver's declaration on the bus knows it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Token(pub [u8; 16]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Which way data frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Transport {
    /// On the connection itself.
    Tcp = 0,
    /// Through memory that both map.
    Shm = 1,
    /// As datagrams, each receiver its own.
    Udp = 2,
    /// As datagrams, one for all receivers.
    Multicast = 3,
}

impl Transport {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Shm => "shm",
            Transport::Udp => "udp",
            Transport::Multicast => "multicast",
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Transport> {
        [Transport::Tcp, Transport::Shm, Transport::Udp, Transport::Multicast].into_iter().find(|way| *way as u8 == number)
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A sender's first word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Of the hand-shake.
    pub version: u16,
    /// Which way it wants to send.
    pub transport: Transport,
    /// Whether payloads shall have checksums.
    pub checked: bool,
    /// The longest payload it wants to send, bytes.
    pub frame: u32,
    /// What the flow's frames carry: a number by chance.
    pub session: u32,
    /// After how many bytes it wants an acknowledgement.
    pub ack_every: u64,
    /// The transfer it wants to go on with, 0 for none.
    pub transfer: u64,
    /// What lets it in.
    pub token: Token,
    /// Its life.
    pub incarnation: Incarnation,
    /// The installation.
    pub domain: String,
    /// Who it is.
    pub source: String,
    /// Which stream.
    pub stream: String,
    /// Which flow.
    pub flow: String,
    /// Where the shared memory is, or which group it sends to; empty where there is neither.
    pub place: String,
    /// Which port this receiver's own datagrams come from; 0 where there are none.
    pub port: u16,
}

/// A receiver's yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// Of the hand-shake: the lower of both.
    pub version: u16,
    /// Which way: the one asked for, or TCP where that cannot be.
    pub transport: Transport,
    /// Whether payloads have checksums: one of both wants it.
    pub checked: bool,
    /// The longest payload it takes, bytes.
    pub frame: u32,
    /// The frame it waits for, 0 where it holds no transfer of this sender.
    pub sequence: u64,
    /// How many bytes of that transfer it has.
    pub offset: u64,
    /// Its life.
    pub incarnation: Incarnation,
    /// Who it is.
    pub source: String,
    /// Where datagrams reach it, or which place in the shared memory is its own; why not, where the transport is another.
    pub place: String,
    /// Bytes of datagrams that may be under way to it, 0 where there are none: what fits the buffer its system gives it.
    pub room: u32,
}

/// Why a receiver says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Refusal {
    /// A number of a later release.
    Unknown = 0,
    /// It does not have the token, or is of another domain.
    Stranger = 1,
    /// There is no such stream here.
    NoStream = 2,
    /// There is no such flow here.
    NoFlow = 3,
    /// Another sender has the flow.
    Taken = 4,
    /// It does not want this transport.
    Transport = 5,
    /// The hand-shake is of a release that cannot be spoken.
    Version = 6,
    /// Too many connections.
    Full = 7,
}

impl Refusal {
    fn from_number(number: u8) -> Refusal {
        use Refusal::*;
        [Stranger, NoStream, NoFlow, Taken, Transport, Version, Full]
            .into_iter()
            .find(|why| *why as u8 == number)
            .unwrap_or(Unknown)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Unknown => "it says no, for a reason of a later release",
            Refusal::Stranger => "the token or the domain is another",
            Refusal::NoStream => "it has no such stream",
            Refusal::NoFlow => "the stream has no such flow there",
            Refusal::Taken => "another sender has the flow",
            Refusal::Transport => "it does not take this transport",
            Refusal::Version => "the releases are too far apart",
            Refusal::Full => "it has too many connections",
        })
    }
}

/// A receiver's no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refuse {
    /// Why.
    pub why: Refusal,
    /// In words: who has the flow, what there is instead.
    pub text: String,
}

impl Hello {
    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend([self.transport as u8, u8::from(self.checked)]);
        out.extend_from_slice(&self.frame.to_le_bytes());
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.ack_every.to_le_bytes());
        out.extend_from_slice(&self.transfer.to_le_bytes());
        out.extend_from_slice(&self.token.0);
        out.extend_from_slice(&self.incarnation.to_bytes());
        for text in [&self.domain, &self.source, &self.stream, &self.flow, &self.place] {
            put_text(&mut out, text);
        }
        if self.port > 0 {
            out.extend_from_slice(&self.port.to_le_bytes());
        }
        out
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Hello, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Hello {
            version: at.u16("version")?,
            transport: at.transport()?,
            checked: at.u8("options")? & 1 != 0,
            frame: at.u32("frame")?,
            session: at.u32("session")?,
            ack_every: at.u64("ack_every")?,
            transfer: at.u64("transfer")?,
            token: Token(at.array("token")?),
            incarnation: Incarnation::from_bytes(at.array("incarnation")?),
            domain: at.text("domain")?,
            source: at.text("source")?,
            stream: at.text("stream")?,
            flow: at.text("flow")?,
            place: at.text("place")?,
            // Not there where no datagrams are.
            port: at.u16("port").unwrap_or(0),
        })
    }
}

impl Welcome {
    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend([self.transport as u8, u8::from(self.checked)]);
        out.extend_from_slice(&self.frame.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.incarnation.to_bytes());
        put_text(&mut out, &self.source);
        put_text(&mut out, &self.place);
        if self.room > 0 {
            out.extend_from_slice(&self.room.to_le_bytes());
        }
        out
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Welcome, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Welcome {
            version: at.u16("version")?,
            transport: at.transport()?,
            checked: at.u8("options")? & 1 != 0,
            frame: at.u32("frame")?,
            sequence: at.u64("sequence")?,
            offset: at.u64("offset")?,
            incarnation: Incarnation::from_bytes(at.array("incarnation")?),
            source: at.text("source")?,
            place: at.text("place")?,
            // Not there where no datagrams are.
            room: at.u32("room").unwrap_or(0),
        })
    }
}

impl Refuse {
    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.why as u8];
        put_text(&mut out, &self.text);
        out
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Refuse, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Refuse { why: Refusal::from_number(at.u8("reason")?), text: at.text("text")? })
    }
}
