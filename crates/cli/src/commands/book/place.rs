//! The place where a domain's logbooks are: a hub, a directory or a database.

use std::{
    io,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use tampu_bus::connect::Settings;
use tampu_hub::book::BookLocation;
use tampu_logbook::{
    client::{Client, ClientError, Trust},
    mail::{MailError, purged::PurgedText, queue::Queue},
    store::{Logbook, Store, StoreError, postgres::PostgresStore, sqlite::SqliteStore},
};

use super::text::shown;
use crate::{
    connect::{Connect, HubAddress},
    context::Context,
    failure::{Failure, Outcome},
    plural::counted,
    private,
};

/// The file of a directory of logbooks.
pub const DATABASE: &str = "book.db";
/// The directory of the queue of mails, beside that file.
const MAIL: &str = "mail";

/// Returns true if a domain's directory has logbooks.
fn has_logbooks(domain: &Path) -> bool {
    domain.join("book").join(DATABASE).exists()
}

/// Returns true if the address refuses connections: a killed hub leaves its address behind.
fn nobody_is_at(found: &BookLocation) -> bool {
    let url = &found.url;
    let at = url.strip_prefix("http://").and_then(|host| host.trim_end_matches('/').parse().ok());
    let Some(address) = found.address.or(at) else { return false };
    let tried = TcpStream::connect_timeout(&address, Duration::from_secs(2));
    tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The directory that a hub which is gone has left.
fn left(found: &BookLocation) -> Result<PathBuf, Failure> {
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

/// The logbooks that a hub of this host serves or served.
enum Located {
    Running(BookLocation),
    /// Those of a hub that is gone.
    Left(BookLocation),
}

/// Finds the hub of this host.
fn located(surroundings: &Settings) -> Result<Option<Located>, Failure> {
    let run = surroundings.run_dir.domain(&surroundings.domain).map_err(|error| Failure::Failed(error.to_string()))?;
    let found = tampu_hub::book::locate(run.path());
    Ok(found.map(|found| if found.is_left() || nobody_is_at(&found) { Located::Left(found) } else { Located::Running(found) }))
}

/// The place of a domain's logbooks.
pub struct Place {
    data: Option<PathBuf>,
    domain: tampu_types::Domain,
    /// The address of a hub, and a token for it.
    there: Option<(String, Option<String>)>,
    /// Certificates and address of that hub.
    trust: Trust,
    /// Directory of this host's hub.
    directory: Option<PathBuf>,
}

impl Place {
    /// Finds the logbooks that the options name: a hub's over HTTP, those of a directory or a database, or those of
    /// this host's hub.
    pub fn find(connect: &Connect, data: Option<PathBuf>, token: Option<String>) -> Result<Place, Failure> {
        // A named directory has the stated domain, regardless of a running hub.
        let surroundings = if data.is_some() { connect.stated()? } else { connect.surroundings()? };
        let domain = surroundings.domain.clone();
        let mut place = Place { data, domain, there: None, trust: Trust::default(), directory: None };
        match &connect.hub {
            None if place.data.is_some() => {}
            None => match located(&surroundings)? {
                Some(Located::Left(found)) => place.directory = Some(left(&found)?),
                Some(Located::Running(found)) => place.be_at(found, token),
                None => {}
            },
            Some(hub) => place.be_named(connect, hub, token)?,
        }
        Ok(place)
    }

    /// Returns the hub that the options name, or the running one of this host. The logbooks of a hub
    /// that is gone do not count.
    pub fn running(connect: &Connect, token: Option<String>) -> Result<Option<Client>, Failure> {
        let surroundings = connect.surroundings()?;
        let domain = surroundings.domain.clone();
        let mut place = Place { data: None, domain, there: None, trust: Trust::default(), directory: None };
        match &connect.hub {
            Some(hub) => place.be_named(connect, hub, token)?,
            None => {
                if let Some(Located::Running(found)) = located(&surroundings)? {
                    place.be_at(found, token);
                }
            }
        }
        place.remote("")
    }

    /// Takes the place of a running hub of this host.
    fn be_at(&mut self, found: BookLocation, token: Option<String>) {
        self.directory = found.directory;
        self.trust = Trust { certificates: found.trusted, address: found.address };
        self.there = Some((found.url, token.or(Some(found.token))));
    }

    /// Takes the place that `--hub` names.
    fn be_named(&mut self, connect: &Connect, hub: &HubAddress, token: Option<String>) -> Result<(), Failure> {
        let HubAddress::Web(url) = hub else {
            return Err(Failure::Usage(format!(
                "--hub {hub}: the address of a logbook is http://HOST:PORT or https://HOST:PORT; 'tampu up' prints it"
            )));
        };
        self.trust = Trust { certificates: connect.authority()?, address: None };
        self.there = Some((url.clone(), token));
        Ok(())
    }

    /// Returns the logbook at its place. A remote logbook gets the author `by`.
    pub fn store(&self, by: &str) -> Result<Box<dyn Logbook>, Failure> {
        match self.remote(by)? {
            Some(remote) => Ok(Box::new(remote)),
            None => Ok(self.open()?),
        }
    }

    /// The hub that has it, if one was named or runs on this host.
    pub fn remote(&self, by: &str) -> Result<Option<Client>, Failure> {
        let client = |(url, token): &(String, Option<String>)| Client::new(url, token.clone(), by, &self.trust);
        self.there.as_ref().map(client).transpose().map_err(refused)
    }

    /// Returns true if options or the environment name a directory or database.
    pub fn is_named(&self) -> bool {
        self.data.is_some()
    }

    /// Returns true if the hub of this host serves this address.
    pub fn is_of_this_host(&self, url: &str, context: &Context) -> Result<bool, Failure> {
        let surroundings = context.common.connect.surroundings()?;
        let run = surroundings.run_dir.domain(&self.domain).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(tampu_hub::book::locate(run.path()).is_some_and(|found| found.url == url))
    }

    /// Returns the logbook; in a directory, the place for logbooks is created.
    pub fn made(&self) -> Result<Box<dyn Logbook>, Failure> {
        if self.there.is_some() { self.store("") } else { Ok(self.make()?) }
    }

    /// Refuses an action on the local store, if a hub was named or keeps the logbooks in a database.
    pub fn need_directory(&self, what: &str) -> Result<(), Failure> {
        match &self.there {
            Some((url, _)) if self.directory.is_none() => Err(Failure::Usage(format!(
                "{what} is done where the logbooks are kept and not over HTTP ({url}): without --hub, and with --data DIR or \
                 --data postgres://..., on a host that has them"
            ))),
            _ => Ok(()),
        }
    }

    fn dir(&self) -> PathBuf {
        if let Some(directory) = &self.directory {
            return directory.clone();
        }
        let data = self.data_dir();
        let usual = data.join(tampu_types::name::escape(self.domain.as_str())).join("book");
        // A backup's directory holds the logbooks directly.
        if !usual.join(DATABASE).exists() && data.join(DATABASE).exists() { data } else { usual }
    }

    fn data_dir(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| tampu_hub::Config::default().data)
    }

    /// Describes the place for people.
    pub fn told(&self) -> String {
        let domain = &self.domain;
        match (&self.there, self.database()) {
            (Some((url, _)), _) if self.directory.is_none() => format!("the hub at {url}"),
            (None, Some(_)) => format!("the database, domain '{domain}'"),
            _ => format!("{}, domain '{domain}'", self.dir().display()),
        }
    }

    /// Names other domains with logbooks in the data directory; begins with `; ` unless empty.
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

    /// Removes the texts of a purge from the queue of mails beside the logbooks.
    pub fn forget_mails(&self, store: &dyn Store, purged: PurgedText<'_>) -> Outcome {
        let dir = self.dir().join(MAIL);
        if !dir.is_dir() {
            return Ok(());
        }
        let failed = |error: MailError| Failure::Failed(error.to_string());
        let (mut queue, _) = Queue::open(&dir).map_err(failed)?;
        let count = queue.forget(|about, made| purged.is_in(store, about, made)).map_err(failed)?;
        if count > 0 {
            eprintln!("tampu: {} with a purged text removed from the queue", counted(count as u64, "mail"));
        }
        Ok(())
    }

    /// Opens them, or makes the place for them.
    pub fn make(&self) -> Result<Box<dyn Store>, Failure> {
        self.need_directory("this")?;
        Ok(match self.database() {
            Some(address) => Box::new(PostgresStore::open(address, self.domain.as_str()).map_err(failed)?),
            None => {
                let dir = self.dir();
                private::follow(&dir);
                Box::new(SqliteStore::open(&dir).map_err(failed)?)
            }
        })
    }
}

/// Converts an error of a store; a bad query is wrong usage.
pub fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Query(_) | StoreError::NoOrder { .. } | StoreError::OtherSearch => Failure::Usage(error.to_string()),
        StoreError::Lost(_) => Failure::Unreachable(error.to_string()),
        StoreError::Client(error) => refused(*error),
        error => Failure::Failed(error.to_string()),
    }
}

/// An error of the hub's HTTP API, with the command line's way out instead of the API's.
pub fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::Unreachable { .. } => Failure::Unreachable(error.to_string()),
        ClientError::Refused { status: 401, detail, .. } => Failure::Failed(format!(
            "{detail} (give a token with --token or TAMPU_BOOK_TOKEN; on the hub's host 'tampu book users token make' makes one)"
        )),
        error => Failure::Failed(error.to_string()),
    }
}
