//! The conformance suite on the zmq engine: real processes around a real node.

#[macro_use]
mod conformance;

use conformance::processes::{ProcessArena, TestedEngine};

conformance!(ZmqArena);

pub struct Zmq;

impl TestedEngine for Zmq {
    const NAME: &str = "zmq";
}

pub type ZmqArena = ProcessArena<Zmq>;

/// Not a test: what the child processes do.
#[test]
fn child_process() {
    conformance::processes::child_process();
}
