//! The log statement's procedural macro. Applications do not call it: the log macros do, through `tampu_text::statement!`.
//!
//! It splits the format text at compile time, so that a call only stores its arguments, and the text is made of the pieces
//! later. What each argument's type allows it cannot know, for a macro sees tokens; it writes the code that lets the compiler
//! decide (`tampu_text::probe`).
//!
//! What is wrong with a format text is told by the compiler's own `format_args!`: where this macro does not understand a text,
//! it hands text and arguments to that, and what compiles nevertheless is formatted at the call. So the errors are those
//! everybody knows, there is no second opinion about what is a format text, and a text that is made by `concat!` works.
//!
//! It has no dependencies: a statement is so regular that the two crates everybody writes macros with would be most of the build.
//!
//! | step | module |
//! |-|-|
//! | level, logger, text, arguments, named values out of the tokens | `input` |
//! | what a literal says | `literal` |
//! | pieces of a format text | `format` |
//! | which argument stands where, and what of it is stored | `plan` |
//! | the code | `expand`, with `template` |

mod expand;
mod format;
mod input;
mod literal;
mod plan;
mod template;

use proc_macro::TokenStream;

/// `statement!([crate] level, logger, text, argument, name = argument ; key = value)`, where each part is one that a `macro_rules`
/// macro has parsed as an expression, and `crate` is the path of `tampu_text`.
#[proc_macro]
pub fn statement(tokens: TokenStream) -> TokenStream {
    input::Input::parse(tokens).map_or_else(
        || template::error("a log statement is level, logger, text, arguments; named values", proc_macro::Span::call_site()),
        expand::expand,
    )
}
