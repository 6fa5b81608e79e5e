//! The certificate directory: which file is where, and who may read it.
//!
//! | file | content | mode |
//! |-|-|-|
//! | `authority.crt` | certificate of the domain's authority | 0644 |
//! | `host.crt` | certificate of this host | 0644 |
//! | `host.key` | private key of this host | 0600 |
//! | `authority.key` | private key of the authority, on one host only | 0600 |
//! | `hosts/NAME/` | the three files of another host, to be copied there | 0700 |

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::error::TlsError;

/// Directory of the certificates of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateDir(PathBuf);

impl CertificateDir {
    /// Names a directory; it need not exist.
    pub fn new(path: impl Into<PathBuf>) -> CertificateDir {
        CertificateDir(path.into())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file of the authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.0.join("authority.crt")
    }

    /// Returns the file of the authority's private key.
    pub fn authority_key(&self) -> PathBuf {
        self.0.join("authority.key")
    }

    /// Returns the file of the host's certificate.
    pub fn host(&self) -> PathBuf {
        self.0.join("host.crt")
    }

    /// Returns the file of the host's private key.
    pub fn host_key(&self) -> PathBuf {
        self.0.join("host.key")
    }

    /// Returns the directory of the files for another host.
    pub fn of_host(&self, name: &str) -> CertificateDir {
        CertificateDir(self.0.join("hosts").join(name))
    }

    /// Returns the names of the other hosts that have certificates here, sorted.
    pub fn hosts(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("hosts")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| self.of_host(name).host().is_file())
            .collect();
        names.sort();
        names
    }

    /// Returns true if the directory has a certificate of this host.
    pub fn has_host(&self) -> bool {
        self.host().is_file()
    }

    /// Checks that the three files of a host are here, and that only their owner can read the key.
    pub fn check(&self) -> Result<(), TlsError> {
        for path in [self.authority(), self.host(), self.host_key()] {
            if !path.try_exists().map_err(|why| TlsError::io(&path, why))? {
                return Err(TlsError::Missing { path });
            }
        }
        check_key_mode(&self.host_key(), 0o077)
    }

    /// Makes the directory, closed to other users.
    #[cfg(feature = "issue")]
    pub(crate) fn make(&self) -> Result<(), TlsError> {
        use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt};
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|why| TlsError::io(&self.0, why))
    }
}

/// Checks that users of these mode bits cannot use a private key.
pub(crate) fn check_key_mode(path: &Path, forbidden: u32) -> Result<(), TlsError> {
    let mode = fs::metadata(path).map_err(|why| TlsError::io(path, why))?.mode();
    if mode & forbidden != 0 {
        return Err(TlsError::Open { path: path.to_owned(), mode: mode & 0o777 });
    }
    Ok(())
}

#[cfg(feature = "issue")]
/// Writes a file at once: readers see the earlier file or the whole new one.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    use std::{
        fs::{File, OpenOptions, Permissions},
        io::Write,
        os::unix::fs::{OpenOptionsExt, PermissionsExt},
    };
    let new = path.with_extension(format!("new{}", std::process::id()));
    let written = (|| -> io::Result<()> {
        let _ = fs::remove_file(&new);
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        // The umask may have taken bits that other users need to read a certificate.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    written.map_err(|why| TlsError::io(path, why))
}

/// Reads a file as text.
pub(crate) fn read(path: &Path) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => TlsError::Missing { path: path.to_owned() },
        _ => TlsError::io(path, why),
    })
}
