//! What a logger says about itself in every record, and who listens to it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};
use tampu_types::{Level, LogRecord, Partition};

use crate::logger::{
    clock::now,
    config::Named,
    lane::Reach,
    repeat::RepeatGuard,
    settings::{LogSettings, Threshold},
    shared::lock,
};

/// From which level a named logger's records are published and printed; shared by all its handles and changed at run time.
#[derive(Debug)]
pub(crate) struct Levels {
    /// The lowest of the three below: what a disabled call looks at, and all it looks at.
    pub any: AtomicU8,
    /// Published from.
    pub central: AtomicU8,
    /// Printed from.
    pub local: AtomicU8,
    /// Published from for attached readers.
    pub attached: AtomicU8,
    /// What is done about repetitions.
    pub repeat: Mutex<RepeatGuard>,
}

impl Levels {
    /// As settings say.
    pub fn new(named: Named) -> Levels {
        let (central, local) = (named.central.number(), named.local.number());
        Levels {
            any: AtomicU8::new(central.min(local)),
            central: AtomicU8::new(central),
            local: AtomicU8::new(local),
            attached: AtomicU8::new(Threshold::Off.number()),
            repeat: Mutex::new(named.repeat),
        }
    }

    /// What is done about repetitions.
    pub fn repeat(&self) -> RepeatGuard {
        *lock(&self.repeat)
    }

    /// Renews what a disabled call looks at. Two threads may change the two thresholds at once, so whoever stores last looks
    /// again: what it had read may be what the other has just replaced, and a level would stay disabled that is not.
    pub fn renew(&self) {
        let cells = [&self.central, &self.local, &self.attached];
        let lower = || cells.iter().map(|cell| cell.load(Ordering::SeqCst)).fold(u8::MAX, u8::min);
        let mut stored = lower();
        self.any.store(stored, Ordering::SeqCst);
        while lower() != stored {
            stored = lower();
            self.any.store(stored, Ordering::SeqCst);
        }
    }

    /// Whether records of this level are printed.
    pub fn prints(&self, level: Level) -> bool {
        self.local.load(Ordering::Relaxed) <= level.number()
    }
}

/// The fields a logger adds to its records. In a log ring's dictionary they stand as JSON (`spec/log-call.md`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Identity {
    pub logger: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_object: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub array: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub antenna: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stack_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_level: Option<i32>,
}

impl Identity {
    /// As it stands in a dictionary.
    pub fn encode(&self) -> Vec<u8> {
        // Strings, numbers and lists of strings: there is nothing in them that JSON cannot hold.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Out of a dictionary; fields of a later release are not looked at.
    pub fn decode(bytes: &[u8]) -> Result<Identity, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Fills in what a record made by hand leaves empty.
    pub fn complete(&self, record: &mut LogRecord, settings: &LogSettings) {
        if record.time.0 == 0 {
            record.time = now();
        }
        for (field, own) in [(&mut record.host, &settings.host), (&mut record.process, &settings.process)] {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if record.thread.is_empty() {
            record.thread = this_thread();
        }
        self.lend(record);
    }

    /// Fills in the fields that are its own, where a record leaves them empty.
    pub fn lend(&self, record: &mut LogRecord) {
        for (field, own) in [
            (&mut record.logger, &self.logger),
            (&mut record.source_object, &self.source_object),
            (&mut record.context, &self.context),
            (&mut record.array, &self.array),
            (&mut record.antenna, &self.antenna),
            (&mut record.run_id, &self.run_id),
            (&mut record.stack_id, &self.stack_id),
        ] {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if record.audiences.is_empty() {
            record.audiences.clone_from(&self.audiences);
        }
        record.stack_level = record.stack_level.or(self.stack_level);
    }
}

fn this_thread() -> String {
    match std::thread::current().name() {
        Some(name) => name.to_owned(),
        None => format!("thread-{}", rustix::thread::gettid().as_raw_nonzero()),
    }
}

/// One logger's identity, and the numbers of the records made by hand in its name.
#[derive(Clone)]
pub(crate) struct Voice {
    pub identity: Arc<Identity>,
    /// Its number in the dictionary of the log rings; 0 where it has none.
    pub id: u32,
    /// The ring in the ids of records made by hand in its name.
    pub ring: u32,
    /// The next record made by hand.
    pub next: Arc<AtomicU64>,
    /// Who listens; of another process it is not known, and its records had passed already.
    levels: Option<Arc<Levels>>,
}

impl Voice {
    pub fn new(identity: Identity, id: u32, ring: u32, levels: Arc<Levels>) -> Voice {
        Voice { identity: Arc::new(identity), id, ring, next: Arc::default(), levels: Some(levels) }
    }

    /// Out of the rings of a process that is not this one.
    pub fn of_another_process(identity: Identity) -> Voice {
        Voice { identity: Arc::new(identity), id: 0, ring: 0, next: Arc::default(), levels: None }
    }

    /// The partition its records are published in.
    pub fn partition(&self) -> Partition {
        Partition::of(self.identity.audiences.iter().map(String::as_str))
    }

    /// What is done about repetitions of its records now.
    pub fn repeat(&self) -> RepeatGuard {
        self.levels.as_ref().map(|levels| levels.repeat()).unwrap_or_default()
    }

    /// Whether records of a level are printed now; those of another process are not.
    pub fn prints(&self, level: Level) -> bool {
        self.levels.as_ref().is_some_and(|levels| levels.prints(level))
    }

    /// How far records of a level go now.
    pub fn reach(&self, level: Level) -> Reach {
        let passes = |cell: &AtomicU8| cell.load(Ordering::Relaxed) <= level.number();
        match &self.levels {
            Some(levels) if passes(&levels.central) => Reach::Central,
            Some(levels) if passes(&levels.attached) => Reach::Attached,
            Some(_) => Reach::Local,
            None => Reach::Central,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_the_dictionary() {
        let identity = Identity {
            logger: "mount".to_owned(),
            audiences: vec!["Operator".to_owned()],
            stack_level: Some(2),
            ..Identity::default()
        };
        let bytes = identity.encode();
        let page = include_str!("../../../../spec/log-call.md");
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split('\n').next()).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), example);
        assert_eq!(Identity::decode(&bytes).unwrap(), identity);
        assert_eq!(Identity::decode(br#"{"logger":"x","of_tomorrow":1}"#).unwrap().logger, "x");
        assert!(Identity::decode(b"\xff").is_err());
    }
}
