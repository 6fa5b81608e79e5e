//! Shared memory between the processes of one host. No other crate maps memory.
//!
//! The log rings, the bus and the bulk data all let processes read each other's memory. This crate holds the common
//! parts: files that are reserved in full before they are mapped, the mappings, and the words that processes change at
//! once. Its futex lets one process sleep until another changes a word. The protocols on top (the meaning of each word,
//! and the order of the writes) stay in their crates, which implement their `spec/` pages.
//!
//! | subject | module |
//! |-|-|
//! | files to map: reserved, without a name, sealed | `file` |
//! | a file's bytes in memory, and typed words in them | [`Mapping`], [`SharedWords`] |
//! | a ring that is mapped twice in a row | [`MirroredRing`] |
//! | a ring whose writer reclaims memory, and its readers | [`RingMemory`], [`RingView`] |
//! | the free, lent and published bytes of such a ring | [`LoanRing`] |
//! | files that are shortened under a mapping | [`survive_truncation`], [`lost_pages`] |
//! | sleeping until a word changes | [`futex_wait`], [`futex_wait_any`], [`futex_wake`] |
//!
//! Decision: a mapping returns shared atomics by type ([`Mapping::words`]), and octets only as a pointer or through a
//! closure. A slice that lives longer is `unsafe` to get, because another process may write to it. Rejected: `&[u8]` of
//! the whole mapping, which would promise the compiler that the bytes do not change.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use tampu_shm::{Mapping, create_reserved, shared_words};
//!
//! shared_words! {
//!     /// The page of one counter.
//!     struct Counter { count: AtomicU64 }
//! }
//!
//! let path = std::env::temp_dir().join(format!("tampu-shm-{}", std::process::id()));
//! let file = create_reserved(&path, 4096)?;
//! let (writer, reader) = (Mapping::read_write(&file, 4096)?, Mapping::read_only(&file, 4096)?);
//! writer.words::<Counter>(0).count.store(7, Ordering::Release);
//! assert_eq!(reader.words::<Counter>(0).count.load(Ordering::Acquire), 7);
//! std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod fault;
mod file;
mod futex;
mod loans;
mod mapping;
mod mirrored;
mod ring;
mod space;
mod words;

pub use fault::{lost_pages, survive_truncation};
pub use file::{create_reserved, create_sealed, create_unnamed, is_shrink_sealed};
pub use futex::{futex_wait, futex_wait_any, futex_wake};
pub use loans::{LOAN_ALIGNMENT, LOANS_AT, Lease, LoanMemory, LoanRing, LoanRoom};
pub use mapping::Mapping;
pub use mirrored::MirroredRing;
pub use ring::{Overwritten, RingMemory, RingView};
pub use words::SharedWords;
