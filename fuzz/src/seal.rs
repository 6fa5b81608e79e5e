//! Demands on the decoders of a protected connection for any bytes: nothing opens but what was sealed, a message of the
//! key exchange leads back, and no announced length is believed beyond the limit.

use crate::{
    frame::{HEADER_LEN, Header, Kind},
    message::{GroupKey, KeyOffer, KeyReply, Token},
    seal::{DatagramOpener, DatagramSealer, Half, PREFIX, RecordOpener, RecordSealer, TAG, handshake},
};

const LIMIT: u32 = 4096;

/// The first byte chooses the decoder.
pub fn sealed(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    match choice % 4 {
        0 => exchange(bytes),
        1 => records(bytes),
        2 => datagrams(bytes),
        _ => changed(bytes),
    }
}

fn exchange(bytes: &[u8]) {
    if let Ok(offer) = KeyOffer::decode(bytes) {
        assert_eq!(KeyOffer::decode(&offer.encode()), Ok(offer));
    }
    if let Ok(reply) = KeyReply::decode(bytes) {
        assert_eq!(KeyReply::decode(&reply.encode()), Ok(reply));
    }
    let token = Token([7; 16]);
    if let Ok((_, replied)) = handshake::reply(&token, bytes) {
        assert!(KeyReply::decode(&replied).is_ok());
    }
    if let Ok(offered) = handshake::offer() {
        // Nobody proves a token by chance.
        assert!(offered.accept(&token, bytes).is_err());
    }
}

fn half() -> Half {
    Half::of_group(&GroupKey([9; 32])).expect("a key of constant length")
}

fn records(mut bytes: &[u8]) {
    let mut opener = RecordOpener::new(&half()).expect("a key of constant length");
    while let Some(prefix) = bytes.first_chunk::<PREFIX>() {
        let Ok(length) = opener.length(prefix, LIMIT) else { return };
        assert!(length <= HEADER_LEN + LIMIT as usize + TAG);
        let Some((record, rest)) = bytes.split_at_checked(PREFIX + length) else { return };
        let mut record = record.to_vec();
        let Ok(header) = opener.open(&mut record, LIMIT) else { return };
        assert_eq!(header.length as usize + HEADER_LEN + TAG, length);
        bytes = rest;
    }
}

fn datagrams(bytes: &[u8]) {
    let mut opener = DatagramOpener::new(&half()).expect("a key of constant length");
    for datagram in bytes.chunks(97) {
        let opened = opener.open(&mut datagram.to_vec()).map(<[u8]>::to_vec);
        if opened.is_some() {
            assert_eq!(opener.open(&mut datagram.to_vec()), None, "a datagram opened twice");
        }
    }
}

/// Seals the bytes, changes one of the result, and opens it.
fn changed(bytes: &[u8]) {
    let Some((place, payload)) = bytes.split_first_chunk::<2>() else { return };
    let payload = &payload[..payload.len().min(LIMIT as usize)];
    let header = Header::of(Kind::Data).over(payload, false);
    let mut record = Vec::new();
    let sealer = RecordSealer::new(&half()).and_then(|mut sealer| sealer.seal(&header.encode(), payload, &mut record));
    assert_eq!(sealer, Ok(()));
    let opens = |record: &[u8]| {
        let mut opener = RecordOpener::new(&half()).expect("a key of constant length");
        let length = opener.length(record.first_chunk().expect("a prefix"), LIMIT);
        length.is_ok_and(|length| PREFIX + length == record.len()) && opener.open(&mut record.to_vec(), LIMIT) == Ok(header)
    };
    assert!(opens(&record));
    let at = usize::from(u16::from_le_bytes(*place)) % record.len();
    record[at] ^= 1 + (place[0] % 255);
    assert!(!opens(&record));
    let mut datagram = Vec::new();
    let sealer = DatagramSealer::new(&half()).and_then(|mut sealer| sealer.seal(&header.encode(), payload, &mut datagram));
    assert_eq!(sealer, Ok(()));
    let at = at % datagram.len();
    datagram[at] ^= 1;
    let mut opener = DatagramOpener::new(&half()).expect("a key of constant length");
    assert_eq!(opener.open(&mut datagram), None);
}
