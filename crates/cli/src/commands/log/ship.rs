//! `tampu log ship`: the lines of files and of the journal, as records on the bus.
//!
//! Each line is kept exactly once, as far as the state reaches. A record's id is made of the incarnation that its file
//! got at the beginning, and of its number in the file. Both are in the state, and the state advances only when a
//! collector has committed. So a record that is sent again after a crash has the same id, and is kept once. Without the
//! state the same lines are other records.

use std::{io::Write, path::PathBuf, time::Duration};

use clap::Args;
use regex::Regex;
use tampu_types::{Level, SourceName};

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    keeper::Keeper,
    level::parse_level,
    plural::counted,
};

mod file;
mod journal;
mod reading;
mod sending;
mod state;

use self::{file::Tracked, journal::Journal, reading::Reading, sending::Sending, state::State};

/// Time between two checks of unchanged files.
const LOOK: Duration = Duration::from_millis(250);

/// Send the lines of files, or of this host's journal, as log records
///
/// Files are followed through rotation (renamed or truncated) and begun at their beginning. With --state it goes on where it was:
/// each line is kept once, however often this is ended or killed; without it, lines are sent again with each start. A line that
/// begins with a time of RFC 3339 has that time, else that of its reading.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log ship /var/log/ptp4l.log --process PTP --state /var/lib/tampu/ptp.state\n  \
    tampu log ship --journal --process journal --state /var/lib/tampu/journal.state\n  \
    tampu log ship --once old.log --process OLD --start '^\\d{4}-' --level-regex '\\[(\\w+)\\]'")]
pub struct Ship {
    /// Files to follow
    #[arg(value_name = "FILE", required_unless_present = "journal")]
    files: Vec<PathBuf>,
    /// Read this host's journal; needs journalctl
    #[arg(long)]
    journal: bool,
    /// The name of the process that the records come from
    #[arg(short, long, value_name = "NAME")]
    process: SourceName,
    /// File that remembers the committed position, so that each line is stored once
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// End at the end of the files, or of the journal
    #[arg(long)]
    once: bool,
    /// Begin a record at lines that match this expression; other lines belong to the record before
    #[arg(long, value_name = "REGEX")]
    start: Option<Regex>,
    /// Find the level of a record with this expression: its first group, or the whole match. Without it, words like WARN or [error] in the first line are taken
    #[arg(long, value_name = "REGEX")]
    level_regex: Option<Regex>,
    /// Level of records that name none
    #[arg(long, default_value = "Info", value_name = "LEVEL", value_parser = parse_level)]
    default_level: Level,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Ship {
    pub fn run(self, context: &Context) -> Outcome {
        let mut state = State::open(self.state.clone(), &self.process)?;
        let keeper = Keeper::find(&context.common.connect, self.process.as_str())?;
        let mut sending = Sending::new(&keeper)?;
        let reading = Reading { start: self.start, level: self.level_regex, otherwise: self.default_level, source: self.process };
        let mut files: Vec<Tracked> = self.files.into_iter().map(Tracked::new).collect();
        let mut journal = if self.journal { Some(Journal::start(state.journal(), self.once)?) } else { None };
        let interrupt = &context.interrupt;
        loop {
            let mut moved = false;
            for file in &mut files {
                moved |= file.step(&mut state, &reading, self.once, &mut sending, interrupt)?;
            }
            let mut ended = true;
            if let Some(journal) = &mut journal {
                moved |= journal.step(&mut state, &mut sending, interrupt)?;
                ended = journal.has_ended();
            }
            if let Some(missing) = files.iter().find(|file| self.once && file.is_missing()) {
                return Err(Failure::Failed(format!("{}: there is no such file", missing.name())));
            }
            if interrupt.asked() || self.once && !moved && ended {
                break;
            }
            if !moved {
                interrupt.wait(LOOK);
            }
        }
        let committed = sending.committed();
        if self.json {
            return written(writeln!(std::io::stdout().lock(), "{}", serde_json::json!({ "committed": committed })));
        }
        eprintln!("tampu: {} committed", counted(committed, "record"));
        Ok(())
    }
}
