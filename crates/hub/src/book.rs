//! The logbook of a hub: its store, its users, and its HTTP services.
//!
//! | part | module |
//! |-|-|
//! | configuration | [`settings`] |
//! | sockets, limits and authentication | [`crate::http`] |
//! | the API for programs | [`crate::api`] |
//! | ELOG's pages | [`elog`] |
//! | the log and the counts of requests | [`request_log`] |
//! | looks at entries | [`look_counter`] |
//! | the numbers for metrics | [`report`] |
//! | warnings about guests | [`guests`] |
//! | the follower of an ELOG | [`follow`] |
//! | mails by the rules of users; webhooks | `notifier`, `hooks` |
//! | entries by mail | `mail_in` |
//! | the file with the address of a running logbook | `location` |
//! | settings of people, pages and mail | `site` |
//! | errors of the start | `error` |
//!
//! One listener serves everything: the console at `/`, the API below `/api/v1`, ELOG's pages below a prefix. A second
//! listener can serve ELOG's pages alone. Plain functions on values make the responses; only [`crate::http::server`] uses sockets.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
};

use tampu_bus::host::incarnation;
use tampu_elog::pages::{Site, SiteConfig};
use tampu_log::{Logger, warning};
use tampu_logbook::{
    mail::{MailSettings, Outbox},
    people::People,
    render::cache::RenderCache,
    store::{Store, postgres::PostgresStore, sqlite::SqliteStore},
};
use tampu_tls::ServerCertificate;

use crate::{
    api::{self, OnBus, call::principal_of, push::Pushes, staging::Staging},
    certificates::{Https, name_for},
    console::Console,
    gateway::websocket::WebGateway,
    http::{
        auth::Authenticator,
        change_rate::ChangeRate,
        client_address::Proxies,
        free_space::{BoundedBody, FreeSpace},
        mounts::Mounts,
        port_holder::listener_uid,
        route::HttpService,
        server::{Limits, Listener, Server},
    },
    listen::ListenAddress,
    login::{Logins, kerberos, oidc, settings::LoginSettings},
    rules::Rules,
    setting_changes::SettingChanges,
};
pub use error::BookError;
use guests::Openness;
pub(crate) use location::LocationKeeper;
pub use location::{BookLocation, LOCATION_FILE, locate};
use location::{read_location, write_location};
use look_counter::LookCounter;
use report::BookReporter;
use request_log::RequestLog;
pub use settings::DIRECTORY;
use settings::{BookSettings, PORT};
use site::{people_settings, site_config, site_secret, start_mail, typesetter};

pub mod elog;
mod error;
pub mod follow;
pub mod guests;
mod hooks;
mod location;
pub mod look_counter;
mod mail_in;
mod notifier;
pub mod report;
pub mod request_log;
pub mod settings;
mod site;

/// The name of the logger for administrative actions.
const AUDIT: &str = "audit";

/// A running logbook. Dropping it shuts it down in order.
pub struct Book {
    server: Server,
    requests: Arc<RequestLog>,
    /// Follows an ELOG for the life of the logbook.
    _following: Option<follow::Following>,
    /// Mails by the rules of users for the life of the logbook.
    _notifying: Option<notifier::Notifying>,
    /// Receives mails for the life of the logbook.
    mail_in: Option<mail_in::MailInput>,
    api: Arc<api::Api>,
    listen: Option<SocketAddr>,
    elog: Option<SocketAddr>,
    https: Https,
    kept: String,
    place: Option<(PathBuf, BookLocation)>,
    prefix: String,
    port_holder: Option<String>,
}

/// The settings and the environment of a logbook.
pub struct Given<'a> {
    /// The section `[book]` of the configuration.
    pub settings: &'a BookSettings,
    /// Retention, quotas and routes of the hub, which its administrators change.
    pub changes: Arc<SettingChanges>,
    /// The section `[mail]` and the directory of its queue, if the logbook sends mail.
    pub mail: Option<(&'a MailSettings, PathBuf)>,
    /// The domain's name.
    pub domain: &'a str,
    /// The directory of the store.
    pub directory: PathBuf,
    /// The certificates of its addresses.
    pub https: Https,
    /// The domain's run-time directory.
    pub run: PathBuf,
    /// The name of this computer.
    pub host: String,
    /// The log for operators.
    pub logger: Logger,
    /// The site's access rules.
    pub rules: Arc<Rules>,
    /// The place of the API on the bus.
    pub bus: OnBus,
}

/// Lets the store and the limit of changes use changed quotas, as long as they exist.
fn follow_changes(settings: &SettingChanges, store: &Arc<dyn Store>, changes: &Arc<ChangeRate>) {
    let (store, changes) = (Arc::downgrade(store), Arc::downgrade(changes));
    settings.on_change(move |config| {
        if let (Some(store), Some(changes)) = (store.upgrade(), changes.upgrade()) {
            store.set_quota(config.book.quota());
            changes.set(config.book.changes_per_minute, config.book.changes_burst);
        }
    });
}

/// Lets uploads use changed limits of their room, as long as the API exists.
fn follow_room(settings: &SettingChanges, api: &Arc<api::Api>, space: &FreeSpace) {
    let (api, space) = (Arc::downgrade(api), space.clone());
    let follow = move |book: &BookSettings| {
        if let Some(api) = api.upgrade() {
            space.set_least(least_free(book));
            api.staging.set_bytes(bytes_that_wait(book));
        }
    };
    // A change that came while the logbook started counts, too.
    follow(&settings.in_force().config.book);
    settings.on_change(move |config| follow(&config.book));
}

fn least_free(settings: &BookSettings) -> u64 {
    settings.min_free_mb.saturating_mul(1 << 20)
}

/// Returns the bytes of one person's files that may wait. A file that is as long as files may be has room.
fn bytes_that_wait(settings: &BookSettings) -> u64 {
    settings.waiting_mb.max(settings.attachment_mb).saturating_mul(1 << 20)
}

/// Starts the account of uploaded files, which has the files of drafts in a directory of the logbook.
fn start_staging(settings: &BookSettings, directory: &Path, store: &Arc<dyn Store>, space: &FreeSpace) -> io::Result<Staging> {
    let (store, space) = (store.clone(), space.clone());
    let receive = move |file: &mut fs::File| store.upload(&mut BoundedBody::new(file, u64::MAX, &space), u64::MAX).ok();
    Staging::start(bytes_that_wait(settings), directory.join("drafts"), receive)
}

/// Opens a listener; `None` for no address.
fn bind(address: ListenAddress) -> Result<Option<TcpListener>, BookError> {
    let ListenAddress::At(address) = address else { return Ok(None) };
    TcpListener::bind(address).map(Some).map_err(|why| BookError::Listen { address, why })
}

/// Opens the listener of the API. If no address is configured and the default port is in use, another port is used. The
/// text names the program that has the default port.
fn bind_api(settings: &BookSettings, run: &Path) -> Result<(Option<TcpListener>, Option<String>), BookError> {
    match bind(settings.listen()) {
        Err(BookError::Listen { why, .. }) if why.kind() == io::ErrorKind::AddrInUse && settings.listen.is_none() => {
            Ok((bind(ListenAddress::loopback(0))?, Some(holder_of(PORT, run))))
        }
        listener => listener.map(|listener| (listener, None)),
    }
}

/// Names the holder of a port: the hub of another domain of this host, or another program.
pub(crate) fn holder_of(port: u16, run: &Path) -> String {
    let domains = run.parent().and_then(|domains| fs::read_dir(domains).ok()).into_iter().flatten().flatten();
    let is_there = |location: &BookLocation| !location.is_left() && location.url.ends_with(&format!(":{port}"));
    let holder = domains.map(|domain| domain.path()).find(|domain| locate(domain).as_ref().is_some_and(is_there));
    let name = holder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let own = rustix::process::getuid().as_raw();
    match (name, listener_uid(port).filter(|uid| *uid != own)) {
        (_, Some(uid)) => format!("a program of user {uid} (not yours: give it no password)"),
        (Some(name), None) => format!("the hub of domain '{name}'"),
        (None, None) => "another program".to_owned(),
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
        // Listeners come first: if an address is taken, no store has been opened.
        let (listen, port_holder) = bind_api(settings, &given.run)?;
        let elog = bind(settings.elog_listen)?;
        let store: Arc<dyn Store> = match &settings.postgres {
            Some(address) => Arc::new(PostgresStore::open(address, given.domain)?.receiving_in(&given.directory)),
            None => Arc::new(SqliteStore::open(&given.directory)?),
        };
        store.set_quota(settings.quota());
        let logins = Logins::start(&settings.login, &given.run, &given.logger)?;
        let people = People::new(store.clone(), people_settings(settings))?.with_asking(logins.asking);
        let people = logins.methods.into_iter().fold(people, People::with);
        let [rules, named] = [given.rules.clone(), given.rules.clone()];
        let people = people.narrowed_by(move |who, book, right| rules.leaves(&principal_of(who), book, right));
        let people = Arc::new(people.with_names_in_rules(move |login| named.name_login(login)));
        let providers = Arc::new(logins.providers);
        let authenticator =
            Authenticator::new(&settings.auth(), &given.host).with_proxy(logins.proxy).with_kerberos(logins.kerberos);
        let authenticator = Arc::new(authenticator);
        let pushes = Pushes::start(store.clone(), people.clone(), given.logger.clone()).map_err(io("its pushes"))?;
        let typesetter = typesetter(settings)?;
        let mail = given.mail.map(|(mail, directory)| start_mail(mail, settings, &directory, &given.logger)).transpose()?;
        let follow = settings.follow.clone().map(|follow| follow::Following::start(store.clone(), follow, given.logger.clone()));
        let following = follow.transpose().map_err(io("following ELOG"))?;
        // A database stores attachments on its own disk; this one has them while they are received.
        let space = FreeSpace::new(&given.directory, least_free(settings));
        let rendered = Arc::<RenderCache>::default();
        let looks = LookCounter::start(store.clone(), given.logger.clone()).map_err(io("its count of looks"))?;
        let looks = Arc::new(looks);
        let changes = Arc::new(ChangeRate::new(settings.changes_per_minute, settings.changes_burst));
        follow_changes(&given.changes, &store, &changes);
        // At an address of their own ELOG's pages have no prefix, as with elogd.
        let links = settings.login.iter().filter_map(LoginSettings::link).collect::<Vec<_>>();
        let logouts = settings.login.iter().filter_map(LoginSettings::logout).collect::<Vec<_>>();
        let repeats = settings.login.iter().filter_map(LoginSettings::repeat).collect::<Vec<_>>();
        let site = |prefix: &str| {
            let (logins, logouts, repeats) = (links.clone(), logouts.clone(), repeats.clone());
            let config = SiteConfig { logins, logouts, repeats, ..site_config(settings, &*store, prefix)? };
            let site = Site::new(store.clone(), config).with_people(people.clone());
            let site = site.with_rendered(rendered.clone()).with_mail(mail.clone()).with_pdf(typesetter.clone());
            let (settings, logger) = (given.changes.clone(), given.logger.clone());
            let (site, people, authenticator) = (Arc::new(site), people.clone(), authenticator.clone());
            let (space, changes) = (space.clone(), changes.clone());
            let (rules, looks) = (given.rules.clone(), looks.clone());
            Ok::<_, BookError>(Arc::new(elog::ElogPages {
                site,
                people,
                authenticator,
                space,
                changes,
                settings,
                logger,
                looks,
                rules,
            }))
        };
        let of_api = space.clone();
        let (dialect, alone) = (site(&settings.elog_prefix)?, site("")?);
        let api = Arc::new(api::Api {
            store: store.clone(),
            people: people.clone(),
            authenticator: authenticator.clone(),
            settings: settings.clone(),
            setting_changes: given.changes.clone(),
            space: of_api,
            staging: start_staging(settings, &given.directory, &store, &space).map_err(io("its uploads"))?,
            rendered,
            changes: changes.clone(),
            audit: given.logger.named(AUDIT),
            previews: Arc::default(),
            pushes,
            checking: api::checking::Checking::default(),
            rules: given.rules.clone(),
            looks: looks.clone(),
            mail,
            typesetter,
            bus: given.bus,
            gateway: WebGateway::start(&given.run).map_err(io("its way to the gateway"))?,
        });
        follow_room(&given.changes, &api, &space);
        let at_providers = |home: String| {
            let (providers, people, authenticator) = (providers.clone(), people.clone(), authenticator.clone());
            Arc::new(oidc::flow::OidcLogins { providers, people, authenticator, home, audit: given.logger.named(AUDIT) })
        };
        let with_tickets = |home: String| {
            let (people, authenticator) = (people.clone(), authenticator.clone());
            Arc::new(kerberos::flow::KerberosLogins { people, authenticator, home, audit: given.logger.named(AUDIT) })
        };
        let mut listeners: Vec<Listener> = Vec::new();
        let https = given.https;
        let mut serve = |socket, service: Arc<dyn HttpService>, certificate: &Option<Arc<ServerCertificate>>| {
            let listener = Listener::plain(socket, service);
            listeners.push(Listener { certificate: certificate.clone(), hsts_days: settings.hsts_days, ..listener });
        };
        if let Some(listener) = listen {
            let root = Arc::new(Console { elog_prefix: settings.elog_prefix.clone() });
            let all = Mounts::new(root).mount("/api", api.clone()).mount(&settings.elog_prefix, dialect);
            let all = all.mount(oidc::flow::PATH, at_providers(format!("{}/", settings.elog_prefix)));
            let all = all.mount(kerberos::flow::PATH, with_tickets(format!("{}/", settings.elog_prefix)));
            serve(listener, Arc::new(all), &https.listen);
        }
        if let Some(listener) = elog {
            let all = Mounts::new(alone).mount(oidc::flow::PATH, at_providers("/".to_owned()));
            let all = all.mount(kerberos::flow::PATH, with_tickets("/".to_owned()));
            serve(listener, Arc::new(all), &https.elog);
        }
        let (connections, connections_of_one) = (settings.connections, settings.connections_of_one);
        let limits = Limits { connections, connections_of_one, ..Limits::default() };
        // The check of the settings has read the time.
        let slow = settings.slow_search().unwrap_or_default();
        let requests = Arc::new(RequestLog::new(&given.logger, settings.access_log, slow));
        let proxies = Proxies::new(&settings.proxies);
        let server = Server::start_observed(listeners, proxies, limits, Some(requests.clone())).map_err(io("its sockets"))?;
        let mut addresses = server.addresses().iter().copied();
        let mut next = |door: ListenAddress| if door == ListenAddress::Off { None } else { addresses.next() };
        let (listen, elog) = (next(settings.listen()), next(settings.elog_listen));
        let own_url = listen.map(|address| base_url(address, https.listen.as_deref()));
        let public = match (settings.elog_url.as_str(), own_url) {
            ("", Some(own)) => format!("{own}{}", settings.elog_prefix),
            ("", None) => String::new(),
            (public, _) => public.trim_end_matches('/').to_owned(),
        };
        let zone = settings.zone().map_err(|why| BookError::Zone(why.to_string()))?;
        let notifying = api.mail.clone().map(|outbox| {
            notifier::Notifying::start(notifier::NotifierSite {
                store: store.clone(),
                people: people.clone(),
                outbox,
                secret: site_secret(&*store)?,
                base: public,
                zone: zone.clone(),
                is_shared: settings.postgres.is_some(),
                logger: given.logger.named("mail"),
            })
            .map_err(io("its notifications"))
        });
        let notifying = notifying.transpose()?;
        let input = api.mail.as_ref().and_then(|outbox| Some((outbox.settings().input.clone()?, outbox.domain())));
        let mail_in = input.map(|(input, domain)| {
            let what = format!("[mail.in] {}", String::from(input.listen.clone()));
            mail_in::MailInput::start(mail_in::MailInSite {
                store: store.clone(),
                people: people.clone(),
                settings: input,
                domain,
                zone: zone.clone(),
                changes: given.changes.clone(),
                logger: given.logger.named("mail"),
                cleaned: Default::default(),
                reading: Default::default(),
            })
            .map_err(io(&what))
        });
        let mail_in = mail_in.transpose()?;
        let kept = match &settings.postgres {
            // The address may contain a password.
            Some(_) => "a PostgreSQL database".to_owned(),
            None => given.directory.display().to_string(),
        };
        let mut book = Book {
            server,
            requests,
            _following: following,
            _notifying: notifying,
            mail_in,
            api,
            listen,
            elog,
            https,
            kept,
            place: None,
            prefix: settings.elog_prefix.clone(),
            port_holder,
        };
        if let Some(url) = book.url() {
            let path = given.run.join(LOCATION_FILE);
            let directory = settings.postgres.is_none().then(|| std::path::absolute(&given.directory).unwrap_or(given.directory));
            let address = book.https.listen.as_ref().and(book.listen).map(reachable);
            let (token, trusted) = (people.make_owner_token()?, book.https.trusted.clone());
            let place = BookLocation { url, address, trusted, token, directory, life: Some(incarnation()) };
            write_location(&path, &place).map_err(io(&path.display().to_string()))?;
            book.place = Some((path, place));
        }
        if let Some(warning) = book.guest_warning() {
            warning!(given.logger, "{warning}");
        }
        Ok(book)
    }

    /// Returns the base address of the API, as `http://127.0.0.1:7449`.
    pub fn url(&self) -> Option<String> {
        self.listen.map(|address| base_url(address, self.https.listen.as_deref()))
    }

    /// Returns the keeper of the file that says where this logbook is.
    pub(crate) fn location(&self) -> Option<LocationKeeper> {
        self.place.clone().map(|(path, place)| LocationKeeper(path, place))
    }

    /// Returns the addresses of ELOG's pages, for a browser.
    pub fn elog_urls(&self) -> Vec<String> {
        let below = self.url().map(|url| format!("{url}{}/", self.prefix));
        let alone = self.elog.map(|address| format!("{}/", base_url(address, self.https.elog.as_deref())));
        alone.into_iter().chain(below).collect()
    }

    /// Returns the bound address of the API.
    pub fn listen(&self) -> Option<SocketAddr> {
        self.listen
    }

    /// Returns the bound address of ELOG's pages alone.
    pub fn elog_listen(&self) -> Option<SocketAddr> {
        self.elog
    }

    /// Returns an address that begins the owner's session in a browser once, if there are no users. Each call ends the
    /// address of the call before.
    pub fn owner_url(&self) -> Option<String> {
        let people = &self.api.people;
        let code = people.is_open().ok().filter(|is_open| *is_open).and_then(|_| people.make_owner_code().ok())?;
        Some(format!("{}{}/owner?code={code}", self.url()?, api::BASE))
    }

    /// Returns the directory of the store, or the kind of database, for messages.
    pub fn kept_in(&self) -> &str {
        &self.kept
    }

    /// Returns the program that has the default port, if the logbook had to take another port.
    pub fn port_holder(&self) -> Option<&str> {
        self.port_holder.as_deref()
    }

    /// Returns a warning about logbooks that guests may read or write, if other hosts reach them or the site lets no guest
    /// in. Without users everything is open to guests, and nothing is said about it.
    pub fn guest_warning(&self) -> Option<String> {
        let beyond = self.server.addresses().iter().any(|address| !address.ip().is_loopback());
        let people = &self.api.people;
        let openness = Openness::of(people.settings().guests.is_empty(), beyond)?;
        if people.is_open().unwrap_or(true) {
            return None;
        }
        let guest = people.guest().ok()?;
        guests::warning(openness, |right| guest.rights.books(right))
    }

    /// Returns the bound port at which mails are received.
    pub fn mail_port(&self) -> Option<SocketAddr> {
        self.mail_in.as_ref()?.port
    }

    /// Returns the sender of mail.
    pub fn mail(&self) -> Option<&Arc<Outbox>> {
        self.api.mail.as_ref()
    }

    /// Returns the reporter of its numbers.
    pub fn reporter(&self) -> BookReporter {
        let (requests, store) = (self.requests.clone(), self.api.store.clone());
        BookReporter { requests, server: self.server.counts(), store }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.api.store
    }

    /// Returns the bound addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        // Subscribers would keep the connections open.
        self.api.pushes.stop();
        // A hub that started while this one ended has written its own file.
        if let Some((path, place)) = &self.place
            && read_location(path).as_ref() == Some(place)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns an address for connections to a listener, which may be bound to all addresses of this computer.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the base address of a listener. With a certificate its name is one that the certificate has.
fn base_url(address: SocketAddr, certificate: Option<&ServerCertificate>) -> String {
    let address = reachable(address);
    match certificate {
        None => format!("http://{address}"),
        Some(served) => format!("https://{}", name_for(&served.info(), address)),
    }
}
