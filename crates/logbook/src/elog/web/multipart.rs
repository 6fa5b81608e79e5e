//! The body of a form: `multipart/form-data` as RFC 7578 has it and as ELOG's own client writes it, and `application/x-www-form-urlencoded`.
//!
//! ```text
//! as the standard has it                            as the `elog` command writes it
//! --B                                               B                            without the two dashes
//! Content-Disposition: form-data; name="cmd"        Content-Disposition: form-data; name="cmd"
//!
//! Submit                                            Submit
//! --B                                               B
//! ...; name="attfile1"; filename="a.png"            ...; name="attfile1"; filename="a.png"
//!
//! <bytes>                                           <bytes>B                     with no line end before it
//! --B--                                                                          and no end
//! ```
//! Without a text that command also leaves out the line before the first file, which then follows in the middle of the last attribute. What
//! a body begins with says which of the two it is. [`Multipart`] is a value that is asked for parts; a part's bytes are read from it as they come, so a file of any
//! size takes no memory here. What is too much or cut off ends it with an error.

use std::{
    io::{self, Read},
    ops::Range,
};

use memchr::memmem;

/// How much a body may hold.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Parts.
    pub parts: usize,
    /// Bytes of a part's head.
    pub head: usize,
    /// Bytes of a field.
    pub field: usize,
    /// Bytes of all fields together.
    pub fields: usize,
    /// Bytes of a file.
    pub file: u64,
    /// Bytes of all.
    pub total: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { parts: 2000, head: 8 << 10, field: 17 << 20, fields: 20 << 20, file: 8 << 30, total: 16 << 30 }
    }
}

/// Why a body is no form.
#[derive(Debug, thiserror::Error)]
pub enum BadBody {
    /// Its type is another, or is not said whole.
    #[error("'{0}' is no form: send multipart/form-data with a boundary, or application/x-www-form-urlencoded")]
    NoForm(String),
    /// It begins with something else.
    #[error("the form does not begin with its boundary")]
    Begin,
    /// A part's head cannot be read.
    #[error("part {0} of the form has no head that names it")]
    Head(usize),
    /// It ends before its end.
    #[error("the form ends in the middle of part {0}")]
    CutOff(usize),
    /// More than is taken.
    #[error("the form has more than {most} {what}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much is taken.
        most: u64,
    },
    /// It could not be read.
    #[error("the form could not be read: {0}")]
    Io(#[from] io::Error),
}

impl BadBody {
    /// Whether it is a matter of size.
    pub fn is_too_much(&self) -> bool {
        matches!(self, BadBody::TooMuch { .. })
    }
}

/// What the head of a part says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The field's name, in the bytes it came in.
    pub name: Vec<u8>,
    /// The file's name; empty where a browser had none to send, missing for a plain field.
    pub filename: Option<Vec<u8>>,
}

impl Head {
    /// Whether a file comes that is to be kept as one, and not a value. py_elog sends the text as a file without a name, and others as one
    /// with a name; what is imported is read at once.
    pub fn is_file(&self) -> bool {
        let read: [&[u8]; 3] = [b"text", b"csvfile", b"xmlfile"];
        self.filename.as_ref().is_some_and(|name| !name.is_empty())
            && !read.iter().any(|read| self.name.eq_ignore_ascii_case(read))
    }
}

/// Bytes read at a time; with the longest line that ends a part this is what is in memory.
const PIECE: usize = 64 << 10;
/// Bytes of a boundary; the standard has 70.
const MAX_BOUNDARY: usize = 200;
/// What `elog` begins a file with in the middle of the attribute before it.
const ORPHAN: &[u8] = b"\r\nContent-Disposition: form-data; name=\"attfile";

/// Reads the boundary of a `Content-Type`; none if it is no multipart form.
pub fn boundary(content_type: &str) -> Option<Vec<u8>> {
    let (kind, rest) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = parameter(rest.as_bytes(), b"boundary")?;
    (!value.is_empty() && value.len() <= MAX_BOUNDARY && !value.contains(&b'\n')).then_some(value)
}

/// A form in parts, read as it comes.
pub struct Multipart<R> {
    from: R,
    limits: Limits,
    /// What ends a part: `--B`, or `B` as `elog` writes it.
    mark: Vec<u8>,
    elog: bool,
    buffer: Vec<u8>,
    /// What of the buffer is not yet read.
    from_at: usize,
    ended: bool,
    read: u64,
    parts: usize,
    at: At,
    head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first line.
    Begin,
    /// Before a head.
    Head,
    /// In a part's bytes; whether none of them was read yet.
    Content(bool),
    /// After the last part.
    End,
}

/// What was found in the buffer of the bytes of a part.
enum Found {
    /// So many bytes, and no end.
    Bytes(usize),
    /// The last bytes are so many; after the end it goes on there.
    End { bytes: usize, next: usize, last: bool },
}

impl<R: Read> Multipart<R> {
    /// A form with this boundary.
    pub fn new(from: R, boundary: &[u8], limits: Limits) -> Multipart<R> {
        Multipart {
            from,
            limits,
            mark: [b"--", boundary].concat(),
            elog: false,
            buffer: Vec::new(),
            from_at: 0,
            ended: false,
            read: 0,
            parts: 0,
            at: At::Begin,
            head: Head::default(),
        }
    }

    /// The next part's head; its bytes are what is read from here until its end. What was not read of the part before is left out.
    pub fn next_part(&mut self) -> Result<Option<Head>, BadBody> {
        if self.at == At::Begin {
            self.begin()?;
        }
        let mut over = [0; 4096];
        while matches!(self.at, At::Content(_)) {
            self.content(&mut over)?;
        }
        if self.at == At::End {
            return Ok(None);
        }
        let Some(lines) = self.lines()? else {
            self.at = At::End;
            // `elog` ends with a line that begins no part; by the standard that is a form cut off.
            return if self.elog { Ok(None) } else { Err(BadBody::CutOff(self.parts)) };
        };
        self.parts += 1;
        if self.parts > self.limits.parts {
            return Err(BadBody::TooMuch { what: "parts", most: self.limits.parts as u64 });
        }
        self.head = parse_head(&self.buffer[lines.clone()]).ok_or(BadBody::Head(self.parts))?;
        self.from_at = lines.end;
        self.at = At::Content(true);
        Ok(Some(self.head.clone()))
    }

    /// All bytes of the part, at most `limit` of them.
    pub fn field(&mut self, limit: usize) -> Result<Vec<u8>, BadBody> {
        let (mut value, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            match self.content(&mut piece)? {
                0 => return Ok(value),
                read => value.extend_from_slice(&piece[..read]),
            }
            if value.len() > limit {
                return Err(BadBody::TooMuch { what: "bytes in a field", most: limit as u64 });
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.from_at..]
    }

    /// Reads more into the buffer; whether there was more.
    fn more(&mut self) -> Result<bool, BadBody> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.from_at);
        self.from_at = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + PIECE, 0);
        let read = loop {
            match self.from.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(held + read.as_ref().copied().unwrap_or(0));
        let read = read?;
        self.ended = read == 0;
        self.read += read as u64;
        if self.read > self.limits.total {
            return Err(BadBody::TooMuch { what: "bytes", most: self.limits.total });
        }
        Ok(read > 0)
    }

    /// The line before the first part says in whose way the form is written.
    fn begin(&mut self) -> Result<(), BadBody> {
        let blank = |rest: &[u8]| rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        while self.rest().len() < blank(self.rest()) + self.mark.len() + 4 && self.more()? {}
        self.from_at += blank(self.rest());
        let mut next = self.after_mark(self.rest()).filter(|_| self.rest().starts_with(&self.mark));
        if next.is_none() {
            self.elog = true;
            self.mark.drain(..2);
            next = self.after_mark(self.rest()).filter(|_| self.rest().starts_with(&self.mark));
        }
        let (next, last) = next.ok_or(BadBody::Begin)?;
        self.from_at += next;
        self.at = if last { At::End } else { At::Head };
        Ok(())
    }

    /// Where the lines of a head are, with the empty one behind them; none at the end of all.
    fn lines(&mut self) -> Result<Option<Range<usize>>, BadBody> {
        loop {
            let rest = self.rest();
            if let Some(end) = head_end(rest) {
                return match end <= self.limits.head {
                    true => Ok(Some(self.from_at..self.from_at + end)),
                    false => Err(BadBody::TooMuch { what: "bytes in a part's head", most: self.limits.head as u64 }),
                };
            }
            if rest.len() > self.limits.head {
                return Err(BadBody::TooMuch { what: "bytes in a part's head", most: self.limits.head as u64 });
            }
            if !self.more()? {
                return match self.rest().trim_ascii().is_empty() {
                    true => Ok(None),
                    false => Err(BadBody::CutOff(self.parts + 1)),
                };
            }
        }
    }

    /// Bytes of the part; 0 at its end.
    fn content(&mut self, to: &mut [u8]) -> Result<usize, BadBody> {
        let At::Content(first) = self.at else { return Ok(0) };
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            match self.look(first) {
                Some(Found::Bytes(bytes)) | Some(Found::End { bytes: bytes @ 1.., .. }) => {
                    let bytes = bytes.min(to.len());
                    to[..bytes].copy_from_slice(&self.rest()[..bytes]);
                    self.from_at += bytes;
                    self.at = At::Content(false);
                    return Ok(bytes);
                }
                Some(Found::End { next, last, .. }) => {
                    self.from_at += next;
                    self.at = if last { At::End } else { At::Head };
                    return Ok(0);
                }
                None => {
                    if !self.more()? && self.look(first).is_none() {
                        self.at = At::End;
                        return Err(BadBody::CutOff(self.parts));
                    }
                }
            }
        }
    }

    /// What is in the buffer of the part's bytes; none if more has to be read to tell.
    fn look(&self, first: bool) -> Option<Found> {
        let (rest, file) = (self.rest(), self.head.filename.is_some());
        let end = self.end(rest, first);
        let orphan = self.can_hold_orphan().then(|| memmem::find(&rest[..end.as_ref().map_or(rest.len(), |end| end.at)], ORPHAN));
        if let Some(at) = orphan.flatten() {
            return Some(Found::End { bytes: at, next: 2, last: false });
        }
        match end {
            Some(End { at, line, next: Some((next, last)) }) => {
                return Some(Found::End { bytes: at - line, next: at + next, last });
            }
            Some(End { at, next: None, .. }) => return some(at.saturating_sub(2).min(self.certain(rest))),
            None if !self.ended => return some(self.certain(rest)),
            None => {}
        }
        // `elog` without a text and a file ends behind the last value.
        let value = rest.strip_suffix(b"\r\n").unwrap_or(rest).len();
        (self.elog && !file).then_some(Found::End { bytes: value, next: rest.len(), last: true })
    }

    /// The first place that ends a part, or may when more of it has come.
    fn end(&self, rest: &[u8], first: bool) -> Option<End> {
        for at in memmem::find_iter(rest, &self.mark) {
            let line = match &rest[..at] {
                // `elog` puts no line end between a file and the boundary: one that is there is the file's.
                _ if self.elog && self.head.filename.is_some() => 0,
                [.., b'\r', b'\n'] => 2,
                [.., b'\n'] => 1,
                [] if first => 0,
                _ if self.elog => 0,
                _ => continue,
            };
            let next = self.after_mark(&rest[at..]);
            if next.is_some() || (rest.len() - at < self.mark.len() + 2 && !self.ended) {
                return Some(End { at, line, next });
            }
        }
        None
    }

    /// Bytes that no end can be among.
    fn certain(&self, rest: &[u8]) -> usize {
        let held = self.mark.len() + 4;
        rest.len().saturating_sub(if self.can_hold_orphan() { held.max(ORPHAN.len()) } else { held })
    }

    /// Whether a file can begin in the middle of this part.
    fn can_hold_orphan(&self) -> bool {
        self.elog && self.head.filename.is_none() && !self.head.name.eq_ignore_ascii_case(b"text")
    }

    /// What is behind a mark: bytes up to the next head, and whether it was the last mark.
    fn after_mark(&self, rest: &[u8]) -> Option<(usize, bool)> {
        let mark = self.mark.len();
        match rest.get(mark..)? {
            [b'\r', b'\n', ..] => Some((mark + 2, false)),
            [b'\n', ..] => Some((mark + 1, false)),
            [b'-', b'-', ..] if !self.elog => Some((mark + 2, true)),
            [] if self.elog && self.ended => Some((mark, true)),
            _ => None,
        }
    }
}

/// A part's bytes.
impl<R: Read> Read for Multipart<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.content(to).map_err(|bad| match bad {
            BadBody::Io(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })
    }
}

/// A place that ends a part.
struct End {
    at: usize,
    /// Bytes of the line end before it.
    line: usize,
    /// What is behind it; none if that has not come yet.
    next: Option<(usize, bool)>,
}

fn some(bytes: usize) -> Option<Found> {
    (bytes > 0).then_some(Found::Bytes(bytes))
}

/// Where a head ends, with the empty line behind it.
fn head_end(rest: &[u8]) -> Option<usize> {
    let behind = |at: usize| match &rest[at..] {
        [b'\n', ..] => Some(at + 1),
        [b'\r', b'\n', ..] => Some(at + 2),
        _ => None,
    };
    behind(0).or_else(|| memchr::memchr_iter(b'\n', rest).find_map(|at| behind(at + 1)))
}

fn parse_head(lines: &[u8]) -> Option<Head> {
    let line = lines.split(|&byte| byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
        name.trim_ascii().eq_ignore_ascii_case(b"content-disposition").then_some(&value[1..])
    })?;
    let filename = parameter(line, b"filename*").map(|value| extended(&value)).or_else(|| parameter(line, b"filename"));
    Some(Head { name: parameter(line, b"name")?, filename })
}

/// A parameter's value: what is between quotation marks, or up to the next `;`. A backslash is one (browsers of Windows send paths), but
/// before a quotation mark.
fn parameter(line: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        let key = rest.iter().position(|byte| matches!(byte, b'=' | b';')).unwrap_or(rest.len());
        let (is, after) = (rest[..key].trim_ascii().eq_ignore_ascii_case(name), &rest[key..]);
        let Some(value) = after.strip_prefix(b"=") else {
            rest = after.strip_prefix(b";")?;
            continue;
        };
        let value = value.trim_ascii_start();
        let (value, after) = match value.strip_prefix(b"\"") {
            Some(quoted) => quotation(quoted),
            None => {
                let end = memchr::memchr(b';', value).unwrap_or(value.len());
                (value[..end].trim_ascii().to_vec(), &value[end..])
            }
        };
        if is {
            return Some(value);
        }
        let next = memchr::memchr(b';', after)?;
        rest = &after[next + 1..];
    }
}

fn quotation(quoted: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut at = 0;
    while at < quoted.len() {
        match &quoted[at..] {
            [b'\\', b'"', ..] => {
                value.push(b'"');
                at += 2;
            }
            [b'"', after @ ..] => return (value, after),
            [byte, ..] => {
                value.push(*byte);
                at += 1;
            }
            [] => break,
        }
    }
    (value, &[])
}

/// `UTF-8''n%C3%A4me`.
fn extended(value: &[u8]) -> Vec<u8> {
    let encoded = value.splitn(3, |&byte| byte == b'\'').nth(2).unwrap_or(value);
    percent(encoded, false)
}

/// Takes `%41` for `A`, and `+` for a blank where that is so.
pub fn percent(text: &[u8], plus: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    while let Some(&byte) = text.get(at) {
        let pair = text.get(at + 1).zip(text.get(at + 2)).and_then(|(&high, &low)| digit(high).zip(digit(low)));
        match (byte, pair) {
            (b'%', Some((high, low))) => {
                out.push(high << 4 | low);
                at += 3;
                continue;
            }
            (b'+', _) if plus => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    out
}

/// The names and values of a query, or of a form in an address' way.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    text.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_at(memchr::memchr(b'=', pair).unwrap_or(pair.len()));
        (percent(name, true), percent(value.strip_prefix(b"=").unwrap_or(value), true))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_not_read_is_passed_over() {
        const B: &str = "---------------------------5E8A1B2C3D4E";
        let body = format!(
            "--{B}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{}\r\n--{B}\r\nContent-Disposition: form-data; name=\"b\"\
             \r\n\r\n1\r\n--{B}--",
            "a".repeat(200_000)
        );
        let mut parts = Multipart::new(body.as_bytes(), B.as_bytes(), Limits::default());
        parts.next_part().unwrap();
        assert_eq!(parts.next_part().unwrap().unwrap().name, b"b");
        assert!(parts.buffer.capacity() <= 4 * PIECE, "{}", parts.buffer.capacity());
    }
}
