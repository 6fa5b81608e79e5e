//! The site's settings of topics at a process that is connected to a hub elsewhere: there is no file of a node.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    engine::Engine,
    reader::{Event, Reader},
    topic_settings::{HubSettings, SITE_QOS_TYPE, SiteSettings},
};

/// Processes whose settings are remembered; further ones are left out.
const PUBLISHERS: usize = 256;

/// Settings that hubs have published. Those of the hub that the process is connected to hold, together with those that hold
/// there. Where nothing proves hosts, all hold.
pub(super) struct SiteReader {
    reader: Reader,
    /// The proved host and the settings of each publishing process, by its name in lower case.
    heard: BTreeMap<String, (Option<String>, HubSettings)>,
    current: Arc<SiteSettings>,
}

impl SiteReader {
    /// Reads the settings with this reader of their topic.
    pub fn new(reader: Reader) -> SiteReader {
        SiteReader { reader, heard: BTreeMap::new(), current: Arc::default() }
    }

    /// Returns the settings that hold. It is the same [`Arc`] as long as they are the same.
    pub fn current(&mut self, engine: &dyn Engine) -> Arc<SiteSettings> {
        while let Some(event) = self.reader.next(Duration::ZERO) {
            let Event::Sample(sample) = event else { continue };
            // The audit is the hub's: it reports settings that are invalid or of another release.
            let decoded = sample.payload.to_vec().ok().and_then(|bytes| HubSettings::decode(&bytes).ok());
            let Some((settings, _)) = decoded.filter(|_| sample.stream.type_tag == SITE_QOS_TYPE) else { continue };
            let name = sample.stream.source.as_str().to_lowercase();
            if self.heard.len() < PUBLISHERS || self.heard.contains_key(&name) {
                self.heard.insert(name, (sample.stream.host.clone(), settings));
            }
        }
        let site = self.in_force(engine);
        if *self.current != site {
            self.current = Arc::new(site);
        }
        self.current.clone()
    }

    fn in_force(&self, engine: &dyn Engine) -> SiteSettings {
        if self.heard.is_empty() {
            return SiteSettings::default();
        }
        let hub = engine.host().map(|_| engine.hub_host());
        let is_believed = |host: &Option<String>| match &hub {
            None => true,
            Some(hub) => hub.is_some() && host.as_deref() == hub.as_deref(),
        };
        let believed: Vec<&HubSettings> =
            self.heard.values().filter(|(host, _)| is_believed(host)).map(|(_, settings)| settings).collect();
        SiteSettings::of(&believed)
    }
}
