//! Colours of levels on a terminal.

use tampu_types::Level;

/// Returns the escape sequence of a level's colour, which precedes its text; [`END_OF_COLOUR`] ends it.
pub fn colour_of(level: Level) -> &'static str {
    match level {
        Level::Trace | Level::Delouse => "\x1b[90m",
        Level::Debug => "\x1b[36m",
        Level::Info => "\x1b[32m",
        Level::Notice => "\x1b[94m",
        Level::Warning => "\x1b[33m",
        Level::Error => "\x1b[31m",
        Level::Critical => "\x1b[1;31m",
        Level::Alert => "\x1b[1;35m",
        Level::Emergency => "\x1b[1;97;41m",
    }
}

/// Ends any colour.
pub const END_OF_COLOUR: &str = "\x1b[0m";
