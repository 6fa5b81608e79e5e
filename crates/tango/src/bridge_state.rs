//! State shared by both directions of a bridge.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tampu_bus::clock::Gate;

use crate::{
    notice::{BridgeCounters, BridgeNotice},
    settings::{Database, TangoSettings},
};

/// Prefix of the source names of bridges. Events of such a source came from Tango, and no bridge serves them to Tango again.
pub const SOURCE: &str = "tango@";

/// Settings, counters and the stop signal of a bridge.
pub(crate) struct BridgeState {
    pub settings: TangoSettings,
    pub database: Database,
    pub counts: BridgeCounters,
    report: Box<dyn Fn(BridgeNotice) + Send + Sync>,
    stop: AtomicBool,
    gate: Gate,
}

impl BridgeState {
    pub fn new(
        settings: TangoSettings,
        database: Database,
        report: impl Fn(BridgeNotice) + Send + Sync + 'static,
    ) -> BridgeState {
        BridgeState {
            settings,
            database,
            counts: BridgeCounters::default(),
            report: Box::new(report),
            stop: AtomicBool::new(false),
            gate: Gate::default(),
        }
    }

    /// Reports a notice to the owner of the bridge.
    pub fn notify(&self, notice: BridgeNotice) {
        (self.report)(notice);
    }

    /// Stops both directions.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.gate.open();
    }

    /// Returns whether the bridge stops.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Sleeps until the bridge stops, at most this long. Returns whether it stops.
    pub fn wait(&self, longest: Duration) -> bool {
        let seen = self.gate.openings();
        if !self.stopped() {
            self.gate.wait_host(seen, longest);
        }
        self.stopped()
    }
}
