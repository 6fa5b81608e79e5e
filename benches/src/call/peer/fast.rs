//! The `log` crate with `fast_log` behind it.

use std::path::Path;

use crate::call::cost::Peer;

/// The process's logger.
#[derive(Debug)]
pub struct Fast;

impl Fast {
    /// Creates a logger that writes to this file.
    pub fn to(path: &Path) -> Result<Fast, String> {
        let config = fast_log::Config::new().level(log::LevelFilter::Info).file(&path.to_string_lossy()).chan_len(None);
        fast_log::init(config).map_err(|e| e.to_string())?;
        Ok(Fast)
    }
}

impl Peer for Fast {
    fn hand(&self) -> impl FnMut(u64, u64, &'static str) {
        |number, angle, state| log::info!("antenna {} at {} is {}", number, angle, state)
    }

    fn finish(self) -> Result<bool, String> {
        fast_log::flush().map_err(|e| e.to_string())?.wait();
        Ok(true)
    }
}
