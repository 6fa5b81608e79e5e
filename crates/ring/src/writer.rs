//! The writing side: the rings of a process, a thread's ring, and the call.

mod copy;
pub(crate) mod current;
pub(crate) mod ffi;
pub(crate) mod fork;
pub(crate) mod incarnation;
pub(crate) mod local;
pub(crate) mod prealloc;
pub(crate) mod producer;
pub(crate) mod rings;
