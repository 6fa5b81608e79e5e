//! Protection of a connection: keys from the token, sealed records on the connection, sealed datagrams beside it.
//!
//! ```text
//! sender --KeyOffer: nonce, X25519 key--> receiver
//!        <-KeyReply: nonce, X25519 key, proof--
//!        ==records: Hello, Start, Data, ...==>      AES-256-GCM, numbered by position for each direction
//!        <==records: Welcome, Ack, ...==
//! ```
//! The keys follow from the receiver's token, an X25519 exchange of this connection, and every byte of the two messages
//! ([`handshake`]). So the token does not cross the network, and a changed message ends the connection. A token that
//! becomes known later opens no recorded connection.
//!
//! Decision: a record is a frame. The receiver opens it in place, and the payload needs no copy. Records are numbered by
//! their position, so a record that is missing, repeated or moved does not open. Rejected: TLS over the connection.
//! Its records of 16 KiB would split each frame and copy each payload once more, and datagrams would need a second
//! protocol. Rejected: kTLS, which not every kernel has, and which cannot serve datagrams. Rejected: a tag over readable
//! data for a flow that demands authentication alone. It takes twice the processor's time of encryption.

use ring::{aead, hkdf, hmac};

use crate::{
    frame::{BadFrame, HEADER_LEN},
    message::{GroupKey, Token},
};

pub use datagram::{DatagramOpener, DatagramSealer};
pub use record::{PREFIX, RecordOpener, RecordSealer};

#[path = "seal/datagram.rs"]
mod datagram;
#[path = "seal/handshake.rs"]
pub mod handshake;
#[path = "seal/record.rs"]
mod record;
#[path = "seal/replay.rs"]
mod replay;

/// Length of an authentication tag, in bytes.
pub const TAG: usize = 16;

/// Bytes that a seal adds to a datagram.
pub const DATAGRAM_SEAL: usize = 8 + TAG;

/// Number after which a key is used up. The connection ends and is opened again with other keys.
const NUMBERS: u64 = 1 << 40;

/// Errors of sealing and of the key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The message of the key exchange is malformed.
    #[error(transparent)]
    Message(#[from] BadFrame),
    /// The version of the key exchange is unknown.
    #[error("version {0} of the key exchange is not known here; update the older one of both ends")]
    Version(u16),
    /// The other end's proof is wrong.
    #[error("its answer does not prove that it knows the token, or was changed on its way")]
    Proof,
    /// The system has no random bytes, or the other end's public key is invalid.
    #[error("the key exchange failed: no random bytes, or an invalid public key")]
    Exchange,
    /// Too many records were sealed with one key.
    #[error("the keys of the connection are used up")]
    UsedUp,
}

/// Key and initial nonce of one direction.
#[derive(Clone)]
pub struct Half {
    key: [u8; 32],
    iv: [u8; 12],
}

/// The keys of a connection.
#[derive(Clone)]
pub struct LinkKeys {
    /// Records of the sender.
    pub sender: Half,
    /// Records of the receiver.
    pub receiver: Half,
    /// Datagrams of the sender to this receiver alone.
    pub datagrams: Half,
    proof: [u8; 32],
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Derives bytes for one purpose. The length is a constant far below HKDF's limit, so this does not fail in practice.
fn expand<const N: usize>(prk: &hkdf::Prk, purpose: &str) -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    let purpose = [b"tampu bulk 1 ", purpose.as_bytes()];
    prk.expand(&purpose, Length(N)).and_then(|okm| okm.fill(&mut bytes)).map_err(|_| SealError::Exchange)?;
    Ok(bytes)
}

impl Half {
    fn of(prk: &hkdf::Prk, name: &str) -> Result<Half, SealError> {
        Ok(Half { key: expand(prk, &format!("{name} key"))?, iv: expand(prk, &format!("{name} iv"))? })
    }

    /// Derives the key of a group's datagrams.
    pub fn of_group(secret: &GroupKey) -> Result<Half, SealError> {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"tampu bulk 1 group").extract(&secret.0);
        Half::of(&prk, "group")
    }

    fn cipher(&self) -> Result<Cipher, SealError> {
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, &self.key).map_err(|_| SealError::Exchange)?;
        Ok(Cipher { key: aead::LessSafeKey::new(key), iv: self.iv })
    }
}

impl LinkKeys {
    /// Derives the keys from the shared secret of the X25519 exchange, the token, and the hash of both messages.
    pub fn derive(shared: &[u8], token: &Token, transcript: &[u8; 32]) -> Result<LinkKeys, SealError> {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, transcript).extract(&[&token.0[..], shared].concat());
        let confirm: [u8; 32] = expand(&prk, "confirm")?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &confirm), transcript);
        let mut proof = [0; 32];
        proof.copy_from_slice(tag.as_ref());
        Ok(LinkKeys {
            sender: Half::of(&prk, "sender")?,
            receiver: Half::of(&prk, "receiver")?,
            datagrams: Half::of(&prk, "datagrams")?,
            proof,
        })
    }
}

/// A key with the rule for its nonces: the initial one, with the number added by exclusive or.
struct Cipher {
    key: aead::LessSafeKey,
    iv: [u8; 12],
}

impl Cipher {
    fn nonce(&self, number: u64) -> aead::Nonce {
        let mut nonce = self.iv;
        nonce[4..].iter_mut().zip(number.to_le_bytes()).for_each(|(byte, add)| *byte ^= add);
        aead::Nonce::assume_unique_for_key(nonce)
    }

    /// Seals `bytes[body..]` in place and appends the tag, which covers the bytes from `from` on.
    fn seal(&self, number: u64, bytes: &mut Vec<u8>, from: usize, body: usize) -> Result<(), SealError> {
        if number >= NUMBERS {
            return Err(SealError::UsedUp);
        }
        let (before, rest) = bytes.split_at_mut(body);
        let sealed = self.key.seal_in_place_separate_tag(self.nonce(number), aead::Aad::from(&before[from..]), rest);
        bytes.extend_from_slice(sealed.map_err(|_| SealError::UsedUp)?.as_ref());
        Ok(())
    }

    /// Opens `bytes[body..]`, whose end is the tag, in place. Returns whether it is what was sealed.
    fn open(&self, number: u64, bytes: &mut [u8], body: usize) -> bool {
        if number >= NUMBERS || bytes.len() < body + TAG {
            return false;
        }
        let nonce = self.nonce(number);
        let (before, rest) = bytes.split_at_mut(body);
        self.key.open_in_place(nonce, aead::Aad::from(&*before), rest).is_ok()
    }
}

/// Smallest length of a record behind its prefix, in bytes.
const LEAST: usize = HEADER_LEN + TAG;
