//! A value at its writer. It is borrowed from the program's memory, so publishing copies it once, into the sample. It
//! is owned for callers that keep it.
//!
//! Rejected: a trait object or a generic value. Criteria, codecs and displays each need to know the type once for all
//! elements, which a `match` over slices gives. A new data type then fails to compile wherever it is forgotten.

use zerocopy::IntoBytes;

use super::data::{DataType, DevState, Shape};

/// The elements of a value, where they are. A scalar is a slice of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Data<'a> {
    /// Elements of type [`DataType::Boolean`].
    Boolean(&'a [bool]),
    /// Elements of type [`DataType::UChar`].
    UChar(&'a [u8]),
    /// Elements of type [`DataType::Short`].
    Short(&'a [i16]),
    /// Elements of type [`DataType::UShort`].
    UShort(&'a [u16]),
    /// Elements of type [`DataType::Long`].
    Long(&'a [i32]),
    /// Elements of type [`DataType::ULong`].
    ULong(&'a [u32]),
    /// Elements of type [`DataType::Long64`].
    Long64(&'a [i64]),
    /// Elements of type [`DataType::ULong64`].
    ULong64(&'a [u64]),
    /// Elements of type [`DataType::Float`].
    Float(&'a [f32]),
    /// Elements of type [`DataType::Double`].
    Double(&'a [f64]),
    /// Elements of type [`DataType::String`].
    String(&'a [String]),
    /// Elements of type [`DataType::State`].
    State(&'a [DevState]),
    /// See [`DataType::Encoded`]: one element.
    Encoded {
        /// Format of the bytes, as `JPEG_RGB24`.
        format: &'a str,
        /// Bytes in that format.
        data: &'a [u8],
    },
    /// See [`DataType::Enum`]: indexes of the configuration's labels.
    Enum(&'a [i16]),
}

/// The same, owned.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the variants are those of Data")]
pub enum Values {
    Boolean(Vec<bool>),
    UChar(Vec<u8>),
    Short(Vec<i16>),
    UShort(Vec<u16>),
    Long(Vec<i32>),
    ULong(Vec<u32>),
    Long64(Vec<i64>),
    ULong64(Vec<u64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    String(Vec<String>),
    State(Vec<DevState>),
    Encoded { format: String, data: Vec<u8> },
    Enum(Vec<i16>),
}

/// Does the same for each variant; `$all` is a slice of the elements.
macro_rules! each {
    ($on:expr, $($path:ident)::+, $all:ident => $do:expr, encoded($format:ident, $data:ident) => $encoded:expr) => {
        match $on {
            $($path)::+::Boolean($all) => $do,
            $($path)::+::UChar($all) => $do,
            $($path)::+::Short($all) => $do,
            $($path)::+::UShort($all) => $do,
            $($path)::+::Long($all) => $do,
            $($path)::+::ULong($all) => $do,
            $($path)::+::Long64($all) => $do,
            $($path)::+::ULong64($all) => $do,
            $($path)::+::Float($all) => $do,
            $($path)::+::Double($all) => $do,
            $($path)::+::String($all) => $do,
            $($path)::+::State($all) => $do,
            $($path)::+::Encoded { format: $format, data: $data } => $encoded,
            $($path)::+::Enum($all) => $do,
        }
    };
}

impl<'a> Data<'a> {
    /// The type of the elements.
    pub fn data_type(self) -> DataType {
        match self {
            Data::Boolean(_) => DataType::Boolean,
            Data::UChar(_) => DataType::UChar,
            Data::Short(_) => DataType::Short,
            Data::UShort(_) => DataType::UShort,
            Data::Long(_) => DataType::Long,
            Data::ULong(_) => DataType::ULong,
            Data::Long64(_) => DataType::Long64,
            Data::ULong64(_) => DataType::ULong64,
            Data::Float(_) => DataType::Float,
            Data::Double(_) => DataType::Double,
            Data::String(_) => DataType::String,
            Data::State(_) => DataType::State,
            Data::Encoded { .. } => DataType::Encoded,
            Data::Enum(_) => DataType::Enum,
        }
    }

    /// The elements of numbers as an event has them; `None` for other elements, and on hosts whose numbers lie otherwise.
    pub fn number_bytes(self) -> Option<&'a [u8]> {
        let bytes = match self {
            Data::UChar(all) => all,
            Data::Short(all) | Data::Enum(all) => all.as_bytes(),
            Data::UShort(all) => all.as_bytes(),
            Data::Long(all) => all.as_bytes(),
            Data::ULong(all) => all.as_bytes(),
            Data::Long64(all) => all.as_bytes(),
            Data::ULong64(all) => all.as_bytes(),
            Data::Float(all) => all.as_bytes(),
            Data::Double(all) => all.as_bytes(),
            Data::Boolean(_) | Data::State(_) | Data::String(_) | Data::Encoded { .. } => return None,
        };
        cfg!(target_endian = "little").then_some(bytes)
    }

    /// Most bytes that the elements have in an event.
    pub fn size(self) -> usize {
        match self {
            // Each text has its length, its end and a gap beside it.
            Data::String(all) => all.iter().map(|text| text.len() + 9).sum(),
            Data::Encoded { format, data } => format.len() + data.len(),
            other => other.len() * other.data_type().width().unwrap_or(1),
        }
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        each!(self, Data, all => all.len(), encoded(_format, _data) => 1)
    }

    /// Returns true if there are no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Copies the elements.
    pub fn to_values(self) -> Values {
        match self {
            Data::Boolean(all) => Values::Boolean(all.to_vec()),
            Data::UChar(all) => Values::UChar(all.to_vec()),
            Data::Short(all) => Values::Short(all.to_vec()),
            Data::UShort(all) => Values::UShort(all.to_vec()),
            Data::Long(all) => Values::Long(all.to_vec()),
            Data::ULong(all) => Values::ULong(all.to_vec()),
            Data::Long64(all) => Values::Long64(all.to_vec()),
            Data::ULong64(all) => Values::ULong64(all.to_vec()),
            Data::Float(all) => Values::Float(all.to_vec()),
            Data::Double(all) => Values::Double(all.to_vec()),
            Data::String(all) => Values::String(all.to_vec()),
            Data::State(all) => Values::State(all.to_vec()),
            Data::Encoded { format, data } => Values::Encoded { format: format.to_owned(), data: data.to_vec() },
            Data::Enum(all) => Values::Enum(all.to_vec()),
        }
    }
}

impl Values {
    /// Borrows the elements.
    pub fn as_data(&self) -> Data<'_> {
        match self {
            Values::Boolean(all) => Data::Boolean(all),
            Values::UChar(all) => Data::UChar(all),
            Values::Short(all) => Data::Short(all),
            Values::UShort(all) => Data::UShort(all),
            Values::Long(all) => Data::Long(all),
            Values::ULong(all) => Data::ULong(all),
            Values::Long64(all) => Data::Long64(all),
            Values::ULong64(all) => Data::ULong64(all),
            Values::Float(all) => Data::Float(all),
            Values::Double(all) => Data::Double(all),
            Values::String(all) => Data::String(all),
            Values::State(all) => Data::State(all),
            Values::Encoded { format, data } => Data::Encoded { format, data },
            Values::Enum(all) => Data::Enum(all),
        }
    }

    /// Becomes a copy of `data`, in the memory it has where the type is the same.
    pub fn assign(&mut self, data: Data<'_>) {
        fn refill<T: Clone>(into: &mut Vec<T>, from: &[T]) {
            into.clear();
            into.extend_from_slice(from);
        }
        match (self, data) {
            (Values::Boolean(into), Data::Boolean(from)) => refill(into, from),
            (Values::UChar(into), Data::UChar(from)) => refill(into, from),
            (Values::Short(into), Data::Short(from)) => refill(into, from),
            (Values::UShort(into), Data::UShort(from)) => refill(into, from),
            (Values::Long(into), Data::Long(from)) => refill(into, from),
            (Values::ULong(into), Data::ULong(from)) => refill(into, from),
            (Values::Long64(into), Data::Long64(from)) => refill(into, from),
            (Values::ULong64(into), Data::ULong64(from)) => refill(into, from),
            (Values::Float(into), Data::Float(from)) => refill(into, from),
            (Values::Double(into), Data::Double(from)) => refill(into, from),
            (Values::Enum(into), Data::Enum(from)) => refill(into, from),
            (other, data) => *other = data.to_values(),
        }
    }
}

/// Rust types of a value's elements. Labels of a DevEnum need an explicit [`Data::Enum`], as their type is DevShort's.
pub trait Element: Sized {
    /// Wraps these elements.
    fn data(elements: &[Self]) -> Data<'_>;
}

macro_rules! elements {
    ($($type:ty => $variant:ident,)*) => {
        $(impl Element for $type {
            fn data(elements: &[$type]) -> Data<'_> {
                Data::$variant(elements)
            }
        })*
    };
}
elements! {
    bool => Boolean,
    u8 => UChar,
    i16 => Short,
    u16 => UShort,
    i32 => Long,
    u32 => ULong,
    i64 => Long64,
    u64 => ULong64,
    f32 => Float,
    f64 => Double,
    String => String,
    DevState => State,
}

/// Elements and their arrangement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value<'a> {
    /// Elements of the value.
    pub data: Data<'a>,
    /// Arrangement of the elements; the encoder refuses a shape of another number of elements.
    pub shape: Shape,
}

impl<'a> Value<'a> {
    /// Value of one element.
    pub fn scalar<T: Element>(element: &'a T) -> Value<'a> {
        Value { data: T::data(std::slice::from_ref(element)), shape: Shape::SCALAR }
    }

    /// Value of one row.
    pub fn spectrum<T: Element>(elements: &'a [T]) -> Value<'a> {
        // The encoder refuses a row too long for the number, as its shape does not fit.
        Value { data: T::data(elements), shape: Shape::spectrum(u32::try_from(elements.len()).unwrap_or(u32::MAX)) }
    }

    /// Makes an image of `y` rows of `x` elements each, in sequence.
    pub fn image<T: Element>(elements: &'a [T], x: u32, y: u32) -> Value<'a> {
        Value { data: T::data(elements), shape: Shape::image(x, y) }
    }

    /// Makes a value of bytes, with a word for their format.
    pub fn encoded(format: &'a str, data: &'a [u8]) -> Value<'a> {
        Value { data: Data::Encoded { format, data }, shape: Shape::SCALAR }
    }

    /// The index of a label.
    pub fn label(index: &'a i16) -> Value<'a> {
        Value { data: Data::Enum(std::slice::from_ref(index)), shape: Shape::SCALAR }
    }
}
