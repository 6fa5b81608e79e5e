//! Memory of arrays (numpy's, `array.array`, `bytes`, `memoryview`), borrowed by the buffer protocol.
//!
//! Python's stable interface has the buffer protocol from 3.11 on only. Its functions and its struct are the same in
//! 3.10 and in all later versions, so they are declared here.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::MaybeUninit,
    slice,
};

use pyo3::{ffi::PyObject, prelude::*};

/// `Py_buffer`.
#[repr(C)]
struct RawBuffer {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
}

/// `PyBUF_FORMAT` and `PyBUF_C_CONTIGUOUS`.
const ROWS_WITH_FORMAT: c_int = 0x0004 | 0x0038;

/// `PyBUF_SIMPLE`.
const PLAIN_BYTES: c_int = 0;

/// Memory of an array, in rows, until this is dropped. The holder has the interpreter's lock, so no code of Python
/// changes the elements meanwhile.
pub struct Buffer<'py> {
    raw: Box<RawBuffer>,
    _py: Python<'py>,
}

/// Bytes of an object. Other threads of Python run while they are copied.
pub struct HeldBytes {
    raw: Box<RawBuffer>,
}

// SAFETY: the memory stays where it is until the buffer is released, in any thread. The pointers of the struct are used for
// copying out only, and the release takes the interpreter's lock.
unsafe impl Send for HeldBytes {}
// SAFETY: as above; no method changes the struct.
unsafe impl Sync for HeldBytes {}

impl HeldBytes {
    /// Borrows the bytes of an object, in the order of memory. Python's own error says why an object has none.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<HeldBytes> {
        let mut raw = Box::new(MaybeUninit::<RawBuffer>::zeroed());
        // SAFETY: the object is alive, and the struct is Python's own, in memory that does not move.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), PLAIN_BYTES) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: Python has filled it in.
        Ok(HeldBytes { raw: unsafe { raw.assume_init() } })
    }

    /// Returns their number.
    pub fn length(&self) -> usize {
        usize::try_from(self.raw.len).unwrap_or(0)
    }

    /// Copies bytes from this offset on. If the program changes them meanwhile, the copy is a mixture, as that of
    /// `socket.send` is.
    ///
    /// # Panics
    /// If there are fewer bytes from the offset on.
    pub fn copy_into(&self, from: usize, into: &mut [u8]) {
        assert!(from.checked_add(into.len()).is_some_and(|end| end <= self.length()), "bytes beyond the end of the buffer");
        // SAFETY: the exporter keeps `len` bytes at `buf` until the release, and the range lies within them. The target is
        // memory of Rust, so the two do not overlap. No reference to the exporter's memory is made.
        unsafe { std::ptr::copy_nonoverlapping(self.raw.buf.cast::<u8>().add(from), into.as_mut_ptr(), into.len()) }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        // SAFETY: it was filled in by PyObject_GetBuffer, is released once, and the interpreter's lock is held.
        Python::attach(|_| unsafe { PyBuffer_Release(&mut *self.raw) });
    }
}

/// Types that any bytes are valid values of.
///
/// # Safety
/// Every bit pattern of the type's size is a value.
pub unsafe trait Plain: Copy {
    /// The characters by which the module `struct` names the type on this system.
    const CODES: &'static [u8];
}

macro_rules! plain {
    ($($type:ty: $codes:expr,)*) => {
        // SAFETY: every bit pattern is a number.
        $(unsafe impl Plain for $type { const CODES: &'static [u8] = $codes; })*
    };
}

plain! {
    u8: b"B",
    i16: b"h",
    u16: b"H",
    i32: b"i",
    u32: b"I",
    i64: b"lq",
    u64: b"LQ",
    f32: b"f",
    f64: b"d",
}

impl<'py> Buffer<'py> {
    /// Borrows the memory of an object; `None` if it has none, or not in rows.
    pub fn of(object: &Bound<'py, PyAny>) -> Option<Buffer<'py>> {
        let mut raw = Box::new(MaybeUninit::<RawBuffer>::zeroed());
        // SAFETY: the object is alive, and the struct is Python's own, in memory that does not move.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), ROWS_WITH_FORMAT) } != 0 {
            // The error is Python's for a caller that needs a buffer; here another way follows.
            drop(PyErr::take(object.py()));
            return None;
        }
        // SAFETY: Python has filled it in.
        Some(Buffer { raw: unsafe { raw.assume_init() }, _py: object.py() })
    }

    /// Returns the lengths of the array's dimensions.
    pub fn shape(&self) -> &[isize] {
        let dimensions = usize::try_from(self.raw.ndim).unwrap_or(0);
        if dimensions == 0 || self.raw.shape.is_null() {
            return &[];
        }
        // SAFETY: with PyBUF_ND, which the flags have, `shape` has as many numbers as there are dimensions.
        unsafe { slice::from_raw_parts(self.raw.shape, dimensions) }
    }

    /// Returns the type of the elements in the words of the module `struct`.
    pub fn format(&self) -> &str {
        if self.raw.format.is_null() {
            return "B";
        }
        // SAFETY: with PyBUF_FORMAT it is a C string of the exporter, which lives as long as the buffer.
        unsafe { CStr::from_ptr(self.raw.format) }.to_str().unwrap_or("?")
    }

    /// Returns the elements, if they are of this type.
    pub fn elements<T: Plain>(&self) -> Option<&[T]> {
        let format = self.format().as_bytes();
        let code = match format {
            [code] | [b'@' | b'=', code] => *code,
            [b'<', code] if cfg!(target_endian = "little") => *code,
            _ => return None,
        };
        // `=` and `<` have sizes of their own, which the size of an element tells.
        let length = usize::try_from(self.raw.len).ok()?;
        if !T::CODES.contains(&code) || usize::try_from(self.raw.itemsize) != Ok(size_of::<T>()) {
            return None;
        }
        if length == 0 {
            return Some(&[]);
        }
        let elements = self.raw.buf.cast_const().cast::<T>();
        if !elements.is_aligned() {
            return None;
        }
        // SAFETY: the array is in rows without gaps, so its `len` bytes from `buf` on are its elements; they are aligned, of
        // the type's size, and any bytes are values. They live until the buffer is released, and nobody writes them (see above).
        Some(unsafe { slice::from_raw_parts(elements, length / size_of::<T>()) })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: it was filled in by PyObject_GetBuffer, is released once, and the interpreter's lock is held.
        unsafe { PyBuffer_Release(&mut *self.raw) }
    }
}
