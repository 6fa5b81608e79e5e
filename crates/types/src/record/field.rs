//! The catalogue of a record's fields: one table from which names, query fields, columns and XML attributes are made.
//!
//! A field is a line here and a member of [`LogRecord`]. Code that treats all fields alike reads this table: the JSON
//! keys, the XML attributes, the columns of CSV, tables and the viewer, the query fields. Hot encoders (the batch,
//! Parquet) are written by hand, and tests check them against the table.
//!
//! The lines have the order of ACS's XML attributes.
//!
//! Rejected: making `LogRecord` itself from the table. Its docs and its attributes for JSON are read more often than
//! its fields are added.

use std::{borrow::Cow, cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{ArchiveParameter, Datum, LogRecord};
use crate::{identity::RecordId, level::Level, time::Time};

/// Kind of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A text; empty if absent.
    Text,
    /// An integer, or nothing.
    Number,
    /// A time in ns UTC, or nothing.
    Time,
    /// The record's level.
    Level,
    /// A list of names.
    Names,
    /// An identifier of 8 or 16 bytes, written in hexadecimal digits, or nothing.
    Hexadecimal,
    /// The record's identity, or nothing.
    Id,
    /// Named values, in order.
    Data,
    /// The parameter of an `Archive` record, or nothing.
    Archive,
}

/// Part of a batch that holds a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPart {
    /// The text at this place of the origin's strings, in the order of `spec/log.idl`.
    OriginText(usize),
    /// Another member of the origin, which records of one place share.
    Origin,
    /// The record itself.
    Record,
}

/// Place of a field in ACS's XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldXml {
    /// The name of the record's element.
    Element,
    /// An attribute of the element.
    Attribute(&'static str),
    /// Several attributes of the element.
    Attributes,
    /// The element's text.
    Content,
    /// `Data` elements inside the element.
    Data,
}

/// Value of a field in one record.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)] // Each is the kind of the same name.
pub enum FieldValue<'r> {
    Text(&'r str),
    Number(Option<i64>),
    Time(Option<Time>),
    Level(Level),
    Names(&'r [String]),
    Hexadecimal(Option<&'r [u8]>),
    Id(Option<RecordId>),
    Data(&'r [Datum]),
    Archive(Option<&'r ArchiveParameter>),
}

/// The value of a member of this kind.
macro_rules! value {
    (Text $member:expr) => {
        FieldValue::Text(&$member)
    };
    (Number $member:expr) => {
        FieldValue::Number($member.map(i64::from))
    };
    (Time $member:expr) => {
        FieldValue::Time(Into::<Option<Time>>::into($member))
    };
    (Level $member:expr) => {
        FieldValue::Level($member)
    };
    (Names $member:expr) => {
        FieldValue::Names(&$member)
    };
    (Hexadecimal $member:expr) => {
        FieldValue::Hexadecimal($member.as_ref().map(|id| id.as_slice()))
    };
    (Id $member:expr) => {
        FieldValue::Id($member)
    };
    (Data $member:expr) => {
        FieldValue::Data(&$member)
    };
    (Archive $member:expr) => {
        FieldValue::Archive($member.as_ref())
    };
}

/// The member to change if it is a text.
macro_rules! text_mut {
    (Text $member:expr) => {
        Some(&mut $member)
    };
    ($kind:ident $member:expr) => {
        None
    };
}

macro_rules! xml {
    (element) => {
        FieldXml::Element
    };
    (attribute $name:literal) => {
        FieldXml::Attribute($name)
    };
    (attributes) => {
        FieldXml::Attributes
    };
    (content) => {
        FieldXml::Content
    };
    (data) => {
        FieldXml::Data
    };
}

/// Collects the fields that a query can name, and declares their enum.
macro_rules! query_fields {
    ([$($variant:ident $member:ident)*]) => {
        /// Field that a query can ask for by name; in JSON and on the command line it has the record field's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // Each is the field of LogRecord of the same name.
        pub enum QueryField {
            $($variant,)*
        }

        impl QueryField {
            /// All fields that a query can name.
            pub const ALL: [QueryField; [$(stringify!($variant)),*].len()] = [$(QueryField::$variant),*];

            /// The field of the record.
            pub const fn record_field(self) -> RecordField {
                match self {
                    $(QueryField::$variant => RecordField::$variant,)*
                }
            }
        }
    };
    ([$($found:tt)*] $variant:ident $member:ident queried; $($rest:tt)*) => {
        query_fields! { [$($found)* $variant $member] $($rest)* }
    };
    ([$($found:tt)*] $variant:ident $member:ident plain; $($rest:tt)*) => {
        query_fields! { [$($found)*] $($rest)* }
    };
}

macro_rules! record_fields {
    ($(
        $variant:ident $member:ident $title:literal [$xml:ident $($attribute:literal)?]
        $kind:ident ($($part:tt)*) $query:ident $shown:literal;
    )*) => {
        /// Field of a [`LogRecord`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)] // Each is the field of LogRecord of the same name.
        pub enum RecordField {
            $($variant,)*
        }

        impl RecordField {
            /// All fields, in the order of ACS's XML attributes.
            pub const ALL: [RecordField; [$($title),*].len()] = [$(RecordField::$variant),*];

            /// The name: that of the member of [`LogRecord`], of the JSON key and of the column.
            pub const fn name(self) -> &'static str {
                match self {
                    $(RecordField::$variant => stringify!($member),)*
                }
            }

            /// The heading of a column: ACS's name if ACS has the field.
            pub const fn title(self) -> &'static str {
                match self {
                    $(RecordField::$variant => $title,)*
                }
            }

            /// Kind of the value.
            pub const fn kind(self) -> FieldKind {
                match self {
                    $(RecordField::$variant => FieldKind::$kind,)*
                }
            }

            /// Part of a batch that holds the field.
            pub const fn part(self) -> FieldPart {
                match self {
                    $(RecordField::$variant => FieldPart::$($part)*,)*
                }
            }

            /// Place in ACS's XML.
            pub const fn xml(self) -> FieldXml {
                match self {
                    $(RecordField::$variant => xml!($xml $($attribute)?),)*
                }
            }

            /// The field that this XML attribute holds alone.
            pub fn of_attribute(name: &str) -> Option<RecordField> {
                match name {
                    $($($attribute => Some(RecordField::$variant),)?)*
                    _ => None,
                }
            }

            /// Place among the columns shown to people, from 1; 0 if it is not shown.
            const fn shown(self) -> usize {
                match self {
                    $(RecordField::$variant => $shown,)*
                }
            }

            /// The value in this record.
            pub fn value(self, record: &LogRecord) -> FieldValue<'_> {
                match self {
                    $(RecordField::$variant => value!($kind record.$member),)*
                }
            }

            /// The text in this record, to be changed; `None` if the field is not a text.
            pub fn text_mut(self, record: &mut LogRecord) -> Option<&mut String> {
                match self {
                    $(RecordField::$variant => text_mut!($kind record.$member),)*
                }
            }
        }

        query_fields! { [] $($variant $member $query;)* }
    };
}

// Name, member, title, XML, kind, part of a batch, whether a query can name it, place among the columns shown.
record_fields! {
    Time         time          "TimeStamp"    [attribute "TimeStamp"]     Time        (Record)         plain   1;
    Level        level         "Level"        [element]                   Level       (Record)         plain   2;
    File         file          "File"         [attribute "File"]          Text        (OriginText(1))  queried 6;
    Line         line          "Line"         [attribute "Line"]          Number      (Origin)         plain   7;
    Routine      routine       "Routine"      [attribute "Routine"]       Text        (OriginText(2))  queried 8;
    Host         host          "Host"         [attribute "Host"]          Text        (OriginText(3))  queried 9;
    Process      process       "Process"      [attribute "Process"]       Text        (OriginText(4))  queried 10;
    Thread       thread        "Thread"       [attribute "Thread"]        Text        (OriginText(5))  queried 11;
    Context      context       "Context"      [attribute "Context"]       Text        (OriginText(6))  queried 12;
    SourceObject source_object "SourceObject" [attribute "SourceObject"]  Text        (OriginText(7))  queried 3;
    Audiences    audiences     "Audience"     [attribute "Audience"]      Names       (Origin)         plain   13;
    Array        array         "Array"        [attribute "Array"]         Text        (OriginText(8))  queried 14;
    Antenna      antenna       "Antenna"      [attribute "Antenna"]       Text        (OriginText(9))  queried 15;
    StackId      stack_id      "StackId"      [attribute "StackId"]       Text        (Record)         queried 16;
    StackLevel   stack_level   "StackLevel"   [attribute "StackLevel"]    Number      (Record)         plain   17;
    LogId        log_id        "LogId"        [attribute "LogId"]         Text        (Record)         queried 18;
    Uri          uri           "Uri"          [attribute "Uri"]           Text        (OriginText(10)) queried 20;
    Priority     priority      "Priority"     [attribute "GivenPriority"] Number      (Record)         plain   19;
    RunId        run_id        "RunId"        [attribute "RunId"]         Text        (OriginText(11)) queried 21;
    TraceId      trace_id      "TraceId"      [attribute "TraceId"]       Hexadecimal (Record)         plain   0;
    SpanId       span_id       "SpanId"       [attribute "SpanId"]        Hexadecimal (Record)         plain   0;
    Archive      archive       "Archive"      [attributes]                Archive     (Record)         plain   0;
    Id           id            "Id"           [attribute "RecordId"]      Id          (Record)         plain   23;
    Received     received      "Received"     [attribute "Received"]      Time        (Record)         plain   0;
    Attributes   attributes    "Attributes"   [attributes]                Data        (Record)         plain   0;
    Message      message       "Message"      [content]                   Text        (Record)         plain   4;
    Logger       logger        "Logger"       [data]                      Text        (OriginText(0))  queried 5;
    Data         data          "Data"         [data]                      Data        (Record)         plain   22;
}

/// Number of columns shown to people.
const SHOWN: usize = {
    let (mut at, mut count) = (0, 0);
    while at < RecordField::ALL.len() {
        count += (RecordField::ALL[at].shown() > 0) as usize;
        at += 1;
    }
    count
};

/// A text that names none of the columns shown to people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a column; columns are {names}", names = RecordField::SHOWN.map(RecordField::name).join(", "))]
pub struct UnknownColumn(pub String);

impl RecordField {
    /// The columns shown to people, in the order of CSV: ACS's nineteen and those ACS lacks.
    pub const SHOWN: [RecordField; SHOWN] = {
        let mut columns = [RecordField::Time; SHOWN];
        let mut at = 0;
        while at < RecordField::ALL.len() {
            let place = RecordField::ALL[at].shown();
            if place > 0 {
                columns[place - 1] = RecordField::ALL[at];
            }
            at += 1;
        }
        columns
    };

    /// Number of texts that an origin has.
    pub const ORIGIN_TEXTS: usize = {
        let (mut at, mut count) = (0, 0);
        while at < RecordField::ALL.len() {
            count += matches!(RecordField::ALL[at].part(), FieldPart::OriginText(_)) as usize;
            at += 1;
        }
        count
    };

    /// The field of this name.
    pub fn from_name(name: &str) -> Option<RecordField> {
        RecordField::ALL.into_iter().find(|field| field.name() == name)
    }

    /// The value as text, empty if the record has none: times in RFC 3339, names separated by blanks, named
    /// values as `name=value` separated by `; `.
    pub fn text(self, record: &LogRecord) -> Cow<'_, str> {
        match self.value(record) {
            FieldValue::Text(text) => text.into(),
            FieldValue::Number(number) => number.map(|number| number.to_string()).unwrap_or_default().into(),
            FieldValue::Time(time) => time.map(Time::to_rfc3339).unwrap_or_default().into(),
            FieldValue::Level(level) => level.name().into(),
            FieldValue::Names(names) => names.join(" ").into(),
            FieldValue::Hexadecimal(id) => {
                id.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
            }
            FieldValue::Id(id) => id.map(|id| id.to_string()).unwrap_or_default().into(),
            FieldValue::Data(data) => {
                let data: Vec<String> = data.iter().map(|datum| format!("{}={}", datum.name, datum.value)).collect();
                data.join("; ").into()
            }
            FieldValue::Archive(archive) => {
                let text = |archive: &ArchiveParameter| format!("{}:{} {}", archive.object, archive.parameter, archive.r#type);
                archive.map(text).unwrap_or_default().into()
            }
        }
    }

    /// Order of two records by this field: numbers and times by value, levels by gravity, everything else by its text.
    pub fn order(self, one: &LogRecord, other: &LogRecord) -> Ordering {
        match (self.value(one), self.value(other)) {
            (FieldValue::Number(one), FieldValue::Number(other)) => one.cmp(&other),
            (FieldValue::Time(one), FieldValue::Time(other)) => one.cmp(&other),
            (FieldValue::Level(one), FieldValue::Level(other)) => one.cmp(&other),
            (FieldValue::Id(one), FieldValue::Id(other)) => one.cmp(&other),
            _ => self.text(one).cmp(&self.text(other)),
        }
    }
}

impl fmt::Display for RecordField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RecordField {
    type Err = UnknownColumn;

    /// Reads a column shown to people by its name or title, in any case; `source` means `source_object`.
    fn from_str(text: &str) -> Result<RecordField, UnknownColumn> {
        let text = text.trim();
        let is_meant = |field: &RecordField| field.name().eq_ignore_ascii_case(text) || field.title().eq_ignore_ascii_case(text);
        match text {
            "source" => Ok(RecordField::SourceObject),
            _ => RecordField::SHOWN.into_iter().find(is_meant).ok_or_else(|| UnknownColumn(text.to_owned())),
        }
    }
}

impl QueryField {
    /// The field's name, as in JSON.
    pub const fn name(self) -> &'static str {
        self.record_field().name()
    }

    /// The field of this name.
    pub fn from_name(name: &str) -> Option<QueryField> {
        QueryField::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Returns true if each record has its own value; false if records of one origin share it.
    pub const fn is_of_record(self) -> bool {
        matches!(self.record_field().part(), FieldPart::Record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::{
        arbitrary, import,
        log_batch::{LogBatchView, OriginParts, encode_records},
        xml::{AcsXmlOptions, write_record},
    };

    /// Returns a record whose texts are the names of their fields.
    fn named() -> LogRecord {
        let mut record = LogRecord::new(Level::Error, "");
        for field in RecordField::ALL {
            if let Some(text) = field.text_mut(&mut record) {
                *text = field.name().to_owned();
            }
        }
        record
    }

    #[test]
    fn every_member_of_a_record_has_a_line() {
        let mut record = named();
        record.id = Some(RecordId::default());
        (record.received, record.priority, record.line, record.stack_level) = (Some(Time(1)), Some(7), Some(1), Some(1));
        (record.trace_id, record.span_id, record.archive) = (Some([1; 16]), Some([1; 8]), Some(ArchiveParameter::default()));
        (record.audiences, record.data) = (vec!["Operator".to_owned()], vec![Datum::default()]);
        record.attributes = vec![Datum::default()];
        let Value::Object(json) = serde_json::to_value(&record).unwrap() else { panic!("a record is an object") };
        let mut names: Vec<&str> = RecordField::ALL.map(RecordField::name).to_vec();
        names.sort_unstable();
        assert_eq!(json.keys().collect::<Vec<_>>(), names, "left: JSON; right: the catalogue");
        for field in RecordField::ALL {
            assert_eq!(RecordField::from_name(field.name()), Some(field));
            let is_text = json[field.name()] == field.name();
            assert_eq!(is_text, field.kind() == FieldKind::Text, "{field}");
        }
    }

    #[test]
    fn columns_shown_are_numbered_without_gap_and_found_by_name_and_title() {
        let mut places: Vec<usize> = RecordField::ALL.map(RecordField::shown).into_iter().filter(|place| *place > 0).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(1..=RecordField::SHOWN.len()));
        for column in RecordField::SHOWN {
            assert_eq!(column.name().parse(), Ok(column));
            assert_eq!(column.title().to_lowercase().parse(), Ok(column));
        }
        assert_eq!("source".parse(), Ok(RecordField::SourceObject));
        let unknown = "colour".parse::<RecordField>().unwrap_err().to_string();
        assert!(unknown.contains("'colour' is not a column; columns are time, level"), "{unknown}");
        assert!("trace_id".parse::<RecordField>().is_err(), "it is not shown");
    }

    #[test]
    fn values_are_ordered_by_what_they_are() {
        let mut one = LogRecord::new(Level::Error, "a");
        one.line = Some(9);
        let mut other = LogRecord::new(Level::Debug, "b");
        other.line = Some(10);
        assert_eq!(RecordField::Line.order(&one, &other), Ordering::Less);
        assert_eq!(RecordField::Level.order(&one, &other), Ordering::Greater);
        assert_eq!(RecordField::Message.order(&one, &other), Ordering::Less);
    }

    #[test]
    fn query_fields_have_the_names_of_json() {
        for field in QueryField::ALL {
            assert_eq!(serde_json::to_value(field).unwrap(), field.name());
            assert_eq!(QueryField::from_name(field.name()), Some(field));
            assert_eq!(field.record_field().kind(), FieldKind::Text, "{}", field.name());
        }
    }

    #[test]
    fn the_batch_has_each_text_where_the_catalogue_says() {
        let record = named();
        let strings = OriginParts::of(&record).strings();
        let mut places = 0;
        for field in RecordField::ALL {
            if let FieldPart::OriginText(place) = field.part() {
                assert_eq!(strings[place], field.name());
                places += 1;
            }
        }
        assert_eq!(strings.len(), places);
        let batch = encode_records(std::slice::from_ref(&record)).unwrap();
        let view = LogBatchView::parse(&batch).unwrap();
        let found = view.records().next().unwrap().unwrap();
        for field in RecordField::ALL.into_iter().filter(|field| field.kind() == FieldKind::Text) {
            assert_eq!(found.text(field), Some(field.name()));
            assert_eq!(found.origin().text(field), (field.part() != FieldPart::Record).then_some(field.name()));
        }
        assert_eq!(found.text(RecordField::Line), None);
    }

    #[test]
    fn the_xml_has_each_attribute_in_the_order_of_the_catalogue() {
        let mut record = named();
        (record.line, record.stack_level, record.priority) = (Some(1), Some(2), Some(42));
        (record.trace_id, record.span_id, record.received) = (Some([1; 16]), Some([1; 8]), Some(Time(1)));
        record.audiences = vec!["Operator".to_owned()];
        record.id = Some(RecordId { number: 1, incarnation: crate::Incarnation { boot: 1, pid: 1, start: 1 }, ring: 1 });
        let mut xml = String::new();
        write_record(&mut xml, &record, AcsXmlOptions { received: true, ..AcsXmlOptions::default() });
        let mut from = 0;
        for field in RecordField::ALL {
            let FieldXml::Attribute(name) = field.xml() else { continue };
            assert_eq!(RecordField::of_attribute(name), Some(field));
            let place = xml[from..].find(&format!(" {name}=\""));
            from += place.unwrap_or_else(|| panic!("{name} behind {}", &xml[..from]));
        }
    }

    #[test]
    fn every_text_of_a_record_counts_for_its_imported_id() {
        let id = |record: &LogRecord| import::import_id(record, 0);
        let plain = LogRecord::new(Level::Info, "");
        for field in RecordField::ALL {
            let mut record = plain.clone();
            if let Some(text) = field.text_mut(&mut record) {
                *text = "x".to_owned();
                assert_ne!(id(&record), id(&plain), "{field}");
            }
        }
    }

    proptest! {
        #[test]
        fn texts_are_what_the_batch_holds(record in arbitrary::record()) {
            let batch = encode_records(std::slice::from_ref(&record)).unwrap();
            let view = LogBatchView::parse(&batch).unwrap();
            let found = view.records().next().unwrap().unwrap();
            for field in QueryField::ALL {
                let text = field.record_field().text(&record).into_owned();
                prop_assert_eq!(found.text(field.record_field()), Some(text.as_str()));
            }
        }
    }
}
