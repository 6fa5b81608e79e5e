//! The routes in force, which can change while the hub runs.
//!
//! Decision: the former routes end before the targets of the new ones start, because both may write the same file.
//! Packets wait in the queue of the new routes meanwhile. What a target that cannot be written still has when it ends is
//! counted and logged as lost; the archive has it. Rejected: the same workers with other settings, where each setting
//! needs a change of its own.

use std::{collections::BTreeMap, path::PathBuf};

use parking_lot::{Mutex, RwLock};
use tampu_log::{
    Logger,
    collector::router::{Router, Sifted, TargetReport},
    warning,
};

use super::{
    RouteError, Routes,
    settings::{RouteSettings, TargetSettings},
};

type Settings = (Vec<RouteSettings>, BTreeMap<String, TargetSettings>);

/// Routes that can be exchanged.
#[derive(Debug)]
pub(crate) struct RouteSwitch {
    directory: PathBuf,
    logger: Logger,
    /// The settings of the running routes. Its lock is held during a change.
    settings: Mutex<Settings>,
    running: RwLock<Option<Routes>>,
}

impl RouteSwitch {
    /// Starts the configured routes. Files without a path are in `directory`.
    pub(crate) fn start(
        routes: &[RouteSettings],
        targets: &BTreeMap<String, TargetSettings>,
        directory: PathBuf,
        logger: Logger,
    ) -> Result<RouteSwitch, RouteError> {
        let switch = RouteSwitch { directory, logger, settings: Mutex::default(), running: RwLock::default() };
        switch.change(routes, targets)?;
        Ok(switch)
    }

    /// Exchanges the routes, if they differ. Invalid ones change nothing.
    pub(crate) fn change(&self, routes: &[RouteSettings], targets: &BTreeMap<String, TargetSettings>) -> Result<(), RouteError> {
        let mut settings = self.settings.lock();
        let wanted = (routes.to_vec(), targets.clone());
        if *settings == wanted {
            return Ok(());
        }
        let (next, packets) = Routes::prepare(routes, targets)?.unzip();
        let former = std::mem::replace(&mut *self.running.write(), next);
        for (name, lost) in former.map(Routes::finish).unwrap_or_default() {
            let target = name.as_str();
            warning!(self.logger, "{lost} records lost to the target '{name}': it could not be written when the routes changed; they are in the archive"; target = target);
        }
        *settings = wanted;
        match (&mut *self.running.write(), packets) {
            (Some(routes), Some(packets)) => routes.start(packets, targets, &self.directory, self.logger.clone()),
            _ => Ok(()),
        }
    }
}

impl Router for RouteSwitch {
    fn is_idle(&self) -> bool {
        self.running.read().is_none()
    }

    fn sift(&self, packet: &[u8]) -> Option<Sifted> {
        self.running.read().as_ref().and_then(|routes| routes.sift(packet))
    }

    fn route(&self, packet: Vec<u8>) {
        if let Some(routes) = &*self.running.read() {
            routes.route(packet);
        }
    }

    fn report(&self) -> Vec<TargetReport> {
        self.running.read().as_ref().map(Routes::report).unwrap_or_default()
    }
}
