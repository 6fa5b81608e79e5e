//! Conversion of one record's XML to a record.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{ATTRIBUTE, ELEMENT, EMPTY_VALUE, ESCAPES, LOGGER, escape, scan::Element};
use crate::{
    level::Level,
    record::{ArchiveParameter, Datum, LogRecord, field::RecordField},
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
    format!("XML that is not well-formed: {error}")
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
        let attribute = attribute.map_err(|error| format!("XML that is not well-formed: {error}"))?;
        if attribute.key.local_name().as_ref() == "Name" {
            name = value(&attribute.value, escapes).into_owned();
        }
    }
    let mut body = Body::default();
    if !child.is_empty {
        // No known writer nests data in data. The inner element is taken as its text.
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
    let mut seen = 0_u64;
    let mut has_time = false;
    let literal = escape::is_literal(start.attributes_raw());
    for (place, attribute) in start.attributes().with_checks(false).enumerate() {
        let attribute = attribute.map_err(|error| format!("XML that is not well-formed: {error}"))?;
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
            SetResult::Yes(bit) => {
                if seen & bit != 0 && bit != URI {
                    return Err(format!("the attribute {name} is there twice"));
                }
                seen |= bit;
                has_time |= bit == TIME;
            }
            SetResult::No if key == "xmlns" || key.starts_with("xmlns:") => {}
            SetResult::No => {
                if record.attributes.iter().any(|known| known.name == key) {
                    return Err(format!("the attribute {key} is there twice"));
                }
                record.attributes.push(Datum::new(key, text));
            }
            SetResult::Wrong(reason) => return Err(reason),
        }
    }
    if !has_time {
        return Err("it has no TimeStamp".to_owned());
    }
    if record.level != own_level && record.archive.is_none() {
        // Priority overrides the level; the element's name is kept for the XML writer.
        record.attributes.insert(0, Datum::new(ELEMENT, own_level.name()));
    }
    Ok(escapes)
}

/// Result of setting the field of an attribute.
enum SetResult {
    /// A field; the bit names it.
    Yes(u64),
    /// An unknown attribute, to be kept unchanged.
    No,
    /// Without it there is no record.
    Wrong(String),
}

/// The bit of a field that one attribute holds alone.
const fn bit_of(field: RecordField) -> u64 {
    1 << field as u64
}

const TIME: u64 = bit_of(RecordField::Time);
const URI: u64 = bit_of(RecordField::Uri);
const PRIORITY: u64 = 1 << 60;
const OBJECT: u64 = 1 << 61;
const PARAMETER: u64 = 1 << 62;
const TYPE: u64 = 1 << 63;
const _: () = assert!(RecordField::ALL.len() <= 60, "a bit for each field");

/// Sets the field of this attribute. An empty text and an absent attribute are one.
fn set(record: &mut LogRecord, name: &str, text: &str) -> SetResult {
    let name = match name {
        "Priority" => return priority(record, text),
        "Object" | "Parameter" | "Type" => return parameter(record, name, text),
        "URI" => "Uri",
        other => other,
    };
    let Some(field) = RecordField::of_attribute(name) else { return SetResult::No };
    let bit = bit_of(field);
    match field {
        RecordField::Time => match text.parse() {
            Ok(time) => {
                record.time = time;
                SetResult::Yes(TIME)
            }
            Err(error) => SetResult::Wrong(format!("the TimeStamp {error}")),
        },
        // Its commas and escapes have to be read together, which was done before.
        RecordField::Audiences => SetResult::Yes(bit),
        RecordField::Line => number(bit, text, &mut record.line),
        RecordField::StackLevel => number(bit, text, &mut record.stack_level),
        RecordField::Priority => number(bit, text, &mut record.priority),
        RecordField::Id => number(bit, text, &mut record.id),
        RecordField::Received => number::<Time>(bit, text, &mut record.received),
        RecordField::TraceId => hexadecimal(bit, text, &mut record.trace_id),
        RecordField::SpanId => hexadecimal(bit, text, &mut record.span_id),
        // The attribute has two spellings. If both appear and differ, the second is kept as an unknown attribute.
        RecordField::Uri if !record.uri.is_empty() => SetResult::No,
        other => match other.text_mut(record) {
            Some(member) => {
                text.clone_into(member);
                SetResult::Yes(bit)
            }
            None => SetResult::No,
        },
    }
}

/// An attribute of ACS's `Archive` records; of another record it is unknown.
fn parameter(record: &mut LogRecord, name: &str, text: &str) -> SetResult {
    let Some(archive) = &mut record.archive else { return SetResult::No };
    let (bit, member) = match name {
        "Object" => (OBJECT, &mut archive.object),
        "Parameter" => (PARAMETER, &mut archive.parameter),
        _ => (TYPE, &mut archive.r#type),
    };
    text.clone_into(member);
    SetResult::Yes(bit)
}

/// Parses a value of a type of its own; an invalid one is kept as an unknown attribute.
fn number<T: std::str::FromStr>(bit: u64, text: &str, field: &mut Option<T>) -> SetResult {
    if text.is_empty() {
        return SetResult::Yes(bit);
    }
    match text.parse() {
        Ok(value) => {
            *field = Some(value);
            SetResult::Yes(bit)
        }
        Err(_) => SetResult::No,
    }
}

fn hexadecimal<const N: usize>(bit: u64, text: &str, field: &mut Option<[u8; N]>) -> SetResult {
    if text.is_empty() {
        return SetResult::Yes(bit);
    }
    let mut id = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return SetResult::No;
    }
    for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    *field = Some(id);
    SetResult::Yes(bit)
}

/// ACS's Priority: overrides the element's level. 7 is read as Error and kept; other numbers than the ten make a bad
/// record.
fn priority(record: &mut LogRecord, text: &str) -> SetResult {
    if text.is_empty() {
        return SetResult::Yes(PRIORITY);
    }
    let number: Option<u8> = text.trim().parse().ok();
    match number.and_then(|number| Some((number, Level::from_acs(number)?))) {
        Some((number, level)) => {
            record.level = level;
            record.priority = (number != level.number()).then_some(number);
            SetResult::Yes(PRIORITY)
        }
        None => SetResult::Wrong(format!("the Priority '{text}' is not a level (1 to 11)")),
    }
}

/// Names between commas; blanks around them do not count. Names that hold either have them as escapes.
fn audiences(text: &str, escapes: bool) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| if escapes { escape::from_backslash(name) } else { name.to_owned() }).collect()
}
