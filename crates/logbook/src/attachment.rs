//! Attachments: files of any size, kept once under the SHA-256 of their bytes.
//!
//! ```text
//! attachments/incoming/<n>                an unfinished upload
//! attachments/incoming/<sha256>.<n>       a mark: this blob is not yet, or no longer, certain to belong to an entry
//! attachments/<2 hex>/<62 hex>            a blob
//! ```
//! A blob gets its final name, together with a mark, just before the commit of the transaction that refers to it. The
//! mark is removed after the commit. A process that opens the directory while no other has it open cleans `incoming`.
//! It removes unfinished uploads, and marked blobs to which no entry refers. So a kill at any moment leaves neither a
//! file without an entry nor an entry without its file. No start reads the whole directory. Rejected: a reference count
//! in the database alone, because it does not cover the files.

use std::{
    fmt,
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::schema::TimeText;
use rustix::fs::{FlockOperation, flock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

pub mod reference;
pub mod stored_name;

/// Bytes read and written at a time.
const PIECE: usize = 64 * 1024;
/// Characters an attachment's name may have.
const MAX_NAME: usize = 255;

/// The SHA-256 of a blob's bytes, in 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Sha(String);

/// An error: the text is not a SHA-256 in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid SHA-256 '{0}'; expected 64 hexadecimal digits in lower case")]
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
    /// The 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A file of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// The file name, without a path.
    pub name: String,
    /// Its bytes; none where they could not be found when the entry was imported.
    pub sha: Option<Sha>,
    /// The size in bytes.
    pub size: u64,
    /// The time at which the file was added.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub added: Time,
    /// The name ELOG gave it: `YYMMDD_HHMMSS_name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elog: Option<String>,
}

/// A reader that can seek.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The bytes of an attachment, from any store. They are read a piece at a time, from any position.
pub struct Bytes {
    size: u64,
    from: Box<dyn ReadSeek>,
}

impl Bytes {
    /// Wraps a reader of `size` bytes.
    pub fn new(size: u64, from: impl ReadSeek + 'static) -> Bytes {
        Bytes { size, from: Box::new(from) }
    }

    /// The size in bytes.
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

/// An uploaded blob that no entry refers to yet. It is removed when it is dropped.
#[derive(Debug)]
pub struct Upload {
    spool: Spool,
    sha: Sha,
    size: u64,
    kept: bool,
}

/// The place of an upload's bytes until an entry refers to them.
#[derive(Debug)]
enum Spool {
    /// In a file of this name.
    Named(PathBuf),
    /// In a file without a name, which disappears with this process, however it ends.
    Unnamed(File),
}

/// Makes a file without a name. Where the file system cannot, it has one for a moment, which others could take first.
pub(crate) fn unnamed_file(dir: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if let Ok(file) = open(dir, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR) {
        return Ok(File::from(file));
    }
    let path = dir.join(format!("tampu-upload-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let file = File::options().create_new(true).read(true).write(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

impl Upload {
    /// An upload that another store has received. This process holds none of its bytes.
    pub fn elsewhere(sha: Sha, size: u64) -> Upload {
        Upload { spool: Spool::Named(PathBuf::new()), sha, size, kept: true }
    }

    /// Receives at most `limit` bytes, a piece at a time, into a file without a name in a directory for such files.
    pub(crate) fn unnamed(dir: &Path, from: &mut dyn Read, limit: u64) -> io::Result<Upload> {
        let mut file = unnamed_file(dir)?;
        let (sha, size) = take_in(from, &mut file, limit)?;
        Ok(Upload { spool: Spool::Unnamed(file), sha, size, kept: false })
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
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

    /// Gives the bytes a name that outlives this process, in a directory of the same file system. No bytes are copied.
    pub fn link_as(&self, path: &Path) -> io::Result<()> {
        use rustix::fs::{AtFlags, CWD, linkat};
        let linked = match &self.spool {
            // A store elsewhere has the file.
            Spool::Named(file) if file.as_os_str().is_empty() => return Err(io::ErrorKind::Unsupported.into()),
            Spool::Named(file) => {
                File::open(file)?.sync_all()?;
                fs::hard_link(file, path)
            }
            Spool::Unnamed(file) => {
                use std::os::fd::AsRawFd;
                file.sync_all()?;
                let name = format!("/proc/self/fd/{}", file.as_raw_fd());
                linkat(CWD, name, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
            }
        };
        linked.or_else(|why| if why.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(why) })
    }

    /// Returns the attachment that this upload becomes under a name.
    pub fn attachment(&self, name: &str, added: Time) -> Attachment {
        Attachment { name: plain_name(name), sha: Some(self.sha.clone()), size: self.size, added, elog: None }
    }

    /// The SHA-256 of the bytes.
    pub fn sha(&self) -> &Sha {
        &self.sha
    }

    /// Returns a second handle of the upload. It stays valid after this one became an entry's attachment or was
    /// dropped. No bytes are copied.
    pub fn again(&self) -> io::Result<Upload> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (sha, size) = (self.sha.clone(), self.size);
        let spool = match &self.spool {
            // A store elsewhere has the file.
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
            // A failed removal is repeated by the next process that opens the directory.
            let _ = fs::remove_file(file);
        }
    }
}

/// Copies at most `limit` bytes. Returns their SHA-256 and their number.
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

/// Returns the plain file name: the part after the last `/`, `\` and `:`, without control characters.
pub fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let kept: String = last.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    match kept.trim() {
        "" | "." | ".." => "attachment".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns the name that ELOG gave to a file, as [`Attachment::elog`] can keep it: without control characters, and not too long.
pub fn kept_elog_name(stored: &str) -> String {
    let mut kept = String::new();
    for c in stored.chars().filter(|c| !c.is_control()) {
        if kept.len() + c.len_utf8() > 4 * MAX_NAME {
            break;
        }
        kept.push(c);
    }
    kept
}

impl Attachment {
    /// Returns whether the names contain no path. Names from outside go through [`plain_name`] first.
    pub fn is_sound(&self) -> bool {
        let elog = |name: &String| name.len() <= 4 * MAX_NAME && !name.chars().any(char::is_control);
        plain_name(&self.name) == self.name && self.elog.as_ref().is_none_or(elog)
    }
}

/// The directory of attachments.
#[derive(Debug)]
pub struct Blobs {
    dir: PathBuf,
    /// A lock that is held shared while the directory is open, so that only a process alone in it cleans up.
    lock: File,
    next: AtomicU64,
    /// A prefix that differs from that of every other process that has, or had, the directory open, on any host.
    own: String,
}

impl Blobs {
    /// Opens the directory, and creates it if it is missing. `referred` returns whether an entry refers to a blob. It
    /// is called for marked blobs if no other process has the directory open.
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

    /// Locks the directory against processes that open it, without a change there; `None` if it was never open. Returns
    /// [`io::ErrorKind::WouldBlock`] if a process has it open.
    pub fn lock_existing(dir: &Path) -> io::Result<Option<File>> {
        let file = match File::open(dir.join("lock")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if tampu_workers::lock_after_predecessor(&file)? { Ok(Some(file)) } else { Err(io::ErrorKind::WouldBlock.into()) }
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

    /// The path of a blob's file.
    pub fn path(&self, sha: &Sha) -> PathBuf {
        let (first, rest) = sha.0.split_at(2);
        self.dir.join(first).join(rest)
    }

    /// Returns whether no other process has the directory open. If so, this stays true for the life of this value.
    pub(crate) fn is_alone(&self) -> bool {
        flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// The directory of all blobs.
    pub(crate) fn path_of_all(&self) -> &Path {
        &self.dir
    }

    /// Opens a blob for reading.
    pub fn read(&self, sha: &Sha) -> io::Result<File> {
        File::open(self.path(sha))
    }

    /// Receives at most `limit` bytes, a piece at a time.
    pub fn upload(&self, from: &mut dyn Read, limit: u64) -> io::Result<Upload> {
        let file = self.dir.join("incoming").join(self.fresh());
        let mut out = File::options().create_new(true).write(true).open(&file)?;
        // From here on the value owns the file and removes it.
        let mut upload = Upload { spool: Spool::Named(file), sha: Sha(String::new()), size: 0, kept: false };
        (upload.sha, upload.size) = take_in(from, &mut out, limit)?;
        Ok(upload)
    }

    /// Moves a blob to its final place, under a mark. Call it just before the commit of the transaction that refers to
    /// the blob.
    pub(crate) fn place(&self, upload: &mut Upload) -> io::Result<Mark> {
        let mark = self.dir.join("incoming").join(format!("{}.{}", upload.sha.0, self.fresh()));
        File::create_new(&mark)?;
        let target = self.path(&upload.sha);
        if !target.exists() {
            fs::create_dir_all(target.parent().unwrap_or(&self.dir))?;
            match &upload.spool {
                Spool::Named(file) => fs::rename(file, &target)?,
                Spool::Unnamed(_) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "the upload belongs to another store"));
                }
            }
            upload.kept = true;
        }
        Ok(Mark { file: mark, sha: upload.sha.clone(), placed: upload.kept })
    }

    /// Marks a blob that an open transaction leaves without an entry.
    pub(crate) fn mark(&self, sha: &Sha) -> io::Result<Mark> {
        let mark = self.dir.join("incoming").join(format!("{}.{}", sha.0, self.fresh()));
        File::create_new(&mark)?;
        Ok(Mark { file: mark, sha: sha.clone(), placed: false })
    }

    /// Makes placed blobs durable, all of a transaction at once. So the file system writes its journal once and not
    /// once for each blob.
    pub(crate) fn sync(&self, marks: &[Mark]) -> io::Result<()> {
        let paths: Vec<PathBuf> = marks.iter().filter(|mark| mark.placed).map(|mark| self.path(&mark.sha)).collect();
        paths.iter().try_for_each(|path| File::open(path)?.sync_data())?;
        let mut folders: Vec<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        folders.sort_unstable();
        folders.dedup();
        folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())?;
        if folders.is_empty() { Ok(()) } else { File::open(&self.dir)?.sync_all() }
    }

    /// Removes the mark after the commit.
    pub(crate) fn settle(&self, mark: Mark) {
        // The next process that opens the directory checks a mark that stays.
        let _ = fs::remove_file(mark.file);
    }

    /// Removes the blob after a rollback, unless another entry refers to it.
    pub(crate) fn take_back(&self, mark: Mark, referred: bool) {
        if mark.placed && !referred {
            let _ = fs::remove_file(self.path(&mark.sha));
        }
        let _ = fs::remove_file(mark.file);
    }

    /// Returns all blobs of the directory.
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

    /// Returns whether a blob's bytes match the SHA-256 that is its name.
    pub fn is_whole(&self, sha: &Sha) -> io::Result<bool> {
        let (mut file, mut hash, mut piece) = (self.read(sha)?, Sha256::new(), vec![0; PIECE]);
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(hex(&hash.finalize()) == sha.0),
                read => hash.update(&piece[..read]),
            }
        }
    }

    /// Returns whether an open transaction may be about to refer to the blob.
    pub(crate) fn is_marked(&self, sha: &Sha) -> io::Result<bool> {
        for file in fs::read_dir(self.dir.join("incoming"))? {
            if file?.file_name().to_string_lossy().starts_with(sha.as_str()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies a blob into another directory, unless that directory already has it.
    pub(crate) fn copy(&self, sha: &Sha, to: &Blobs) -> io::Result<()> {
        if to.path(sha).exists() { Ok(()) } else { to.keep(sha, &mut self.read(sha)?) }
    }

    /// Stores a blob whose digest is known, and checks the digest.
    pub(crate) fn keep(&self, sha: &Sha, from: &mut dyn Read) -> io::Result<()> {
        let mut upload = self.upload(from, u64::MAX)?;
        if upload.sha != *sha {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its bytes do not match its SHA-256"));
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

/// Returns a name that is unique to this process. The process id alone is not enough: other hosts count theirs from 1
/// too, and a number is reused.
fn own_name() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The keys are the system's random numbers.
    let random = RandomState::new().hash_one(since_1970.as_nanos());
    format!("{:x}-{:x}-{random:016x}", since_1970.as_millis(), std::process::id())
}

impl Mark {
    /// Lets [`Blobs::take_back`] remove a blob that existed before.
    pub(crate) fn of_unused(self) -> Mark {
        Mark { placed: true, ..self }
    }
}

/// A blob whose transaction is open.
#[derive(Debug)]
pub(crate) struct Mark {
    file: PathBuf,
    pub(crate) sha: Sha,
    /// True if this transaction placed the blob, false if it existed before.
    placed: bool,
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub fn hex(bytes: &[u8]) -> String {
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
        // Two users of the directory, in one process or two, never choose the same name.
        assert_ne!(blobs.fresh(), Blobs::open(dir.path(), |_| Ok(true)).unwrap().fresh());
        // The state after a kill: the mark of the lost blob, and a partial file.
        std::fs::write(dir.path().join("incoming/9-9"), "half").unwrap();
        let lost = b.sha.clone();
        // Another process has the directory open, so nothing is changed.
        drop(Blobs::open(dir.path(), |_| Ok(false)).unwrap());
        assert_eq!(blobs.list().unwrap().len(), 2);
        drop(blobs);
        let blobs = Blobs::open(dir.path(), |sha| Ok(*sha != lost)).unwrap();
        assert_eq!(blobs.list().unwrap(), [kept.sha().clone()]);
        assert!(blobs.is_whole(kept.sha()).unwrap());
        assert_eq!(std::fs::read_dir(dir.path().join("incoming")).unwrap().count(), 0);
    }
}
