//! One record's XML into a record.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{ATTRIBUTE, ELEMENT, EMPTY_VALUE, ESCAPES, LOGGER, escape, scan::Element};
use crate::{
    level::Level,
    record::{ArchiveParameter, Datum, LogRecord},
    time::Time,
};

/// Reads the element in `text`, which begins a record and ends with it. The error is the reason.
pub fn record(text: &str, element: Element) -> Result<LogRecord, String> {
    let mut reader = Reader::from_str(text);
    // ACS's writers leave ampersands as they are.
    reader.config_mut().allow_dangling_amp = true;
    let (start, is_empty) = match reader.read_event().map_err(wrong)? {
        Event::Start(start) => (start, false),
        Event::Empty(start) => (start, true),
        _ => return Err("it does not begin with a tag".to_owned()),
    };
    let mut record = LogRecord::default();
    let escapes = attributes(&start, element, &mut record)?;
    if !is_empty {
        let mut logger = None;
        let mut body = Body::default();
        while let Some(child) = body.read(&mut reader, text)? {
            read_child(&mut reader, text, &child, escapes, &mut logger, &mut record)?;
        }
        record.message = body.finish(escapes);
        record.logger = logger.unwrap_or_default();
    }
    Ok(record)
}

fn wrong(error: quick_xml::Error) -> String {
    format!("no well-formed XML: {error}")
}

/// The text directly inside an element, put together from its pieces.
#[derive(Default)]
struct Body {
    text: String,
    /// Up to here nothing is cut from its end: CDATA and references are meant, blanks of plain text are layout.
    meant: usize,
}

/// A Data or Attribute element that was begun.
struct Child<'a> {
    start: BytesStart<'a>,
    is_empty: bool,
}

impl Body {
    /// Reads on to the end of the element (`None`) or to a child that is not text.
    fn read<'a>(&mut self, reader: &mut Reader<&'a [u8]>, text: &'a str) -> Result<Option<Child<'a>>, String> {
        loop {
            let before = reader.buffer_position() as usize;
            match reader.read_event().map_err(wrong)? {
                Event::Text(plain) => self.plain(&escape::line_ends(&plain.into_inner())),
                Event::CData(cdata) => self.meant(&escape::line_ends(&cdata.into_inner())),
                Event::GeneralRef(name) => {
                    let name = name.into_inner();
                    match escape::reference(&name) {
                        Some(character) => self.meant(character.encode_utf8(&mut [0; 4])),
                        None => self.meant(&format!("&{name};")),
                    }
                }
                Event::Start(start) if is_child(&start) => return Ok(Some(Child { start, is_empty: false })),
                Event::Empty(start) if is_child(&start) => return Ok(Some(Child { start, is_empty: true })),
                // Nested XML is part of the text, as it stands.
                Event::Start(start) => {
                    reader.read_to_end(start.name()).map_err(wrong)?;
                    let nested = text.get(before..reader.buffer_position() as usize).unwrap_or_default();
                    self.meant(&escape::line_ends(nested));
                }
                Event::Empty(_) => {
                    let nested = text.get(before..reader.buffer_position() as usize).unwrap_or_default();
                    self.meant(&escape::line_ends(nested));
                }
                Event::End(_) => return Ok(None),
                Event::Eof => return Err("it is not closed".to_owned()),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::DocType(_) => {}
            }
        }
    }

    fn plain(&mut self, text: &str) {
        let text = if self.text.is_empty() { text.trim_ascii_start() } else { text };
        self.text.push_str(text);
    }

    fn meant(&mut self, text: &str) {
        self.text.push_str(text);
        self.meant = self.text.len();
    }

    fn finish(mut self, escapes: bool) -> String {
        let layout = self.text[self.meant..].trim_ascii_end().len();
        self.text.truncate(self.meant + layout);
        if escapes { escape::from_backslash(&self.text) } else { self.text }
    }
}

fn is_child(start: &BytesStart<'_>) -> bool {
    matches!(start.local_name().as_ref(), "Data" | ATTRIBUTE)
}

fn read_child<'a>(
    reader: &mut Reader<&'a [u8]>,
    text: &'a str,
    child: &Child<'a>,
    escapes: bool,
    logger: &mut Option<String>,
    record: &mut LogRecord,
) -> Result<(), String> {
    let mut name = String::new();
    for attribute in child.start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| format!("no well-formed XML: {error}"))?;
        if attribute.key.local_name().as_ref() == "Name" {
            name = value(&attribute.value, escapes).into_owned();
        }
    }
    let mut body = Body::default();
    if !child.is_empty {
        // What looks like data inside data is text of a kind nobody writes; it is taken as the text it holds.
        while let Some(inner) = body.read(reader, text)? {
            if !inner.is_empty {
                let span = reader.read_to_end(inner.start.name()).map_err(wrong)?;
                body.meant(text.get(span.start as usize..span.end as usize).unwrap_or_default());
            }
        }
    }
    let is_data = child.start.local_name().as_ref() == "Data";
    let is_empty_value = is_data && body.text.trim_ascii() == EMPTY_VALUE;
    let value = if is_empty_value { String::new() } else { body.finish(escapes) };
    if !is_data {
        record.attributes.push(Datum { name, value });
    } else if name == LOGGER && logger.is_none() {
        *logger = Some(value);
    } else {
        record.data.push(Datum { name, value });
    }
    Ok(())
}

fn value(raw: &str, escapes: bool) -> Cow<'_, str> {
    let value = escape::attribute_value(raw);
    if escapes && value.contains('\\') { Cow::Owned(escape::from_backslash(&value)) } else { value }
}

/// Reads the tag's attributes into the record; returns whether its texts have backslash escapes.
fn attributes(start: &BytesStart<'_>, element: Element, record: &mut LogRecord) -> Result<bool, String> {
    let own_level = match element {
        Element::Level(level) => level,
        Element::Archive => {
            record.archive = Some(ArchiveParameter::default());
            Level::Info
        }
    };
    record.level = own_level;
    let mut escapes = false;
    let mut seen = 0u32;
    let mut has_time = false;
    let literal = escape::is_literal(start.attributes_raw());
    for (place, attribute) in start.attributes().with_checks(false).enumerate() {
        let attribute = attribute.map_err(|error| format!("no well-formed XML: {error}"))?;
        let key = attribute.key.as_ref();
        if place == 0 && (key, &*attribute.value) == ESCAPES {
            escapes = true;
            continue;
        }
        let name = attribute.key.local_name().into_inner();
        if name == "Audience" {
            record.audiences = audiences(&escape::attribute_value(&attribute.value), escapes);
        }
        let text = if literal && !escapes { Cow::Borrowed(&*attribute.value) } else { value(&attribute.value, escapes) };
        match set(record, name, &text) {
            Taken::Yes(bit) => {
                if seen & bit != 0 && bit != URI {
                    return Err(format!("the attribute {name} is there twice"));
                }
                seen |= bit;
                has_time |= bit == TIME;
            }
            Taken::No if key == "xmlns" || key.starts_with("xmlns:") => {}
            Taken::No => {
                if record.attributes.iter().any(|known| known.name == key) {
                    return Err(format!("the attribute {key} is there twice"));
                }
                record.attributes.push(Datum::new(key, text));
            }
            Taken::Wrong(reason) => return Err(reason),
        }
    }
    if !has_time {
        return Err("it has no TimeStamp".to_owned());
    }
    if record.level != own_level && record.archive.is_none() {
        // Priority overrides; the element's name is kept as the writer will look for it.
        record.attributes.insert(0, Datum::new(ELEMENT, own_level.name()));
    }
    Ok(escapes)
}

/// What became of an attribute.
enum Taken {
    /// It is a field; the bit names it.
    Yes(u32),
    /// It is nobody's: to be kept as it is.
    No,
    /// Without it there is no record.
    Wrong(String),
}

const TIME: u32 = 1;
const URI: u32 = 1 << 12;

/// Sets the field of this attribute. An empty text and an absent attribute are one.
fn set(record: &mut LogRecord, name: &str, text: &str) -> Taken {
    let (bit, field) = match name {
        "TimeStamp" => {
            return match text.parse() {
                Ok(time) => {
                    record.time = time;
                    Taken::Yes(TIME)
                }
                Err(error) => Taken::Wrong(format!("the TimeStamp {error}")),
            };
        }
        "Priority" => return priority(record, text),
        "File" => (1 << 1, &mut record.file),
        "Routine" => (1 << 2, &mut record.routine),
        "Host" => (1 << 3, &mut record.host),
        "Process" => (1 << 4, &mut record.process),
        "Thread" => (1 << 5, &mut record.thread),
        "Context" => (1 << 6, &mut record.context),
        "SourceObject" => (1 << 7, &mut record.source_object),
        "Array" => (1 << 8, &mut record.array),
        "Antenna" => (1 << 9, &mut record.antenna),
        "StackId" => (1 << 10, &mut record.stack_id),
        "LogId" => (1 << 11, &mut record.log_id),
        // Spelt in two ways: of two different ones, the second is kept as an unknown attribute.
        "Uri" | "URI" if !record.uri.is_empty() => return Taken::No,
        "Uri" | "URI" => (URI, &mut record.uri),
        "RunId" => (1 << 13, &mut record.run_id),
        // Its commas and its escapes have to be read together, before this.
        "Audience" => return Taken::Yes(1 << 14),
        "Line" => return number(1 << 15, text, &mut record.line),
        "StackLevel" => return number(1 << 16, text, &mut record.stack_level),
        "GivenPriority" => return number(1 << 17, text, &mut record.priority),
        "RecordId" => return number(1 << 18, text, &mut record.id),
        "Received" => return number::<Time>(1 << 19, text, &mut record.received),
        "TraceId" => return hexadecimal(1 << 20, text, &mut record.trace_id),
        "SpanId" => return hexadecimal(1 << 21, text, &mut record.span_id),
        "Object" | "Parameter" | "Type" => match (&mut record.archive, name) {
            (Some(archive), "Object") => (1 << 22, &mut archive.object),
            (Some(archive), "Parameter") => (1 << 23, &mut archive.parameter),
            (Some(archive), _) => (1 << 24, &mut archive.r#type),
            (None, _) => return Taken::No,
        },
        _ => return Taken::No,
    };
    text.clone_into(field);
    Taken::Yes(bit)
}

/// A value of a type of its own; what cannot be read as one is kept as an unknown attribute.
fn number<T: std::str::FromStr>(bit: u32, text: &str, field: &mut Option<T>) -> Taken {
    if text.is_empty() {
        return Taken::Yes(bit);
    }
    match text.parse() {
        Ok(value) => {
            *field = Some(value);
            Taken::Yes(bit)
        }
        Err(_) => Taken::No,
    }
}

fn hexadecimal<const N: usize>(bit: u32, text: &str, field: &mut Option<[u8; N]>) -> Taken {
    if text.is_empty() {
        return Taken::Yes(bit);
    }
    let mut id = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Taken::No;
    }
    for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    *field = Some(id);
    Taken::Yes(bit)
}

/// ACS's Priority: overrides the element's level. 7 is read as Error and kept; other numbers than the ten make a bad record.
fn priority(record: &mut LogRecord, text: &str) -> Taken {
    const PRIORITY: u32 = 1 << 25;
    if text.is_empty() {
        return Taken::Yes(PRIORITY);
    }
    let number: Option<u8> = text.trim().parse().ok();
    match number.and_then(|number| Some((number, Level::from_acs(number)?))) {
        Some((number, level)) => {
            record.level = level;
            record.priority = (number != level.number()).then_some(number);
            Taken::Yes(PRIORITY)
        }
        None => Taken::Wrong(format!("the Priority '{text}' is no level (1 to 11)")),
    }
}

/// Names between commas; blanks around them do not count. Names that hold either have them as escapes.
fn audiences(text: &str, escapes: bool) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| if escapes { escape::from_backslash(name) } else { name.to_owned() }).collect()
}
