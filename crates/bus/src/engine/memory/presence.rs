//! Presence: notices to watchers, and their times.
//!
//! Whenever a change may affect a watcher's knowledge of a key, it is computed again. It is compared with the last
//! notice, and only the difference is reported. So presence is eventually right after any sequence of changes. A key
//! that left and came back meanwhile causes no notice, as with real engines.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    ids::ProcessId,
    key::matches,
    records::{Announcement, Watch},
    state::{Due, State},
};
use crate::engine::{CaughtUp, Presence, Seen};

impl State {
    pub fn announce(&mut self, now: u64, announcement: Announcement) -> u64 {
        let id = self.next_serial();
        let known = now + self.discovery;
        for (watch, to) in self.watchers(&announcement) {
            let at = if to == announcement.process { now } else { known };
            self.schedule(at, Due::Presence { watch, to, key: announcement.key.clone() });
        }
        self.announcements.insert(id, announcement);
        id
    }

    /// Withdraws an announcement. Processes that it cannot reach believe in it until the lease is over.
    pub fn withdraw(&mut self, now: u64, id: u64) {
        let Some(announcement) = self.announcements.remove(&id) else { return };
        for (watch, to) in self.watchers(&announcement) {
            let at = match self.silent_since(announcement.process, to) {
                _ if to == announcement.process => now,
                Some(since) => since.saturating_add(self.lease).max(now + self.discovery),
                None => now + self.discovery,
            };
            self.schedule(at, Due::Presence { watch, to, key: announcement.key.clone() });
        }
    }

    pub fn watch(&mut self, now: u64, watch: Watch, caught_up: Option<CaughtUp>) -> u64 {
        let id = self.next_serial();
        let to = watch.process;
        self.watches.insert(id, watch);
        let keys: BTreeSet<Arc<str>> =
            self.announcements.values().filter(|one| self.is_watched(id, one)).map(|one| one.key.clone()).collect();
        let known = now + self.discovery;
        for key in keys {
            self.schedule(known, Due::Presence { watch: id, to, key });
        }
        if let Some(call) = caught_up {
            self.schedule(known, Due::CaughtUp { to, call });
        }
        id
    }

    /// Computes all knowledge of presence at this time again, because links have changed.
    pub fn reconcile_all(&mut self, at: u64) {
        let mut all = BTreeSet::new();
        for (&id, watch) in &self.watches {
            all.extend(watch.told.iter().map(|key| (id, watch.process, key.clone())));
            let watched = self.announcements.values().filter(|one| self.is_watched(id, one));
            all.extend(watched.map(|one| (id, watch.process, one.key.clone())));
        }
        for (watch, to, key) in all {
            self.schedule(at, Due::Presence { watch, to, key });
        }
    }

    /// Returns the notice about a key that is due to a watcher at `now`, if any.
    pub fn reconcile(&mut self, now: u64, id: u64, key: &Arc<str>) -> Option<(Seen, Presence)> {
        let (process, told) = self.watches.get(&id).map(|watch| (watch.process, watch.told.contains(key)))?;
        let mut here = false;
        for one in self.announcements.values().filter(|one| one.key == *key && self.is_watched(id, one)) {
            here |= match self.silent_since(one.process, process) {
                _ if one.process == process => true,
                // Until the lease is over, silence changes nothing.
                Some(since) if now < since.saturating_add(self.lease) => told,
                Some(_) => false,
                None => now >= one.since.saturating_add(self.discovery) || told,
            };
        }
        if here == told {
            return None;
        }
        let watch = self.watches.get_mut(&id)?;
        if here {
            watch.told.insert(key.clone());
        } else {
            watch.told.remove(key);
        }
        Some((watch.seen.clone(), Presence { key: key.to_string(), here }))
    }

    fn is_watched(&self, watch: u64, announcement: &Announcement) -> bool {
        self.watches.get(&watch).is_some_and(|watch| {
            watch.plane == announcement.plane
                && State::joins(watch.plane, watch.process, announcement.process)
                && matches(&watch.pattern, &announcement.key)
        })
    }

    fn watchers(&self, announcement: &Announcement) -> Vec<(u64, ProcessId)> {
        let watching = self.watches.iter().filter(|(id, _)| self.is_watched(**id, announcement));
        watching.map(|(&id, watch)| (id, watch.process)).collect()
    }
}
