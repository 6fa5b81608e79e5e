//! `tampu book import-elog`, `tampu book follow-elog` and `tampu book export-elog`.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use tampu_elog::{
    access_report::GuestRights,
    export::{ExportError, export_site},
    follow::{FollowEvent, Follower},
    import::{BookReport, ImportReport, ImportSource, import_elog},
    options::OptionVerdict,
    site_zone::SourceZone,
};

use super::{
    config,
    place::{Place, failed},
    text::shown,
    users::registrations,
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    plural::counted,
    progress,
};

/// Returns the zone that a person names, or this computer's.
fn source_zone(name: Option<&str>) -> Result<SourceZone, Failure> {
    let chosen = name.map(SourceZone::chosen).transpose();
    Ok(chosen.map_err(|why| Failure::Usage(format!("--zone: {why}")))?.unwrap_or_else(SourceZone::of_this_host))
}

/// Fails unless ELOG's logbooks can be under this path.
fn need_logbooks(path: &Path) -> Outcome {
    if path.is_dir() {
        return Ok(());
    }
    let why = if path.exists() { "is not a directory" } else { "does not exist" };
    Err(Failure::Failed(format!("LOGBOOKS: {} {why}; name the directory that holds the logbooks", path.display())))
}

/// Time between two checks of a follower.
const TICK: Duration = Duration::from_millis(100);

/// Import a site's ELOG as it is
///
/// The source is never written to. What cannot be read is told with file, place and what was done about it; the rest is taken. Again
/// takes only what is new or changed, and goes on where a run was cut off. What was edited here stays.
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu book import-elog --elog-config /usr/local/elog/elogd.cfg /usr/local/elog/logbooks")]
pub struct Import {
    /// The folder the logbooks' folders are in
    logbooks: PathBuf,
    /// ELOG's configuration, elogd.cfg; without it every directory is a logbook with the attributes of its entries
    #[arg(long, value_name = "FILE")]
    elog_config: Option<PathBuf>,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Zone of elogd's computer: Europe/Zurich, or +01:00
    ///
    /// The pages show and ask for dates in it, as elogd does, unless [book] zone of the hub names another. It is also the zone of old dates
    /// that name none. Without it, the zone is this computer's, if the dates of the entries agree.
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    zone: Option<String>,
    /// Rights of guests: none, read, or as-elog
    ///
    /// as-elog lets guests write where elogd lets them without a login. It is the rule for new logbooks. Named here, a choice also changes
    /// logbooks that are there already. A logbook that ELOG closed stays closed.
    #[arg(long, value_name = "RIGHTS")]
    guests: Option<GuestRights>,
    /// Number of errors that are listed one by one, for each file or logbook
    #[arg(long, value_name = "N", default_value_t = 20)]
    errors: usize,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Follow a running ELOG: its changes arrive within a second
///
/// Imports first, as 'import-elog', and then goes on until Ctrl-C. elogd needs no change, knows nothing of it, and its files are only read. New and
/// changed entries are taken, deleted ones get a tombstone here, another configuration is taken as it is; what was changed here stays. Where the
/// kernel does not tell of changes, as on NFS, the files are looked at again and again.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu book follow-elog --elog-config /usr/local/elog/elogd.cfg /usr/local/elog/logbooks --data /var/lib/tampu"
)]
pub struct Follow {
    /// ELOG's configuration, elogd.cfg; without it every directory is a logbook with the attributes of its entries
    #[arg(long, value_name = "FILE")]
    elog_config: Option<PathBuf>,
    /// The directory that holds the logbooks' directories
    logbooks: PathBuf,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Zone of elogd's computer: Europe/Zurich, or +01:00
    ///
    /// The pages show and ask for dates in it, as elogd does, unless [book] zone of the hub names another. It is also the zone of old dates
    /// that name none. Without it, the zone is this computer's, if the dates of the entries agree.
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    zone: Option<String>,
    /// Scan the files again and again: for file systems whose changes the kernel does not report, such as NFS
    #[arg(long)]
    rescan: bool,
    /// Number of errors that are listed one by one, for each file or logbook
    #[arg(long, value_name = "N", default_value_t = 20)]
    errors: usize,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Write logbooks as ELOG's files, into an empty folder that elogd can be started on
#[derive(Debug, Args)]
pub struct Export {
    /// The directory, which must be empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    pub book: Vec<String>,
    /// ELOG's password file from before the import: users whose password is still the same keep it in ELOG; repeatable
    #[arg(long, value_name = "FILE")]
    pub elog_passwords: Vec<PathBuf>,
    /// Write JSON objects, one a line
    #[arg(long)]
    pub json: bool,
}

impl Import {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        place.need_directory("an import, of many files of this host,")?;
        need_logbooks(&self.logbooks)?;
        let store = place.make()?;
        let config = self.elog_config.clone();
        let source = ImportSource {
            config: self.elog_config,
            logbooks: self.logbooks,
            only: self.book,
            zone: source_zone(self.zone.as_deref())?,
            poll: false,
            guests: self.guests,
        };
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
            tell(&report, self.errors)?;
        }
        let read = config.and_then(|path| std::fs::read(path).ok()).map(|bytes| tampu_elog::config::parse(&bytes));
        if let Some(tables) = read.as_ref().and_then(tampu_elog::login_methods::tables) {
            eprintln!("tampu: login methods of elogd, for the hub's configuration (docs/operate/login.md):");
            tables.lines().for_each(|line| eprintln!("{}", shown(line, false)));
        }
        eprintln!("tampu: the logbooks are in {}", place.told());
        if report.interrupted {
            return Err(Failure::Failed(
                "interrupted; the entries reported as new are stored; run the import again to continue".to_owned(),
            ));
        }
        Ok(())
    }
}

impl Follow {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        place.need_directory("following a living ELOG")?;
        need_logbooks(&self.logbooks)?;
        let store = place.make()?;
        let source = ImportSource {
            config: self.elog_config,
            logbooks: self.logbooks,
            only: self.book,
            zone: source_zone(self.zone.as_deref())?,
            poll: self.rescan,
            guests: None,
        };
        let bar = progress::bytes(0, "importing");
        let begun = Follower::begin(&*store, source, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        let (mut follower, report) = begun.map_err(|error| Failure::Failed(error.to_string()))?;
        let (json, most) = (self.json, self.errors);
        let mut outcome = say(&FollowEvent::Reimported(report), json, most);
        eprintln!("tampu: following; Ctrl-C ends it");
        if let Some(why) = follower.polls() {
            eprintln!("tampu: polling the files: {why}");
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

/// Prints an event of the import or of the follower.
fn say(told: &FollowEvent, json: bool, most: usize) -> Outcome {
    if json {
        let object = match told {
            FollowEvent::Book(report) => serde_json::json!({ "book": report }),
            FollowEvent::Reimported(report) => serde_json::json!({ "imported": report }),
            FollowEvent::Failed(why) => serde_json::json!({ "trouble": why }),
        };
        return written(writeln!(io::stdout().lock(), "{object}"));
    }
    match told {
        FollowEvent::Reimported(report) => tell(report, most),
        FollowEvent::Failed(why) => {
            eprintln!("tampu: {}; retrying", shown(why, false));
            Ok(())
        }
        FollowEvent::Book(report) => {
            report.faults.iter().take(most).for_each(|fault| eprintln!("{}", shown(&fault.to_string(), false)));
            let BookReport { book, new, changed, deleted, drafts, gone, .. } = &**report;
            eprintln!("{book}: {new} new, {changed} changed, {deleted} deleted, {}, {gone} gone here", counted(*drafts, "draft"));
            if !report.conflicting.is_empty() {
                let ids: Vec<String> = report.conflicting.iter().map(u32::to_string).collect();
                eprintln!("{book}: changed in ELOG and in Tampu, Tampu's version stays: {}", ids.join(", "));
            }
            Ok(())
        }
    }
}

fn tell(report: &ImportReport, most: usize) -> Outcome {
    report.faults.iter().for_each(|fault| eprintln!("{}", shown(&fault.to_string(), false)));
    if let Some(options) = &report.options {
        let others = options.options.iter().filter(|option| option.verdict != OptionVerdict::Honoured);
        others.for_each(|option| eprintln!("{}", config::line(option)));
        eprintln!("elogd.cfg: {}", config::counts(options));
        if let Some(host) = &report.public_host {
            eprintln!(
                "elogd.cfg has the address of '{0}': the hub answers to this name with hosts = [\"{0}\"] in [book] of its configuration, \
                 and 'tampu cert init --name {0}' makes a certificate for it",
                shown(host, false)
            );
        }
    }
    let mut out = io::stdout().lock();
    for book in &report.books {
        for fault in book.faults.iter().take(most) {
            eprintln!("{}", shown(&fault.to_string(), false));
        }
        let more = book.faults.len().saturating_sub(most) as u64 + book.more_faults;
        if more > 0 {
            eprintln!("{}: {more} more (--errors N lists more of them, --json all)", book.book);
        }
        if !book.conflicting.is_empty() {
            let ids: Vec<String> = book.conflicting.iter().take(most).map(u32::to_string).collect();
            let more = if book.conflicting.len() > most { ", ..." } else { "" };
            eprintln!("{}: changed in ELOG and in Tampu, Tampu's version stays: {}{more}", book.book, ids.join(", "));
        }
        let BookReport { book, entries, new, changed, same, conflicts, gone, drafts, attachments, access, .. } = book;
        written(writeln!(
            out,
            "{book}: {}, {new} new, {changed} changed, {same} as they were, {conflicts} changed here too, \
             {gone} gone here, {}, {}",
            counted(*entries, "entry"),
            counted(*drafts, "draft"),
            counted(*attachments, "attachment")
        ))?;
        if let Some(access) = access {
            written(writeln!(out, "{book}: {}", shown(&access.to_string(), false)))?;
        }
    }
    if let Some(zone) = &report.zone {
        written(writeln!(out, "{}", shown(zone, false)))?;
    }
    Ok(())
}

impl Export {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let bar = progress::work("exporting");
        let store = place.store("")?;
        let mut users = registrations::of_export(place)?;
        for file in &self.elog_passwords {
            let bytes = std::fs::read(file).map_err(|error| Failure::failed(file.display(), error))?;
            tampu_elog::users::read(&bytes).give_digests(&mut users);
        }
        let done = export_site(&*store, &self.book, &users, &self.output, &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
            !context.interrupt.asked()
        });
        bar.finish_and_clear();
        let done = done.map_err(|error| match error {
            ExportError::Store(error) => failed(error),
            error => Failure::Failed(error.to_string()),
        })?;
        done.notes.iter().for_each(|note| eprintln!("{}", shown(note, false)));
        let mut out = io::stdout().lock();
        if self.json {
            let line = serde_json::to_string(&done).map_err(|error| Failure::failed("the report as JSON", error))?;
            written(writeln!(out, "{line}"))?;
        } else {
            written(writeln!(
                out,
                "{}, {}, {}",
                counted(done.books, "logbook"),
                counted(done.entries, "entry"),
                counted(done.attachments, "attachment")
            ))?;
        }
        if done.interrupted { Err(Failure::Failed("interrupted: the export is not complete".to_owned())) } else { Ok(()) }
    }
}
