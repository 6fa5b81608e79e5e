//! The engine's configuration of TLS: the three files of a host.
//!
//! The engine has one set of settings for listening and one for connecting. A host has one certificate, so both must name
//! the same files.

use tampu_tls::mutual::Files;
use zenoh_config::Config;
use zenoh_link_commons::ConfigurationInspector;
use zenoh_protocol::core::{endpoint, parameters};
use zenoh_result::{ZResult, bail, zerror};

const AUTHORITY: &str = "authority";
const CERTIFICATE: &str = "certificate";
const KEY: &str = "key";

/// Characters that separate the parts of an address in the engine's notation.
const SEPARATORS: [char; 5] = [';', '=', '#', '?', '|'];

/// Translates the engine's configuration into options of each address.
#[derive(Debug, Default, Clone, Copy)]
pub struct TlsConfigurator;

impl ConfigurationInspector<Config> for TlsConfigurator {
    fn inspect_config(&self, config: &Config) -> ZResult<String> {
        let tls = config.transport().link().tls();
        let files = [tls.root_ca_certificate(), tls.listen_certificate(), tls.listen_private_key()];
        if files.iter().all(|file| file.is_none()) {
            // A session without TLS.
            return Ok(String::new());
        }
        let is_one_identity =
            tls.listen_certificate() == tls.connect_certificate() && tls.listen_private_key() == tls.connect_private_key();
        let is_strict = *tls.enable_mtls() == Some(true) && *tls.verify_name_on_connect() != Some(false);
        let goes_on = *tls.close_link_on_expiration() != Some(true);
        if !(is_one_identity && is_strict && goes_on) {
            bail!(
                "transport/link/tls: both ends use one certificate (listen_ and connect_ are equal), enable_mtls is true, \
                 verify_name_on_connect is not false, close_link_on_expiration is not true"
            );
        }
        let mut options = Vec::new();
        for (name, file) in [AUTHORITY, CERTIFICATE, KEY].into_iter().zip(files) {
            let path = file.as_deref().ok_or_else(|| zerror!("transport/link/tls: the file of the {name} is missing"))?;
            if path.contains(SEPARATORS) {
                bail!("'{path}': the directory of certificates has none of the characters ; = # ? | in its path");
            }
            options.push((name, path));
        }
        Ok(parameters::from_iter(options.into_iter()))
    }
}

/// Returns the files that the options of an address name.
pub(crate) fn files(options: &endpoint::Config<'_>) -> ZResult<Files> {
    let path = |name: &str| options.get(name).map(Into::into).ok_or_else(|| zerror!("TLS has no {name} here"));
    Ok(Files { authority: path(AUTHORITY)?, certificate: path(CERTIFICATE)?, key: path(KEY)? })
}
