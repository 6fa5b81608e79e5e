//! A recorder that keeps calls in memory, for tests and for trying a statement.

use std::sync::Mutex;

use crate::{
    payload::{Arguments, Payload},
    render::Rendered,
    site::Site,
    statement::{Recorder, Statement},
};

/// One call, in the form of a ring's record.
#[derive(Debug, Clone)]
pub struct Call {
    /// The statement's description.
    pub site: Site,
    /// Arguments of the call, as bytes.
    pub payload: Vec<u8>,
}

/// Keeps every call at or above a level.
#[derive(Debug, Default)]
pub struct Memory {
    level: u8,
    calls: Mutex<Vec<Call>>,
}

impl Memory {
    /// Makes a recorder that keeps calls at this level or above it.
    pub fn from_level(level: u8) -> Memory {
        Memory { level, ..Memory::default() }
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Returns the calls so far as texts. A text that cannot be rendered is shown up to the fault.
    pub fn rendered(&self) -> Vec<Rendered> {
        let render = |call: Call| {
            let mut rendered = Rendered::default();
            let _ = rendered.render(&call.site, &call.payload);
            rendered
        };
        self.calls().into_iter().map(render).collect()
    }
}

impl Recorder for Memory {
    fn wants(&self, level: u8) -> bool {
        level >= self.level
    }

    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        let mut call = Call { site: statement.site(), payload: Vec::new() };
        payload.append_to(&mut call.payload);
        self.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(call);
    }
}
