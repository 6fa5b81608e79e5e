//! The login of a proxy: it has checked the person, and names the person in a header.
//!
//! A named proxy alone is believed. Any other sender of the header is rejected, and the log says so. The proxy must
//! remove the header from requests of its clients; a request with two of them is rejected, because a proxy that adds
//! its own beside one of the client has not. Every program of this host can connect from a loopback address, so there
//! the proxy also proves itself with a secret.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, StatusCode};
use sha2::{Digest, Sha256};
use tampu_log::Logger;
use tampu_logbook::people::outside::OutsideUser;

use super::{secret::read_secret, settings::ProxySettings, warnings::Warnings};
use crate::http::{client_address::ClientAddress, problem::Problem};

/// The header with the proxy's secret.
const SECRET: HeaderName = HeaderName::from_static("x-tampu-proxy-secret");
/// Longest value of a header, in bytes.
const MAX_VALUE: usize = 4096;

/// The login method of a proxy.
pub struct ProxyLogin {
    method: String,
    header: HeaderName,
    full_name: Option<HeaderName>,
    email: Option<HeaderName>,
    groups: Option<HeaderName>,
    /// The realm to remove, with its `@`.
    realm: Option<String>,
    /// The digest of the secret, so that a comparison takes the same time for all values.
    secret: Option<[u8; 32]>,
    warnings: Warnings,
}

impl ProxyLogin {
    /// Prepares the method of this name.
    pub fn new(method: &str, settings: &ProxySettings, logger: Logger) -> Result<ProxyLogin, String> {
        let name = |header: &String| header.parse::<HeaderName>().map_err(|_| format!("'{header}' is no name of a header"));
        let optional = |header: &Option<String>| header.as_ref().map(name).transpose();
        let secret = settings.secret_file.as_deref().map(read_secret).transpose()?;
        Ok(ProxyLogin {
            method: method.to_owned(),
            header: name(&settings.header)?,
            full_name: optional(&settings.full_name_header)?,
            email: optional(&settings.email_header)?,
            groups: optional(&settings.groups_header)?,
            realm: settings.realm.as_ref().map(|realm| format!("@{}", realm.to_lowercase())),
            secret: secret.map(|secret| Sha256::digest(secret.as_bytes()).into()),
            warnings: Warnings::new(logger),
        })
    }

    /// The name of the method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns true if a request has the header.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(&self.header)
    }

    /// Returns the person that a request's proxy names, or `None` for nobody.
    pub fn person(&self, headers: &HeaderMap, client: &ClientAddress) -> Result<Option<OutsideUser>, Problem> {
        let mut lines = headers.get_all(&self.header).iter();
        let Some(line) = lines.next() else { return Ok(None) };
        let from = client.peer.ip().to_canonical();
        if !client.is_from_proxy {
            return Err(self.refuse(from, "its sender is none of 'proxies' of [book]"));
        }
        if let Some(secret) = &self.secret {
            let sent = headers.get(SECRET).map(|value| Sha256::digest(value.as_bytes()));
            if sent.is_none_or(|sent| sent[..] != secret[..]) {
                return Err(self.refuse(from, "the proxy's secret is missing or wrong (X-Tampu-Proxy-Secret)"));
            }
        }
        if lines.next().is_some() {
            return Err(self.refuse(from, "it occurs twice: the proxy must remove the header of its clients"));
        }
        let login = match std::str::from_utf8(line.as_bytes()) {
            Ok(text) if text.len() <= MAX_VALUE => text.trim().to_lowercase(),
            _ => return Err(self.refuse(from, "its value is too long, or not UTF-8")),
        };
        let realm = self.realm.as_deref().and_then(|realm| login.strip_suffix(realm));
        let login = realm.unwrap_or(&login).to_owned();
        if login.is_empty() {
            return Ok(None);
        }
        let value = |name: &Option<HeaderName>| {
            let value = name.as_ref().and_then(|name| headers.get(name)).filter(|value| value.len() <= MAX_VALUE);
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned()).unwrap_or_default()
        };
        let groups = value(&self.groups);
        let groups = groups.split([',', ';']).map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned).collect();
        Ok(Some(OutsideUser {
            subject: login.clone(),
            login,
            full_name: value(&self.full_name),
            email: value(&self.email),
            groups,
        }))
    }

    /// Rejects a request with the header, and logs it.
    fn refuse(&self, from: IpAddr, why: &str) -> Problem {
        let header = self.header.as_str();
        self.warnings.warn(&format!("a request from {from} with the header '{header}' was refused: {why}"));
        let detail = format!("the header '{}' is believed from the site's proxy alone", self.header);
        Problem::new(StatusCode::FORBIDDEN, "not-the-proxy", detail)
            .at(&format!("header {}", self.header))
            .help("send the request without it; the hub's log has the reason")
    }
}
