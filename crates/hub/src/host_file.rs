//! The file with which a further host joins a domain: all that its hub needs to know, in one place that can be copied.
//!
//! The host with the authority writes it (`tampu cert host NAME --join FILE`), and the other host's hub starts with it
//! (`tampu up --join FILE`). It is TOML and holds private keys, so only its owner may read it.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use tampu_bus::connect::Key;
use tampu_tls::{CertificateDir, HostTexts, TlsError};
use tampu_types::Domain;

use crate::{
    Config, Role,
    private::{self, PrivateError},
};

/// Name of the domain's key in the directory of its data.
const DOMAIN_KEY: &str = "domain.key";

/// Contents of such a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Domain that the host joins.
    pub domain: Domain,
    /// Name of the host in its certificate.
    pub host: String,
    /// Addresses of nodes that its hub connects to.
    pub connect: Vec<String>,
    /// Key of the domain.
    domain_key: String,
    authority: String,
    certificate: String,
    private_key: String,
}

/// Errors of a file with which a host joins.
#[derive(Debug, thiserror::Error)]
pub enum HostFileError {
    /// A file cannot be read or written.
    #[error("{}: {why}", .path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// Other users can read the file.
    #[error("others may read {} (mode {mode:o}), which has private keys; run chmod 600 on it", .path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Mode of the file.
        mode: u32,
    },
    /// The file is none that `tampu cert host --join` has written, or it is damaged.
    #[error("{} is no file to join a domain with: {why}; 'tampu cert host NAME --join FILE' writes one", .path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault.
        why: String,
    },
    /// The domain has no key here.
    #[error("the domain has no key in {}; name its file with --key-file, or let 'tampu cert init' make one", .path.display())]
    NoKey {
        /// Path at which a key would be.
        path: PathBuf,
    },
    /// The certificate directory cannot be read or written.
    #[error(transparent)]
    Certificates(#[from] TlsError),
    /// The data directory cannot be made.
    #[error(transparent)]
    Data(#[from] PrivateError),
}

impl Config {
    /// Returns the place of the domain's key where no setting names another one. `tampu cert init` makes a key there.
    pub fn own_key_file(&self) -> PathBuf {
        self.domain_data().join(DOMAIN_KEY)
    }

    /// Takes the domain's key from its usual place if no setting names another one.
    pub fn find_key(&mut self) {
        let own = self.own_key_file();
        if self.network.key_file.is_none() && own.is_file() {
            self.network.key_file = Some(own);
        }
    }

    /// Makes a key of the domain at its usual place, unless there is one. Returns its path if it was made.
    pub fn make_key(&self) -> Result<Option<PathBuf>, HostFileError> {
        let path = self.own_key_file();
        if path.exists() {
            return Ok(None);
        }
        let mut random = [0_u8; 32];
        let no_random = |_| HostFileError::Io { path: path.clone(), why: io::Error::other("the system gives no random numbers") };
        SystemRandom::new().fill(&mut random).map_err(no_random)?;
        let text = STANDARD.encode(random);
        private::make(&self.domain_data())?;
        put(&path, &format!("{text}\n"))?;
        Ok(Some(path))
    }
}

impl HostFile {
    /// Gathers what a host needs: the files in its directory, the domain's key, and addresses.
    pub fn gather(at: &CertificateDir, host: &str, config: &Config, connect: Vec<String>) -> Result<HostFile, HostFileError> {
        let path = config.network.key_file.clone().unwrap_or_else(|| config.own_key_file());
        if !path.exists() {
            return Err(HostFileError::NoKey { path });
        }
        let key = Key::from_file(&path).map_err(|error| HostFileError::Io { path, why: io::Error::other(error) })?;
        let HostTexts { authority, certificate, key: private_key } = at.texts()?;
        let (domain, host, domain_key) = (config.domain.clone(), host.to_owned(), key.reveal().to_owned());
        Ok(HostFile { domain, host, connect, domain_key, authority, certificate, private_key })
    }

    /// Writes the file, which replaces an earlier one.
    pub fn write(&self, path: &Path) -> Result<(), HostFileError> {
        let invalid = |error: toml::ser::Error| HostFileError::Invalid { path: path.to_owned(), why: error.to_string() };
        let HostFile { domain, host, .. } = self;
        let text = toml::to_string_pretty(self).map_err(invalid)?;
        put(
            path,
            &format!(
                "# With this file the host {host} joins the domain {domain}. It holds private keys: copy it with a secure tool.\n\
                 # On {host}: tampu up --join FILE\n{text}"
            ),
        )
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<HostFile, HostFileError> {
        let io = |why| HostFileError::Io { path: path.to_owned(), why };
        let mode = fs::metadata(path).map_err(io)?.mode();
        if mode & 0o077 != 0 {
            return Err(HostFileError::Open { path: path.to_owned(), mode: mode & 0o777 });
        }
        let text = fs::read_to_string(path).map_err(io)?;
        // The message alone: the place would show lines that may hold a key.
        toml::from_str(&text).map_err(|error| invalid(path, error.message()))
    }

    /// Puts certificates and key into their places on this host, and settings into its configuration. Certificates that are
    /// there stay if they are not older, and the key with them. Only a hub whose roles nobody chose gets the role of a node alone.
    pub fn join(&self, path: &Path, config: &mut Config, chose_roles: bool) -> Result<(), HostFileError> {
        config.domain = self.domain.clone();
        config.network.connect.extend(self.connect.iter().cloned());
        if !chose_roles {
            config.roles = vec![Role::Node];
        }
        Key::new(&self.domain_key).map_err(|error| invalid(path, &format!("its key is none: {error}")))?;
        let texts =
            HostTexts { authority: self.authority.clone(), certificate: self.certificate.clone(), key: self.private_key.clone() };
        private::make(&config.domain_data())?;
        // Not in the system's directory: another domain's certificates may be there.
        let at = config.network.certificates.clone().map_or_else(|| config.own_certificates(), CertificateDir::new);
        let is_new = at.put(&texts).map_err(|error| match error {
            TlsError::Invalid { why, .. } => invalid(path, &why),
            error => HostFileError::Certificates(error),
        })?;
        // A key that was changed since stays, as newer certificates do.
        let own = config.own_key_file();
        if config.network.key_file.is_none() && (is_new || !own.exists()) {
            put(&own, &format!("{}\n", self.domain_key))?;
        }
        config.joined_by = Some(path.to_owned());
        Ok(())
    }
}

fn invalid(path: &Path, why: &str) -> HostFileError {
    HostFileError::Invalid { path: path.to_owned(), why: why.trim().replace('\n', "; ") }
}

/// Writes a file that only its owner can read. Readers see the earlier file or the whole new one.
fn put(path: &Path, text: &str) -> Result<(), HostFileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new{}", std::process::id()));
    let new = path.with_file_name(name);
    let written = (|| {
        let _ = fs::remove_file(&new);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    written.map_err(|why| {
        let _ = fs::remove_file(&new);
        HostFileError::Io { path: path.to_owned(), why }
    })
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, time::SystemTime};

    use tampu_tls::{Authority, HostNames, KeyPairChoice};

    use super::*;

    fn config_in(directory: &Path) -> Config {
        Config { data: directory.to_owned(), domain: Domain::new("lab").unwrap(), ..Config::default() }
    }

    /// A domain whose host `mast` has certificates, and its file.
    fn made(directory: &Path, host: &str) -> (Config, HostFile) {
        let config = config_in(directory);
        let certificates = config.certificates();
        let authority = Authority::create(&certificates, "lab", SystemTime::now()).unwrap();
        config.make_key().unwrap().unwrap();
        assert_eq!(config.make_key().unwrap(), None, "it stays");
        let at = certificates.of_host(host);
        authority.issue(&at, &HostNames::new(host, &[]).unwrap(), KeyPairChoice::New, SystemTime::now()).unwrap();
        let file = HostFile::gather(&at, host, &config, vec!["archive:7447".to_owned()]).unwrap();
        (config, file)
    }

    #[test]
    fn a_host_joins_with_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let (first, file) = made(&directory.path().join("first"), "mast");
        let path = directory.path().join("mast.join");
        file.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let file = HostFile::read(&path).unwrap();
        for chose_roles in [false, true] {
            let mut second = Config { domain: Domain::new("local").unwrap(), ..config_in(&directory.path().join("second")) };
            file.join(&path, &mut second, chose_roles).unwrap();
            second.find_key();
            assert_eq!((second.domain.as_str(), &second.network.connect), ("lab", &vec!["archive:7447".to_owned()]));
            assert_eq!(second.roles == [Role::Node], !chose_roles);
            assert!(second.certificates().texts().unwrap() == first.certificates().of_host("mast").texts().unwrap());
            let key = second.network.key_file.unwrap();
            assert_eq!(fs::read(&key).unwrap(), fs::read(first.own_key_file()).unwrap());
            assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_bad_file_is_named_and_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (_, file) = made(&directory.path().join("first"), "mast");
        let (_, other) = made(&directory.path().join("other"), "dome");
        let (path, at) = (directory.path().join("mast.join"), directory.path().join("second"));
        let join = |file: &HostFile| file.join(&path, &mut config_in(&at), false).map_err(|error| error.to_string());
        let crossed = HostFile { private_key: other.private_key.clone(), ..file.clone() };
        let why = join(&crossed).unwrap_err();
        assert!(why.contains("mast.join") && why.contains("does not belong"), "{why}");
        assert!(!config_in(&at).certificates().has_host());
        join(&file).unwrap();
        let before = config_in(&at).certificates().texts().unwrap();
        let why = join(&other).unwrap_err();
        assert!(why.contains("of mast, the new one is of dome"), "{why}");
        assert!(config_in(&at).certificates().texts().unwrap() == before);
        assert_eq!(fs::read_dir(config_in(&at).domain_data()).unwrap().count(), 2, "nothing is left over");

        file.write(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(HostFile::read(&path).err().unwrap().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "domain = \"lab\"\n").unwrap();
        assert!(HostFile::read(&path).err().unwrap().to_string().contains("missing field `host`"));
    }
}
