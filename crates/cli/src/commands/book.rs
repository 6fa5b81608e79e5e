//! `tampu book ...`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use tampu_logbook::store::postgres::has_password;

use crate::{
    connect::from_environment,
    context::Context,
    failure::{Failure, Outcome},
};

use place::Place;

mod abandon;
pub mod config;
pub mod edit;
pub mod elog;
pub mod export;
pub mod import;
pub mod list;
pub mod make;
pub mod moving;
pub mod naming;
pub mod notify;
pub mod place;
pub mod post;
pub mod purge;
pub mod search;
pub mod show;
pub mod sign;
pub mod stat;
pub mod summary;
pub mod template;
mod text;
pub mod tick;
pub mod upkeep;
pub mod users;
mod writing;

/// Write, read and search logbooks; take them over from ELOG
///
/// With --hub http://HOST:PORT or https://HOST:PORT the logbook of that hub, over HTTP. With --data the logbook in that directory or database, also while others use it.
/// With neither, the logbook of the hub that runs on this host, or if none does the usual directory.
#[derive(Debug, Args)]
pub struct Book {
    #[command(subcommand)]
    verb: Verb,
    /// Tampu's data directory, as for `tampu up`, or a PostgreSQL database: postgres://USER@HOST/NAME [env: TAMPU_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// With --hub: the token to log in with; 'tampu book users token make' makes one [env: TAMPU_BOOK_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Post(post::Post),
    Reply(post::Reply),
    Edit(edit::Edit),
    Tick(tick::Tick),
    Show(show::Show),
    Sign(sign::Sign),
    Verify(sign::Verify),
    Search(search::Search),
    List(list::List),
    Delete(moving::Delete),
    Undelete(naming::Undelete),
    Purge(purge::Purge),
    Copy(moving::Copy),
    Move(moving::Move),
    Make(make::Make),
    Rename(naming::Rename),
    Check(upkeep::Check),
    Stat(stat::Stat),
    Backup(upkeep::Backup),
    Restore(upkeep::Restore),
    Config(config::Config),
    ImportElog(elog::Import),
    FollowElog(elog::Follow),
    ExportElog(elog::Export),
    Users(users::Users),
    Notify(notify::Notify),
    Export(export::Export),
    Import(import::Import),
    Template(template::Templates),
    Summary(summary::Summary),
}

impl Book {
    pub fn run(self, context: &Context) -> Outcome {
        if self.data.as_ref().and_then(|data| data.to_str()).is_some_and(has_password) {
            return Err(Failure::Usage(
                "--data: every user of this host can read a password on the command line; leave it out, and give it in the file that \
                 PGPASSFILE names, or give the whole address in TAMPU_DATA_DIR"
                    .to_owned(),
            ));
        }
        // It reads a file, and no logbook.
        let verb = match self.verb {
            Verb::Config(config) if config.is_of_file() => return config.check(),
            verb => verb,
        };
        let data = self.data.map_or_else(|| from_environment("TAMPU_DATA_DIR"), |data| Ok(Some(data)))?;
        let token = self.token.map_or_else(|| from_environment("TAMPU_BOOK_TOKEN"), |token| Ok(Some(token)))?;
        let place = Place::find(&context.common.connect, data, token)?;
        match verb {
            Verb::Config(config) => config.run(&place),
            Verb::Post(post) => post.run(&place),
            Verb::Reply(reply) => reply.run(&place),
            Verb::Edit(edit) => edit.run(&place),
            Verb::Tick(tick) => tick.run(&place),
            Verb::Show(show) => show.run(&place),
            Verb::Sign(sign) => sign.run(&place),
            Verb::Verify(verify) => verify.run(&place, context),
            Verb::Search(search) => search.run(&place, context),
            Verb::List(list) => list.run(&place),
            Verb::Delete(delete) => delete.run(&place),
            Verb::Undelete(undelete) => undelete.run(&place),
            Verb::Rename(rename) => rename.run(&place),
            Verb::Purge(purge) => purge.run(&place),
            Verb::Copy(copy) => copy.run(&place),
            Verb::Move(to) => to.run(&place),
            Verb::Make(make) => make.run(&place),
            Verb::Stat(stat) => stat.run(&place),
            Verb::Check(check) => check.run(&place, context),
            Verb::Backup(backup) => backup.run(&place, context),
            Verb::Restore(restore) => restore.run(&place, context),
            Verb::ImportElog(import) => import.run(&place, context),
            Verb::FollowElog(follow) => follow.run(&place, context),
            Verb::ExportElog(export) => export.run(&place, context),
            Verb::Users(users) => users.run(&place),
            Verb::Notify(notify) => notify.run(&place),
            Verb::Export(export) => export.run(&place, context),
            Verb::Import(import) => import.run(&place, context),
            Verb::Template(templates) => templates.run(&place),
            Verb::Summary(summary) => summary.run(&place, context),
        }
    }
}
