//! One log record: every field of ACS's, and the identity, reception and trace fields ACS lacks.
//!
//! Text fields are empty where the writer set no value, as in ACS's own files (`Context=""` and no `Context` are one).
//! Optional numbers are `Option`. Attributes beyond the known ones are kept in [`LogRecord::attributes`], so a file
//! read and written again loses nothing. The catalogue of the fields is [`field`].

pub mod field;

use serde::{Deserialize, Serialize};

use crate::{identity::RecordId, level::Level, name::Partition, time::Time};

/// One log record. In JSON the fields have these names and absent or empty ones are left out; `level` is the level's
/// name. `time` and `level` are needed. A default record is an Info record without text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogRecord {
    /// Identity of the record, for ever; `None` until a logger or an importer has numbered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RecordId>,
    /// Time of the log call (ACS's `TimeStamp`).
    #[serde(with = "crate::record::time_text")]
    pub time: Time,
    /// Time at which the collector received it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::optional_time_text")]
    pub received: Option<Time>,
    /// Level of the record.
    pub level: Level,
    /// The writer's number if it differs from `level`'s (ACS's `Priority`; 7 is read as Error and kept here).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Message of the record, for people.
    #[serde(default)]
    pub message: String,
    /// Name of the logger.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logger: String,
    /// Name of the source file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Line in the source file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Name of the function.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub routine: String,
    /// Name of the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Process (ACS: container) name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// Name of the thread.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread: String,
    /// Context of the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Component (ACS `SourceObject`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_object: String,
    /// Audiences of the record; a record without audiences is for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// Array the antenna belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub array: String,
    /// Name of the antenna.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub antenna: String,
    /// Error chain it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack_id: String,
    /// Place in that chain, 0 the outermost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_level: Option<i32>,
    /// The writer's own number for the record.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log_id: String,
    /// Address of further information.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// Run or observation it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run_id: String,
    /// W3C trace id.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::hex_16")]
    pub trace_id: Option<[u8; 16]>,
    /// W3C span id.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::hex_8")]
    pub span_id: Option<[u8; 8]>,
    /// Named values beside the message, in order (ACS `Data`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Datum>,
    /// Set for ACS's `Archive` records, which carry a parameter's value instead of a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveParameter>,
    /// Unknown attributes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Datum>,
    /// Members that a later release has added, in the bytes of the wire; written out again unchanged.
    #[serde(skip)]
    pub unknown: Vec<u8>,
    /// Unknown members of the data that the record shares with others of its origin.
    #[serde(skip)]
    pub unknown_origin: Vec<u8>,
}

/// One named value of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Datum {
    /// Name of the value.
    pub name: String,
    /// Value as text.
    pub value: String,
}

impl Datum {
    /// A value of this name.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Datum {
        Datum { name: name.into(), value: value.into() }
    }
}

/// Parameter that an `Archive` record is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArchiveParameter {
    /// The object (component) the parameter belongs to.
    pub object: String,
    /// Name of the parameter.
    pub parameter: String,
    /// The type of its value (ACS's spelling of IDL types).
    pub r#type: String,
}

impl LogRecord {
    /// A record with nothing but its level and text; the time is 0 until set.
    pub fn new(level: Level, message: impl Into<String>) -> LogRecord {
        LogRecord { level, message: message.into(), ..LogRecord::default() }
    }

    /// The partition it is published in: its audiences.
    pub fn partition(&self) -> Partition {
        Partition::of(self.audiences.iter().map(String::as_str))
    }
}

/// Times in JSON: `2026-11-21T08:15:30.123456789Z`.
mod time_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::time::Time;

    pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time.to_rfc3339())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

mod optional_time_text {
    use serde::{Deserializer, Serializer};

    use crate::time::Time;

    pub fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
        super::time_text::serialize(&time.unwrap_or_default(), serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
        super::time_text::deserialize(deserializer).map(Some)
    }
}

macro_rules! hex_module {
    ($module:ident, $bytes:literal) => {
        mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(id: &Option<[u8; $bytes]>, serializer: S) -> Result<S::Ok, S::Error> {
                let text: String = id.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
                serializer.serialize_str(&text)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[u8; $bytes]>, D::Error> {
                let text = String::deserialize(deserializer)?;
                let mut id = [0; $bytes];
                let wrong = || serde::de::Error::custom(format!("invalid id '{text}': write {} hexadecimal digits", 2 * $bytes));
                if text.len() != 2 * $bytes || !text.is_ascii() {
                    return Err(wrong());
                }
                for (byte, digits) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
                    let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
                    *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
                }
                Ok(Some(id))
            }
        }
    };
}
hex_module!(hex_16, 16);
hex_module!(hex_8, 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_leaves_out_what_is_empty_and_reads_it_back() {
        let mut record = LogRecord::new(Level::Error, "no lock");
        record.trace_id = Some([7; 16]);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(
            text,
            r#"{"time":"1970-01-01T00:00:00.000000000Z","level":"Error","message":"no lock","trace_id":"07070707070707070707070707070707"}"#
        );
        assert_eq!(serde_json::from_str::<LogRecord>(&text).unwrap(), record);
        assert!(serde_json::from_str::<LogRecord>("{}").unwrap_err().to_string().contains("missing field `time`"));
    }
}
