//! The catalogue of fields that a setting of a topic may change: names, units, ranges; and the settings by it.

use std::time::Duration;

use tampu_types::TopicFilter;

use super::patch::{BadTopicSetting, QosPatch};
use crate::qos::Qos;

/// Streams of attributes that a setting names.
const OWN_STREAMS: &str = "event-own/**";

/// A field of [`Qos`] as settings see it. Flags are 0 and 1.
#[derive(Debug)]
pub struct Field {
    /// Name in files.
    pub name: &'static str,
    /// Unit of the value; empty for a flag.
    pub unit: &'static str,
    /// Smallest valid value.
    pub least: u64,
    /// Largest valid value.
    pub most: u64,
    /// True if a stream takes a new value while it lives.
    pub is_live: bool,
    /// Returns the value in a quality of service.
    pub of: fn(&Qos) -> u64,
    pub(super) set: fn(&mut Qos, u64),
    pub(super) in_patch: fn(&QosPatch) -> Option<u64>,
}

impl Field {
    /// Reports if the value is true or false.
    pub fn is_flag(&self) -> bool {
        self.unit.is_empty()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const GIB: u64 = 1 << 30;

/// Makes a field of a number of bytes.
macro_rules! bytes {
    ($name:ident, $least:expr, $most:expr, live: $live:expr) => {
        Field {
            name: stringify!($name),
            unit: "bytes",
            least: $least,
            most: $most,
            is_live: $live,
            of: |qos| qos.$name as u64,
            set: |qos, value| qos.$name = usize::try_from(value).unwrap_or(usize::MAX),
            in_patch: |patch| patch.$name.map(|value| value as u64),
        }
    };
}

/// Makes a field of a flag, which a stream has from its beginning.
macro_rules! flag {
    ($name:ident) => {
        Field {
            name: stringify!($name),
            unit: "",
            least: 0,
            most: 1,
            is_live: false,
            of: |qos| qos.$name.into(),
            set: |qos, value| qos.$name = value != 0,
            in_patch: |patch| patch.$name.map(u64::from),
        }
    };
}

/// All fields, in the order of the documentation.
pub const FIELDS: [Field; 11] = [
    // Heartbeats have 32 bits for it.
    bytes!(credit, 1, u32::MAX as u64, live: true),
    bytes!(credit_limit, 1, u32::MAX as u64, live: true),
    Field {
        name: "max_wait_ms",
        unit: "ms",
        least: 0,
        most: MINUTE_MS,
        is_live: true,
        of: |qos| micros(qos.max_wait) / 1000,
        set: |qos, value| qos.max_wait = Duration::from_millis(value),
        in_patch: |patch| patch.max_wait_ms,
    },
    Field {
        name: "wait_period_ms",
        unit: "ms",
        least: 1,
        most: HOUR_MS,
        is_live: true,
        of: |qos| micros(qos.wait_period) / 1000,
        set: |qos, value| qos.wait_period = Duration::from_millis(value),
        in_patch: |patch| patch.wait_period_ms,
    },
    bytes!(cache, 0, 64 * GIB, live: true),
    bytes!(keep, 0, 64 * GIB, live: true),
    Field {
        name: "linger_us",
        unit: "us",
        least: 0,
        most: HOUR_MS * 1000,
        is_live: true,
        of: |qos| micros(qos.linger),
        set: |qos, value| qos.linger = Duration::from_micros(value),
        in_patch: |patch| patch.linger_us,
    },
    bytes!(batch, 1, GIB, live: true),
    bytes!(pool, 4096, 64 * GIB, live: false),
    flag!(direct),
    flag!(urgent),
];

impl QosPatch {
    /// Checks the condition and the ranges, and returns the pattern of topics.
    pub(super) fn check(&self) -> Result<TopicFilter, BadTopicSetting> {
        for field in &FIELDS {
            if let Some(value) = (field.in_patch)(self).filter(|value| !(field.least..=field.most).contains(value)) {
                let (least, most, unit) = (field.least, field.most, field.unit);
                return Err(BadTopicSetting::Range { field: field.name, value, least, most, unit });
            }
        }
        if self.audience.as_deref().is_some_and(|audience| audience.trim().is_empty()) {
            return Err(BadTopicSetting::Audience);
        }
        let topics = match &self.attributes {
            None => self.topics.as_str(),
            Some(_) if !self.topics.is_empty() => return Err(BadTopicSetting::Beside("topics")),
            Some(_) if self.audience.is_some() => return Err(BadTopicSetting::Beside("audience")),
            Some(pattern) if pattern.split('/').any(str::is_empty) => {
                return Err(BadTopicSetting::Attributes(pattern.clone()));
            }
            Some(_) => OWN_STREAMS,
        };
        TopicFilter::new(topics).map_err(BadTopicSetting::Topics)
    }

    /// Changes the fields that are set.
    pub(super) fn apply(&self, qos: &mut Qos) {
        for field in &FIELDS {
            if let Some(value) = (field.in_patch)(self) {
                (field.set)(qos, value);
            }
        }
    }
}
