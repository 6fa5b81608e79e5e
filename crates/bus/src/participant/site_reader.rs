//! The site's settings of topics at a process that is connected to a hub elsewhere: there is no file of a node.

use std::{sync::Arc, time::Duration};

use crate::{
    engine::Engine,
    reader::{Event, Reader, StreamInfo},
    topic_settings::{HeardHubs, SITE_QOS_TYPE, SiteSettings},
};

/// Events that one look takes. Further ones wait for the next look.
const EVENTS: usize = 64;

/// Settings that hubs have published. Those of the hub that the process is connected to hold, together with those that hold
/// there. Where nothing proves hosts, all hold.
pub(super) struct SiteReader {
    reader: Reader,
    heard: HeardHubs,
    current: Arc<SiteSettings>,
}

impl SiteReader {
    /// Reads the settings with this reader of their topic.
    pub fn new(reader: Reader) -> SiteReader {
        SiteReader { reader, heard: HeardHubs::default(), current: Arc::default() }
    }

    /// Returns the settings that hold. It is the same [`Arc`] as long as they are the same.
    pub fn current(&mut self, engine: &dyn Engine) -> Arc<SiteSettings> {
        for _ in 0..EVENTS {
            let Some(event) = self.reader.next(Duration::ZERO) else { break };
            let Event::Sample(sample) = event else { continue };
            if sample.stream.type_tag == SITE_QOS_TYPE
                && let Ok(bytes) = sample.payload.to_vec()
            {
                // The audit is the hub's: it reports settings that are invalid or of another release.
                let _ = self.heard.hear(sample.stream.clone(), bytes);
            }
        }
        let site = self.in_force(engine);
        if *self.current != site {
            self.current = Arc::new(site);
        }
        self.current.clone()
    }

    fn in_force(&mut self, engine: &dyn Engine) -> SiteSettings {
        if self.heard.is_empty() {
            return SiteSettings::default();
        }
        let hub = engine.host().map(|_| engine.hub_host());
        let is_believed = |stream: &StreamInfo| match &hub {
            None => true,
            Some(hub) => hub.is_some() && stream.host.as_deref() == hub.as_deref(),
        };
        SiteSettings::of(&self.heard.believed(is_believed, |_, _| {}))
    }
}
