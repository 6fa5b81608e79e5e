//! The common options of all commands, and the context of a command.

use clap::Args;

use crate::{connect::Connect, interrupt::Interrupt, paint::When};

/// The options that every command understands.
#[derive(Debug, Args)]
pub struct Common {
    #[command(flatten)]
    pub connect: Connect,
    /// Colour the output: auto colours on a terminal only
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: When,
    /// Read and show times in UTC instead of the system's zone (TZ)
    #[arg(long, global = true)]
    pub utc: bool,
}

/// The context that a command runs in.
pub struct Context {
    pub common: Common,
    pub interrupt: Interrupt,
}
