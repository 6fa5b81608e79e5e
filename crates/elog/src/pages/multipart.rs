//! The body of a form: `multipart/form-data` by RFC 7578 and as ELOG's own client writes it, and
//! `application/x-www-form-urlencoded`.
//!
//! ```text
//! by the standard                                   by the `elog` command
//! --B                                               B                            without the two dashes
//! Content-Disposition: form-data; name="cmd"        Content-Disposition: form-data; name="cmd"
//!
//! Submit                                            Submit
//! --B                                               B
//! ...; name="attfile1"; filename="a.png"            ...; name="attfile1"; filename="a.png"
//!
//! <bytes>                                           <bytes>B                     with no line end before it
//! --B--                                                                          and no final boundary
//! ```
//! Without a text that command also omits the line before the first file, which then follows in the middle of the last
//! attribute. The beginning of a body distinguishes the two forms. [`Multipart`] returns the parts in order. The bytes
//! of a part are read as they arrive, so a file of any size takes no memory here. A body that is too large or truncated
//! ends with an error.

use std::{
    io::{self, Read},
    ops::Range,
};

use memchr::memmem;

/// The limits of a body.
#[derive(Debug, Clone)]
pub struct FormLimits {
    /// The number of parts.
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

impl Default for FormLimits {
    fn default() -> FormLimits {
        FormLimits { parts: 2000, head: 8 << 10, field: 17 << 20, fields: 20 << 20, file: 8 << 30, total: 16 << 30 }
    }
}

/// The reason for an invalid body.
#[derive(Debug, thiserror::Error)]
pub enum BadBody {
    /// The type is wrong, or incomplete.
    #[error("'{0}' is not a form: send multipart/form-data with a boundary, or application/x-www-form-urlencoded")]
    NoForm(String),
    /// The beginning is not a boundary.
    #[error("the form does not begin with its boundary")]
    Begin,
    /// A part's head is invalid.
    #[error("part {0} of the form has no head with its name")]
    PartHead(usize),
    /// The body is truncated.
    #[error("the form ends in the middle of part {0}")]
    CutOff(usize),
    /// The body exceeds a limit.
    #[error("the form has more than {most} {what}")]
    TooMuch {
        /// The unit that is limited.
        what: &'static str,
        /// The limit in this unit.
        most: u64,
    },
    /// The body could not be read.
    #[error("the form could not be read: {0}")]
    Io(#[from] io::Error),
}

impl BadBody {
    /// Returns true if the body is too large.
    pub fn is_too_much(&self) -> bool {
        match self {
            BadBody::TooMuch { .. } => true,
            BadBody::Io(error) => error.kind() == io::ErrorKind::FileTooLarge,
            _ => false,
        }
    }

    /// Returns true if the body was refused because the disk is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, BadBody::Io(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

/// The head of a part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartHead {
    /// The field's name, as received.
    pub name: Vec<u8>,
    /// The file's name; empty if a browser sent no file, `None` for a plain field.
    pub filename: Option<Vec<u8>>,
}

impl PartHead {
    /// Returns true if the part is a file to store, and not a value. py_elog sends the text as a file without a name,
    /// and other programs as one with a name. A file to import is read at once.
    pub fn is_file(&self) -> bool {
        let read: [&[u8]; 3] = [b"text", b"csvfile", b"xmlfile"];
        self.filename.as_ref().is_some_and(|name| !name.is_empty())
            && !read.iter().any(|read| self.name.eq_ignore_ascii_case(read))
    }
}

/// Number of bytes that are read at a time. Memory holds this piece and the longest boundary line.
const PIECE: usize = 64 << 10;
/// Maximum length of a boundary in bytes; the standard allows 70.
const MAX_BOUNDARY: usize = 200;
/// The beginning of a file that `elog` writes into the middle of the preceding attribute.
const ORPHAN: &[u8] = b"\r\nContent-Disposition: form-data; name=\"attfile";

/// Reads the boundary of a `Content-Type`; `None` if it is not a multipart form.
pub fn boundary(content_type: &str) -> Option<Vec<u8>> {
    let (kind, rest) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = parameter(rest.as_bytes(), b"boundary")?;
    (!value.is_empty() && value.len() <= MAX_BOUNDARY && !value.contains(&b'\n')).then_some(value)
}

/// A form in parts, read as it arrives.
pub struct Multipart<R> {
    from: R,
    limits: FormLimits,
    /// The end of a part: `--B`, or `B` as `elog` writes it.
    mark: Vec<u8>,
    elog: bool,
    buffer: Vec<u8>,
    /// The first unread byte of the buffer.
    from_at: usize,
    ended: bool,
    read: u64,
    parts: usize,
    at: At,
    head: PartHead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first line.
    Begin,
    /// Before a head.
    PartHead,
    /// Within the bytes of a part; true if none of them has been read.
    Content(bool),
    /// After the last part.
    End,
}

/// The bytes of a part that were found in the buffer.
enum Found {
    /// A number of bytes, without the end.
    Bytes(usize),
    /// The number of the last bytes; the next part follows after the mark.
    End { bytes: usize, next: usize, last: bool },
}

impl<R: Read> Multipart<R> {
    /// Wraps a form with this boundary.
    pub fn new(from: R, boundary: &[u8], limits: FormLimits) -> Multipart<R> {
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
            head: PartHead::default(),
        }
    }

    /// Returns the head of the next part. Reads until the part's end return its bytes. The unread rest of the previous
    /// part is skipped.
    pub fn next_part(&mut self) -> Result<Option<PartHead>, BadBody> {
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
            // `elog` ends with a line that begins no part; by the standard that is a truncated form.
            return if self.elog { Ok(None) } else { Err(BadBody::CutOff(self.parts)) };
        };
        self.parts += 1;
        if self.parts > self.limits.parts {
            return Err(BadBody::TooMuch { what: "parts", most: self.limits.parts as u64 });
        }
        self.head = parse_head(&self.buffer[lines.clone()]).ok_or(BadBody::PartHead(self.parts))?;
        self.from_at = lines.end;
        self.at = At::Content(true);
        Ok(Some(self.head.clone()))
    }

    /// Reads all bytes of the part, at most `limit` of them.
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

    /// Reads more into the buffer; returns false at the end of the body.
    fn more(&mut self) -> Result<bool, BadBody> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.from_at);
        self.from_at = 0;
        let to_owned_request = self.buffer.len();
        self.buffer.resize(to_owned_request + PIECE, 0);
        let read = loop {
            match self.from.read(&mut self.buffer[to_owned_request..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(to_owned_request + read.as_ref().copied().unwrap_or(0));
        let read = read?;
        self.ended = read == 0;
        self.read += read as u64;
        if self.read > self.limits.total {
            return Err(BadBody::TooMuch { what: "bytes", most: self.limits.total });
        }
        Ok(read > 0)
    }

    /// Reads the line before the first part, which distinguishes the two forms of a body.
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
        self.at = if last { At::End } else { At::PartHead };
        Ok(())
    }

    /// Returns the ranges of the lines of a head, with the empty line after them; `None` at the end of the body.
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

    /// Reads bytes of the part; returns 0 at its end.
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
                    self.at = if last { At::End } else { At::PartHead };
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

    /// Finds the bytes of the part in the buffer; `None` if more has to be read.
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
        // Without a text and a file, `elog` ends after the last value.
        let value = rest.strip_suffix(b"\r\n").unwrap_or(rest).len();
        (self.elog && !file).then_some(Found::End { bytes: value, next: rest.len(), last: true })
    }

    /// Returns the first position that ends a part, or that may end it once more bytes have arrived.
    fn end(&self, rest: &[u8], first: bool) -> Option<End> {
        for at in memmem::find_iter(rest, &self.mark) {
            let line = match &rest[..at] {
                // `elog` puts no line end between a file and the boundary: a line end there belongs to the file.
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

    /// Returns the number of bytes that cannot contain an end.
    fn certain(&self, rest: &[u8]) -> usize {
        let to_owned_request = self.mark.len() + 4;
        rest.len().saturating_sub(if self.can_hold_orphan() { to_owned_request.max(ORPHAN.len()) } else { to_owned_request })
    }

    /// Returns true if a file can begin in the middle of this part.
    fn can_hold_orphan(&self) -> bool {
        self.elog && self.head.filename.is_none() && !self.head.name.eq_ignore_ascii_case(b"text")
    }

    /// Reads the bytes after a mark: their number up to the next head, and true if it was the last mark.
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

/// Reads the bytes of a part.
impl<R: Read> Read for Multipart<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.content(to).map_err(|bad| match bad {
            BadBody::Io(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })
    }
}

/// A position that ends a part.
struct End {
    at: usize,
    /// Bytes of the line end before it.
    line: usize,
    /// The bytes after it; `None` if they have not arrived yet.
    next: Option<(usize, bool)>,
}

fn some(bytes: usize) -> Option<Found> {
    (bytes > 0).then_some(Found::Bytes(bytes))
}

/// Returns the end of a head, with the empty line after it.
fn head_end(rest: &[u8]) -> Option<usize> {
    let behind = |at: usize| match &rest[at..] {
        [b'\n', ..] => Some(at + 1),
        [b'\r', b'\n', ..] => Some(at + 2),
        _ => None,
    };
    behind(0).or_else(|| memchr::memchr_iter(b'\n', rest).find_map(|at| behind(at + 1)))
}

fn parse_head(lines: &[u8]) -> Option<PartHead> {
    let line = lines.split(|&byte| byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
        name.trim_ascii().eq_ignore_ascii_case(b"content-disposition").then_some(&value[1..])
    })?;
    let filename = parameter(line, b"filename*").map(|value| extended(&value)).or_else(|| parameter(line, b"filename"));
    Some(PartHead { name: parameter(line, b"name")?, filename })
}

/// Returns the value of a parameter: the text between quotation marks, or up to the next `;`. A backslash is literal,
/// because browsers on Windows send paths, except before a quotation mark.
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

/// Decodes a value such as `UTF-8''n%C3%A4me`.
fn extended(value: &[u8]) -> Vec<u8> {
    let encoded = value.splitn(3, |&byte| byte == b'\'').nth(2).unwrap_or(value);
    percent(encoded, false)
}

/// Decodes `%41` to `A`, and in forms `+` to a blank.
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

/// Returns the names and values of a query, or of a form in the encoding of an address.
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
        let mut parts = Multipart::new(body.as_bytes(), B.as_bytes(), FormLimits::default());
        parts.next_part().unwrap();
        assert_eq!(parts.next_part().unwrap().unwrap().name, b"b");
        assert!(parts.buffer.capacity() <= 4 * PIECE, "{}", parts.buffer.capacity());
    }
}
