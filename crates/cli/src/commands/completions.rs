//! The command `tampu completions`.

use std::io::Write as _;

use clap::{Args, Command};

use crate::failure::{Outcome, written};

/// Print a completion script for a shell
///
/// For bash: `tampu completions bash > ~/.local/share/bash-completion/completions/tampu`
#[derive(Debug, Args)]
pub struct Completions {
    /// Name of the shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub fn run(self, mut command: Command) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "tampu", &mut script);
        written(std::io::stdout().write_all(&script))
    }
}
