//! A value at its receiver: its elements are read in place, little endian, from bytes at any address.
//!
//! The encoding puts elements at a multiple of 8 from the start of the sample, so in a loan they are a slice unchanged.
//! In a batch a sample begins at a multiple of 4, and [`Elements::as_slice`] then fails for half of the 8-byte types.
//! Reading one by one costs the same on the processors in question. The slice serves callers that pass it to a library.

use std::{fmt, marker::PhantomData};

use super::{
    data::{DataType, DevState},
    value::Values,
};
use crate::cdr::{BadCdr, Decoder};

/// A number in its encoding: little endian.
pub trait Number: Copy + 'static + sealed::Sealed + zerocopy::FromBytes + zerocopy::Immutable + zerocopy::KnownLayout {
    /// Reads it; `bytes` has its width.
    #[doc(hidden)]
    fn read(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Number for $type {
                #[inline]
                fn read(bytes: &[u8]) -> $type {
                    // Callers pass pieces of exactly this width.
                    bytes.first_chunk().map_or_else(Default::default, |bytes| <$type>::from_le_bytes(*bytes))
                }
            }
        )*
    };
}
numbers!(i16, u16, i32, u32, i64, u64, f32, f64);

/// Numbers, where they were received.
#[derive(Clone, Copy)]
pub struct Elements<'a, T> {
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Number> Elements<'a, T> {
    const WIDTH: usize = size_of::<T>();

    /// Returns the numbers in these bytes; an incomplete one at the end is ignored.
    pub fn new(bytes: &'a [u8]) -> Elements<'a, T> {
        Elements { bytes: &bytes[..bytes.len() - bytes.len() % Self::WIDTH], of: PhantomData }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / Self::WIDTH
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// One of them.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        let at = index.checked_mul(Self::WIDTH)?;
        self.bytes.get(at..at.checked_add(Self::WIDTH)?).map(T::read)
    }

    /// Returns the elements in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + 'a {
        self.bytes.chunks_exact(Self::WIDTH).map(T::read)
    }

    /// Returns the elements as a slice, if the bytes are aligned.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        if cfg!(target_endian = "big") {
            return None;
        }
        <[T] as zerocopy::FromBytes>::ref_from_bytes(self.bytes).ok()
    }

    /// Copies the elements.
    pub fn to_vec(&self) -> Vec<T> {
        self.as_slice().map_or_else(|| self.iter().collect(), <[T]>::to_vec)
    }
}

impl<T: Number + fmt::Debug> fmt::Debug for Elements<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Texts, where they were received; they are checked.
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    /// Stands before the first.
    at: Decoder<'a>,
    count: usize,
}

impl<'a> Strings<'a> {
    /// Checks a sequence of strings; `at` stands behind its count.
    pub(super) fn checked(at: Decoder<'a>, count: usize) -> Result<Strings<'a>, BadCdr> {
        let mut walk = at;
        for _ in 0..count {
            walk.string()?;
        }
        Ok(Strings { at, count })
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if there are no texts.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> {
        let mut at = self.at;
        (0..self.count).map_while(move |_| at.string().ok())
    }
}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A value where it was received.
#[derive(Debug, Clone, Copy)]
pub enum ValueView<'a> {
    /// Elements of type [`DataType::Boolean`]: every octet but 0 is true.
    Boolean(&'a [u8]),
    /// Elements of type [`DataType::UChar`].
    UChar(&'a [u8]),
    /// Elements of type [`DataType::Short`].
    Short(Elements<'a, i16>),
    /// Elements of type [`DataType::UShort`].
    UShort(Elements<'a, u16>),
    /// Elements of type [`DataType::Long`].
    Long(Elements<'a, i32>),
    /// Elements of type [`DataType::ULong`].
    ULong(Elements<'a, u32>),
    /// Elements of type [`DataType::Long64`].
    Long64(Elements<'a, i64>),
    /// Elements of type [`DataType::ULong64`].
    ULong64(Elements<'a, u64>),
    /// Elements of type [`DataType::Float`].
    Float(Elements<'a, f32>),
    /// Elements of type [`DataType::Double`].
    Double(Elements<'a, f64>),
    /// Elements of type [`DataType::String`].
    String(Strings<'a>),
    /// See [`DataType::State`], by number.
    State(&'a [u8]),
    /// A value of type [`DataType::Encoded`].
    Encoded {
        /// Format of the bytes, as `JPEG_RGB24`.
        format: &'a str,
        /// Bytes in that format.
        data: &'a [u8],
    },
    /// Elements of type [`DataType::Enum`].
    Enum(Elements<'a, i16>),
}

impl<'a> ValueView<'a> {
    /// The type of the elements.
    pub fn data_type(&self) -> DataType {
        match self {
            ValueView::Boolean(_) => DataType::Boolean,
            ValueView::UChar(_) => DataType::UChar,
            ValueView::Short(_) => DataType::Short,
            ValueView::UShort(_) => DataType::UShort,
            ValueView::Long(_) => DataType::Long,
            ValueView::ULong(_) => DataType::ULong,
            ValueView::Long64(_) => DataType::Long64,
            ValueView::ULong64(_) => DataType::ULong64,
            ValueView::Float(_) => DataType::Float,
            ValueView::Double(_) => DataType::Double,
            ValueView::String(_) => DataType::String,
            ValueView::State(_) => DataType::State,
            ValueView::Encoded { .. } => DataType::Encoded,
            ValueView::Enum(_) => DataType::Enum,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            ValueView::Boolean(all) | ValueView::UChar(all) | ValueView::State(all) => all.len(),
            ValueView::Short(all) | ValueView::Enum(all) => all.len(),
            ValueView::UShort(all) => all.len(),
            ValueView::Long(all) => all.len(),
            ValueView::ULong(all) => all.len(),
            ValueView::Long64(all) => all.len(),
            ValueView::ULong64(all) => all.len(),
            ValueView::Float(all) => all.len(),
            ValueView::Double(all) => all.len(),
            ValueView::String(all) => all.len(),
            ValueView::Encoded { .. } => 1,
        }
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one element as a number, for plots and filters; 64-bit integers are rounded to an f64. `None` for texts
    /// and bytes.
    pub fn number(&self, index: usize) -> Option<f64> {
        Some(match self {
            ValueView::Boolean(all) => f64::from(u8::from(*all.get(index)? != 0)),
            ValueView::UChar(all) | ValueView::State(all) => f64::from(*all.get(index)?),
            ValueView::Short(all) | ValueView::Enum(all) => f64::from(all.get(index)?),
            ValueView::UShort(all) => f64::from(all.get(index)?),
            ValueView::Long(all) => f64::from(all.get(index)?),
            ValueView::ULong(all) => f64::from(all.get(index)?),
            ValueView::Long64(all) => all.get(index)? as f64,
            ValueView::ULong64(all) => all.get(index)? as f64,
            ValueView::Float(all) => f64::from(all.get(index)?),
            ValueView::Double(all) => all.get(index)?,
            ValueView::String(_) | ValueView::Encoded { .. } => return None,
        })
    }

    /// Copies the elements.
    pub fn to_values(&self) -> Values {
        match *self {
            ValueView::Boolean(all) => Values::Boolean(all.iter().map(|&byte| byte != 0).collect()),
            ValueView::UChar(all) => Values::UChar(all.to_vec()),
            ValueView::Short(all) => Values::Short(all.to_vec()),
            ValueView::UShort(all) => Values::UShort(all.to_vec()),
            ValueView::Long(all) => Values::Long(all.to_vec()),
            ValueView::ULong(all) => Values::ULong(all.to_vec()),
            ValueView::Long64(all) => Values::Long64(all.to_vec()),
            ValueView::ULong64(all) => Values::ULong64(all.to_vec()),
            ValueView::Float(all) => Values::Float(all.to_vec()),
            ValueView::Double(all) => Values::Double(all.to_vec()),
            ValueView::String(all) => Values::String(all.iter().map(str::to_owned).collect()),
            ValueView::State(all) => Values::State(all.iter().map(|&number| DevState::read(number)).collect()),
            ValueView::Encoded { format, data } => Values::Encoded { format: format.to_owned(), data: data.to_vec() },
            ValueView::Enum(all) => Values::Enum(all.to_vec()),
        }
    }

    /// Writes one element for people; nothing if there is no element.
    pub fn write_element(&self, index: usize, out: &mut impl fmt::Write) -> fmt::Result {
        fn put(out: &mut impl fmt::Write, element: Option<impl fmt::Display>) -> fmt::Result {
            element.map_or(Ok(()), |element| write!(out, "{element}"))
        }
        match self {
            ValueView::Boolean(all) => put(out, all.get(index).map(|&byte| byte != 0)),
            ValueView::UChar(all) => put(out, all.get(index)),
            ValueView::Short(all) | ValueView::Enum(all) => put(out, all.get(index)),
            ValueView::UShort(all) => put(out, all.get(index)),
            ValueView::Long(all) => put(out, all.get(index)),
            ValueView::ULong(all) => put(out, all.get(index)),
            ValueView::Long64(all) => put(out, all.get(index)),
            ValueView::ULong64(all) => put(out, all.get(index)),
            ValueView::Float(all) => put(out, all.get(index)),
            ValueView::Double(all) => put(out, all.get(index)),
            ValueView::String(all) => put(out, all.iter().nth(index)),
            ValueView::State(all) => put(out, all.get(index).map(|&number| DevState::read(number))),
            ValueView::Encoded { format, data } => write!(out, "{format}, {} bytes", data.len()),
        }
    }
}
