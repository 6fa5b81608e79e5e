//! Messages in a byte stream: lines, or syslog's two ways of RFC 6587, distinguished message by message.
//!
//! ```text
//! 27 <34>1 - host su - ID47 - x          octet counting: the length, a blank, that many bytes
//! <34>Oct 11 22:14:15 host su: x LF      non-transparent framing: LF (or NUL) ends a message
//! ```
//! A message that begins with a number, a blank and `<` is counted; all others are lines. The value accepts bytes in
//! any pieces and returns whole messages. It holds at most the bytes of one message. A message longer than the bound is
//! cut, and [`Frame::whole`] has its length.

use memchr::{memchr, memchr2};

/// Separation of messages in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// LF, also CR LF, ends a message.
    Lines,
    /// Frames of RFC 6587: counted, or ended by LF or NUL.
    Syslog,
}

/// One message of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The bytes of the message, up to the bound.
    pub bytes: &'a [u8],
    /// Length of the whole message in bytes, also if only its beginning is kept.
    pub whole: u64,
    /// True if the stream ended inside the message.
    pub broken_off: bool,
}

/// The longest length that is read as one: nine digits.
const COUNT_DIGITS: usize = 9;

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between messages, or in a possible length.
    Start,
    Line {
        seen: u64,
    },
    Counted {
        whole: u64,
        left: u64,
    },
}

/// A stream of bytes that becomes messages.
#[derive(Debug)]
pub struct Frames {
    framing: Framing,
    limit: usize,
    state: State,
    /// The beginning of the message that is under way.
    held: Vec<u8>,
}

enum Beginning {
    Undecided,
    Line,
    Counted(u64),
}

impl Frames {
    /// Makes a reader of a stream whose messages are cut at this many bytes (at least 16).
    pub fn new(framing: Framing, limit: usize) -> Frames {
        Frames { framing, limit: limit.max(16), state: State::Start, held: Vec::new() }
    }

    /// Takes the next bytes; calls `sink` with each complete message. Empty lines are skipped.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        let mut bytes = bytes;
        while let Some(&first) = bytes.first() {
            match self.state {
                State::Start if self.held.is_empty() && matches!(first, b'\n' | b'\r' | 0) => bytes = &bytes[1..],
                State::Start => match self.beginning(first) {
                    Beginning::Undecided => {
                        self.held.push(first);
                        bytes = &bytes[1..];
                    }
                    Beginning::Line => self.state = State::Line { seen: self.held.len() as u64 },
                    Beginning::Counted(whole) => {
                        self.held.clear();
                        self.state = State::Counted { whole, left: whole };
                    }
                },
                State::Line { seen } => bytes = self.line(seen, bytes, sink),
                State::Counted { whole, left } => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    self.hold(&bytes[..here]);
                    bytes = &bytes[here..];
                    let left = left - here as u64;
                    self.state = State::Counted { whole, left };
                    if left == 0 {
                        self.emit(whole, false, sink);
                    }
                }
            }
        }
    }

    /// Ends the stream: returns the rest, which has no end mark.
    pub fn end(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        match self.state {
            State::Start if self.held.is_empty() => {}
            // A last line without a line end is complete.
            State::Start => self.emit(self.held.len() as u64, false, sink),
            State::Line { seen } => self.emit(seen, false, sink),
            State::Counted { whole, .. } => self.emit(whole, true, sink),
        }
    }

    /// Returns the kind of the message with the held beginning and this next byte.
    fn beginning(&self, next: u8) -> Beginning {
        if self.framing == Framing::Lines {
            return Beginning::Line;
        }
        let digits = match self.held.split_last() {
            Some((b' ', digits)) => {
                let count = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                return match count {
                    Some(count) if next == b'<' => Beginning::Counted(count),
                    _ => Beginning::Line,
                };
            }
            _ => self.held.len(),
        };
        match next {
            b'1'..=b'9' if digits == 0 => Beginning::Undecided,
            b'0'..=b'9' if (1..COUNT_DIGITS).contains(&digits) => Beginning::Undecided,
            b' ' if digits > 0 => Beginning::Undecided,
            _ => Beginning::Line,
        }
    }

    fn line<'a>(&mut self, seen: u64, bytes: &'a [u8], sink: &mut dyn FnMut(Frame<'_>)) -> &'a [u8] {
        let end = match self.framing {
            Framing::Lines => memchr(b'\n', bytes),
            Framing::Syslog => memchr2(b'\n', 0, bytes),
        };
        let Some(end) = end else {
            self.hold(bytes);
            self.state = State::Line { seen: seen + bytes.len() as u64 };
            return &[];
        };
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        if self.held.is_empty() && end <= self.limit {
            // The frame is whole in the new bytes: nothing is copied.
            self.state = State::Start;
            hand_out(line, end as u64, false, sink);
        } else {
            self.hold(line);
            self.emit(seen + end as u64, false, sink);
        }
        rest
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.held.len()).min(bytes.len());
        self.held.extend_from_slice(&bytes[..room]);
    }

    fn emit(&mut self, whole: u64, broken_off: bool, sink: &mut dyn FnMut(Frame<'_>)) {
        self.state = State::Start;
        hand_out(&self.held, whole, broken_off, sink);
        self.held.clear();
    }
}

fn hand_out(bytes: &[u8], whole: u64, broken_off: bool, sink: &mut dyn FnMut(Frame<'_>)) {
    let mut text = bytes;
    if whole == text.len() as u64 {
        while let [before @ .., b'\n' | b'\r'] = text {
            text = before;
        }
    }
    if !text.is_empty() || broken_off {
        let whole = whole - (bytes.len() - text.len()) as u64;
        sink(Frame { bytes: text, whole, broken_off });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(framing: Framing, limit: usize, pieces: &[&[u8]]) -> Vec<(String, u64, bool)> {
        let mut found = Vec::new();
        let mut frames = Frames::new(framing, limit);
        let mut sink = |frame: Frame<'_>| {
            found.push((String::from_utf8_lossy(frame.bytes).into_owned(), frame.whole, frame.broken_off));
        };
        pieces.iter().for_each(|piece| frames.push(piece, &mut sink));
        frames.end(&mut sink);
        found
    }

    fn texts(framing: Framing, bytes: &[u8]) -> Vec<String> {
        all(framing, 100, &[bytes]).into_iter().map(|(text, ..)| text).collect()
    }

    #[test]
    fn both_ways_are_told_apart_message_by_message() {
        let stream = b"5 <1>a\n<2>b\r\n\n4 <3>c<4>d\x0012 monkeys\n123\n1 x\n6 <5>e\nf<6>g";
        assert_eq!(
            texts(Framing::Syslog, stream),
            ["<1>a", "<2>b", "<3>c", "<4>d", "12 monkeys", "123", "1 x", "<5>e\nf", "<6>g"]
        );
        assert_eq!(texts(Framing::Lines, b"a\r\n\nb\x00c\n7 <1>x"), ["a", "b\0c", "7 <1>x"]);
    }

    #[test]
    fn what_is_too_long_is_cut_and_what_breaks_off_is_told() {
        let long = "x".repeat(50);
        let stream = format!("<1>{long}\n53 <2>{long}<3>\n20 <4>z");
        let found = all(Framing::Syslog, 16, &[stream.as_bytes()]);
        let cut = |number: char| format!("<{number}>{}", "x".repeat(13));
        let expected =
            [(cut('1'), 53, false), (cut('2'), 53, false), ("<3>".to_owned(), 3, false), ("<4>z".to_owned(), 20, true)];
        assert_eq!(found, expected);
        // An impossible length.
        assert_eq!(all(Framing::Syslog, 16, &[b"999999999 <1>"]), [("<1>".to_owned(), 999_999_999, true)]);
        assert_eq!(all(Framing::Syslog, 16, &[b"9999999999 <1>\n"]), [("9999999999 <1>".to_owned(), 14, false)]);
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'<'), Just(b'1'), Just(b'7'), any::<u8>()], 0..120),
            cuts in proptest::collection::vec(0usize..120, 0..6),
            syslog in any::<bool>(),
        ) {
            let framing = if syslog { Framing::Syslog } else { Framing::Lines };
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(all(framing, 24, &pieces), all(framing, 24, &[&bytes]));
        }
    }
}
