//! `tampu book config`.

use std::{
    fs,
    io::{self, Read, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use tampu_elog::{
    book_config::difference,
    options::{CheckedOption, ConfigCheck, OptionVerdict, check},
};

use super::{place::Place, text::shown};
use crate::{
    failure::{Failure, Outcome, written},
    plural::counted,
    time_text,
};

mod editor;
mod keeper;

use keeper::ConfigKeeper;

/// Show, change and restore the configuration of logbooks, or check one of ELOG
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book config edit Shift\n  tampu book config show Shift > shift.cfg\n  \
    tampu book config edit Shift shift.cfg\n  tampu book config history Shift --change 3\n  tampu book config restore Shift 2")]
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
    /// Show the configuration of a logbook: the options of its section in elogd.cfg
    Show {
        /// Name of the logbook
        book: String,
        /// Write JSON objects, one a line
        #[arg(long)]
        json: bool,
    },
    /// Change the configuration of a logbook in an editor, or from a file
    ///
    /// Nothing is changed if the text has a fault; each fault is reported with its line. '(left out)' stands for a password, and keeps it.
    Edit {
        /// Name of the logbook
        book: String,
        /// File with the new text; '-' reads standard input [default: opens $VISUAL or $EDITOR]
        file: Option<PathBuf>,
        /// Write the configuration after the change as a JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the changes of the configuration of a logbook, the last one first
    History {
        /// Name of the logbook
        book: String,
        /// Show the lines of this change
        #[arg(long, value_name = "NUMBER")]
        change: Option<u32>,
        /// Write JSON objects, one a line
        #[arg(long)]
        json: bool,
    },
    /// Restore the configuration of a logbook as a change left it
    Restore {
        /// Name of the logbook
        book: String,
        /// Number of the change, as 'history' lists it
        number: u32,
        /// Restore the configuration before the change
        #[arg(long)]
        before: bool,
        /// Write the configuration after the change as a JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Config {
    /// Returns true if the command is about a file, and needs no logbook.
    pub fn is_of_file(&self) -> bool {
        matches!(self.verb, Verb::Check { .. })
    }

    pub fn run(self, place: &Place) -> Outcome {
        let mut out = io::stdout();
        match self.verb {
            Verb::Check { .. } => self.check(),
            Verb::Show { book, json } => {
                let config = ConfigKeeper::open(place)?.config(&book)?;
                if json {
                    return written(writeln!(out, "{}", json_of(&config)?));
                }
                config.text.lines().try_for_each(|line| written(writeln!(out, "{}", shown(line, false))))
            }
            Verb::Edit { book, file, json } => {
                let keeper = ConfigKeeper::open(place)?;
                let present = keeper.config(&book)?;
                let (text, kept) = match &file {
                    Some(path) if path.as_os_str() == "-" => {
                        let mut text = String::new();
                        io::stdin().read_to_string(&mut text).map_err(|error| Failure::failed("standard input", error))?;
                        (text, None)
                    }
                    Some(path) => (fs::read_to_string(path).map_err(|error| Failure::failed(path.display(), error))?, None),
                    None => {
                        let edited = editor::edit(&present.text)?;
                        (edited.text.clone(), Some(edited))
                    }
                };
                if text == present.text {
                    eprintln!("tampu: the configuration of '{}' is as it was", shown(&book, false));
                    return result(&keeper, &book, json);
                }
                let changed = keeper.set(&book, &text, &present.version);
                match (&changed, kept) {
                    (Err(_), Some(kept)) => eprintln!("tampu: your text is in {}", kept.keep().display()),
                    _ => eprintln!("tampu: changed the configuration of '{}'", shown(&book, false)),
                }
                changed.and_then(|()| result(&keeper, &book, json))
            }
            Verb::History { book, change: Some(number), json } => {
                let change = ConfigKeeper::open(place)?.change(&book, number)?;
                if json {
                    return written(writeln!(out, "{}", json_of(&change)?));
                }
                let (before, after) = (change.before.unwrap_or_default(), change.after.unwrap_or_default());
                let lines = difference(&before, &after);
                lines.iter().try_for_each(|line| written(writeln!(out, "{} {}", line.mark, shown(line.text, false))))
            }
            Verb::History { book, change: None, json } => ConfigKeeper::open(place)?.changes(&book, &mut |change| {
                if json {
                    return written(writeln!(out, "{}", json_of(change)?));
                }
                let at = time_text::minute_with_zone(change.at);
                let who = if change.by.is_empty() { "unknown" } else { &change.by };
                let line = format!("{:>4}  {at}  {who}  {}  +{} -{}", change.number, change.what, change.added, change.removed);
                written(writeln!(out, "{}", shown(&line, false)))
            }),
            Verb::Restore { book, number, before, json } => {
                let keeper = ConfigKeeper::open(place)?;
                keeper.restore(&book, number, before)?;
                eprintln!("tampu: restored the configuration of '{}'", shown(&book, false));
                result(&keeper, &book, json)
            }
        }
    }

    /// Checks a file.
    pub fn check(self) -> Outcome {
        let Verb::Check { file, json } = self.verb else { return Ok(()) };
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

/// Writes the configuration after a change, if JSON is asked for.
fn result(keeper: &ConfigKeeper, book: &str, json: bool) -> Outcome {
    if !json {
        return Ok(());
    }
    written(writeln!(io::stdout(), "{}", json_of(&keeper.config(book)?)?))
}

/// Converts a value to a line of JSON; times are shown as everywhere.
fn json_of<T: serde::Serialize>(value: &T) -> Result<serde_json::Value, Failure> {
    let mut object = serde_json::to_value(value).map_err(|error| Failure::failed("the configuration as JSON", error))?;
    time_text::in_json(&mut object);
    Ok(object)
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
