//! Settings that hubs have sent, of which some may never hold here.

use std::{collections::BTreeMap, sync::Arc};

use super::site::{BadHubSettings, HUBS, HUBS_OF_HOST, HubSettings, SETTINGS_LIMIT};
use crate::reader::StreamInfo;

/// Proved host and name of a sender, in lower case. Any process can take any name, so a name counts at its host alone.
type Sender = (Option<String>, String);

/// Settings that hubs have sent. Only those of a believed sender are decoded.
#[derive(Debug, Default)]
pub struct HeardHubs {
    hubs: BTreeMap<Sender, Heard>,
}

#[derive(Debug)]
struct Heard {
    stream: Arc<StreamInfo>,
    /// The newest octets, until they are decoded.
    sent: Option<Vec<u8>>,
    settings: Option<HubSettings>,
}

impl HeardHubs {
    /// Remembers what a stream has carried, in place of what the same sender has sent before.
    pub fn hear(&mut self, stream: Arc<StreamInfo>, bytes: Vec<u8>) -> Result<(), BadHubSettings> {
        if bytes.len() > SETTINGS_LIMIT {
            return Err(BadHubSettings::Long { length: bytes.len() });
        }
        let sender: Sender = (stream.host.as_ref().map(|host| host.to_lowercase()), stream.source.as_str().to_lowercase());
        if let Some(heard) = self.hubs.get_mut(&sender) {
            heard.stream = stream;
            heard.sent = Some(bytes);
            return Ok(());
        }
        let of_host = self.hubs.keys().filter(|(host, _)| host.is_some() && *host == sender.0).count();
        if self.hubs.len() >= HUBS || of_host >= HUBS_OF_HOST {
            return Err(BadHubSettings::Many);
        }
        self.hubs.insert(sender, Heard { stream, sent: Some(bytes), settings: None });
        Ok(())
    }

    /// Reports if nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.hubs.is_empty()
    }

    /// Returns the settings of the believed senders, sorted by host and name. It decodes what is new of them, and passes the
    /// number of settings that this release cannot read to `decoded`, or the error. After an error the settings before hold.
    pub fn believed(
        &mut self,
        is_believed: impl Fn(&StreamInfo) -> bool,
        mut decoded: impl FnMut(&StreamInfo, Result<usize, BadHubSettings>),
    ) -> Vec<&HubSettings> {
        let mut all: Vec<&HubSettings> = Vec::new();
        for heard in self.hubs.values_mut() {
            if !is_believed(&heard.stream) {
                continue;
            }
            if let Some(bytes) = heard.sent.take() {
                match HubSettings::decode(&bytes) {
                    Ok((settings, left_out)) => {
                        heard.settings = Some(settings);
                        decoded(&heard.stream, Ok(left_out));
                    }
                    Err(why) => decoded(&heard.stream, Err(why)),
                }
            }
            all.extend(&heard.settings);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Incarnation, Partition, SourceName, TopicName};

    use super::*;
    use crate::topic_settings::{SITE_QOS, SITE_QOS_TYPE};

    fn stream(host: Option<&str>, name: &str) -> Arc<StreamInfo> {
        Arc::new(StreamInfo {
            source: SourceName::new(name).unwrap(),
            incarnation: Incarnation::default(),
            host: host.map(str::to_owned),
            stream: 1,
            topic: TopicName::new(SITE_QOS).unwrap(),
            partition: Partition::everybody(),
            type_tag: SITE_QOS_TYPE,
        })
    }

    fn octets(hub: &str) -> Vec<u8> {
        HubSettings { hub: hub.to_owned(), ..HubSettings::default() }.encode().unwrap()
    }

    /// Returns the names in the settings of these hosts, and the number of samples that were decoded.
    fn of_hosts(heard: &mut HeardHubs, hosts: &[&str]) -> (Vec<String>, usize) {
        let mut count = 0;
        let is_believed = |stream: &StreamInfo| stream.host.as_deref().is_some_and(|host| hosts.contains(&host));
        let believed = heard.believed(is_believed, |_, _| count += 1);
        let names: Vec<String> = believed.into_iter().map(|hub| hub.hub.clone()).collect();
        (names, count)
    }

    #[test]
    fn another_host_cannot_replace_what_a_believed_one_has_sent() {
        let mut heard = HeardHubs::default();
        heard.hear(stream(Some("good"), "hub@good"), octets("old")).unwrap();
        heard.hear(stream(Some("Good"), "Hub@good"), octets("good")).unwrap();
        heard.hear(stream(Some("bad"), "hub@good"), octets("bad")).unwrap();
        assert_eq!(of_hosts(&mut heard, &["Good"]), (vec!["good".to_owned()], 1), "the newest alone is decoded");
        assert_eq!(of_hosts(&mut heard, &["Good", "bad"]), (vec!["bad".to_owned(), "good".to_owned()], 1));
    }

    #[test]
    fn names_of_one_host_leave_room_for_others() {
        let mut heard = HeardHubs::default();
        let refused = (0..1000).filter(|number| heard.hear(stream(Some("bad"), &format!("hub{number}")), octets("x")).is_err());
        assert_eq!(refused.count(), 1000 - HUBS_OF_HOST);
        heard.hear(stream(Some("good"), "hub@good"), octets("good")).unwrap();
        assert_eq!(of_hosts(&mut heard, &["good"]).0, ["good"]);
        let mut unproved = HeardHubs::default();
        let kept = (0..1000).filter(|number| unproved.hear(stream(None, &format!("hub{number}")), octets("x")).is_ok());
        assert_eq!(kept.count(), HUBS);
    }

    #[test]
    fn bad_octets_of_a_believed_host_leave_its_settings_as_they_are() {
        let mut heard = HeardHubs::default();
        heard.hear(stream(Some("good"), "hub"), octets("good")).unwrap();
        assert_eq!(of_hosts(&mut heard, &["good"]).0, ["good"]);
        heard.hear(stream(Some("good"), "hub"), b"[]".to_vec()).unwrap();
        assert_eq!(of_hosts(&mut heard, &["good"]), (vec!["good".to_owned()], 1));
        let long = heard.hear(stream(Some("good"), "hub"), vec![b' '; SETTINGS_LIMIT + 1]);
        assert!(matches!(long, Err(BadHubSettings::Long { .. })));
    }
}
