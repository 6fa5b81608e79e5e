//! `tampu completions`.

use std::io::Write as _;

use clap::{Args, CommandFactory};

use crate::{
    commands::Tampu,
    failure::{Outcome, written},
};

/// Print a completion script for a shell
///
/// For bash: `tampu completions bash > ~/.local/share/bash-completion/completions/tampu`
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Tampu::command(), "tampu", &mut script);
        written(std::io::stdout().write_all(&script))
    }
}
