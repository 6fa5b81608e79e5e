//! What a value is made of. The names are Tango's, so that who comes from there finds everything.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! named_numbers {
    ($(#[$about:meta])* $type:ident, $noun:literal, $error:ident { $($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[repr(u8)]
        pub enum $type {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$variant),*];

            /// The one of this number.
            pub fn from_number(number: u8) -> Option<$type> {
                match number {
                    $($number => Some($type::$variant),)*
                    _ => None,
                }
            }

            /// Its word.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        #[doc = concat!("No ", $noun, " has this name.")]
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[error("'{0}' is no {noun} ({names})", noun = $noun, names = [$($name),*].join(", "))]
        pub struct $error(pub String);

        impl FromStr for $type {
            type Err = $error;

            fn from_str(text: &str) -> Result<$type, $error> {
                let found = $type::ALL.iter().find(|one| one.name().eq_ignore_ascii_case(text));
                found.copied().ok_or_else(|| $error(text.to_owned()))
            }
        }

        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<$type, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(one: $type) -> String {
                one.name().to_owned()
            }
        }
    };
}

named_numbers! {
    /// The type of a value's elements; the numbers are those of the wire.
    DataType, "data type", UnknownDataType {
        /// True or false.
        Boolean = 1, "DevBoolean";
        /// 8 bits without sign.
        UChar = 2, "DevUChar";
        /// 16 bits.
        Short = 3, "DevShort";
        /// 16 bits without sign.
        UShort = 4, "DevUShort";
        /// 32 bits.
        Long = 5, "DevLong";
        /// 32 bits without sign.
        ULong = 6, "DevULong";
        /// 64 bits.
        Long64 = 7, "DevLong64";
        /// 64 bits without sign.
        ULong64 = 8, "DevULong64";
        /// 32 bits, IEEE 754.
        Float = 9, "DevFloat";
        /// 64 bits, IEEE 754.
        Double = 10, "DevDouble";
        /// UTF-8 text.
        String = 11, "DevString";
        /// A state.
        State = 12, "DevState";
        /// Bytes, and a word that says what they are.
        Encoded = 13, "DevEncoded";
        /// The index of one of the attribute's labels.
        Enum = 14, "DevEnum";
    }
}

named_numbers! {
    /// How a value's elements are arranged.
    Format, "format", UnknownFormat {
        /// One.
        Scalar = 0, "scalar";
        /// A row.
        Spectrum = 1, "spectrum";
        /// Rows one after the other.
        Image = 2, "image";
    }
}

named_numbers! {
    /// A device's state; the numbers are Tango's.
    DevState, "state", UnknownState {
        /// ON
        On = 0, "ON";
        /// OFF
        Off = 1, "OFF";
        /// CLOSE
        Close = 2, "CLOSE";
        /// OPEN
        Open = 3, "OPEN";
        /// INSERT
        Insert = 4, "INSERT";
        /// EXTRACT
        Extract = 5, "EXTRACT";
        /// MOVING
        Moving = 6, "MOVING";
        /// STANDBY
        Standby = 7, "STANDBY";
        /// FAULT
        Fault = 8, "FAULT";
        /// INIT
        Init = 9, "INIT";
        /// RUNNING
        Running = 10, "RUNNING";
        /// ALARM
        Alarm = 11, "ALARM";
        /// DISABLE
        Disable = 12, "DISABLE";
        /// UNKNOWN
        Unknown = 13, "UNKNOWN";
    }
}

impl DevState {
    /// The state of this number; one of a later release reads as unknown.
    pub fn read(number: u8) -> DevState {
        DevState::from_number(number).unwrap_or(DevState::Unknown)
    }
}

impl DataType {
    /// Whether thresholds make sense for it: what has a difference.
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

/// How many elements there are, and how they are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The arrangement.
    pub format: Format,
    /// Elements of a row.
    pub x: u32,
    /// Rows of an image; 0 for others.
    pub y: u32,
}

impl Shape {
    /// One element.
    pub const SCALAR: Shape = Shape { format: Format::Scalar, x: 1, y: 0 };
    /// Of an event without a value.
    pub const NOTHING: Shape = Shape { format: Format::Scalar, x: 0, y: 0 };

    /// A row of so many.
    pub fn spectrum(x: u32) -> Shape {
        Shape { format: Format::Spectrum, x, y: 0 }
    }

    /// So many rows of so many.
    pub fn image(x: u32, y: u32) -> Shape {
        Shape { format: Format::Image, x, y }
    }

    /// How many elements it has.
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
