//! Renders the entries of log rings: looks up the numbers of a record in the dictionary and makes its text. Appends the
//! record to the packet of its stream and to the local output.
//!
//! The rings of this process and those of a dead process take the same path. The rings of a dead process are not
//! printed, and neither rate nor repeat limits apply to them.

use std::sync::Arc;

use tampu_ring::{Definition, Definitions, Entry, EntryContent, Kind, LongPayloads, Lost, Reader};
use tampu_text::{Rendered, Site};
use tampu_types::{Datum, Incarnation, Level, LogRecord, RecordId, Time};

use crate::logger::{
    fields::LoggerFields,
    identity::LoggerIdentity,
    levels::LoggerLevels,
    local::Printer,
    packet::{Called, thread_name},
    packet_builder::PacketBuilder,
    rate_limits::{self, REPEAT_COUNT, RateLimits, Suppressed},
    record,
    repeat::RepeatGuard,
    shared::LoggerShared,
    stream::{PacketSize, Reach, StreamKey},
};

/// Part of the message of each record that reports lost records; the collector searches for it.
pub(crate) const LOSS_MESSAGE: &str = " records lost here:";

/// Base of the ring numbers in the ids of early loss records, which precede the ring's own notes.
pub(crate) const EARLY_LOSS_RINGS: u32 = 3 << 30;

/// Dictionary of the numbers in records.
pub(crate) trait Dictionary {
    /// Returns the definition of this number.
    fn look_up(&mut self, id: u32) -> Option<&Definition>;
}

impl Dictionary for Reader {
    fn look_up(&mut self, id: u32) -> Option<&Definition> {
        self.get(id)
    }
}

impl Dictionary for Definitions {
    fn look_up(&mut self, id: u32) -> Option<&Definition> {
        self.get(id)
    }
}

struct Known {
    site: Site,
    level: Level,
    speaks_for_itself: bool,
}

/// One process's rings on their way into packets.
pub(crate) struct RecordRenderer {
    pub packets: PacketBuilder,
    life: Incarnation,
    host: String,
    process: String,
    sites: Vec<Option<Known>>,
    identities: Vec<Option<KnownLogger>>,
    rendered: Rendered,
    /// The process itself, if the records are its own.
    own: Option<OwnProcess>,
    /// The number of whole records in the position of a call site's; 0 while it is unknown.
    record_site: u32,
    /// Payloads too long for a ring.
    longs: LongPayloads,
    /// Ring and position of the long payloads that were read.
    taken_long: Vec<(u32, u64)>,
    /// Rate and repeat limits.
    pub limits: RateLimits,
}

/// The process whose records are rendered, if it is this one: its loggers and its local output.
struct OwnProcess {
    shared: Arc<LoggerShared>,
    printer: Printer,
    /// Thresholds of the logger that the logging itself uses.
    levels: Arc<LoggerLevels>,
}

struct KnownLogger {
    identity: LoggerIdentity,
    repeat: RepeatGuard,
    /// Its streams, by reach and level; looked up when first needed.
    streams: [[Option<usize>; 10]; 2],
    /// Part of its lines between time and text, by level; made at the first use.
    leads: [Option<Box<str>>; 10],
}

/// Result of rendering one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenderOutcome {
    /// Added to this stream's packet.
    InStream(usize),
    /// Part of no packet.
    Nothing,
    /// Nothing can be made of it.
    Unreadable,
    /// Too large for any packet.
    TooLarge,
}

impl RecordRenderer {
    pub fn new(life: Incarnation, host: &str, process: &str, size: PacketSize, longs: LongPayloads) -> RecordRenderer {
        RecordRenderer {
            packets: PacketBuilder::new(life, size),
            life,
            host: host.to_owned(),
            process: process.to_owned(),
            sites: Vec::new(),
            identities: Vec::new(),
            rendered: Rendered::default(),
            own: None,
            record_site: 0,
            longs,
            taken_long: Vec::new(),
            limits: RateLimits::new(None),
        }
    }

    /// Renders the records of this process: prints them, and applies its rate and repeat limits.
    pub fn of_this_process(self, shared: Arc<LoggerShared>, printer: Printer) -> RecordRenderer {
        let levels = shared.levels(shared.settings.source.as_str());
        RecordRenderer { own: Some(OwnProcess { shared, printer, levels }), ..self }
    }

    /// Returns the printer, if there is one.
    pub fn printer(&mut self) -> Option<&mut Printer> {
        self.own.as_mut().map(|own| &mut own.printer)
    }

    /// Knows a identity before its number is looked up: one with levels that may change.
    pub fn meet(&mut self, id: u32, identity: LoggerIdentity) {
        let at = id as usize;
        if self.identities.len() <= at {
            self.identities.resize_with(at + 1, || None);
        }
        let repeat = identity.repeat();
        self.identities[at] = Some(KnownLogger { identity, repeat, streams: [[None; 10]; 2], leads: Default::default() });
    }

    /// Updates the repeat limit of each identity.
    pub fn renew_guards(&mut self) {
        self.identities.iter_mut().flatten().for_each(|logger| logger.repeat = logger.identity.repeat());
    }

    /// Returns whether the fields of this number is known.
    pub fn knows(&self, id: u32) -> bool {
        self.identities.get(id as usize).is_some_and(Option::is_some)
    }

    /// Takes an entry of this ring, made at `time`.
    pub fn take(&mut self, ring: u32, entry: &Entry<'_>, time: Time, dictionary: &mut impl Dictionary) -> RenderOutcome {
        match entry.what {
            EntryContent::Record { site, voice: logger, payload } => {
                self.learn(site, logger, dictionary);
                self.take_record(ring, entry, time, (site, logger), payload)
            }
            EntryContent::Long { site, voice: logger, payload } => {
                self.taken_long.push((ring, payload.position));
                let Ok(bytes) = self.longs.read(ring, &payload) else { return RenderOutcome::Unreadable };
                self.learn(site, logger, dictionary);
                self.take_record(ring, entry, time, (site, logger), &bytes)
            }
            // The previous drainer has reported it already.
            EntryContent::Lost(lost) if lost.total() == 0 => RenderOutcome::Nothing,
            EntryContent::Lost(lost) => {
                let ring = if lost.early { EARLY_LOSS_RINGS | ring } else { ring };
                let id = RecordId { incarnation: self.life, ring, number: entry.number };
                self.tell_lost(entry, time, &lost, id)
            }
        }
    }

    /// Returns the level of a statement's records, if the statement is known.
    pub fn level_of(&self, site: u32) -> Option<Level> {
        self.sites.get(site as usize)?.as_ref().map(|known| known.level)
    }

    fn learn(&mut self, site: u32, logger: u32, dictionary: &mut impl Dictionary) {
        let at = site as usize;
        if site != self.record_site
            && self.sites.get(at).is_none_or(Option::is_none)
            && let Some(found) = dictionary.look_up(site)
        {
            if found.kind == Kind::Made {
                self.record_site = site;
            } else if found.kind == Kind::Site
                && let Ok(site) = Site::decode(&found.bytes)
                && let Some(level) = Level::from_number(site.level)
            {
                if self.sites.len() <= at {
                    self.sites.resize_with(at + 1, || None);
                }
                let speaks_for_itself = rate_limits::speaks_for_itself(&site);
                self.sites[at] = Some(Known { site, level, speaks_for_itself });
            }
        }
        // Whole records have no logger entry of their own in the ring.
        if logger == 0 || self.knows(logger) {
            return;
        }
        if let Some(identity) = self.own.as_ref().and_then(|own| own.shared.identity_of(logger)) {
            self.meet(logger, identity);
        } else if let Some(found) = dictionary.look_up(logger)
            && found.kind == Kind::Voice
            && let Ok(fields) = LoggerFields::decode(&found.bytes)
        {
            self.meet(logger, LoggerIdentity::of_another_process(fields));
        }
    }

    fn take_record(
        &mut self,
        ring: u32,
        entry: &Entry<'_>,
        time: Time,
        (site, identity): (u32, u32),
        payload: &[u8],
    ) -> RenderOutcome {
        if site == self.record_site {
            let Some((mut record, reach)) = record::decode(payload) else { return RenderOutcome::Unreadable };
            record.id = Some(RecordId { incarnation: self.life, ring, number: entry.number });
            return self.take_whole(record, reach);
        }
        let Some(Some(known)) = self.sites.get(site as usize) else { return RenderOutcome::Unreadable };
        let Some(Some(logger)) = self.identities.get_mut(identity as usize) else { return RenderOutcome::Unreadable };
        let level = known.level;
        // The levels may have changed since the call, so that no reader wants the record.
        let reach = logger.identity.reach(level);
        let printer = self.own.as_mut().filter(|_| logger.identity.prints(level)).map(|own| &mut own.printer);
        if reach == Reach::Local && printer.is_none() {
            return RenderOutcome::Nothing;
        }
        let mut rendered = false;
        let mut repeats = None;
        if self.limits.concerns(logger.repeat) {
            if !known.speaks_for_itself {
                rendered = self.rendered.render(&known.site, payload).is_ok();
            }
            let text = if known.speaks_for_itself { "" } else { self.rendered.message() };
            let key = self.limits.key(identity, site, text);
            let suppressed = || Suppressed::Call {
                identity: logger.identity.clone(),
                site: Box::new(known.site.clone()),
                text: if text.is_empty() { rate_limits::pattern(&known.site) } else { text.into() },
            };
            let Some(passed) = self.limits.judge(logger.repeat, key, (level, time), suppressed) else {
                return RenderOutcome::Nothing;
            };
            repeats = (passed > 0).then_some((key, passed));
        }
        if !rendered && self.rendered.render(&known.site, payload).is_err() && self.rendered.message().is_empty() {
            if let Some((key, repeats)) = repeats {
                self.limits.take_back(key, repeats);
            }
            return RenderOutcome::Unreadable;
        }
        if let Some((_, repeats)) = repeats {
            self.rendered.add(REPEAT_COUNT, repeats);
        }
        let called = Called {
            time,
            ring,
            number: entry.number,
            level,
            site_id: site,
            identity_id: identity,
            site: &known.site,
            fields: &logger.identity.fields,
            thread: entry.thread,
            rendered: &self.rendered,
            host: &self.host,
            process: &self.process,
        };
        if let Some(printer) = printer {
            let lead = &mut logger.leads[level.ordinal()];
            printer.call(&called, lead.get_or_insert_with(|| printer.lead(level, &logger.identity.fields)));
        }
        if reach == Reach::Local {
            return RenderOutcome::Nothing;
        }
        let stream = *logger.streams[usize::from(reach == Reach::Attached)][level.ordinal()]
            .get_or_insert_with(|| self.packets.find(StreamKey { level, partition: logger.identity.partition(), reach }));
        if self.packets.push_call(stream, &called) { RenderOutcome::InStream(stream) } else { RenderOutcome::TooLarge }
    }

    /// Reports missing records in the log, under this id.
    fn tell_lost(&mut self, entry: &Entry<'_>, time: Time, lost: &Lost, id: RecordId) -> RenderOutcome {
        let counts: Vec<(Level, u64)> = Level::ALL
            .into_iter()
            .map(|level| (level, lost.counts.get(usize::from(level.number())).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0)
            .collect();
        // The counts of a damaged ring are arbitrary.
        let total = counts.iter().fold(0_u64, |total, (_, count)| total.saturating_add(*count));
        let mut record = LogRecord::new(Level::Warning, format!("{total}{LOSS_MESSAGE} the log ring stayed full"));
        record.time = time;
        record.thread = thread_name(entry.thread);
        record.data.push(Datum::new("lost", total.to_string()));
        record.data.extend(counts.into_iter().map(|(level, count)| Datum::new(level.name(), count.to_string())));
        record.id = Some(id);
        self.put(record)
    }

    /// The long payloads taken since the last time: when they are handed off, [`LongPayloads::remove`] is for them.
    pub fn taken_long(&mut self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.taken_long)
    }

    /// Renders a whole record, without a statement, unless a limit suppresses it.
    pub fn take_whole(&mut self, mut record: LogRecord, reach: Reach) -> RenderOutcome {
        if let Some(own) = &self.own
            && !self.limits.admit_whole(own.shared.repeat(&record.logger), &mut record, reach)
        {
            return RenderOutcome::Nothing;
        }
        self.put_whole(&record, reach)
    }

    /// Prints and publishes a whole record, according to its reach. No limit applies to it.
    pub fn put_whole(&mut self, record: &LogRecord, reach: Reach) -> RenderOutcome {
        if let Some(own) = &mut self.own {
            // The record may name a logger that this process does not have.
            let by_default = || reach == Reach::Local || own.shared.tunable().local.passes(record.level);
            if own.shared.prints(&record.logger, record.level).unwrap_or_else(by_default) {
                own.printer.record(record);
            }
        }
        if reach == Reach::Local { RenderOutcome::Nothing } else { self.publish(record, reach) }
    }

    /// Adds a record that the logging itself makes.
    pub fn put(&mut self, mut record: LogRecord) -> RenderOutcome {
        for (field, own) in
            [(&mut record.host, &self.host), (&mut record.process, &self.process), (&mut record.logger, &self.process)]
        {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if let Some(own) = self.own.as_mut().filter(|own| own.levels.prints(record.level)) {
            own.printer.record(&record);
        }
        self.publish(&record, Reach::Central)
    }

    /// Adds a complete record to its packet.
    pub fn publish(&mut self, record: &LogRecord, reach: Reach) -> RenderOutcome {
        let partition = tampu_types::Partition::of(record.audiences.iter().map(String::as_str));
        let stream = self.packets.find(StreamKey { level: record.level, partition, reach });
        if self.packets.push_record(stream, record) { RenderOutcome::InStream(stream) } else { RenderOutcome::TooLarge }
    }
}
