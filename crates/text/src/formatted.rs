//! Arguments whose types we do not know: they are formatted at the call, by the application's own `Display` or `Debug`.
//!
//! Their length must be known before the record's room is taken, and their formatting may log in its turn, so it is done before
//! that, into a buffer the thread keeps for the purpose. A call that formats while another of its thread does takes another
//! buffer.

use std::{
    cell::Cell,
    fmt::{self, Write},
};

use crate::{
    capture::Capture,
    cut::{Mark, TEXT_MAX},
    out::Out,
    tag::Tag,
};

/// Buffers a thread keeps.
const KEPT: usize = 8;

thread_local! {
    static BUFFERS: Cell<Vec<String>> = const { Cell::new(Vec::new()) };
}

/// A text formatted at the call.
#[derive(Debug)]
pub struct Formatted(String);

impl Formatted {
    /// Formats; at most [`TEXT_MAX`] bytes are kept. A `Display` that fails leaves what it wrote so far: a log call has nobody to
    /// return an error to.
    pub fn new(arguments: fmt::Arguments<'_>) -> Formatted {
        // A thread that is ending may have lost its buffers already.
        let taken = BUFFERS.try_with(|kept| {
            let mut buffers = kept.take();
            let buffer = buffers.pop();
            kept.set(buffers);
            buffer
        });
        let mut bounded = Bounded { text: taken.ok().flatten().unwrap_or_default(), left_out: 0 };
        let _ = match arguments.as_str() {
            Some(literal) => bounded.write_str(literal),
            None => bounded.write_fmt(arguments),
        };
        let Bounded { mut text, left_out } = bounded;
        if left_out > 0 {
            text.push_str(&String::from_utf8_lossy(Mark::of(left_out).as_bytes()));
        }
        Formatted(text)
    }
}

impl Drop for Formatted {
    fn drop(&mut self) {
        let mut text = std::mem::take(&mut self.0);
        text.clear();
        let _ = BUFFERS.try_with(|kept| {
            let mut buffers = kept.take();
            if buffers.len() < KEPT {
                buffers.push(text);
            }
            kept.set(buffers);
        });
    }
}

// SAFETY: the text does not change while it is borrowed, and `put_text` writes four bytes more than it has.
unsafe impl Capture for Formatted {
    const TAG: u8 = Tag::Text as u8;
    const FIXED: usize = 4;

    #[inline(always)]
    fn varying(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    unsafe fn write(&self, out: &mut Out) {
        unsafe { out.put_text(self.0.as_bytes()) };
    }
}

/// A text that takes so much and counts the rest.
struct Bounded {
    text: String,
    left_out: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        // Once something was left out, all that follows is, or the text would have a hole.
        let room = if self.left_out > 0 { 0 } else { TEXT_MAX - self.text.len() };
        let taken = more.floor_char_boundary(room);
        self.text.push_str(&more[..taken]);
        self.left_out += more.len() - taken;
        Ok(())
    }
}
