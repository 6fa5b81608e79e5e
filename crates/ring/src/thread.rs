//! A thread's number and name, as a ring holds them.

use std::fmt;

/// The longest name kept, in bytes.
pub const NAME_LIMIT: usize = 64;

/// A thread of the process that logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    id: u32,
    length: u8,
    name: [u8; NAME_LIMIT],
}

impl Thread {
    /// A thread of this number and name; a long name is cut between characters.
    pub fn new(id: u32, name: &str) -> Thread {
        let kept = &name[..name.floor_char_boundary(NAME_LIMIT)];
        let mut thread = Thread { id, length: kept.len() as u8, name: [0; NAME_LIMIT] };
        thread.name[..kept.len()].copy_from_slice(kept.as_bytes());
        thread
    }

    /// The thread of a note in a file. The name may be any bytes; bytes that are not UTF-8 are cut off.
    pub(crate) fn from_parts(id: u32, name: &[u8]) -> Thread {
        let kept = name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        Thread::new(id, kept)
    }

    /// Nobody: before the first thread has written.
    pub const NOBODY: Thread = Thread { id: 0, length: 0, name: [0; NAME_LIMIT] };

    /// The thread that calls.
    pub(crate) fn current() -> Thread {
        let id = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        match std::thread::current().name() {
            Some(name) => Thread::new(id, name),
            None => Thread::of_kernel(id),
        }
    }

    /// The thread that calls while its thread-local variables are being destroyed, the standard library's among them.
    pub(crate) fn current_at_exit() -> Thread {
        Thread::of_kernel(rustix::thread::gettid().as_raw_nonzero().get() as u32)
    }

    /// Threads that other languages started have a name only in the kernel.
    fn of_kernel(id: u32) -> Thread {
        rustix::thread::name().map_or(Thread::new(id, ""), |name| Thread::from_parts(id, name.to_bytes()))
    }

    /// The kernel's number of it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns its name, or an empty text.
    pub fn name(&self) -> &str {
        std::str::from_utf8(self.name_bytes()).unwrap_or_default()
    }

    pub(crate) fn name_bytes(&self) -> &[u8] {
        &self.name[..usize::from(self.length)]
    }

    pub(crate) fn name_field(&self) -> &[u8; NAME_LIMIT] {
        &self.name
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", self.id, self.name())
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == 0 { write!(f, "{}", self.id) } else { f.write_str(self.name()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters_and_never_fail() {
        let long = "\u{e9}".repeat(40);
        assert_eq!(Thread::new(1, &long).name(), "\u{e9}".repeat(32));
        assert_eq!(Thread::new(1, &format!("x{long}")).name().len(), 63);
        assert_eq!(Thread::from_parts(1, b"ok\xffrest").name(), "ok");
        assert_eq!(Thread::current().id(), std::process::id() + (Thread::current().id() - std::process::id()));
        assert!(Thread::current().name().contains("names_are_cut"));
    }
}
