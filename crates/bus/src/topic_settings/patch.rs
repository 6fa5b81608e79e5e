//! One `[[topic]]`: a condition, and the fields that it changes.

use serde::{Deserialize, Serialize};
use tampu_types::name::BadTopic;

/// Settings for the streams that a condition selects. Fields that are not set keep their values. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QosPatch {
    /// Pattern of the topics. Settings of attributes have none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub topics: String,
    /// Selects streams for this audience alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Pattern of attributes, such as `lab/psu/*/voltage`. They get streams of their own, to which the setting applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<String>,
    /// Replaces [`crate::Qos::credit`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<usize>,
    /// Replaces [`crate::Qos::credit_limit`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_limit: Option<usize>,
    /// See [`crate::Qos::max_wait`]; in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
    /// See [`crate::Qos::wait_period`]; in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_period_ms: Option<u64>,
    /// Replaces [`crate::Qos::cache`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<usize>,
    /// Replaces [`crate::Qos::keep`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<usize>,
    /// See [`crate::Qos::linger`]; in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linger_us: Option<u64>,
    /// Replaces [`crate::Qos::batch`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Replaces [`crate::Qos::pool`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<usize>,
    /// Replaces [`crate::Qos::direct`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// Replaces [`crate::Qos::urgent`] if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgent: Option<bool>,
}

/// Error of an invalid setting of topics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTopicSetting {
    /// The pattern of topics is invalid.
    #[error("topics: {0}")]
    Topics(BadTopic),
    /// The pattern of attributes is invalid.
    #[error("attributes: '{0}' is no pattern of attributes; write one as lab/psu/*/voltage or lab/vacuum/**")]
    Attributes(String),
    /// The setting has two conditions that no stream fulfils together.
    #[error("attributes cannot stand beside {0}: a stream of one attribute has no audience, and its topic is given")]
    Beside(&'static str),
    /// The audience is empty.
    #[error("audience: it is empty; leave it out for streams of every audience")]
    Audience,
    /// A value is out of its range.
    #[error("{field} = {value}: it may be {least} to {most} {unit}")]
    Range {
        /// Name of the field.
        field: &'static str,
        /// Value in the setting.
        value: u64,
        /// Smallest valid value.
        least: u64,
        /// Largest valid value.
        most: u64,
        /// Unit of the values.
        unit: &'static str,
    },
}
