//! Arguments of unknown types: they are formatted at the call, by the application's own `Display` or `Debug`.
//!
//! Their length must be known before the record's room is taken, and their formatting may log as well. So they are
//! formatted before that, into a buffer that the thread keeps for this purpose. A nested call of the same thread uses
//! another buffer.

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
    /// Bytes that are kept of the text, which may end within a character.
    text: Vec<u8>,
    /// Its whole length.
    length: usize,
}

impl Formatted {
    /// The empty text, for a place that is perhaps filled later.
    pub const EMPTY: Formatted = Formatted { text: Vec::new(), length: 0 };

    /// The text as it will be shown, with a note about the missing part.
    pub fn shown(&self) -> Cow<'_, str> {
        shown(&self.text, self.length)
    }

    /// Formats the arguments; at most [`TEXT_MAX`] bytes are kept. A `Display` that fails leaves its output so far: a
    /// log call cannot return an error.
    pub fn new(arguments: fmt::Arguments<'_>) -> Formatted {
        // A thread that is ending may already have lost its buffers.
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

// SAFETY: the text does not change while it is borrowed; for a text of this length, `text` holds the kept part.
unsafe impl Capture for Formatted {
    const TAG: u8 = Tag::Text as u8;
    const FIXED: usize = 4;
    type Captured<'a> = &'a Formatted;

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
