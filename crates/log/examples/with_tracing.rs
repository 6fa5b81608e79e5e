//! A program that speaks through `tracing`: `cargo run -p tampu-log --features tracing --example with_tracing`, beside a hub
//! (`make run`), and `tampu --domain demo log tail` shows it. `TAMPU_DOMAIN=demo` leads it there; with `TAMPU_LOG_LOCAL=Debug` it
//! prints what it logs.

use std::error::Error;

use tampu_log::{LogSettings, Logger, bridge};

/// As a library would have it that has never heard of us.
mod mount {
    #[tracing::instrument]
    pub fn follow(axis: &str, target: f64) {
        tracing::debug!("following {target:.1}");
        if target > 269.0 {
            tracing::warn!(limit = 270, "cable wrap at {target:.1}");
        }
    }
}

/// Logs a little.
pub fn main() -> Result<(), Box<dyn Error>> {
    let logger = Logger::open(LogSettings::from_env("CONTROL/DV01".parse()?)?)?;
    let _flush = bridge::tracing::install(&logger)?;
    let _scan = tracing::info_span!("scan", scan = 7).entered();
    tracing::info!(target: "observation", "scan begins");
    for target in [268.2, 269.9] {
        mount::follow("az", target);
    }
    Ok(())
}
