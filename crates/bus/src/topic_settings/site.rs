//! Settings of all hubs of a site, in the run-time directory and between hosts.
//!
//! ```text
//! own file of the hub -> topic `site/qos` -> every other hub with a node
//!                   \-> qos.json in the run-time directory <- merged -'
//!                        `-> every process of the host, at the start and when it changes
//! ```

use std::{collections::BTreeMap, io, path::Path};

use serde::{Deserialize, Deserializer, Serialize};

use super::{patch::QosPatch, table::QosTable};
use crate::{
    run_dir::SITE_SETTINGS,
    watched_file::{self, Missing, WatchedFile},
    writer::TypeTag,
};

/// Topic on which each hub publishes its settings. The last sample of each stream counts.
pub const SITE_QOS: &str = "site/qos";
/// Type of its samples.
pub const SITE_QOS_TYPE: TypeTag = TypeTag { id: 10, version: 1 };

/// Hubs whose settings are remembered.
pub(super) const HUBS: usize = 256;
/// Hubs of one proved host among them.
pub(super) const HUBS_OF_HOST: usize = 4;

/// Greatest length of the settings of one hub as JSON, in bytes.
pub const SETTINGS_LIMIT: usize = 256 << 10;

/// Settings of one hub, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HubSettings {
    /// Name of the hub.
    pub hub: String,
    /// Its settings. Those that this release cannot read are left out.
    #[serde(deserialize_with = "readable", default)]
    pub topic: Vec<QosPatch>,
    /// Settings of other hubs that hold at this one, for processes that know no hub but this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<HubSettings>,
}

/// Error of settings that another hub sent.
#[derive(Debug, thiserror::Error)]
pub enum BadHubSettings {
    /// The settings are too long.
    #[error("settings of topics with {length} bytes; at most {SETTINGS_LIMIT} are sent to other hubs")]
    Long {
        /// Length in bytes.
        length: usize,
    },
    /// The octets are no settings.
    #[error("invalid settings of topics: {0}")]
    Json(#[from] serde_json::Error),
    /// The octets are JSON of another form.
    #[error("invalid settings of topics: no JSON object")]
    NoObject,
    /// The settings of enough other hubs are remembered.
    #[error("settings of topics, but those of {HUBS} hubs, {HUBS_OF_HOST} of one host, are the most that hold")]
    Many,
}

/// Reads the settings that this release knows. A later release may have further conditions, without which a setting would
/// apply to other streams. So a setting with something unknown is left out as a whole.
fn readable<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<QosPatch>, D::Error> {
    let all = Vec::<serde_json::Value>::deserialize(from)?;
    let known = all.into_iter().filter_map(|one| serde_json::from_value::<QosPatch>(one).ok());
    Ok(known.filter(|patch| patch.check().is_ok()).collect())
}

impl HubSettings {
    /// Encodes the settings for other hubs.
    pub fn encode(&self) -> Result<Vec<u8>, BadHubSettings> {
        let bytes = serde_json::to_vec(self)?;
        if bytes.len() > SETTINGS_LIMIT {
            return Err(BadHubSettings::Long { length: bytes.len() });
        }
        Ok(bytes)
    }

    /// Decodes the settings of another hub. Also returns the number of settings that this release cannot read.
    pub fn decode(bytes: &[u8]) -> Result<(HubSettings, usize), BadHubSettings> {
        if bytes.len() > SETTINGS_LIMIT {
            return Err(BadHubSettings::Long { length: bytes.len() });
        }
        let all: serde_json::Value = serde_json::from_slice(bytes)?;
        // A structure is read from an array too.
        if !all.is_object() {
            return Err(BadHubSettings::NoObject);
        }
        let sent = all["topic"].as_array().map_or(0, Vec::len);
        let settings: HubSettings = serde_json::from_value(all)?;
        let left_out = sent.saturating_sub(settings.topic.len());
        Ok((settings, left_out))
    }
}

/// Settings of all hubs of a site as they hold on one host, in order: later ones beat earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteSettings {
    /// The hubs by name; the hub of the host is the last one.
    pub hubs: Vec<HubSettings>,
}

impl SiteSettings {
    /// Joins what several hubs have published. Of each hub its own word counts before that of others. A single hub comes
    /// last, after those that hold at it.
    pub(crate) fn of(published: &[&HubSettings]) -> SiteSettings {
        let own = |hub: &HubSettings| HubSettings { others: Vec::new(), ..hub.clone() };
        if let [hub] = published {
            return SiteSettings { hubs: hub.others.iter().chain([*hub]).map(own).collect() };
        }
        let others = published.iter().flat_map(|hub| &hub.others);
        let by_name: BTreeMap<&str, &HubSettings> =
            others.chain(published.iter().copied()).map(|hub| (hub.hub.as_str(), hub)).collect();
        SiteSettings { hubs: by_name.into_values().map(own).collect() }
    }

    /// Returns the settings as a table.
    pub fn table(&self) -> QosTable {
        // Invalid settings are left out where they are read.
        let of = |hub: &HubSettings| QosTable::from_place(&format!("the hub {}", hub.hub), hub.topic.clone()).unwrap_or_default();
        self.hubs.iter().fold(QosTable::default(), |table, hub| table.and(of(hub)))
    }
}

/// Writes the settings for the processes of this host into the domain's part of the run-time directory.
pub fn publish_settings(directory: &Path, settings: &SiteSettings) -> io::Result<()> {
    watched_file::publish(directory, SITE_SETTINGS, settings)
}

/// Returns the file of the settings. A process that outlives its hub keeps what it has.
pub(crate) fn settings_file(directory: &Path) -> WatchedFile<SiteSettings> {
    WatchedFile::new(directory, SITE_SETTINGS, Missing::Last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tampu_types::TopicName;

    use super::*;

    fn hub(name: &str, keep: usize) -> HubSettings {
        let patch = QosPatch { topics: "log/*".to_owned(), keep: Some(keep), ..QosPatch::default() };
        HubSettings { hub: name.to_owned(), topic: vec![patch], others: Vec::new() }
    }

    #[test]
    fn settings_travel_and_the_last_hub_decides() {
        let site = SiteSettings { hubs: vec![hub("a", 1), hub("b", 2)] };
        assert_eq!(site.table().of(&TopicName::new("log/info").unwrap()).keep, 2);
        let bytes = hub("a", 1).encode().unwrap();
        assert_eq!(bytes, br#"{"hub":"a","topic":[{"topics":"log/*","keep":1}]}"#);
        assert_eq!(HubSettings::decode(&bytes).unwrap(), (hub("a", 1), 0));
    }

    #[test]
    fn the_only_hub_comes_last_and_each_hub_speaks_for_itself() {
        let with_others = HubSettings { others: vec![hub("b", 1), hub("c", 2)], ..hub("a", 3) };
        assert_eq!(SiteSettings::of(&[&with_others]).hubs, [hub("b", 1), hub("c", 2), hub("a", 3)]);
        assert_eq!(SiteSettings::of(&[&hub("b", 9), &with_others]).hubs, [hub("a", 3), hub("b", 9), hub("c", 2)]);
        let bytes = with_others.encode().unwrap();
        assert_eq!(HubSettings::decode(&bytes).unwrap(), (with_others, 0));
    }

    #[test]
    fn what_a_later_release_adds_is_left_out_whole() {
        let text = br#"{"hub":"a","colour":1,"topic":[{"topics":"log/*","keep":1},{"topics":"log/*","moon":"full","keep":9},
                     {"topics":"log/*","max_wait_ms":99999999}]}"#;
        assert_eq!(HubSettings::decode(text).unwrap(), (hub("a", 1), 2));
        let file: SiteSettings = serde_json::from_str(&format!("{{\"hubs\":[{}]}}", String::from_utf8_lossy(text))).unwrap();
        assert_eq!(file.hubs, [hub("a", 1)]);
        let long = HubSettings { hub: "x".repeat(SETTINGS_LIMIT), ..HubSettings::default() };
        assert!(matches!(long.encode(), Err(BadHubSettings::Long { .. })));
        assert!(matches!(HubSettings::decode(&[b' '; SETTINGS_LIMIT + 1]), Err(BadHubSettings::Long { .. })));
        let array = br#"["x",[{"topics":"a"}]]"#;
        assert!(matches!(HubSettings::decode(array), Err(BadHubSettings::NoObject)));
    }

    proptest! {
        #[test]
        fn any_octets_are_decoded_or_refused(octets: Vec<u8>) {
            let _ = HubSettings::decode(&octets);
        }
    }
}
