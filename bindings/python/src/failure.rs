//! Errors of the crates as Python's exceptions.

use pyo3::{PyErr, create_exception, exceptions::PyException};

create_exception!(tampu, TampuError, PyException, "Something that Tampu could not do. The text says what, where and why.");

/// Returns the exception of an error.
pub fn raised(error: impl std::fmt::Display) -> PyErr {
    TampuError::new_err(error.to_string())
}
