//! `tampu book ...`.

use std::{
    io,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use tampu_logbook::{
    entry::EntryRef,
    store::{Store, StoreError, postgres::PostgresStore, sqlite::SqliteStore},
};
use tampu_types::Time;

use crate::{
    commands::Context,
    connect::HubAddress,
    failure::{Failure, Outcome},
};

use remote::Remote;

mod abandon;
pub mod edit;
pub mod elog;
pub mod export;
pub mod list;
pub mod make;
pub mod moving;
pub mod post;
pub mod remote;
pub mod search;
pub mod show;
pub mod summary;
pub mod template;
pub mod upkeep;
pub mod users;
mod writing;

/// Write, read and search logbooks; take them over from ELOG
///
/// With --hub http://HOST:PORT the logbook of that hub, over HTTP. With --data the logbook in that directory or database, also while others use it.
/// With neither, the logbook of the hub that runs on this host, or if none does the usual directory.
#[derive(Debug, Args)]
pub struct Book {
    #[command(subcommand)]
    verb: Verb,
    /// The data directory, as `tampu up --data` has it, or a PostgreSQL database: postgres://USER@HOST/NAME
    #[arg(long, global = true, env = "TAMPU_DATA_DIR", value_name = "DIR|ADDRESS")]
    data: Option<PathBuf>,
    /// With --hub: the token that says who one is
    #[arg(long, global = true, env = "TAMPU_BOOK_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Post(post::Post),
    Reply(post::Reply),
    Edit(edit::Edit),
    Show(show::Show),
    Search(search::Search),
    List(list::List),
    Delete(moving::Delete),
    Copy(moving::Copy),
    Move(moving::Move),
    Make(make::Make),
    Check(upkeep::Check),
    Backup(upkeep::Backup),
    Restore(upkeep::Restore),
    ImportElog(elog::Import),
    FollowElog(elog::Follow),
    ExportElog(elog::Export),
    #[command(subcommand)]
    Users(users::Users),
    Export(export::Export),
    Template(template::Templates),
    Summary(summary::Summary),
}

impl Book {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let surroundings = connect.surroundings()?;
        let domain = surroundings.domain.clone();
        let mut directory = None;
        let there = match &connect.hub {
            Some(HubAddress::Web(url)) => Some((url.clone(), self.token)),
            Some(HubAddress::Bus(address)) => {
                return Err(Failure::Usage(format!(
                    "--hub {address}: of a logbook it is http://HOST:PORT; the port is told by 'tampu up'"
                )));
            }
            None if self.data.is_some() => None,
            None => {
                let run = surroundings.run_dir.domain(&domain).map_err(|error| Failure::Failed(error.to_string()))?;
                match tampu_hub::book::find(run.path()) {
                    Some(found) if found.is_left() || nobody_is_at(&found.url) => {
                        directory = Some(left(&found)?);
                        None
                    }
                    found => found.map(|found| {
                        directory = found.directory;
                        (found.url, self.token.or(Some(found.token)))
                    }),
                }
            }
        };
        let place = Place { data: self.data, domain, there, directory };
        match self.verb {
            Verb::Post(post) => post.run(&place),
            Verb::Reply(reply) => reply.run(&place),
            Verb::Edit(edit) => edit.run(&place),
            Verb::Show(show) => show.run(&place),
            Verb::Search(search) => search.run(&place, context),
            Verb::List(list) => list.run(&place),
            Verb::Delete(delete) => delete.run(&place),
            Verb::Copy(copy) => copy.run(&place),
            Verb::Move(to) => to.run(&place),
            Verb::Make(make) => make.run(&place),
            Verb::Check(check) => check.run(&place, context),
            Verb::Backup(backup) => backup.run(&place, context),
            Verb::Restore(restore) => restore.run(&place, context),
            Verb::ImportElog(import) => import.run(&place, context),
            Verb::FollowElog(follow) => follow.run(&place, context),
            Verb::ExportElog(export) => export.run(&place, context),
            Verb::Users(users) => users.run(&place),
            Verb::Export(export) => export.run(&place, context),
            Verb::Template(templates) => templates.run(&place),
            Verb::Summary(summary) => summary.run(&place, context),
        }
    }
}

/// The file of a directory of logbooks.
const DATABASE: &str = "book.db";

/// Whether a domain's directory has logbooks.
fn has_logbooks(domain: &Path) -> bool {
    domain.join("book").join(DATABASE).exists()
}

/// Whether the host there refuses: a hub that was killed leaves its word of where it is.
fn nobody_is_at(url: &str) -> bool {
    let Some(address) = url.strip_prefix("http://").and_then(|host| host.trim_end_matches('/').parse().ok()) else {
        return false;
    };
    let tried = TcpStream::connect_timeout(&address, Duration::from_secs(2));
    tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The directory that a hub which is gone has left.
fn left(found: &tampu_hub::book::Place) -> Result<PathBuf, Failure> {
    let url = &found.url;
    match &found.directory {
        Some(directory) => {
            eprintln!("tampu: the hub that was at {url} is gone; its logbooks are read in {}", directory.display());
            Ok(directory.clone())
        }
        None => Err(Failure::Unreachable(format!(
            "the hub that was at {url} is gone, and its logbooks are in a database: start it with 'tampu up', or name the database with --data"
        ))),
    }
}

/// Where the logbooks of a domain are.
pub struct Place {
    data: Option<PathBuf>,
    domain: tampu_types::Domain,
    /// The address of a hub, and a token for it.
    there: Option<(String, Option<String>)>,
    /// Where the hub of this host keeps them.
    directory: Option<PathBuf>,
}

impl Place {
    /// The logbook, wherever it is. `by` is who does it, where that is for us to say.
    pub fn store(&self, by: &str) -> Result<Box<dyn Store>, Failure> {
        match self.remote(by) {
            Some(remote) => Ok(Box::new(remote)),
            None => self.open(),
        }
    }

    /// The hub that has it, if one was named or runs on this host.
    pub fn remote(&self, by: &str) -> Option<Remote> {
        self.there.as_ref().map(|(url, token)| Remote::new(url, token.clone(), by))
    }

    /// Whether the hub that runs on this host serves this address.
    pub fn is_of_this_host(&self, url: &str, context: &Context) -> Result<bool, Failure> {
        let surroundings = context.common.connect.surroundings()?;
        let run = surroundings.run_dir.domain(&self.domain).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(tampu_hub::book::find(run.path()).is_some_and(|found| found.url == url))
    }

    /// The same; in a directory, the place for logbooks is made.
    pub fn made(&self) -> Result<Box<dyn Store>, Failure> {
        if self.there.is_some() { self.store("") } else { self.make() }
    }

    /// Refuses what is done where the logbooks are kept alone, if a hub was named or has them in a database.
    pub fn need_directory(&self, what: &str) -> Result<(), Failure> {
        match &self.there {
            Some((url, _)) if self.directory.is_none() => Err(Failure::Usage(format!(
                "{what} is done where the logbooks are kept and not over HTTP ({url}): without --hub, and with --data DIR or \
                 --data postgres://..., on a host that has them"
            ))),
            _ => Ok(()),
        }
    }

    /// The same domain's in another data directory.
    fn at(&self, data: PathBuf) -> Place {
        Place { data: Some(data), domain: self.domain.clone(), there: None, directory: None }
    }

    fn dir(&self) -> PathBuf {
        if let Some(directory) = &self.directory {
            return directory.clone();
        }
        let data = self.data_dir();
        let usual = data.join(tampu_types::name::escape(self.domain.as_str())).join("book");
        // A backup's directory has the logbooks themselves.
        if !usual.join(DATABASE).exists() && data.join(DATABASE).exists() { data } else { usual }
    }

    fn data_dir(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| tampu_hub::Config::default().data)
    }

    /// Where the logbooks are, in words.
    pub fn told(&self) -> String {
        let domain = &self.domain;
        match (&self.there, self.database()) {
            (Some((url, _)), _) if self.directory.is_none() => format!("the hub at {url}"),
            (None, Some(_)) => format!("the database, domain '{domain}'"),
            _ => format!("{}, domain '{domain}'", self.dir().display()),
        }
    }

    /// Where to look instead, if other domains have logbooks in the data directory: begins with `; `.
    pub fn others(&self) -> String {
        if self.there.is_some() || self.directory.is_some() || self.database().is_some() {
            return String::new();
        }
        let own = tampu_types::name::escape(self.domain.as_str());
        let entries = std::fs::read_dir(self.data_dir()).into_iter().flatten().flatten();
        let names = entries.filter(|entry| has_logbooks(&entry.path())).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| *name != own).filter_map(|name| tampu_types::name::unescape(&name)).collect();
        names.sort();
        if names.is_empty() {
            return String::new();
        }
        format!("; there are logbooks of other domains: {} (--domain NAME)", shown(&names.join(", "), false))
    }

    /// The address of the database, where they are in one.
    fn database(&self) -> Option<&str> {
        let address = self.data.as_ref()?.to_str()?;
        (address.starts_with("postgres://") || address.starts_with("postgresql://")).then_some(address)
    }

    /// Opens the database, where they are in one.
    pub fn open_database(&self) -> Result<PostgresStore, Failure> {
        let address = self.database().filter(|_| self.there.is_none()).ok_or_else(|| {
            Failure::Usage(
                "this is for a database: name it with --data postgres://..., without --hub; in a data directory a backup takes the place of \
                 DATA/<domain>/book"
                    .to_owned(),
            )
        })?;
        PostgresStore::open(address, self.domain.as_str()).map_err(failed)
    }

    /// Opens logbooks that are there.
    pub fn open(&self) -> Result<Box<dyn Store>, Failure> {
        let dir = self.dir();
        if self.there.is_none() && self.database().is_none() && !dir.join(DATABASE).exists() {
            let dir = dir.display();
            return Err(Failure::Usage(format!(
                "{dir}: no logbooks are there; make one with 'tampu book make NAME', or take ELOG's with 'tampu book import-elog'{}",
                self.others()
            )));
        }
        self.make()
    }

    /// Opens them, or makes the place for them.
    pub fn make(&self) -> Result<Box<dyn Store>, Failure> {
        self.need_directory("this")?;
        Ok(match self.database() {
            Some(address) => Box::new(PostgresStore::open(address, self.domain.as_str()).map_err(failed)?),
            None => Box::new(SqliteStore::open(&self.dir()).map_err(failed)?),
        })
    }
}

/// What went wrong; a query that cannot be read is wrong usage.
pub fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Query(_) | StoreError::OtherSearch => Failure::Usage(error.to_string()),
        StoreError::Lost(_) => Failure::Unreachable(error.to_string()),
        StoreError::Elsewhere { why, unreachable: true } => Failure::Unreachable(why),
        error => Failure::Failed(error.to_string()),
    }
}

/// `Shift/12`.
pub fn entry_ref(text: &str) -> Result<EntryRef, String> {
    let wrong = || format!("'{text}' is no entry: write BOOK/NUMBER");
    let (book, id) = text.rsplit_once('/').ok_or_else(wrong)?;
    let id = id.parse().ok().filter(|id| *id > 0 && !book.is_empty()).ok_or_else(wrong)?;
    Ok(EntryRef::new(book, id))
}

/// A moment to the minute, with its zone.
pub fn minute(at: Time) -> String {
    format!("{} UTC", at.to_acs().get(..16).unwrap_or_default())
}

/// Text that a terminal only shows: control characters are told, line ends and tabs stay where `lines` says so.
pub fn shown(text: &str, lines: bool) -> String {
    let tell = |c: char| match c {
        '\n' | '\t' if lines => c.to_string(),
        '\n' | '\t' | '\r' => " ".to_owned(),
        c if c.is_control() => c.escape_debug().to_string(),
        c => c.to_string(),
    };
    text.chars().map(tell).collect()
}
