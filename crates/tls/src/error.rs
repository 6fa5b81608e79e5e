//! Errors of certificates.

use std::{io, path::PathBuf};

/// An error of making, reading or using certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of the certificate directory is missing.
    #[error(
        "there is no {}; 'tampu cert init' makes the certificates of the domain's first host, and 'tampu cert host NAME' there \
         those of a further one", .path.display()
    )]
    Missing {
        /// Path of the missing file.
        path: PathBuf,
    },
    /// The directory has no authority.
    #[error(
        "there is no authority in {}; run this on the host where 'tampu cert init' was run, or name its directory with --certificates",
        .path.display()
    )]
    NoAuthority {
        /// Path of the missing key.
        path: PathBuf,
    },
    /// The authority or a certificate exists.
    #[error("{} exists, and is not replaced; {way_out}", .path.display())]
    Exists {
        /// Path of the existing file.
        path: PathBuf,
        /// Advice for the user.
        way_out: &'static str,
    },
    /// A file that was to be moved exists at both places.
    #[error("{} and {} exist; {way_out}", .path.display(), .other.display())]
    Twice {
        /// Path of the file at its place.
        path: PathBuf,
        /// Path of the file at the other place.
        other: PathBuf,
        /// Advice for the user.
        way_out: &'static str,
    },
    /// Other users can read a private key.
    #[error("others may read {} (mode {mode:o}); run chmod 600 on it", .path.display())]
    Open {
        /// Path of the key.
        path: PathBuf,
        /// Mode of the file.
        mode: u32,
    },
    /// A file cannot be read or written.
    #[error("{}: {why}", .path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// A file does not hold what its name says.
    #[error("{}: {why}", .path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault.
        why: String,
    },
    /// A name is not one of a host.
    #[error("'{name}' is not a host's name or address; write archive, archive.example.org or 10.0.0.5")]
    Name {
        /// The invalid name.
        name: String,
    },
    /// A certificate cannot be made.
    #[error("the certificate cannot be made: {0}")]
    Issue(String),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

impl TlsError {
    pub(crate) fn io(path: &std::path::Path, why: io::Error) -> TlsError {
        TlsError::Io { path: path.to_owned(), why }
    }

    pub(crate) fn invalid(path: &std::path::Path, why: impl ToString) -> TlsError {
        TlsError::Invalid { path: path.to_owned(), why: why.to_string() }
    }
}
