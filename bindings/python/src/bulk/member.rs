//! The process behind a sender or receiver: on the bus, or alone.

use pyo3::prelude::*;
use tampu_bulk::receiver::Identity;
use tampu_bus::Participant;
use tampu_types::{Domain, SourceName};

use crate::{bulk::failure::other, event::join};

/// Process that sends or receives.
pub struct Member {
    pub identity: Identity,
    pub bus: Option<Participant>,
}

/// Joins the bus, or makes the identity of a process without it.
pub fn member(py: Python<'_>, source: &str, domain: Option<&str>, on_bus: bool) -> PyResult<Member> {
    if on_bus {
        let bus = join(py, source, domain)?;
        return Ok(Member { identity: Identity::of(&bus), bus: Some(bus) });
    }
    let source = SourceName::new(source).map_err(other)?;
    let domain = domain.ok_or_else(|| other("without the bus, `domain` must name the installation"))?;
    let domain = Domain::new(domain).map_err(other)?;
    Ok(Member { identity: Identity::alone(domain.as_str(), source.as_str()), bus: None })
}
