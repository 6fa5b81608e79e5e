//! The key exchange of a connection, as values: bytes of the other end in, bytes for it out.
//!
//! Each end makes an X25519 key for the connection. Both hash the two messages, without the proof:
//! `SHA-256("tampu bulk 1" | SHA-256(offer) | SHA-256(first 66 bytes of the reply))`. This transcript is the salt of
//! HKDF-SHA256, whose input is the token and the shared secret. A changed message gives other keys on the two ends.
//!
//! The receiver proves in its reply that it has the keys. The sender proves it with its Hello, the first record.

use ring::{agreement, digest, rand};

use super::{LinkKeys, SealError};
use crate::message::{KEYS_VERSION, KeyOffer, KeyReply, Token};

/// Key exchange of a sender that waits for the reply.
pub struct Offered {
    private: agreement::EphemeralPrivateKey,
    /// Payload of the offer.
    pub payload: Vec<u8>,
}

/// A key of this connection: the private one, its public one, random bytes.
fn fresh() -> Result<(agreement::EphemeralPrivateKey, [u8; 32], [u8; 32]), ring::error::Unspecified> {
    let random = rand::SystemRandom::new();
    let mut nonce = [0; 32];
    rand::SecureRandom::fill(&random, &mut nonce)?;
    let private = agreement::EphemeralPrivateKey::generate(&agreement::X25519, &random)?;
    let mut public = [0; 32];
    public.copy_from_slice(private.compute_public_key()?.as_ref());
    Ok((private, public, nonce))
}

/// Hashes both messages of the exchange. Of the reply, the bytes before the proof count.
pub fn transcript(offer: &[u8], reply: &[u8]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(b"tampu bulk 1");
    hash.update(digest::digest(&digest::SHA256, offer).as_ref());
    hash.update(digest::digest(&digest::SHA256, &reply[..reply.len().min(KeyReply::UNPROVEN)]).as_ref());
    let mut all = [0; 32];
    all.copy_from_slice(hash.finish().as_ref());
    all
}

fn agree(
    private: agreement::EphemeralPrivateKey,
    public: &[u8; 32],
    token: &Token,
    transcript: &[u8; 32],
) -> Result<LinkKeys, SealError> {
    let public = agreement::UnparsedPublicKey::new(&agreement::X25519, public);
    agreement::agree_ephemeral(private, &public, |shared| LinkKeys::derive(shared, token, transcript))
        .map_err(|_| SealError::Exchange)?
}

/// Begins the exchange of a sender.
pub fn offer() -> Result<Offered, SealError> {
    let (private, public, nonce) = fresh().map_err(|_| SealError::Exchange)?;
    Ok(Offered { private, payload: KeyOffer { version: KEYS_VERSION, nonce, public }.encode() })
}

/// Answers an offer. Returns the keys and the payload of the reply.
pub fn reply(token: &Token, offer: &[u8]) -> Result<(LinkKeys, Vec<u8>), SealError> {
    let offered = KeyOffer::decode(offer)?;
    if offered.version == 0 {
        return Err(SealError::Version(offered.version));
    }
    let (private, public, nonce) = fresh().map_err(|_| SealError::Exchange)?;
    let mut reply = KeyReply { version: offered.version.min(KEYS_VERSION), nonce, public, proof: [0; 32] };
    let keys = agree(private, &offered.public, token, &transcript(offer, &reply.encode()))?;
    reply.proof = keys.proof;
    Ok((keys, reply.encode()))
}

impl Offered {
    /// Checks the reply, and returns the keys.
    pub fn accept(self, token: &Token, reply: &[u8]) -> Result<LinkKeys, SealError> {
        let replied = KeyReply::decode(reply)?;
        if replied.version != KEYS_VERSION {
            return Err(SealError::Version(replied.version));
        }
        let keys = agree(self.private, &replied.public, token, &transcript(&self.payload, reply))?;
        // A comparison whose time does not depend on the bytes: the proof is a secret of the token.
        let differences = keys.proof.iter().zip(&replied.proof).fold(0, |all, (one, other)| all | (one ^ other));
        if std::hint::black_box(differences) != 0 {
            return Err(SealError::Proof);
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token([7; 16]);

    #[test]
    fn both_ends_get_the_same_keys_and_others_at_each_connection() {
        let mut seen = Vec::new();
        for _ in 0..2 {
            let offered = offer().unwrap();
            let (there, replied) = reply(&TOKEN, &offered.payload).unwrap();
            let here = offered.accept(&TOKEN, &replied).unwrap();
            assert_eq!((here.sender.key, here.receiver.key), (there.sender.key, there.receiver.key));
            assert_eq!((here.sender.iv, here.datagrams.key), (there.sender.iv, there.datagrams.key));
            assert!(here.sender.key != here.receiver.key && here.sender.key != here.datagrams.key);
            assert!(![&replied[..], &here.sender.key].concat().windows(16).any(|bytes| bytes == TOKEN.0));
            seen.push(here.sender.key);
        }
        assert_ne!(seen[0], seen[1]);
    }

    #[test]
    fn another_token_or_a_changed_bit_is_found_at_once() {
        let offered = offer().unwrap();
        let (_, replied) = reply(&Token([8; 16]), &offered.payload).unwrap();
        assert_eq!(offered.accept(&TOKEN, &replied).err(), Some(SealError::Proof));
        for bit in 0..98 * 8 {
            let offered = offer().unwrap();
            let (_, mut replied) = reply(&TOKEN, &offered.payload).unwrap();
            replied[bit / 8] ^= 1 << (bit % 8);
            // The highest bit of an X25519 key does not count for the exchange; it counts for the transcript.
            assert!(offered.accept(&TOKEN, &replied).is_err(), "bit {bit} of the reply");
        }
        for bit in 0..66 * 8 {
            let offered = offer().unwrap();
            let mut changed = offered.payload.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            // An unknown version is answered with the own one, and the transcript shows the change.
            if let Ok((_, replied)) = reply(&TOKEN, &changed) {
                assert!(offered.accept(&TOKEN, &replied).is_err(), "bit {bit} of the offer");
            }
        }
    }

    #[test]
    fn a_public_key_without_a_secret_is_refused() {
        let zero = KeyOffer { version: 1, nonce: [1; 32], public: [0; 32] }.encode();
        assert_eq!(reply(&TOKEN, &zero).err(), Some(SealError::Exchange));
        assert_eq!(reply(&TOKEN, &zero[..65]).err(), Some(SealError::Message(crate::frame::BadFrame::Short("public key"))));
    }
}
