//! Reading a file record by record.

use std::{borrow::Cow, io::Read};

use memchr::{memchr, memchr_iter};

use super::{
    parse,
    scan::{self, Element, Kind, Markup, Stop},
};
use crate::{bad_record::BadRecord, record::LogRecord};

/// Largest length of a record; a longer one is bad. It also bounds the memory of a reader, except for one read.
const LONGEST: usize = 64 << 20;

/// Least number of bytes to read at a time.
const READ: usize = 256 << 10;

/// Limit of bytes that are scanned again. After a record without an end, its bytes are scanned for other records.
/// Beyond this limit (and four times the bytes read) such a stretch is skipped whole: otherwise a hostile file could
/// take hours.
const SECOND_LOOKS: u64 = 64 << 20;

/// Reads the records of an ACS log file in order: an iterator of records and of bad ones.
///
/// Memory is bounded by the longest record (at most 64 MiB). A read error ends the file, and is returned as its last
/// item.
#[derive(Debug)]
pub struct AcsXmlReader<R> {
    input: R,
    file: String,
    /// Bytes read and not yet done with, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    line: u64,
    /// True if the input has ended.
    ended: bool,
    /// Error that ended the input before its end.
    failure: Option<String>,
    encoding: Encoding,
    state: State,
    consumed: u64,
    looked_again: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No element has been met.
    Fresh,
    /// Between two records.
    Between,
    /// Between records, after a bad one was reported: the rest of it is not reported again.
    Told,
    /// Behind a record without an end: only the start of another counts.
    Searching,
}

/// Next step with the bytes read so far.
#[allow(clippy::large_enum_variant)] // One lives at a time, on the stack; a box would be an allocation a record.
enum Step {
    /// No item yet; continue.
    Go,
    /// Not enough bytes.
    More,
    /// An item to return.
    Tell(Result<LogRecord, BadRecord>),
}

impl<R: Read> AcsXmlReader<R> {
    /// Reads from `input`; `file` is how bad records call it. The reader has a buffer of its own.
    pub fn new(input: R, file: impl Into<String>) -> AcsXmlReader<R> {
        AcsXmlReader {
            input,
            file: file.into(),
            buffer: Vec::new(),
            start: 0,
            line: 1,
            ended: false,
            failure: None,
            encoding: Encoding::Utf8,
            state: State::Fresh,
            consumed: 0,
            looked_again: 0,
        }
    }

    /// The line the next item is looked for in, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn consume(&mut self, bytes: usize) {
        self.line += memchr_iter(b'\n', &self.rest()[..bytes]).count() as u64;
        self.start += bytes;
        self.consumed += bytes as u64;
    }

    /// Reads at least one byte more, or finds the end. Long records double the number of bytes read each time, so that
    /// looking at them from their start again after each read stays linear.
    fn fill(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + READ.max(held), 0);
        let read = loop {
            match self.input.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let read = read.unwrap_or_else(|error| {
            self.failure = Some(error.to_string());
            0
        });
        self.ended = read == 0;
        self.buffer.truncate(held + read);
    }

    fn bad(&mut self, reason: impl Into<String>) -> BadRecord {
        self.state = State::Told;
        BadRecord { file: self.file.clone(), line: self.line, reason: reason.into() }
    }

    fn step(&mut self) -> Step {
        if self.consumed == 0 && self.rest().starts_with(b"\xef\xbb\xbf") {
            self.consume(3);
        }
        let Some(text) = memchr(b'<', self.rest()) else {
            let all = self.rest().len();
            return self.text(all, !self.ended);
        };
        if text > 0 {
            return self.text(text, false);
        }
        if self.state == State::Searching {
            return self.search();
        }
        // Nearly always a record. Its name identifies it, so that its tag is scanned only once.
        if let Some(element) = Element::of(scan::name(self.rest(), 1)).filter(|_| self.rest().len() > 64 || self.ended) {
            return self.record(Some(element));
        }
        match scan::markup(self.rest(), 0) {
            Ok(markup) => self.markup(markup),
            Err(Stop::More(_)) if self.wants_more() => Step::More,
            Err(stop) => {
                // Remains of a reported record are not reported again; the start of a record is.
                let tell = self.state != State::Told || Element::of(scan::name(self.rest(), 1)).is_some();
                let bad = self.give_up(stop, 1);
                if tell { Step::Tell(Err(bad)) } else { Step::Go }
            }
        }
    }

    /// Reports an element that has no end within the scanned bytes. Continues behind its first character, or behind all
    /// of it if too much was scanned twice already.
    fn give_up(&mut self, stop: Stop, seen: usize) -> BadRecord {
        let seen = if matches!(stop, Stop::More(_)) { self.rest().len() } else { seen };
        let mut reason = match stop {
            Stop::Broken(why) => why.to_owned(),
            Stop::More(why) if self.ended => format!("the file ends here: {why}"),
            Stop::More(why) => format!("longer than {} MiB: {why}", LONGEST >> 20),
        };
        self.looked_again += seen as u64;
        let patient = self.looked_again < SECOND_LOOKS + 4 * self.consumed;
        if !patient {
            reason += &format!("; {seen} bytes are skipped with it, as too much here was looked at twice");
        }
        let bad = self.bad(reason);
        self.state = State::Searching;
        self.consume(if patient { 1 } else { seen.max(1) });
        bad
    }

    /// Returns true if more bytes can help.
    fn wants_more(&self) -> bool {
        !self.ended && self.rest().len() < LONGEST
    }

    /// Text between records.
    fn text(&mut self, length: usize, more: bool) -> Step {
        let text = &self.rest()[..length];
        let junk = text.trim_ascii();
        if junk.is_empty() || matches!(self.state, State::Told | State::Searching) {
            self.consume(length);
            return if more { Step::More } else { Step::Go };
        }
        let shown = String::from_utf8_lossy(&junk[..junk.len().min(40)]).into_owned();
        let before = text.len() - text.trim_ascii_start().len();
        self.consume(before);
        let bad = self.bad(format!("text outside of any record: {shown:?}"));
        self.consume(length - before);
        Step::Tell(Err(bad))
    }

    /// Moves to the next `<` behind a record without an end, unless a record begins here.
    fn search(&mut self) -> Step {
        // Long enough for any record's name, unless the file ends.
        let name_is_whole = self.ended || self.rest().len() >= 64;
        if name_is_whole && Element::of(scan::name(self.rest(), 1)).is_none() {
            self.consume(1);
            return Step::Go;
        }
        let begins = match scan::markup(self.rest(), 0) {
            Ok(Markup { kind: Kind::Open | Kind::Empty, end }) => scan::begins_record(&self.rest()[..end]),
            Ok(_) => false,
            Err(Stop::More(_)) if self.wants_more() => return Step::More,
            // A record whose own tag is broken is reported as such.
            Err(_) => {
                let head = &self.rest()[..self.rest().len().min(4096)];
                Element::of(scan::name(head, 1)).is_some() && scan::has_time(head)
            }
        };
        if begins {
            self.state = State::Told;
        } else {
            self.consume(1);
        }
        Step::Go
    }

    /// Markup between records.
    fn markup(&mut self, Markup { kind, end }: Markup) -> Step {
        let tag = &self.rest()[..end];
        let (skip, opens) = if kind == Kind::Close { (2, false) } else { (1, matches!(kind, Kind::Open | Kind::Empty)) };
        let name = scan::name(tag, skip);
        let told = self.state == State::Told;
        let fresh = self.state == State::Fresh;
        if opens && Element::of(name).is_some() {
            return self.record(Element::of(name));
        }
        if opens && (scan::local(name) == b"Header" || scan::has_time(tag)) {
            return self.record(None);
        }
        let expected = match kind {
            Kind::Instruction => return self.instruction(end),
            Kind::Other => true,
            Kind::CData => false,
            Kind::Close => Element::of(name).is_none(),
            // The root under any name, or that of another file behind this one.
            Kind::Open | Kind::Empty => fresh || scan::local(name) == b"Log",
        };
        if expected || told {
            if opens {
                self.state = State::Between;
            }
            self.consume(end);
            return Step::Go;
        }
        let shown = String::from_utf8_lossy(&tag[..end.min(40)]).into_owned();
        let bad = self.bad(format!("not a record: {shown:?}"));
        self.consume(end);
        Step::Tell(Err(bad))
    }

    /// Reads an instruction: `<?xml ... encoding="..."?>` sets the encoding; others are ignored.
    fn instruction(&mut self, end: usize) -> Step {
        let text = String::from_utf8_lossy(&self.rest()[..end]).to_ascii_lowercase();
        let mut unknown = None;
        if text.starts_with("<?xml ") {
            let encoding = text.split_once("encoding").map_or("", |(_, rest)| rest);
            let encoding = encoding.split(['"', '\'']).nth(1).unwrap_or("utf-8");
            self.encoding = match encoding {
                "iso-8859-1" | "iso_8859-1" | "latin1" | "latin-1" | "iso8859-1" => Encoding::Latin1,
                "utf-8" | "utf8" | "us-ascii" | "ascii" => Encoding::Utf8,
                other => {
                    unknown =
                        Some(format!("the encoding '{other}' is not known; read as UTF-8 (ISO-8859-1 is the other one known)"));
                    Encoding::Utf8
                }
            };
        }
        let state = self.state;
        let step = match unknown {
            Some(reason) => Step::Tell(Err(self.bad(reason))),
            None => Step::Go,
        };
        self.state = state;
        self.consume(end);
        step
    }

    /// A record begins here (or, without an element, the header, or something with a time that is no record).
    fn record(&mut self, element: Option<Element>) -> Step {
        match scan::element_end(self.rest(), 0) {
            Ok(end) => self.whole(element, end),
            Err((Stop::More(_), _)) if self.wants_more() => Step::More,
            Err((stop, seen)) => Step::Tell(Err(self.give_up(stop, seen))),
        }
    }

    fn whole(&mut self, element: Option<Element>, end: usize) -> Step {
        let bytes = &self.rest()[..end];
        let name = scan::name(bytes, 1);
        let result = match element {
            Some(element) => text_of(bytes, self.encoding).and_then(|text| parse::record(&text, element)),
            None if scan::local(name) == b"Header" => {
                self.state = State::Between;
                self.consume(end);
                return Step::Go;
            }
            None => Err(format!("'{}' is not a level", String::from_utf8_lossy(name))),
        };
        let result = result.map_err(|reason| self.bad(reason));
        if result.is_ok() {
            self.state = State::Between;
        }
        self.consume(end);
        Step::Tell(result)
    }
}

/// The bytes of one record as text.
fn text_of(bytes: &[u8], encoding: Encoding) -> Result<Cow<'_, str>, String> {
    // Files that were open when a host lost its power hold stretches of zeros.
    if let Some(at) = memchr(0, bytes) {
        return Err(format!("a zero byte, {at} bytes behind its start"));
    }
    match (std::str::from_utf8(bytes), encoding) {
        (Ok(text), Encoding::Utf8) => Ok(Cow::Borrowed(text)),
        (Ok(text), Encoding::Latin1) if text.is_ascii() => Ok(Cow::Borrowed(text)),
        (_, Encoding::Latin1) => Ok(Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect())),
        (Err(error), Encoding::Utf8) => Err(format!("invalid UTF-8 {} bytes behind its start", error.valid_up_to())),
    }
}

impl<R: Read> Iterator for AcsXmlReader<R> {
    type Item = Result<LogRecord, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.ended && self.rest().is_empty() {
                let failure = self.failure.take()?;
                return Some(Err(self.bad(format!("reading stopped here: {failure}"))));
            }
            match self.step() {
                Step::Go => {}
                Step::More => self.fill(),
                Step::Tell(item) => return Some(item),
            }
        }
    }
}
