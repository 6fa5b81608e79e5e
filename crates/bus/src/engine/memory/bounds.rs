//! Constants of the simulated network.

use crate::engine::Limits;

/// Name of the engine.
pub const NAME: &str = "memory";

/// Declared limits of the engine.
pub const LIMITS: Limits = Limits { batch: 60_000, message: 16 << 20 };

/// Delay of a [`Tick`](crate::engine::Tick) after the opening of its gate, and its least distance from the last call,
/// in ns. With 0, work that never ends would stop the clock.
pub const SOON: u64 = 20_000;

/// Start of the simulated UTC clock: 2026-01-01T00:00:00, in ns.
pub const UTC_START: i64 = 1_767_225_600_000_000_000;
