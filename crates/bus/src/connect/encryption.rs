//! Encryption of connections to other hosts.

use std::net::IpAddr;

use tampu_tls::CertificateDir;

use super::{
    environment::{BadEnvironment, read},
    key::Key,
};

/// Encryption of connections over the network, on both sides of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Encryption {
    /// TLS 1.3 at every address. Both ends show a certificate of the domain's authority.
    Tls(CertificateDir),
    /// Plain connections at loopback addresses, and none elsewhere.
    #[default]
    LoopbackOnly,
    /// Plain connections everywhere, which everybody on their way can read and change.
    None,
}

impl Encryption {
    /// Chooses the encryption: none only if the site says so, else TLS where there are certificates.
    pub fn choose(is_none: bool, certificates: CertificateDir) -> Encryption {
        match (is_none, certificates.has_host()) {
            (true, _) => Encryption::None,
            (false, true) => Encryption::Tls(certificates),
            (false, false) => Encryption::LoopbackOnly,
        }
    }

    /// Reads `TAMPU_CERTIFICATES` and `TAMPU_ENCRYPTION`.
    pub fn from_env() -> Result<Encryption, BadEnvironment> {
        Encryption::from_variables(|name| read(name, Ok))
    }

    fn from_variables(
        read: impl Fn(&'static str) -> Result<Option<String>, BadEnvironment>,
    ) -> Result<Encryption, BadEnvironment> {
        const NAME: &str = "TAMPU_ENCRYPTION";
        let certificates = read("TAMPU_CERTIFICATES")?.map(CertificateDir::new);
        let bad = |why: &str| Err(BadEnvironment { variable: NAME, why: why.to_owned() });
        match (read(NAME)?.as_deref(), certificates) {
            (None | Some("tls"), Some(directory)) => Ok(Encryption::Tls(directory)),
            (None, None) => Ok(Encryption::LoopbackOnly),
            (Some("none"), None) => Ok(Encryption::None),
            (Some("none"), Some(_)) => bad("TAMPU_CERTIFICATES is set too; unset one of them"),
            (Some("tls"), None) => bad("'tls' needs certificates: name their directory in TAMPU_CERTIFICATES"),
            (Some(_), _) => bad("write 'tls' or 'none'"),
        }
    }

    /// Returns the certificates for connections, or a reason why an address is not connected to or listened at.
    pub fn for_address(&self, address: &str) -> Result<Option<&CertificateDir>, String> {
        match self {
            Encryption::Tls(directory) => {
                directory.check().map_err(|why| why.to_string())?;
                Ok(Some(directory))
            }
            Encryption::LoopbackOnly if !is_loopback(address) => Err(
                "connections beyond this host use TLS, and this process has no certificates: 'tampu cert init' makes those of the \
                 domain's first host and 'tampu cert host NAME' there those of a further one; name their directory in \
                 TAMPU_CERTIFICATES (--certificates, [network] certificates), or renounce encryption with TAMPU_ENCRYPTION=none \
                 (--no-encryption, [network] encryption = \"none\")"
                    .to_owned(),
            ),
            Encryption::LoopbackOnly | Encryption::None => Ok(None),
        }
    }

    /// Checks the key for connections to or at an address. Without TLS a handshake can be recorded on its way, and a short
    /// key be guessed from it.
    pub fn check_key(&self, key: &Key, address: &str) -> Result<(), String> {
        if *self != Encryption::None || is_loopback(address) || key.is_strong() {
            return Ok(());
        }
        Err("without encryption others can record a handshake and guess a short key from it: make one of at least 16 random \
             bytes, as 'head -c 32 /dev/urandom | base64' does, on every host of the domain; or use encryption ('tampu cert init')"
            .to_owned())
    }
}

/// Returns true if an address `host:port` can only be on this host.
pub fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_do_without_encryption() {
        for address in ["127.0.0.1:7447", "localhost:7447", "[::1]:7447", "127.3.2.1:1", "[::ffff:127.0.0.1]:7"] {
            assert_eq!(Encryption::LoopbackOnly.for_address(address), Ok(None), "{address}");
        }
        for address in ["0.0.0.0:7447", "10.0.0.5:7447", "hub.site:7447", "[::]:7447", "localhost.evil.example:7447"] {
            let why = Encryption::LoopbackOnly.for_address(address).unwrap_err();
            assert!(why.contains("'tampu cert init'") && why.contains("'tampu cert host NAME'"), "{why}");
            assert_eq!(Encryption::None.for_address(address), Ok(None));
        }
        let empty = tempfile::tempdir().unwrap();
        let without = Encryption::Tls(CertificateDir::new(empty.path()));
        for address in ["127.0.0.1:7447", "hub.site:7447"] {
            let why = without.for_address(address).unwrap_err();
            assert!(why.contains("there is no") && why.contains("authority.crt"), "{why}");
        }
    }

    #[test]
    fn a_short_key_crosses_no_network_in_clear_text() {
        let (short, long) = (Key::new("correct horse").unwrap(), Key::new("Hs9K3mUO0lYhzqk1E3m5Zw==").unwrap());
        let tls = Encryption::Tls(CertificateDir::new("/c"));
        for address in ["0.0.0.0:7447", "hub.site:7447"] {
            let why = Encryption::None.check_key(&short, address).unwrap_err();
            assert!(why.contains("at least 16 random bytes"), "{why}");
            assert_eq!((Encryption::None.check_key(&long, address), tls.check_key(&short, address)), (Ok(()), Ok(())));
        }
        assert_eq!(Encryption::None.check_key(&short, "127.0.0.1:7447"), Ok(()));
    }

    #[test]
    fn the_environment_names_certificates_or_renounces_encryption() {
        let from = |certificates: Option<&str>, encryption: Option<&str>| {
            Encryption::from_variables(|name| {
                Ok(if name == "TAMPU_CERTIFICATES" { certificates } else { encryption }.map(str::to_owned))
            })
        };
        assert_eq!(from(None, None), Ok(Encryption::LoopbackOnly));
        assert_eq!(from(None, Some("none")), Ok(Encryption::None));
        assert_eq!(from(Some("/c"), None), Ok(Encryption::Tls(CertificateDir::new("/c"))));
        for (certificates, encryption) in [(Some("/c"), "none"), (None, "tls"), (None, "off"), (Some("/c"), "off")] {
            assert!(from(certificates, Some(encryption)).is_err(), "{encryption}");
        }
    }
}
