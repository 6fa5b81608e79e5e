//! Demands on the decoder of a multicast group's datagrams for any bytes: nothing opens but what was sealed, and what was decoded
//! leads back.

use crate::datagram::{Content, Key, PIECE, RANGES, Seal, decode, head};

/// The first byte is the kind, eight follow for the number.
pub fn datagrams(bytes: &[u8]) {
    let seal = Seal::new(&Key { epoch: 1, secret: [7; 32] }).expect("a key of constant length");
    // Nobody seals by chance.
    assert!(seal.open(&mut bytes.to_vec()).is_err());
    let _ = head(bytes);
    let Some((kind, rest)) = bytes.split_first() else { return };
    let Some((number, body)) = rest.split_first_chunk() else { return };
    let Ok(content) = decode(kind % 5, u64::from_le_bytes(*number), body) else { return };
    let mut again = match &content {
        Content::Piece(number, piece) => {
            assert!(u64::from(piece.index) <= *number && piece.bytes.len() + PIECE == body.len());
            assert!(piece.offset as usize + piece.bytes.len() <= piece.total as usize);
            seal.piece(*number, piece)
        }
        Content::Beacon { next, lowest } => seal.beacon(0, *next, *lowest, 0),
        Content::Report(member, report) => {
            assert!(report.missing.len() <= RANGES);
            seal.report(*member, 0, report)
        }
    };
    assert_eq!(seal.open(&mut again), Ok(content));
}
