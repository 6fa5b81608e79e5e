//! Reads frames from a connection into one buffer, where they are used without a copy.
//!
//! A read takes the rest of the current frame and the next header. So a large frame costs one system call, as in a
//! plain loop over a socket. After a small frame a read takes all available bytes, up to 256 KiB, so many small frames cost
//! one call. The buffer grows to the size of the received frames, and never beyond the agreed limit,
//! even if a header announces more.
//!
//! On a protected connection a frame comes as a sealed record, which is opened in the same place.

use std::{
    io::{self, Read},
    time::Instant,
};

use crate::{
    frame::{BadFrame, HEADER_LEN, Header, Kind},
    seal::{PREFIX, RecordOpener, TAG},
};

/// Length in bytes up to which many frames are read at once.
const SMALL: usize = 64 << 10;
/// Bytes read at once after a small frame. They stay in a processor's cache until they are used.
const AHEAD: usize = 256 << 10;

/// The result of a read.
pub(crate) enum Came {
    /// Frame, whose payload is [`FrameReader::payload`] until the next call.
    Frame(Header),
    /// Nothing arrived within the socket's timeout, or no frame before the deadline.
    Idle,
    /// The other end closed the connection, inside a frame or between two.
    Closed {
        /// True if a frame had begun.
        inside: bool,
    },
}

/// The reason for the end of reading.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Frame(#[from] BadFrame),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reader of a connection's frames.
pub(crate) struct FrameReader {
    buffer: Vec<u8>,
    /// Received bytes that are not delivered yet: from `begin` to `end`.
    begin: usize,
    end: usize,
    /// Header at `begin`, once it is here. Small frames come so fast that reading it again for each question would count.
    head: Option<Header>,
    /// Length of the payload delivered last, which lies before `begin`, and of the tag behind it.
    last: usize,
    tail: usize,
    ahead: usize,
    limit: u32,
    deadline: Option<Instant>,
    /// Keys of a protected connection.
    opener: Option<RecordOpener>,
}

impl FrameReader {
    /// Makes a reader for frames of at most this payload.
    pub fn new(limit: u32) -> FrameReader {
        FrameReader {
            buffer: vec![0; 2 * HEADER_LEN + AHEAD],
            begin: 0,
            end: 0,
            head: None,
            last: 0,
            tail: 0,
            ahead: 0,
            limit,
            deadline: None,
            opener: None,
        }
    }

    /// Sets a newly agreed limit.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.head = None;
    }

    /// Reads sealed records from here on.
    pub fn protect(&mut self, opener: RecordOpener) {
        self.opener = Some(opener);
        self.head = None;
    }

    /// Sets the time after which no read waits, even if bytes arrive that are not yet a frame.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Returns the payload of the frame delivered last.
    pub fn payload(&self) -> &[u8] {
        let end = self.begin - self.tail;
        &self.buffer[end - self.last..end]
    }

    /// Returns true if a whole frame is buffered: the socket does not signal it.
    pub fn is_ahead(&self) -> bool {
        let held = self.end - self.begin;
        self.announced().map_or(true, |whole| whole.is_some_and(|whole| held >= whole))
    }

    /// Returns true if the next frame is here whole, and goes on with the data or ends it. A sealed frame cannot be seen.
    pub fn is_data_ahead(&mut self) -> bool {
        if self.opener.is_some() {
            return false;
        }
        self.head = self.head().ok().flatten();
        let held = self.end - self.begin;
        self.head
            .is_some_and(|header| matches!(header.kind, Kind::Data | Kind::Stop) && held - HEADER_LEN >= header.length as usize)
    }

    /// Returns the header of the next frame of an open connection, once it is here.
    fn head(&self) -> Result<Option<Header>, BadFrame> {
        match (self.head, self.buffer[self.begin..self.end].first_chunk()) {
            (None, Some(head)) => Header::decode(head, self.limit).map(Some),
            (known, _) => Ok(known),
        }
    }

    /// Returns the bytes that announce the length of a frame.
    fn lead(&self) -> usize {
        if self.opener.is_some() { PREFIX } else { HEADER_LEN }
    }

    /// Returns the length of the next frame with all that surrounds it, once its first bytes are here.
    fn announced(&self) -> Result<Option<usize>, BadFrame> {
        match &self.opener {
            None => Ok(self.head()?.map(|header| HEADER_LEN + header.length as usize)),
            Some(opener) => {
                let held = &self.buffer[self.begin..self.end];
                let length = held.first_chunk().map(|prefix| opener.length(prefix, self.limit)).transpose()?;
                Ok(length.map(|length| PREFIX + length))
            }
        }
    }

    /// Takes the next frame, which is here whole.
    fn take(&mut self, whole: usize) -> Result<Header, BadFrame> {
        let header = match &mut self.opener {
            None => self.head()?.ok_or(BadFrame::Short("header"))?,
            Some(opener) => opener.open(&mut self.buffer[self.begin..self.begin + whole], self.limit)?,
        };
        self.begin += whole;
        self.head = None;
        self.last = header.length as usize;
        self.tail = if self.opener.is_some() { TAG } else { 0 };
        self.ahead = if self.last <= SMALL { AHEAD } else { self.lead() };
        Ok(header)
    }

    /// Reads the next frame.
    pub fn next(&mut self, from: &mut impl Read) -> Result<Came, ReadError> {
        (self.last, self.tail) = (0, 0);
        loop {
            let held = self.end - self.begin;
            let announced = self.announced()?;
            if let Some(whole) = announced.filter(|whole| held >= *whole) {
                return Ok(Came::Frame(self.take(whole)?));
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Came::Idle);
            }
            let wanted = (announced.unwrap_or(0) + self.lead()).max(self.lead() + self.ahead);
            self.make_room(wanted);
            let to = (self.begin + wanted).max(self.end + 1).min(self.buffer.len());
            match from.read(&mut self.buffer[self.end..to]) {
                Ok(0) => return Ok(Came::Closed { inside: held > 0 }),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(Came::Idle);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes room for so many bytes from `begin` on.
    fn make_room(&mut self, wanted: usize) {
        if self.begin + wanted <= self.buffer.len() {
            return;
        }
        // The buffer holds a header or a part of a small frame. Moving it costs less than another system call.
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if wanted > self.buffer.len() {
            self.buffer.resize(wanted, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        message::GroupKey,
        seal::{Half, RecordSealer},
    };

    /// Source of bytes in pieces of given lengths; an empty piece is a timeout.
    struct Pieces<'a> {
        bytes: &'a [u8],
        lengths: std::iter::Cycle<std::vec::IntoIter<usize>>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.lengths.next().unwrap_or(1).min(self.bytes.len()).min(into.len());
            if length == 0 && !self.bytes.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let (now, rest) = self.bytes.split_at(length);
            into[..length].copy_from_slice(now);
            self.bytes = rest;
            Ok(length)
        }
    }

    #[test]
    fn an_announced_length_is_no_memory() {
        let mut reader = FrameReader::new(1 << 20);
        let huge = Header { length: 100_000_000, ..Header::of(Kind::Data) }.encode();
        assert!(matches!(reader.next(&mut &huge[..]), Err(ReadError::Frame(BadFrame::TooLong { .. }))));
        assert!(reader.buffer.capacity() < 1 << 19);
    }

    #[test]
    fn a_whole_frame_that_was_read_ahead_is_known() {
        let data = [&Header::of(Kind::Data).over(b"abc", true).encode()[..], b"abc"].concat();
        let stop = Header::of(Kind::Stop).encode();
        let ping = Header::of(Kind::Ping).encode();
        let bytes = [&data[..], &ping, &data, &stop, &data[..50]].concat();
        let (mut reader, mut from) = (FrameReader::new(1 << 20), &bytes[..]);
        let mut ahead = Vec::new();
        for kind in [Kind::Data, Kind::Ping, Kind::Data, Kind::Stop] {
            assert!(matches!(reader.next(&mut from).unwrap(), Came::Frame(header) if header.kind == kind));
            ahead.push((reader.is_ahead(), reader.is_data_ahead()));
        }
        // The last frame is here in part.
        assert_eq!(ahead, [(true, false), (false, false), (true, true), (false, false)]);
    }

    proptest! {
        #[test]
        fn frames_come_whole_however_the_bytes_come(
            payloads in proptest::collection::vec(0usize..70_000, 1..12), lengths in proptest::collection::vec(0usize..100_000, 1..8),
            cut in 0usize..48, sealed: bool,
        ) {
            let half = Half::of_group(&GroupKey([1; 32])).unwrap();
            let mut sealer = sealed.then(|| RecordSealer::new(&half).unwrap());
            let mut bytes = Vec::new();
            let mut put = |header: Header, payload: &[u8], bytes: &mut Vec<u8>| match &mut sealer {
                Some(sealer) => sealer.seal(&header.encode(), payload, bytes).unwrap(),
                None => bytes.extend_from_slice(&[&header.encode()[..], payload].concat()),
            };
            for (index, length) in payloads.iter().enumerate() {
                let payload = vec![index as u8; *length];
                put(Header::of(Kind::Data).over(&payload, true), &payload, &mut bytes);
            }
            let whole = bytes.len();
            put(Header::of(Kind::Stop), b"", &mut bytes);
            bytes.truncate(whole + cut);
            let mut lengths = lengths;
            lengths.push(1);
            let mut from = Pieces { bytes: &bytes, lengths: lengths.into_iter().cycle() };
            let mut reader = FrameReader::new(1 << 20);
            if sealed {
                reader.protect(RecordOpener::new(&half).unwrap());
            }
            let mut seen = 0;
            loop {
                match reader.next(&mut from).unwrap() {
                    Came::Frame(header) => {
                        prop_assert_eq!(reader.payload().len(), payloads[seen]);
                        prop_assert!(header.check(reader.payload()).is_ok());
                        seen += 1;
                    }
                    Came::Idle => {}
                    Came::Closed { inside } => {
                        prop_assert_eq!(inside, cut > 0);
                        break;
                    }
                }
            }
            prop_assert_eq!(seen, payloads.len());
        }
    }
}
