//! The log rings: all that lies between a thread that logs and whoever drains.
//!
//! A log call writes one record into a ring of memory that belongs to its thread, and returns. The ring is a file in the
//! run-time directory, so what a call has written survives the process, however that ends; whoever drains the ring (a thread of
//! the process, the host's node, or a recovery after its death) moves a cursor in the ring only when it has handed the records
//! on. Nothing is lost and nothing comes twice: (incarnation, ring, number) names each record for ever.
//!
//! This crate carries bytes. What they mean, and the macros that write them, are `tampu-log`'s. It is a crate of its own
//! because the C library, the exploration of its memory accesses and the count of its instructions need it without an engine.
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
//! | the call, the process's rings and their life, rings made ahead of threads | `rings`, `life`, `stock`, `local`, `fork` |
//! | the ring itself: the shared header and its protocol, a record, the writing side | `lines`, `record`, `producer`, `map` |
//! | reading: of the living, of the dead | `drain`, `recover`, `image` |
//! | what is too long for a ring | `long` |
//! | what front ends of other languages write by themselves | `front` |
//! | what stands beside the rings | `source`, `dictionary`, `clock`, `clock_page`, `place`, `lease` |
//!
//! The bytes are in `spec/log-ring.md`. Loss of the host's power is not survived: the files lie in memory.
//!
//! ```
//! use std::time::Duration;
//! use tampu_ring::{Kind, Rings, Settings, Source, What};
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
//! assert_eq!(entry.what, What::Record { site, voice, payload: &269.9f64.to_ne_bytes() });
//! // ... handed on ...
//! let mark = ring.mark();
//! ring.commit(&mark);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod clock_page;
mod copy;
#[cfg(all(test, not(loom)))]
mod crash_at_every_store;
mod dictionary;
mod drain;
mod fork;
mod front;
mod image;
mod lease;
mod life;
mod lines;
mod local;
mod long;
mod map;
mod place;
mod producer;
mod record;
mod recover;
mod refuge;
mod ring_file;
mod rings;
mod source;
mod step;
mod stock;
mod sync;
mod system;
mod thread;

pub use clock::{Anchor, Conversion, Counter, Stretch};
pub use clock_page::BadClock;
pub use dictionary::{BadDictionary, DefineError, Definition, Definitions, Kind, Reader};
pub use drain::{Busy, Drainer, RingDrain};
pub use front::{FRONT_ABI, this_thread};
pub use image::RingImage;
pub use life::Shelter;
#[cfg(loom)]
pub use lines::Lines;
pub use lines::{Counts, Cursor, LEVELS};
pub use local::Current;
pub use long::{BadLong, LONGEST_PAYLOAD, Long, Longs};
pub use place::{FileSystem, PlaceError, Why};
pub use producer::{Refused, Room, Slot};
pub use record::{Entry, Flaw, Lost, What};
pub use recover::{Damage, RecoverError, RecoveredRing, Recovery, recover, remove_unfinished};
pub use refuge::Refuge;
pub use ring_file::{BadRing, RingFile};
pub use rings::{Pool, RingStats, Rings, Settings};
pub use source::{BadSource, Source};
pub use stock::StockStats;
pub use thread::Thread;
