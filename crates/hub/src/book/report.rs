//! The numbers of a running logbook, for the page of metrics.

use std::sync::Arc;

use tampu_logbook::store::{Store, StoreReport};

use super::request_log::{RequestCounts, RequestLog};
use crate::http::{admission::QueueReport, server::ServerCounts};

/// Makes reports of a logbook.
pub struct BookReporter {
    pub(super) requests: Arc<RequestLog>,
    pub(super) server: ServerCounts,
    pub(super) store: Arc<dyn Store>,
}

/// The numbers of a logbook at one moment.
#[derive(Debug, Clone, Default)]
pub struct BookReport {
    /// Requests and searches.
    pub requests: RequestCounts,
    /// Open connections of clients.
    pub connections: usize,
    /// Running and waiting requests.
    pub queues: Vec<QueueReport>,
    /// Connections, transactions and space of the store.
    pub store: StoreReport,
}

impl BookReporter {
    /// Returns the current numbers.
    pub fn report(&self) -> BookReport {
        BookReport {
            requests: self.requests.counts(),
            connections: self.server.connections(),
            queues: self.server.queues(),
            store: self.store.report(),
        }
    }
}
