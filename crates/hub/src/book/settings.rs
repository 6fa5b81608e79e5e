//! What a site says of its logbook.

use std::{net::IpAddr, path::PathBuf};

use serde::{Deserialize, Serialize};
use tampu_logbook::{
    elog::web::clock::{NoZone, Zone},
    people::Right,
};

use super::follow::FollowSettings;
use crate::inputs::settings::Door;

/// The port of this host where the logbook is, if nothing else is said and it is free.
pub const PORT: u16 = 7449;

/// What somebody may who has not logged in, in books of which nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guests {
    /// Nothing.
    None,
    /// See entries.
    #[default]
    Read,
    /// See and post entries.
    Write,
}

impl Guests {
    /// As rights.
    pub fn rights(self) -> Vec<Right> {
        match self {
            Guests::None => vec![],
            Guests::Read => vec![Right::Read],
            Guests::Write => vec![Right::Read, Right::Write],
        }
    }
}

/// The logbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BookSettings {
    /// Where the API is, and below `elog_prefix` ELOG's dialect.
    pub listen: Door,
    /// Where ELOG's dialect is alone, as elogd has it: for programs that know no prefix.
    pub elog_listen: Door,
    /// Below which path ELOG's dialect is at `listen`.
    pub elog_prefix: String,
    /// Where ELOG's dialect is for the world, where a proxy stands before it; empty: what the request says.
    pub elog_url: String,
    /// ELOG's folder of themes, for the pages of its dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elog_themes: Option<PathBuf>,
    /// The directory of the logbook; by default `book` beside the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// The address of a PostgreSQL database that is used in place of the directory, by several hubs at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<String>,
    /// The local time of ELOG's dialect, as `Europe/Zurich`; `local` is this computer's. Without it each entry is shown in its own zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// What guests may in books of which nothing is said.
    pub guests: Guests,
    /// Whether ELOG's digest of a password is taken in place of the password, for its old programs.
    pub accept_elog_hashes: bool,
    /// A session that is not used for so many hours ends.
    pub session_idle_h: u32,
    /// A session that is so many days old ends.
    pub session_days: u32,
    /// Names of this host, beside its own, that requests may name: a page elsewhere cannot make a name of its own lead here.
    pub hosts: Vec<String>,
    /// Proxies whose word counts about where a request comes from.
    pub proxies: Vec<IpAddr>,
    /// Size of an attachment, in MiB.
    pub attachment_mb: u64,
    /// How long a search may take, in ms.
    pub search_ms: u64,
    /// Connections that are open at a time.
    pub connections: usize,
    /// A living ELOG that is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<FollowSettings>,
}

impl Default for BookSettings {
    fn default() -> BookSettings {
        BookSettings {
            listen: Door::loopback(PORT),
            elog_listen: Door::Off,
            elog_prefix: "/elog".to_owned(),
            elog_url: String::new(),
            elog_themes: None,
            dir: None,
            postgres: None,
            zone: None,
            guests: Guests::Read,
            accept_elog_hashes: false,
            session_idle_h: 12,
            session_days: 30,
            hosts: Vec::new(),
            proxies: Vec::new(),
            attachment_mb: 10_240,
            search_ms: 5000,
            connections: 512,
            follow: None,
        }
    }
}

impl BookSettings {
    /// The local time of ELOG's dialect.
    pub fn zone(&self) -> Result<Zone, NoZone> {
        self.zone.as_deref().map_or(Ok(Zone::OfEntry), Zone::named)
    }

    /// What cannot be: the setting, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let prefix = &self.elog_prefix;
        let is_path =
            prefix.starts_with('/') && prefix.len() > 1 && !prefix.ends_with('/') && !prefix.contains(['?', '#', ' ', '%']);
        if !is_path || prefix == "/api" || prefix.starts_with("/api/") {
            return Err(("elog_prefix", format!("'{prefix}' is no path: write \"/elog\"; /api is taken")));
        }
        self.zone().map_err(|why| ("zone", why.to_string()))?;
        if self.follow.as_ref().is_some_and(|follow| follow.logbooks.as_os_str().is_empty()) {
            return Err(("follow.logbooks", "write the folder the logbooks' folders are in".to_owned()));
        }
        for (setting, value, most) in [
            ("session_idle_h", u64::from(self.session_idle_h), 24 * 365),
            ("session_days", u64::from(self.session_days), 3650),
            ("attachment_mb", self.attachment_mb, 1 << 20),
            ("search_ms", self.search_ms, 600_000),
            ("connections", self.connections as u64, 65_536),
        ] {
            if !(1..=most).contains(&value) {
                return Err((setting, format!("{value}: 1 to {most}")));
            }
        }
        Ok(())
    }
}
