//! Demands on a receiver of bulk data for any bytes: it believes nothing that was not agreed on, a transfer's parameter
//! comes before its data and its stop after all of it, and no byte is handed over twice.

use crate::{
    frame::{HEADER_LEN, Header, Kind},
    group::GroupPlace,
    message::{Fault, Hello, Lost, Nack, Patience, Refuse, Welcome},
    receiving::{Machine, Verdict},
};

const LIMIT: u32 = 4096;

/// A connection's bytes. A header whose checksum is wrong is given the right one, or nothing would be seen of what is
/// behind it.
pub fn bulk_frames(bytes: &[u8]) {
    let (mut machine, mut rest) = (Machine::new(), bytes);
    let (mut open, mut at) = (false, 0);
    while let Some((head, behind)) = rest.split_first_chunk::<HEADER_LEN>() {
        let mut head = *head;
        let check = crc32c::crc32c(&head[..44]).to_le_bytes();
        head[44..].copy_from_slice(&check);
        let Ok(header) = Header::decode(&head, LIMIT) else { return };
        assert!(header.length <= LIMIT);
        assert_eq!(Header::decode(&header.encode(), LIMIT), Ok(header));
        let Some((payload, behind)) = behind.split_at_checked(header.length as usize) else { return };
        rest = behind;
        control(header.kind, payload);
        let lost = if header.kind == Kind::Lost { Lost::decode(payload).ok() } else { None };
        let judged = machine.take(&header, payload.len(), lost);
        if let Some(lost) = judged.lost {
            assert!(open && lost.from >= at && lost.to.is_none_or(|to| to > lost.from));
            at = lost.to.unwrap_or(at);
        }
        if judged.breaks {
            assert!(open);
            open = false;
        }
        match judged.verdict {
            Verdict::Start => {
                assert!(!open);
                (open, at) = (true, 0);
            }
            Verdict::Data { skip } => {
                assert!(open && skip <= payload.len() && header.offset + skip as u64 >= at);
                at = header.offset + payload.len() as u64;
            }
            Verdict::Stop | Verdict::Reset => {
                assert!(open);
                open = false;
            }
            Verdict::Nothing => {}
        }
    }
}

/// Checks that a frame that was read can be written, and read again.
fn control(kind: Kind, payload: &[u8]) {
    match kind {
        Kind::Hello => {
            again(Hello::decode(payload), Hello::encode, Hello::decode);
            if let Some(place) = Hello::decode(payload).ok().and_then(|hello| hello.place.parse::<GroupPlace>().ok()) {
                assert!(place.group.ip().is_multicast());
                assert_eq!(place.to_string().parse(), Ok(place));
            }
        }
        Kind::Welcome => again(Welcome::decode(payload), Welcome::encode, Welcome::decode),
        Kind::Refuse => again(Refuse::decode(payload), Refuse::encode, Refuse::decode),
        Kind::Lost => again(Lost::decode(payload), Lost::encode, Lost::decode),
        Kind::Fault => again(Fault::decode(payload), Fault::encode, Fault::decode),
        Kind::Ping => again(Patience::decode(payload), Patience::encode, Patience::decode),
        Kind::Nack => again(Nack::decode(payload), Nack::encode, Nack::decode),
        _ => {}
    }
}

fn again<T: PartialEq + std::fmt::Debug, E: PartialEq + std::fmt::Debug>(
    read: Result<T, E>,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, E>,
) {
    if let Ok(message) = read {
        assert_eq!(decode(&encode(&message)).as_ref(), Ok(&message));
    }
}
