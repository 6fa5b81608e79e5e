//! `tampu book stat`.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use clap::Args;
use serde_json::json;
use tampu_logbook::store::quota::{Quota, UsedSpace};

use super::{
    place::{Place, failed},
    text::shown,
};
use crate::{
    failure::{Outcome, written},
    plural::counted,
};

/// Show the space of files by logbook and user, and the quotas
///
/// Files of deleted entries count until they are purged. A file that several entries have counts for each.
#[derive(Debug, Args)]
pub struct Stat {
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Writes a number of bytes for people.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

impl Stat {
    pub fn run(self, place: &Place) -> Outcome {
        let (quota, used) = match place.remote("")? {
            Some(hub) => {
                let (quota, used) = hub.used_space().map_err(failed)?;
                (Some(quota), used)
            }
            // The quotas are settings of a hub.
            None => (None, place.open()?.used_space().map_err(failed)?),
        };
        let mut out = io::stdout().lock();
        if self.json {
            return used.iter().try_for_each(|row| written(writeln!(out, "{}", json!(row))));
        }
        let line = |out: &mut dyn Write, space: &str, files: u64, what: &str| {
            written(writeln!(out, "{space:>12}  {:>12}  {what}", counted(files, "file")))
        };
        let mut users: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for UsedSpace { book, by, files, bytes } in &used {
            line(&mut out, &megabytes(*bytes), *files, &format!("{} of {}", shown(book, false), shown(by, false)))?;
            let sum = users.entry(by).or_default();
            *sum = (sum.0 + files, sum.1 + bytes);
        }
        for (by, (files, bytes)) in &users {
            line(&mut out, &megabytes(*bytes), *files, &format!("all of {}", shown(by, false)))?;
        }
        let (files, bytes) = users.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        line(&mut out, &megabytes(bytes), files, "in all")?;
        if let Some(Quota { site, book, user }) = quota {
            let limit = |bytes: u64| if bytes == 0 { "no limit".to_owned() } else { megabytes(bytes) };
            let (site, book, user) = (limit(site), limit(book), limit(user));
            written(writeln!(out, "quotas: {site} in all, {book} for a logbook, {user} for a user"))?;
        }
        Ok(())
    }
}
