//! A question for current values that waits for reads.

use std::sync::Arc;

use tampu_bus::service::Request;
use tampu_types::event::Failure;

use super::published::PublishedAttribute;

/// A question for current values that waits for reads.
pub(super) struct WaitingGet {
    pub request: Request,
    /// Attributes, each with the number of ended reads that it waits for.
    pub found: Vec<(Arc<PublishedAttribute>, Option<u64>)>,
    pub until: u64,
}

impl WaitingGet {
    pub fn is_ready(&self) -> bool {
        self.found.iter().all(|(inner, wanted)| wanted.is_none_or(|wanted| inner.reads.lock().ended >= wanted))
    }

    pub fn answer(&self) {
        for (inner, wanted) in &self.found {
            let failure = wanted.and_then(|wanted| {
                let reads = inner.reads.lock();
                match reads.ended >= wanted {
                    true => reads.failure.clone(),
                    false => Some(Failure::new("Tampu_ReadTimedOut", "the program has not read it within 2 s")),
                }
            });
            let mut state = inner.state.lock();
            let event = match failure {
                None => state.refreshed(inner.index, 0),
                Some(failure) => state.without_value(inner.index, 0, &[failure]),
            };
            drop(state);
            // Names are checked to be far shorter.
            let mut part = (inner.name.as_str().len() as u16).to_le_bytes().to_vec();
            part.extend_from_slice(inner.name.as_str().as_bytes());
            part.extend_from_slice(&event);
            if !self.request.part(&part) {
                return;
            }
        }
    }
}
