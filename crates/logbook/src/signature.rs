//! Electronic signatures of entries: who signed which revision, when, and with which meaning.
//!
//! A signature is a record in a chain of its book. Its *statement* names the book, the entry, the revision, the digest
//! of the content, the person, the time and the meaning, and the hash of the record before. The site's Ed25519 key
//! signs the statement ([`keys`]). So a change of the database that goes around the logbook is found: [`verify`]
//! compares the chain with the entries. A purge of a signed content is a record of the same chain, because it changes
//! what a signature is about. Rejected: keys of single people, because a control room has no place to keep them.
//!
//! `spec/book-signature.md` is the contract of the signed bytes, with test vectors.

pub use content::{content_bytes, content_digest};
pub use record::{NO_RECORD, NewSignature, RecordKind, Signature, WITHHELD};

mod content;
mod fields;
pub mod keys;
mod meaning;
pub mod policy;
pub mod record;
pub mod verify;

pub use meaning::{InvalidMeaning, MAX_MEANING, check_meaning};
