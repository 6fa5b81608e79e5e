//! The packet that is filling: records encoded as they come, straight into what will be published.

use std::fmt::Display;

use tampu_types::{
    Incarnation, LogRecord, Time,
    log_batch::{LogBatchBuilder, OriginId, OriginParts, PushError, RecordParts},
};

use crate::logger::{
    scratch::{Scratch, ThreadMark},
    settings::LogSettings,
    site::CallSite,
    voice::Voice,
};

/// One call of a log statement.
pub(crate) struct Called<'a> {
    pub time: Time,
    pub thread: ThreadMark,
    pub number: u64,
    pub site: &'static CallSite,
    pub texts: &'a Scratch,
    pub values: &'a [(&'static str, &'a dyn Display)],
}

/// Which origin a call has; compared instead of a dozen strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Key {
    site: usize,
    ring: u32,
    thread: u64,
}

/// Origins met lately; the builder keeps them from packet to packet, by a hash of their key. A collision costs a look into the builder's table, no more.
const RECENT: usize = 64;

pub(crate) struct Packet {
    life: Incarnation,
    builder: LogBatchBuilder,
    records: u32,
    recent: Box<[Option<(Key, OriginId)>; RECENT]>,
    /// Sealed before, but the queue had no room.
    waiting: Option<(Vec<u8>, u32)>,
}

impl Packet {
    pub fn new(life: Incarnation) -> Packet {
        Packet { life, builder: LogBatchBuilder::new(), records: 0, recent: Box::new([None; RECENT]), waiting: None }
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0 && self.waiting.is_none()
    }

    /// Whether the next record needs a new packet.
    pub fn is_full(&self, settings: &LogSettings) -> bool {
        self.waiting.is_some() || self.records as usize >= settings.packet_records || self.builder.len() >= settings.packet_bytes
    }

    /// Adds the record of a log statement; false where it is too large for any packet.
    pub fn push_call(&mut self, called: Called<'_>, voice: &Voice, settings: &LogSettings) -> bool {
        let key = Key { site: std::ptr::from_ref(called.site) as usize, ring: voice.ring, thread: called.thread.0 };
        let identity = &voice.identity;
        let record = RecordParts {
            time: called.time,
            ring: voice.ring,
            number: called.number,
            level: called.site.level,
            message: called.texts.message(),
            stack_id: &identity.stack_id,
            stack_level: identity.stack_level,
            ..RecordParts::default()
        };
        let values = || called.values.iter().enumerate().map(|(index, (name, _))| (*name, called.texts.value(index)));
        let origin = self.origin(key, called.site, voice, settings);
        let mut pushed = self.builder.push(origin, &record, values());
        if matches!(pushed, Err(PushError::StaleOrigin)) {
            self.recent.fill(None);
            let origin = self.origin(key, called.site, voice, settings);
            pushed = self.builder.push(origin, &record, values());
        }
        self.count(pushed)
    }

    fn count(&mut self, pushed: Result<(), PushError>) -> bool {
        self.records += u32::from(pushed.is_ok());
        pushed.is_ok()
    }

    fn origin(&mut self, key: Key, site: &CallSite, voice: &Voice, settings: &LogSettings) -> OriginId {
        let slot = ((key.site >> 4) ^ (key.ring as usize).wrapping_mul(31) ^ (key.thread as usize).wrapping_mul(7)) % RECENT;
        if let Some((known, origin)) = self.recent[slot]
            && known == key
        {
            return origin;
        }
        let identity = &voice.identity;
        let audiences: Vec<&str> = identity.audiences.iter().map(String::as_str).collect();
        let origin = self.builder.origin(&OriginParts {
            incarnation: Some(self.life),
            logger: &identity.logger,
            file: site.file,
            line: Some(site.line),
            routine: site.routine(),
            host: &settings.host,
            process: &settings.process,
            thread: &ThreadMark::name(),
            context: &identity.context,
            source_object: &identity.source_object,
            audiences: &audiences,
            array: &identity.array,
            antenna: &identity.antenna,
            run_id: &identity.run_id,
            ..OriginParts::default()
        });
        self.recent[slot] = Some((key, origin));
        origin
    }

    /// Adds a record made by hand; false where it is too large for any packet.
    pub fn push_record(&mut self, record: &LogRecord) -> bool {
        let pushed = self.builder.push_record(record);
        self.count(pushed)
    }

    /// Takes out what is there and how many records it holds: first what waited, else what has gathered, into this buffer.
    pub fn seal(&mut self, buffer: Vec<u8>) -> (Vec<u8>, u32) {
        if let Some(waiting) = self.waiting.take() {
            return waiting;
        }
        let mut bytes = buffer;
        bytes.clear();
        bytes.extend_from_slice(self.builder.seal());
        self.builder.reset();
        (bytes, std::mem::take(&mut self.records))
    }

    /// Puts back what found no room in the queue; it goes first next time.
    pub fn unseal(&mut self, bytes: Vec<u8>, records: u32) {
        self.waiting = Some((bytes, records));
    }
}
