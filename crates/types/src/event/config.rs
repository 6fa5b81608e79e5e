//! An attribute's configuration: its description, its limits, and its criteria for events. Every change has an epoch,
//! to which events refer. So a value is always read with the unit and the labels that were valid when it was sent.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    data::{DataType, Format},
    name::AttributeName,
    value::Data,
};

/// Access to an attribute; the words are Tango's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Writable {
    /// The attribute can only be read.
    #[default]
    Read = 0,
    /// Read, and another attribute is its set point.
    ReadWithWrite = 1,
    /// The attribute can only be written.
    Write = 2,
    /// The attribute can be read and written.
    ReadWrite = 3,
}

impl Writable {
    /// The one of this number; one of a later release reads as read only.
    pub fn from_number(number: u8) -> Writable {
        match number {
            1 => Writable::ReadWithWrite,
            2 => Writable::Write,
            3 => Writable::ReadWrite,
            _ => Writable::Read,
        }
    }
}

/// Limits of the values. Beyond a warning limit the quality is warning, beyond an alarm limit it is alarm; both
/// inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The least that can be.
    pub min: Option<f64>,
    /// The most that can be.
    pub max: Option<f64>,
    /// Highest value of the lower alarm range.
    pub alarm_low: Option<f64>,
    /// Lowest value of the upper alarm range.
    pub alarm_high: Option<f64>,
    /// Highest value of the lower warning range.
    pub warning_low: Option<f64>,
    /// Lowest value of the upper warning range.
    pub warning_high: Option<f64>,
}

impl Limits {
    /// Returns its numbers, in the order of the wire.
    pub(super) fn numbers(&self) -> [Option<f64>; 6] {
        [self.min, self.max, self.alarm_low, self.alarm_high, self.warning_low, self.warning_high]
    }

    pub(super) fn of_numbers([min, max, alarm_low, alarm_high, warning_low, warning_high]: [Option<f64>; 6]) -> Limits {
        Limits { min, max, alarm_low, alarm_high, warning_low, warning_high }
    }
}

/// Largest change of a value that sends no event: down to `low` (negative), up to `high`, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    low: f64,
    high: f64,
}

/// Error of numbers that are not a band.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("'{0}' is not a threshold: write one number x for -x and +x, or a negative and a positive one, as '-0.5,2'")]
pub struct BadBand(pub String);

impl Band {
    /// Makes a band from -x to +x.
    pub fn symmetric(x: f64) -> Result<Band, BadBand> {
        Band::new(-x.abs(), x.abs())
    }

    /// Makes a band from a number that is not positive to one that is not negative.
    pub fn new(low: f64, high: f64) -> Result<Band, BadBand> {
        if low.is_finite() && high.is_finite() && low <= 0.0 && high >= 0.0 {
            Ok(Band { low, high })
        } else {
            Err(BadBand(format!("{low},{high}")))
        }
    }

    /// The lower end.
    pub fn low(self) -> f64 {
        self.low
    }

    /// The upper end.
    pub fn high(self) -> f64 {
        self.high
    }
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == -self.high { write!(f, "{}", self.high) } else { write!(f, "{},{}", self.low, self.high) }
    }
}

impl FromStr for Band {
    type Err = BadBand;

    fn from_str(text: &str) -> Result<Band, BadBand> {
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| BadBand(text.to_owned()));
        match text.split_once(',') {
            Some((low, high)) => Band::new(number(low)?, number(high)?),
            None => Band::symmetric(number(text)?),
        }
    }
}

impl Serialize for Band {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Band {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Band, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Two thresholds of a change; either is enough.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// Threshold in percent of the value sent last.
    pub rel: Option<Band>,
    /// Threshold in the attribute's unit.
    pub abs: Option<Band>,
}

impl Thresholds {
    /// Returns true if there is not a threshold: then no change of a number is sent.
    pub fn is_empty(&self) -> bool {
        self.rel.is_none() && self.abs.is_none()
    }
}

/// Criteria by which an attribute sends events.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Criteria {
    /// Thresholds of change events.
    pub change: Thresholds,
    /// Thresholds of archive events.
    pub archive: Thresholds,
    /// Longest time without an archive event, ms, after which one is sent; `None`: no limit.
    pub archive_period_ms: Option<u64>,
    /// Period of periodic events in ms.
    pub period_ms: u64,
}

impl Default for Criteria {
    fn default() -> Criteria {
        Criteria { change: Thresholds::default(), archive: Thresholds::default(), archive_period_ms: None, period_ms: 1000 }
    }
}

/// Configuration of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeConfig {
    /// Name of the attribute.
    pub name: AttributeName,
    /// The type of its elements.
    pub data_type: DataType,
    /// Arrangement of the elements.
    pub format: Format,
    /// The longest row; 0 where there is no limit but the encoding's.
    #[serde(default)]
    pub max_x: u32,
    /// The most rows of an image; 0 likewise.
    #[serde(default)]
    pub max_y: u32,
    /// Access to the attribute.
    #[serde(default)]
    pub writable: Writable,
    /// Label for people.
    #[serde(default)]
    pub label: String,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// Its unit, a UCUM code as `mbar` or `Cel`.
    #[serde(default)]
    pub unit: String,
    /// The labels of a DevEnum, by index.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Limits of the values.
    #[serde(default)]
    pub limits: Limits,
    /// Criteria by which it sends events.
    #[serde(default)]
    pub criteria: Criteria,
    /// Period in ms at which the server reads the attribute; `None` if the server's code pushes.
    #[serde(default)]
    pub polled_ms: Option<u32>,
}

/// Reason for which a value cannot be one of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongValue {
    /// The value has another type.
    #[error("{name} is of type {expected}, not {given}")]
    Type {
        /// Name of the attribute.
        name: AttributeName,
        /// Type of the attribute.
        expected: DataType,
        /// Type of the value.
        given: DataType,
    },
    /// Another format, or more elements than it may have.
    #[error("{name} is a {expected}, not a {given}")]
    Shape {
        /// Name of the attribute.
        name: AttributeName,
        /// Shapes that the attribute allows.
        expected: String,
        /// Shape of the value.
        given: super::Shape,
    },
    /// No label has this index.
    #[error("{name} has {labels} labels, so {index} is an invalid index")]
    Label {
        /// Name of the attribute.
        name: AttributeName,
        /// Number of its labels.
        labels: usize,
        /// The index given.
        index: i16,
    },
}

impl AttributeConfig {
    /// An attribute of which only this is known.
    pub fn new(name: AttributeName, data_type: DataType, format: Format) -> AttributeConfig {
        AttributeConfig {
            name,
            data_type,
            format,
            max_x: 0,
            max_y: 0,
            writable: Writable::Read,
            label: String::new(),
            description: String::new(),
            unit: String::new(),
            labels: Vec::new(),
            limits: Limits::default(),
            criteria: Criteria::default(),
            polled_ms: None,
        }
    }

    /// Checks that a value can be one of this attribute.
    #[inline]
    pub fn check(&self, value: &super::Value<'_>) -> Result<(), WrongValue> {
        let (expected, given) = (self.data_type, value.data.data_type());
        if expected != given {
            return Err(WrongValue::Type { name: self.name.clone(), expected, given });
        }
        let shape = value.shape;
        let fits = |count: u32, max: u32| max == 0 || count <= max;
        if shape.format != self.format || !fits(shape.x, self.max_x) || !fits(shape.y, self.max_y) {
            let expected = match self.format {
                Format::Scalar => "scalar".to_owned(),
                Format::Spectrum => format!("spectrum of at most {}", self.max_x),
                Format::Image => format!("image of at most {} x {}", self.max_x, self.max_y),
            };
            return Err(WrongValue::Shape { name: self.name.clone(), expected, given: shape });
        }
        if let Data::Enum(indexes) = value.data {
            let labels = self.labels.len();
            let bad = indexes.iter().find(|&&index| usize::try_from(index).map_or(true, |index| index >= labels));
            if let Some(&index) = bad {
                return Err(WrongValue::Label { name: self.name.clone(), labels, index });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Value;

    #[test]
    fn bands_are_written_as_tango_s_properties_are() {
        assert_eq!("0.5".parse(), Band::new(-0.5, 0.5));
        assert_eq!("-1, 2.5".parse(), Band::new(-1.0, 2.5));
        assert_eq!("-3".parse(), Band::symmetric(3.0));
        for bad in ["", "x", "1,2", "-1,-2", "nan", "inf", "1,2,3"] {
            assert!(bad.parse::<Band>().is_err(), "{bad}");
        }
        for band in ["0.5", "-1,2.5"] {
            assert_eq!(band.parse::<Band>().unwrap().to_string(), band);
        }
    }

    #[test]
    fn criteria_lead_through_json() {
        let criteria = Criteria {
            change: Thresholds { rel: Some("5".parse().unwrap()), abs: None },
            archive_period_ms: Some(60_000),
            ..Criteria::default()
        };
        let json = serde_json::to_string(&criteria).unwrap();
        assert_eq!(serde_json::from_str::<Criteria>(&json).unwrap(), criteria, "{json}");
        assert!(serde_json::from_str::<Criteria>(r#"{"chnge":{}}"#).is_err());
    }

    #[test]
    fn a_value_of_another_type_or_shape_is_none_of_the_attribute_s() {
        let name = AttributeName::new("a/b/c/d").unwrap();
        let mut config = AttributeConfig::new(name.clone(), DataType::Double, Format::Spectrum);
        config.max_x = 3;
        assert_eq!(config.check(&Value::spectrum(&[1.0, 2.0, 3.0])), Ok(()));
        assert_eq!(config.check(&Value::spectrum::<f64>(&[])), Ok(()));
        let told = |value: Value<'_>| config.check(&value).unwrap_err().to_string();
        assert_eq!(told(Value::spectrum(&[1.0f32])), "a/b/c/d is of type DevDouble, not DevFloat");
        assert_eq!(told(Value::scalar(&1.0)), "a/b/c/d is a spectrum of at most 3, not a scalar");
        assert_eq!(told(Value::spectrum(&[0.0; 4])), "a/b/c/d is a spectrum of at most 3, not a spectrum of 4");
        let mut door = AttributeConfig::new(name, DataType::Enum, Format::Scalar);
        door.labels = vec!["open".into(), "shut".into()];
        assert_eq!(door.check(&Value::label(&1)), Ok(()));
        assert!(door.check(&Value::label(&2)).unwrap_err().to_string().contains("2 labels"));
        assert!(door.check(&Value::label(&-1)).is_err());
    }
}
