//! Settings of the logbook.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use tampu_elog::pages::clock::{NoZone, Zone};
use tampu_logbook::{
    export::pdf::{self, PdfError},
    notify::webhook,
    people::Right,
    store::quota::Quota,
};
use tampu_types::units::{BadDuration, parse_duration};

use super::follow::FollowSettings;
use crate::{
    http::{auth::AuthSettings, client_address::Proxies},
    listen::ListenAddress,
    login::{self, settings::LoginSettings},
};

/// The default port of the logbook on this host.
pub const PORT: u16 = 7449;

/// The directory of the logbook below the domain's data.
pub const DIRECTORY: &str = "book";

/// Rights of guests in logbooks without access rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guests {
    /// Guests have no rights.
    None,
    /// Guests may read entries.
    #[default]
    Read,
    /// Guests may read and post entries.
    Write,
}

impl Guests {
    /// Returns the rights.
    pub fn rights(self) -> Vec<Right> {
        match self {
            Guests::None => vec![],
            Guests::Read => vec![Right::Read],
            Guests::Write => vec![Right::Read, Right::Write],
        }
    }
}

/// The section `[book]` of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BookSettings {
    /// The address of the API; ELOG's pages are below `elog_prefix`.
    ///
    /// The default is port [`PORT`] of this host, or any free port if that one is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<ListenAddress>,
    /// An address for ELOG's pages alone, without a prefix, as in elogd.
    pub elog_listen: ListenAddress,
    /// The path of ELOG's pages at `listen`.
    pub elog_prefix: String,
    /// The public address of ELOG's pages behind a proxy; if empty, the address of the request.
    pub elog_url: String,
    /// ELOG's folder of themes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elog_themes: Option<PathBuf>,
    /// The layout of PDF, a Typst source with a function `layout`; without it, the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf_layout: Option<PathBuf>,
    /// Pictures, fonts and sources for the layout, which knows them by their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pdf_files: Vec<PathBuf>,
    /// The directory of the logbook; by default `book` in the domain's directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// The address of a PostgreSQL database that is used in place of the directory, by several hubs at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<String>,
    /// The local time of ELOG's pages, such as `Europe/Zurich`; `local` is this computer's. Without it each entry is
    /// shown in its own zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// A certificate (PEM, with its chain) for https at `listen` and `elog_listen`. Without it, an address that other
    /// hosts reach has the host's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The private key of `certificate` (PEM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_key: Option<PathBuf>,
    /// Serves other hosts without encryption.
    pub plain_http: bool,
    /// Days for which browsers that used https once shall use nothing else; 0 for none.
    pub hsts_days: u32,
    /// Rights of guests in logbooks without access rules of their own.
    pub guests: Guests,
    /// Accepts ELOG's digest of a password in place of the password, for its old programs.
    pub accept_elog_hashes: bool,
    /// Accepts a password in the address of a page from programs that do not send it by POST.
    pub password_in_address: bool,
    /// Leaves the cells of ELOG's tables (CSV) as they are, also those that a spreadsheet takes for a formula.
    pub raw_csv: bool,
    /// Hours without use after which a session ends.
    pub session_idle_h: u32,
    /// Days after which a session ends.
    pub session_days: u32,
    /// Further names of this host that requests may use. Other names are rejected, so that another site cannot point
    /// its own name here.
    pub hosts: Vec<String>,
    /// Proxies whose headers about the client of a request are trusted.
    pub proxies: Vec<IpAddr>,
    /// Hosts from which ELOG's pages may load images, as `https://plots.example.org`, besides the hub itself.
    pub image_hosts: Vec<String>,
    /// Hosts to which rules of users may post entries, as `hooks.example.org` or `hooks.example.org:8443`.
    pub webhook_hosts: Vec<String>,
    /// A file of certificates (PEM) that are trusted for these hosts besides the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_certificates: Option<PathBuf>,
    /// Largest attachment, in MiB.
    pub attachment_mb: u64,
    /// Free space, in MiB, that uploads leave on the disk; on a small disk a twentieth of it.
    pub min_free_mb: u64,
    /// GB that the files of all logbooks may take; 0 for no limit.
    pub site_gb: f64,
    /// GB that the files of one logbook may take; 0 for no limit.
    pub book_gb: f64,
    /// GB that the files of one user may take in all logbooks; 0 for no limit.
    pub user_gb: f64,
    /// Maximum size, in MiB, of one sender's uploaded files without an entry.
    pub waiting_mb: u64,
    /// Time limit of a search, in ms.
    pub search_ms: u64,
    /// Logs each request: the user, the address of the client, the status, the time.
    pub access_log: bool,
    /// The time from which a search is logged, as `500ms`; `off` for none.
    pub slow_search: String,
    /// Maximum number of open connections.
    pub connections: usize,
    /// Maximum number of open connections of one address; `proxies` have no such limit.
    pub connections_of_one: usize,
    /// Posts and other changes that one user may make in a minute; 0 for no limit.
    pub changes_per_minute: u32,
    /// Changes that one user may make at once, beyond that pace.
    pub changes_burst: u32,
    /// Login methods, in the order in which they are asked. Users of the logbook itself are checked here first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub login: Vec<LoginSettings>,
    /// The ELOG that the hub follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<FollowSettings>,
}

impl Default for BookSettings {
    fn default() -> BookSettings {
        BookSettings {
            listen: None,
            elog_listen: ListenAddress::Off,
            elog_prefix: "/elog".to_owned(),
            elog_url: String::new(),
            elog_themes: None,
            pdf_layout: None,
            pdf_files: Vec::new(),
            dir: None,
            postgres: None,
            zone: None,
            certificate: None,
            certificate_key: None,
            plain_http: false,
            hsts_days: 0,
            guests: Guests::Read,
            accept_elog_hashes: false,
            password_in_address: false,
            raw_csv: false,
            session_idle_h: 12,
            session_days: 30,
            hosts: Vec::new(),
            proxies: Vec::new(),
            image_hosts: Vec::new(),
            webhook_hosts: Vec::new(),
            webhook_certificates: None,
            attachment_mb: 10_240,
            min_free_mb: 1024,
            site_gb: 0.0,
            book_gb: 0.0,
            user_gb: 0.0,
            waiting_mb: 20_480,
            search_ms: 5000,
            access_log: false,
            slow_search: "1s".to_owned(),
            connections: 512,
            connections_of_one: 64,
            changes_per_minute: 600,
            changes_burst: 3000,
            login: Vec::new(),
            follow: None,
        }
    }
}

impl BookSettings {
    /// Returns the address of the API, which may be the default one.
    pub fn listen(&self) -> ListenAddress {
        self.listen.unwrap_or(ListenAddress::loopback(PORT))
    }

    /// Returns the local time of ELOG's pages.
    pub fn zone(&self) -> Result<Zone, NoZone> {
        self.zone.as_deref().map_or(Ok(Zone::OfEntry), Zone::named)
    }

    /// Returns the time from which a search is logged.
    pub fn slow_search(&self) -> Result<Option<Duration>, BadDuration> {
        if self.slow_search.trim() == "off" { Ok(None) } else { parse_duration(&self.slow_search).map(Some) }
    }

    /// Returns the quota for files, in bytes.
    pub fn quota(&self) -> Quota {
        // The check of the settings leaves sizes that fit.
        let bytes = |gb: f64| (gb * 1e9) as u64;
        Quota { site: bytes(self.site_gb), book: bytes(self.book_gb), user: bytes(self.user_gb) }
    }

    /// Returns the settings for the authentication of requests.
    pub fn auth(&self) -> AuthSettings {
        AuthSettings { hosts: self.hosts.clone(), public_url: self.elog_url.clone(), proxies: Proxies::new(&self.proxies) }
    }

    /// Checks the settings; an error has the setting's name and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let prefix = &self.elog_prefix;
        let is_path =
            prefix.starts_with('/') && prefix.len() > 1 && !prefix.ends_with('/') && !prefix.contains(['?', '#', ' ', '%']);
        if !is_path || prefix == "/api" || prefix.starts_with("/api/") {
            return Err(("elog_prefix", format!("invalid path '{prefix}'; write \"/elog\"; /api is taken")));
        }
        self.zone().map_err(|why| ("zone", why.to_string()))?;
        self.slow_search().map_err(|why| ("slow_search", format!("{why}; or \"off\"")))?;
        let is_bare = |host: &&String| webhook::check(&format!("https://{host}/"), std::slice::from_ref(*host)).is_err();
        if let Some(bad) = self.webhook_hosts.iter().find(is_bare) {
            let example = "write \"hooks.example.org\" or \"hooks.example.org:8443\"";
            return Err(("webhook_hosts", format!("invalid host '{}'; {example}", bad.escape_debug())));
        }
        if let Some(bad) = self.image_hosts.iter().find(|host| !is_image_host(host)) {
            let example = "write \"https://plots.example.org\", with a port if it needs one";
            return Err(("image_hosts", format!("invalid host '{}'; {example}", bad.escape_debug())));
        }
        if !pdf::BUILT_IN && (self.pdf_layout.is_some() || !self.pdf_files.is_empty()) {
            let setting = if self.pdf_layout.is_some() { "pdf_layout" } else { "pdf_files" };
            return Err((setting, PdfError::NotBuilt.to_string()));
        }
        if self.certificate.is_some() != self.certificate_key.is_some() {
            let why = "a certificate and its private key belong together: name both certificate and certificate_key";
            return Err(("certificate", why.to_owned()));
        }
        if self.certificate.is_some() && self.plain_http {
            return Err(("plain_http", "with a certificate the logbook speaks https; leave out one of the two".to_owned()));
        }
        login::settings::check(&self.login, &self.proxies)?;
        if self.hsts_days > 3650 {
            return Err(("hsts_days", format!("invalid value {}; use 0 to 3650", self.hsts_days)));
        }
        if self.follow.as_ref().is_some_and(|follow| follow.logbooks.as_os_str().is_empty()) {
            return Err((
                "follow.logbooks",
                "the folder is missing; write the folder that contains the logbooks' folders".to_owned(),
            ));
        }
        if let Some(name) = self.follow.as_ref().and_then(|follow| follow.zone.as_deref()) {
            Zone::named(name).map_err(|why| ("follow.zone", why.to_string()))?;
        }
        for (setting, value) in [("site_gb", self.site_gb), ("book_gb", self.book_gb), ("user_gb", self.user_gb)] {
            if !(0.0..=1e9).contains(&value) {
                return Err((setting, format!("invalid value {value}; use 0 for no limit, or a number of GB")));
            }
        }
        for (setting, value, most) in [
            ("session_idle_h", u64::from(self.session_idle_h), 24 * 365),
            ("session_days", u64::from(self.session_days), 3650),
            ("attachment_mb", self.attachment_mb, 1 << 20),
            ("waiting_mb", self.waiting_mb, 1 << 30),
            ("search_ms", self.search_ms, 600_000),
            ("connections", self.connections as u64, 65_536),
            ("connections_of_one", self.connections_of_one as u64, 65_536),
            ("changes_burst", u64::from(self.changes_burst), 1_000_000),
        ] {
            if !(1..=most).contains(&value) {
                return Err((setting, format!("invalid value {value}; use 1 to {most}")));
            }
        }
        Ok(())
    }
}

/// Returns true if a text is the scheme and the name of a host, which a policy of a page can name.
fn is_image_host(text: &str) -> bool {
    let name = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    let name = name.strip_prefix("*.").unwrap_or(name);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[') && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_of_pdf_needs_a_program_that_makes_pdf() {
        let settings = BookSettings { pdf_layout: Some("/etc/tampu/layout.typ".into()), ..BookSettings::default() };
        assert_eq!(settings.check().map_err(|(setting, _)| setting), if pdf::BUILT_IN { Ok(()) } else { Err("pdf_layout") });
    }

    #[test]
    fn hosts_of_images_are_names_with_a_scheme() {
        let check = |host: &str| BookSettings { image_hosts: vec![host.to_owned()], ..BookSettings::default() }.check();
        for good in ["https://plots.example.org", "http://10.0.0.7:8080", "https://*.example.org", "http://[::1]:80"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in
            ["", "*", "http:", "https://", "plots.example.org", "https://a b", "https://a;script-src *", "https://*", "data:"]
        {
            assert_eq!(check(bad).map_err(|(setting, _)| setting), Err("image_hosts"), "{bad}");
        }
    }
}
