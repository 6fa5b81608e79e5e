//! The resource of searches, and the problem of a record that is not there.

use http::StatusCode;
use tampu_bus::access::Resource;

use super::super::on_bus::service;
use crate::http::problem::Problem;

/// The resource of searches in the archive.
pub(super) fn archive() -> Resource {
    service("log/query")
}

/// Returns the problem of a record that the archive does not have.
pub(super) fn no_record(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no-record", detail)
        .help("the archive may not have received it yet, or no longer keep it ([collector] keep_days, keep_gb)")
}
