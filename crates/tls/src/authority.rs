//! The authority of a domain, and the certificates that it signs.
//!
//! Its key signs for ten years, a host's certificate holds for one. A certificate is renewed for the key that the host
//! has, or for a new one.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use time::OffsetDateTime;

use crate::{
    certificate::CertificateInfo,
    directory::{CertificateDir, check_key_mode, make, read, write},
    error::TlsError,
    names::HostNames,
};

/// Life of an authority.
pub const AUTHORITY_LIFE: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Life of a host's certificate.
pub const HOST_LIFE: Duration = Duration::from_secs(365 * 86_400);
/// Time before its making at which a certificate begins to hold, for hosts whose clocks are behind.
const EARLIER: Duration = Duration::from_secs(86_400);

/// The key pair of a certificate that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPairChoice {
    /// A new key pair, which replaces an earlier one.
    New,
    /// The key pair that is there.
    Keep,
}

/// The authority of a domain with its private key.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// Makes an authority; one that is there is not replaced.
    pub fn create(directory: &CertificateDir, domain: &str, now: SystemTime) -> Result<Authority, TlsError> {
        for path in [directory.authority_key(), directory.authority()] {
            if path.try_exists().map_err(|why| TlsError::io(&path, why))? {
                let way_out = "'tampu cert renew' makes certificates of it for another year";
                return Err(TlsError::Exists { path, way_out });
            }
        }
        make(directory.path())?;
        make(directory.authority_dir())?;
        let key = KeyPair::generate().map_err(issue)?;
        let certificate = own_params(domain, now)?.self_signed(&key).map_err(issue)?.pem();
        write(&directory.authority_key(), &key.serialize_pem(), 0o600)?;
        write(&directory.authority(), &certificate, 0o644)?;
        Authority::with(directory, certificate, key)
    }

    /// Opens the authority of a directory.
    pub fn open(directory: &CertificateDir) -> Result<Authority, TlsError> {
        let path = directory.authority_key();
        if !path.try_exists().map_err(|why| TlsError::io(&path, why))? {
            return Err(TlsError::NoAuthority { path });
        }
        check_key_mode(&path, 0o077)?;
        let key = key_pair(directory)?;
        Authority::with(directory, read(&directory.authority())?, key)
    }

    fn with(directory: &CertificateDir, certificate: String, key: KeyPair) -> Result<Authority, TlsError> {
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).map_err(|why| TlsError::invalid(&directory.authority(), why))?;
        Ok(Authority { issuer, certificate })
    }

    /// Signs the authority again for ten years, with its key and name. Certificates that it signed stay valid.
    pub fn renew(directory: &CertificateDir, now: SystemTime) -> Result<Authority, TlsError> {
        let name = CertificateInfo::read(&directory.authority())?.common_name;
        check_key_mode(&directory.authority_key(), 0o077)?;
        let key = key_pair(directory)?;
        let certificate = named_params(&name, now)?.self_signed(&key).map_err(issue)?.pem();
        write(&directory.authority(), &certificate, 0o644)?;
        Authority::with(directory, certificate, key)
    }

    /// Writes the three files of a host into a directory: its certificate, its key, the authority's certificate.
    pub fn issue(
        &self,
        into: &CertificateDir,
        names: &HostNames,
        key: KeyPairChoice,
        now: SystemTime,
    ) -> Result<CertificateInfo, TlsError> {
        self.issue_for(into, names, key, now, HOST_LIFE)
    }

    /// Writes the three files of a host whose certificate has this life.
    pub fn issue_for(
        &self,
        into: &CertificateDir,
        names: &HostNames,
        key: KeyPairChoice,
        now: SystemTime,
        life: Duration,
    ) -> Result<CertificateInfo, TlsError> {
        make(into.path())?;
        let path = into.host_key();
        let pair = match key {
            KeyPairChoice::New => KeyPair::generate().map_err(issue)?,
            KeyPairChoice::Keep => KeyPair::from_pem(&read(&path)?).map_err(|why| TlsError::invalid(&path, why))?,
        };
        let mut params = params(&names.name, now, life)?;
        let dns = |name: &String| Ok(SanType::DnsName(name.as_str().try_into().map_err(issue)?));
        params.subject_alt_names = names.dns.iter().map(dns).collect::<Result<_, TlsError>>()?;
        params.subject_alt_names.extend(names.addresses.iter().copied().map(SanType::IpAddress));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Hosts connect to each other, so each is a server and a client.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&pair, &self.issuer).map_err(issue)?;
        if key == KeyPairChoice::New {
            write(&path, &pair.serialize_pem(), 0o600)?;
        }
        write(&into.host(), &certificate.pem(), 0o644)?;
        write(&into.authority(), &self.certificate, 0o644)?;
        CertificateInfo::parse(certificate.der()).map_err(|why| TlsError::invalid(&into.host(), why))
    }

    /// Signs the certificate of a host again, with the names that it has.
    pub fn renew_host(&self, at: &CertificateDir, key: KeyPairChoice, now: SystemTime) -> Result<CertificateInfo, TlsError> {
        let info = CertificateInfo::read(&at.host())?;
        self.issue(at, &HostNames::new(&info.common_name, &info.names)?, key, now)
    }
}

fn issue(why: rcgen::Error) -> TlsError {
    TlsError::Issue(why.to_string())
}

fn key_pair(directory: &CertificateDir) -> Result<KeyPair, TlsError> {
    let path = directory.authority_key();
    KeyPair::from_pem(&read(&path)?).map_err(|why| TlsError::invalid(&path, why))
}

fn own_params(domain: &str, now: SystemTime) -> Result<CertificateParams, TlsError> {
    // The longest common name has 64 characters.
    let name: String = format!("Tampu domain {domain}").chars().take(64).collect();
    named_params(&name, now)
}

fn named_params(name: &str, now: SystemTime) -> Result<CertificateParams, TlsError> {
    let mut params = params(name, now, AUTHORITY_LIFE)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn params(name: &str, now: SystemTime, life: Duration) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    params.not_before = OffsetDateTime::from(now - EARLIER);
    params.not_after = OffsetDateTime::from(now + life);
    // Without a number of its own, a renewed certificate would repeat the number of the earlier one.
    let mut number = [0; 16];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut number)
        .map_err(|_| TlsError::Issue("the system gives no random numbers".to_owned()))?;
    number[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&number));
    Ok(params)
}
