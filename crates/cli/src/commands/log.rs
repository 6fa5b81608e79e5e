//! `tampu log ...`.

use clap::Subcommand;

use crate::{commands::Context, failure::Outcome};

pub mod export;
pub mod import;
pub mod levels;
pub mod query;
pub mod recover;
pub mod send;
pub mod ship;
pub mod stat;
pub mod tail;

/// Send, ship, follow, find, bring in and take out log records; see and set loggers' levels
#[derive(Debug, Subcommand)]
pub enum Log {
    Send(send::Send),
    Ship(ship::Ship),
    Tail(tail::Tail),
    Query(query::Query),
    Import(import::Import),
    Export(export::Export),
    Stat(stat::Stat),
    Recover(recover::Recover),
    Levels(levels::Levels),
}

impl Log {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Log::Send(send) => send.run(context),
            Log::Ship(ship) => ship.run(context),
            Log::Tail(tail) => tail.run(context),
            Log::Query(query) => query.run(context),
            Log::Import(import) => import.run(context),
            Log::Export(export) => export.run(context),
            Log::Stat(stat) => stat.run(context),
            Log::Recover(recover) => recover.run(context),
            Log::Levels(levels) => levels.run(context),
        }
    }
}
