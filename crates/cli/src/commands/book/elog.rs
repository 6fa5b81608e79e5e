//! `tampu book import-elog`, `tampu book follow-elog` and `tampu book export-elog`.

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use tampu_logbook::elog::{
    export::{ExportError, export_elog},
    follow::{Follower, Told},
    import::{BookReport, Report, Source, import_elog},
};

use super::{Place, failed};
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
    progress,
};

/// How often a follower looks.
const TICK: Duration = Duration::from_millis(100);

/// Take over a site's ELOG, as it is
///
/// The source is never written to. What cannot be read is told with file, place and what was done about it; the rest is taken. Again
/// takes only what is new or changed, and goes on where a run was cut off. What was edited here stays.
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu book import-elog --config /usr/local/elog/elogd.cfg /usr/local/elog/logbooks")]
pub struct Import {
    /// The folder the logbooks' folders are in
    logbooks: PathBuf,
    /// elogd.cfg; without it every folder is a logbook, with the attributes its entries have
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only this logbook; several, once for each
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Zone of dates that do not say theirs, in minutes east of UTC
    #[arg(long, value_name = "MINUTES", default_value_t = 0, allow_hyphen_values = true)]
    zone: i16,
    /// How many faults of a logbook are told one by one
    #[arg(long, value_name = "N", default_value_t = 20)]
    tell: usize,
    /// Print the whole report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Follow a living ELOG: what elogd writes is here within a second
///
/// Imports first, as 'import-elog', and then goes on until Ctrl-C. elogd needs no change, knows nothing of it, and its files are only read. New and
/// changed entries are taken, deleted ones get a tombstone here, another configuration is taken as it is; what was changed here stays. Where the
/// kernel does not tell of changes, as on NFS, the files are looked at again and again.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu book follow-elog --config /usr/local/elog/elogd.cfg --data /usr/local/elog/logbooks --into /var/lib/tampu"
)]
pub struct Follow {
    /// elogd.cfg; without it every folder is a logbook, with the attributes its entries have
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder the logbooks' folders are in
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Tampu's data directory, as 'tampu up --data' has it
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Only this logbook; several, once for each
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Zone of dates that do not say theirs, in minutes east of UTC
    #[arg(long, value_name = "MINUTES", default_value_t = 0, allow_hyphen_values = true)]
    zone: i16,
    /// Look at the files again and again, also where the kernel would tell of changes: it does not of what another host changes
    #[arg(long)]
    poll: bool,
    /// How many faults of a logbook are told one by one
    #[arg(long, value_name = "N", default_value_t = 20)]
    tell: usize,
    /// Print what happens as JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Write logbooks as ELOG's files, into an empty folder that elogd can be started on
#[derive(Debug, Args)]
pub struct Export {
    /// The folder
    pub target: PathBuf,
    /// Only this logbook; several, once for each
    #[arg(short, long, value_name = "NAME")]
    pub book: Vec<String>,
    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Import {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        place.need_directory("an import, of many files of this host,")?;
        let store = place.make()?;
        let source = Source { config: self.config, logbooks: self.logbooks, only: self.book, zone: self.zone, poll: false };
        let bar = progress::bytes(0, "importing");
        let report = import_elog(&*store, &source, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        let report = report.map_err(|error| Failure::Failed(error.to_string()))?;
        if self.json {
            let line = serde_json::to_string(&report).map_err(|error| Failure::failed("the report as JSON", error))?;
            written(writeln!(io::stdout().lock(), "{line}"))?;
        } else {
            tell(&report, self.tell)?;
        }
        eprintln!("tampu: the logbooks are in {}", place.told());
        if report.interrupted {
            return Err(Failure::Failed("interrupted; what was told as new is kept, and the next import goes on".to_owned()));
        }
        Ok(())
    }
}

impl Follow {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let place = place.at(self.into);
        let store = place.make()?;
        let source = Source { config: self.config, logbooks: self.data, only: self.book, zone: self.zone, poll: self.poll };
        let bar = progress::bytes(0, "importing");
        let begun = Follower::begin(&*store, source, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        let (mut follower, report) = begun.map_err(|error| Failure::Failed(error.to_string()))?;
        let (json, most) = (self.json, self.tell);
        let mut outcome = say(&Told::Again(report), json, most);
        eprintln!("tampu: following; Ctrl-C ends it");
        if let Some(why) = follower.polls() {
            eprintln!("tampu: the files are looked at again and again: {why}");
        }
        while outcome.is_ok() && !context.interrupt.asked() {
            follower.look(&mut |told| {
                if outcome.is_ok() {
                    outcome = say(&told, json, most);
                }
            });
            context.interrupt.wait(TICK);
        }
        outcome
    }
}

/// Tells what happened.
fn say(told: &Told, json: bool, most: usize) -> Outcome {
    if json {
        let object = match told {
            Told::Book(report) => serde_json::json!({ "book": report }),
            Told::Again(report) => serde_json::json!({ "imported": report }),
            Told::Trouble(why) => serde_json::json!({ "trouble": why }),
        };
        return written(writeln!(io::stdout().lock(), "{object}"));
    }
    match told {
        Told::Again(report) => tell(report, most),
        Told::Trouble(why) => {
            eprintln!("tampu: {}; it is tried again", super::shown(why, false));
            Ok(())
        }
        Told::Book(report) => {
            report.faults.iter().take(most).for_each(|fault| eprintln!("{}", super::shown(&fault.to_string(), false)));
            let BookReport { book, new, changed, deleted, drafts, gone, .. } = &**report;
            eprintln!("{book}: {new} new, {changed} changed, {deleted} deleted, {drafts} drafts, {gone} gone here");
            if !report.conflicting.is_empty() {
                let ids: Vec<String> = report.conflicting.iter().map(u32::to_string).collect();
                eprintln!("{book}: changed here and there, what is here stays: {}", ids.join(", "));
            }
            Ok(())
        }
    }
}

fn tell(report: &Report, most: usize) -> Outcome {
    report.faults.iter().for_each(|fault| eprintln!("{}", super::shown(&fault.to_string(), false)));
    let mut out = io::stdout().lock();
    for book in &report.books {
        for fault in book.faults.iter().take(most) {
            eprintln!("{}", super::shown(&fault.to_string(), false));
        }
        let more = book.faults.len().saturating_sub(most) as u64 + book.more_faults;
        if more > 0 {
            eprintln!("{}: {more} more (--tell N tells more of them, --json all)", book.book);
        }
        if !book.kept_options.is_empty() {
            eprintln!("{}: options kept without effect: {}", book.book, book.kept_options.join(", "));
        }
        if !book.unknown_options.is_empty() {
            eprintln!("{}: no options of ELOG, kept too: {}", book.book, book.unknown_options.join(", "));
        }
        if !book.conflicting.is_empty() {
            let ids: Vec<String> = book.conflicting.iter().take(most).map(u32::to_string).collect();
            let more = if book.conflicting.len() > most { ", ..." } else { "" };
            eprintln!("{}: changed here and there, what is here stays: {}{more}", book.book, ids.join(", "));
        }
        let BookReport { book, entries, new, changed, same, conflicts, gone, drafts, attachments, .. } = book;
        written(writeln!(
            out,
            "{book}: {entries} entries, {new} new, {changed} changed, {same} as they were, {conflicts} changed here too, \
             {gone} gone here, {drafts} drafts, {attachments} attachments"
        ))?;
    }
    Ok(())
}

impl Export {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let bar = progress::work("exporting");
        let done = export_elog(&*place.store("")?, &self.book, &self.target, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        let done = done.map_err(|error| match error {
            ExportError::Store(error) => failed(error),
            error => Failure::Failed(error.to_string()),
        })?;
        done.notes.iter().for_each(|note| eprintln!("{}", super::shown(note, false)));
        let mut out = io::stdout().lock();
        if self.json {
            let line = serde_json::to_string(&done).map_err(|error| Failure::failed("the report as JSON", error))?;
            written(writeln!(out, "{line}"))?;
        } else {
            written(writeln!(out, "{} logbooks, {} entries, {} attachments", done.books, done.entries, done.attachments))?;
        }
        if done.interrupted { Err(Failure::Failed("interrupted: the export is not complete".to_owned())) } else { Ok(()) }
    }
}
