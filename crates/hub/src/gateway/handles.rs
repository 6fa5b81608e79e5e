//! Handles: the short names of attributes in the frames of one subscription.
//!
//! A handle is of one attribute in one incarnation of its server. It ends with that incarnation, so the table has the
//! attributes of present servers only, however often they were restarted.

use std::collections::{HashMap, hash_map::Entry};

use tampu_bus::SourceInfo;
use tampu_event::client::AttributeInfo;
use tampu_types::{
    Incarnation,
    event::{AttributeName, Reason},
    gateway::messages::AttributeIntro,
};

/// An attribute of an incarnation.
type Key = (Incarnation, u32);

/// Handle of an event's attribute.
pub(super) enum Handle {
    /// The client knows it, with its present configuration.
    Known(u32),
    /// The client does not know it, or its configuration.
    New(u32, Box<AttributeIntro>),
}

/// The table of a subscription.
#[derive(Default)]
pub(super) struct Handles {
    /// Handle and epoch of each attribute.
    known: HashMap<Key, (u32, u32)>,
    /// The latest incarnation of each attribute of a source, by their names in lower case. An earlier one is over, also if
    /// no event has said so.
    latest: HashMap<(String, AttributeName), Key>,
    /// The handle given last.
    last: u32,
}

impl Handles {
    /// Returns the handle of a source's attribute.
    pub fn of(&mut self, source: &SourceInfo, info: &AttributeInfo) -> Handle {
        let key = (source.incarnation, info.number);
        let handle = match self.known.entry(key) {
            Entry::Occupied(entry) => {
                let (handle, epoch) = entry.into_mut();
                if *epoch == info.epoch {
                    return Handle::Known(*handle);
                }
                *epoch = info.epoch;
                *handle
            }
            Entry::Vacant(entry) => {
                self.last = self.last.wrapping_add(1);
                entry.insert((self.last, info.epoch));
                if let Some(before) = self.latest.insert(name_of(source, info), key).filter(|before| *before != key) {
                    self.known.remove(&before);
                }
                self.last
            }
        };
        let intro = AttributeIntro {
            attribute: handle,
            source: source.source.to_string(),
            incarnation: source.incarnation,
            number: info.number,
            epoch: info.epoch,
            config: info.config.clone(),
        };
        Handle::New(handle, Box::new(intro))
    }

    /// Forgets the handle of an attribute if this reason says that its source has ended.
    pub fn forget_after(&mut self, source: &SourceInfo, info: &AttributeInfo, reason: Reason) {
        if matches!(reason, Reason::SourceDied | Reason::SourceLeft) {
            let key = (source.incarnation, info.number);
            self.known.remove(&key);
            if let Entry::Occupied(entry) = self.latest.entry(name_of(source, info))
                && *entry.get() == key
            {
                entry.remove();
            }
        }
    }

    /// Returns the number of handles.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.len().max(self.latest.len())
    }
}

fn name_of(source: &SourceInfo, info: &AttributeInfo) -> (String, AttributeName) {
    (source.source.as_str().to_lowercase(), info.config.name.clone())
}

#[cfg(test)]
mod tests {
    use tampu_types::event::{AttributeConfig, DataType, Format};

    use super::*;

    #[test]
    fn restarts_of_a_server_leave_no_handles() {
        let mut handles = Handles::default();
        let config = AttributeConfig::new("a/b/c/d".parse().unwrap(), DataType::Double, Format::Scalar);
        let info = AttributeInfo { number: 3, epoch: 1, config };
        let source =
            |start| SourceInfo { source: "s".parse().unwrap(), incarnation: Incarnation { start, ..Incarnation::default() } };
        let handle = |known| match known {
            Handle::Known(handle) | Handle::New(handle, _) => handle,
        };
        for start in 0..1000 {
            let source = source(start);
            let first = handle(handles.of(&source, &info));
            handles.forget_after(&source, &info, Reason::SourceHung);
            assert_eq!(handle(handles.of(&source, &info)), first);
            assert_eq!(handles.len(), 1, "also of a source whose end was not noticed");
            if start % 2 == 0 {
                handles.forget_after(&source, &info, Reason::SourceDied);
                assert_eq!(handles.len(), 0);
            }
        }
        assert_eq!(handle(handles.of(&source(7), &info)), 1001, "a handle is used once");
    }
}
