//! The stored arguments of one call: `spec/log-call.md`.
//!
//! ```text
//! tags: one byte an argument, zeros up to a multiple of 8 | values, end to end, little endian
//! ```
//!
//! The tags come first and together because they are one constant for the compiler: a store or two. A tag before each
//! value would be one more store an argument. Arguments are pairs of pairs, `(first, (second, ()))`, so one rule covers
//! any number of them. If all are of one type, an array is equal.

use std::mem::MaybeUninit;

use crate::{capture::Capture, out::Out, tag::ARGUMENTS_MAX};

/// The arguments of a call.
///
/// # Safety
/// `write` writes exactly `FIXED + self.varying()` bytes, without making a log record itself. `varying` returns the
/// same as long as the arguments are borrowed.
pub unsafe trait Arguments {
    /// Number of arguments.
    const COUNT: usize;
    /// Tags of the arguments, in order.
    const TAGS: [u8; ARGUMENTS_MAX];
    /// Number of bytes of the values in every call.
    const FIXED: usize;

    /// Returns the number of further bytes of these values.
    fn varying(&self) -> usize;

    /// Writes the values.
    ///
    /// # Safety
    /// `FIXED + self.varying()` bytes are left in `out`.
    unsafe fn write(&self, out: &mut Out);
}

// SAFETY: nothing is written.
unsafe impl Arguments for () {
    const COUNT: usize = 0;
    const TAGS: [u8; ARGUMENTS_MAX] = [0; ARGUMENTS_MAX];
    const FIXED: usize = 0;

    #[inline(always)]
    fn varying(&self) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn write(&self, _: &mut Out) {}
}

// SAFETY: both parts write as many bytes as they say.
unsafe impl<First: Capture, Rest: Arguments> Arguments for (First, Rest) {
    const COUNT: usize = 1 + Rest::COUNT;
    const TAGS: [u8; ARGUMENTS_MAX] = {
        assert!(Self::COUNT <= ARGUMENTS_MAX, "a log statement takes at most 64 arguments");
        let mut tags = [First::TAG; ARGUMENTS_MAX];
        let mut index = 1;
        while index < ARGUMENTS_MAX {
            tags[index] = Rest::TAGS[index - 1];
            index += 1;
        }
        tags
    };
    const FIXED: usize = First::FIXED + Rest::FIXED;

    #[inline(always)]
    fn varying(&self) -> usize {
        self.0.varying() + self.1.varying()
    }

    #[inline(always)]
    unsafe fn write(&self, out: &mut Out) {
        unsafe {
            self.0.write(out);
            self.1.write(out);
        }
    }
}

// SAFETY: every value writes as many bytes as it says.
unsafe impl<Value: Capture, const N: usize> Arguments for [Value; N] {
    const COUNT: usize = N;
    const TAGS: [u8; ARGUMENTS_MAX] = {
        assert!(N <= ARGUMENTS_MAX, "a log statement takes at most 64 arguments");
        let mut tags = [0; ARGUMENTS_MAX];
        let mut index = 0;
        while index < N {
            tags[index] = Value::TAG;
            index += 1;
        }
        tags
    };
    const FIXED: usize = N * Value::FIXED;

    #[inline(always)]
    fn varying(&self) -> usize {
        self.iter().map(Capture::varying).sum()
    }

    #[inline(always)]
    unsafe fn write(&self, out: &mut Out) {
        for value in self {
            unsafe { value.write(out) };
        }
    }
}

/// Bytes that a call stores beside its time and its statement: written once, at the address that the recorder provides.
#[derive(Debug)]
pub struct Payload<A: Arguments> {
    arguments: A,
}

impl<A: Arguments> Payload<A> {
    const TAG_WORDS: usize = A::COUNT.div_ceil(8);

    /// Makes the payload of these arguments.
    #[inline(always)]
    pub fn new(arguments: A) -> Payload<A> {
        Payload { arguments }
    }

    /// Exact length in bytes.
    #[inline(always)]
    pub fn length(&self) -> usize {
        8 * Self::TAG_WORDS + A::FIXED + self.arguments.varying()
    }

    /// Writes the payload.
    ///
    /// # Safety
    /// [`Payload::length`] bytes from `to` on are writable, and no other code reads or writes them meanwhile.
    #[inline(always)]
    pub unsafe fn write(&self, to: *mut u8) {
        // SAFETY: the cursor needs the caller's guarantee, and the arguments write as many bytes as `length` counted.
        unsafe {
            let mut out = Out::new(to, if cfg!(debug_assertions) { self.length() } else { 0 });
            let mut word = 0;
            while word < Self::TAG_WORDS {
                let mut tags = [0; 8];
                tags.copy_from_slice(&A::TAGS[8 * word..8 * word + 8]);
                out.put(tags);
                word += 1;
            }
            self.arguments.write(&mut out);
        }
    }

    /// Writes it into memory that may be uninitialised and has room for it, and returns the written bytes.
    #[inline(always)]
    pub fn write_to<'m>(&self, memory: &'m mut [MaybeUninit<u8>]) -> &'m mut [u8] {
        let memory = &mut memory[..self.length()];
        let start = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the memory is as long as the payload and borrowed for this call alone; afterwards all of it is initialised.
        unsafe {
            self.write(start);
            std::slice::from_raw_parts_mut(start, memory.len())
        }
    }

    /// Appends the payload to `bytes`.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.reserve(self.length());
        let written = self.write_to(bytes.spare_capacity_mut()).len();
        // SAFETY: that many bytes of the spare capacity have just been written, from its start.
        unsafe { bytes.set_len(bytes.len() + written) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(arguments: impl Arguments) -> Vec<u8> {
        let mut bytes = Vec::new();
        Payload::new(arguments).append_to(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn an_array_is_written_as_pairs_are(texts: [String; 9]) {
            let [a, b, c, d, e, f, g, h, i] = &texts;
            prop_assert_eq!(bytes([a]), bytes((a, ())));
            prop_assert_eq!(bytes([a, b, c]), bytes((a, (b, (c, ())))));
            let pairs = (a, (b, (c, (d, (e, (f, (g, (h, (i, ())))))))));
            prop_assert_eq!(bytes(texts.each_ref()), bytes(pairs));
        }
    }
}
