//! `tampu book check`, `tampu book backup` and `tampu book restore`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use tampu_logbook::store::sqlite::SqliteStore;

use super::{Place, failed};
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
    progress,
};

/// Hold everything against itself: database, index, threads, every byte of attachments; fails if something is wrong
#[derive(Debug, Args)]
pub struct Check {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Copy all logbooks as they are now into a directory that can be used in place of this one; others go on writing
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu book backup /backup/book && tampu book list --data /backup/book\n\nTo restore, give the directory back its place: DATA/<domain>/book; or 'tampu book restore' puts it into a database"
)]
pub struct Backup {
    /// The directory; attachments that are there already are not copied again
    target: PathBuf,
}

/// Put a backup's directory into a PostgreSQL database that has no logbooks
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu book restore /backup/book --data postgres://tampu@host/book\n\nNo hub is to run on the database meanwhile. Into a data directory a backup goes without a command: in the place of DATA/<domain>/book"
)]
pub struct Restore {
    /// The directory; it is only read
    source: PathBuf,
}

impl Check {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let bar = progress::work("checking");
        let faults = place.store("")?.check(&mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
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
            count => Err(Failure::Failed(format!("{count} faults found; the rest is served"))),
        }
    }
}

impl Backup {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        place.need_directory("a backup")?;
        let bar = progress::work("copying");
        let done = place.open()?.backup(&self.target, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        done.map_err(failed)?;
        let target = self.target.display();
        eprintln!("tampu: all logbooks of {} are copied to {target}; 'tampu book list --data {target}' opens them", place.told());
        Ok(())
    }
}

impl Restore {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let database = place.open_database()?;
        if !self.source.join(super::DATABASE).exists() {
            return Err(Failure::Usage(format!(
                "{}: there is no {}, so it is no backup",
                self.source.display(),
                super::DATABASE
            )));
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
        eprintln!("tampu: all logbooks of {} are in {}", self.source.display(), place.told());
        Ok(())
    }
}
