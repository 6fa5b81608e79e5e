//! The certificates that a client trusts.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{directory::read, error::TlsError};

/// Reads all certificates of a PEM file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|why| TlsError::invalid(path, format!("no certificate in PEM: {why}")))?;
    if found.is_empty() {
        return Err(TlsError::invalid(path, "it holds no certificate in PEM"));
    }
    Ok(found)
}

/// Returns the certificates of the system's authorities.
pub fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// Returns the hash of a server's certificate to which a password's proof can be bound (`tls-server-end-point`, RFC 5929).
/// `None` for an algorithm without a rule.
pub fn end_point_hash(der: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(der).ok()?;
    match parsed.signature_algorithm.algorithm.to_id_string().as_str() {
        // MD5 and SHA-1 count as SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Some(Sha256::digest(der).to_vec()),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Some(Sha384::digest(der).to_vec()),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Some(Sha512::digest(der).to_vec()),
        _ => None,
    }
}

/// Makes TLS settings of a client that trusts these authorities.
pub fn client_config(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, TlsError> {
    let mut store = RootCertStore::empty();
    // A system may hold certificates that are not valid authorities.
    store.add_parsable_certificates(roots);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| TlsError::Setup(why.to_string()))?;
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}
