//! How the hub is, for Prometheus: `GET /metrics`, text format 0.0.4, off unless the configuration says otherwise.
//!
//! Decision: a server of our own, because it serves one page. Rejected: a library for HTTP. The small ones bound neither the bytes
//! nor the time of a request and bring a pool of threads; the good ones bring an executor. Every bound is here ([`server`]'s
//! constants), a request that breaks one costs a worker at most five seconds, and no request costs the collector more than its
//! counters' lock.
//!
//! | part | module |
//! |-|-|
//! | HTTP, as much of it as this takes | `server` |
//! | metrics as text | `text` |
//! | which metrics | `page` |

mod page;
mod server;
mod text;

pub(crate) use page::Subjects;
pub(crate) use server::Server;

use serde::{Deserialize, Serialize};

use crate::inputs::settings::Door;

/// Where the page is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Whether there is one.
    pub enabled: bool,
    /// Where it listens.
    pub listen: Door,
    /// Sources that have series of their own: those that were heard of last.
    pub sources: usize,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics { enabled: false, listen: Door::loopback(7448), sources: 500 }
    }
}
