//! The log rings: the memory between a logging thread and the drainer of its records.
//!
//! A log call writes one record into a ring of memory that belongs to its thread, and returns. The ring is a file in
//! the run-time directory, so a record survives the process, however the process ends. The drainer is a thread of the
//! process, the host's node, or a recovery after the death. It moves a cursor in the ring only after it has handed the
//! records on. Nothing is lost or duplicated: (incarnation, ring, number) names each record for ever.
//!
//! This crate carries bytes. `tampu-log` defines their meaning, and has the macros that write them. The crate is
//! separate because three users need it without an engine: the C library, the exploration of its memory accesses, and
//! the count of its instructions.
//!
//! ```text
//! Rings::claim -> Slot::put.. -> Slot::commit       one Release store, 10 ns
//!                     |
//!     <run>/<domain>/rings/<incarnation>/ring-<n>   mapped twice in a row: no record goes round the end
//!                     |
//! Drainer: RingDrain::next_entry .. hand off .. RingDrain::commit
//! recover(dir): the same after the process's death, from copies of the files
//! ```
//!
//! | subject | module |
//! |-|-|
//! | the header that writer and drainer share, and its protocol | `header` |
//! | a record in a ring | `record` |
//! | the call: a process's rings, a thread's ring, rings made ahead of threads, `fork`, other languages | `writer` |
//! | draining a living process, recovering a dead one | `reader` |
//! | the directory of an incarnation and its files: source, dictionary, locks, long payloads, overflow | `files` |
//! | ticks, and their conversion to UTC | `clock` |
//!
//! The bytes are in `spec/log-ring.md`. The rings do not survive a power loss of the host: the files lie in memory.
//!
//! ```
//! use std::time::Duration;
//! use tampu_ring::{Kind, Rings, Settings, Source, EntryContent};
//! # use tampu_types::{Domain, Incarnation, SourceName};
//! # let source = Source {
//! #     domain: Domain::new("lab")?, name: SourceName::new("mount")?,
//! #     process: "mountd".into(), host: "gw01".into(),
//! #     incarnation: Incarnation { boot: 1, pid: std::process::id(), start: 1 },
//! # };
//! // The directory is `<run>/<domain>/rings`; without one the rings do not survive the process.
//! let rings = Rings::open(Settings::new(None, source))?;
//! let site = rings.define(Kind::Site, b"Mount.cpp:52 cable wrap at {}")?;
//! let voice = rings.define(Kind::Voice, b"mount")?;
//!
//! let (warning, wait) = (6, Duration::from_micros(200));
//! let mut slot = rings.claim(8, warning, wait)?;
//! slot.put_array(269.9f64.to_ne_bytes());
//! slot.commit(site, voice);
//!
//! let mut drainer = rings.drainer()?;
//! let ring = &mut drainer.rings()[0];
//! let entry = ring.next_entry().expect("one was logged")?;
//! assert_eq!((entry.number, entry.thread.name()), (0, std::thread::current().name().unwrap_or("")));
//! assert_eq!(entry.what, EntryContent::Record { site, voice, payload: &269.9f64.to_ne_bytes() });
//! // ... handed on ...
//! let mark = ring.mark();
//! ring.commit(&mark);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod files;
mod header;
mod reader;
mod record;
mod settings;
mod stats;
mod step;
mod sync;
mod system;
mod thread;
mod writer;

pub use clock::{Anchor, Conversion, Counter, Stretch, page::BadClock};
pub use files::{
    dictionary::{BadDictionary, DefineError, Definition, Definitions, Kind, Reader},
    directory::{FileError, FileErrorKind, FileSystem},
    lock::Busy,
    long::{BadLongPayload, LONGEST_PAYLOAD, LongPayloads},
    overflow::OverflowFiles,
    ring_file::{BadRing, RingFile},
    source::{BadSource, Source},
};
#[cfg(loom)]
pub use header::RingHeader;
pub use header::{Counts, Cursor, LEVELS};
pub use reader::{
    drain::{Drainer, RingDrain},
    recover::{Damage, RecoverError, RecoveredRing, Recovery, has_no_drainer, recover, remove_unfinished},
    snapshot::RingSnapshot,
};
pub use record::{Entry, EntryContent, Flaw, LongPayload, Lost};
pub use settings::Settings;
pub use stats::RingStats;
pub use thread::Thread;
pub use writer::{
    current::CurrentRing,
    ffi::{FFI_ABI, this_thread},
    incarnation::RingStorage,
    prealloc::PreallocStats,
    producer::{Refused, Room, Slot},
    rings::{Pool, Rings},
};
