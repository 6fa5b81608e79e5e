//! Counters of a process's loggers.

/// Counters a process can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoggerStats {
    /// Records dropped for lack of room; each is also reported in the log.
    pub dropped: u64,
    /// Records handed to the bus.
    pub published: u64,
    /// Bytes handed to the bus.
    pub bytes: u64,
    /// Calls that waited for room.
    pub waited: u64,
    /// Records handed to the bus, by the level's ordinal.
    pub by_level: [u64; 10],
    /// The most bytes that were seen waiting in one ring.
    pub high_water: u64,
    /// Bytes that wait in all rings until a keeper has committed them.
    pub waiting: u64,
    /// Records that could not be written to the local output; each is also reported in the log.
    pub unprinted: u64,
    /// Records suppressed by settings, as repetitions or above the limit of a second; each is also reported in the log.
    pub suppressed: u64,
}
