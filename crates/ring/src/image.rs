//! A ring as bytes: reading what a dead process left, from a copy of its file.
//!
//! Decision: recovery reads files, it does not map them. A mapped file that somebody shortens kills whoever looks at it; a
//! read of it is merely short. All here is safe code over bytes, and any bytes are input.

use crate::{
    lines::{CURSOR_WORDS, CURSORS_AT, Counts, Cursor, EARLY_AT, HEAD_AT, LEVELS, LINES_LEN, LOSS_AT, Losses, TURN_AT},
    record::{Entry, Walk},
    ring_file::{BadRing, RingFile},
};

/// The unread part of one ring, copied out of its file.
#[derive(Debug, Clone)]
pub struct RingImage {
    /// What the file says of itself.
    pub file: RingFile,
    turn: u64,
    /// From the cursor to where records are complete, in order.
    unread: Vec<u8>,
    begin: u64,
    losses: Losses,
    walk: Walk,
    committed: Cursor,
    ended: bool,
}

/// What a header says, before the data are fetched.
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
    /// Reads the first bytes (at least [`LINES_LEN`]) of a file of this length.
    pub fn decode(bytes: &[u8], length: u64) -> Result<Header, BadRing> {
        let file = RingFile::decode(bytes, length)?;
        let lines: &[u8; LINES_LEN] = bytes.first_chunk().ok_or(BadRing::Short(bytes.len() as u64))?;
        let words = lines.as_chunks::<8>().0;
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

    /// Where in the file the unread bytes are: one piece, and a second where they go round the end.
    pub fn pieces(&self) -> [(u64, usize); 2] {
        let waiting = self.head - self.cursor.position;
        let begin = self.cursor.position & (self.file.size - 1);
        let first = waiting.min(self.file.size - begin);
        let data = u64::from(self.file.header);
        [(data + begin, first as usize), (data, (waiting - first) as usize)]
    }
}

impl RingImage {
    /// Reads a whole ring file.
    pub fn parse(bytes: &[u8]) -> Result<RingImage, BadRing> {
        let header = Header::decode(bytes, bytes.len() as u64)?;
        let piece = |(offset, length): (u64, usize)| bytes.get(offset as usize..).and_then(|from| from.get(..length));
        let unread = header.pieces().into_iter().filter_map(piece).flatten().copied().collect();
        Ok(RingImage::new(header, unread))
    }

    /// A ring whose unread bytes have been fetched already.
    pub(crate) fn new(header: Header, unread: Vec<u8>) -> RingImage {
        let Header { file, turn, cursor, losses, early, .. } = header;
        let walk = Walk::new(cursor, &losses, early);
        RingImage { file, turn, unread, begin: cursor.position, losses, walk, committed: cursor, ended: false }
    }

    fn rest(&self) -> &[u8] {
        rest(&self.unread, self.begin, &self.walk)
    }

    /// The next entry; the losses that the process could no longer tell come last. After an error there is nothing more.
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

    /// When the next entry was made, in ticks.
    pub fn peek(&self) -> Option<u64> {
        self.walk.peek(self.rest())
    }

    /// Where the walk stands: what to commit once everything up to here has been handed off.
    pub fn mark(&self) -> Cursor {
        self.walk.cursor
    }

    /// Whether everything that can be read has been walked over and committed.
    pub fn is_done(&self) -> bool {
        self.ended && self.committed == self.walk.cursor
    }

    /// What stands for this cursor in the file: the pieces to write, one after the other, each before the next.
    pub(crate) fn commit(&mut self, cursor: &Cursor) -> [(u64, Vec<u8>); 3] {
        self.committed = *cursor;
        self.turn = self.turn.wrapping_add(1);
        let words = cursor.to_words().into_iter().flat_map(u64::to_ne_bytes).collect();
        let place = CURSORS_AT[(self.turn & 1) as usize] as u64;
        let turn = self.turn.to_ne_bytes().to_vec();
        [(place, words), (TURN_AT as u64, turn), (crate::lines::TAIL_AT as u64, cursor.position.to_ne_bytes().to_vec())]
    }
}

fn rest<'a>(unread: &'a [u8], begin: u64, walk: &Walk) -> &'a [u8] {
    unread.get((walk.cursor.position - begin) as usize..).unwrap_or_default()
}
