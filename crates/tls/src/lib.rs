//! Certificates of a domain, and TLS made of them.
//!
//! A domain has one authority. It signs a certificate for each host, which names the host and its addresses. Hosts that
//! hold a certificate of the same authority trust each other.
//!
//! | module | subject |
//! |-|-|
//! | [`authority`] | the authority and the certificates that it signs |
//! | [`directory`] | the files, their places and modes |
//! | [`certificate`] | the facts that a certificate states: names and life |
//! | [`names`] | names and addresses of a host |
//! | [`server`] | the certificate of a server, read again when its files change |
//! | [`mutual`] | TLS in which both ends show a certificate: the protocol between hosts |
//! | [`probe`] | a trial handshake that names the reason of a refusal |
//! | [`client`] | the certificates that a client trusts |
//!
//! Decision: one kind of key (ECDSA on P-256), which browsers, PostgreSQL and the bus all speak, and one provider of
//! cryptography (ring), which the bus brings anyway. Rejected: a certificate for each process, because a host's user can
//! read the keys of all its processes.
//!
//! ```
//! use std::time::SystemTime;
//!
//! use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
//!
//! # let place = tempfile::tempdir()?;
//! let directory = CertificateDir::new(place.path().join("cert"));
//! let now = SystemTime::now();
//! let authority = Authority::create(&directory, "lab", now)?;
//! let names = HostNames::new("archive", &["10.0.0.5".to_owned()])?;
//! let issued = authority.issue(&directory, &names, KeyPairChoice::New, now)?;
//! assert_eq!(issued.common_name, "archive");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "issue")]
pub mod authority;
pub mod certificate;
pub mod client;
pub mod directory;
mod error;
pub mod mutual;
pub mod names;
pub mod probe;
#[cfg(feature = "issue")]
mod put;
pub mod server;

#[cfg(feature = "issue")]
pub use authority::{Authority, KeyPairChoice};
pub use certificate::CertificateInfo;
pub use directory::{CertificateDir, HostTexts};
pub use error::TlsError;
pub use names::HostNames;
pub use server::ServerCertificate;
