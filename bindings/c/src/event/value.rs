//! Values that cross the border. What C gives is borrowed during a call; what C gets lies in the event's own memory
//! where that is aligned, and in a copy where it is not.

use std::{
    ffi::{CString, c_char, c_void},
    ptr, slice,
};

use tampu_event::{DataType, Format, Value};
use tampu_types::event::{Data, DevState, Elements, Number, Shape, ValueView};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    failure::Failure,
    string::{self, for_c},
};

/// `tampu_event_value`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct ValueOfC {
    pub data_type: i32,
    pub format: i32,
    pub x: u32,
    pub y: u32,
    pub data: *const c_void,
    pub count: usize,
    pub encoding: *const c_char,
}

/// The data type of this number.
pub(super) fn data_type_of(number: i32) -> Result<DataType, Failure> {
    let found = u8::try_from(number).ok().and_then(DataType::from_number);
    found.ok_or_else(|| Failure::Odd {
        what: "the data type",
        value: number.to_string(),
        possible: "the header has the possible values",
    })
}

/// The format of this number.
pub(super) fn format_of(number: i32) -> Result<Format, Failure> {
    let found = u8::try_from(number).ok().and_then(Format::from_number);
    found.ok_or_else(|| Failure::Odd {
        what: "the format",
        value: number.to_string(),
        possible: "0 is a scalar, 1 a spectrum, 2 an image",
    })
}

/// Elements of types that are not the same in C and in Rust.
#[derive(Default)]
pub(super) struct Converted {
    flags: Vec<bool>,
    texts: Vec<String>,
    states: Vec<DevState>,
    encoding: String,
}

impl ValueOfC {
    /// The elements, as a slice of C's memory.
    ///
    /// # Safety
    /// `data` is NULL if `count` is 0, or has `count` elements of this type that do not change as long as `'a`. Every bit
    /// pattern is a valid `T`.
    unsafe fn elements<'a, T: FromBytes>(&self) -> Result<&'a [T], Failure> {
        if self.count == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() {
            return Err(Failure::Null("the value's data"));
        }
        let data = self.data.cast::<T>();
        if !data.is_aligned() || self.count.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(Failure::Odd {
                what: "the value's data",
                value: format!("{} elements at {:p}", self.count, self.data),
                possible: "pass an array of the elements' type and its length",
            });
        }
        // SAFETY: by the caller; not NULL, aligned, and not longer than an object can be.
        Ok(unsafe { slice::from_raw_parts(data, self.count) })
    }

    /// Borrows the value; `converted` has the elements that Rust has otherwise.
    ///
    /// # Safety
    /// As the header says: `data` has `count` elements of the type, texts are C strings, and nothing changes as long as
    /// `'a`.
    pub(super) unsafe fn borrow<'a>(&self, converted: &'a mut Converted) -> Result<Value<'a>, Failure> {
        let data_type = data_type_of(self.data_type)?;
        // SAFETY: by the caller.
        let data = unsafe {
            match data_type {
                DataType::UChar => Data::UChar(self.elements()?),
                DataType::Short => Data::Short(self.elements()?),
                DataType::UShort => Data::UShort(self.elements()?),
                DataType::Long => Data::Long(self.elements()?),
                DataType::ULong => Data::ULong(self.elements()?),
                DataType::Long64 => Data::Long64(self.elements()?),
                DataType::ULong64 => Data::ULong64(self.elements()?),
                DataType::Float => Data::Float(self.elements()?),
                DataType::Double => Data::Double(self.elements()?),
                DataType::Enum => Data::Enum(self.elements()?),
                DataType::Boolean => {
                    converted.flags.extend(self.elements::<u8>()?.iter().map(|&flag| flag != 0));
                    Data::Boolean(&converted.flags)
                }
                DataType::State => {
                    for &number in self.elements::<u8>()? {
                        converted.states.push(DevState::from_number(number).ok_or_else(|| Failure::Odd {
                            what: "the state",
                            value: number.to_string(),
                            possible: "the header has the possible values",
                        })?);
                    }
                    Data::State(&converted.states)
                }
                DataType::String => {
                    for &text in self.elements::<usize>()? {
                        converted.texts.push(string::text(ptr::with_exposed_provenance(text)).into_owned());
                    }
                    Data::String(&converted.texts)
                }
                DataType::Encoded => {
                    converted.encoding = string::text(self.encoding).into_owned();
                    return Ok(Value::encoded(&converted.encoding, self.elements()?));
                }
            }
        };
        let odd = |possible| Failure::Odd { what: "the value's format", value: self.count.to_string(), possible };
        let shape = match format_of(self.format)? {
            Format::Scalar if self.count == 1 => Shape::SCALAR,
            Format::Scalar => return Err(odd("a scalar has one element")),
            Format::Spectrum => {
                Shape::spectrum(u32::try_from(self.count).map_err(|_| odd("a spectrum has at most 2^32 - 1 elements"))?)
            }
            Format::Image => Shape::image(self.x, self.y),
        };
        Ok(Value { data, shape })
    }
}

/// A value for C, with the memory of what had to be converted.
#[derive(Default)]
pub(super) struct Told {
    words: Vec<u64>,
    texts: Vec<CString>,
    pointers: Vec<*const c_char>,
    encoding: CString,
}

impl Told {
    /// Makes C's view of a value; it is valid until the next call, and as long as the event.
    pub fn view(&mut self, value: &ValueView<'_>, shape: Shape) -> ValueOfC {
        let mut encoding = ptr::null();
        let mut count = value.len();
        let data: *const c_void = match value {
            ValueView::Boolean(all) | ValueView::UChar(all) | ValueView::State(all) => all.as_ptr().cast(),
            ValueView::Short(all) | ValueView::Enum(all) => self.numbers(all),
            ValueView::UShort(all) => self.numbers(all),
            ValueView::Long(all) => self.numbers(all),
            ValueView::ULong(all) => self.numbers(all),
            ValueView::Long64(all) => self.numbers(all),
            ValueView::ULong64(all) => self.numbers(all),
            ValueView::Float(all) => self.numbers(all),
            ValueView::Double(all) => self.numbers(all),
            ValueView::String(all) => {
                self.texts.clear();
                self.texts.extend(all.iter().map(for_c));
                self.pointers.clear();
                self.pointers.extend(self.texts.iter().map(|text| text.as_ptr()));
                self.pointers.as_ptr().cast()
            }
            ValueView::Encoded { format, data } => {
                self.encoding = for_c(format);
                encoding = self.encoding.as_ptr();
                count = data.len();
                data.as_ptr().cast()
            }
        };
        let Shape { format, x, y } = shape;
        ValueOfC { data_type: value.data_type() as i32, format: format as i32, x, y, data, count, encoding }
    }

    fn numbers<T: Number + IntoBytes + Immutable>(&mut self, all: &Elements<'_, T>) -> *const c_void {
        if let Some(slice) = all.as_slice() {
            return slice.as_ptr().cast();
        }
        self.words.clear();
        self.words.resize((all.len() * size_of::<T>()).div_ceil(size_of::<u64>()), 0);
        let places = self.words.as_mut_bytes().chunks_exact_mut(size_of::<T>());
        for (place, number) in places.zip(all.iter()) {
            place.copy_from_slice(number.as_bytes());
        }
        self.words.as_ptr().cast()
    }
}
