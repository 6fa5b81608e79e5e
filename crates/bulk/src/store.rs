//! The directory of received files, which have temporary names until they are complete.
//!
//! Every step from the directory down is opened by its descriptor and follows no symbolic link. So neither a name nor a
//! planted entry in the directory leads out of it. The temporary name contains the identity of the file (name, size,
//! time of writing). So only the next attempt of the same file finds the rest of an earlier attempt.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, flock, mkdirat, openat, renameat, renameat_with, statat},
    io::Errno,
};
use sha2::{Digest, Sha256};

use crate::{
    file::{FileLabel, FileName},
    handler::{End, Start},
    name::Name,
};

/// Bytes of a file's own name that its temporary name repeats, for people.
const NAME_KEPT: usize = 160;
/// Largest number tried in the name of a transfer without a name.
const NUMBERS: u32 = 10_000;

/// Rights of senders in the directory. By default nothing that is there changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowed {
    /// A file replaces the one that has its name.
    pub replace: bool,
    /// Names may begin with a dot: settings of shells and programs do.
    pub dotfiles: bool,
    /// Files are made durable before they get their name.
    pub sync: bool,
}

/// A directory for received files.
#[derive(Debug)]
pub struct Store {
    root: OwnedFd,
    path: PathBuf,
    allowed: Allowed,
}

/// Begin of a transfer at a store.
#[derive(Debug)]
pub struct Taken {
    /// The file, or the reason why there is none.
    pub incoming: io::Result<Incoming>,
    /// Name that the sender gave, or what stands for it.
    pub name: String,
    /// Text that the sender gave.
    pub parameter: String,
    /// True if it is a file with a name, which a later attempt can continue.
    pub is_named: bool,
}

/// Returns the reason for which a transfer is not complete; `None` if it is.
pub fn why_incomplete(end: &End) -> Option<String> {
    match end {
        End { complete: true, .. } => None,
        End { lost_bytes: 1.., .. } => Some(format!("{} bytes are missing", end.lost_bytes)),
        End { stopped: true, .. } => Some("the sender stopped it, and it is not complete".to_owned()),
        _ => Some("the sender aborted it, or is gone".to_owned()),
    }
}

/// Effect of an existing file of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    /// The file is refused.
    Refuse,
    /// The file replaces it.
    Replace,
    /// The file gets a number behind its name.
    Number,
}

/// A file that is being received.
#[derive(Debug)]
pub struct Incoming {
    directory: OwnedFd,
    own: String,
    part: String,
    /// `None`: it is here already, complete.
    file: Option<File>,
    label: FileLabel,
    /// Effect of an existing file of this name.
    existing: Existing,
    sync: bool,
    /// Bytes present before the transfer.
    pub had: u64,
    /// Bytes from the beginning without a hole.
    intact: u64,
    /// Final path, for messages.
    pub path: PathBuf,
}

impl Store {
    /// Opens the directory; makes it where it is not there.
    pub fn open(path: &Path, allowed: Allowed) -> io::Result<Store> {
        std::fs::create_dir_all(path)?;
        let root = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Store { root, path: path.to_owned(), allowed })
    }

    /// The directory a file belongs in, made where it is not there.
    fn directory(&self, name: &FileName) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut here = openat(&self.root, ".", flags, Mode::empty())?;
        let mut path = self.path.clone();
        for part in name.split().0 {
            path.push(part);
            let told = |error: Errno| io::Error::new(io::Error::from(error).kind(), format!("{}: {error}", path.display()));
            match mkdirat(&here, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(told(error)),
            }
            here = openat(&here, part, flags, Mode::empty()).map_err(told)?;
        }
        Ok(here)
    }

    /// Begins the file of a transfer.
    pub fn take(&self, flow: &Name, start: &Start<'_>) -> Taken {
        match FileLabel::parse(start.parameter) {
            Ok(Some(label)) => {
                let (name, parameter) = (label.file.to_string(), label.parameter.clone());
                Taken { incoming: self.begin(label), name, parameter, is_named: true }
            }
            Ok(None) => {
                let parameter = String::from_utf8_lossy(start.parameter).into_owned();
                let otherwise = format!("{flow}-{}", start.transfer);
                let incoming = self.begin_nameless(start.parameter, &otherwise, &start.sender.incarnation.to_bytes());
                let name = if parameter.is_empty() { otherwise } else { parameter.clone() };
                Taken { incoming, name, parameter, is_named: false }
            }
            Err(bad) => {
                let name = String::from_utf8_lossy(start.parameter).into_owned();
                Taken { incoming: Err(io::Error::other(bad)), name, parameter: String::new(), is_named: false }
            }
        }
    }

    /// Begins a file. The rest of an earlier attempt is kept if the label allows it.
    pub fn begin(&self, label: FileLabel) -> io::Result<Incoming> {
        let own = label.file.split().1.to_owned();
        if !self.allowed.dotfiles && label.file.as_str().split('/').any(|part| part.starts_with('.')) {
            return Err(io::Error::other(
                "the name begins with a dot, and such files are taken only with --dotfiles (in a program, `dotfiles`)",
            ));
        }
        let part = temporary(&own, &[label.file.as_str().as_bytes(), &size_of(&label), &time_of(&label)]);
        let existing = if self.allowed.replace { Existing::Replace } else { Existing::Refuse };
        self.begin_as(label, own, part, existing)
    }

    /// Begins a transfer that is no file. Its name is made of its parameter, or is this one. A number is added if the
    /// name exists.
    pub fn begin_nameless(&self, parameter: &[u8], otherwise: &str, sender: &[u8]) -> io::Result<Incoming> {
        let own = speaking(parameter).unwrap_or_else(|| speaking(otherwise.as_bytes()).unwrap_or_else(|| "transfer".to_owned()));
        let part = temporary(&own, &[parameter, otherwise.as_bytes(), sender]);
        let file = FileName::new(own.clone()).map_err(io::Error::other)?;
        let label = FileLabel { file, size: None, modified: None, go_on: false, parameter: String::new() };
        self.begin_as(label, own, part, Existing::Number)
    }

    fn begin_as(&self, label: FileLabel, own: String, part: String, existing: Existing) -> io::Result<Incoming> {
        let directory = self.directory(&label.file)?;
        let path = self.path.join(label.file.as_str());
        let mut incoming =
            Incoming { directory, own, part, file: None, label, existing, sync: self.allowed.sync, had: 0, intact: 0, path };
        let size = incoming.label.size.filter(|_| incoming.label.go_on);
        if let Some(size) = size.filter(|_| incoming.is_here()) {
            (incoming.had, incoming.intact) = (size, size);
            return Ok(incoming);
        }
        if existing == Existing::Refuse && exists(&incoming.directory, &incoming.own) {
            return Err(there_already());
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&incoming.directory, &incoming.part, flags, Mode::from_raw_mode(0o666))?);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(io::Error::other("another receiver is writing the same file there")),
            Err(error) => return Err(error.into()),
        }
        let length = file.metadata()?.len();
        incoming.had = size.filter(|size| length <= *size).map_or(0, |_| length);
        incoming.intact = incoming.had;
        file.set_len(incoming.had)?;
        incoming.file = Some(file);
        Ok(incoming)
    }
}

impl Incoming {
    /// Returns true if the same file is here under its name.
    fn is_here(&self) -> bool {
        let Ok(stat) = statat(&self.directory, &self.own, AtFlags::SYMLINK_NOFOLLOW) else { return false };
        let modified = stat.st_mtime.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(stat.st_mtime_nsec as i64));
        Some(stat.st_size as u64) == self.label.size && self.label.modified.is_some() && modified == self.label.modified
    }

    /// Writes bytes at their offset. Bytes behind a gap are skipped: the file's length must equal the stored bytes,
    /// also for a process that resumes after this one was killed.
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| offset <= self.intact) else { return Ok(()) };
        file.write_all_at(bytes, offset)?;
        self.intact = self.intact.max(offset + bytes.len() as u64);
        Ok(())
    }

    /// Returns its name and size, as stated by its sender.
    pub fn label(&self) -> &FileLabel {
        &self.label
    }

    /// Completes the file of so many bytes: it gets its name.
    pub fn complete(mut self, size: u64) -> io::Result<PathBuf> {
        if let Some(said) = self.label.size.filter(|said| *said != size) {
            self.give_up();
            return Err(io::Error::other(format!("the sender announced {said} bytes and sent {size}")));
        }
        let Some(file) = self.file.take() else { return Ok(std::mem::take(&mut self.path)) };
        file.set_len(size)?;
        if let Some(modified) = self.label.modified.and_then(|ns| u64::try_from(ns).ok()) {
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(modified))?;
        }
        if self.sync {
            file.sync_all()?;
        }
        self.rename()?;
        if self.sync {
            rustix::fs::fsync(&self.directory)?;
        }
        Ok(std::mem::take(&mut self.path))
    }

    fn rename(&mut self) -> io::Result<()> {
        match self.existing {
            Existing::Replace => Ok(renameat(&self.directory, &self.part, &self.directory, &self.own)?),
            // Another file came to be there meanwhile.
            Existing::Refuse => {
                if self.rename_unless_there()? {
                    Ok(())
                } else {
                    Err(there_already())
                }
            }
            Existing::Number => self.rename_with_number(),
        }
    }

    /// Gives it its name, unless a file has the name already. Returns true if it has its name.
    fn rename_unless_there(&self) -> io::Result<bool> {
        match renameat_with(&self.directory, &self.part, &self.directory, &self.own, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            // This file system cannot check and rename in one call.
            Err(Errno::INVAL | Errno::NOSYS) if exists(&self.directory, &self.own) => Ok(false),
            Err(Errno::INVAL | Errno::NOSYS) => {
                renameat(&self.directory, &self.part, &self.directory, &self.own)?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn rename_with_number(&mut self) -> io::Result<()> {
        let own = self.own.clone();
        for number in 0..NUMBERS {
            if number > 0 {
                self.own = format!("{own}.{number}");
                self.path.set_file_name(&self.own);
            }
            if self.rename_unless_there()? {
                return Ok(());
            }
        }
        Err(io::Error::other(format!("{NUMBERS} files are called {own} there")))
    }

    /// Ends an incomplete file: the bytes before a gap are kept for another attempt. Returns its path; `None` without
    /// any bytes.
    pub fn give_up(&mut self) -> Option<PathBuf> {
        let file = self.file.take()?;
        // If truncating or removing fails, the next attempt continues at the file's end or begins anew.
        let _ = file.set_len(self.intact);
        if self.intact == 0 {
            let _ = rustix::fs::unlinkat(&self.directory, &self.part, AtFlags::empty());
            return None;
        }
        Some(self.path.with_file_name(&self.part))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn there_already() -> io::Error {
    io::Error::new(
        io::ErrorKind::AlreadyExists,
        "a file of this name is there already; give --replace (in a program, `replace`) to replace it",
    )
}

fn exists(directory: impl AsFd, name: &str) -> bool {
    statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn size_of(label: &FileLabel) -> [u8; 9] {
    let mut bytes = [0; 9];
    if let Some(size) = label.size {
        bytes[0] = 1;
        bytes[1..].copy_from_slice(&size.to_le_bytes());
    }
    bytes
}

fn time_of(label: &FileLabel) -> [u8; 8] {
    label.modified.unwrap_or(i64::MIN).to_le_bytes()
}

/// Returns a temporary name, `.name.0123456789abcdef.part`.
fn temporary(own: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut end = own.len().min(NAME_KEPT);
    while !own.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.{digits}.part", &own[..end])
}

/// Returns a readable name: letters and digits unchanged, all else as `_`. `None` if the result would be empty.
fn speaking(parameter: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(parameter).ok()?;
    let kept = |letter: char| letter.is_ascii_alphanumeric() || "-_.+=".contains(letter);
    let name: String = text.chars().take(NAME_KEPT).map(|letter| if kept(letter) { letter } else { '_' }).collect();
    let name = name.trim_start_matches('.').to_owned();
    name.chars().any(|letter| letter.is_ascii_alphanumeric()).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn label(name: &str, size: u64, go_on: bool) -> FileLabel {
        let file = FileName::new(name).unwrap();
        FileLabel { file, size: Some(size), modified: Some(1_700_000_000_123_456_789), go_on, parameter: String::new() }
    }

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("out"), Allowed::default()).unwrap();
        let mut incoming = store.begin(label("a/b/c", 6, false)).unwrap();
        incoming.write(b"abc", 0).unwrap();
        let into = place.path().join("out/a/b");
        assert!(names(&into).iter().all(|name| name.ends_with(".part")));
        incoming.write(b"def", 3).unwrap();
        assert_eq!(incoming.complete(6).unwrap(), into.join("c"));
        assert_eq!(names(&into), ["c"]);
        assert_eq!(fs::read(into.join("c")).unwrap(), b"abcdef");
        // A second copy of the same file is already here; a file of another length is not.
        assert_eq!(store.begin(label("a/b/c", 6, true)).unwrap().had, 6);
        assert!(store.begin(label("a/b/c", 7, true)).is_err_and(|error| error.to_string().contains("--replace")));
    }

    #[test]
    fn what_is_there_is_replaced_only_where_the_user_says_so() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path(), Allowed::default()).unwrap();
        fs::write(place.path().join("a"), "mine").unwrap();
        assert_eq!(store.begin(label("a", 1, false)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // Nor is a file that comes to be there while the other one is received.
        let mut incoming = store.begin(label("b", 1, false)).unwrap();
        incoming.write(b"x", 0).unwrap();
        fs::write(place.path().join("b"), "mine").unwrap();
        assert_eq!(incoming.complete(1).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        for name in ["a", "b"] {
            assert_eq!(fs::read(place.path().join(name)).unwrap(), b"mine");
        }
        let store = Store::open(place.path(), Allowed { replace: true, ..Allowed::default() }).unwrap();
        let mut incoming = store.begin(label("a", 1, false)).unwrap();
        incoming.write(b"x", 0).unwrap();
        incoming.complete(1).unwrap();
        assert_eq!(fs::read(place.path().join("a")).unwrap(), b"x");
    }

    #[test]
    fn names_with_a_leading_dot_are_taken_only_where_the_user_says_so() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path(), Allowed::default()).unwrap();
        for name in [".bashrc", ".ssh/authorized_keys", "a/.hidden"] {
            assert!(store.begin(label(name, 0, false)).is_err_and(|error| error.to_string().contains("--dotfiles")), "{name}");
        }
        assert_eq!(names(place.path()), Vec::<String>::new());
        let store = Store::open(place.path(), Allowed { dotfiles: true, ..Allowed::default() }).unwrap();
        store.begin(label(".bashrc", 0, false)).unwrap().complete(0).unwrap();
        assert_eq!(names(place.path()), [".bashrc"]);
    }

    #[test]
    fn what_came_before_a_hole_is_kept_and_found_again_by_the_same_file_only() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path(), Allowed::default()).unwrap();
        let mut incoming = store.begin(label("c", 9, false)).unwrap();
        incoming.write(b"abc", 0).unwrap();
        incoming.write(b"ghi", 6).unwrap();
        assert!(store.begin(label("c", 9, true)).is_err(), "two at once");
        assert!(incoming.give_up().is_some());
        assert_eq!(store.begin(label("c", 8, true)).unwrap().had, 0);
        let mut again = store.begin(label("c", 9, true)).unwrap();
        assert_eq!(again.had, 3);
        again.write(b"defghi", 3).unwrap();
        again.complete(9).unwrap();
        assert_eq!(fs::read(place.path().join("c")).unwrap(), b"abcdefghi");
        let mut new = store.begin(label("d", 9, false)).unwrap();
        new.write(b"x", 0).unwrap();
        drop(new);
        assert_eq!(store.begin(label("d", 9, false)).unwrap().had, 0, "from nothing, where nobody asked to go on");
        let short = store.begin(label("e", 9, false)).unwrap();
        assert!(short.complete(3).is_err_and(|error| error.to_string().contains("announced 9")));
        assert!(!place.path().join("e").exists());
    }

    #[test]
    fn links_in_the_directory_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (out, elsewhere) = (place.path().join("out"), place.path().join("elsewhere"));
        fs::create_dir_all(&elsewhere).unwrap();
        let store = Store::open(&out, Allowed { replace: true, ..Allowed::default() }).unwrap();
        symlink(&elsewhere, out.join("a")).unwrap();
        assert!(store.begin(label("a/b", 1, false)).is_err());
        symlink(elsewhere.join("target"), out.join("c")).unwrap();
        let mut incoming = store.begin(label("c", 1, false)).unwrap();
        incoming.write(b"x", 0).unwrap();
        incoming.complete(1).unwrap();
        assert_eq!(names(&elsewhere), Vec::<String>::new());
        assert!(out.join("c").symlink_metadata().unwrap().is_file(), "the link is replaced, not followed");
    }

    #[test]
    fn what_has_no_name_gets_a_speaking_one_and_replaces_nothing() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path(), Allowed { sync: true, ..Allowed::default() }).unwrap();
        for (parameter, name) in [
            ("uid://A002/X1", "uid___A002_X1"),
            ("uid://A002/X1", "uid___A002_X1.1"),
            ("../../x", "_.._x"),
            ("", "spectra-3"),
            ("\u{1}", "spectra-3.1"),
        ] {
            let incoming = store.begin_nameless(parameter.as_bytes(), "spectra-3", b"sender").unwrap();
            assert_eq!(incoming.complete(0).unwrap(), place.path().join(name), "{parameter:?}");
        }
        assert_eq!(store.begin_nameless(b"\xff", "", b"").unwrap().complete(0).unwrap(), place.path().join("transfer"));
    }

    #[test]
    fn the_longest_names_have_temporary_ones() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path(), Allowed::default()).unwrap();
        let long = "é".repeat(127);
        store.begin(label(&long, 0, false)).unwrap().complete(0).unwrap();
        assert_eq!(names(place.path()), [long]);
    }
}
