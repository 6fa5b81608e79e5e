//! Certificates of a hub: their directory, the services that use them, and the watch over their life.
//!
//! A service that other hosts reach is encrypted, unless the configuration says otherwise in so many words.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use tampu_log::{Logger, alert, error, notice, warning};
use tampu_tls::{CertificateDir, CertificateInfo, ServerCertificate};
use tampu_workers::WorkerThread;

use crate::{
    config::{Config, ConfigError, Encryption, Role},
    listen::ListenAddress,
};

/// The certificates of a site whose hubs run as a system service.
const SYSTEM: &str = "/etc/tampu/cert";
/// The directory below the domain's data.
const DIRECTORY: &str = "cert";
/// The directory of the authority's key, below the domain's data.
const AUTHORITY: &str = "authority";
/// Period at which files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// Remaining life below which a certificate is reported.
pub const SHORT_LIFE: Duration = Duration::from_secs(30 * 86_400);
/// Period at which a short remaining life is reported again.
const REMIND: Duration = Duration::from_secs(86_400);
/// Pause before the watch goes on after a panic.
const RESTART: Duration = Duration::from_secs(10);

impl Config {
    /// Returns the directory of this host's certificates: the configured one, else the one beside the domain's data,
    /// else that of the system if it has certificates. The authority's key is in another one, which no role reads.
    pub fn certificates(&self) -> CertificateDir {
        if let Some(path) = &self.network.certificates {
            return CertificateDir::new(path);
        }
        let (own, system) = (self.own_certificates(), CertificateDir::new(SYSTEM));
        if !own.has_host() && system.has_host() { system } else { own }
    }
}

impl Config {
    /// Returns the directory of certificates beside the domain's data.
    pub(crate) fn own_certificates(&self) -> CertificateDir {
        let data = self.domain_data();
        CertificateDir::new(data.join(DIRECTORY)).with_authority(data.join(AUTHORITY))
    }
}

/// The encryption of a service of HTTP.
#[derive(Clone, Default)]
pub struct Https {
    /// The certificate at `listen`, if that is encrypted.
    pub listen: Option<Arc<ServerCertificate>>,
    /// The certificate at `elog_listen`, if that is encrypted.
    pub elog: Option<Arc<ServerCertificate>>,
    /// File of certificates that programs of this host trust.
    pub trusted: Option<PathBuf>,
}

/// Finds the certificates of the logbook's addresses.
pub(crate) fn of_book(config: &Config) -> Result<Https, ConfigError> {
    let book = &config.book;
    if let (Some(certificate), Some(key)) = (&book.certificate, &book.certificate_key) {
        let opened = ServerCertificate::open(certificate, key);
        let served = Arc::new(opened.map_err(|why| wrong("book.certificate", why.to_string()))?);
        return Ok(Https { listen: Some(served.clone()), elog: Some(served), trusted: Some(certificate.clone()) });
    }
    let is_plain = book.plain_http || !book.proxies.is_empty();
    let wants = |address: ListenAddress| !is_plain && address.beyond_this_host().is_some();
    let [listen, elog] = [("book.listen", book.listen()), ("book.elog_listen", book.elog_listen)];
    let Some((setting, _)) = [listen, elog].into_iter().find(|(_, address)| wants(*address)) else {
        return Ok(Https::default());
    };
    let way_out = "[book] plain_http = true (--plain-http) serves everybody's passwords in clear text";
    let served = of_host(config, setting, way_out)?;
    let of = |address| wants(address).then(|| served.clone());
    Ok(Https { listen: of(listen.1), elog: of(elog.1), trusted: Some(config.certificates().authority()) })
}

/// Finds the certificate of the page of metrics.
pub(crate) fn of_metrics(config: &Config) -> Result<Option<Arc<ServerCertificate>>, ConfigError> {
    let metrics = &config.metrics;
    if !metrics.enabled || !metrics.is_encrypted() {
        return Ok(None);
    }
    of_host(config, "metrics.listen", "[metrics] plain_http = true serves the page in clear text").map(Some)
}

/// Finds the certificate of the gateway.
pub(crate) fn of_gateway(config: &Config) -> Result<Option<Arc<ServerCertificate>>, ConfigError> {
    match config.gateway.listen {
        ListenAddress::At(_) if config.gateway.enabled => {
            of_host(config, "gateway.listen", "\"off\" serves programs of this host alone").map(Some)
        }
        _ => Ok(None),
    }
}

/// Opens the certificate of this host for a service that other hosts reach.
fn of_host(config: &Config, setting: &str, way_out: &str) -> Result<Arc<ServerCertificate>, ConfigError> {
    let directory = config.certificates();
    let opened = directory.check().and_then(|()| ServerCertificate::open(&directory.host(), &directory.host_key()));
    opened.map(Arc::new).map_err(|why| wrong(setting, format!("other hosts reach this address by TLS only: {why}; {way_out}")))
}

fn wrong(setting: &str, why: String) -> ConfigError {
    ConfigError::Value { setting: setting.to_owned(), why }
}

/// Returns warnings about services that other hosts reach without encryption.
pub(crate) fn remarks(config: &Config) -> Vec<String> {
    let mut remarks = Vec::new();
    let is_open = config.roles.contains(&Role::Node) && (!config.network.listen.is_empty() || !config.network.connect.is_empty());
    if is_open && config.network.encryption == Encryption::None {
        let text = "the bus is not encrypted ([network] encryption = \"none\"): everybody on the network's way can read and change records";
        remarks.push(text.to_owned());
    }
    let book = &config.book;
    let is_book_plain = config.roles.contains(&Role::Book) && book.certificate.is_none();
    for (setting, address) in [("listen", book.listen()), ("elog_listen", book.elog_listen)] {
        if let Some(address) = address.beyond_this_host().filter(|_| is_book_plain) {
            if book.plain_http {
                let text = format!(
                    "the logbook at {address} is not encrypted ([book] plain_http): passwords cross the network in clear text"
                );
                remarks.push(text);
            } else if !book.proxies.is_empty() {
                let text = format!(
                    "the logbook at {address} ([book] {setting}) leaves encryption to its proxies: let nobody else reach it"
                );
                remarks.push(text);
            }
        }
    }
    if let Some(address) = config.metrics.listen.beyond_this_host()
        && config.metrics.enabled
        && config.metrics.plain_http
    {
        remarks.push(format!("the metrics at {address} are not encrypted ([metrics] plain_http)"));
    }
    remarks
}

/// Chooses the name by which programs of this host reach a server: a name that its certificate has.
pub(crate) fn name_for(info: &CertificateInfo, address: std::net::SocketAddr) -> String {
    let ip = address.ip().to_string();
    if info.names.contains(&ip) {
        return address.to_string();
    }
    let name = info.names.iter().find(|name| !name.starts_with('*') && name.parse::<std::net::IpAddr>().is_err());
    format!("{}:{}", name.unwrap_or(&info.common_name), address.port())
}

/// The certificate of a service, or a file that the bus uses.
enum Watched {
    Served(&'static str, Arc<ServerCertificate>),
    File(&'static str, PathBuf),
}

impl Watched {
    fn path(&self) -> &Path {
        match self {
            Watched::Served(_, served) => served.path(),
            Watched::File(_, path) => path,
        }
    }

    fn info(&self) -> Option<CertificateInfo> {
        match self {
            Watched::Served(_, served) => Some(served.info()),
            Watched::File(_, path) => CertificateInfo::read(path).ok(),
        }
    }
}

/// The remaining life of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remaining {
    /// The part of the hub that uses it.
    pub used_by: &'static str,
    /// Its common name.
    pub name: String,
    /// Seconds until it expires; negative afterwards.
    pub seconds: i64,
}

/// The certificates that a hub uses, and their remaining life.
#[derive(Clone, Default)]
pub(crate) struct CertificatesInUse(Arc<Vec<Watched>>);

impl CertificatesInUse {
    /// Collects the certificates that this process uses.
    pub fn new(
        config: &Config,
        has_node: bool,
        https: &Https,
        served: [(&'static str, &Option<Arc<ServerCertificate>>); 2],
    ) -> CertificatesInUse {
        let mut watched = Vec::new();
        let directory = config.certificates();
        if has_node && config.uses_tls_on_the_bus() {
            watched.push(Watched::File("bus", directory.host()));
            watched.push(Watched::File("authority", directory.authority()));
        }
        watched.extend(https.listen.as_ref().or(https.elog.as_ref()).map(|served| Watched::Served("book", served.clone())));
        for (used_by, certificate) in served {
            watched.extend(certificate.as_ref().map(|certificate| Watched::Served(used_by, certificate.clone())));
        }
        CertificatesInUse(Arc::new(watched))
    }

    /// Returns the remaining life of each.
    pub fn remaining(&self) -> Vec<Remaining> {
        let now = SystemTime::now();
        let remaining = |watched: &Watched| {
            let (Watched::Served(used_by, _) | Watched::File(used_by, _)) = watched;
            let info = watched.info()?;
            Some(Remaining { used_by, seconds: info.seconds_left(now), name: info.common_name })
        };
        self.0.iter().filter_map(remaining).collect()
    }

    fn remind(&self, logger: &Logger) {
        for watched in self.0.iter() {
            let path = watched.path().display();
            let Some(seconds) = watched.info().map(|info| info.seconds_left(SystemTime::now())) else { continue };
            if seconds <= 0 {
                alert!(logger, "the certificate {path} has expired; renew it with 'tampu cert renew'");
            } else if seconds < SHORT_LIFE.as_secs() as i64 {
                let days = seconds / 86_400;
                warning!(logger, "the certificate {path} expires in {days} days; renew it with 'tampu cert renew'");
            }
        }
    }

    /// Reads changed files again. Returns true if one was.
    fn refresh(&self, logger: &Logger) -> bool {
        let mut changed = false;
        for watched in self.0.iter() {
            let Watched::Served(_, served) = watched else { continue };
            match served.refresh() {
                Ok(Some(info)) => {
                    changed = true;
                    let path = served.path().display();
                    notice!(logger, "the certificate {path} of '{}' was read again", info.common_name);
                }
                Ok(None) => {}
                Err(why) => error!(logger, "a changed certificate cannot be used, and the earlier one stays: {why}"),
            }
        }
        changed
    }
}

/// Reads changed certificates again and reports those that expire soon, until it is dropped.
pub(crate) struct CertificateWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CertificateWatch {
    /// Starts the watch, if there are certificates.
    pub fn start(in_use: CertificatesInUse, logger: Logger) -> std::io::Result<Option<CertificateWatch>> {
        if in_use.0.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = channel::<()>();
        let work = move || {
            let mut reminded: Option<Instant> = None;
            loop {
                let changed = in_use.refresh(&logger);
                if changed || reminded.is_none_or(|at| at.elapsed() >= REMIND) {
                    in_use.remind(&logger);
                    reminded = Some(Instant::now());
                }
                if stopped.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = WorkerThread::named("certificates").spawn_restarting(RESTART, work)?;
        Ok(Some(CertificateWatch { stop: Some(stop), thread: Some(thread) }))
    }
}

impl Drop for CertificateWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
