//! Writing records as ACS's tools read them.

use std::io::{self, Write};

use super::{ATTRIBUTE, ELEMENT, EMPTY_VALUE, ESCAPES, LOGGER, escape};
use crate::{
    identity::{Incarnation, RecordId},
    level::Level,
    record::{
        LogRecord,
        field::{FieldValue, FieldXml, RecordField},
    },
};

/// Options of a file to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcsXmlOptions {
    /// TimeStamps with nine decimals instead of ACS's three. ACS's own tools read three.
    pub nanoseconds: bool,
    /// True to write RecordId, for records that were not imported from a file. Importing the file again at its origin
    /// adds nothing.
    pub identity: bool,
    /// Received, where it is known.
    pub received: bool,
    /// Line ends in texts as references, so that a record is always one line.
    pub one_line: bool,
}

impl Default for AcsXmlOptions {
    /// Returns the defaults: three decimals, identities, no times of reception, unchanged line ends.
    fn default() -> AcsXmlOptions {
        AcsXmlOptions { nanoseconds: false, identity: true, received: false, one_line: false }
    }
}

/// Writes one file: header, records, footer.
#[derive(Debug)]
pub struct AcsXmlWriter<W: Write> {
    out: W,
    options: AcsXmlOptions,
    text: String,
}

impl<W: Write> AcsXmlWriter<W> {
    /// Begins a file of this name (ACS: `NameForXmlDocument`).
    pub fn new(mut out: W, name: &str, options: AcsXmlOptions) -> io::Result<AcsXmlWriter<W>> {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Log>\n<Header Name=\"");
        let name: String = name.chars().filter(|character| !character.is_control()).collect();
        escape::push_attribute(&mut text, &name);
        text.push_str("\" Type=\"LOGFILE\" />\n");
        out.write_all(text.as_bytes())?;
        Ok(AcsXmlWriter { out, options, text })
    }

    /// Appends a record, on a line of its own unless its texts hold line ends.
    pub fn record(&mut self, record: &LogRecord) -> io::Result<()> {
        self.text.clear();
        write_record(&mut self.text, record, self.options);
        self.text.push('\n');
        self.out.write_all(self.text.as_bytes())
    }

    /// Ends the file and hands the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"</Log>\n")?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Returns the beginning and the end of a file, between which records stand.
pub fn file_frame() -> io::Result<(String, String)> {
    let end = "</Log>\n";
    let empty = AcsXmlWriter::new(Vec::new(), "tampu", AcsXmlOptions::default())?.finish()?;
    let text = String::from_utf8_lossy(&empty).into_owned();
    let begin = text.strip_suffix(end).unwrap_or(&text).to_owned();
    Ok((begin, end.to_owned()))
}

/// Appends one record's element, without a line end.
pub fn write_record(out: &mut String, record: &LogRecord, options: AcsXmlOptions) {
    Element { record, options, escapes: needs_escapes(record), out }.write();
}

/// Returns true if some text holds characters that XML 1.0 cannot write, or would be read as something else.
fn needs_escapes(record: &LogRecord) -> bool {
    let texts = RecordField::ALL.into_iter().filter_map(|field| match field.value(record) {
        FieldValue::Text(text) => Some(text),
        _ => None,
    });
    let archive = record.archive.iter().flat_map(|archive| [archive.object.as_str(), &archive.parameter, &archive.r#type]);
    let data = record.data.iter().chain(&record.attributes).flat_map(|datum| [datum.name.as_str(), &datum.value]);
    let is_empty_value = |text: &str| text.trim_ascii() == EMPTY_VALUE;
    texts.chain(archive).chain(data).chain(record.audiences.iter().map(String::as_str)).any(escape::has_forbidden)
        || record.data.iter().any(|datum| is_empty_value(&datum.value))
        || is_empty_value(&record.logger)
        || record.audiences.iter().any(|name| name.contains(',') || name.trim() != name)
}

struct Element<'a> {
    record: &'a LogRecord,
    options: AcsXmlOptions,
    escapes: bool,
    out: &'a mut String,
}

impl Element<'_> {
    fn write(&mut self) {
        let record = self.record;
        let (name, level, unknown) = self.name();
        self.out.push('<');
        self.out.push_str(name);
        if self.escapes {
            self.raw(ESCAPES.0, ESCAPES.1);
        }
        RecordField::ALL.into_iter().for_each(|field| self.field(field, level));
        let unknown = &record.attributes[unknown..];
        let plain = unknown.iter().enumerate().take_while(|(place, datum)| {
            is_plain(&datum.name, record.archive.is_some()) && unknown[..*place].iter().all(|other| other.name != datum.name)
        });
        let plain = plain.count();
        for datum in &unknown[..plain] {
            self.attribute_even_empty(&datum.name, &datum.value);
        }
        self.body(name, &unknown[plain..]);
    }

    /// The attributes of one field; nothing if the field is written elsewhere.
    fn field(&mut self, field: RecordField, element: Level) {
        let record = self.record;
        match (field, field.xml()) {
            (RecordField::Audiences, _) => self.audiences(),
            (RecordField::Priority, _) => self.priority(element),
            (RecordField::Archive, _) => {
                if let Some(archive) = &record.archive {
                    self.attribute("Object", &archive.object);
                    self.attribute("Parameter", &archive.parameter);
                    self.attribute("Type", &archive.r#type);
                }
            }
            (RecordField::Received, _) if !self.options.received => {}
            (_, FieldXml::Attribute(name)) => match field.value(record) {
                FieldValue::Text(text) => self.attribute(name, text),
                FieldValue::Number(number) => self.number(name, number),
                FieldValue::Time(Some(time)) if field == RecordField::Time && !self.options.nanoseconds => {
                    self.raw(name, &time.to_acs());
                }
                FieldValue::Time(time) => self.number(name, time),
                FieldValue::Hexadecimal(id) => self.number(name, id.map(hexadecimal)),
                // An imported record has an id that can be computed again.
                FieldValue::Id(id) => {
                    let is_own = |id: &RecordId| self.options.identity && id.incarnation != Incarnation::default();
                    self.number(name, id.filter(is_own));
                }
                FieldValue::Level(_) | FieldValue::Names(_) | FieldValue::Data(_) | FieldValue::Archive(_) => {}
            },
            _ => {}
        }
    }

    /// Returns the element's name, its level, and the number of unknown attributes used for it.
    fn name(&self) -> (&'static str, Level, usize) {
        let record = self.record;
        if record.archive.is_some() {
            return ("Archive", Level::Info, 0);
        }
        let first = record.attributes.first().filter(|datum| datum.name == ELEMENT);
        let overridden = first.and_then(|datum| Level::ALL.into_iter().find(|level| level.name() == datum.value));
        match overridden.filter(|&level| level != record.level) {
            Some(level) => (level.name(), level, 1),
            None => (record.level.name(), record.level, 0),
        }
    }

    fn priority(&mut self, element: Level) {
        let record = self.record;
        let seven = record.priority == Some(7) && record.level == Level::Error;
        if seven {
            self.raw("Priority", "7");
        } else if element != record.level {
            self.number("Priority", Some(record.level.number()));
        }
        // Not a number that ACS writes here, but one that the caller gave.
        self.number("GivenPriority", record.priority.filter(|_| !seven));
    }

    fn body(&mut self, name: &str, attributes: &[crate::record::Datum]) {
        let record = self.record;
        // An absent logger has to be written if a datum of its name would be read as the logger.
        let has_logger = !record.logger.is_empty() || record.data.iter().any(|datum| datum.name == LOGGER);
        if record.message.is_empty() && record.data.is_empty() && !has_logger && attributes.is_empty() {
            self.out.push_str(" />");
            return;
        }
        self.out.push('>');
        if !record.message.is_empty() {
            self.cdata(&record.message);
        }
        for datum in attributes {
            self.child(ATTRIBUTE, &datum.name, &datum.value);
        }
        if has_logger {
            self.data(LOGGER, &record.logger);
        }
        for datum in &record.data {
            self.data(&datum.name, &datum.value);
        }
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// Appends an attribute unchanged, for texts that need no escaping.
    fn raw(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        self.out.push_str(value);
        self.out.push('"');
    }

    fn number(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.raw(name, &value.to_string());
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.attribute_even_empty(name, value);
        }
    }

    fn attribute_even_empty(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        self.value(value);
        self.out.push('"');
    }

    fn value(&mut self, value: &str) {
        if self.escapes {
            escape::push_attribute(self.out, &escape::to_backslash(value));
        } else {
            escape::push_attribute(self.out, value);
        }
    }

    fn cdata(&mut self, text: &str) {
        let one_line = self.options.one_line;
        if self.escapes {
            escape::push_cdata(self.out, &escape::to_backslash(text), one_line);
        } else {
            escape::push_cdata(self.out, text, one_line);
        }
    }

    fn data(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.child("Data", name, EMPTY_VALUE);
        } else if value.trim_ascii() == EMPTY_VALUE {
            // The words themselves: an escape of their first letter distinguishes them from the empty value.
            let text = escape::to_backslash(value).replacen('N', "\\x4e", 1);
            self.child_with("Data", name, |element| escape::push_cdata(element.out, &text, element.options.one_line));
        } else {
            self.child("Data", name, value);
        }
    }

    fn child(&mut self, element: &str, name: &str, value: &str) {
        self.child_with(element, name, |element| element.cdata(value));
    }

    fn child_with(&mut self, element: &str, name: &str, write: impl FnOnce(&mut Self)) {
        self.out.push('<');
        self.out.push_str(element);
        self.attribute_even_empty("Name", name);
        self.out.push('>');
        write(self);
        self.out.push_str("</");
        self.out.push_str(element);
        self.out.push('>');
    }

    /// Names between commas. Commas and outer blanks inside a name are escapes, so that they do not separate.
    fn audiences(&mut self) {
        let mut list = String::new();
        for name in self.record.audiences.iter().filter(|name| !name.is_empty()) {
            if !list.is_empty() {
                list.push(',');
            }
            if !self.escapes {
                list.push_str(name);
                continue;
            }
            for character in name.chars() {
                match character {
                    ',' => list.push_str("\\x2c"),
                    blank if blank.is_whitespace() => escape::push_escape(&mut list, blank),
                    other => list.push_str(&escape::to_backslash(other.encode_utf8(&mut [0; 4]))),
                }
            }
        }
        if !list.is_empty() {
            self.out.push_str(" Audience=\"");
            escape::push_attribute(self.out, &list);
            self.out.push('"');
        }
    }
}

fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if an unknown attribute of this name can be one in XML, and is read back as unknown.
fn is_plain(name: &str, archive: bool) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let good = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    let known = match name {
        "URI" | "Priority" | "Escapes" => true,
        "Object" | "Parameter" | "Type" => archive,
        _ => RecordField::of_attribute(name).is_some(),
    };
    starts && good && !known && !name.starts_with("xmlns")
}
