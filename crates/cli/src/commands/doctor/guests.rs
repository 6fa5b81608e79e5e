//! The check of logbooks that guests may read.

use tampu_bus::connect::Settings;
use tampu_hub::book::{
    guests::{Openness, warning},
    locate,
    settings::{BookSettings, Guests},
};
use tampu_logbook::{
    client::{Client, ClientError, Trust},
    people::Right,
};

/// Asks this host's logbook which logbooks are open to guests. Returns what was found, and a way out if it is a reason to
/// warn. Without a logbook there is nothing to find.
pub fn check(config: &Settings, settings: &BookSettings) -> Option<(String, Option<String>)> {
    let beyond = [settings.listen(), settings.elog_listen].iter().any(|address| address.beyond_this_host().is_some());
    let openness = Openness::of(settings.guests == Guests::None, beyond)?;
    let run = config.run_dir.domain(&config.domain).ok()?;
    let place = locate(run.path()).filter(|place| !place.is_left())?;
    let trust = Trust { certificates: place.trusted.clone(), address: place.address };
    let client = |token: Option<String>| Client::new(&place.url, token, "", &trust);
    let asked = || -> Result<Option<String>, ClientError> {
        if client(Some(place.token.clone()))?.users()?.is_empty() {
            return Ok(None);
        }
        let guest = client(None)?;
        let (read, write) = (guest.books_with(Right::Read)?, guest.books_with(Right::Write)?);
        Ok(warning(openness, |right| if right == Right::Read { read.clone() } else { write.clone() }))
    };
    Some(match asked() {
        Ok(None) => ("no logbook is open without a login".to_owned(), None),
        Ok(Some(text)) => match text.split_once("; ") {
            Some((found, way_out)) => (found.to_owned(), Some(way_out.to_owned())),
            None => (text, Some(String::new())),
        },
        Err(error) => (error.to_string(), Some("see what 'tampu up' has logged about the logbook".to_owned())),
    })
}
