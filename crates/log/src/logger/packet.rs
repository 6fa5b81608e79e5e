//! The packet that is being filled: records are encoded in order, straight into the bytes to publish.

use tampu_ring::Thread;
use tampu_text::{Rendered, Site};
use tampu_types::{
    Incarnation, Level, LogRecord, Time,
    log_batch::{LogBatchBuilder, OriginId, OriginParts, PushError, RecordParts},
};

use crate::logger::{
    fields::LoggerFields,
    stream::PacketSize,
    trace_ids::{TraceIds, may_be_id},
};

/// One call of a log statement, from a ring, with its text.
pub(crate) struct Called<'a> {
    pub time: Time,
    pub ring: u32,
    pub number: u64,
    pub level: Level,
    /// Numbers of the site and of the identity in the dictionary.
    pub site_id: u32,
    pub identity_id: u32,
    pub site: &'a Site,
    pub fields: &'a LoggerFields,
    pub thread: &'a Thread,
    pub rendered: &'a Rendered,
    pub host: &'a str,
    pub process: &'a str,
}

/// LoggerFields of a call's origin; compared instead of a dozen strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Key {
    site: u32,
    identity: u32,
    thread: u32,
}

/// Recently used origins, by a hash of their key; the builder keeps them from packet to packet. A collision only costs
/// a look-up in the builder's table.
const RECENT: usize = 64;

pub(crate) struct Packet {
    life: Incarnation,
    builder: LogBatchBuilder,
    records: u32,
    recent: Box<[Option<(Key, OriginId)>; RECENT]>,
}

impl Packet {
    pub fn new(life: Incarnation) -> Packet {
        Packet { life, builder: LogBatchBuilder::new(), records: 0, recent: Box::new([None; RECENT]) }
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Returns whether the next record needs a new packet.
    pub fn is_full(&self, size: PacketSize) -> bool {
        self.records as usize >= size.records || self.builder.len() >= size.bytes
    }

    /// Adds the record of a log statement; false where it is too large for any packet.
    pub fn push_call(&mut self, called: &Called<'_>) -> bool {
        let key = Key { site: called.site_id, identity: called.identity_id, thread: called.thread.id() };
        let has_ids = called.site.names.iter().any(|name| may_be_id(name));
        let ids = if has_ids { TraceIds::of(called.rendered.values()) } else { TraceIds::default() };
        let record = RecordParts {
            time: called.time,
            ring: called.ring,
            number: called.number,
            level: called.level,
            message: called.rendered.message(),
            stack_id: &called.fields.stack_id,
            stack_level: called.fields.stack_level,
            trace_id: ids.trace,
            span_id: ids.span,
            ..RecordParts::default()
        };
        let push = |packet: &mut Packet| {
            let origin = packet.origin(key, called);
            if ids == TraceIds::default() {
                return packet.builder.push(origin, &record, called.rendered.values());
            }
            let others = called.rendered.values().filter(|(name, value)| !ids.has(name, value));
            packet.builder.push(origin, &record, others.collect::<Vec<_>>())
        };
        let mut pushed = push(self);
        if matches!(pushed, Err(PushError::StaleOrigin)) {
            self.recent.fill(None);
            pushed = push(self);
        }
        self.count(pushed)
    }

    fn count(&mut self, pushed: Result<(), PushError>) -> bool {
        self.records += u32::from(pushed.is_ok());
        pushed.is_ok()
    }

    fn origin(&mut self, key: Key, called: &Called<'_>) -> OriginId {
        let mixed = key.site.wrapping_mul(31) ^ key.identity.wrapping_mul(7) ^ key.thread;
        let slot = mixed as usize % RECENT;
        if let Some((known, origin)) = self.recent[slot]
            && known == key
        {
            return origin;
        }
        let Called { fields, site, thread, .. } = called;
        let audiences: Vec<&str> = fields.audiences.iter().map(String::as_str).collect();
        let origin = self.builder.origin(&OriginParts {
            incarnation: Some(self.life),
            logger: &fields.logger,
            file: &site.file,
            line: site.known_line(),
            routine: &site.routine,
            host: called.host,
            process: called.process,
            thread: &thread_name(thread),
            context: &fields.context,
            source_object: &fields.source_object,
            audiences: &audiences,
            array: &fields.array,
            antenna: &fields.antenna,
            run_id: &fields.run_id,
            ..OriginParts::default()
        });
        self.recent[slot] = Some((key, origin));
        origin
    }

    /// Adds a record made by hand; returns false if it is too large for any packet.
    pub fn push_record(&mut self, record: &LogRecord) -> bool {
        let lifted = TraceIds::lifted(record);
        let pushed = self.builder.push_record(lifted.as_ref().unwrap_or(record));
        self.count(pushed)
    }

    /// Moves the gathered records to the end of this memory, and returns their number.
    pub fn seal_into(&mut self, memory: &mut Vec<u8>) -> u32 {
        memory.extend_from_slice(self.builder.seal());
        self.builder.reset();
        std::mem::take(&mut self.records)
    }
}

/// A thread's name, or its number where it has none.
pub(crate) fn thread_name(thread: &Thread) -> String {
    if thread.name().is_empty() { format!("thread-{}", thread.id()) } else { thread.name().to_owned() }
}
