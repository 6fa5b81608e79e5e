//! The file that tells the owner's programs where a running logbook is.

use std::{
    fs, io,
    io::Write,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tampu_bus::host::is_over;
use tampu_types::Incarnation;

/// The file in the domain's run-time directory that holds the logbook's address, for the owner's programs.
pub const LOCATION_FILE: &str = "book.json";

/// The address of a running logbook and the token of its owner. Only the hub's own user can read the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookLocation {
    /// The address of the API's host, as `http://127.0.0.1:7449`. With https its name is one of the certificate.
    pub url: String,
    /// The address to connect to, if the name of `url` may mean another one.
    #[serde(default)]
    pub address: Option<SocketAddr>,
    /// A file of certificates to trust, with https.
    #[serde(default)]
    pub trusted: Option<PathBuf>,
    /// The owner's token.
    pub token: String,
    /// The directory of the logbook, if it is in one.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// The incarnation of the hub that wrote this.
    #[serde(default)]
    pub life: Option<Incarnation>,
}

impl BookLocation {
    /// Returns true if the hub that wrote this has ended without removing it. By then another program may have the
    /// address. It must not get the token.
    pub fn is_left(&self) -> bool {
        self.life.is_some_and(is_over)
    }
}

/// The file that says where the logbook is, and its content.
pub(crate) struct LocationKeeper(pub(super) PathBuf, pub(super) BookLocation);

impl LocationKeeper {
    /// Writes the file again if it has vanished with its directory. It waits until the directory is there again.
    pub(crate) fn restore(&self) {
        if !self.0.exists() {
            let _ = write_location(&self.0, &self.1);
        }
    }
}

pub(super) fn write_location(path: &Path, place: &BookLocation) -> io::Result<()> {
    let text = serde_json::to_string(place).map_err(io::Error::other)?;
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(new, path)
}

pub(super) fn read_location(path: &Path) -> Option<BookLocation> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Reads the address of a domain's logbook, if a hub of this host serves it. A killed hub leaves its file behind
/// ([`BookLocation::is_left`]).
pub fn locate(run: &Path) -> Option<BookLocation> {
    read_location(&run.join(LOCATION_FILE))
}
