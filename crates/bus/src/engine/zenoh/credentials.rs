//! Credentials towards the engine's routers, and its notation of addresses.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use tampu_tls::CertificateDir;
use tampu_types::{Domain, name};

use crate::{
    connect::{Encryption, Endpoint, Key, Lan},
    host,
    run_dir::{DomainDir, private_file},
};

/// User name and password for a router that asks for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub user: String,
    pub key: Key,
    /// Certificates of this host, if connections over the network are encrypted.
    pub certificates: Option<CertificateDir>,
}

impl Credentials {
    /// Makes credentials with the domain as user, so that a key opens no other domain that chose the same one.
    pub fn of(domain: &Domain, key: Key) -> Credentials {
        Credentials { user: name::escape(domain.as_str()), key, certificates: None }
    }

    /// Makes credentials for the network, with the certificates that this encryption uses.
    pub fn on_network(domain: &Domain, lan: &Lan) -> Credentials {
        let certificates = match &lan.encryption {
            Encryption::Tls(directory) => Some(directory.clone()),
            Encryption::LoopbackOnly | Encryption::None => None,
        };
        Credentials { certificates, ..Credentials::of(domain, lan.key.clone()) }
    }
}

/// Returns the endpoint in the engine's notation; `None` if the notation cannot express the path.
pub(super) fn locator(endpoint: &Endpoint, is_encrypted: bool) -> Option<String> {
    match endpoint {
        Endpoint::Tcp(address) if is_encrypted => Some(format!("tls/{address}")),
        Endpoint::Tcp(address) => Some(format!("tcp/{address}")),
        Endpoint::Unix(path) => {
            let path = path.to_str().filter(|path| !path.contains(['?', '#', ';']))?;
            Some(format!("unixsock-stream/{path}"))
        }
    }
}

/// File of permitted users, which the engine reads once while it opens.
pub(super) struct UsersFile(PathBuf);

impl UsersFile {
    /// Writes the file.
    pub fn create(dir: &DomainDir, credentials: &Credentials) -> io::Result<UsersFile> {
        let file = UsersFile(dir.peers().join(format!("{}.users", host::incarnation())));
        writeln!(private_file(&file.0)?, "{}:{}", credentials.user, credentials.key.reveal())?;
        Ok(file)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for UsersFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
