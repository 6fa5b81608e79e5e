//! The node's place in the run-time directory, and its restoration.
//!
//! The directory may vanish under a living node: logind removes it at a user's logout, or somebody runs `rm -r` or `mv`.
//! Connections stay, but no process finds the node any more, and a second node could start beside it. So the node looks
//! at its socket's place from time to time, and makes the directory anew.
//!
//! Decision: the new `node.sock` is a link to the old socket, through a descriptor in `/proc`. The socket of a listener
//! lives without a name as long as the listener, but it cannot be linked again. Rejected: a new listener, because the
//! engine takes none while it runs. Rejected: a relay between a new socket and the old one, which would copy each byte
//! twice. Processes that do not see this node's `/proc`, in other containers, still need a restart of the node.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::{MetadataExt, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

/// The socket of a node, held without regard to its name.
#[derive(Debug)]
pub(super) struct Standing {
    socket: PathBuf,
    /// A descriptor of the socket's file, which keeps it reachable.
    held: OwnedFd,
}

impl Standing {
    /// Holds the socket at this path.
    pub fn at(socket: PathBuf) -> io::Result<Standing> {
        let held = rustix::fs::open(&socket, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Standing { socket, held })
    }

    /// Returns whether the socket's path leads to the socket.
    pub fn is_there(&self) -> io::Result<bool> {
        let own = rustix::fs::fstat(self.held.as_fd())?;
        Ok(fs::metadata(&self.socket).is_ok_and(|found| (found.dev(), found.ino()) == (own.st_dev, own.st_ino)))
    }

    /// Links the socket's path to the socket. A file that is there is replaced.
    pub fn link(&self) -> io::Result<()> {
        let target = format!("/proc/{}/fd/{}", std::process::id(), self.held.as_raw_fd());
        let new = self.socket.with_extension("new");
        let _ = fs::remove_file(&new);
        symlink(target, &new)?;
        fs::rename(&new, &self.socket)
    }
}

/// Returns whether an open file is the one at a path.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let (own, found) = (file.metadata(), fs::metadata(path));
    own.is_ok_and(|own| found.is_ok_and(|found| (own.dev(), own.ino()) == (found.dev(), found.ino())))
}
