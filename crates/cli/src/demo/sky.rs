//! State that the parts of the observatory share.

/// The state of the observation.
pub struct Sky {
    /// The observed target.
    pub target: &'static str,
    /// Number of the scan; 0 before the first.
    pub scan: u32,
    /// The run the scans belong to.
    pub run_id: String,
    /// True during an integration.
    pub integrating: bool,
    /// Antennas without a locked oscillator, as bits.
    pub unlocked: u32,
    /// Speed of the wind, m/s.
    pub wind: f64,
}

impl Default for Sky {
    fn default() -> Sky {
        Sky { target: "zenith", scan: 0, run_id: String::new(), integrating: false, unlocked: 0, wind: 6.0 }
    }
}

/// Targets of the observations.
pub const TARGETS: [&str; 8] = ["3C273", "J1924-2914", "NGC 1365", "HL Tau", "Titan", "Sgr A*", "Orion KL", "J0538-4405"];
