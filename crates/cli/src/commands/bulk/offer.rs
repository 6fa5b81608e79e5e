//! Items to send: files, all files of directories, standard input; each with its name at the receiver.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};
use tampu_bulk::file::FileName;

/// One thing to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// Standard input, which has no name.
    Stdin,
    /// A file of this host.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Name at the receiver.
        name: FileName,
        /// Its length at the time of the search, for the progress bar.
        size: u64,
        /// The directory of the arguments below which no symbolic link is followed; `None` if links are.
        root: Option<PathBuf>,
    },
}

/// Opens a file for reading. Between `root` and the file no part of the path may be a symbolic link, although it was
/// none when the directory was listed: another process can exchange it meanwhile.
pub fn open(path: &Path, root: Option<&Path>) -> io::Result<File> {
    let inside = root.and_then(|root| Some((root, path.strip_prefix(root).ok()?)));
    let Some((root, inside)) = inside else { return File::open(path) };
    let directory = rustix::fs::openat(CWD, root, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    // A pipe in the place of the file would otherwise wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match openat2(&directory, inside, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a sandbox: the last part is checked at least.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&directory, inside, flags, Mode::empty()),
        opened => opened,
    };
    let file = File::from(opened.map_err(|error| match error {
        Errno::LOOP => io::Error::other(NOT_FOLLOWED),
        error => error.into(),
    })?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file any more"));
    }
    Ok(file)
}

/// The message about a symbolic link in a directory.
const NOT_FOLLOWED: &str = "a symbolic link is not followed without --follow-links";

impl Offer {
    /// Returns the name for messages.
    pub fn shown(&self) -> String {
        match self {
            Offer::Stdin => "standard input".to_owned(),
            Offer::File { path, .. } => path.display().to_string(),
        }
    }
}

/// Items to send, and those that cannot be sent, with the reason.
#[derive(Debug, Default)]
pub struct Offers {
    pub found: Vec<Offer>,
    pub bad: Vec<String>,
    follow_links: bool,
    /// The directory of the arguments that is being listed.
    root: PathBuf,
    /// Directories between `root` and the one being listed, as device and inode: a link to one of them has no end.
    above: Vec<(u64, u64)>,
}

impl Offers {
    /// Makes the items of the arguments. A directory gives all files in it, by name, under the directory's own name.
    /// Symbolic links in it lead anywhere, and are followed only with `follow_links`. A link in the arguments was named by
    /// the user.
    pub fn of(arguments: &[PathBuf], follow_links: bool) -> Offers {
        let mut offers = Offers { follow_links, ..Offers::default() };
        for path in arguments {
            if path.as_os_str() == "-" {
                offers.found.push(Offer::Stdin);
                continue;
            }
            let own = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let utf8 = path.file_name().is_none_or(|name| name.to_str().is_some());
            match fs::metadata(path) {
                _ if !utf8 => offers.refuse(path, "its name is not UTF-8"),
                Ok(data) if data.is_dir() => {
                    offers.root.clone_from(path);
                    offers.directory(path, own.as_deref(), &data);
                }
                Ok(data) if data.is_file() => offers.file(path, own.as_deref().unwrap_or_default(), data.len(), None),
                Ok(_) => {
                    offers.refuse(path, "it is neither a file nor a directory; a pipe can be sent as standard input, with '-'")
                }
                Err(error) => offers.refuse(path, error),
            }
        }
        offers
    }

    /// Makes offers of these items.
    pub fn only(found: Vec<Offer>) -> Offers {
        Offers { found, ..Offers::default() }
    }

    /// Bytes of all files; `None` where standard input is among them.
    pub fn total(&self) -> Option<u64> {
        let size = |offer: &Offer| if let Offer::File { size, .. } = offer { Some(*size) } else { None };
        self.found.iter().map(size).sum()
    }

    fn refuse(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.bad.push(format!("{}: {why}", path.display()));
    }

    fn file(&mut self, path: &Path, name: &str, size: u64, root: Option<PathBuf>) {
        match FileName::new(name) {
            Ok(name) => self.found.push(Offer::File { path: path.to_owned(), name, size, root }),
            Err(error) => self.refuse(path, error),
        }
    }

    fn directory(&mut self, path: &Path, prefix: Option<&str>, data: &Metadata) {
        let identity = (data.dev(), data.ino());
        if self.above.contains(&identity) {
            return self.refuse(path, "the link leads back to a directory above it");
        }
        let entries = fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.refuse(path, error),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        self.above.push(identity);
        for entry in entries {
            self.entry(&entry, prefix);
        }
        self.above.pop();
    }

    fn entry(&mut self, entry: &fs::DirEntry, prefix: Option<&str>) {
        let path = entry.path();
        let own = entry.file_name();
        let Some(own) = own.to_str() else { return self.refuse(&path, "its name is not UTF-8") };
        let name = prefix.map_or_else(|| own.to_owned(), |prefix| format!("{prefix}/{own}"));
        let data = if self.follow_links { fs::metadata(&path) } else { entry.metadata() };
        match data {
            Ok(data) if data.is_dir() => self.directory(&path, Some(&name), &data),
            Ok(data) if data.is_file() => {
                let root = (!self.follow_links).then(|| self.root.clone());
                self.file(&path, &name, data.len(), root);
            }
            Ok(data) if data.is_symlink() => self.refuse(&path, NOT_FOLLOWED),
            Ok(_) => self.refuse(&path, "it is not a file"),
            Err(error) => self.refuse(&path, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{ffi::OsStrExt, fs::symlink};

    use super::*;

    #[test]
    fn directories_give_their_files_and_what_cannot_be_sent_is_told() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("run");
        fs::create_dir_all(root.join("b")).unwrap();
        fs::write(root.join("b/two"), "22").unwrap();
        fs::write(root.join("a"), "1").unwrap();
        symlink("/etc/passwd", root.join("link")).unwrap();
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        let offers = Offers::of(&[root.clone(), "-".into(), place.path().join("nothing")], false);
        let names: Vec<String> = offers
            .found
            .iter()
            .map(|offer| if let Offer::File { name, size, .. } = offer { format!("{name} {size}") } else { "-".to_owned() })
            .collect();
        assert_eq!(names, ["run/a 1", "run/b/two 2", "-"]);
        assert_eq!(offers.bad.len(), 3, "{:?}", offers.bad);
        assert_eq!(offers.total(), None);
        assert_eq!(Offers::of(&[root], false).total(), Some(3));
    }

    #[test]
    fn links_are_followed_on_demand_and_never_in_a_circle() {
        let place = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (place.path().join("run"), place.path().join("elsewhere"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        fs::write(elsewhere.join("a"), "1").unwrap();
        symlink(&elsewhere, root.join("directory")).unwrap();
        symlink(elsewhere.join("a"), root.join("file")).unwrap();
        symlink(&root, elsewhere.join("back")).unwrap();
        symlink("nothing", root.join("nowhere")).unwrap();
        let offers = Offers::of(&[root], true);
        let names: Vec<String> = offers
            .found
            .iter()
            .map(|offer| if let Offer::File { name, .. } = offer { name.to_string() } else { "-".to_owned() })
            .collect();
        assert_eq!(names, ["run/directory/a", "run/file"]);
        assert_eq!(offers.bad.len(), 2, "{:?}", offers.bad);
        assert!(offers.bad[0].contains("run/directory/back: the link leads back"), "{:?}", offers.bad);
    }

    #[test]
    fn a_file_or_directory_exchanged_for_a_link_after_the_listing_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let (root, secret) = (place.path().join("run"), place.path().join("secret"));
        fs::create_dir_all(root.join("b")).unwrap();
        fs::create_dir_all(&secret).unwrap();
        fs::write(secret.join("two"), "secret").unwrap();
        fs::write(root.join("b/two"), "22").unwrap();
        let offers = Offers::of(std::slice::from_ref(&root), false);
        let [Offer::File { path, root: Some(below), .. }] = &offers.found[..] else { panic!("{:?}", offers.found) };
        assert_eq!(open(path, Some(below)).unwrap().metadata().unwrap().len(), 2);
        fs::remove_file(path).unwrap();
        symlink(secret.join("two"), path).unwrap();
        assert_eq!(open(path, Some(below)).unwrap_err().to_string(), NOT_FOLLOWED);
        fs::remove_dir_all(root.join("b")).unwrap();
        symlink(&secret, root.join("b")).unwrap();
        assert_eq!(open(path, Some(below)).unwrap_err().to_string(), NOT_FOLLOWED);
    }
}
