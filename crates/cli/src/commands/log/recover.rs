//! `tampu log recover`.

use std::{io::Write, path::PathBuf, time::Duration};

use clap::Args;
use tampu_log::recovery::{NotRecovered, Recoverer, dead_in};
use tampu_types::units::parse_duration;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
};

/// Recover records from the log rings of dead processes
///
/// The host's node does this by itself. Use the command for rings that were copied from another host.
/// Records keep their ids: what the archive has already is not stored twice.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu log recover\n  tampu log recover /run/user/1000/tampu/local/rings/1a2b3c4d-00001267-18ea008b6316cd15"
)]
pub struct Recover {
    /// The directory of one process, or of many; this host's own if none is named
    directories: Vec<PathBuf>,
    /// Longest time to wait for the acknowledgement of all records
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    timeout: Duration,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Recover {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let participant = connect.join_hub("tampu-recover")?;
        let named = match self.directories.is_empty() {
            false => self.directories.clone(),
            true => {
                let config = connect.config()?;
                let dir = config.run_dir.domain(&config.domain).map_err(|error| Failure::Failed(error.to_string()))?;
                vec![dir.log_rings()]
            }
        };
        let mut recoverer = Recoverer::new(participant);
        let mut failed = Vec::new();
        let mut unreachable = false;
        let mut out = std::io::stdout().lock();
        for directory in named {
            if !directory.exists() && !self.directories.is_empty() {
                failed.push(format!("{}: there is no such directory", directory.display()));
            }
            let within = dead_in(&directory);
            let lives = if within.is_empty() && directory.join("lease").exists() { vec![directory] } else { within };
            for life in lives {
                match recoverer.recover(&life, self.timeout) {
                    Ok(found) if self.json => {
                        let line = serde_json::json!({
                            "process": found.source, "incarnation": found.incarnation, "records": found.records,
                            "lost": found.lost, "damage": found.damage,
                        });
                        written(writeln!(out, "{line}"))?;
                    }
                    Ok(found) => {
                        written(writeln!(
                            out,
                            "{} (process {}): {} recovered, {} lost before",
                            found.source,
                            found.incarnation.pid,
                            counted(found.records, "record"),
                            found.lost
                        ))?;
                        found.damage.iter().for_each(|damage| eprintln!("tampu: {damage}"));
                    }
                    Err(error) => {
                        unreachable |= matches!(error, NotRecovered::NobodyKeeps(_));
                        failed.push(error.to_string());
                    }
                }
            }
        }
        match failed.is_empty() {
            true => Ok(()),
            false if unreachable => Err(Failure::Unreachable(connect.advise(&failed.join("; ")))),
            false => Err(Failure::Failed(failed.join("; "))),
        }
    }
}
