//! `tampu log archive ...`.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use tampu_hub::history;
use tampu_log::{
    archive::{Doing, LocalArchive, Options, Stop, TableArchive},
    collector::upkeep::{self, Done, Told, Upkeep, archive_in},
};
use tampu_types::Domain;

use crate::{
    commands::Context,
    failure::{Failure, Outcome},
    keeper::Keeper,
    progress,
};

mod show;

/// See, check, compact and back up the archive
///
/// A running collector does it itself and goes on meanwhile. With --data it is done here, to an archive that no collector has open.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu log archive status\n  tampu log archive check\n  tampu log archive backup /backup/tampu\n  \
    tampu log archive check --data /backup/tampu"
)]
pub struct Archive {
    #[command(subcommand)]
    what: What,
    /// An archive that nobody has open: what --data (or `data` in the configuration) names for `tampu up`
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// One JSON object
    #[arg(long, global = true)]
    json: bool,
}

/// What an archive keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Logs,
    Events,
}

impl Kept {
    /// Where it lies in a directory that --data can name.
    fn archive_in(self, data: &Path, domain: &Domain) -> PathBuf {
        match self {
            Kept::Logs => archive_in(data, domain),
            Kept::Events => history::ask::archive_in(data, domain),
        }
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// How it is: records, files, bytes, what waits, what is damaged
    Status,
    /// Read everything and hold it against its checksums, counts, order and ids; fails if something is wrong
    Check,
    /// Put everything into Parquet files now, without regard to collector.compact_share
    Compact,
    /// Make a directory that `tampu up --data` can use in place of this one, or bring it up to date
    ///
    /// Files that are there already are not copied again; on the same file system they are linked.
    Backup {
        /// The directory; on the collector's host, where a collector does it
        target: PathBuf,
    },
}

impl Archive {
    pub fn run(self, context: &Context, kept: Kept) -> Outcome {
        let what = match &self.what {
            What::Status => Upkeep::Health,
            What::Check => Upkeep::Check,
            What::Compact => Upkeep::Compact,
            What::Backup { target } => {
                Upkeep::Backup(std::path::absolute(target).map_err(|error| Failure::failed(target.display(), error))?)
            }
        };
        let bar = progress::work(self.what.name());
        let mut doing = |now: Doing| {
            bar.set_length(now.total);
            bar.set_position(now.done);
            !context.interrupt.asked()
        };
        let done = match &self.data {
            Some(data) => here(context, kept, data, what, &mut doing),
            None => {
                let keeper = Keeper::find(&context.common.connect, "tampu-archive")?;
                match kept {
                    Kept::Logs => keeper.upkeep(&what, &mut doing),
                    Kept::Events => keeper.upkeep_of_events(&what, &mut doing),
                }
            }
        };
        bar.finish_and_clear();
        if context.interrupt.asked() {
            return Err(Failure::Failed(format!("interrupted: the {} is not complete", self.what.name())));
        }
        let done = done?;
        let mut out = std::io::stdout().lock();
        if self.json {
            let line = serde_json::to_string(show::inner(&done)?.as_ref()).map_err(|error| Failure::failed("JSON", error))?;
            crate::failure::written(writeln!(out, "{line}"))?;
        } else {
            show::show(&done, &mut out)?;
        }
        match done {
            Done::Check(checked) if !checked.faults.is_empty() => {
                Err(Failure::Failed(format!("{} faults found; the rest of the archive is served", checked.faults.len())))
            }
            _ => Ok(()),
        }
    }
}

impl What {
    fn name(&self) -> &'static str {
        match self {
            What::Status => "status",
            What::Check => "check",
            What::Compact => "compaction",
            What::Backup { .. } => "backup",
        }
    }
}

/// Does it in this process.
fn here(context: &Context, kept: Kept, data: &Path, what: Upkeep, doing: &mut dyn FnMut(Doing) -> bool) -> Result<Done, Failure> {
    let domain = context.common.connect.config()?.domain;
    let dir = kept.archive_in(data, &domain);
    if !dir.is_dir() {
        return Err(Failure::Usage(missing(data, &domain)));
    }
    let what = match what {
        Upkeep::Backup(target) => Upkeep::Backup(kept.archive_in(&target, &domain)),
        what => what,
    };
    let failed = |error: tampu_log::archive::ArchiveError| Failure::Failed(error.to_string());
    // What is only looked at is left as it is.
    let options = Options { compact: matches!(what, Upkeep::Compact), share: 1.0, ..Options::new(domain) };
    let stop = Stop::default();
    let doing = std::cell::RefCell::new(doing);
    let tell = |told: Told| match told {
        Told::Doing(now) => (doing.borrow_mut())(now),
        Told::Done(_) => true,
    };
    match kept {
        Kept::Logs => {
            let archive = LocalArchive::open(&dir, options).map_err(failed)?;
            upkeep::upkeep(&archive, &what, &stop, &tell).map_err(failed)
        }
        Kept::Events => {
            let archive = TableArchive::open(&dir, &history::SCHEMA, options).map_err(failed)?;
            archive.upkeep(&what, &stop, &tell).map_err(failed)
        }
    }
}

fn missing(data: &Path, domain: &Domain) -> String {
    let there: Vec<String> = std::fs::read_dir(data)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("log").is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let data = data.display();
    match there.as_slice() {
        [] => format!("{data}: no archive is there; name what `tampu up --data` was given"),
        names => format!("{data}: it has no archive of the domain '{domain}', but of {}; choose with --domain", names.join(", ")),
    }
}
