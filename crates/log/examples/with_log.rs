//! A program whose libraries log through the `log` crate: `cargo run -p tampu-log --features log --example with_log`, beside a hub
//! (`make run`), and `tampu --domain demo log tail` shows it. `TAMPU_DOMAIN=demo` leads it there; with `TAMPU_LOG_LOCAL=Debug` it
//! prints what it logs.

use std::error::Error;

use tampu_log::{LogSettings, Logger, bridge};

/// As a library would have it that has never heard of us.
mod mount {
    pub fn follow(target: f64) {
        log::debug!(axis = "az"; "following {target:.1}");
        if target > 269.0 {
            log::warn!(axis = "az", limit = 270; "cable wrap at {target:.1}");
        }
    }
}

/// Logs a little.
pub fn main() -> Result<(), Box<dyn Error>> {
    let logger = Logger::open(LogSettings::from_env("CONTROL/DV01".parse()?)?)?;
    let _flush = bridge::log::install(&logger)?;
    log::info!(target: "observation", "scan {} begins", 7);
    [268.2, 269.9].into_iter().for_each(mount::follow);
    Ok(())
}
