//! Counters of the bridge, and notices for its owner's log.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::Serialize;

use super::line::{BadLine, Hello, Serving};

/// Direction of events through the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From Tango to Tampu.
    FromTango,
    /// From Tampu to Tango.
    ToTango,
}

impl Direction {
    /// Returns the direction as text: `from Tango`, `to Tango`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::FromTango => "from Tango",
            Direction::ToTango => "to Tango",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Default)]
pub(super) struct BridgeCounters {
    pub from_tango: AtomicU64,
    pub to_tango: AtomicU64,
    pub lost_from_tango: AtomicU64,
    pub lost_to_tango: AtomicU64,
    pub not_carried_from_tango: AtomicU64,
    pub not_carried_to_tango: AtomicU64,
    pub gaps: AtomicU64,
    pub refused: AtomicU64,
    pub unreadable: AtomicU64,
    pub restarts: AtomicU64,
    pub not_sending: AtomicU64,
    pub from_tango_attributes: AtomicU64,
    pub silent_attributes: AtomicU64,
    pub to_tango_attributes: AtomicU64,
}

impl BridgeCounters {
    pub fn lost(&self, direction: Direction, count: u64) {
        let of = match direction {
            Direction::FromTango => &self.lost_from_tango,
            Direction::ToTango => &self.lost_to_tango,
        };
        of.fetch_add(count, Ordering::Relaxed);
    }

    pub fn not_carried(&self, direction: Direction, count: u64) {
        let of = match direction {
            Direction::FromTango => &self.not_carried_from_tango,
            Direction::ToTango => &self.not_carried_to_tango,
        };
        of.fetch_add(count, Ordering::Relaxed);
    }

    pub fn report(&self) -> BridgeReport {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        BridgeReport {
            from_tango: now(&self.from_tango),
            to_tango: now(&self.to_tango),
            lost_from_tango: now(&self.lost_from_tango),
            lost_to_tango: now(&self.lost_to_tango),
            not_carried_from_tango: now(&self.not_carried_from_tango),
            not_carried_to_tango: now(&self.not_carried_to_tango),
            gaps: now(&self.gaps),
            refused: now(&self.refused),
            unreadable: now(&self.unreadable),
            restarts: now(&self.restarts),
            not_sending: now(&self.not_sending),
            from_tango_attributes: now(&self.from_tango_attributes),
            silent_attributes: now(&self.silent_attributes),
            to_tango_attributes: now(&self.to_tango_attributes),
        }
    }
}

/// Counters of the bridge since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct BridgeReport {
    /// Events of Tango that were published.
    pub from_tango: u64,
    /// Events that were given to the device server.
    pub to_tango: u64,
    /// Events of Tango for which there was no room.
    pub lost_from_tango: u64,
    /// Events for Tango for which there was no room.
    pub lost_to_tango: u64,
    /// Events of Tango that cannot be Tampu's.
    pub not_carried_from_tango: u64,
    /// Events that cannot be Tango's.
    pub not_carried_to_tango: u64,
    /// Reports of missed events by Tango or the bus.
    pub gaps: u64,
    /// Attributes that cannot be bridged.
    pub refused: u64,
    /// Lines of the Python side that could not be read.
    pub unreadable: u64,
    /// Restarts of a Python process that died.
    pub restarts: u64,
    /// Attributes of Tango that turned out to send no change events.
    pub not_sending: u64,
    /// Attributes of Tango that are followed.
    pub from_tango_attributes: u64,
    /// Followed attributes whose source is silent.
    pub silent_attributes: u64,
    /// Attributes of Tampu that are served.
    pub to_tango_attributes: u64,
}

impl fmt::Display for BridgeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "from Tango {} attributes ({} silent), {} events; to Tango {} attributes, {} events; {} lost, {} gaps, {} not carried, {} restarts",
            self.from_tango_attributes,
            self.silent_attributes,
            self.from_tango,
            self.to_tango_attributes,
            self.to_tango,
            self.lost_from_tango + self.lost_to_tango,
            self.gaps,
            self.not_carried_from_tango + self.not_carried_to_tango,
            self.restarts,
        )
    }
}

/// A notice of the bridge to its owner, as text one line for the log.
#[derive(Debug)]
pub enum BridgeNotice {
    /// A Python process is there.
    Began {
        /// For which direction.
        direction: Direction,
        /// Versions of PyTango and Tango.
        hello: Hello,
    },
    /// It died, or could not be started.
    Ended {
        /// For which direction.
        direction: Direction,
        why: String,
        /// Time until the next start.
        again: Duration,
    },
    /// The device server begins anew, because devices have come.
    Anew,
    /// The device server is there.
    Serving(Serving),
    /// No attribute of Tango falls under a pattern.
    Nothing(String),
    /// Tango does not hear a device.
    Silent {
        device: String,
        /// Error that Tango reports.
        why: String,
    },
    /// It is heard again.
    Heard { device: String },
    /// An attribute cannot be bridged.
    Refused { attribute: String, why: String },
    /// Events did not find room.
    Lost {
        /// On which way.
        direction: Direction,
        /// Of which attribute.
        attribute: String,
        count: u64,
    },
    /// An event cannot be carried.
    NotCarried {
        /// On which way.
        direction: Direction,
        /// Of which attribute.
        attribute: String,
        why: String,
    },
    /// Something did not work, or should be known.
    Remark {
        /// With which attribute.
        attribute: Option<String>,
        what: String,
    },
    /// A line of the Python process made no sense.
    Unreadable(BadLine),
}

impl BridgeNotice {
    /// Returns whether the notice reports a problem.
    pub fn is_trouble(&self) -> bool {
        !matches!(self, BridgeNotice::Began { .. } | BridgeNotice::Anew | BridgeNotice::Serving(_) | BridgeNotice::Heard { .. })
    }
}

impl fmt::Display for BridgeNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BridgeNotice::Began { direction, hello } => {
                write!(f, "{direction}: PyTango {} (Tango {}) is there", hello.pytango, hello.tango)
            }
            BridgeNotice::Ended { direction, why, again } => {
                write!(f, "{direction}: {why}; it is started again in {:.1} s", again.as_secs_f64())
            }
            BridgeNotice::Anew => write!(f, "to Tango: devices have come, the device server begins anew"),
            BridgeNotice::Serving(serving) => {
                let (attributes, devices) = (serving.attributes.len(), serving.devices.len());
                let shown: Vec<&str> = serving.devices.iter().take(3).map(String::as_str).collect();
                let more = if devices > shown.len() { ", ..." } else { "" };
                write!(f, "to Tango: {attributes} attributes in {devices} devices: {}{more}", shown.join(", "))
            }
            BridgeNotice::Nothing(pattern) => {
                write!(f, "from Tango: no attribute of a device that runs falls under {pattern} yet")
            }
            BridgeNotice::Silent { device, why } => write!(f, "from Tango: {device} is silent: {why}"),
            BridgeNotice::Heard { device } => write!(f, "from Tango: {device} sends again"),
            BridgeNotice::Refused { attribute, why } => write!(f, "{attribute} is not bridged: {why}"),
            BridgeNotice::Lost { direction, attribute, count } => {
                write!(f, "{direction}: {count} events of {attribute} lost: no room")
            }
            BridgeNotice::NotCarried { direction, attribute, why } => {
                write!(f, "{direction}: an event of {attribute} cannot be carried: {why}")
            }
            BridgeNotice::Remark { attribute: Some(attribute), what } => write!(f, "{attribute}: {what}"),
            BridgeNotice::Remark { attribute: None, what } => write!(f, "{what}"),
            BridgeNotice::Unreadable(bad) => write!(f, "{bad}"),
        }
    }
}
