//! A ring as bytes: reading the ring of a dead process from a copy of its file.
//!
//! Decision: recovery reads files instead of mapping them. If a mapped file is shortened, the process that reads it
//! dies; a read is merely short. All of this is safe code over bytes, and accepts any bytes.

use crate::{
    files::ring_file::{BadRing, RingFile},
    header::{CURSOR_WORDS, CURSORS_AT, Counts, Cursor, EARLY_AT, HEAD_AT, HEADER_LEN, LEVELS, LOSS_AT, Losses, TURN_AT},
    record::{Entry, Walk},
};

/// The unread part of one ring, copied out of its file.
#[derive(Debug, Clone)]
pub struct RingSnapshot {
    /// Fixed part of the file.
    pub file: RingFile,
    turn: u64,
    /// Bytes from the cursor to the end of the complete records, in order.
    unread: Vec<u8>,
    begin: u64,
    losses: Losses,
    walk: Walk,
    committed: Cursor,
    ended: bool,
}

/// The header of a ring, read before the data are fetched.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub file: RingFile,
    pub turn: u64,
    pub cursor: Cursor,
    pub head: u64,
    pub losses: Losses,
    pub early: Counts,
}

impl Header {
    /// Reads the first bytes (at least [`HEADER_LEN`]) of a file of this length.
    pub fn decode(bytes: &[u8], length: u64) -> Result<Header, BadRing> {
        let file = RingFile::decode(bytes, length)?;
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(BadRing::Short(bytes.len() as u64))?;
        let words = header.as_chunks::<8>().0;
        let word = |at: usize| u64::from_ne_bytes(words[at / 8]);
        let turn = word(TURN_AT);
        let begin = CURSORS_AT[(turn & 1) as usize];
        let cursor = Cursor::from_words(&std::array::from_fn::<_, CURSOR_WORDS, _>(|index| word(begin + 8 * index)));
        let dropped = std::array::from_fn::<_, LEVELS, _>(|level| word(LOSS_AT + 32 + 8 * level));
        let losses = Losses { first: word(LOSS_AT + 16), last: word(LOSS_AT + 24), dropped };
        let early = std::array::from_fn::<_, LEVELS, _>(|level| word(EARLY_AT + 8 * level));
        let (head, position) = (word(HEAD_AT), cursor.position);
        let possible = head.checked_sub(position).is_some_and(|waiting| waiting <= file.size);
        if !possible || !head.is_multiple_of(8) || !position.is_multiple_of(8) {
            return Err(BadRing::Words { head, position, size: file.size });
        }
        Ok(Header { file, turn, cursor, head, losses, early })
    }

    /// Places of the unread bytes in the file: one piece, and a second if they go round the end.
    pub fn pieces(&self) -> [(u64, usize); 2] {
        let waiting = self.head - self.cursor.position;
        let begin = self.cursor.position & (self.file.size - 1);
        let first = waiting.min(self.file.size - begin);
        let data = u64::from(self.file.header);
        [(data + begin, first as usize), (data, (waiting - first) as usize)]
    }
}

impl RingSnapshot {
    /// Reads a whole ring file.
    pub fn parse(bytes: &[u8]) -> Result<RingSnapshot, BadRing> {
        let header = Header::decode(bytes, bytes.len() as u64)?;
        let piece = |(offset, length): (u64, usize)| bytes.get(offset as usize..).and_then(|from| from.get(..length));
        let unread = header.pieces().into_iter().filter_map(piece).flatten().copied().collect();
        Ok(RingSnapshot::new(header, unread))
    }

    /// Makes a ring whose unread bytes have been fetched already.
    pub(crate) fn new(header: Header, unread: Vec<u8>) -> RingSnapshot {
        let Header { file, turn, cursor, losses, early, .. } = header;
        let walk = Walk::new(cursor, &losses, early);
        RingSnapshot { file, turn, unread, begin: cursor.position, losses, walk, committed: cursor, ended: false }
    }

    fn rest(&self) -> &[u8] {
        rest(&self.unread, self.begin, &self.walk)
    }

    /// Returns the next entry; the unreported losses of the process come last. After an error there are no more
    /// entries.
    pub fn next_entry(&mut self) -> Option<Result<Entry<'_>, BadRing>> {
        if self.ended {
            return None;
        }
        let rest = rest(&self.unread, self.begin, &self.walk);
        match self.walk.next(rest) {
            Ok(Some(found)) => Some(Ok(found.by(&self.walk.cursor.thread))),
            Ok(None) => {
                self.ended = true;
                Some(Ok(self.walk.last_words(&self.losses)?.by(&self.walk.cursor.thread)))
            }
            Err(flaw) => {
                self.ended = true;
                let offset = u64::from(self.file.header) + (self.walk.cursor.position & (self.file.size - 1));
                Some(Err(BadRing::Record { offset, flaw, unread: rest.len() as u64 }))
            }
        }
    }

    /// Time of the next entry, in ticks.
    pub fn peek(&self) -> Option<u64> {
        self.walk.peek(self.rest())
    }

    /// Position of the walk: the cursor to commit once everything before it has been handed off.
    pub fn mark(&self) -> Cursor {
        self.walk.cursor
    }

    /// Returns true if everything readable has been walked over and committed.
    pub fn is_done(&self) -> bool {
        self.ended && self.committed == self.walk.cursor
    }

    /// Bytes of this cursor in the file: the pieces to write, each before the next.
    pub(crate) fn commit(&mut self, cursor: &Cursor) -> [(u64, Vec<u8>); 3] {
        self.committed = *cursor;
        self.turn = self.turn.wrapping_add(1);
        let words = cursor.to_words().into_iter().flat_map(u64::to_ne_bytes).collect();
        let place = CURSORS_AT[(self.turn & 1) as usize] as u64;
        let turn = self.turn.to_ne_bytes().to_vec();
        [(place, words), (TURN_AT as u64, turn), (crate::header::TAIL_AT as u64, cursor.position.to_ne_bytes().to_vec())]
    }
}

fn rest<'a>(unread: &'a [u8], begin: u64, walk: &Walk) -> &'a [u8] {
    unread.get((walk.cursor.position - begin) as usize..).unwrap_or_default()
}
