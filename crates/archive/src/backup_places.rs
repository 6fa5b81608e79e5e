//! Directories into which other hosts may have backups made.
//!
//! A backup is made by the process that has the archive, with the rights of its user, in a directory that the asker names. On a
//! closed bus the asker is that same user. Once the network is open, everybody with the domain's key can ask, so the
//! configuration names the directories.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

/// Directories for backups that others ask for. By default there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupPlaces(Vec<PathBuf>);

impl BackupPlaces {
    /// Allows these directories and all below them.
    pub fn new(places: impl IntoIterator<Item = PathBuf>) -> BackupPlaces {
        BackupPlaces(places.into_iter().collect())
    }

    /// Returns an error with the way out if `target` is not below one of the directories, symbolic links followed.
    pub fn check(&self, target: &Path) -> Result<(), String> {
        let resolved = resolve(target).map_err(|error| format!("{}: {error}", target.display()))?;
        if self.0.iter().any(|place| place.canonicalize().is_ok_and(|place| resolved.starts_with(place))) {
            return Ok(());
        }
        let places: Vec<String> = self.0.iter().map(|place| place.display().to_string()).collect();
        let places = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
        Err(format!(
            "{}: on an open network the hub makes backups only below the directories of [collector] backups ({places}); add the \
             directory there, on the collector's host",
            target.display()
        ))
    }
}

/// The path without symbolic links, as far as it exists.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(io::Error::other("a backup's path must not have '..' in it"));
    }
    for there in path.ancestors() {
        match there.canonicalize() {
            Ok(resolved) => return Ok(resolved.join(path.strip_prefix(there).unwrap_or(Path::new("")))),
            // A link that leads nowhere would be followed once its target exists.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !there.is_symlink() => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn only_what_is_below_a_named_directory_is_allowed_links_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (backup, elsewhere) = (dir.path().join("backup"), dir.path().join("elsewhere"));
        fs::create_dir(&backup).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, backup.join("link")).unwrap();
        symlink(dir.path().join("later"), backup.join("dangling")).unwrap();
        let places = BackupPlaces::new([backup.clone(), dir.path().join("missing")]);
        for allowed in [backup.clone(), backup.join("new/lab/log")] {
            assert_eq!(places.check(&allowed), Ok(()), "{}", allowed.display());
        }
        let refused = [
            elsewhere.clone(),
            dir.path().join("backup2"),
            backup.join("../elsewhere"),
            backup.join("link/lab"),
            backup.join("dangling/lab"),
            dir.path().join("missing"),
            PathBuf::from("backup"),
        ];
        for path in refused {
            assert!(places.check(&path).is_err(), "{}", path.display());
        }
        let why = BackupPlaces::default().check(&backup).unwrap_err();
        assert!(why.contains("[collector] backups (none)"), "{why}");
    }
}
