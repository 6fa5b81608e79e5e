//! One record in a ring, and walking from one to the next.
//!
//! ```text
//!  0  u64 ticks                      when the call was made
//!  8  u32 site     u32 length        0: a note of the ring itself; bytes of payload
//! 16  u32 voice    u32 stamp         the logger, or the kind of note; the position of this record / 8, its low 32 bits
//! 24  payload, then up to a multiple of 8
//! ```
//! The stamp proves that a header was written at its position, in this round of the ring: older bytes do not pass.
//!
//! Notes describe the records around them. A *thread note* (voice 1) names the thread of the following records; it has
//! no number, because it becomes no log record. A *loss note* (voice 2) marks missing records and has a number like a
//! record. It holds all losses of this ring so far, not those since the last note. So the difference to the reported
//! losses of the cursor is right however often the drainer dies between the two. A *long note* (voice 3) replaces a
//! record whose payload is in a file of its own (`files/long.rs`), and is numbered as that record. Notes of an unknown
//! kind belong to a later release and are skipped.

use crate::{
    header::{Counts, Cursor, LEVELS, Losses},
    thread::Thread,
};

/// A payload in a file of its own, as its note in the ring describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongPayload {
    /// Position of its note in the ring's stream.
    pub position: u64,
    /// Bytes of payload.
    pub length: u64,
    /// CRC-32C of them.
    pub checksum: u32,
}

/// Bytes before the payload.
pub(crate) const HEADER: usize = 24;
/// The site that no call site has.
pub(crate) const NOTE: u32 = 0;
const THREAD_NOTE: u32 = 1;
const LOSS_NOTE: u32 = 2;
/// The kind of a note that refers to a payload in a file of its own.
pub(crate) const LONG_NOTE: u32 = 3;
/// Bytes of its payload.
pub(crate) const LONG_NOTE_LEN: usize = 24;
/// Bytes of a loss note in the ring.
pub(crate) const LOSS_NOTE_LEN: usize = HEADER + 16 + 8 * LEVELS;

/// Bytes up to the next multiple of 8.
#[inline(always)]
pub(crate) const fn padded(length: usize) -> usize {
    (length + 7) & !7
}

/// The 24 bytes before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub ticks: u64,
    pub site: u32,
    pub length: u32,
    pub voice: u32,
    pub stamp: u32,
}

/// The stamp of a record at this position.
#[inline(always)]
pub(crate) const fn stamp(position: u64) -> u32 {
    (position >> 3) as u32
}

impl Header {
    /// Its three words in the host's order.
    #[inline(always)]
    pub fn words(self) -> [u64; 3] {
        // Two halves of a word, in the order in which they lie in memory.
        let pair = |low: u32, high: u32| {
            if cfg!(target_endian = "little") {
                u64::from(low) | u64::from(high) << 32
            } else {
                u64::from(low) << 32 | u64::from(high)
            }
        };
        [self.ticks, pair(self.site, self.length), pair(self.voice, self.stamp)]
    }

    #[inline]
    fn decode(bytes: &[u8; HEADER]) -> Header {
        let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let ticks = bytes.first_chunk().map_or(0, |ticks| u64::from_ne_bytes(*ticks));
        Header { ticks, site: half(8), length: half(12), voice: half(16), stamp: half(20) }
    }
}

/// A note as the writer puts it into the ring.
pub(crate) struct Note {
    pub voice: u32,
    pub payload: Vec<u8>,
}

impl Note {
    pub fn thread(thread: &Thread) -> Note {
        let name = thread.name_bytes();
        let mut payload = Vec::with_capacity(8 + name.len());
        payload.extend_from_slice(&thread.id().to_ne_bytes());
        payload.extend_from_slice(&(name.len() as u32).to_ne_bytes());
        payload.extend_from_slice(name);
        Note { voice: THREAD_NOTE, payload }
    }

    pub fn losses(losses: &Losses) -> Note {
        let words = [losses.first, losses.last].into_iter().chain(losses.dropped);
        Note { voice: LOSS_NOTE, payload: words.flat_map(u64::to_ne_bytes).collect() }
    }

    /// Returns the number of its bytes in a ring.
    pub fn len(&self) -> usize {
        HEADER + padded(self.payload.len())
    }
}

/// One record, loss or long payload of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its number in this ring, from 0 without gaps. With the incarnation and the ring's number, it names the entry for
    /// ever.
    pub number: u64,
    /// Time in ticks of the process's clock.
    pub ticks: u64,
    /// The thread that wrote it.
    pub thread: &'a Thread,
    /// Content of the entry.
    pub what: EntryContent<'a>,
}

/// Content of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryContent<'a> {
    /// A record, as it was committed.
    Record {
        /// Its call site, an id of the dictionary.
        site: u32,
        /// Its logger, an id of the dictionary.
        voice: u32,
        /// The raw arguments, as the call stored them.
        payload: &'a [u8],
    },
    /// A record with its payload in a file of its own.
    Long {
        /// Number of the call site.
        site: u32,
        /// Number of the logger.
        voice: u32,
        /// The file to read ([`LongPayloads::read`](crate::LongPayloads::read)).
        payload: LongPayload,
    },
    /// Here records are missing.
    Lost(Lost),
}

/// Records that found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Time of the first loss, in ticks.
    pub first: u64,
    /// Time of the last loss, in ticks.
    pub last: u64,
    /// Number of lost records, by level.
    pub counts: Counts,
    /// True for a report ahead of the ring's own notes, because no record followed the losses. Then the entry's number
    /// is the number of losses reported before, apart from the numbers of the other entries.
    pub early: bool,
}

impl Lost {
    /// Number of lost records of all levels.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// Returns the losses since `reported`; `None` if there are none.
    pub(crate) fn since(reported: &Counts, losses: &Losses) -> Option<Lost> {
        let counts = std::array::from_fn(|level| losses.dropped[level].saturating_sub(reported[level]));
        let lost = Lost { first: losses.first, last: losses.last, counts, early: false };
        (lost.total() > 0).then_some(lost)
    }
}

/// Defect of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Less than a header is left.
    #[error("the published bytes end inside a record's header")]
    Cut,
    /// The end lies beyond the published bytes.
    #[error("its length {0} reaches beyond the published bytes")]
    Length(u32),
    /// A stamp of another position.
    #[error("its stamp {0:#x} belongs to another position")]
    Stamp(u32),
    /// A note with a wrong length for its kind.
    #[error("a note of kind {0} has the wrong length")]
    Note(u32),
}

/// An entry without its thread, which the walk keeps.
pub(crate) struct FoundEntry<'a> {
    number: u64,
    ticks: u64,
    what: EntryContent<'a>,
}

impl<'a> FoundEntry<'a> {
    pub fn by(self, thread: &'a Thread) -> Entry<'a> {
        Entry { number: self.number, ticks: self.ticks, thread, what: self.what }
    }
}

/// Walks over the records of a ring.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    pub cursor: Cursor,
    /// Losses that the previous drainer had reported early and not committed: they are returned again, before all else.
    again: Option<Losses>,
}

impl Walk {
    /// Begins at a cursor, in a ring whose header has these losses. The losses up to `early` were reported early.
    pub fn new(cursor: Cursor, losses: &Losses, early: Counts) -> Walk {
        // If the words contradict each other, the ring's own notes report the losses.
        let holds = |level: usize| (cursor.reported[level]..=losses.dropped[level]).contains(&early[level]);
        let is_ahead = early != cursor.reported && (0..LEVELS).all(holds);
        Walk { cursor, again: is_ahead.then_some(Losses { dropped: early, ..*losses }) }
    }

    /// The next entry. `bytes` are those from the cursor's position to where records are complete. An error does not
    /// move the cursor, and nothing behind it can be found.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<FoundEntry<'a>>, Flaw> {
        self.next_until(bytes, u64::MAX)
    }

    /// Returns the next entry unless it was made later than `latest`.
    #[inline]
    pub fn next_until<'a>(&mut self, mut bytes: &'a [u8], latest: u64) -> Result<Option<FoundEntry<'a>>, Flaw> {
        if let Some(found) = self.again.take().and_then(|losses| self.early(&losses)) {
            return Ok(Some(found));
        }
        loop {
            let Some((header, payload, taken)) = split(self.cursor.position, bytes)? else { return Ok(None) };
            if header.ticks > latest {
                return Ok(None);
            }
            bytes = &bytes[taken..];
            if header.site != NOTE {
                self.cursor.position += taken as u64;
                let what = EntryContent::Record { site: header.site, voice: header.voice, payload };
                return Ok(Some(self.found(header.ticks, what)));
            }
            if header.voice == THREAD_NOTE {
                self.cursor.thread = read_thread(payload).ok_or(Flaw::Note(THREAD_NOTE))?;
            }
            let lost = match header {
                Header { voice: LOSS_NOTE, .. } => Some(read_losses(payload).ok_or(Flaw::Note(LOSS_NOTE))?),
                _ => None,
            };
            let long = match header {
                Header { site: NOTE, voice: LONG_NOTE, .. } => {
                    Some(read_long(self.cursor.position, payload).ok_or(Flaw::Note(LONG_NOTE))?)
                }
                _ => None,
            };
            self.cursor.position += taken as u64;
            if let Some(what) = long {
                return Ok(Some(self.found(header.ticks, what)));
            }
            let what = match lost {
                Some(losses) => {
                    let reported = std::mem::replace(&mut self.cursor.reported, losses.dropped);
                    let nothing = Lost { first: losses.first, last: losses.last, counts: [0; LEVELS], early: false };
                    EntryContent::Lost(Lost::since(&reported, &losses).unwrap_or(nothing))
                }
                None => continue,
            };
            return Ok(Some(self.found(header.ticks, what)));
        }
    }

    /// Time of the next record or note, in ticks.
    pub fn peek(&self, bytes: &[u8]) -> Option<u64> {
        let again = self.again.map(|losses| losses.last);
        again.or_else(|| split(self.cursor.position, bytes).ok().flatten().map(|(header, ..)| header.ticks))
    }

    /// Call site of the next record; 0 if a note is next.
    pub fn peek_site(&self, bytes: &[u8]) -> Option<u32> {
        if self.again.is_some() {
            return Some(0);
        }
        split(self.cursor.position, bytes).ok().flatten().map(|(header, ..)| header.site)
    }

    /// Losses reported ahead of the ring's notes: from here on they count as reported. The same losses always get the
    /// same number.
    pub fn early(&mut self, losses: &Losses) -> Option<FoundEntry<'static>> {
        let mut lost = Lost::since(&self.cursor.reported, losses)?;
        lost.early = true;
        let reported = std::mem::replace(&mut self.cursor.reported, losses.dropped);
        let number = reported.iter().fold(0, |sum: u64, count| sum.wrapping_add(*count));
        Some(FoundEntry { number, ticks: lost.last, what: EntryContent::Lost(lost) })
    }

    /// Returns the unreported losses of a dead writer, as the last entry of its ring.
    pub fn last_words(&mut self, losses: &Losses) -> Option<FoundEntry<'static>> {
        let lost = Lost::since(&self.cursor.reported, losses)?;
        self.cursor.reported = losses.dropped;
        Some(self.found(lost.last, EntryContent::Lost(lost)))
    }

    fn found<'a>(&mut self, ticks: u64, what: EntryContent<'a>) -> FoundEntry<'a> {
        let number = self.cursor.number;
        self.cursor.number = number.wrapping_add(1);
        FoundEntry { number, ticks, what }
    }
}

type Split<'a> = (Header, &'a [u8], usize);

#[inline]
fn split(position: u64, bytes: &[u8]) -> Result<Option<Split<'_>>, Flaw> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(Flaw::Cut)?;
    let header = Header::decode(header);
    if header.stamp != stamp(position) {
        return Err(Flaw::Stamp(header.stamp));
    }
    let length = header.length as usize;
    if padded(length) > rest.len() {
        return Err(Flaw::Length(header.length));
    }
    Ok(Some((header, &rest[..length], HEADER + padded(length))))
}

fn read_thread(payload: &[u8]) -> Option<Thread> {
    let (id, rest) = payload.split_first_chunk::<4>()?;
    let (length, name) = rest.split_first_chunk::<4>()?;
    let name = name.get(..u32::from_ne_bytes(*length) as usize)?;
    Some(Thread::from_parts(u32::from_ne_bytes(*id), name))
}

/// Payload of the note that refers to a payload in a file of its own.
pub(crate) fn long_note(site: u32, voice: u32, long: &LongPayload) -> [u8; LONG_NOTE_LEN] {
    let mut payload = [0; LONG_NOTE_LEN];
    payload[..4].copy_from_slice(&site.to_ne_bytes());
    payload[4..8].copy_from_slice(&voice.to_ne_bytes());
    payload[8..16].copy_from_slice(&long.length.to_ne_bytes());
    payload[16..20].copy_from_slice(&long.checksum.to_ne_bytes());
    payload
}

fn read_long(position: u64, payload: &[u8]) -> Option<EntryContent<'static>> {
    let payload: &[u8; LONG_NOTE_LEN] = payload.first_chunk()?;
    let (half, word) = (
        |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| payload[at + i])),
        |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| payload[at + i])),
    );
    Some(EntryContent::Long {
        site: half(0),
        voice: half(4),
        payload: LongPayload { position, length: word(8), checksum: half(16) },
    })
}

fn read_losses(payload: &[u8]) -> Option<Losses> {
    let (words, []) = payload.as_chunks::<8>() else { return None };
    let [first, last, dropped @ ..] = words else { return None };
    let dropped: [[u8; 8]; LEVELS] = dropped.try_into().ok()?;
    let number = u64::from_ne_bytes;
    Some(Losses { first: number(*first), last: number(*last), dropped: dropped.map(number) })
}
