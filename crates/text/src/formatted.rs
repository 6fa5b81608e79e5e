//! Arguments whose types we do not know: they are formatted at the call, by the application's own `Display` or `Debug`.
//!
//! Their length must be known before the record's room is taken, and their formatting may log in its turn, so it is done before
//! that, into a buffer the thread keeps for the purpose. A call that formats while another of its thread does takes another
//! buffer.

use std::{
    borrow::Cow,
    cell::Cell,
    fmt::{self, Write},
};

use crate::{
    capture::Capture,
    cut::{TEXT_MAX, kept, shown},
    out::Out,
    tag::Tag,
};

/// Buffers a thread keeps.
const BUFFERS_MAX: usize = 8;

thread_local! {
    static BUFFERS: Cell<Vec<Vec<u8>>> = const { Cell::new(Vec::new()) };
}

/// A text formatted at the call.
#[derive(Debug)]
pub struct Formatted {
    /// What is kept of it, which may end within a character.
    text: Vec<u8>,
    /// Its whole length.
    length: usize,
}

impl Formatted {
    /// The empty text, for a place that is perhaps filled later.
    pub const EMPTY: Formatted = Formatted { text: Vec::new(), length: 0 };

    /// As it will be shown, with what is missing.
    pub fn shown(&self) -> Cow<'_, str> {
        shown(&self.text, self.length)
    }

    /// Formats; at most [`TEXT_MAX`] bytes are kept. A `Display` that fails leaves what it wrote so far: a log call has nobody to
    /// return an error to.
    pub fn new(arguments: fmt::Arguments<'_>) -> Formatted {
        // A thread that is ending may have lost its buffers already.
        let taken = BUFFERS.try_with(|buffers| {
            let mut free = buffers.take();
            let buffer = free.pop();
            buffers.set(free);
            buffer
        });
        let mut formatted = Formatted { text: taken.ok().flatten().unwrap_or_default(), length: 0 };
        let _ = match arguments.as_str() {
            Some(literal) => formatted.write_str(literal),
            None => formatted.write_fmt(arguments),
        };
        formatted
    }
}

impl Write for Formatted {
    #[inline]
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = TEXT_MAX - self.text.len();
        self.text.extend_from_slice(&more.as_bytes()[..more.len().min(room)]);
        self.length += more.len();
        Ok(())
    }
}

impl Drop for Formatted {
    fn drop(&mut self) {
        if self.text.capacity() == 0 {
            return;
        }
        let mut buffer = std::mem::take(&mut self.text);
        buffer.clear();
        let _ = BUFFERS.try_with(|buffers| {
            let mut free = buffers.take();
            if free.len() < BUFFERS_MAX {
                free.push(buffer);
            }
            buffers.set(free);
        });
    }
}

// SAFETY: the text does not change while it is borrowed; of a text of this length, `text` has what is kept.
unsafe impl Capture for Formatted {
    const TAG: u8 = Tag::Text as u8;
    const FIXED: usize = 4;
    type Held<'a> = &'a Formatted;

    #[inline(always)]
    fn hold(&self) -> &Formatted {
        self
    }

    #[inline(always)]
    fn varying(&self) -> usize {
        kept(self.length)
    }

    #[inline(always)]
    unsafe fn write(&self, out: &mut Out) {
        unsafe { out.put_text(&self.text, self.length) };
    }
}
