//! The command `tampu man`.

use std::{fs, io::Write as _, path::PathBuf};

use clap::{Args, Command};

use crate::failure::{Failure, Outcome, written};

/// Print the manual page, or write the pages of all commands into a directory
#[derive(Debug, Args)]
pub struct Man {
    /// Write one page a command here instead
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    pub fn run(self, command: Command) -> Outcome {
        match self.output {
            Some(dir) => {
                let trouble = |error| Failure::failed(format!("the manual pages in {}", dir.display()), error);
                fs::create_dir_all(&dir).map_err(trouble)?;
                clap_mangen::generate_to(command, &dir).map_err(trouble)
            }
            None => {
                let mut page = Vec::new();
                written(clap_mangen::Man::new(command).render(&mut page))?;
                written(std::io::stdout().write_all(&page))
            }
        }
    }
}
