//! The key exchange before a protected connection: the sender's offer and the receiver's reply.

use super::Cursor;
use crate::frame::BadFrame;

/// This release's version of the key exchange.
pub const KEYS_VERSION: u16 = 1;

tampu_types::named_enum! {
    /// Protection of a connection, ordered by strength.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ProtectionLevel {
        /// Frames as they are.
        #[default]
        None = 0 => "none",
        /// Nobody on the network can change, repeat or add frames. They are sealed as for the next level.
        Authenticated = 1 => "authenticated",
        /// Nobody on the network can read them either.
        Encrypted = 2 => "encrypted",
    }
}

impl ProtectionLevel {
    /// Returns the level in the options of a Hello or Welcome. A number of a later release counts as the strongest level.
    pub(super) fn from_options(options: u8) -> ProtectionLevel {
        match options >> 1 & 3 {
            0 => ProtectionLevel::None,
            1 => ProtectionLevel::Authenticated,
            _ => ProtectionLevel::Encrypted,
        }
    }

    pub(super) fn options(self) -> u8 {
        (self as u8) << 1
    }
}

/// First message of a sender that demands protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOffer {
    /// Version of the exchange.
    pub version: u16,
    /// Random bytes, others for each connection.
    pub nonce: [u8; 32],
    /// Public X25519 key, made for this connection.
    pub public: [u8; 32],
}

/// Answer of a receiver to a [`KeyOffer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReply {
    /// Version of the exchange: the lower of both.
    pub version: u16,
    /// Random bytes, others for each connection.
    pub nonce: [u8; 32],
    /// Public X25519 key, made for this connection.
    pub public: [u8; 32],
    /// Proof that the receiver knows its token and has received this offer.
    pub proof: [u8; 32],
}

impl KeyOffer {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        [&self.version.to_le_bytes()[..], &self.nonce, &self.public].concat()
    }

    /// Decodes an offer.
    pub fn decode(bytes: &[u8]) -> Result<KeyOffer, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(KeyOffer { version: at.u16("version")?, nonce: at.array("nonce")?, public: at.array("public key")? })
    }
}

impl KeyReply {
    /// Length of the fields before the proof, in bytes.
    pub const UNPROVEN: usize = 66;

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        [&self.version.to_le_bytes()[..], &self.nonce, &self.public, &self.proof].concat()
    }

    /// Decodes a reply.
    pub fn decode(bytes: &[u8]) -> Result<KeyReply, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(KeyReply {
            version: at.u16("version")?,
            nonce: at.array("nonce")?,
            public: at.array("public key")?,
            proof: at.array("proof")?,
        })
    }
}
