//! Where a call's texts are formatted before any lock is taken: a buffer a thread, used again and again.

use std::{
    cell::Cell,
    fmt::{self, Write as _},
    sync::atomic::{AtomicU64, Ordering},
};

/// Named values that fit without allocating.
const FEW: usize = 12;

/// One call's formatted texts: the message and the values, end to end.
pub(crate) struct Scratch {
    text: String,
    message_end: usize,
    few: [usize; FEW],
    more: Vec<usize>,
    values: usize,
}

/// A thread as records name it.
#[derive(Clone, Copy)]
pub(crate) struct ThreadMark(pub u64);

thread_local! {
    static BUFFER: Cell<String> = const { Cell::new(String::new()) };
    static MARK: Cell<u64> = const { Cell::new(0) };
}

impl Scratch {
    /// Formats everything of one call. While a value's own formatting logs, that inner call finds the buffer taken and
    /// allocates its own.
    pub fn format(message: fmt::Arguments<'_>, values: &[(&'static str, &dyn fmt::Display)]) -> Scratch {
        let mut text = BUFFER.try_with(Cell::take).unwrap_or_default();
        text.clear();
        // A Display that fails leaves what it wrote so far; a log call has nobody to return an error to.
        let _ = match message.as_str() {
            Some(literal) => text.write_str(literal),
            None => text.write_fmt(message),
        };
        let mut scratch = Scratch { message_end: text.len(), text, few: [0; FEW], more: Vec::new(), values: values.len() };
        for (index, (_, value)) in values.iter().enumerate() {
            let _ = write!(scratch.text, "{value}");
            let end = scratch.text.len();
            match scratch.few.get_mut(index) {
                Some(slot) => *slot = end,
                None => scratch.more.push(end),
            }
        }
        scratch
    }

    pub fn message(&self) -> &str {
        &self.text[..self.message_end]
    }

    pub fn value(&self, index: usize) -> &str {
        debug_assert!(index < self.values);
        let start = if index == 0 { self.message_end } else { self.end(index - 1) };
        &self.text[start..self.end(index)]
    }

    fn end(&self, index: usize) -> usize {
        if index < FEW { self.few[index] } else { self.more[index - FEW] }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One message of megabytes must not keep its buffer for ever.
        if self.text.capacity() <= 64 * 1024 {
            let text = std::mem::take(&mut self.text);
            let _ = BUFFER.try_with(|buffer| buffer.set(text));
        }
    }
}

impl ThreadMark {
    /// A number no other thread of this process has.
    pub fn current() -> ThreadMark {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mark = MARK.try_with(|mark| {
            if mark.get() == 0 {
                mark.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            mark.get()
        });
        ThreadMark(mark.unwrap_or(0))
    }

    /// The current thread's name, or its number where it has none.
    pub fn name() -> String {
        let thread = std::thread::current();
        match thread.name() {
            Some(name) => name.to_owned(),
            None => format!("thread-{}", ThreadMark::current().0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lie_end_to_end_and_inner_calls_do_not_disturb() {
        struct Logs;
        impl fmt::Display for Logs {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let inner = Scratch::format(format_args!("inner {}", 1), &[]);
                assert_eq!(inner.message(), "inner 1");
                f.write_str("outer value")
            }
        }
        let many: Vec<(&'static str, &dyn fmt::Display)> = (0..20).map(|_| ("n", &7 as &dyn fmt::Display)).collect();
        let scratch = Scratch::format(format_args!("a {}", Logs), &many);
        assert_eq!(scratch.message(), "a outer value");
        assert_eq!((0..20).map(|index| scratch.value(index)).collect::<String>(), "7".repeat(20));
    }
}
