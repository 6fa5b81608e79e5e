//! The log statement's procedural macro. Applications do not call it: the log macros do, through
//! `tampu_text::statement!`.
//!
//! It splits the format text at compile time, so that a call only stores its arguments, and the text is made of the
//! pieces later. A macro sees tokens and not types. So it writes code that lets the compiler decide by each argument's
//! type (`tampu_text::probe`).
//!
//! Errors of a format text are reported by the compiler's own `format_args!`. If this macro does not understand a text,
//! it passes text and arguments to `format_args!`; a text that compiles nevertheless is formatted at the call. So the
//! errors are the known ones, the grammar of format texts has one authority, and a text that is made by `concat!`
//! works.
//!
//! It has no dependencies. A statement is regular, and the two crates that macros usually need would be most of the
//! build.
//!
//! | step | module |
//! |-|-|
//! | level, logger, text, arguments, named values out of the tokens | `input` |
//! | contents of a literal | `literal` |
//! | pieces of a format text | `format` |
//! | places of the arguments, and the parts that are stored | `plan` |
//! | the code | `expand`, with `template` |

mod expand;
mod format;
mod input;
mod literal;
mod plan;
mod template;

use proc_macro::TokenStream;

/// `statement!([crate] level, logger, text, argument, name = argument ; key = value)`, where each part is one that a
/// `macro_rules` macro has parsed as an expression, and `crate` is the path of `tampu_text`.
#[proc_macro]
pub fn statement(tokens: TokenStream) -> TokenStream {
    input::Input::parse(tokens).map_or_else(
        || template::error("a log statement is level, logger, text, arguments; named values", proc_macro::Span::call_site()),
        expand::expand,
    )
}
