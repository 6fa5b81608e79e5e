//! Opens the engine that the settings name.

use std::sync::Arc;

use super::settings::Settings;
use crate::engine::{DRIVERS, Driver, Engine, EngineError};

/// Names of the engines of this build; the first one is the default.
pub fn engine_names() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().map(|driver| driver.name)
}

/// Returns true if an engine of this build, or its links, report through `tracing` under this target.
pub fn is_target_of_engine(target: &str) -> bool {
    DRIVERS.iter().any(|driver| target.starts_with(driver.name))
}

impl Settings {
    /// Joins through the engine that these settings name.
    pub fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        (driver(self)?.open)(self)
    }
}

/// Returns the engine that these settings name.
pub(super) fn driver(settings: &Settings) -> Result<&'static Driver, EngineError> {
    let found = match &settings.engine {
        None => DRIVERS.first(),
        Some(name) => DRIVERS.iter().find(|driver| driver.name.eq_ignore_ascii_case(name)),
    };
    found.ok_or_else(|| {
        let known = engine_names().collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        EngineError::Unknown { name: settings.engine.clone().unwrap_or_default(), known }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_this_build_lacks_is_named_beside_those_it_has() {
        let settings = Settings { engine: Some("pigeon".to_owned()), ..Settings::isolated("/nowhere") };
        let error = settings.open().err().unwrap().to_string();
        assert!(error.contains("'pigeon'") && engine_names().all(|name| error.contains(name)), "{error}");
    }
}
