//! `tampu book config`.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use tampu_elog::options::{CheckedOption, ConfigCheck, OptionVerdict, check};

use super::text::shown;
use crate::{
    failure::{Failure, Outcome, written},
    plural::counted,
};

/// Check the configuration of logbooks
#[derive(Debug, Args)]
pub struct Config {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Tell of each option of an elogd.cfg whether Tampu honours it, what replaces it, or why it does not apply
    ///
    /// Nothing is imported. The exit code is 1 if ELOG does not have an option, which is mostly a slip of the pen, or if a line or a value
    /// cannot be read. An option that does not apply is no failure.
    #[command(after_help = "Example: tampu book config check /usr/local/elog/elogd.cfg")]
    Check {
        /// ELOG's configuration, elogd.cfg
        file: PathBuf,
        /// Write JSON objects, one a line
        #[arg(long)]
        json: bool,
    },
}

impl Config {
    pub fn run(self) -> Outcome {
        let Verb::Check { file, json } = self.verb;
        let bytes = fs::read(&file).map_err(|error| Failure::failed(file.display(), error))?;
        let found = check(&bytes);
        let mut out = io::stdout().lock();
        if json {
            let line = serde_json::to_string(&found).map_err(|error| Failure::failed("the verdicts as JSON", error))?;
            written(writeln!(out, "{line}"))?;
        } else {
            for (line, why) in &found.faults {
                eprintln!("{}, line {line}: {}", file.display(), shown(why, false));
            }
            for option in &found.options {
                written(writeln!(out, "{}", line(option)))?;
            }
            written(writeln!(out, "{}", counts(&found)))?;
        }
        if found.unknown > 0 || !found.faults.is_empty() { Err(Failure::Said) } else { Ok(()) }
    }
}

/// Returns the line about an option.
pub fn line(option: &CheckedOption) -> String {
    let CheckedOption { line, section, option, verdict, remark } = option;
    let remark = if remark.is_empty() { String::new() } else { format!(": {remark}") };
    shown(&format!("line {line} [{section}] {option}: {verdict}{remark}"), false)
}

/// Returns the counts of a file, in words.
pub fn counts(found: &ConfigCheck) -> String {
    format!(
        "{}: {} {}, {} {}, {} {}, {} {}",
        counted(found.options.len() as u64, "option"),
        found.honoured,
        OptionVerdict::Honoured,
        found.replaced,
        OptionVerdict::Replaced,
        found.not_applicable,
        OptionVerdict::NotApplicable,
        found.unknown,
        OptionVerdict::Unknown
    )
}
