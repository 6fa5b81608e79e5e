//! Makes packets and lines of what log rings hold: looks up what the numbers in a record stand for, makes its text, finds its
//! lane, prints it.
//!
//! The same for the rings of this process and for those another has left behind, which are not printed.

use std::sync::Arc;

use tampu_ring::{Definition, Definitions, Entry, Kind, Longs, Lost, Reader, What};
use tampu_text::{Rendered, Site};
use tampu_types::{Datum, Incarnation, Level, LogRecord, RecordId, Time};

use crate::logger::{
    lane::{LaneKey, Lanes, PacketSize, Reach},
    local::Printer,
    made,
    packet::{Called, thread_name},
    repeat::RepeatGuard,
    restraint::{self, REPEAT_COUNT, Restraint, Speech},
    voice::{Identity, Levels, Voice},
};

/// Rings from here on are not rings in memory: records made by hand have numbers of their own.
pub(crate) const MADE_BY_HAND: u32 = 1 << 31;

/// With the ring's number, the ring in the ids of records that tell losses ahead of the ring's own notes.
pub(crate) const TOLD_EARLY: u32 = 3 << 30;

/// What the numbers in records stand for.
pub(crate) trait Dictionary {
    /// What this number stands for.
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
pub(crate) struct Pump {
    pub lanes: Lanes,
    life: Incarnation,
    host: String,
    process: String,
    sites: Vec<Option<Known>>,
    voices: Vec<Option<Speaker>>,
    rendered: Rendered,
    /// Where the process is this one.
    printing: Option<Printing>,
    /// The number that records made by hand have instead of a call site's; 0 while none is known.
    made: u32,
    /// Payloads too long for a ring.
    longs: Longs,
    /// Of those that were taken: the ring, and the place in it.
    taken_long: Vec<(u32, u64)>,
    /// A record that no statement made, for whoever knows whether to print it.
    found: Option<(LogRecord, Reach)>,
    /// Whom it lets pass.
    pub restraint: Restraint,
}

/// What prints, and whether it prints what the logging itself says.
struct Printing {
    printer: Printer,
    own: Arc<Levels>,
}

struct Speaker {
    voice: Voice,
    repeat: RepeatGuard,
    /// Its lanes, by reach and level; found when first needed.
    lanes: [[Option<usize>; 10]; 2],
    /// What its lines have between time and text, by level; made when first needed.
    leads: [Option<Box<str>>; 10],
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// It is in this lane's packet.
    InLane(usize),
    /// It belongs into none.
    Nothing,
    /// No statement made it: [`Pump::take_made`] gives it to whoever knows whether it is printed.
    Made,
    /// Nothing can be made of it.
    Unreadable,
    /// It fits no packet.
    TooLarge,
}

impl Pump {
    pub fn new(life: Incarnation, host: &str, process: &str, size: PacketSize, longs: Longs) -> Pump {
        Pump {
            lanes: Lanes::new(life, size),
            life,
            host: host.to_owned(),
            process: process.to_owned(),
            sites: Vec::new(),
            voices: Vec::new(),
            rendered: Rendered::default(),
            printing: None,
            made: 0,
            longs,
            taken_long: Vec::new(),
            found: None,
            restraint: Restraint::new(None),
        }
    }

    /// Has records printed; those of the logging itself as the levels of its own logger say.
    pub fn printing(self, printer: Printer, own: Arc<Levels>) -> Pump {
        Pump { printing: Some(Printing { printer, own }), ..self }
    }

    /// What prints, where something does.
    pub fn printer(&mut self) -> Option<&mut Printer> {
        self.printing.as_mut().map(|printing| &mut printing.printer)
    }

    /// Knows a voice before its number is looked up: one with levels that may change.
    pub fn meet(&mut self, id: u32, voice: Voice) {
        let at = id as usize;
        if self.voices.len() <= at {
            self.voices.resize_with(at + 1, || None);
        }
        let repeat = voice.repeat();
        self.voices[at] = Some(Speaker { voice, repeat, lanes: [[None; 10]; 2], leads: Default::default() });
    }

    /// Looks again what is done about the repetitions of each voice.
    pub fn renew_guards(&mut self) {
        self.voices.iter_mut().flatten().for_each(|speaker| speaker.repeat = speaker.voice.repeat());
    }

    /// Whether a voice is known.
    pub fn knows(&self, id: u32) -> bool {
        self.voices.get(id as usize).is_some_and(Option::is_some)
    }

    /// Takes an entry of this ring, made at `time`.
    pub fn take(&mut self, ring: u32, entry: &Entry<'_>, time: Time, dictionary: &mut impl Dictionary) -> Pumped {
        match entry.what {
            What::Record { site, voice, payload } => {
                self.learn(site, voice, dictionary);
                self.take_record(ring, entry, time, (site, voice), payload)
            }
            What::Long { site, voice, payload } => {
                self.taken_long.push((ring, payload.position));
                let Ok(bytes) = self.longs.read(ring, &payload) else { return Pumped::Unreadable };
                self.learn(site, voice, dictionary);
                self.take_record(ring, entry, time, (site, voice), &bytes)
            }
            // Told before by whoever drained.
            What::Lost(lost) if lost.total() == 0 => Pumped::Nothing,
            What::Lost(lost) => {
                let ring = if lost.early { TOLD_EARLY | ring } else { ring };
                let id = RecordId { incarnation: self.life, ring, number: entry.number };
                self.tell_lost(entry, time, &lost, id)
            }
        }
    }

    /// The level of what a statement says, if it has been met.
    pub fn level_of(&self, site: u32) -> Option<Level> {
        self.sites.get(site as usize)?.as_ref().map(|known| known.level)
    }

    fn learn(&mut self, site: u32, voice: u32, dictionary: &mut impl Dictionary) {
        let at = site as usize;
        if site != self.made
            && self.sites.get(at).is_none_or(Option::is_none)
            && let Some(found) = dictionary.look_up(site)
        {
            if found.kind == Kind::Made {
                self.made = site;
            } else if found.kind == Kind::Site
                && let Ok(site) = Site::decode(&found.bytes)
                && let Some(level) = Level::from_number(site.level)
            {
                if self.sites.len() <= at {
                    self.sites.resize_with(at + 1, || None);
                }
                let speaks_for_itself = restraint::speaks_for_itself(&site);
                self.sites[at] = Some(Known { site, level, speaks_for_itself });
            }
        }
        // Records made by hand have none.
        if voice != 0
            && !self.knows(voice)
            && let Some(found) = dictionary.look_up(voice)
            && found.kind == Kind::Voice
            && let Ok(identity) = Identity::decode(&found.bytes)
        {
            self.meet(voice, Voice::of_another_process(identity));
        }
    }

    fn take_record(&mut self, ring: u32, entry: &Entry<'_>, time: Time, (site, voice): (u32, u32), payload: &[u8]) -> Pumped {
        if site == self.made {
            let Some((mut record, reach)) = made::decode(payload) else { return Pumped::Unreadable };
            record.id = Some(RecordId { incarnation: self.life, ring, number: entry.number });
            if self.printing.is_some() {
                self.found = Some((record, reach));
                return Pumped::Made;
            }
            return if reach == Reach::Local { Pumped::Nothing } else { self.publish(&record, reach) };
        }
        let Some(Some(known)) = self.sites.get(site as usize) else { return Pumped::Unreadable };
        let Some(Some(speaker)) = self.voices.get_mut(voice as usize) else { return Pumped::Unreadable };
        let level = known.level;
        // Levels may have changed since the call; then nobody wants it any more.
        let reach = speaker.voice.reach(level);
        let printer = self.printing.as_mut().filter(|_| speaker.voice.prints(level)).map(|printing| &mut printing.printer);
        if reach == Reach::Local && printer.is_none() {
            return Pumped::Nothing;
        }
        let mut rendered = false;
        let mut repeats = None;
        if self.restraint.concerns(speaker.repeat) {
            if !known.speaks_for_itself {
                rendered = self.rendered.render(&known.site, payload).is_ok();
            }
            let text = if known.speaks_for_itself { "" } else { self.rendered.message() };
            let key = self.restraint.key(voice, site, text);
            let speech = || Speech::Call {
                voice: speaker.voice.clone(),
                site: Box::new(known.site.clone()),
                text: if text.is_empty() { restraint::pattern(&known.site) } else { text.into() },
            };
            let Some(passed) = self.restraint.judge(speaker.repeat, key, (level, time), speech) else { return Pumped::Nothing };
            repeats = (passed > 0).then_some((key, passed));
        }
        if !rendered && self.rendered.render(&known.site, payload).is_err() && self.rendered.message().is_empty() {
            if let Some((key, repeats)) = repeats {
                self.restraint.take_back(key, repeats);
            }
            return Pumped::Unreadable;
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
            voice_id: voice,
            site: &known.site,
            identity: &speaker.voice.identity,
            thread: entry.thread,
            rendered: &self.rendered,
            host: &self.host,
            process: &self.process,
        };
        if let Some(printer) = printer {
            let lead = &mut speaker.leads[level.ordinal()];
            printer.call(&called, lead.get_or_insert_with(|| printer.lead(level, &speaker.voice.identity)));
        }
        if reach == Reach::Local {
            return Pumped::Nothing;
        }
        let lane = *speaker.lanes[usize::from(reach == Reach::Attached)][level.ordinal()]
            .get_or_insert_with(|| self.lanes.find(LaneKey { level, partition: speaker.voice.partition(), reach }));
        if self.lanes.push_call(lane, &called) { Pumped::InLane(lane) } else { Pumped::TooLarge }
    }

    /// Records are missing here: says so in the log, under this id.
    fn tell_lost(&mut self, entry: &Entry<'_>, time: Time, lost: &Lost, id: RecordId) -> Pumped {
        let counts: Vec<(Level, u64)> = Level::ALL
            .into_iter()
            .map(|level| (level, lost.counts.get(usize::from(level.number())).copied().unwrap_or(0)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        let mut record = LogRecord::new(Level::Warning, format!("{total} records lost here: the log ring stayed full"));
        record.time = time;
        record.thread = thread_name(entry.thread);
        record.data.push(Datum::new("lost", total.to_string()));
        record.data.extend(counts.into_iter().map(|(level, count)| Datum::new(level.name(), count.to_string())));
        record.id = Some(id);
        self.put(record)
    }

    /// The long payloads taken since the last time: when they are handed off, [`Longs::remove`] is for them.
    pub fn taken_long(&mut self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.taken_long)
    }

    /// The record of which [`Pumped::Made`] has just told.
    pub fn take_made(&mut self) -> Option<(LogRecord, Reach)> {
        self.found.take()
    }

    /// Adds a record that the logging itself makes.
    pub fn put(&mut self, mut record: LogRecord) -> Pumped {
        for (field, own) in
            [(&mut record.host, &self.host), (&mut record.process, &self.process), (&mut record.logger, &self.process)]
        {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if let Some(Printing { printer, .. }) = self.printing.as_mut().filter(|printing| printing.own.prints(record.level)) {
            printer.record(&record);
        }
        self.publish(&record, Reach::Central)
    }

    /// Adds a complete record to its packet.
    pub fn publish(&mut self, record: &LogRecord, reach: Reach) -> Pumped {
        let partition = tampu_types::Partition::of(record.audiences.iter().map(String::as_str));
        let lane = self.lanes.find(LaneKey { level: record.level, partition, reach });
        if self.lanes.push_record(lane, record) { Pumped::InLane(lane) } else { Pumped::TooLarge }
    }
}
