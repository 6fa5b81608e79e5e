//! The part of a configuration that belongs to no logbook: the order of the logbooks, and the options of `[global]`.
//!
//! An import stores it as a record. The page of all logbooks and the tabs follow it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tampu_logbook::{
    book::{
        elog_options::{key, list},
        same_name,
    },
    store::{BookInfo, Records, StoreError, naming::current_name},
};

use crate::config::ElogConfig;

/// The kind and name of the record.
const KIND: &str = "elog";
const NAME: &str = "site";
/// Maximum depth of groups in groups.
const MAX_DEPTH: usize = 8;

/// The part of a configuration that belongs to no logbook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRecord {
    /// The logbooks in the order of the tabs: those of the top groups, then the others.
    pub books: Vec<String>,
    /// Options of `[global]`.
    pub global: Vec<(String, String)>,
    /// Groups in their order, each with its logbooks and groups.
    #[serde(default)]
    pub groups: Vec<(String, Vec<String>)>,
}

impl SiteRecord {
    /// Reads a configuration.
    pub fn of(config: &ElogConfig) -> SiteRecord {
        let global = config.section("global").map(|section| section.options.clone()).unwrap_or_default();
        SiteRecord::of_options(global, &config.logbooks().iter().map(|book| book.name().to_owned()).collect::<Vec<_>>())
    }

    /// Reads the options of `[global]`, for logbooks in the order of their sections.
    pub fn of_options(global: Vec<(String, String)>, sections: &[String]) -> SiteRecord {
        let starting = |start: &str| -> Vec<(String, Vec<String>)> {
            let of = |name: &str| name.get(..start.len()).filter(|begin| begin.eq_ignore_ascii_case(start)).is_some();
            let named = global.iter().filter(|(name, _)| of(name));
            named.map(|(name, members)| (name[start.len()..].trim().to_owned(), list(members))).collect()
        };
        let mut record = SiteRecord { books: Vec::new(), groups: starting("Group "), global: global.clone() };
        for (_, members) in starting("Top group ") {
            members.iter().for_each(|member| record.add(member, sections, 0));
        }
        sections.iter().for_each(|name| record.add(name, sections, 0));
        record
    }

    /// Adds a logbook, or those of a group, to the order.
    fn add(&mut self, name: &str, sections: &[String], depth: usize) {
        if let Some(section) = sections.iter().find(|section| same_name(section, name)) {
            if self.position(section).is_none() {
                self.books.push(section.clone());
            }
        } else if depth < MAX_DEPTH {
            self.members(name).to_vec().iter().for_each(|member| self.add(member, sections, depth + 1));
        }
    }

    /// Returns the logbooks and groups in a group; none if there is no such group.
    pub fn members(&self, group: &str) -> &[String] {
        self.groups.iter().find(|(name, _)| same_name(name, group)).map_or(&[], |(_, members)| members)
    }

    /// Returns true if a group has the logbook, or one of its groups has it.
    pub fn contains(&self, group: &str, book: &str) -> bool {
        self.contains_within(group, book, 0)
    }

    fn contains_within(&self, group: &str, book: &str, depth: usize) -> bool {
        let inside = |member: &String| same_name(member, book) || self.contains_within(member, book, depth + 1);
        depth < MAX_DEPTH && self.members(group).iter().any(inside)
    }

    /// Returns the groups that no other group contains.
    pub fn outer_groups(&self) -> Vec<&str> {
        let inner: HashSet<String> = self.groups.iter().flat_map(|(_, members)| members).map(|name| key(name)).collect();
        self.groups.iter().map(|(name, _)| name.as_str()).filter(|name| !inner.contains(&key(name))).collect()
    }

    fn position(&self, book: &str) -> Option<usize> {
        self.books.iter().position(|known| same_name(known, book))
    }

    /// Gives logbooks the names that they have here, if they were renamed here after an earlier import.
    fn follow_names(&mut self, store: &(impl Records + ?Sized)) -> Result<(), StoreError> {
        let members = self.groups.iter_mut().flat_map(|(_, members)| members);
        for name in self.books.iter_mut().chain(members) {
            if let Some(current) = current_name(store, name)? {
                *name = current;
            }
        }
        Ok(())
    }

    /// Puts logbooks into the order of the configuration; unknown ones come last.
    pub fn sort(&self, books: &mut [BookInfo]) {
        books.sort_by_cached_key(|info| self.position(&info.book.name).unwrap_or(usize::MAX));
    }
}

/// Returns the stored record; an empty one if nothing was imported.
pub fn stored(store: &(impl Records + ?Sized)) -> Result<SiteRecord, StoreError> {
    let record = store.record(KIND, NAME)?;
    Ok(record.and_then(|record| serde_json::from_value(record.value).ok()).unwrap_or_default())
}

/// Stores the record of a configuration. Logbooks that another configuration has brought keep their order, after these.
pub fn store(store: &(impl Records + ?Sized), config: &ElogConfig) -> Result<(), StoreError> {
    let there = stored(store)?;
    let mut new = SiteRecord::of(config);
    new.follow_names(store)?;
    let others: Vec<String> = there.books.iter().filter(|name| new.position(name).is_none()).cloned().collect();
    new.books.extend(others);
    if new == there {
        return Ok(());
    }
    let value = serde_json::to_value(&new).map_err(|error| StoreError::Damaged(format!("{KIND} '{NAME}': {error}")))?;
    let version = store.record(KIND, NAME)?.map_or(0, |record| record.version);
    match store.put_record(KIND, NAME, &value, Some(version)) {
        // Another import stored its record at this moment.
        Ok(_) | Err(StoreError::RecordChanged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
