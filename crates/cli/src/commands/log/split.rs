//! `tampu log split`.

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use tampu_types::LogRecord;

use crate::{
    commands::log::export::{report, whole},
    context::Context,
    failure::{Failure, Outcome},
    files::{self, Chooser},
    filter::{ConditionArgs, SpanArgs},
    keeper::Keeper,
    output::{
        file_args::{CutArgs, FileArgs},
        rotation::Rotation,
    },
    progress,
    time_expression::now,
};

/// Cut log files, or a range of the archive, into files by time, number or size
///
/// Files are named as ACS names its own: log<start>_<close>.xml. Each record goes into the file of its time, also where records
/// stand out of order. Without files the archive is cut. Unreadable records are reported and skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log split night.xml.gz --every 10m -o parts\n  \
    tampu log split --since yesterday --until today --records 100000 -o parts --gz")]
pub struct Split {
    /// ACS XML and JSON lines, also .gz
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The directory they go to
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    filter: ConditionArgs,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    cut: CutArgs,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Number of errors that are listed one by one, for each file or logbook
    #[arg(long, value_name = "N", default_value_t = 20)]
    errors: u64,
}

/// Records examined at a time.
const TOGETHER: usize = 1000;

impl Split {
    pub fn run(self, context: &Context) -> Outcome {
        if !self.cut.is_given() {
            return Err(Failure::Usage("set the size of a file: --every DURATION, --records N or --file-size SIZE".to_owned()));
        }
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        let (cut, format) = (self.cut.cut()?, self.file.format(None)?);
        let open = || Rotation::new(&self.output, cut, format, self.cut.gz(), self.file.options());
        if self.files.is_empty() {
            let keeper = Keeper::find(&context.common.connect, "tampu-split")?;
            let (mut rotation, bar) = (open()?, progress::records("splitting"));
            keeper.search(&query, &context.interrupt, &mut |record| {
                bar.inc(1);
                rotation.record(&record)
            })?;
            bar.finish_and_clear();
            report(&rotation.close()?, &self.output, self.json)?;
            return whole(context);
        }
        let mut chooser = Chooser::new(&query)?;
        let mut rotation = open()?;
        let bar = progress::bytes(files::total_size(&self.files), "splitting");
        let mut failed = Vec::new();
        for path in &self.files {
            // A file that cannot be read does not stop the others.
            match self.split(path, &mut chooser, &mut rotation, &bar, context) {
                Ok(()) => {}
                Err(Unread::Source(why)) => {
                    bar.suspend(|| eprintln!("tampu: {}: {why}", path.display()));
                    failed.push(path.display().to_string());
                }
                Err(Unread::Other(failure)) => return Err(failure),
            }
        }
        bar.finish_and_clear();
        report(&rotation.close()?, &self.output, self.json)?;
        if !failed.is_empty() {
            return Err(Failure::Failed(format!("not split, or not to the end: {}", failed.join(", "))));
        }
        whole(context)
    }

    fn split(
        &self,
        path: &Path,
        chooser: &mut Chooser,
        rotation: &mut Rotation,
        bar: &ProgressBar,
        context: &Context,
    ) -> Result<(), Unread> {
        let name = path.display().to_string();
        let input = files::open(path, bar).map_err(Unread::Source)?;
        let (mut together, mut bad) = (Vec::new(), 0u64);
        for item in files::records(input, &name).map_err(Unread::Source)? {
            match item {
                Ok(record) => together.push(record),
                Err(problem) => {
                    bad += 1;
                    if bad <= self.errors {
                        bar.suspend(|| eprintln!("{problem}"));
                    }
                }
            }
            if together.len() >= TOGETHER {
                write(std::mem::take(&mut together), chooser, rotation)?;
                if context.interrupt.asked() {
                    return Ok(());
                }
            }
        }
        if bad > self.errors {
            bar.suspend(|| eprintln!("{name}: {} more bad records (--errors N lists more of them)", bad - self.errors));
        }
        Ok(write(together, chooser, rotation)?)
    }
}

fn write(records: Vec<LogRecord>, chooser: &mut Chooser, rotation: &mut Rotation) -> Outcome {
    chooser.choose(records)?.iter().try_for_each(|record| rotation.record(record))
}

/// An error that prevented the split of a file.
enum Unread {
    /// Failure to read the input.
    Source(std::io::Error),
    /// Something else does not work, which other files would meet as well.
    Other(Failure),
}

impl From<Failure> for Unread {
    fn from(failure: Failure) -> Unread {
        Unread::Other(failure)
    }
}
