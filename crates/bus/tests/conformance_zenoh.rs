//! The conformance suite on the zenoh engine: real processes around a real node.

#[macro_use]
mod conformance;

use conformance::processes::{ProcessArena, TestedEngine};

conformance!(ZenohArena);

pub struct Zenoh;

impl TestedEngine for Zenoh {
    const NAME: &str = "zenoh";
}

pub type ZenohArena = ProcessArena<Zenoh>;

/// Not a test: what the child processes do.
#[test]
fn child_process() {
    conformance::processes::child_process();
}
