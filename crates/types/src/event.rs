//! Attribute events: the types, and their encoding on the wire.
//!
//! | subject | module |
//! |-|-|
//! | `domain/family/member/attribute` and patterns of it | [`name`], [`pattern`] |
//! | data types, formats and states of values | [`data`] |
//! | a value at its writer, owned, and at its receiver | [`value`], [`elements`] |
//! | quality, kinds, reasons, error stacks | [`quality`], [`kind`], [`reason`], [`failure`] |
//! | a number as people read it | [`readable`] |
//! | an attribute's configuration and criteria | [`config`] |
//! | an event on the wire, written and read in place | [`sample`], [`view`] |
//! | attributes and their servers | [`declaration`] |
//! | an event as a history stores it | [`kept`] |
//!
//! The contract is `spec/events.md`, `spec/event.idl` and `spec/wire/event.md`; the decisions are in
//! `spec/decisions/0010-events.md`.
//!
//! ```
//! use tampu_types::{
//!     Time,
//!     event::{EventSample, EventView, Kinds, Value},
//! };
//!
//! let spectrum = [1.5, 2.5, f64::NAN];
//! let event = EventSample { number: 7, time: Time(1), kinds: Kinds::CHANGE, ..EventSample::of(3, Value::spectrum(&spectrum)) };
//! let mut bytes = Vec::new();
//! event.encode(&mut bytes)?;
//!
//! let read = EventView::parse(&bytes)?;
//! assert_eq!((read.attribute, read.number), (3, 7));
//! assert_eq!(read.value.and_then(|value| value.number(1)), Some(2.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod config;
pub mod data;
pub mod declaration;
pub mod elements;
pub mod failure;
pub mod kept;
pub mod kind;
pub mod name;
pub mod pattern;
pub mod quality;
pub mod readable;
pub mod reason;
pub mod sample;
pub mod value;
pub mod view;

#[cfg(test)]
mod tests;

pub use config::{AttributeConfig, Band, Criteria, Limits, Thresholds, Writable};
pub use data::{DataType, DevState, Format, Shape};
pub use declaration::{Declaration, Presence};
pub use elements::{Elements, Number, Strings, ValueView};
pub use failure::{Failure, Severity};
pub use kept::KeptEvent;
pub use kind::{EventKind, Kinds};
pub use name::{AttributeName, BadAttributeName};
pub use pattern::{AttributePattern, BadPattern};
pub use quality::Quality;
pub use readable::Readable;
pub use reason::{Missed, Reason};
pub use sample::{BadValue, EventSample};
pub use value::{Data, Element, Value, Values};
pub use view::EventView;

/// Type id of an event sample; see `spec/types.md`.
pub const EVENT_TYPE: u32 = 4;
/// Type id of a declaration.
pub const DECLARATION_TYPE: u32 = 5;
/// Type id of an event as a history keeps it.
pub const KEPT_EVENT_TYPE: u32 = 7;
/// The release of all of them.
pub const VERSION: u16 = 1;
