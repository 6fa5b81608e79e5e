//! The fields that a logger adds to its records.

use serde::{Deserialize, Serialize};
use tampu_types::LogRecord;

use crate::logger::{clock::now, settings::LogSettings};

/// The fields a logger adds to its records. In a log ring's dictionary they stand as JSON (`spec/log-call.md`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoggerFields {
    pub logger: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_object: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub array: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub antenna: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stack_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_level: Option<i32>,
}

impl LoggerFields {
    /// Encodes the fields for a dictionary.
    pub fn encode(&self) -> Vec<u8> {
        // Strings, numbers and lists of strings always convert to JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes fields of a dictionary; fields of a later release are ignored.
    pub fn decode(bytes: &[u8]) -> Result<LoggerFields, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Completes the empty fields of a record made by hand.
    pub fn complete(&self, record: &mut LogRecord, settings: &LogSettings) {
        if record.time.0 == 0 {
            record.time = now();
        }
        for (field, own) in [(&mut record.host, &settings.host), (&mut record.process, &settings.process)] {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if record.thread.is_empty() {
            record.thread = this_thread();
        }
        self.lend(record);
    }

    /// Fills in the fields that are its own, where a record leaves them empty.
    pub fn lend(&self, record: &mut LogRecord) {
        for (field, own) in [
            (&mut record.logger, &self.logger),
            (&mut record.source_object, &self.source_object),
            (&mut record.context, &self.context),
            (&mut record.array, &self.array),
            (&mut record.antenna, &self.antenna),
            (&mut record.run_id, &self.run_id),
            (&mut record.stack_id, &self.stack_id),
        ] {
            if field.is_empty() {
                field.clone_from(own);
            }
        }
        if record.audiences.is_empty() {
            record.audiences.clone_from(&self.audiences);
        }
        record.stack_level = record.stack_level.or(self.stack_level);
    }
}

fn this_thread() -> String {
    match std::thread::current().name() {
        Some(name) => name.to_owned(),
        None => format!("thread-{}", rustix::thread::gettid().as_raw_nonzero()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_the_dictionary() {
        let fields = LoggerFields {
            logger: "mount".to_owned(),
            audiences: vec!["Operator".to_owned()],
            stack_level: Some(2),
            ..LoggerFields::default()
        };
        let bytes = fields.encode();
        let page = include_str!("../../../../spec/log-call.md");
        let example = page.split("```json\n").nth(1).and_then(|rest| rest.split('\n').next()).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), example);
        assert_eq!(LoggerFields::decode(&bytes).unwrap(), fields);
        assert_eq!(LoggerFields::decode(br#"{"logger":"x","of_tomorrow":1}"#).unwrap().logger, "x");
        assert!(LoggerFields::decode(b"\xff").is_err());
    }
}
