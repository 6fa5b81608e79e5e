//! Parts of a hub. Each runs as a process of its own, or all run in one process.

use serde::{Deserialize, Serialize};

tampu_types::named_enum! {
    /// A part of a hub. A death or a full memory of one leaves the others alone.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum HubPart("part of a hub") {
        /// Serves the host's processes; with the spool and the keeper of log rings.
        Node => "node",
        /// Stores records and events; with routes and the account of bulk transfers.
        Collector => "collector",
        /// Receives logs of other programs.
        Inputs => "inputs",
        /// Bridges events from Tango and to Tango.
        Tango => "tango",
        /// Serves the logbook, and follows an ELOG.
        Book => "book",
        /// Serves programs that are not on the bus.
        Gateway => "gateway",
        /// Serves the page for Prometheus.
        Metrics => "metrics",
    }
}

impl HubPart {
    /// Returns true if the part reads bytes that anybody may send, so that it runs in a sandbox.
    pub fn is_exposed(self) -> bool {
        matches!(self, HubPart::Inputs | HubPart::Book | HubPart::Gateway | HubPart::Metrics)
    }

    /// The stage of the last starts.
    pub(crate) const LAST_STAGE: u8 = 2;

    /// Returns the stage of the start; a stage begins when the roles of the one before work.
    ///
    /// The inputs start last, so that a collector keeps their records.
    pub(crate) fn stage(self) -> u8 {
        match self {
            HubPart::Node => 0,
            HubPart::Collector | HubPart::Book => 1,
            HubPart::Inputs | HubPart::Tango | HubPart::Gateway | HubPart::Metrics => 2,
        }
    }
}
