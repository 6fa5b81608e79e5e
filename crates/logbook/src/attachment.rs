//! Attachments: files of any size, kept once under the SHA-256 of their bytes.
//!
//! ```text
//! attachments/incoming/<n>                what is still coming
//! attachments/incoming/<sha256>.<n>       a mark: this blob is not yet, or no longer, certain to belong to an entry
//! attachments/<2 hex>/<62 hex>            a blob
//! ```
//! A blob gets its final name, under a mark, just before the transaction that refers to it is committed, and the mark goes
//! after that. Whoever opens the directory alone looks at what lies in `incoming`: a marked blob that no entry refers to goes,
//! and so does what was still coming. So a kill at any moment leaves neither a file without an entry nor an entry without its file,
//! and no start reads the whole directory. A reference count in the database alone was rejected: it knows nothing of files.

use std::{
    fmt,
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

/// Bytes read and written at a time.
const PIECE: usize = 64 * 1024;
/// Characters an attachment's name may have.
const MAX_NAME: usize = 255;

/// The SHA-256 of a blob's bytes, in 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha(String);

/// Why a text is no SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no SHA-256: 64 hexadecimal digits, in lower case")]
pub struct BadSha(pub String);

impl TryFrom<String> for Sha {
    type Error = BadSha;

    fn try_from(text: String) -> Result<Sha, BadSha> {
        let good = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if good { Ok(Sha(text)) } else { Err(BadSha(text)) }
    }
}

impl From<Sha> for String {
    fn from(sha: Sha) -> String {
        sha.0
    }
}

impl Sha {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A file of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it is called; no path.
    pub name: String,
    /// Its bytes; none where they could not be found when the entry was imported.
    pub sha: Option<Sha>,
    /// How many bytes.
    pub size: u64,
    /// When it was added.
    pub added: Time,
    /// The name ELOG gave it: `YYMMDD_HHMMSS_name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elog: Option<String>,
}

/// What can be read from anywhere in it.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The bytes of an attachment, wherever they are kept; read a piece at a time, from anywhere.
pub struct Bytes {
    size: u64,
    from: Box<dyn ReadSeek>,
}

impl Bytes {
    /// So many bytes, read from there.
    pub fn new(size: u64, from: impl ReadSeek + 'static) -> Bytes {
        Bytes { size, from: Box::new(from) }
    }

    /// How many there are.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.from.read(into)
    }
}

impl Seek for Bytes {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.from.seek(to)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bytes").field("size", &self.size).finish_non_exhaustive()
    }
}

/// A blob that is not yet an entry's. It goes when it is dropped without having become one's.
#[derive(Debug)]
pub struct Upload {
    spool: Spool,
    sha: Sha,
    size: u64,
    kept: bool,
}

/// Where the bytes are meanwhile.
#[derive(Debug)]
enum Spool {
    /// In a file of this name.
    Named(PathBuf),
    /// In a file without a name, which goes with this process, however it ends.
    Unnamed(File),
}

impl Upload {
    /// One that a store elsewhere has taken in; nothing of it is here.
    pub fn elsewhere(sha: Sha, size: u64) -> Upload {
        Upload { spool: Spool::Named(PathBuf::new()), sha, size, kept: true }
    }

    /// Takes bytes in, a piece at a time, at most `limit` of them, into a file without a name in a directory for such.
    pub(crate) fn unnamed(dir: &Path, from: &mut dyn Read, limit: u64) -> io::Result<Upload> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = dir.join(format!("tampu-upload-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::options().create_new(true).read(true).write(true).open(&path)?;
        fs::remove_file(&path)?;
        let (sha, size) = take_in(from, &mut file, limit)?;
        Ok(Upload { spool: Spool::Unnamed(file), sha, size, kept: false })
    }

    /// How many bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes, from the first on.
    pub(crate) fn read(&self) -> io::Result<File> {
        match &self.spool {
            Spool::Named(path) => File::open(path),
            Spool::Unnamed(file) => {
                let mut again = file.try_clone()?;
                again.rewind()?;
                Ok(again)
            }
        }
    }

    /// The attachment it would be.
    pub fn attachment(&self, name: &str, added: Time) -> Attachment {
        Attachment { name: plain_name(name), sha: Some(self.sha.clone()), size: self.size, added, elog: None }
    }

    /// Its SHA-256.
    pub fn sha(&self) -> &Sha {
        &self.sha
    }

    /// The same once more, which stays when this one has become an entry's or is gone. No bytes are copied.
    pub fn again(&self) -> io::Result<Upload> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (sha, size) = (self.sha.clone(), self.size);
        let spool = match &self.spool {
            // A store elsewhere has it.
            Spool::Named(file) if file.as_os_str().is_empty() => return Ok(Upload::elsewhere(sha, size)),
            Spool::Named(file) => {
                // Another name of the same file, in the same directory.
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let name = name.split('.').next().unwrap_or_default();
                let again = file.with_file_name(format!("{name}.{}", NEXT.fetch_add(1, Ordering::Relaxed)));
                fs::hard_link(file, &again)?;
                Spool::Named(again)
            }
            Spool::Unnamed(file) => Spool::Unnamed(file.try_clone()?),
        };
        Ok(Upload { spool, sha, size, kept: false })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Spool::Named(file) = &self.spool
            && !self.kept
        {
            // What cannot be removed now is removed by whoever opens the directory next.
            let _ = fs::remove_file(file);
        }
    }
}

/// Copies bytes, at most so many; their SHA-256 and how many they are.
fn take_in(from: &mut dyn Read, to: &mut File, limit: u64) -> io::Result<(Sha, u64)> {
    let (mut hash, mut piece, mut size) = (Sha256::new(), vec![0; PIECE], 0);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok((Sha(hex(&hash.finalize())), size)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        size += read as u64;
        if size > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {limit} bytes")));
        }
        hash.update(&piece[..read]);
        to.write_all(&piece[..read])?;
    }
}

/// A name without anything that leads elsewhere: what is after the last `/`, `\` and `:`, without control characters.
pub fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let kept: String = last.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    match kept.trim() {
        "" | "." | ".." => "attachment".to_owned(),
        name => name.to_owned(),
    }
}

impl Attachment {
    /// Whether its names lead nowhere: what comes from outside is made plain first, by [`plain_name`].
    pub fn is_sound(&self) -> bool {
        let elog = |name: &String| name.len() <= 4 * MAX_NAME && !name.chars().any(char::is_control);
        plain_name(&self.name) == self.name && self.elog.as_ref().is_none_or(elog)
    }
}

/// The directory of attachments.
#[derive(Debug)]
pub struct Blobs {
    dir: PathBuf,
    /// Held shared while the directory is open, so that only who is alone cleans up.
    lock: File,
    next: AtomicU64,
    /// What tells this one's names from those of others who have the directory open, on this host or another, or had it before.
    own: String,
}

impl Blobs {
    /// Opens it, and makes it where it is missing. `referred` says whether an entry refers to a blob; it is asked about marked
    /// ones when nobody else has the directory open.
    pub fn open(dir: &Path, mut referred: impl FnMut(&Sha) -> io::Result<bool>) -> io::Result<Blobs> {
        let incoming = dir.join("incoming");
        fs::create_dir_all(&incoming)?;
        let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock"))?;
        let blobs = Blobs { dir: dir.to_owned(), lock, next: AtomicU64::new(0), own: own_name() };
        if flock(&blobs.lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            blobs.clean(&incoming, &mut referred)?;
        }
        flock(&blobs.lock, FlockOperation::LockShared)?;
        Ok(blobs)
    }

    fn clean(&self, incoming: &Path, referred: &mut dyn FnMut(&Sha) -> io::Result<bool>) -> io::Result<()> {
        for file in fs::read_dir(incoming)? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            if let Some((sha, _)) = name.split_once('.')
                && let Ok(sha) = Sha::try_from(sha.to_owned())
                && !referred(&sha)?
            {
                gone(fs::remove_file(self.path(&sha)))?;
            }
            gone(fs::remove_file(file.path()))?;
        }
        Ok(())
    }

    /// Where a blob lies.
    pub fn path(&self, sha: &Sha) -> PathBuf {
        let (first, rest) = sha.0.split_at(2);
        self.dir.join(first).join(rest)
    }

    /// Whether nobody else has the directory open now. If so it stays so until this value goes.
    pub(crate) fn is_alone(&self) -> bool {
        flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// The directory.
    pub(crate) fn path_of_all(&self) -> &Path {
        &self.dir
    }

    /// Opens a blob for reading.
    pub fn read(&self, sha: &Sha) -> io::Result<File> {
        File::open(self.path(sha))
    }

    /// Takes bytes in, a piece at a time, at most `limit` of them.
    pub fn upload(&self, from: &mut dyn Read, limit: u64) -> io::Result<Upload> {
        let file = self.dir.join("incoming").join(self.fresh());
        let mut out = File::options().create_new(true).write(true).open(&file)?;
        // From here on the file goes with the value, whatever happens.
        let mut upload = Upload { spool: Spool::Named(file), sha: Sha(String::new()), size: 0, kept: false };
        (upload.sha, upload.size) = take_in(from, &mut out, limit)?;
        Ok(upload)
    }

    /// Gives a blob its place, under a mark. To be called while the transaction that refers to it is about to be committed.
    pub(crate) fn place(&self, upload: &mut Upload) -> io::Result<Mark> {
        let mark = self.dir.join("incoming").join(format!("{}.{}", upload.sha.0, self.fresh()));
        File::create_new(&mark)?;
        let target = self.path(&upload.sha);
        if !target.exists() {
            fs::create_dir_all(target.parent().unwrap_or(&self.dir))?;
            match &upload.spool {
                Spool::Named(file) => fs::rename(file, &target)?,
                Spool::Unnamed(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the upload is another store's")),
            }
            upload.kept = true;
        }
        Ok(Mark { file: mark, sha: upload.sha.clone(), placed: upload.kept })
    }

    /// Makes blobs durable that were given their places. All of a transaction at once: the file system's journal is then written for the
    /// first of them and not for each.
    pub(crate) fn sync(&self, marks: &[Mark]) -> io::Result<()> {
        let paths: Vec<PathBuf> = marks.iter().filter(|mark| mark.placed).map(|mark| self.path(&mark.sha)).collect();
        paths.iter().try_for_each(|path| File::open(path)?.sync_data())?;
        let mut folders: Vec<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        folders.sort_unstable();
        folders.dedup();
        folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())?;
        if folders.is_empty() { Ok(()) } else { File::open(&self.dir)?.sync_all() }
    }

    /// The transaction is committed: the mark goes.
    pub(crate) fn settle(&self, mark: Mark) {
        // A mark that stays is looked at by whoever opens the directory next.
        let _ = fs::remove_file(mark.file);
    }

    /// The transaction was given up: the blob goes, unless another entry refers to it.
    pub(crate) fn take_back(&self, mark: Mark, referred: bool) {
        if mark.placed && !referred {
            let _ = fs::remove_file(self.path(&mark.sha));
        }
        let _ = fs::remove_file(mark.file);
    }

    /// All blobs that are there.
    pub fn list(&self) -> io::Result<Vec<Sha>> {
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.dir)? {
            let folder = folder?;
            let first = folder.file_name().to_string_lossy().into_owned();
            if first.len() != 2 || !folder.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let rest = file?.file_name();
                found.extend(Sha::try_from(format!("{first}{}", rest.to_string_lossy())));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Whether a blob's bytes are what its name says.
    pub fn is_whole(&self, sha: &Sha) -> io::Result<bool> {
        let (mut file, mut hash, mut piece) = (self.read(sha)?, Sha256::new(), vec![0; PIECE]);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(hex(&hash.finalize()) == sha.0),
                read => hash.update(&piece[..read]),
            }
        }
    }

    /// Whether a blob is one that a transaction may be about to refer to.
    pub(crate) fn is_marked(&self, sha: &Sha) -> io::Result<bool> {
        for file in fs::read_dir(self.dir.join("incoming"))? {
            if file?.file_name().to_string_lossy().starts_with(sha.as_str()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies a blob into another directory, unless it is there.
    pub(crate) fn copy(&self, sha: &Sha, to: &Blobs) -> io::Result<()> {
        if to.path(sha).exists() { Ok(()) } else { to.keep(sha, &mut self.read(sha)?) }
    }

    /// Takes a blob in that is known by its name.
    pub(crate) fn keep(&self, sha: &Sha, from: &mut dyn Read) -> io::Result<()> {
        let mut upload = self.upload(from, u64::MAX)?;
        if upload.sha != *sha {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its bytes are not what its name says"));
        }
        let mark = self.place(&mut upload)?;
        self.sync(std::slice::from_ref(&mark))?;
        self.settle(mark);
        Ok(())
    }

    fn fresh(&self) -> String {
        format!("{}-{}", self.own, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// The process is not enough: other hosts count theirs from 1 too, and a number is used again.
fn own_name() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The keys are of the system's random numbers.
    let random = RandomState::new().hash_one(since_1970.as_nanos());
    format!("{:x}-{:x}-{random:016x}", since_1970.as_millis(), std::process::id())
}

/// A blob whose transaction is not yet committed.
#[derive(Debug)]
pub(crate) struct Mark {
    file: PathBuf,
    pub(crate) sha: Sha,
    /// Whether the blob is new, and not one that was there.
    placed: bool,
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        for (name, plain) in [
            ("plot.png", "plot.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\a b.txt", "a b.txt"),
            ("..", "attachment"),
            ("a/..", "attachment"),
            ("", "attachment"),
            ("a\0b\n.txt", "ab.txt"),
            ("bericht_ä.txt", "bericht_ä.txt"),
        ] {
            assert_eq!(plain_name(name), plain, "{name:?}");
        }
        assert!(Sha::try_from("../../../etc/passwd".to_owned()).is_err());
    }

    #[test]
    fn what_belongs_to_no_entry_goes() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path(), |_| Ok(false)).unwrap();
        assert!(blobs.upload(&mut &b"too much"[..], 7).is_err());
        drop(blobs.upload(&mut &b"dropped"[..], 100).unwrap());
        let mut kept = blobs.upload(&mut &b"kept"[..], 100).unwrap();
        let mut lost = blobs.upload(&mut &b"lost"[..], 100).unwrap();
        let mut again = blobs.upload(&mut &b"kept"[..], 100).unwrap();
        let (a, b, c) = (blobs.place(&mut kept).unwrap(), blobs.place(&mut lost).unwrap(), blobs.place(&mut again).unwrap());
        blobs.settle(a);
        blobs.settle(c);
        drop(again);
        // Two who have it open, in one process or two, never take one name.
        assert_ne!(blobs.fresh(), Blobs::open(dir.path(), |_| Ok(true)).unwrap().fresh());
        // As a kill leaves it: the mark of the lost one, and something half written.
        std::fs::write(dir.path().join("incoming/9-9"), "half").unwrap();
        let lost = b.sha.clone();
        // Somebody else has it open: nothing is touched.
        drop(Blobs::open(dir.path(), |_| Ok(false)).unwrap());
        assert_eq!(blobs.list().unwrap().len(), 2);
        drop(blobs);
        let blobs = Blobs::open(dir.path(), |sha| Ok(*sha != lost)).unwrap();
        assert_eq!(blobs.list().unwrap(), [kept.sha().clone()]);
        assert!(blobs.is_whole(kept.sha()).unwrap());
        assert_eq!(std::fs::read_dir(dir.path().join("incoming")).unwrap().count(), 0);
    }
}
