//! A frame: header and body.

/// Length of a frame's header in bytes.
pub const HEADER_LEN: usize = 24;

/// Flag of PUBLISH: the samples are sent at once.
pub const FLAG_AT_ONCE: u8 = 1;
/// Flag of ANSWER: it is the last part.
pub const FLAG_LAST: u8 = 1;
/// Flag of ANSWER: the client refuses the question; the content is the reason.
pub const FLAG_REFUSED: u8 = 2;
/// Flag of DATA: the records come from the archive.
pub const FLAG_ARCHIVED: u8 = 1;

/// Stream of a batch with records from the archive.
pub const ARCHIVE_STREAM: u32 = u32::MAX;

/// Reason for which bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// No frame has this kind.
    #[error("no frame has the kind {0}")]
    Kind(u8),
    /// The body is longer than the receiver takes.
    #[error("a frame of {length} bytes; at most {limit} are taken")]
    Long {
        /// Length in the header.
        length: u32,
        /// Longest length that is taken.
        limit: u32,
    },
    /// A counted frame without a number, or another one with one.
    #[error("{kind} has the number {number}")]
    Number {
        /// Name of the kind.
        kind: &'static str,
        /// Number in the frame.
        number: u64,
    },
    /// Reserved bytes are not 0.
    #[error("reserved bytes of the frame are not 0")]
    Reserved,
    /// The body of the frame ends too early or does not have its form.
    #[error("the body of {0} does not have its form")]
    Body(&'static str),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Kind of a frame.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// All kinds of frames.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// Returns its name in lower case, as JSON has it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Kind::$name => $text,)*
                }
            }

            /// Returns the kind with this number.
            pub fn of(number: u8) -> Option<Kind> {
                match number {
                    $($number => Some(Kind::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// First frame of the client.
    Hello = 1, "hello";
    /// Answer of the hub.
    Welcome = 2, "welcome";
    /// Number of the last frame received; also the beat.
    Ack = 3, "ack";
    /// End of the session in order, or with a reason.
    Bye = 4, "bye";
    /// Opens a subscription.
    Open = 16, "open";
    /// Total of the bytes that the client takes.
    Credit = 17, "credit";
    /// Ends a subscription, a publisher, a question or a service.
    Close = 18, "close";
    /// Opens a publisher.
    Declare = 19, "declare";
    /// Samples to publish.
    Publish = 20, "publish";
    /// Question to a service.
    Ask = 21, "ask";
    /// Begins to answer a service.
    Serve = 22, "serve";
    /// Part of the client's answer.
    Answer = 23, "answer";
    /// A subscription, a publisher or a service is open.
    Opened = 32, "opened";
    /// A stream, before its first batch.
    Stream = 33, "stream";
    /// Batch of a stream.
    Data = 34, "data";
    /// Samples that are lost.
    Gap = 35, "gap";
    /// Change of a writing process.
    Life = 36, "life";
    /// An attribute, before its first event.
    Attribute = 37, "attribute";
    /// Events of attributes.
    Events = 38, "events";
    /// A notification about an attribute without a value.
    Notice = 39, "notice";
    /// Fate of published samples.
    Receipt = 40, "receipt";
    /// Part of an answer.
    Part = 41, "part";
    /// End of a subscription, a publisher, an answer or a service.
    Ended = 42, "ended";
    /// Question of the bus to a service of the client.
    Question = 43, "question";
    /// A question whose answer nobody reads any more.
    Cancel = 44, "cancel";
}

impl Kind {
    /// Returns true if frames of this kind are numbered and repeated when a session is resumed.
    pub fn is_counted(self) -> bool {
        self as u8 >= Kind::Open as u8
    }

    /// Returns true if the client sends frames of this kind.
    pub fn is_of_client(self) -> bool {
        matches!(self as u8, 1 | 3 | 4 | 16..=31)
    }

    /// Returns the kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// Header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the body.
    pub length: u32,
    /// Kind of the frame.
    pub kind: Kind,
    /// Flags of the kind.
    pub flags: u8,
    /// Subscription, publisher, question or service; 0 for the session.
    pub id: u32,
    /// Number of a counted frame, else 0.
    pub number: u64,
}

impl FrameHeader {
    /// Reads a header. `limit` is the longest body that the receiver takes.
    pub fn decode(bytes: &[u8; HEADER_LEN], limit: u32) -> Result<FrameHeader, BadFrame> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kind = Kind::of(bytes[4]).ok_or(BadFrame::Kind(bytes[4]))?;
        let length = word(0);
        if length > limit {
            return Err(BadFrame::Long { length, limit });
        }
        if bytes[6] != 0 || bytes[7] != 0 || word(12) != 0 {
            return Err(BadFrame::Reserved);
        }
        let number = u64::from(word(16)) | u64::from(word(20)) << 32;
        if kind.is_counted() == (number == 0) {
            return Err(BadFrame::Number { kind: kind.name(), number });
        }
        Ok(FrameHeader { length, kind, flags: bytes[5], id: word(8), number })
    }

    /// Returns its bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = self.flags;
        bytes[8..12].copy_from_slice(&self.id.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

/// A frame with its body in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Header of the frame.
    pub header: FrameHeader,
    /// Body of the frame.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the first frame of `bytes`, and returns the rest; `None` if it has not arrived as a whole.
    pub fn first(bytes: &'a [u8], limit: u32) -> Result<Option<(Frame<'a>, &'a [u8])>, BadFrame> {
        let Some((header, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let header = FrameHeader::decode(header, limit)?;
        let split = rest.split_at_checked(header.length as usize);
        Ok(split.map(|(body, rest)| (Frame { header, body }, rest)))
    }

    /// Returns the number in the body of ACK, CREDIT and CANCEL.
    pub fn value(&self) -> Result<u64, BadFrame> {
        let bytes = self.body.try_into().map_err(|_| BadFrame::Body(self.header.kind.name()))?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Appends a frame to `out`. Its body is shorter than 4 GiB.
pub fn put_frame(out: &mut Vec<u8>, kind: Kind, flags: u8, id: u32, number: u64, body: &[u8]) {
    let header = FrameHeader { length: body.len() as u32, kind, flags, id, number };
    out.reserve(HEADER_LEN + body.len());
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(body);
}

/// Appends a sample to the body of PUBLISH.
pub fn put_sample(body: &mut Vec<u8>, sample: &[u8]) {
    body.extend_from_slice(&(sample.len() as u32).to_le_bytes());
    body.extend_from_slice(sample);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Samples in the body of PUBLISH, or of a batch without loans.
pub fn samples(body: &[u8]) -> impl Iterator<Item = Result<&[u8], BadFrame>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let sample = first_sample(&mut rest);
        if sample.is_none() {
            rest = &[];
        }
        Some(sample.ok_or(BadFrame::Body("publish")))
    })
}

fn first_sample<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    // A loan has the top bit, so it is longer than any body.
    let length = u32::from_le_bytes(*length) as usize;
    let (sample, _) = after.split_at_checked(length)?;
    *rest = after.split_at_checked(length.next_multiple_of(4))?.1;
    Some(sample)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_lead_back(which in 0..Kind::ALL.len(), flags: u8, id: u32, number in 1u64.., body in proptest::collection::vec(any::<u8>(), 0..50)) {
            let kind = Kind::ALL[which];
            let number = if kind.is_counted() { number } else { 0 };
            let mut bytes = Vec::new();
            put_frame(&mut bytes, kind, flags, id, number, &body);
            bytes.push(7);
            let (frame, rest) = Frame::first(&bytes, 50).unwrap().unwrap();
            let header = FrameHeader { length: body.len() as u32, kind, flags, id, number };
            prop_assert_eq!(frame, Frame { header, body: &body });
            prop_assert_eq!(rest, &[7]);
            let cut = &bytes[..bytes.len() - 2];
            prop_assert_eq!(Frame::first(cut, 50), Ok(None));
        }

        #[test]
        fn samples_lead_back(all in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..10)) {
            let mut body = Vec::new();
            all.iter().for_each(|sample| put_sample(&mut body, sample));
            let read: Vec<Vec<u8>> = samples(&body).map(|sample| sample.unwrap().to_vec()).collect();
            prop_assert_eq!(read, all);
        }

        #[test]
        fn hostile_bytes_are_errors_or_frames(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Frame::first(&bytes, 60);
            prop_assert!(samples(&bytes).count() <= bytes.len() / 4 + 1);
        }
    }

    #[test]
    fn what_is_wrong_with_a_frame_is_named() {
        let header = FrameHeader { length: 9, kind: Kind::Credit, flags: 0, id: 1, number: 1 };
        assert_eq!(FrameHeader::decode(&header.encode(), 8), Err(BadFrame::Long { length: 9, limit: 8 }));
        let bare = FrameHeader { number: 0, ..header };
        assert_eq!(FrameHeader::decode(&bare.encode(), 9), Err(BadFrame::Number { kind: "credit", number: 0 }));
        let mut unknown = header.encode();
        unknown[4] = 99;
        assert_eq!(FrameHeader::decode(&unknown, 9), Err(BadFrame::Kind(99)));
        let mut reserved = header.encode();
        reserved[13] = 1;
        assert_eq!(FrameHeader::decode(&reserved, 9), Err(BadFrame::Reserved));
        let mut body = Vec::new();
        put_sample(&mut body, b"hello");
        body.truncate(8);
        assert_eq!(samples(&body).collect::<Vec<_>>(), [Err(BadFrame::Body("publish"))]);
    }
}
