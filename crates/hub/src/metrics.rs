//! Metrics of the hub for Prometheus: `GET /metrics`, text format 0.0.4, off unless the configuration says otherwise.
//!
//! The page is a service of the hub's HTTP server. It has a listener and limits of its own, so that a busy logbook
//! never delays it. A request for the page delays the collector only for the lock of its counters.
//!
//! | part | module |
//! |-|-|
//! | the service | `service` |
//! | metrics as text | `text` |
//! | the list of metrics | `page`, `logbook`, `gateway` |
//! | one page from those of the roles | `gather` |

mod gateway;
mod gather;
mod logbook;
mod page;
mod service;
mod text;

pub(crate) use gather::{serve_page, whole_page};
pub(crate) use page::{Subjects, roles_page};
pub(crate) use service::{Page, serve};

use serde::{Deserialize, Serialize};

use crate::listen::ListenAddress;

/// Settings of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// If true, the page is served.
    pub enabled: bool,
    /// The address of the page.
    pub listen: ListenAddress,
    /// Serves the page to other hosts without encryption.
    pub plain_http: bool,
    /// Names of this host, besides its own, that requests may name.
    pub hosts: Vec<String>,
    /// Number of sources with series of their own: those that sent last.
    pub sources: usize,
}

impl Metrics {
    /// Returns true if the page is served by https.
    pub(crate) fn is_encrypted(&self) -> bool {
        !self.plain_http && self.listen.beyond_this_host().is_some()
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics { enabled: false, listen: ListenAddress::loopback(7448), plain_http: false, hosts: Vec::new(), sources: 500 }
    }
}
