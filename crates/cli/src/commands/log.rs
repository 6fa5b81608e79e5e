//! `tampu log ...`.

use clap::Subcommand;

use crate::{context::Context, failure::Outcome};

pub mod archive;
pub mod export;
pub mod import;
pub mod levels;
mod nothing;
pub mod query;
pub mod recover;
pub mod replay;
pub mod send;
pub mod ship;
pub mod split;
pub mod stat;
pub mod tail;
pub mod view;

/// Send, follow, search, import, export and replay log records; set levels; maintain the archive
#[derive(Debug, Subcommand)]
pub enum Log {
    Send(send::Send),
    Ship(ship::Ship),
    Tail(tail::Tail),
    View(view::View),
    Query(query::Query),
    Import(import::Import),
    Export(export::Export),
    Split(split::Split),
    Stat(stat::Stat),
    Replay(replay::Replay),
    Recover(recover::Recover),
    Levels(levels::Levels),
    Archive(archive::Archive),
}

impl Log {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Log::Send(send) => send.run(context),
            Log::Ship(ship) => ship.run(context),
            Log::Tail(tail) => tail.run(context),
            Log::View(view) => view.run(context),
            Log::Query(query) => query.run(context),
            Log::Import(import) => import.run(context),
            Log::Export(export) => export.run(context),
            Log::Split(split) => split.run(context),
            Log::Stat(stat) => stat.run(context),
            Log::Replay(replay) => replay.run(context),
            Log::Recover(recover) => recover.run(context),
            Log::Levels(levels) => levels.run(context),
            Log::Archive(archive) => archive.run(context, archive::Kept::Logs),
        }
    }
}
