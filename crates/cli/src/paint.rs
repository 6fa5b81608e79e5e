//! Colour, for people and only for people.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tampu_log::logger::local::{END_OF_COLOUR, colour_of};
use tampu_types::Level;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether to colour, decided once.
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

    /// What begins text of this level's colour.
    pub fn level(self, level: Level) -> &'static str {
        self.code(colour_of(level))
    }

    /// What begins text of less weight.
    pub fn dim(self) -> &'static str {
        self.code("\x1b[2m")
    }

    /// What begins text to notice: headings and matches.
    pub fn bold(self) -> &'static str {
        self.code("\x1b[1m")
    }

    /// What ends any of them.
    pub fn end(self) -> &'static str {
        self.code(END_OF_COLOUR)
    }

    fn code(self, code: &'static str) -> &'static str {
        if self.on { code } else { "" }
    }
}
