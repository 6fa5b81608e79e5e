//! `tampu book check`, `tampu book backup` and `tampu book restore`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use tampu_logbook::store::sqlite::SqliteStore;

use super::place::{DATABASE, Place, failed};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
    progress,
};

/// Verify database, index, threads and every byte of attachments; fails if something is damaged
#[derive(Debug, Args)]
pub struct Check {
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Copy all logbooks as they are now into a directory that can be used in place of this one; others go on writing
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu book backup -o /backup/book && tampu book list --data /backup/book\n\nTo restore, copy the directory to DATA/<domain>/book; 'tampu book restore' puts it into a database"
)]
pub struct Backup {
    /// The directory; attachments that are there already are not copied again
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Restore a backup into a PostgreSQL database that has no logbooks
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu book restore /backup/book --data postgres://tampu@host/book\n\nNo hub may run on the database meanwhile. A data directory needs no command: copy the backup to DATA/<domain>/book"
)]
pub struct Restore {
    /// The backup's directory; it is only read
    source: PathBuf,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let bar = progress::work("checking");
        let mut progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        };
        let faults = match place.remote("")? {
            Some(hub) => hub.check(&mut progress),
            None => place.open()?.check(&mut progress),
        };
        bar.finish_and_clear();
        let faults = faults.map_err(failed)?;
        if context.interrupt.asked() {
            return Err(Failure::Failed("interrupted: not all was checked".to_owned()));
        }
        let mut out = io::stdout().lock();
        if self.json {
            written(writeln!(out, "{}", serde_json::json!({ "faults": faults })))?;
        } else {
            faults.iter().try_for_each(|fault| written(writeln!(out, "{fault}")))?;
        }
        match faults.len() {
            0 if self.json => Ok(()),
            0 => written(writeln!(out, "everything is as it should be")),
            count => Err(Failure::Failed(format!("{} found; the rest is served", counted(count as u64, "fault")))),
        }
    }
}

impl Backup {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        place.need_directory("a backup")?;
        let bar = progress::work("copying");
        let done = place.open()?.backup(&self.output, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        done.map_err(failed)?;
        let target = self.output.display();
        if self.json {
            return written(writeln!(io::stdout().lock(), "{}", serde_json::json!({ "backup": self.output })));
        }
        eprintln!("tampu: all logbooks of {} are copied to {target}; 'tampu book list --data {target}' opens them", place.told());
        Ok(())
    }
}

impl Restore {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let database = place.open_database()?;
        if !self.source.join(DATABASE).exists() {
            return Err(Failure::Usage(format!("{}: there is no {}, so it is not a backup", self.source.display(), DATABASE)));
        }
        let source = SqliteStore::open(&self.source).map_err(failed)?;
        let bar = progress::work("restoring");
        let done = database.restore(&source, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        done.map_err(failed)?;
        if self.json {
            return written(writeln!(io::stdout().lock(), "{}", serde_json::json!({ "restored": self.source })));
        }
        eprintln!("tampu: all logbooks of {} are in {}", self.source.display(), place.told());
        Ok(())
    }
}
