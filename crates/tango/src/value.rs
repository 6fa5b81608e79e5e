//! Values in the lines: numbers as JSON or as base64 of their bytes, texts, and bytes with a word.
//!
//! Floating point is sent in base64 only, both ways. Not every reader reads JSON's short texts exactly, and JSON has no
//! NaN.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use tampu_types::event::{Data, DataType, DevState, Format, Shape, Value, ValueView, Values};

/// Rows of numbers up to this length are written as JSON numbers, longer ones in base64.
const PLAIN: usize = 32;

/// Errors of decoding a value of a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLineValue {
    /// Neither `data` nor `base64` is there, or the wrong one.
    #[error("a {0} without its elements")]
    Nothing(DataType),
    /// An element is not of the type.
    #[error("invalid {data_type} {element}")]
    Element {
        /// The element as text.
        element: String,
        /// The expected type.
        data_type: DataType,
    },
    /// The base64 is invalid, or its length is not a multiple of the element size.
    #[error("invalid base64 of a {0}, or its length is not a multiple of the element size")]
    Base64(DataType),
    /// A number of elements that differs from the shape.
    #[error("{elements} elements do not match '{shape}'")]
    Shape {
        /// Number of elements found.
        elements: usize,
        /// Shape that the line names.
        shape: Shape,
    },
}

/// A value in a line; `spec/wire/tango-bridge.md` has its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineValue {
    data_type: DataType,
    format: Format,
    x: u32,
    y: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Vec<serde_json::Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
}

/// A value that was read from a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    pub values: Values,
    /// Arrangement of the elements.
    pub shape: Shape,
}

impl Read {
    /// The value, to be published.
    pub fn as_value(&self) -> Value<'_> {
        Value { data: self.values.as_data(), shape: self.shape }
    }

    pub fn as_data(&self) -> Data<'_> {
        self.values.as_data()
    }
}

/// Numbers of one width, from JSON or from bytes.
macro_rules! numbers {
    ($wire:expr, $type:ty, $as:ident) => {
        match $wire.elements()? {
            Came::Bytes(bytes) => {
                let (whole, rest) = bytes.as_chunks::<{ size_of::<$type>() }>();
                if !rest.is_empty() {
                    return Err(BadLineValue::Base64($wire.data_type));
                }
                whole.iter().map(|&number| <$type>::from_le_bytes(number)).collect()
            }
            Came::Plain(all) => all
                .iter()
                .map(|one| one.$as().and_then(|number| <$type>::try_from(number).ok()).ok_or_else(|| $wire.not(one)))
                .collect::<Result<Vec<$type>, _>>()?,
        }
    };
}

/// Encodes floating point, which JSON has as doubles.
macro_rules! floats {
    ($wire:expr, $type:ty) => {
        match $wire.elements()? {
            Came::Bytes(bytes) => {
                let (whole, rest) = bytes.as_chunks::<{ size_of::<$type>() }>();
                if !rest.is_empty() {
                    return Err(BadLineValue::Base64($wire.data_type));
                }
                whole.iter().map(|&number| <$type>::from_le_bytes(number)).collect()
            }
            Came::Plain(all) => all
                .iter()
                .map(|one| one.as_f64().map(|number| number as $type).ok_or_else(|| $wire.not(one)))
                .collect::<Result<Vec<$type>, _>>()?,
        }
    };
}

enum Came<'a> {
    Plain(&'a [serde_json::Value]),
    Bytes(Vec<u8>),
}

impl LineValue {
    /// Returns the stated data type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    fn not(&self, element: &serde_json::Value) -> BadLineValue {
        let mut element = element.to_string();
        element.truncate(element.floor_char_boundary(80));
        BadLineValue::Element { element, data_type: self.data_type }
    }

    fn bytes(&self) -> Result<Vec<u8>, BadLineValue> {
        let text = self.base64.as_ref().ok_or(BadLineValue::Nothing(self.data_type))?;
        BASE64_STANDARD.decode(text).map_err(|_| BadLineValue::Base64(self.data_type))
    }

    fn elements(&self) -> Result<Came<'_>, BadLineValue> {
        match (&self.data, &self.base64) {
            (Some(data), _) => Ok(Came::Plain(data)),
            (None, _) => self.bytes().map(Came::Bytes),
        }
    }

    /// Decodes the value.
    pub fn read(&self) -> Result<Read, BadLineValue> {
        let values = match self.data_type {
            DataType::Boolean => Values::Boolean(match self.elements()? {
                Came::Bytes(bytes) => bytes.into_iter().map(|byte| byte != 0).collect(),
                Came::Plain(all) => all.iter().map(|one| one.as_bool().ok_or_else(|| self.not(one))).collect::<Result<_, _>>()?,
            }),
            DataType::UChar => Values::UChar(numbers!(self, u8, as_u64)),
            DataType::Short => Values::Short(numbers!(self, i16, as_i64)),
            DataType::UShort => Values::UShort(numbers!(self, u16, as_u64)),
            DataType::Long => Values::Long(numbers!(self, i32, as_i64)),
            DataType::ULong => Values::ULong(numbers!(self, u32, as_u64)),
            DataType::Long64 => Values::Long64(numbers!(self, i64, as_i64)),
            DataType::ULong64 => Values::ULong64(numbers!(self, u64, as_u64)),
            DataType::Float => Values::Float(floats!(self, f32)),
            DataType::Double => Values::Double(floats!(self, f64)),
            DataType::Enum => Values::Enum(numbers!(self, i16, as_i64)),
            DataType::State => {
                let numbers: Vec<u8> = numbers!(self, u8, as_u64);
                Values::State(numbers.into_iter().map(DevState::read).collect())
            }
            DataType::String => {
                let all = self.data.as_ref().ok_or(BadLineValue::Nothing(self.data_type))?;
                let text = |one: &serde_json::Value| one.as_str().map(str::to_owned).ok_or_else(|| self.not(one));
                Values::String(all.iter().map(text).collect::<Result<_, _>>()?)
            }
            DataType::Encoded => Values::Encoded { format: self.encoding.clone().unwrap_or_default(), data: self.bytes()? },
        };
        let shape = match self.format {
            Format::Scalar => Shape::SCALAR,
            Format::Spectrum => Shape::spectrum(self.x),
            Format::Image => Shape::image(self.x, self.y),
        };
        let elements = values.as_data().len();
        if elements as u64 != shape.elements() {
            return Err(BadLineValue::Shape { elements, shape });
        }
        Ok(Read { values, shape })
    }

    /// Makes a value for a line.
    pub fn of(value: &ValueView<'_>, shape: Shape) -> LineValue {
        let mut line = LineValue {
            data_type: value.data_type(),
            format: shape.format,
            x: shape.x,
            y: shape.y,
            data: None,
            base64: None,
            encoding: None,
        };
        match value {
            ValueView::Encoded { format, data } => {
                line.encoding = Some((*format).to_owned());
                line.base64 = Some(BASE64_STANDARD.encode(data));
            }
            ValueView::String(all) => line.data = Some(all.iter().map(Into::into).collect()),
            _ => match plain(value) {
                Some(all) => line.data = Some(all),
                None => line.base64 = Some(BASE64_STANDARD.encode(little_endian(value))),
            },
        }
        line
    }
}

/// Returns a short row of numbers that JSON represents exactly.
fn plain(value: &ValueView<'_>) -> Option<Vec<serde_json::Value>> {
    if value.len() > PLAIN {
        return None;
    }
    Some(match value {
        ValueView::Boolean(all) => all.iter().map(|&byte| (byte != 0).into()).collect(),
        ValueView::UChar(all) | ValueView::State(all) => all.iter().map(|&number| number.into()).collect(),
        ValueView::Short(all) | ValueView::Enum(all) => all.iter().map(Into::into).collect(),
        ValueView::UShort(all) => all.iter().map(Into::into).collect(),
        ValueView::Long(all) => all.iter().map(Into::into).collect(),
        ValueView::ULong(all) => all.iter().map(Into::into).collect(),
        ValueView::Long64(all) => all.iter().map(Into::into).collect(),
        ValueView::ULong64(all) => all.iter().map(Into::into).collect(),
        _ => return None,
    })
}

/// The elements' bytes, without gaps.
fn little_endian(value: &ValueView<'_>) -> Vec<u8> {
    match value {
        ValueView::Boolean(all) => all.iter().map(|&byte| u8::from(byte != 0)).collect(),
        ValueView::UChar(all) | ValueView::State(all) => all.to_vec(),
        ValueView::Short(all) | ValueView::Enum(all) => all.iter().flat_map(i16::to_le_bytes).collect(),
        ValueView::UShort(all) => all.iter().flat_map(u16::to_le_bytes).collect(),
        ValueView::Long(all) => all.iter().flat_map(i32::to_le_bytes).collect(),
        ValueView::ULong(all) => all.iter().flat_map(u32::to_le_bytes).collect(),
        ValueView::Long64(all) => all.iter().flat_map(i64::to_le_bytes).collect(),
        ValueView::ULong64(all) => all.iter().flat_map(u64::to_le_bytes).collect(),
        ValueView::Float(all) => all.iter().flat_map(f32::to_le_bytes).collect(),
        ValueView::Double(all) => all.iter().flat_map(f64::to_le_bytes).collect(),
        ValueView::String(_) | ValueView::Encoded { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::event::{EventSample, EventView};

    use super::*;

    /// A value through the bus's encoding and a line, as bytes: NaN is not equal to itself.
    fn led_back(value: Value<'_>) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        EventSample::of(1, value).encode(&mut before).unwrap();
        let view = EventView::parse(&before).unwrap();
        let line = serde_json::to_string(&LineValue::of(&view.value.unwrap(), view.shape)).unwrap();
        let read = serde_json::from_str::<LineValue>(&line).unwrap().read().unwrap_or_else(|error| panic!("{error}: {line}"));
        EventSample::of(1, read.as_value()).encode(&mut after).unwrap();
        (before, after)
    }

    #[test]
    fn values_of_all_types_lead_through_a_line_exactly() {
        macro_rules! whole {
            ($($type:ty),*) => {$(
                let ends = [<$type>::MIN, <$type>::MAX, 1];
                let long: Vec<$type> = ends.iter().copied().cycle().take(100).collect();
                for value in [Value::scalar(&ends[0]), Value::spectrum(&ends), Value::spectrum(&long), Value::image(&long, 20, 5), Value::spectrum::<$type>(&[])] {
                    let (before, after) = led_back(value);
                    assert_eq!(before, after);
                }
            )*};
        }
        whole!(u8, i16, u16, i32, u32, i64, u64);
        let doubles = [0.1, f64::NAN, f64::INFINITY, -0.0, 5e-324, 1.797_693_134_862_315_7e308];
        let floats = [0.1f32, f32::NAN, f32::NEG_INFINITY, 1e-45];
        let states = [DevState::On, DevState::Unknown, DevState::Fault];
        let texts = ["".to_owned(), "fünf \"°C\"\n".to_owned()];
        let bytes: Vec<u8> = (0..=255).collect();
        let label = 2;
        for value in [
            Value::spectrum(&doubles),
            Value::scalar(&doubles[0]),
            Value::spectrum(&floats),
            Value::spectrum(&states),
            Value::spectrum(&texts),
            Value::image(&texts, 1, 2),
            Value::spectrum(&[true, false]),
            Value::spectrum(&[true; 64]),
            Value::label(&label),
            Value::encoded("JPEG", &bytes),
            Value::encoded("", &[]),
        ] {
            let (before, after) = led_back(value);
            assert_eq!(before, after);
        }
    }

    #[test]
    fn a_value_that_is_none_says_why() {
        for (text, why) in [
            (r#"{"data_type":"DevShort","format":"scalar","x":1,"y":0,"data":[40000]}"#, "invalid DevShort 40000"),
            (r#"{"data_type":"DevULong64","format":"scalar","x":1,"y":0,"data":[-1]}"#, "invalid DevULong64 -1"),
            (r#"{"data_type":"DevLong","format":"scalar","x":1,"y":0,"data":["x"]}"#, "invalid DevLong"),
            (r#"{"data_type":"DevBoolean","format":"scalar","x":1,"y":0,"data":[1]}"#, "invalid DevBoolean 1"),
            (
                r#"{"data_type":"DevLong","format":"spectrum","x":3,"y":0,"data":[1,2]}"#,
                "2 elements do not match 'spectrum of 3'",
            ),
            (
                r#"{"data_type":"DevLong","format":"image","x":4294967295,"y":4294967295,"data":[1]}"#,
                "1 elements do not match 'image",
            ),
            (r#"{"data_type":"DevLong","format":"scalar","x":1,"y":0,"base64":"AAA="}"#, "not a multiple of the element size"),
            (r#"{"data_type":"DevDouble","format":"scalar","x":1,"y":0,"base64":"!"}"#, "invalid base64 of a DevDouble"),
            (r#"{"data_type":"DevString","format":"scalar","x":1,"y":0,"base64":""}"#, "a DevString without its elements"),
            (r#"{"data_type":"DevEncoded","format":"scalar","x":1,"y":0,"data":[1]}"#, "a DevEncoded without its elements"),
            (r#"{"data_type":"DevDouble","format":"scalar","x":1,"y":0}"#, "a DevDouble without its elements"),
        ] {
            let told = serde_json::from_str::<LineValue>(text).unwrap().read().unwrap_err().to_string();
            assert!(told.contains(why), "{text}: {told}");
        }
        assert!(serde_json::from_str::<LineValue>(r#"{"data_type":"DevPipe","format":"scalar","x":1,"y":0}"#).is_err());
    }
}
