//! Losses of a bounded queue. The next event of the same attribute reports them.

use std::collections::HashMap;

use tampu_types::{
    Incarnation,
    event::{AttributeName, Missed},
};

use super::event::Update;

/// Events that a full queue dropped, by attribute, until the attribute's next event reports them.
#[derive(Debug, Default)]
pub struct DroppedEvents {
    by_name: HashMap<AttributeName, (Incarnation, Missed)>,
}

impl DroppedEvents {
    /// Notes an event that was dropped, with the events that it reported as missing.
    pub fn note(&mut self, update: &Update) {
        self.note_with(update, update.size() > 0);
    }

    /// Notes an event whose reading is not in `update`.
    pub fn note_report(&mut self, update: &Update) {
        self.note_with(update, true);
    }

    fn note_with(&mut self, update: &Update, has_reading: bool) {
        let own =
            if has_reading && update.number > 0 { Missed::Exactly(update.number, update.number + 1) } else { Missed::Nothing };
        let missed = joined(update.missed, own);
        if missed == Missed::Nothing {
            return;
        }
        let life = update.source.incarnation;
        let noted = self.by_name.entry(update.attribute.config.name.clone()).or_insert((life, Missed::Nothing));
        *noted = (life, if noted.0 == life { joined(noted.1, missed) } else { Missed::Unknown });
    }

    /// Adds the attribute's dropped events to those that are missing before this one.
    pub fn report(&mut self, update: &mut Update) {
        if self.by_name.is_empty() {
            return;
        }
        if let Some((life, missed)) = self.by_name.remove(&update.attribute.config.name) {
            let missed = if life == update.source.incarnation { missed } else { Missed::Unknown };
            update.missed = joined(missed, update.missed);
        }
    }
}

/// Joins missing events with those behind them. What lies between was not wanted.
fn joined(first: Missed, second: Missed) -> Missed {
    match (first, second) {
        (Missed::Nothing, missed) | (missed, Missed::Nothing) => missed,
        (Missed::Exactly(from, to), Missed::Exactly(again, end)) => Missed::Exactly(from.min(again), to.max(end)),
        _ => Missed::Unknown,
    }
}
