//! The address of the logbook of this host's hub, as `spec/book-api.md` describes its file.

use std::{fs, net::SocketAddr, path::PathBuf};

use pyo3::PyResult;
use serde::Deserialize;
use tampu_bus::{connect::Settings, host::is_over};
use tampu_logbook::client::Trust;
use tampu_types::{Domain, Incarnation};

use crate::book::failure::local;

/// The file in the domain's run-time directory.
const LOCATION_FILE: &str = "book.json";

#[derive(Deserialize)]
struct Location {
    url: String,
    #[serde(default)]
    address: Option<SocketAddr>,
    #[serde(default)]
    trusted: Option<PathBuf>,
    token: String,
    #[serde(default)]
    life: Option<Incarnation>,
}

/// Address of a logbook, with what is needed to speak to it.
pub struct Place {
    pub url: String,
    pub token: Option<String>,
    pub trust: Trust,
}

/// Returns the place of the logbook of this host's hub.
pub fn of_this_host(domain: Option<&str>) -> PyResult<Place> {
    let mut settings = Settings::from_env().map_err(local)?;
    if let Some(domain) = domain {
        settings = settings.in_domain(Domain::new(domain).map_err(local)?);
    }
    let run = settings.run_dir.domain(&settings.domain).map_err(local)?;
    let path = run.path().join(LOCATION_FILE);
    let nobody = || {
        local(format_args!(
            "no hub of domain '{}' serves a logbook on this host ({}); start one with 'tampu up', or give `url` and `token`",
            settings.domain,
            path.display()
        ))
    };
    let text = fs::read_to_string(&path).map_err(|_| nobody())?;
    let found: Location = serde_json::from_str(&text).map_err(|error| local(format_args!("{}: {error}", path.display())))?;
    // A killed hub leaves its file behind. By then another program may have the address, and must not get the token.
    if found.life.is_some_and(is_over) {
        return Err(nobody());
    }
    let trust = Trust { certificates: found.trusted, address: found.address };
    Ok(Place { url: found.url, token: Some(found.token), trust })
}
