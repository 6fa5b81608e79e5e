//! The site's signing key: files beside the store, and never in the database.
//!
//! ```text
//! signing/key          the secret of the Ed25519 key, 64 hexadecimal digits, mode 0600
//! signing/known-keys   public keys that are valid as well: of other hubs, or from before a restored backup
//! signing/heads        the last record of each book's chain that this site has seen
//! ```
//! Whoever can write the database alone can neither make a signature nor shorten a chain without a trace.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey},
};
use serde::{Deserialize, Serialize};

use super::record::Signature;
use crate::attachment::hex;

/// The name of the directory.
pub const DIRECTORY: &str = "signing";
/// Bytes of a key, secret or public.
const KEY: usize = 32;
/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// Errors of the signing key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file of the key cannot be used.
    #[error("the signing key {}: {why}", .path.display())]
    File {
        path: PathBuf,
        /// The reason, in words.
        why: String,
    },
    /// The store has no directory for a key.
    #[error(
        "this host has no signing key, because the logbooks are in a database: sign through a hub, which keeps the key in '[book] dir'"
    )]
    NoDirectory,
    /// The system gives no random bytes.
    #[error("the signing key: the system gives no random bytes")]
    NoRandom,
    /// A text that is no public key.
    #[error("invalid public key '{}'; expected 64 hexadecimal digits", .0.escape_debug())]
    NoKey(String),
}

/// The last record of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the record.
    pub number: u64,
    /// The hash of the record.
    pub hash: String,
}

/// The signing key of a store, made when it is first needed.
#[derive(Debug, Default)]
pub struct SigningKeys {
    dir: OnceLock<PathBuf>,
    pair: Mutex<Option<Arc<Ed25519KeyPair>>>,
    /// Serializes changes of the file of heads.
    heads: Mutex<()>,
}

fn at(path: &Path) -> impl Fn(io::Error) -> KeyError {
    let path = path.to_owned();
    move |error| KeyError::File { path: path.clone(), why: error.to_string() }
}

/// Reads bytes of a key from hexadecimal digits.
pub fn key_bytes(text: &str) -> Result<Vec<u8>, KeyError> {
    unhex(text).filter(|bytes| bytes.len() == KEY).ok_or_else(|| KeyError::NoKey(text.to_owned()))
}

/// Reads bytes from hexadecimal digits.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Checks the Ed25519 signature of a record with the key that the record names.
pub fn is_signed(record: &Signature) -> bool {
    let (Ok(key), Some(signature)) = (key_bytes(&record.key), unhex(&record.signature)) else { return false };
    UnparsedPublicKey::new(&ED25519, key).verify(&record.statement(), &signature).is_ok()
}

/// Reads a small file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, KeyError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(path)(error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).map_err(at(path))?;
    Ok(Some(text))
}

/// Writes a private file as a whole, durably, in place of another if `replace` is true. Returns false if there is one.
fn write(path: &Path, text: &str, replace: bool) -> Result<bool, KeyError> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(at(&new))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at(&new))?;
    let done = if replace { fs::rename(&new, path) } else { fs::hard_link(&new, path) };
    if !replace {
        let _ = fs::remove_file(&new);
    }
    match done {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        done => done.map_err(at(path))?,
    }
    if let Some(dir) = path.parent() {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(at(dir))?;
    }
    Ok(true)
}

impl SigningKeys {
    /// The keys in the directory of a store.
    pub fn beside(store: &Path) -> SigningKeys {
        let keys = SigningKeys::default();
        keys.keep_beside(store);
        keys
    }

    /// Sets the directory of the store, if none is set.
    pub fn keep_beside(&self, store: &Path) {
        self.dir.get_or_init(|| store.join(DIRECTORY));
    }

    fn file(&self, name: &str) -> Result<PathBuf, KeyError> {
        Ok(self.dir.get().ok_or(KeyError::NoDirectory)?.join(name))
    }

    /// Returns the key, which is made if there is none.
    fn pair(&self) -> Result<Arc<Ed25519KeyPair>, KeyError> {
        let mut kept = self.pair.lock();
        if let Some(pair) = &*kept {
            return Ok(pair.clone());
        }
        let path = self.file("key")?;
        if let Some(dir) = path.parent()
            && let Err(error) = DirBuilder::new().mode(0o700).create(dir)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(at(dir)(error));
        }
        if !path.exists() {
            let mut seed = [0; KEY];
            SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::NoRandom)?;
            // If another process was quicker, its key is the key.
            write(&path, &format!("{}\n", hex(&seed)), false)?;
        }
        let pair = Arc::new(self.stored(&path)?.ok_or_else(|| at(&path)(io::Error::from(io::ErrorKind::NotFound)))?);
        *kept = Some(pair.clone());
        Ok(pair)
    }

    /// Reads the key of the file.
    fn stored(&self, path: &Path) -> Result<Option<Ed25519KeyPair>, KeyError> {
        let wrong = |why: &str| KeyError::File { path: path.to_owned(), why: why.to_owned() };
        let Some(text) = read(path)? else { return Ok(None) };
        if fs::metadata(path).map_err(at(path))?.mode() & 0o077 != 0 {
            return Err(wrong("other users of this host can read it; make it private again with 'chmod 600', or make a new key"));
        }
        let seed = key_bytes(text.trim()).map_err(|_| wrong("it does not have 64 hexadecimal digits"))?;
        Ed25519KeyPair::from_seed_unchecked(&seed).map(Some).map_err(|_| wrong("it is no Ed25519 key"))
    }

    /// Signs a record, which names the key then.
    pub fn sign(&self, record: &mut Signature) -> Result<(), KeyError> {
        let pair = self.pair()?;
        record.key = hex(pair.public_key().as_ref());
        record.signature = hex(pair.sign(&record.statement()).as_ref());
        Ok(())
    }

    /// Returns the public keys whose signatures are valid: the own one, if there is one, and the known ones.
    pub fn valid(&self) -> Result<Vec<String>, KeyError> {
        let mut keys = Vec::new();
        if self.dir.get().is_none() {
            return Ok(keys);
        }
        if let Some(pair) = self.stored(&self.file("key")?)? {
            keys.push(hex(pair.public_key().as_ref()));
        }
        for line in read(&self.file("known-keys")?)?.unwrap_or_default().lines() {
            let key = line.split('#').next().unwrap_or_default().trim();
            if !key.is_empty() {
                key_bytes(key)?;
                keys.push(key.to_lowercase());
            }
        }
        keys.dedup();
        Ok(keys)
    }

    /// Returns the last records that this site has seen, by the number of the chain.
    fn heads(&self) -> Result<BTreeMap<i64, Head>, KeyError> {
        if self.dir.get().is_none() {
            return Ok(BTreeMap::new());
        }
        let path = self.file("heads")?;
        let text = read(&path)?.unwrap_or_else(|| "{}".to_owned());
        serde_json::from_str(&text).map_err(|error| KeyError::File { path, why: format!("invalid JSON: {error}") })
    }

    /// Returns the last record of a chain that this site has seen.
    pub fn head(&self, chain: i64) -> Result<Option<Head>, KeyError> {
        Ok(self.heads()?.remove(&chain))
    }

    /// Notes the last record of a chain.
    pub fn note_head(&self, chain: i64, record: &Signature) -> Result<(), KeyError> {
        let _one = self.heads.lock();
        let mut heads = self.heads()?;
        let head = Head { number: record.number, hash: record.hash() };
        // Another process may have noted a later one.
        if heads.get(&chain).is_some_and(|known| known.number >= head.number) {
            return Ok(());
        }
        heads.insert(chain, head);
        let path = self.file("heads")?;
        let text = serde_json::to_string_pretty(&heads)
            .map_err(|error| KeyError::File { path: path.clone(), why: error.to_string() })?;
        write(&path, &(text + "\n"), true).map(drop)
    }

    /// Writes the public keys beside a copy of the store, so that its signatures can be verified. The secret stays here.
    pub fn copy_public(&self, to: &Path) -> Result<(), KeyError> {
        let keys = self.valid()?;
        let dir = to.join(DIRECTORY);
        if keys.is_empty() {
            return Ok(());
        }
        if let Err(error) = DirBuilder::new().mode(0o700).create(&dir)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(at(&dir)(error));
        }
        let text: String = keys.iter().map(|key| format!("{key}\n")).collect();
        write(&dir.join("known-keys"), &text, true).map(drop)
    }
}
