//! Items to send: files, all files of directories, standard input; each with its name at the receiver.

use std::{
    fs,
    path::{Path, PathBuf},
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
    },
}

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
}

impl Offers {
    /// Makes the items of the arguments. A directory gives all files in it, by name, under the directory's own name.
    /// Symbolic links in it are not followed, as they may lead anywhere.
    pub fn of(arguments: &[PathBuf]) -> Offers {
        let mut offers = Offers::default();
        for path in arguments {
            if path.as_os_str() == "-" {
                offers.found.push(Offer::Stdin);
                continue;
            }
            let own = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let utf8 = path.file_name().is_none_or(|name| name.to_str().is_some());
            match fs::metadata(path) {
                _ if !utf8 => offers.refuse(path, "its name is not UTF-8"),
                Ok(data) if data.is_dir() => offers.directory(path, own.as_deref()),
                Ok(data) if data.is_file() => offers.file(path, own.as_deref().unwrap_or_default(), data.len()),
                Ok(_) => {
                    offers.refuse(path, "it is neither a file nor a directory; a pipe can be sent as standard input, with '-'")
                }
                Err(error) => offers.refuse(path, error),
            }
        }
        offers
    }

    /// Bytes of all files; `None` where standard input is among them.
    pub fn total(&self) -> Option<u64> {
        let size = |offer: &Offer| if let Offer::File { size, .. } = offer { Some(*size) } else { None };
        self.found.iter().map(size).sum()
    }

    fn refuse(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.bad.push(format!("{}: {why}", path.display()));
    }

    fn file(&mut self, path: &Path, name: &str, size: u64) {
        match FileName::new(name) {
            Ok(name) => self.found.push(Offer::File { path: path.to_owned(), name, size }),
            Err(error) => self.refuse(path, error),
        }
    }

    fn directory(&mut self, path: &Path, prefix: Option<&str>) {
        let entries = fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.refuse(path, error),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let own = entry.file_name();
            let Some(own) = own.to_str() else {
                self.refuse(&path, "its name is not UTF-8");
                continue;
            };
            let name = prefix.map_or_else(|| own.to_owned(), |prefix| format!("{prefix}/{own}"));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.directory(&path, Some(&name)),
                Ok(kind) if kind.is_file() => match entry.metadata() {
                    Ok(data) => self.file(&path, &name, data.len()),
                    Err(error) => self.refuse(&path, error),
                },
                Ok(kind) if kind.is_symlink() => self.refuse(&path, "a symbolic link is not followed"),
                Ok(_) => self.refuse(&path, "it is not a file"),
                Err(error) => self.refuse(&path, error),
            }
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
        let offers = Offers::of(&[root.clone(), "-".into(), place.path().join("nothing")]);
        let names: Vec<String> = offers
            .found
            .iter()
            .map(|offer| if let Offer::File { name, size, .. } = offer { format!("{name} {size}") } else { "-".to_owned() })
            .collect();
        assert_eq!(names, ["run/a 1", "run/b/two 2", "-"]);
        assert_eq!(offers.bad.len(), 3, "{:?}", offers.bad);
        assert_eq!(offers.total(), None);
        assert_eq!(Offers::of(&[root]).total(), Some(3));
    }
}
