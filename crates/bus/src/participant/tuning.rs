//! Settings of topics at a participant: the site's, and the program's own above them.

use std::{path::Path, sync::Arc};

use parking_lot::{Mutex, RwLock};

use super::site_reader::SiteReader;
use crate::{
    engine::Engine,
    reader::Reader,
    topic_settings::{QosTable, SiteSettings, settings_file},
    watched_file::WatchedFile,
};

/// The settings that hold for the streams of a participant.
pub(super) struct Tuning {
    /// Settings of the program and its environment.
    own: QosTable,
    /// The site's settings on this host; `None` without a run-time directory.
    file: Option<WatchedFile<SiteSettings>>,
    /// Reader of the site's settings, at a process that is connected to a hub elsewhere.
    reader: Mutex<Option<SiteReader>>,
    current: RwLock<InForce>,
}

/// Settings in force, and the site's among them.
struct InForce {
    site: Arc<SiteSettings>,
    table: Arc<QosTable>,
}

impl Tuning {
    /// Uses these settings above those in the domain's part of the run-time directory.
    pub fn new(own: QosTable, directory: Option<&Path>) -> Tuning {
        let in_force = InForce { site: Arc::default(), table: Arc::new(own.clone()) };
        let file = directory.map(settings_file);
        let tuning = Tuning { own, file, reader: Mutex::default(), current: RwLock::new(in_force) };
        tuning.read_file();
        tuning
    }

    /// Reads the site's settings with this reader of their topic, and no file of this host.
    pub fn read_with(&self, reader: Reader) {
        *self.reader.lock() = Some(SiteReader::new(reader));
    }

    /// Ends the reader.
    pub fn close(&self) {
        let reader = self.reader.lock().take();
        // Without the lock: the end of a reader sends messages.
        drop(reader);
    }

    /// Reads the site's settings again. Returns true if they have changed.
    pub fn refresh(&self, engine: &dyn Engine) -> bool {
        match &mut *self.reader.lock() {
            Some(reader) => self.follow(reader.current(engine)),
            None => self.read_file(),
        }
    }

    /// Returns true if settings of a hub have arrived.
    pub fn has_site(&self) -> bool {
        !self.current.read().site.hubs.is_empty()
    }

    fn read_file(&self) -> bool {
        self.file.as_ref().is_some_and(|file| self.follow(file.current()))
    }

    /// Takes over settings of the site. Returns true if they are others than before.
    fn follow(&self, site: Arc<SiteSettings>) -> bool {
        if Arc::ptr_eq(&self.current.read().site, &site) {
            return false;
        }
        let table = Arc::new(site.table().and(self.own.clone()));
        let mut current = self.current.write();
        let has_changed = current.site != site;
        *current = InForce { site, table };
        has_changed
    }

    /// Returns the settings that hold.
    pub fn table(&self) -> Arc<QosTable> {
        self.current.read().table.clone()
    }
}
