//! `tampu log export`.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use clap::Args;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    filter::{FilterArgs, SpanArgs},
    keeper::Keeper,
    output::{
        file::{FileOptions, RecordFile, is_gz},
        file_args::{CutArgs, FileArgs},
        rotation::{Rotation, Written},
    },
    plural::counted,
    progress,
    time_expression::now,
};

/// Export archived records as files that other tools and 'tampu log import' read
///
/// The oldest first. What was exported as XML or JSON and is imported again adds nothing. Into a directory many files are
/// written, named as ACS names its own (log<start>_<close>.xml), 128 MiB each unless --every, --records or --file-size say otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log export --since yesterday --until today -o night.xml.gz\n  \
    tampu log export --since 1d -o night/ --every 10m --gz\n  tampu log export --columns time,source,message -o night.csv\n  tampu log export --since 7d -o week.parquet")]
pub struct Export {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    span: SpanArgs,
    /// The file, whose ending chooses the format (.xml, .json, .csv, .parquet; .gz compresses), or a directory for many files
    /// [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    cut: CutArgs,
    /// Write at most N records
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// Write JSON objects, one a line
    #[arg(long, requires = "output")]
    json: bool,
}

impl Export {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        query.limit = self.limit;
        let directory = self.directory()?;
        let format = self.file.format(self.output.as_deref().filter(|_| directory.is_none()))?;
        let cut = self.cut.cut()?;
        let keeper = Keeper::find(&context.common.connect, "tampu-export")?;
        let options = FileOptions { domain: keeper.participant().domain().to_string(), ..self.file.options() };
        let bar = progress::records("exporting");

        if let Some(directory) = directory {
            let mut rotation = Rotation::new(directory, cut, format, self.cut.gz(), options)?;
            keeper.search(&query, &context.interrupt, &mut |record| {
                bar.inc(1);
                rotation.record(&record)
            })?;
            bar.finish_and_clear();
            report(&rotation.close()?, directory, self.json)?;
            return whole(context);
        }
        let mut file = match &self.output {
            Some(path) => RecordFile::create(path, format, is_gz(path) || self.cut.gz(), &options)?,
            None => RecordFile::stdout(format, &options)?,
        };
        keeper.search(&query, &context.interrupt, &mut |record| {
            bar.inc(1);
            file.record(&record)
        })?;
        bar.finish_and_clear();
        let (records, place) = (file.records(), file.place().to_owned());
        file.close()?;
        match &self.output {
            Some(path) if self.json => {
                let line = serde_json::json!({ "file": path, "records": records });
                written(writeln!(std::io::stdout().lock(), "{line}"))?;
            }
            Some(_) => eprintln!("{} written to {place}", counted(records, "record")),
            None if std::io::stderr().is_terminal() => eprintln!("{} written to {place}", counted(records, "record")),
            None => {}
        }
        whole(context)
    }

    /// The directory that many files go to: one that is there, a name that ends with a slash, or any where files are cut.
    fn directory(&self) -> Result<Option<&Path>, Failure> {
        let Some(path) = &self.output else {
            if self.cut.is_given() || self.cut.gz() {
                let flags = "--every, --records, --file-size and --gz are for files: name a file or a directory with --output";
                return Err(Failure::Usage(flags.to_owned()));
            }
            return Ok(None);
        };
        let named = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        Ok((self.cut.is_given() || named || path.is_dir()).then_some(path))
    }
}

/// Fails after an interruption: the written part is valid, but incomplete.
pub fn whole(context: &Context) -> Outcome {
    if context.interrupt.asked() {
        return Err(Failure::Failed(
            "interrupted: the files reported as written are complete, the others are missing".to_owned(),
        ));
    }
    Ok(())
}

/// Prints the names of the written files on standard output, a line or a JSON object each.
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
    let (records, files) = (counted(records, "record"), counted(files.len() as u64, "file"));
    eprintln!("{records} written to {files} in {}", directory.display());
    Ok(())
}
