//! The clock of a log call: the processor's counter, and its conversion to UTC.

mod counter;
pub(crate) mod page;

pub use counter::{Anchor, Conversion, Counter, Stretch};
