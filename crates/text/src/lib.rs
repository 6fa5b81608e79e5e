//! Log statements: arguments are captured raw at the call, and converted to text elsewhere.
//!
//! Formatting is most of the cost of a log call, and the instrument's thread need not do it. So a call stores the
//! number of its statement and the raw bytes of its arguments. Another thread makes the text from a description of the
//! statement. If the process is dead, another process does. This crate holds both ends and the bytes between; a
//! [`Recorder`] decides where the bytes are kept.
//!
//! | subject | module | contract |
//! |-|-|-|
//! | the statement in the program, and the recorder of its calls | [`mod@statement`] | |
//! | values that are stored unchanged | [`capture`], [`probe`] | |
//! | all others, formatted at the call | [`formatted`] | |
//! | the bytes of a call | [`payload`], [`tag`], [`value`] | `spec/log-call.md` |
//! | the description of a statement | [`site`], [`spec`] | `spec/log-call.md` |
//! | text made of both | [`render`] | |
//! | statements of other languages, by their place | [`place`] | |
//! | a recorder for tests | [`memory`] | |
//!
//! ```
//! use tampu_text::{Rendered, Site, memory::Memory, statement};
//!
//! let memory = Memory::default();
//! for antenna in ["DV01", "DV02"] {
//!     statement!(4, memory, "{antenna:?} at {:08.3}", -7.5; array = "main");
//! }
//!
//! // Bytes are all that another process finds.
//! let (mut described, call) = (Vec::new(), &memory.calls()[1]);
//! call.site.encode(&mut described);
//! let mut rendered = Rendered::default();
//! rendered.render(&Site::decode(&described)?, &call.payload)?;
//! assert_eq!(rendered.message(), "\"DV02\" at -007.500");
//! assert_eq!(rendered.values().next(), Some(("array", "main")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
pub mod capture;
mod cut;
pub mod formatted;
pub mod memory;
pub mod out;
pub mod payload;
pub mod place;
pub mod probe;
pub mod render;
pub mod site;
pub mod spec;
pub mod statement;
pub mod tag;
pub mod value;

pub use append::append;
pub use cut::TEXT_MAX;
pub use payload::{Arguments, Payload};
pub use render::Rendered;
pub use site::{BadSite, BadText, Dialect, Piece, Site};
pub use spec::{Align, Kind, Sign, Spec};
pub use statement::{Recorder, Statement};
pub use tag::ARGUMENTS_MAX;
#[doc(hidden)]
pub use tampu_macros as macros;
pub use value::BadPayload;
