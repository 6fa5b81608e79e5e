//! `tampu log import`.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use tampu_types::{LogRecord, import::ImportIds};

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    files,
    keeper::{Importing, Keeper},
    progress,
};

/// Import ACS XML and JSON log files into the archive
///
/// Reads plain and gzip files, in ISO-8859-1 and UTF-8; '-' is standard input. Unreadable records are reported with file,
/// line and reason, and skipped. A record counts once it is committed; the same file again adds nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu log import /alma/logs/log2008*.xml.gz")]
pub struct Import {
    /// Paths of the files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Number of errors that are listed one by one, for each file or logbook
    #[arg(long, value_name = "N", default_value_t = 20)]
    errors: u64,
}

/// Counts of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub files: u64,
    pub read: u64,
    pub new: u64,
    pub duplicates: u64,
    pub bad: u64,
}

/// Records sent together.
const TOGETHER: usize = 2000;
/// Bytes of text after which fewer are.
const TOGETHER_BYTES: usize = 1 << 20;

impl Import {
    pub fn run(self, context: &Context) -> Outcome {
        let name = format!("tampu-import@{}:{}", rustix::system::uname().nodename().to_string_lossy(), std::process::id());
        let keeper = Keeper::find(&context.common.connect, &name)?;
        let mut importing = keeper.import()?;
        let bar = progress::bytes(files::total_size(&self.files), "importing");
        let mut totals = Totals::default();
        let mut failed = Vec::new();
        for path in &self.files {
            if context.interrupt.asked() {
                break;
            }
            // A file that cannot be read does not stop the others.
            match self.import(path, &mut importing, &bar, &mut totals, context) {
                Ok(()) => totals.files += 1,
                Err(Failure::Failed(why)) => {
                    bar.suspend(|| eprintln!("tampu: {why}"));
                    failed.push(path.display().to_string());
                }
                Err(other) => return Err(other),
            }
        }
        let stored = importing.finish()?;
        (totals.new, totals.duplicates) = (stored.records, stored.duplicates);
        bar.finish_and_clear();
        self.report(&totals)?;
        if stored.refused > 0 {
            return Err(Failure::Failed(format!("{} records were refused: {}", stored.refused, stored.refusal)));
        }
        match (failed.as_slice(), context.interrupt.asked()) {
            ([], false) => Ok(()),
            ([], true) => Err(Failure::Failed("interrupted; the records reported as new are stored".to_owned())),
            (names, _) => Err(Failure::Failed(format!("not imported, or not to the end: {}", names.join(", ")))),
        }
    }

    fn report(&self, totals: &Totals) -> Outcome {
        use std::io::Write;
        let line = if self.json {
            serde_json::to_string(totals).map_err(|error| Failure::failed("the totals as JSON", error))?
        } else {
            format!("{} read, {} new, {} duplicates, {} bad", totals.read, totals.new, totals.duplicates, totals.bad)
        };
        written(writeln!(io::stdout().lock(), "{line}"))
    }

    fn import(
        &self,
        path: &Path,
        importing: &mut Importing<'_>,
        bar: &ProgressBar,
        totals: &mut Totals,
        context: &Context,
    ) -> Outcome {
        let name = path.display().to_string();
        let input = files::open(path, bar).map_err(|error| Failure::failed(&name, error))?;
        let mut ids = ImportIds::new();
        let mut batch = Batch::default();
        let mut told = 0;
        for item in files::records(input, &name).map_err(|error| Failure::failed(&name, error))? {
            match item {
                Ok(mut record) => {
                    totals.read += 1;
                    ids.assign(&mut record);
                    batch.add(record);
                }
                Err(bad) => {
                    totals.bad += 1;
                    told += 1;
                    if told <= self.errors {
                        bar.suspend(|| eprintln!("{bad}"));
                    }
                }
            }
            if batch.is_full() {
                batch.send(importing)?;
                if context.interrupt.asked() {
                    return Ok(());
                }
            }
        }
        batch.send(importing)?;
        if told > self.errors {
            bar.suspend(|| eprintln!("{name}: {} more bad records (--errors N lists more of them)", told - self.errors));
        }
        Ok(())
    }
}

/// Records that are sent together.
#[derive(Default)]
struct Batch {
    records: Vec<LogRecord>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, record: LogRecord) {
        self.bytes += record.message.len() + record.data.iter().map(|datum| datum.value.len()).sum::<usize>() + 64;
        self.records.push(record);
    }

    fn is_full(&self) -> bool {
        self.records.len() >= TOGETHER || self.bytes >= TOGETHER_BYTES
    }

    fn send(&mut self, importing: &mut Importing<'_>) -> Outcome {
        importing.send(&self.records)?;
        self.records.clear();
        self.bytes = 0;
        Ok(())
    }
}
