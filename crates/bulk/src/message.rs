//! The payloads of control frames: the handshake, lost ranges, faults, missing frames. `spec/bulk.md` draws each.
//!
//! A *text* is a u16 length and that many bytes of UTF-8, an *incarnation* its 16 bytes (decision 0001). Bytes after
//! the last field belong to a later release and are ignored.

use crate::frame::BadFrame;
pub use greeting::{GroupKey, Hello, Refusal, Refuse, Token, Transport, Welcome};
pub use keys::{KEYS_VERSION, KeyOffer, KeyReply, ProtectionLevel};
pub use word::{Cause, Fault, FaultKind, Lost, Nack, Patience};

// The path is explicit because a fuzz target includes this file by its path too.
#[path = "message/greeting.rs"]
mod greeting;
#[path = "message/keys.rs"]
mod keys;
#[path = "message/word.rs"]
mod word;

/// This release's version of the handshake.
pub const VERSION: u16 = 1;

/// Longest control payload, in bytes. The limit of a parameter is that of data frames.
pub const CONTROL_LIMIT: u32 = 16 << 10;

/// Smallest frame limit of a receiver. Shorter frames would slow down all other receivers.
pub const LEAST_FRAME: u32 = 1 << 10;

/// Longest text of a control frame, in bytes. Longer texts are truncated on writing.
pub const TEXT_LIMIT: usize = 1 << 10;

/// Most ranges in one Nack.
pub const RANGES_LIMIT: usize = 256;

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], BadFrame> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(BadFrame::Short(field))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BadFrame> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(BadFrame::Short(field))?;
        self.rest = rest;
        Ok(*head)
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, BadFrame> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, BadFrame> {
        self.array(field).map(u16::from_le_bytes)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, BadFrame> {
        self.array(field).map(u32::from_le_bytes)
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, BadFrame> {
        self.array(field).map(u64::from_le_bytes)
    }

    fn text(&mut self, field: &'static str) -> Result<String, BadFrame> {
        let length = usize::from(self.u16(field)?);
        if length > TEXT_LIMIT {
            return Err(BadFrame::Senseless(field));
        }
        let text = std::str::from_utf8(self.bytes(length, field)?).map_err(|_| BadFrame::Senseless(field))?;
        Ok(text.to_owned())
    }

    fn transport(&mut self) -> Result<Transport, BadFrame> {
        Transport::from_number(self.u8("transport")?).ok_or(BadFrame::Senseless("transport"))
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut end = text.len().min(TEXT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&(end as u16).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tampu_types::Incarnation;

    use super::*;

    fn hello() -> Hello {
        Hello {
            version: VERSION,
            transport: Transport::Shm,
            checked: true,
            frame: 1 << 18,
            session: 5,
            ack_every: 1 << 20,
            transfer: 9,
            token: Token([7; 16]),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            domain: "alma".to_owned(),
            source: "CORR".to_owned(),
            stream: "correlator".to_owned(),
            flow: "spectra".to_owned(),
            place: "/proc/1/fd/3".to_owned(),
            port: 4711,
            protection: ProtectionLevel::Authenticated,
            group_key: Some(GroupKey([9; 32])),
        }
    }

    fn welcome() -> Welcome {
        Welcome {
            version: VERSION,
            transport: Transport::Tcp,
            checked: false,
            frame: 1 << 16,
            sequence: 6,
            offset: 7,
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            source: "archive".to_owned(),
            place: String::new(),
            room: 1 << 20,
            protection: ProtectionLevel::Encrypted,
        }
    }

    fn offer() -> KeyOffer {
        KeyOffer { version: KEYS_VERSION, nonce: [1; 32], public: [2; 32] }
    }

    fn reply() -> KeyReply {
        KeyReply { version: KEYS_VERSION, nonce: [1; 32], public: [2; 32], proof: [3; 32] }
    }

    #[test]
    fn messages_lead_back_and_every_cut_is_refused() {
        type Leads = fn(&[u8]) -> bool;
        let patience = Patience { wait: Duration::from_millis(2500), ack_wait: Duration::from_secs(5) };
        assert_eq!(Patience { wait: 2 * patience.wait, ack_wait: 2 * patience.ack_wait }.behind(), patience);
        let all: [(Vec<u8>, Leads); 9] = [
            (hello().encode(), |bytes| Hello::decode(bytes) == Ok(hello())),
            (welcome().encode(), |bytes| Welcome::decode(bytes) == Ok(welcome())),
            (Refuse { why: Refusal::Taken, text: "by CORR".to_owned() }.encode(), |bytes| {
                Refuse::decode(bytes) == Ok(Refuse { why: Refusal::Taken, text: "by CORR".to_owned() })
            }),
            (Lost { next_sequence: 4, next_offset: 5, cause: Cause::Slow }.encode(), |bytes| {
                Lost::decode(bytes) == Ok(Lost { next_sequence: 4, next_offset: 5, cause: Cause::Slow })
            }),
            (Fault { kind: FaultKind::GaveUp, count: 2, text: "disk full".to_owned() }.encode(), |bytes| {
                Fault::decode(bytes) == Ok(Fault { kind: FaultKind::GaveUp, count: 2, text: "disk full".to_owned() })
            }),
            (patience.encode(), |bytes| {
                Patience::decode(bytes).is_ok_and(|told| told.wait.as_millis() == 2500 && told.ack_wait.as_millis() == 5000)
            }),
            (offer().encode(), |bytes| KeyOffer::decode(bytes) == Ok(offer())),
            (reply().encode(), |bytes| KeyReply::decode(bytes) == Ok(reply())),
            (Nack { missing: vec![(1, 3), (5, 6)] }.encode(), |bytes| {
                Nack::decode(bytes) == Ok(Nack { missing: vec![(1, 3), (5, 6)] })
            }),
        ];
        for (bytes, leads_back) in all {
            assert!(leads_back(&bytes));
            for cut in 0..bytes.len() {
                assert!(!leads_back(&bytes[..cut]));
            }
            let mut longer = bytes.clone();
            longer.extend_from_slice(b"of a later release");
            assert!(leads_back(&longer));
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_senseless_ranges_refused() {
        let fault = Fault { kind: FaultKind::CallbackFailed, count: 1, text: "é".repeat(TEXT_LIMIT) };
        assert_eq!(Fault::decode(&fault.encode()).unwrap().text, "é".repeat(TEXT_LIMIT / 2));
        for missing in [vec![(3, 3)], vec![(3, 2)], vec![(1, 4), (3, 6)]] {
            assert!(Nack::decode(&Nack { missing }.encode()).is_err());
        }
        assert_eq!(Nack::decode(&u16::MAX.to_le_bytes()), Err(BadFrame::Senseless("count")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Hello::decode(&bytes);
            let _ = Welcome::decode(&bytes);
            let _ = Refuse::decode(&bytes);
            let _ = Lost::decode(&bytes);
            let _ = Fault::decode(&bytes);
            let _ = Nack::decode(&bytes);
            let _ = Patience::decode(&bytes);
            let _ = KeyOffer::decode(&bytes);
            let _ = KeyReply::decode(&bytes);
        }
    }
}
