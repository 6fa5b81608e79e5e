//! The logbook of a hub: its store, its people, and its HTTP.
//!
//! | part | module |
//! |-|-|
//! | what a site says of it | [`settings`] |
//! | sockets, time limits, bounds | [`server`], [`body`], [`turns`] |
//! | who asks | [`reception`], [`peer`] |
//! | the API for programs | [`api`] |
//! | ELOG's dialect, mounted | [`dialect`] |
//! | new matches, pushed | [`push`] |
//! | a living ELOG, followed | [`follow`] |
//! | files on their way into entries; small pictures | [`staging`], [`preview`] |
//! | what went wrong, told | [`problem`] |
//!
//! One listener has everything: the API below `/api/v1`, ELOG's dialect below a prefix; another can have ELOG's dialect alone. What is answered is made by
//! plain functions on values; only [`server`] knows sockets.

use std::{
    fs, io,
    io::Write,
    net::{SocketAddr, TcpListener},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tampu_bus::host::{incarnation, is_over};
use tampu_log::Logger;
use tampu_logbook::{
    elog::web::{Site, SiteConfig},
    people::{People, PeopleError, registry::Settings, token::secret},
    store::{Store, StoreError, postgres::PostgresStore, sqlite::SqliteStore},
};
use tampu_types::{Incarnation, Time};

use crate::inputs::settings::Door;
use settings::{BookSettings, PORT};

pub mod address;
pub mod api;
pub mod body;
pub mod dialect;
pub mod follow;
pub mod peer;
pub mod preview;
pub mod problem;
pub mod push;
pub mod reception;
pub mod server;
pub mod settings;
pub mod staging;
pub mod turns;

/// The directory below the domain's data.
pub const DIRECTORY: &str = "book";
/// The file in the domain's run-time directory that says where it is, for the owner's programs.
pub const PLACE: &str = "book.json";

/// Where a logbook is, and what opens it to whom the installation belongs to. Only they can read the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The address of the API's host, as `http://127.0.0.1:7449`.
    pub url: String,
    /// The owner's token.
    pub token: String,
    /// The directory it is kept in, if it is in one.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// The life of the hub that wrote this.
    #[serde(default)]
    pub life: Option<Incarnation>,
}

impl Place {
    /// Whether the hub that was there has ended without taking its word away: whoever is at the address now is somebody else, for whom the
    /// token is not.
    pub fn is_left(&self) -> bool {
        self.life.is_some_and(is_over)
    }
}

/// Why there is no logbook.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// Its store.
    #[error("the logbook: {0}")]
    Store(#[from] StoreError),
    /// Its users.
    #[error("the logbook's users: {0}")]
    People(#[from] PeopleError),
    /// Its local time.
    #[error("the logbook's zone: {0}")]
    Zone(String),
    /// There is no place for it.
    #[error("the logbook cannot be served at {address}: {why}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// Threads, or the file that says where it is.
    #[error("the logbook: {what}: {why}")]
    Io {
        /// What it was about.
        what: String,
        /// What the system said.
        why: io::Error,
    },
}

/// A logbook that is served. Dropping it ends it in order.
pub struct Book {
    server: server::Server,
    /// Ends when the logbook does.
    _following: Option<follow::Following>,
    api: Arc<api::Api>,
    listen: Option<SocketAddr>,
    elog: Option<SocketAddr>,
    kept: String,
    place: Option<(PathBuf, Place)>,
    prefix: String,
    moved: bool,
}

/// What a logbook is started with.
pub struct Given<'a> {
    /// What the site says.
    pub settings: &'a BookSettings,
    /// The domain's name.
    pub domain: &'a str,
    /// The directory of the store.
    pub directory: PathBuf,
    /// The domain's run-time directory.
    pub run: PathBuf,
    /// What this computer is called.
    pub host: String,
    /// Tells what an operator should know.
    pub logger: Logger,
}

/// What time it is.
pub fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}

/// A listener. The usual port may be taken, by the hub of another domain: then another one is found.
fn bind(door: Door) -> Result<Option<(TcpListener, bool)>, BookError> {
    let Door::At(address) = door else { return Ok(None) };
    match TcpListener::bind(address) {
        Ok(listener) => Ok(Some((listener, false))),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && door == Door::loopback(PORT) => {
            let free = SocketAddr::new(address.ip(), 0);
            TcpListener::bind(free).map(|listener| Some((listener, true))).map_err(|why| BookError::Listen { address, why })
        }
        Err(why) => Err(BookError::Listen { address, why }),
    }
}

impl Book {
    /// Opens the logbook and serves it.
    pub fn start(given: Given<'_>) -> Result<Book, BookError> {
        let settings = given.settings;
        let io = |what: &str| {
            let what = what.to_owned();
            move |why| BookError::Io { what, why }
        };
        // First the listeners: who is told that the address is taken has no half-opened store.
        let (listen, elog) = (bind(settings.listen)?, bind(settings.elog_listen)?);
        let store: Arc<dyn Store> = match &settings.postgres {
            Some(address) => Arc::new(PostgresStore::open(address, given.domain)?),
            None => Arc::new(SqliteStore::open(&given.directory)?),
        };
        let people = Arc::new(People::new(store.clone(), people_settings(settings))?);
        let reception = Arc::new(reception::Reception::new(settings, &given.host));
        let pushes = push::Pushes::start(store.clone(), people.clone(), given.logger.clone()).map_err(io("its pushes"))?;
        let follow = settings.follow.clone().map(|follow| follow::Following::start(store.clone(), follow, given.logger.clone()));
        let following = follow.transpose().map_err(io("following ELOG"))?;
        // Alone at an address ELOG's dialect is below no path, as elogd is, and its links lead to none.
        let site = |prefix: &str| {
            let site = Site::new(store.clone(), site_config(settings, &*store, prefix)?).with_people(people.clone());
            let (longest, logger) = (settings.attachment_mb << 20, given.logger.clone());
            let (site, people, reception) = (Arc::new(site), people.clone(), reception.clone());
            Ok::<_, BookError>(Arc::new(dialect::Dialect { site, people, reception, longest, logger }))
        };
        let (dialect, alone) = (site(&settings.elog_prefix)?, site("")?);
        let api = Arc::new(api::Api {
            store: store.clone(),
            people: people.clone(),
            reception: reception.clone(),
            settings: settings.clone(),
            staging: staging::Staging::start().map_err(io("its uploads"))?,
            previews: Arc::default(),
            pushes,
            checking: api::upkeep::Checking::default(),
        });
        let mut doors: Vec<(TcpListener, Arc<dyn server::Answers>)> = Vec::new();
        let moved = listen.as_ref().is_some_and(|(_, moved)| *moved);
        if let Some((listener, _)) = listen {
            let all = dialect::All { api: api.clone(), dialect, prefix: settings.elog_prefix.clone() };
            doors.push((listener, Arc::new(all)));
        }
        if let Some((listener, _)) = elog {
            doors.push((listener, alone));
        }
        let limits = server::Limits { connections: settings.connections, ..server::Limits::default() };
        let server = server::Server::start(doors, limits).map_err(io("its sockets"))?;
        let mut addresses = server.addresses().iter().copied();
        let mut next = |door: Door| if door == Door::Off { None } else { addresses.next() };
        let (listen, elog) = (next(settings.listen), next(settings.elog_listen));
        let kept = match &settings.postgres {
            // The address may have a password in it.
            Some(_) => "a PostgreSQL database".to_owned(),
            None => given.directory.display().to_string(),
        };
        let mut book = Book {
            server,
            _following: following,
            api,
            listen,
            elog,
            kept,
            place: None,
            prefix: settings.elog_prefix.clone(),
            moved,
        };
        if let Some(url) = book.url() {
            let path = given.run.join(PLACE);
            let directory = settings.postgres.is_none().then(|| std::path::absolute(&given.directory).unwrap_or(given.directory));
            let place = Place { url, token: people.make_owner_token()?, directory, life: Some(incarnation()) };
            write_place(&path, &place).map_err(io(&path.display().to_string()))?;
            book.place = Some((path, place));
        }
        Ok(book)
    }

    /// Where the API's host is, as `http://127.0.0.1:7449`.
    pub fn url(&self) -> Option<String> {
        self.listen.map(|address| format!("http://{}", reachable(address)))
    }

    /// Where ELOG's dialect is, as addresses for a browser.
    pub fn elog_urls(&self) -> Vec<String> {
        let below = self.url().map(|url| format!("{url}{}/", self.prefix));
        let alone = self.elog.map(|address| format!("http://{}/", reachable(address)));
        alone.into_iter().chain(below).collect()
    }

    /// Where it is kept, for people.
    pub fn kept_in(&self) -> &str {
        &self.kept
    }

    /// Whether the usual port was taken.
    pub fn is_elsewhere(&self) -> bool {
        self.moved
    }

    /// What keeps it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.api.store
    }

    /// The sockets it listens at.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        // Who listens for events would keep the connections open.
        self.api.pushes.stop();
        // A hub that began while this one ended has written its own.
        if let Some((path, place)) = &self.place
            && read_place(path).as_ref() == Some(place)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// An address that can be connected to, of one that may stand for all of this computer's.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

fn people_settings(settings: &BookSettings) -> Settings {
    let owner = std::env::var("USER").ok().filter(|name| tampu_logbook::people::user::check_name(name).is_ok());
    Settings {
        guests: settings.guests.rights(),
        accept_elog_hashes: settings.accept_elog_hashes,
        idle: Duration::from_secs(u64::from(settings.session_idle_h) * 3600),
        longest: Duration::from_secs(u64::from(settings.session_days) * 86_400),
        owner: owner.unwrap_or_else(|| "owner".to_owned()),
    }
}

/// A site of ELOG's dialect below a path.
fn site_config(settings: &BookSettings, store: &dyn Store, prefix: &str) -> Result<SiteConfig, BookError> {
    Ok(SiteConfig {
        prefix: prefix.to_owned(),
        url: settings.elog_url.clone(),
        zone: settings.zone().map_err(|why| BookError::Zone(why.to_string()))?,
        themes: settings.elog_themes.clone(),
        secret: site_secret(store)?,
        search_time: Duration::from_millis(settings.search_ms),
        ..SiteConfig::default()
    })
}

/// What forms are signed with: the same in all hubs on one store.
fn site_secret(store: &dyn Store) -> Result<[u8; 32], BookError> {
    use sha2::{Digest, Sha256};
    let text = loop {
        if let Some(record) = store.record("site", "secret")? {
            break record.value.as_str().unwrap_or_default().to_owned();
        }
        let made = secret().map_err(PeopleError::from)?;
        match store.put_record("site", "secret", &json!(made), Some(0)) {
            // Another hub was quicker.
            Err(StoreError::RecordChanged { .. }) => {}
            done => {
                done?;
            }
        }
    };
    Ok(Sha256::digest(text.as_bytes()).into())
}

fn write_place(path: &Path, place: &Place) -> io::Result<()> {
    let text = serde_json::to_string(place).map_err(io::Error::other)?;
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(new, path)
}

fn read_place(path: &Path) -> Option<Place> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Where the logbook of a domain is, if its hub runs on this host; a hub that was killed leaves its word of that ([`Place::is_left`]).
pub fn find(run: &Path) -> Option<Place> {
    read_place(&run.join(PLACE))
}
