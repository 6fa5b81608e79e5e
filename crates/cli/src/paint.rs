//! Colour, for people and only for people.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
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
        let code = match level {
            Level::Trace | Level::Delouse => "\x1b[90m",
            Level::Debug => "\x1b[36m",
            Level::Info => "\x1b[32m",
            Level::Notice => "\x1b[94m",
            Level::Warning => "\x1b[33m",
            Level::Error => "\x1b[31m",
            Level::Critical => "\x1b[1;31m",
            Level::Alert => "\x1b[1;35m",
            Level::Emergency => "\x1b[1;97;41m",
        };
        self.code(code)
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
        self.code("\x1b[0m")
    }

    fn code(self, code: &'static str) -> &'static str {
        if self.on { code } else { "" }
    }
}
