//! The facts that a certificate states.

use std::{
    net::IpAddr,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use rustls::pki_types::{CertificateDer, pem::PemObject};
use sha2::{Digest, Sha256};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use crate::{directory::read, error::TlsError};

/// Names and life of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateInfo {
    /// The common name: for a host's certificate the host's name.
    pub common_name: String,
    /// Alternative names and addresses.
    pub names: Vec<String>,
    /// The issuer's common name.
    pub issuer: String,
    /// Begin of its life, in seconds since 1970.
    pub not_before: i64,
    /// End of its life, in seconds since 1970.
    pub not_after: i64,
    /// SHA-256 of the certificate in hexadecimal digits.
    pub fingerprint: String,
    /// True if it may sign others.
    pub is_authority: bool,
}

impl CertificateInfo {
    /// Reads the first certificate of a PEM file.
    pub fn read(path: &Path) -> Result<CertificateInfo, TlsError> {
        let text = read(path)?;
        let der = CertificateDer::from_pem_slice(text.as_bytes())
            .map_err(|why| TlsError::invalid(path, format!("no certificate in PEM: {why}")))?;
        CertificateInfo::parse(&der).map_err(|why| TlsError::invalid(path, why))
    }

    /// Parses a certificate.
    pub fn parse(der: &[u8]) -> Result<CertificateInfo, String> {
        let (_, parsed) = X509Certificate::from_der(der).map_err(|why| format!("invalid certificate: {why}"))?;
        let common_name = |name: &x509_parser::x509::X509Name<'_>| {
            name.iter_common_name().next().and_then(|one| one.as_str().ok()).unwrap_or_default().to_owned()
        };
        let alternatives = parsed.subject_alternative_name().map_err(|why| format!("invalid names: {why}"))?;
        let names = alternatives.map(|found| found.value.general_names.iter().filter_map(spelled).collect()).unwrap_or_default();
        Ok(CertificateInfo {
            common_name: common_name(parsed.subject()),
            names,
            issuer: common_name(parsed.issuer()),
            not_before: parsed.validity().not_before.timestamp(),
            not_after: parsed.validity().not_after.timestamp(),
            fingerprint: Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect(),
            is_authority: parsed.is_ca(),
        })
    }

    /// Returns the seconds until the certificate expires; negative if it has expired.
    pub fn seconds_left(&self, now: SystemTime) -> i64 {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.not_after.saturating_sub(i64::try_from(now).unwrap_or(i64::MAX))
    }
}

fn spelled(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d]).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|octets| IpAddr::from(octets).to_string()),
        },
        _ => None,
    }
}
