//! `tampu log archive ...`.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use tampu_archive::{
    Doing, LocalArchive, Options, Stop, TableArchive,
    upkeep::{self, Done, Told, Upkeep, archive_in},
};
use tampu_bulk::transfers;
use tampu_event::history;
use tampu_types::Domain;

use crate::{
    context::Context,
    failure::{Failure, Outcome},
    keeper::Keeper,
    plural::counted,
    private, progress, time_text,
};

mod show;

/// Show, verify, compact and back up the archive
///
/// A running collector does the work itself and goes on meanwhile. With --data this command does it, on an archive that no collector has open.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu log archive status\n  tampu log archive check\n  tampu log archive backup -o /backup/tampu\n  \
    tampu log archive check --data /backup/tampu"
)]
pub struct Archive {
    #[command(subcommand)]
    what: What,
    /// Tampu's data directory, as for `tampu up`: work on it here, while no hub has it open
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write JSON objects, one a line
    #[arg(long, global = true)]
    json: bool,
}

/// Content of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Logs,
    Events,
    Transfers,
}

impl Kept {
    /// Returns its path in a data directory.
    fn archive_in(self, data: &Path, domain: &Domain) -> PathBuf {
        match self {
            Kept::Logs => archive_in(data, domain),
            Kept::Events => history::ask::archive_in(data, domain),
            Kept::Transfers => transfers::archive_in(data, domain),
        }
    }
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show records, files, bytes, waiting data and damage
    Status,
    /// Verify checksums, counts, order and ids of everything; fails if something is damaged
    Check,
    /// Move everything into Parquet files now, without regard to collector.compact_share
    Compact,
    /// Make or update a directory that `tampu up --data` can use in place of this one
    ///
    /// Files that are there already are not copied again; on the same file system they are linked.
    Backup {
        /// The directory; on the collector's host, where a collector does it
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
}

impl Archive {
    pub fn run(self, context: &Context, kept: Kept) -> Outcome {
        let what = match &self.what {
            What::Status => Upkeep::Health,
            What::Check => Upkeep::Check,
            What::Compact => Upkeep::Compact,
            What::Backup { output } => {
                Upkeep::Backup(std::path::absolute(output).map_err(|error| Failure::failed(output.display(), error))?)
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
                    Kept::Transfers => keeper.upkeep_of_transfers(&what, &mut doing),
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
            let line = time_text::json_line(show::inner(&done)?.as_ref(), "the answer")?;
            crate::failure::written(writeln!(out, "{line}"))?;
        } else {
            show::show(&done, &mut out)?;
        }
        match done {
            Done::Check(checked) if !checked.faults.is_empty() => {
                let faults = counted(checked.faults.len() as u64, "fault");
                Err(Failure::Failed(format!("{faults} found; the rest of the archive is served")))
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
    let domain = context.common.connect.stated()?.domain;
    let dir = kept.archive_in(data, &domain);
    if !dir.is_dir() {
        return Err(Failure::Usage(missing(data, &domain)));
    }
    private::follow(&dir);
    let what = match what {
        Upkeep::Backup(target) => Upkeep::Backup(kept.archive_in(&target, &domain)),
        what => what,
    };
    let failed = |error: tampu_archive::ArchiveError| Failure::Failed(error.to_string());
    // Only a compaction changes the archive.
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
        Kept::Events | Kept::Transfers => {
            let schema = if kept == Kept::Events { &history::SCHEMA } else { &transfers::SCHEMA };
            let archive = TableArchive::open(&dir, schema, options).map_err(failed)?;
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
        [] => format!("{data}: no archive is there; name the directory of `tampu up --data`"),
        names => format!("{data}: it has no archive of the domain '{domain}', but of {}; choose with --domain", names.join(", ")),
    }
}
