//! `tampu log export`.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
    filter::{FilterArgs, SpanArgs},
    keeper::Keeper,
    output::{
        file::{FileOptions, RecordFile, is_gz},
        file_args::{CutArgs, FileArgs},
        rotation::{Rotation, Written},
    },
    progress,
    time_expression::now,
};

/// Write records the collector keeps as files that other tools and 'import' read
///
/// The oldest first. What was exported as XML or JSON and is imported again adds nothing. With --dir many files are written, named
/// as ACS names its own (log<start>_<close>.xml), 128 MiB each unless told otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log export --since yesterday --until today -o night.xml.gz\n  \
    tampu log export --since 1d --dir night --every 10m --gz\n  tampu log export --columns time,source,message -o night.csv\n  tampu log export --since 7d -o week.parquet")]
pub struct Export {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    span: SpanArgs,
    /// The file; .gz compresses, and .xml, .json, .csv, .parquet choose the format. Standard output if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Many files in this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    cut: CutArgs,
    /// At most so many records
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// With --dir: tell each file as a JSON object
    #[arg(long, requires = "dir")]
    json: bool,
}

impl Export {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        query.limit = self.limit;
        let format = self.file.format(self.output.as_deref())?;
        if self.dir.is_none() && (self.cut.is_given() || self.cut.gz()) {
            return Err(Failure::Usage(
                "--every, --records, --size and --gz are for many files: name their directory with --dir".to_owned(),
            ));
        }
        let cut = self.cut.cut()?;
        let keeper = Keeper::find(&context.common.connect, "tampu-export")?;
        let options = FileOptions { domain: keeper.participant().domain().to_string(), ..self.file.options() };
        let bar = progress::records("exporting");

        if let Some(dir) = &self.dir {
            let mut rotation = Rotation::new(dir, cut, format, self.cut.gz(), options)?;
            keeper.search(&query, &context.interrupt, &mut |record| {
                bar.inc(1);
                rotation.record(&record)
            })?;
            bar.finish_and_clear();
            report(&rotation.close()?, dir, self.json)?;
            return whole(context);
        }
        let mut file = match &self.output {
            Some(path) => RecordFile::create(path, format, is_gz(path), &options)?,
            None => RecordFile::stdout(format, &options)?,
        };
        keeper.search(&query, &context.interrupt, &mut |record| {
            bar.inc(1);
            file.record(&record)
        })?;
        bar.finish_and_clear();
        let (count, place) = (file.records(), file.place().to_owned());
        file.close()?;
        if self.output.is_some() || std::io::stderr().is_terminal() {
            eprintln!("{count} records written to {place}");
        }
        whole(context)
    }
}

/// Fails if somebody has interrupted it: what was written is good, but not all.
pub fn whole(context: &Context) -> Outcome {
    if context.interrupt.asked() {
        return Err(Failure::Failed("interrupted: what was told as written is good, but not all there is".to_owned()));
    }
    Ok(())
}

/// Tells which files were written: on standard output, a line or a JSON object each.
pub fn report(files: &[Written], directory: &Path, json: bool) -> Outcome {
    let mut out = std::io::stdout().lock();
    for file in files {
        let line = if json {
            serde_json::to_string(file).map_err(|error| Failure::failed("a file as JSON", error))?
        } else {
            format!("{:>12}  {}", file.records, file.file.display())
        };
        written(writeln!(out, "{line}"))?;
    }
    let records: u64 = files.iter().map(|file| file.records).sum();
    eprintln!("{records} records written to {} files in {}", files.len(), directory.display());
    Ok(())
}
