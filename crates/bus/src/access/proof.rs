//! The proof that a question comes from a process of this host's user.
//!
//! On a bus that the network reaches, the engine does not report the sender of a question. The node writes a secret into
//! the run-time directory, which only the same user can enter. A process there ends its questions with a proof. Members
//! elsewhere cannot make one, so they keep the rights of a holder of the key.
//!
//! ```text
//! question  octets | nonce u8[16] | time i64 | mac u8[32] | "\0TAMPU.1"
//! mac       HMAC-SHA-256(secret, "tampu local" 0 service 0 nonce time octets)
//! ```
//! Numbers are little endian; the time is in ns since 1970. A proof is valid once for each answering process, within a
//! minute. No question of a service ends with these last eight octets, so a question without a proof stays as it is.

use std::{
    collections::{HashSet, VecDeque},
    fmt, fs,
    path::PathBuf,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::{BufMut, Bytes, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;

/// End of a question with a proof.
const END: &[u8; 8] = b"\0TAMPU.1";
const NONCE: usize = 16;
const MAC: usize = 32;
/// Length of a proof in bytes.
const LENGTH: usize = NONCE + 8 + MAC + END.len();
/// Length of the secret in bytes.
pub(crate) const SECRET_LENGTH: usize = 32;
/// Age in ns at which a proof is too old.
const VALID: u64 = 60_000_000_000;
/// Proofs that are remembered, so that none is used twice. With more in a minute, further ones are refused.
const REMEMBERED: usize = 65_536;

/// A question, and the proof that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsealedQuestion {
    /// The question's octets.
    pub content: Bytes,
    proof: Option<Proof>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Proof {
    nonce: [u8; NONCE],
    time: i64,
    mac: [u8; MAC],
}

impl UnsealedQuestion {
    /// Splits a question as received. The proof is not checked.
    pub fn read(question: &Bytes) -> UnsealedQuestion {
        let without = || UnsealedQuestion { content: question.clone(), proof: None };
        let Some(length) = question.len().checked_sub(LENGTH) else { return without() };
        let Some((nonce, rest)) = question[length..].split_first_chunk::<NONCE>() else { return without() };
        let Some((time, rest)) = rest.split_first_chunk::<8>() else { return without() };
        let Some((mac, end)) = rest.split_first_chunk::<MAC>() else { return without() };
        if end != END {
            return without();
        }
        let proof = Proof { nonce: *nonce, time: i64::from_le_bytes(*time), mac: *mac };
        UnsealedQuestion { content: question.slice(..length), proof: Some(proof) }
    }
}

/// Makes and checks proofs with the secret in the run-time directory.
#[derive(Clone)]
pub struct LocalProof {
    secret: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

/// Nonces of the last minute.
#[derive(Default)]
struct Seen {
    order: VecDeque<(i64, [u8; NONCE])>,
    all: HashSet<[u8; NONCE]>,
}

impl Seen {
    /// Remembers a proof. Returns false if it was used before, or if there is no room for it.
    fn put(&mut self, proof: &Proof, now: i64) -> bool {
        while self.order.front().is_some_and(|(at, _)| now.abs_diff(*at) > 2 * VALID) {
            if let Some((_, nonce)) = self.order.pop_front() {
                self.all.remove(&nonce);
            }
        }
        if self.order.len() >= REMEMBERED || !self.all.insert(proof.nonce) {
            return false;
        }
        self.order.push_back((now, proof.nonce));
        true
    }
}

impl LocalProof {
    /// Uses the secret in this file, which a node on the network writes.
    pub fn with_secret(secret: PathBuf) -> LocalProof {
        LocalProof { secret, seen: Arc::default() }
    }

    /// Adds a proof to a question. Without a secret the question stays as it is: nobody else is on the bus.
    pub fn seal(&self, service: &str, question: Bytes) -> Bytes {
        let Some(secret) = self.secret() else { return question };
        let mut nonce = [0; NONCE];
        if !matches!(rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty()), Ok(NONCE)) {
            return question;
        }
        let mut proof = Proof { nonce, time: now(), mac: [0; MAC] };
        let Some(mac) = mac(&secret, service, &proof, &question) else { return question };
        proof.mac.copy_from_slice(&mac.finalize().into_bytes());
        let mut sealed = BytesMut::with_capacity(question.len() + LENGTH);
        sealed.put_slice(&question);
        sealed.put_slice(&proof.nonce);
        sealed.put_i64_le(proof.time);
        sealed.put_slice(&proof.mac);
        sealed.put_slice(END);
        sealed.freeze()
    }

    /// Reports if the question has a valid proof that was not used before.
    pub fn verify(&self, service: &str, question: &UnsealedQuestion) -> bool {
        let Some(proof) = &question.proof else { return false };
        let now = now();
        let is_recent = now.abs_diff(proof.time) <= VALID;
        let is_ours = || {
            let secret = self.secret()?;
            mac(&secret, service, proof, &question.content)?.verify_slice(&proof.mac).ok()
        };
        is_recent && is_ours().is_some() && self.seen.lock().put(proof, now)
    }

    fn secret(&self) -> Option<Vec<u8>> {
        fs::read(&self.secret).ok().filter(|secret| secret.len() == SECRET_LENGTH)
    }
}

fn mac(secret: &[u8], service: &str, proof: &Proof, question: &[u8]) -> Option<Hmac<Sha256>> {
    // HMAC takes keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    for part in [b"tampu local\0", service.as_bytes(), b"\0", &proof.nonce, &proof.time.to_le_bytes(), question] {
        mac.update(part);
    }
    Some(mac)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl fmt::Debug for LocalProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalProof({})", self.secret.display())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn proofs(secret: u8) -> (tempfile::TempDir, LocalProof) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("user.key");
        fs::write(&path, [secret; SECRET_LENGTH]).unwrap();
        (dir, LocalProof::with_secret(path))
    }

    #[test]
    fn a_proof_holds_once_for_its_question_and_its_service() {
        let (_dir, ours) = proofs(7);
        let (_other, theirs) = proofs(8);
        let question = Bytes::from_static(b"{\"backup\":\"/backup\"}");
        let sealed = UnsealedQuestion::read(&ours.seal("log/archive", question.clone()));
        assert_eq!(sealed.content, question);
        assert!(!ours.verify("log/levels", &sealed), "another service");
        assert!(!theirs.verify("log/archive", &sealed), "another host");
        assert!(ours.verify("log/archive", &sealed));
        assert!(!ours.verify("log/archive", &sealed), "a repeated one");

        let changed = ours.seal("log/archive", question.clone());
        let mut changed = changed.to_vec();
        changed[2] ^= 1;
        assert!(!ours.verify("log/archive", &UnsealedQuestion::read(&changed.into())), "another question");
        assert!(!ours.verify("log/archive", &UnsealedQuestion::read(&question)), "none");

        let mut old = UnsealedQuestion::read(&ours.seal("log/archive", question.clone()));
        let proof = old.proof.as_mut().unwrap();
        proof.time -= 2 * VALID as i64;
        let secret = ours.secret().unwrap();
        proof.mac = mac(&secret, "log/archive", proof, &question).unwrap().finalize().into_bytes().into();
        assert!(!ours.verify("log/archive", &old), "an old one");
    }

    #[test]
    fn without_a_secret_nothing_is_added_and_nothing_proved() {
        let (dir, ours) = proofs(7);
        let sealed = ours.seal("log/query", Bytes::from_static(b"{}"));
        fs::remove_file(dir.path().join("user.key")).unwrap();
        assert_eq!(ours.seal("log/query", Bytes::from_static(b"{}")), Bytes::from_static(b"{}"));
        assert!(!ours.verify("log/query", &UnsealedQuestion::read(&sealed)));
        // An empty file is no secret of length 0.
        fs::write(dir.path().join("user.key"), "").unwrap();
        assert!(!ours.verify("log/query", &UnsealedQuestion::read(&sealed)));
    }

    proptest! {
        #[test]
        fn any_octets_can_be_read_and_prove_nothing(mut octets: Vec<u8>, with_end: bool) {
            let (_dir, ours) = proofs(7);
            if with_end {
                octets.extend_from_slice(END);
            }
            let read = UnsealedQuestion::read(&octets.clone().into());
            prop_assert!(octets.starts_with(&read.content));
            prop_assert!(!ours.verify("log/query", &read));
        }

        #[test]
        fn a_sealed_question_is_read_as_it_was(octets: Vec<u8>, service in "[a-z/]{1,20}") {
            let (_dir, ours) = proofs(7);
            let read = UnsealedQuestion::read(&ours.seal(&service, octets.clone().into()));
            prop_assert_eq!(&read.content[..], &octets[..]);
            prop_assert!(ours.verify(&service, &read));
        }
    }
}
