//! Types, formats and states of values. The names are Tango's, so that its users recognise them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{named::UnknownName, named_enum};

/// Numbers of the wire, and names in serialised texts.
macro_rules! numbered {
    ($($type:ident)*) => {
        $(
            impl $type {
                /// The variant of this number.
                pub fn from_number(number: u8) -> Option<$type> {
                    $type::ALL.into_iter().find(|one| *one as u8 == number)
                }
            }

            impl TryFrom<String> for $type {
                type Error = UnknownName;

                fn try_from(text: String) -> Result<$type, UnknownName> {
                    text.parse()
                }
            }

            impl From<$type> for String {
                fn from(one: $type) -> String {
                    one.name().to_owned()
                }
            }
        )*
    };
}

numbered! { DataType Format DevState }

named_enum! {
    /// The type of a value's elements; the numbers are those of the wire.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    #[repr(u8)]
    pub enum DataType("data type") {
        /// True or false.
        Boolean = 1 => "DevBoolean",
        /// 8 bits without sign.
        UChar = 2 => "DevUChar",
        /// Integers of 16 bits.
        Short = 3 => "DevShort",
        /// 16 bits without sign.
        UShort = 4 => "DevUShort",
        /// Integers of 32 bits.
        Long = 5 => "DevLong",
        /// 32 bits without sign.
        ULong = 6 => "DevULong",
        /// Integers of 64 bits.
        Long64 = 7 => "DevLong64",
        /// 64 bits without sign.
        ULong64 = 8 => "DevULong64",
        /// 32 bits, IEEE 754.
        Float = 9 => "DevFloat",
        /// 64 bits, IEEE 754.
        Double = 10 => "DevDouble",
        /// Texts in UTF-8.
        String = 11 => "DevString",
        /// States of devices.
        State = 12 => "DevState",
        /// Bytes, with a word for their format.
        Encoded = 13 => "DevEncoded",
        /// The index of one of the attribute's labels.
        Enum = 14 => "DevEnum",
    }
}

named_enum! {
    /// Arrangement of a value's elements.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    #[repr(u8)]
    pub enum Format("format") {
        /// A single element.
        Scalar = 0 => "scalar",
        /// A row of elements.
        Spectrum = 1 => "spectrum",
        /// Rows in sequence.
        Image = 2 => "image",
    }
}

named_enum! {
    /// A device's state; the numbers are Tango's.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    #[repr(u8)]
    pub enum DevState("state") {
        /// Tango's state ON.
        On = 0 => "ON",
        /// Tango's state OFF.
        Off = 1 => "OFF",
        /// Tango's state CLOSE.
        Close = 2 => "CLOSE",
        /// Tango's state OPEN.
        Open = 3 => "OPEN",
        /// Tango's state INSERT.
        Insert = 4 => "INSERT",
        /// Tango's state EXTRACT.
        Extract = 5 => "EXTRACT",
        /// Tango's state MOVING.
        Moving = 6 => "MOVING",
        /// Tango's state STANDBY.
        Standby = 7 => "STANDBY",
        /// Tango's state FAULT.
        Fault = 8 => "FAULT",
        /// Tango's state INIT.
        Init = 9 => "INIT",
        /// Tango's state RUNNING.
        Running = 10 => "RUNNING",
        /// Tango's state ALARM.
        Alarm = 11 => "ALARM",
        /// Tango's state DISABLE.
        Disable = 12 => "DISABLE",
        /// Tango's state UNKNOWN.
        Unknown = 13 => "UNKNOWN",
    }
}

impl DevState {
    /// The state of this number; one of a later release reads as unknown.
    pub fn read(number: u8) -> DevState {
        DevState::from_number(number).unwrap_or(DevState::Unknown)
    }
}

impl DataType {
    /// Returns true for types with a difference, for which thresholds make sense.
    pub fn is_numeric(self) -> bool {
        (DataType::UChar..=DataType::Double).contains(&self)
    }

    /// Bytes of one element; `None` where they differ in length.
    pub fn width(self) -> Option<usize> {
        match self {
            DataType::Boolean | DataType::UChar | DataType::State => Some(1),
            DataType::Short | DataType::UShort | DataType::Enum => Some(2),
            DataType::Long | DataType::ULong | DataType::Float => Some(4),
            DataType::Long64 | DataType::ULong64 | DataType::Double => Some(8),
            DataType::String | DataType::Encoded => None,
        }
    }
}

/// Number and arrangement of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Arrangement of the elements.
    pub format: Format,
    /// Elements of a row.
    pub x: u32,
    /// Rows of an image; 0 for others.
    pub y: u32,
}

impl Shape {
    /// Shape of a single element.
    pub const SCALAR: Shape = Shape { format: Format::Scalar, x: 1, y: 0 };
    /// Shape of an event without a value.
    pub const NOTHING: Shape = Shape { format: Format::Scalar, x: 0, y: 0 };

    /// Makes the shape of a row of `x` elements.
    pub fn spectrum(x: u32) -> Shape {
        Shape { format: Format::Spectrum, x, y: 0 }
    }

    /// Makes the shape of `y` rows of `x` elements.
    pub fn image(x: u32, y: u32) -> Shape {
        Shape { format: Format::Image, x, y }
    }

    /// Number of elements.
    pub fn elements(self) -> u64 {
        match self.format {
            Format::Scalar => 1,
            Format::Spectrum => u64::from(self.x),
            Format::Image => u64::from(self.x) * u64::from(self.y),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            Format::Scalar => f.pad("scalar"),
            Format::Spectrum => write!(f, "spectrum of {}", self.x),
            Format::Image => write!(f, "image of {} x {}", self.x, self.y),
        }
    }
}
