//! The check of the routes in a configuration.

use tampu_types::glob::matches_ignoring_case;

use super::rules::Rules;
use crate::{
    config::{Config, Role, error::ConfigError},
    listen::ListenAddress,
};

/// Checks the routes of a configuration.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    Rules::new(&config.route, &config.target)?;
    if !config.route.is_empty() && !config.roles.contains(&Role::Collector) {
        let why = "routes need the role 'collector', which this hub does not have".to_owned();
        return Err(ConfigError::Value { setting: "route".to_owned(), why });
    }
    // Each record would return as a new record, endlessly.
    for (name, target) in config.target.iter().filter(|_| config.syslog.enabled) {
        for (way, door) in [("udp", config.syslog.udp), ("tcp", config.syslog.tcp)] {
            let ListenAddress::At(own) = door else { continue };
            let place = target.syslog.as_deref().and_then(|place| place.strip_prefix(way)?.trim().rsplit_once(':'));
            let own_host = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "[::1]") || host == own.ip().to_string();
            if place.is_some_and(|(host, port)| own_host(host) && port == own.port().to_string()) {
                let why = "it is this hub's own [syslog]: every record would return as a new one".to_owned();
                return Err(ConfigError::Value { setting: format!("[target.{name}] syslog"), why });
            }
        }
    }
    Ok(())
}

/// Checks that targets which were changed at run time send records only to hosts that the configuration names.
pub(crate) fn check_hosts(configured: &Config, changed: &Config) -> Result<(), ConfigError> {
    let own: Vec<&str> = configured.target.values().filter_map(|target| target.syslog.as_deref()).collect();
    for (name, target) in &changed.target {
        let Some(place) = target.syslog.as_deref().filter(|place| !own.contains(place)) else { continue };
        let address = place.split_once(' ').map_or(place, |(_, address)| address);
        if !configured.access.syslog_hosts.iter().any(|pattern| matches_ignoring_case(pattern, address)) {
            let why = format!(
                "no target of the configuration file has '{place}', and no pattern of syslog_hosts in [access] matches \
                 '{address}'; add it to syslog_hosts in the file, and restart the hub"
            );
            return Err(ConfigError::Value { setting: format!("[target.{name}] syslog"), why });
        }
    }
    Ok(())
}
