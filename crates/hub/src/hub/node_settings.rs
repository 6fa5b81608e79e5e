//! The settings of the node, read from the configuration and the file of the key.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use tampu_bus::{
    connect::{Endpoint, Key, NodeSettings, Settings},
    group::{BadGroupInterface, GroupSettings},
};
use tampu_types::TopicFilter;

use super::error::HubError;
use crate::config::{Config, ConfigError, Multicast};

/// Returns the settings of the node for a process with these settings of the bus.
pub(super) fn node_config(config: &Config, process: &Settings) -> Result<NodeSettings, HubError> {
    let endpoints = |setting: &str, texts: &[String]| -> Result<Vec<Endpoint>, HubError> {
        let parse = |text: &String| {
            text.parse().map_err(|why: tampu_bus::connect::BadEndpoint| {
                ConfigError::Value { setting: setting.to_owned(), why: why.to_string() }.into()
            })
        };
        texts.iter().map(parse).collect()
    };
    let mut node = NodeSettings::new(process.clone());
    node.listen = endpoints("network.listen", &config.network.listen)?;
    node.connect = endpoints("network.connect", &config.network.connect)?;
    node.encryption = config.bus_encryption();
    node.relays.clone_from(&config.network.relays);
    node.groups = config.network.multicast.iter().map(group).collect::<Result<_, _>>()?;
    node.key = config.network.key_file.as_deref().map(read_key).transpose()?;
    if let (Some(key), Some(path)) = (&node.key, &config.network.key_file) {
        for address in node.listen.iter().chain(&node.connect) {
            let Endpoint::Tcp(address) = address else { continue };
            let checked = node.encryption.check_key(key, address);
            checked.map_err(|why| HubError::Key { path: path.clone(), why: format!("{address}: {why}") })?;
        }
    }
    Ok(node)
}

/// Returns the settings of a multicast group.
fn group(settings: &Multicast) -> Result<GroupSettings, ConfigError> {
    let wrong = |field: &str, why: String| ConfigError::Value { setting: format!("network.multicast.{field}"), why };
    let interface = settings.interface.as_deref().map(str::parse).transpose();
    Ok(GroupSettings {
        port: settings.port,
        interface: interface.map_err(|why: BadGroupInterface| wrong("interface", why.to_string()))?,
        ttl: settings.ttl,
        topics: TopicFilter::new(&*settings.topics).map_err(|why| wrong("topics", why.to_string()))?,
        ..GroupSettings::new(settings.group)
    })
}

/// Reads the domain's key. A file that other users can read is an error.
fn read_key(path: &Path) -> Result<Key, HubError> {
    let wrong = |why: String| HubError::Key { path: path.to_owned(), why };
    let mode = fs::metadata(path).map_err(|error| wrong(error.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(wrong(format!("others may read it (mode {:o}); run chmod 600 on it", mode & 0o777)));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Key::new(text.trim()).map_err(|error| wrong(error.to_string()))
}
