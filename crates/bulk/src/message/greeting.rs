//! The handshake: the sender's identity, flow and transport, and the receiver's acceptance or refusal.

use tampu_types::Incarnation;

use super::{Cursor, ProtectionLevel, put_text};
use crate::frame::BadFrame;

/// Secret that admits a sender. Every process that can read the receiver's declaration on the bus knows it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// Returns true if two tokens are equal, after a time that does not depend on where they differ.
    pub fn is(&self, other: &Token) -> bool {
        let differences = self.0.iter().zip(other.0).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(differences) == 0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Secret of a multicast group. Its sender gives it to each admitted receiver, on the protected connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GroupKey(pub [u8; 32]);

impl std::fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GroupKey")
    }
}

/// The transport of data frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Transport {
    /// On the TCP connection itself.
    Tcp = 0,
    /// Through memory that both ends map.
    Shm = 1,
    /// As datagrams, separate for each receiver.
    Udp = 2,
    /// As datagrams, one for all receivers.
    Multicast = 3,
}

impl Transport {
    /// Returns its name.
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

/// First message of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Version of the handshake.
    pub version: u16,
    /// The wanted transport.
    pub transport: Transport,
    /// True if payloads should have checksums.
    pub checked: bool,
    /// Longest payload that the sender wants to send, in bytes.
    pub frame: u32,
    /// Session in the flow's frames: a random number.
    pub session: u32,
    /// Number of bytes after which the sender wants an acknowledgement.
    pub ack_every: u64,
    /// Transfer that the sender wants to continue, 0 for none.
    pub transfer: u64,
    /// The token that admits it; zeros on a protected connection, whose keys prove that the sender knows it.
    pub token: Token,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
    /// The domain of the process.
    pub domain: String,
    /// The name of the source.
    pub source: String,
    /// The name of the stream.
    pub stream: String,
    /// The name of the flow.
    pub flow: String,
    /// Place of the shared memory, or the multicast group; empty for other transports.
    pub place: String,
    /// Port for this receiver's own datagrams; 0 if it has none.
    pub port: u16,
    /// The protection that the sender demands.
    pub protection: ProtectionLevel,
    /// Secret of the multicast group, if its datagrams are sealed.
    pub group_key: Option<GroupKey>,
}

/// Acceptance of a sender by a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// Version of the handshake: the lower of both.
    pub version: u16,
    /// The chosen transport: the wanted one, or TCP if that is impossible.
    pub transport: Transport,
    /// True if payloads have checksums, which one end requested.
    pub checked: bool,
    /// Longest payload that the receiver accepts, in bytes.
    pub frame: u32,
    /// Next frame that the receiver expects, 0 if it holds no transfer of this sender.
    pub sequence: u64,
    /// Number of received bytes of that transfer.
    pub offset: u64,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
    /// The name of the source.
    pub source: String,
    /// Address for datagrams, or the receiver's slot in the shared memory. For a transport other than the requested
    /// one, it is the reason.
    pub place: String,
    /// Datagram bytes that may be in flight to the receiver: the size of its system's buffer. 0 without datagrams.
    pub room: u32,
    /// The agreed protection: the stronger one of both demands.
    pub protection: ProtectionLevel,
}

/// The reason for a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Refusal {
    /// A number of a later release.
    Unknown = 0,
    /// The sender lacks the token, or belongs to another domain.
    Stranger = 1,
    /// The receiver does not have this stream.
    NoStream = 2,
    /// The receiver does not have this flow.
    NoFlow = 3,
    /// Another sender has the flow.
    Taken = 4,
    /// The receiver does not accept this transport.
    Transport = 5,
    /// The handshake has an unsupported version.
    Version = 6,
    /// Too many connections.
    Full = 7,
    /// The receiver demands protection, and the connection has none.
    Protection = 8,
    /// The access rules keep the sender's host from this stream.
    Denied = 9,
}

impl Refusal {
    fn from_number(number: u8) -> Refusal {
        use Refusal::*;
        [Stranger, NoStream, NoFlow, Taken, Transport, Version, Full, Protection, Denied]
            .into_iter()
            .find(|why| *why as u8 == number)
            .unwrap_or(Unknown)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Unknown => "it refuses for a reason of a later release",
            Refusal::Stranger => "the token or the domain is another",
            Refusal::NoStream => "it has no such stream",
            Refusal::NoFlow => "the stream has no such flow there",
            Refusal::Taken => "another sender has the flow",
            Refusal::Transport => "it does not take this transport",
            Refusal::Version => "the releases are too far apart",
            Refusal::Full => "it has too many connections",
            Refusal::Protection => "it demands a protected connection",
            Refusal::Denied => "the access rules there deny it",
        })
    }
}

/// Refusal of a sender by a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refuse {
    /// The reason for the rejection.
    pub why: Refusal,
    /// Text of the reason: the owner of the flow, or the available names.
    pub text: String,
}

impl Hello {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend([self.transport as u8, u8::from(self.checked) | self.protection.options()]);
        out.extend_from_slice(&self.frame.to_le_bytes());
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.ack_every.to_le_bytes());
        out.extend_from_slice(&self.transfer.to_le_bytes());
        out.extend_from_slice(&self.token.0);
        out.extend_from_slice(&self.incarnation.to_bytes());
        for text in [&self.domain, &self.source, &self.stream, &self.flow, &self.place] {
            put_text(&mut out, text);
        }
        if self.port > 0 || self.group_key.is_some() {
            out.extend_from_slice(&self.port.to_le_bytes());
        }
        if let Some(key) = &self.group_key {
            out.extend_from_slice(&key.0);
        }
        out
    }

    /// Decodes a Hello.
    pub fn decode(bytes: &[u8]) -> Result<Hello, BadFrame> {
        let mut at = Cursor { rest: bytes };
        let (version, transport, options) = (at.u16("version")?, at.transport()?, at.u8("options")?);
        Ok(Hello {
            version,
            transport,
            checked: options & 1 != 0,
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
            // The field is absent without datagrams.
            port: at.u16("port").unwrap_or(0),
            protection: ProtectionLevel::from_options(options),
            group_key: at.array("group key").ok().map(GroupKey),
        })
    }
}

impl Welcome {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend([self.transport as u8, u8::from(self.checked) | self.protection.options()]);
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

    /// Decodes a Welcome.
    pub fn decode(bytes: &[u8]) -> Result<Welcome, BadFrame> {
        let mut at = Cursor { rest: bytes };
        let (version, transport, options) = (at.u16("version")?, at.transport()?, at.u8("options")?);
        Ok(Welcome {
            version,
            transport,
            checked: options & 1 != 0,
            frame: at.u32("frame")?,
            sequence: at.u64("sequence")?,
            offset: at.u64("offset")?,
            incarnation: Incarnation::from_bytes(at.array("incarnation")?),
            source: at.text("source")?,
            place: at.text("place")?,
            // The field is absent without datagrams.
            room: at.u32("room").unwrap_or(0),
            protection: ProtectionLevel::from_options(options),
        })
    }
}

impl Refuse {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.why as u8];
        put_text(&mut out, &self.text);
        out
    }

    /// Decodes a Refuse.
    pub fn decode(bytes: &[u8]) -> Result<Refuse, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Refuse { why: Refusal::from_number(at.u8("reason")?), text: at.text("text")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_whole() {
        assert!(Token([7; 16]).is(&Token([7; 16])));
        for place in 0..16 {
            let mut other = [7; 16];
            other[place] = 8;
            assert!(!Token([7; 16]).is(&Token(other)), "{place}");
        }
    }
}
