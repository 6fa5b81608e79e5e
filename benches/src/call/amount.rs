//! Amounts of calls, rounds and records of a run.

/// Amount of work in a run.
#[derive(Debug, Clone, clap::Args)]
pub struct Amount {
    /// Calls of a row or a round, all threads together.
    #[arg(long, default_value_t = 10_000)]
    pub calls: u64,
    /// Rounds in which each logger makes them.
    #[arg(long, default_value_t = 20)]
    pub rounds: usize,
    /// Records that each logger takes without a pause.
    #[arg(long, default_value_t = 1_000_000)]
    pub records: u64,
    /// Seconds for which a row goes on waiting for an acknowledgement of every call.
    #[arg(long, default_value_t = 20.0)]
    pub seconds: f64,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,10")]
    pub threads: Vec<usize>,
}
