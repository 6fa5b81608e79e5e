//! Colours of output for people; output for programs has none.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tampu_log::logger::local::{END_OF_COLOUR, colour_of};
use tampu_types::Level;

/// Policies for colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Colours, also into files and pipes.
    Always,
    /// No colours at all.
    Never,
}

/// The decision for or against colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Decides for standard output.
    pub fn for_stdout(when: When) -> Paint {
        let on = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                io::stdout().is_terminal() && !refused && !dumb
            }
        };
        Paint { on }
    }

    /// Returns the escape sequence of a level's colour.
    pub fn level(self, level: Level) -> &'static str {
        self.code(colour_of(level))
    }

    /// Returns the escape sequence of dim text.
    pub fn dim(self) -> &'static str {
        self.code("\x1b[2m")
    }

    /// Returns the escape sequence of bold text, for headings and matches.
    pub fn bold(self) -> &'static str {
        self.code("\x1b[1m")
    }

    /// Returns the escape sequence that ends any of them.
    pub fn end(self) -> &'static str {
        self.code(END_OF_COLOUR)
    }

    fn code(self, code: &'static str) -> &'static str {
        if self.on { code } else { "" }
    }
}
