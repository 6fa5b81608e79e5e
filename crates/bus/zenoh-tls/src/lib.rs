//! TLS between hosts of a domain, as a link of the engine zenoh.
//!
//! The engine's own TLS link reads and writes one stream from two threads without a lock. While one thread handles an
//! incoming record, the state of the connection is absent for the other one: its write fails with "handshake not
//! complete", and the link closes. At 500 events per second that happened several times per second
//! (`tests/peers/event_cable_cut.py` shows it). This crate has the engine's interface and takes the place of that link.
//! Each poll of the stream here takes a lock.
//!
//! Both ends must show a certificate of the domain's authority ([`tampu_tls::mutual`]). There is no way to turn this off:
//! settings of the engine that would weaken it are refused.
//!
//! | module | subject |
//! |-|-|
//! | `admission` | rules of a program about the hosts that may connect |
//! | `link` | one connection |
//! | `listener` | the accepting end: handshakes, and certificates that were renewed |
//! | `manager` | the engine's interface for making links and listeners |
//! | `settings` | the engine's configuration: the three files |
//! | `silence` | links whose other end the network no longer reaches |
//! | `traffic` | what each open link has carried |

mod admission;
mod link;
mod listener;
mod manager;
mod settings;
mod silence;
mod traffic;

pub use admission::{HostRule, ask_for_hosts, cut_links};
pub use manager::{LinkManagerUnicastTls, TlsLocatorInspector};
pub use settings::TlsConfigurator;
pub use traffic::{LinkTraffic, open_links};

/// Name of the protocol in the engine's addresses: `tls/host:port`.
pub const TLS_LOCATOR_PREFIX: &str = "tls";
