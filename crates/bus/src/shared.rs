//! Loans: samples written into memory that readers on the same host map.
//!
//! The pool is a ring that is lent front to back; one number in it, `valid_from`, says which of the bytes ever lent are still
//! there. A reader looks at it before *and after* using a sample: if the writer has taken the memory back in between (because
//! the reader was too slow and its quota over), the reader learns that what it saw may be torn. So a stopped reader pins
//! nothing, which is what zenoh's own shared memory cannot give (one stopped reader stalled everybody for 3.4 s).
//!
//! Rejected: a free list of slots (needs size classes, and a generation a slot); reference counts in shared memory (a killed
//! reader never gives its count back).

mod batches;
mod map;
mod progress;
mod ring;

pub(crate) use batches::{BatchRing, BatchView, size_for};
pub use map::Overwritten;
pub(crate) use map::RingView;
pub(crate) use progress::{Progress, ProgressPage, Watch, whose};
pub(crate) use ring::{ALIGNMENT as LOAN_UNIT, LOANS_AT, Lease, LoanRing, Room};
