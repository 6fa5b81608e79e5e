//! Frames of the gateway's protocol, for both sides: `spec/wire/gateway.md`.
//!
//! ```text
//!  0  u32  length of the body
//!  4  u8   kind        u8 flags        u16 0
//!  8  u32  id          subscription, publisher, question or service; 0 for the session
//! 12  u32  0
//! 16  u64  number      of a counted frame, else 0
//! 24       the body
//! ```
//! Bodies are aligned at 8 bytes, because those of batches and events are. [`frame`] has the frame itself, [`question`]
//! and [`events`] the binary bodies of questions, answers and EVENTS, and [`messages`] those that are JSON.
//! [`json_form`] writes whole frames as text.

pub mod events;
pub mod frame;
pub mod json_form;
pub mod messages;
pub mod question;
mod reading;

pub use frame::{BadFrame, Frame, FrameHeader, HEADER_LEN, Kind, put_frame};
