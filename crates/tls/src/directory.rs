//! The certificate directory: which file is where, and who may read it.
//!
//! | file | content | mode |
//! |-|-|-|
//! | `authority.crt` | certificate of the domain's authority | 0644 |
//! | `host.crt` | certificate of this host | 0644 |
//! | `host.key` | private key of this host | 0600 |
//!
//! The host with the authority has a second directory, beside that one. No process of a hub reads it, so that one that
//! was taken over cannot sign.
//!
//! | file | content | mode |
//! |-|-|-|
//! | `authority.key` | private key of the authority | 0600 |
//! | `hosts/NAME/` | the three files of another host, to be copied there | 0700 |

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::error::TlsError;

const AUTHORITY_KEY: &str = "authority.key";
const HOSTS: &str = "hosts";

/// Texts of the three files of a host, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct HostTexts {
    /// Certificate of the authority.
    pub authority: String,
    /// Certificate of the host.
    pub certificate: String,
    /// Private key of the host.
    pub key: String,
}

/// Directory of the certificates of a host, with the one of the authority beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateDir {
    path: PathBuf,
    of_authority: PathBuf,
}

impl CertificateDir {
    /// Names a directory `DIR`; it need not exist. The authority's is `DIR-authority`.
    pub fn new(path: impl Into<PathBuf>) -> CertificateDir {
        let path = path.into();
        // A path such as "." has no name. The directory itself may be missing.
        let whole = path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or_else(|_| path.clone());
        let mut name = whole.file_name().unwrap_or_default().to_owned();
        name.push("-authority");
        CertificateDir { of_authority: whole.with_file_name(name), path }
    }

    /// Sets the directory of the authority.
    pub fn with_authority(self, of_authority: impl Into<PathBuf>) -> CertificateDir {
        CertificateDir { of_authority: of_authority.into(), ..self }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of the authority's private key, and of the files for other hosts.
    pub fn authority_dir(&self) -> &Path {
        &self.of_authority
    }

    /// Returns the file of the authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.path.join("authority.crt")
    }

    /// Returns the file of the authority's private key.
    pub fn authority_key(&self) -> PathBuf {
        self.of_authority.join(AUTHORITY_KEY)
    }

    /// Returns the file of the host's certificate.
    pub fn host(&self) -> PathBuf {
        self.path.join("host.crt")
    }

    /// Returns the file of the host's private key.
    pub fn host_key(&self) -> PathBuf {
        self.path.join("host.key")
    }

    /// Returns the directory of the files for another host.
    pub fn of_host(&self, name: &str) -> CertificateDir {
        CertificateDir::new(self.of_authority.join(HOSTS).join(name))
    }

    /// Returns the names of the other hosts that have certificates here, sorted.
    pub fn hosts(&self) -> Vec<String> {
        let entries = fs::read_dir(self.of_authority.join(HOSTS)).into_iter().flatten().flatten();
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

    /// Reads the three files of a host.
    pub fn texts(&self) -> Result<HostTexts, TlsError> {
        self.check()?;
        let (authority, certificate) = (read(&self.authority())?, read(&self.host())?);
        Ok(HostTexts { authority, certificate, key: read(&self.host_key())? })
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

    /// Moves the authority's key and the files of other hosts out of the certificate directory, where services read.
    /// Returns their places before and after. A file that is at both places stays, and is an error.
    pub fn move_authority(&self) -> Result<Vec<(PathBuf, PathBuf)>, TlsError> {
        let mut moved = Vec::new();
        let mut leave = |from: PathBuf, to: PathBuf| {
            if fs::symlink_metadata(&to).is_ok() {
                let way_out = "remove one of them: services of the hub can read the second";
                return Err(TlsError::Twice { path: to, other: from, way_out });
            }
            fs::rename(&from, &to).map_err(|why| TlsError::io(&from, why))?;
            moved.push((from, to));
            Ok(())
        };
        let (key, hosts) = (self.path.join(AUTHORITY_KEY), self.path.join(HOSTS));
        let bundles: Vec<_> = fs::read_dir(&hosts).into_iter().flatten().flatten().collect();
        if self.path == self.of_authority || bundles.is_empty() && fs::symlink_metadata(&key).is_err() {
            return Ok(moved);
        }
        let to_hosts = self.of_authority.join(HOSTS);
        make(if bundles.is_empty() { &self.of_authority } else { &to_hosts })?;
        if fs::symlink_metadata(&key).is_ok() {
            leave(key, self.authority_key())?;
        }
        for bundle in bundles {
            leave(bundle.path(), to_hosts.join(bundle.file_name()))?;
        }
        // It stays if somebody has put other files there.
        let _ = fs::remove_dir(&hosts);
        Ok(moved)
    }
}

/// Makes a directory, closed to other users.
pub(crate) fn make(path: &Path) -> Result<(), TlsError> {
    use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt};
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|why| TlsError::io(path, why))
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
