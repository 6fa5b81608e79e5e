//! Opens the engine that the settings name.

use std::{fs, sync::Arc};

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
    /// Joins through the engine that these settings name; without a name, through that of this host's node.
    pub fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        (driver_beside_node(self)?.open)(self)
    }
}

/// Returns the engine of a process. Two engines do not carry each other's samples, so it is that of the host's node.
fn driver_beside_node(settings: &Settings) -> Result<&'static Driver, EngineError> {
    let Some(of_node) = engine_of_node(settings) else { return driver(settings) };
    match &settings.engine {
        Some(name) if !name.eq_ignore_ascii_case(&of_node) => Err(EngineError::OfNode { name: name.clone(), of_node }),
        _ if !engine_names().any(|name| name.eq_ignore_ascii_case(&of_node)) => Err(EngineError::NodeOnly { of_node }),
        _ => driver(&Settings { engine: Some(of_node), ..settings.clone() }),
    }
}

/// Returns the engine of the node that the process is going to connect to, if it is on this host: of the one that runs, or of
/// the last one, which may start again at any moment.
fn engine_of_node(settings: &Settings) -> Option<String> {
    if settings.hub.is_some() {
        return None;
    }
    // A node of an earlier release writes none. Joining checks the directory.
    fs::read_to_string(settings.run_dir.unchecked(&settings.domain).node_engine()).ok().map(|name| name.trim().to_owned())
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
        assert!(!std::path::Path::new("/nowhere").exists(), "nothing is made for it");
        assert!(error.contains("'pigeon'") && engine_names().all(|name| error.contains(name)), "{error}");
    }
}
