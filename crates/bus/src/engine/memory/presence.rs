//! Who is told that whom is here, and when.
//!
//! What a watcher should believe about a key is computed anew whenever something may have changed it; what it was told is
//! kept beside it, and only the difference is told. So presence is eventually right whatever happened in between, and says
//! nothing of a key that left and came back meanwhile, as engines do.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    key::matches,
    state::{Due, Plane, ProcessId, State},
};
use crate::engine::{Presence, Seen};

/// A key somebody announced.
pub struct Announcement {
    pub process: ProcessId,
    pub plane: Plane,
    pub key: Arc<str>,
    pub since: u64,
}

/// Somebody who wants to know.
pub struct Watch {
    pub process: ProcessId,
    pub plane: Plane,
    pub pattern: String,
    pub seen: Seen,
    pub told: BTreeSet<Arc<str>>,
}

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

    /// Takes an announcement back. Whom it cannot reach believes in it until the lease is over.
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

    pub fn watch(&mut self, now: u64, watch: Watch) -> u64 {
        let id = self.next_serial();
        let to = watch.process;
        self.watches.insert(id, watch);
        let keys: BTreeSet<Arc<str>> =
            self.announcements.values().filter(|one| self.is_watched(id, one)).map(|one| one.key.clone()).collect();
        let known = now + self.discovery;
        for key in keys {
            self.schedule(known, Due::Presence { watch: id, to, key });
        }
        id
    }

    /// Looks at everything everybody believes at this time: links have come or gone.
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

    /// What a watcher has to be told of a key now, if anything.
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
