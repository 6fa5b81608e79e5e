//! `tampu log ship`: what other programs write into files and into the journal, as records on the bus.
//!
//! Exactly once, as far as the state goes: a record's id is made of the life its file was given when it was begun and of its number
//! in it, both are in the state, and the state moves on only when a collector has committed. So what is sent again after a crash
//! has the ids it had, and is kept once. Without the state the same lines are other records.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use regex::Regex;
use tampu_types::{Level, SourceName};

use crate::{
    commands::Context,
    failure::{Failure, Outcome},
    keeper::Keeper,
};

mod file;
mod journal;
mod reading;
mod sending;
mod state;

use self::{file::Tracked, journal::Journal, reading::Reading, sending::Sending, state::State};

/// How often files are looked at while nothing comes.
const LOOK: Duration = Duration::from_millis(250);

/// Send what other programs write into files, or into this host's journal, as log records
///
/// Files are followed through rotation (renamed or truncated) and begun at their beginning. With --state it goes on where it was:
/// each line is kept once, however often this is ended or killed; without it, lines are sent again with each start. A line that
/// begins with a time of RFC 3339 has that time, else that of its reading.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log ship --file /var/log/ptp4l.log --source PTP --state /var/lib/tampu/ptp.state\n  \
    tampu log ship --journal --source journal --state /var/lib/tampu/journal.state\n  \
    tampu log ship --once --file old.log --source OLD --start '^\\d{4}-' --level-regex '\\[(\\w+)\\]'")]
pub struct Ship {
    /// Files to follow
    #[arg(short, long, value_name = "PATH", num_args = 1.., required_unless_present = "journal")]
    file: Vec<PathBuf>,
    /// This host's journal (journalctl must be there)
    #[arg(long)]
    journal: bool,
    /// The source on the bus, and the process of what comes from files
    #[arg(short, long, value_name = "NAME")]
    source: SourceName,
    /// Where it is kept how far everything has been committed
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// End at the end of the files, or of the journal
    #[arg(long)]
    once: bool,
    /// A record begins with a line that this matches; other lines belong to the one before
    #[arg(long, value_name = "REGEX")]
    start: Option<Regex>,
    /// Where in a record its level stands: the first group, or the whole match. Without it a word like WARN or [error] in the
    /// first line tells
    #[arg(long, value_name = "REGEX")]
    level_regex: Option<Regex>,
    /// The level of what tells none
    #[arg(short = 'l', long, default_value = "Info", value_name = "LEVEL")]
    level: Level,
}

impl Ship {
    pub fn run(self, context: &Context) -> Outcome {
        let mut state = State::open(self.state.clone(), &self.source)?;
        let keeper = Keeper::find(&context.common.connect, self.source.as_str())?;
        let mut sending = Sending::new(&keeper)?;
        let reading = Reading { start: self.start, level: self.level_regex, otherwise: self.level, source: self.source };
        let mut files: Vec<Tracked> = self.file.into_iter().map(Tracked::new).collect();
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
        eprintln!("tampu: {} records committed", sending.committed());
        Ok(())
    }
}
