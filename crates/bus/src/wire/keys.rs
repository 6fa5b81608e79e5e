//! The keys of one domain. See `spec/decisions/0004-names.md`.
//!
//! A key names the host that sends under it, so that rules about links between hosts can be written with keys
//! (`spec/decisions/0020-proved-hosts.md`). The engine puts the name of its own host in the place of [`OWN_HOST`].

use std::collections::BTreeSet;

use tampu_types::{
    Domain, Incarnation, Partition, PartitionFilter, SourceName, TopicFilter, TopicName,
    name::{escape, unescape},
};

use crate::{engine::OWN_HOST, qos::Hold};

/// Starts of the keys of processes, readers, nodes and places of publishers, behind the start of all keys.
const ANNOUNCED: [&str; 4] = ["p/", "r/", "n/", "z/"];

/// Builder for the keys of a domain.
#[derive(Debug, Clone)]
pub struct Keys {
    root: String,
}

/// Description of a reader, which its presence carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderInfo {
    /// Incarnation of the reading process.
    pub incarnation: Incarnation,
    /// Number of the reader in that process.
    pub reader: u32,
    /// The name of the process, in lower case.
    pub source: String,
    /// Topics that it reads.
    pub topics: TopicFilter,
    /// Partitions that it reads.
    pub partitions: PartitionFilter,
    /// True if it acknowledges and refetches.
    pub reliable: bool,
    /// Time that it may hold its writers.
    pub hold: Hold,
    /// True if it connects directly to writers that allow it.
    pub direct: bool,
}

impl Keys {
    /// Makes the keys of this domain.
    pub fn new(domain: &Domain) -> Keys {
        Keys { root: format!("tampu/{}", escape(domain.as_str())) }
    }

    /// Returns the start of all keys.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the key of a topic's and partition's samples.
    pub fn data(&self, topic: &TopicName, partition: &Partition) -> String {
        format!("{}/d/{OWN_HOST}/{}/{}", self.root, topic.key(), partition.key())
    }

    /// Returns the patterns that cover the samples of a filter, from every host (`*`) or from one.
    pub fn data_patterns(&self, host: &str, topics: &TopicFilter, partitions: &PartitionFilter) -> Vec<String> {
        partitions.keys().iter().map(|chunk| format!("{}/d/{host}/{}/{chunk}", self.root, topics.key())).collect()
    }

    /// Returns the key of a topic's and partition's samples for those readers that read the host with this boot alone.
    pub fn data_within(&self, boot: u32, topic: &TopicName, partition: &Partition) -> String {
        format!("{}/h/{OWN_HOST}/{boot:08x}/{}/{}", self.root, topic.key(), partition.key())
    }

    /// Returns the patterns that cover such samples of a filter.
    pub fn data_patterns_within(&self, boot: u32, topics: &TopicFilter, partitions: &PartitionFilter) -> Vec<String> {
        let chunks = partitions.keys();
        chunks.iter().map(|chunk| format!("{}/h/*/{boot:08x}/{}/{chunk}", self.root, topics.key())).collect()
    }

    /// Returns the key of control messages to one participant, with the host chunk of its keys.
    pub fn control(&self, host: &str, to: Incarnation) -> String {
        format!("{}/c/{OWN_HOST}/{host}/{to}", self.root)
    }

    /// Returns the pattern of control messages to a participant of this process.
    pub fn controls(&self, to: Incarnation) -> String {
        format!("{}/c/*/{OWN_HOST}/{to}", self.root)
    }

    /// Returns the pattern of control messages to all processes of the host with this boot, which its node declares on other
    /// hosts.
    pub fn controls_of_host(&self, boot: u32) -> String {
        format!("{}/c/*/{OWN_HOST}/{boot:08x}$*", self.root)
    }

    /// Returns the key of a refetch of one stream from one participant's cache, with the host chunk of its keys.
    pub fn refetch(&self, host: &str, from: Incarnation, topic: &TopicName, partition: &Partition) -> String {
        format!("{}/q/{OWN_HOST}/{host}/{from}/{}/{}", self.root, topic.key(), partition.key())
    }

    /// Returns the key of the question for one participant's state, with the host chunk of its keys. Topics have no such chunk.
    pub fn state(&self, host: &str, of: Incarnation) -> String {
        format!("{}/q/{OWN_HOST}/{host}/{of}/_", self.root)
    }

    /// Returns the pattern of refetches from the caches of a participant of this process.
    pub fn refetches(&self, from: Incarnation) -> String {
        format!("{}/q/*/{OWN_HOST}/{from}/**", self.root)
    }

    /// Returns the pattern of refetches from all processes of the host with this boot, which its node declares on other hosts.
    pub fn refetches_of_host(&self, boot: u32) -> String {
        format!("{}/q/*/{OWN_HOST}/{boot:08x}$*/**", self.root)
    }

    /// Reports if a refetch's key names this stream.
    pub fn is_refetch_of(&self, key: &str, topic: &TopicName, partition: &Partition) -> bool {
        let stream =
            key.strip_prefix(&self.root).and_then(|rest| rest.strip_prefix("/q/")).and_then(|rest| rest.splitn(4, '/').nth(3));
        stream.is_some_and(|stream| stream == format!("{}/{}", topic.key(), partition.key()))
    }

    /// Returns the key of a question to a service of all members, on every host.
    pub fn service(&self, name: &TopicName) -> String {
        format!("{}/s/{OWN_HOST}/*/{}", self.root, name.key())
    }

    /// Returns the key of a question that nobody answers: no name of a service has this chunk.
    pub fn unanswered(&self) -> String {
        format!("{}/s/{OWN_HOST}/_", self.root)
    }

    /// Returns the pattern of questions to a service of one process.
    ///
    /// It differs between processes, because zenoh 1.10 keeps the connection of an ended process while another one has a
    /// service under the same key, and forgets a service of a router when another router withdraws the same key
    /// (`spec/decisions/0011-engine.md`). The wildcard at its end keeps the key from the numbers of a router (0004).
    pub fn questions(&self, to: Incarnation, name: &TopicName) -> String {
        format!("{}/s/*/{to}$*/{}", self.root, name.key())
    }

    /// Returns the pattern of questions to a service of the node with this boot.
    pub fn node_questions(&self, boot: u32, name: &TopicName) -> String {
        format!("{}/s/*/{boot:08x}/{}", self.root, name.key())
    }

    /// Returns the key of a question to a service of the node with this boot.
    pub fn question_to(&self, boot: u32, name: &TopicName) -> String {
        format!("{}/s/{OWN_HOST}/{boot:08x}/{}", self.root, name.key())
    }

    /// Returns the key of samples for a multicast group, by its number at the node of the host with this boot.
    pub fn group(&self, boot: u32, number: u32, topic: &TopicName, partition: &Partition) -> String {
        format!("{}/g/{OWN_HOST}/{boot:08x}/{number}/{}/{}", self.root, topic.key(), partition.key())
    }

    /// Returns the pattern of samples that processes of a host send to a group.
    pub fn group_sent(&self, boot: u32, number: u32) -> String {
        format!("{}/g/{OWN_HOST}/{boot:08x}/{number}/**", self.root)
    }

    /// Returns the key of samples that a group has brought to the host with this boot. `host` is the chunk of the sending host,
    /// `place` the end of the key at its source.
    pub fn group_arrived(&self, host: &str, boot: u32, place: &str) -> String {
        format!("{}/g/{host}/{boot:08x}/in/{place}", self.root)
    }

    /// Returns the patterns that cover samples of a filter which a group brings to the host with this boot, or takes there.
    pub fn group_patterns(&self, boot: u32, topics: &TopicFilter, partitions: &PartitionFilter) -> Vec<String> {
        let chunks = partitions.keys();
        chunks.iter().map(|chunk| format!("{}/g/*/{boot:08x}/*/{}/{chunk}", self.root, topics.key())).collect()
    }

    /// Returns the end of the key of samples for a group: their topic and partition.
    pub fn group_place<'a>(&self, key: &'a str) -> Option<&'a str> {
        self.after_host(key, "/g/")?.splitn(3, '/').nth(2)
    }

    /// Returns the key of a node's news of announced keys, for all processes at its place in the file system.
    pub fn news(&self, place: &str) -> String {
        format!("{}/a/{OWN_HOST}/{place}/*", self.root)
    }

    /// Returns the pattern of a node's news for one process. It differs between processes, because zenoh 1.10 keeps the
    /// connection of an ended process while another one has the same subscription (`spec/decisions/0011-engine.md`).
    pub fn news_for(&self, place: &str, process: Incarnation) -> String {
        format!("{}/a/*/{place}/{process}", self.root)
    }

    /// Returns the key of a question to a node for announced keys.
    pub fn question_for_news(&self, place: &str) -> String {
        format!("{}/a/{OWN_HOST}/{place}/_", self.root)
    }

    /// Returns the pattern of questions to a node for announced keys.
    pub fn questions_for_news(&self, place: &str) -> String {
        format!("{}/a/*/{place}/_", self.root)
    }

    /// Returns the pattern of all keys of the domain.
    pub fn all(&self) -> String {
        format!("{}/**", self.root)
    }

    /// Returns the part of an announced key behind the start of all keys, if it is of a kind that nodes pass on.
    pub fn announced<'a>(&self, key: &'a str) -> Option<&'a str> {
        let rest = key.strip_prefix(&self.root)?.strip_prefix('/')?;
        ANNOUNCED.contains(&rest.get(..2)?).then_some(rest)
    }

    /// Returns the chunk for the sending host in a key of this domain; of a refetch or a question, for the asking host.
    pub fn host_of<'a>(&self, key: &'a str) -> Option<&'a str> {
        let rest = key.strip_prefix(&self.root)?.strip_prefix('/')?;
        rest.split_once('/')?.1.split('/').next()
    }

    /// Returns the key of a participant's presence.
    pub fn presence(&self, incarnation: Incarnation, source: &SourceName) -> String {
        // Names are case-sensitive for readers and escaping would lose the case, so the name is written as hexadecimal digits.
        let digits: String = source.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/p/{OWN_HOST}/{incarnation}/{digits}", self.root)
    }

    /// Returns the pattern of all participants' presences.
    pub fn presences(&self) -> String {
        format!("{}/p/*/*/*", self.root)
    }

    /// Parses the key of a participant's presence.
    pub fn parse_presence(&self, key: &str) -> Option<(Incarnation, SourceName)> {
        let (incarnation, digits) = self.after_host(key, "/p/")?.split_once('/')?;
        let pairs = digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        let name = String::from_utf8(pairs.collect::<Option<Vec<u8>>>()?).ok()?;
        Some((incarnation.parse().ok()?, SourceName::new(name).ok()?))
    }

    /// Returns the key of the presence of a host's node.
    pub fn node(&self, boot: u32) -> String {
        format!("{}/n/{OWN_HOST}/{boot:08x}", self.root)
    }

    /// Returns the pattern of all nodes' presences.
    pub fn nodes(&self) -> String {
        format!("{}/n/*/*", self.root)
    }

    /// Returns the boot of the host whose node announces this key.
    pub fn parse_node(&self, key: &str) -> Option<u32> {
        u32::from_str_radix(self.after_host(key, "/n/")?, 16).ok()
    }

    /// Returns the key of a place at which samples are published beside the engine's own links, by the process that publishes
    /// there and the place's kind.
    pub fn publisher(&self, process: Incarnation, kind: &str) -> String {
        format!("{}/z/{OWN_HOST}/{process}/{kind}", self.root)
    }

    /// Returns the pattern of all such places.
    pub fn publishers(&self) -> String {
        format!("{}/z/**", self.root)
    }

    /// Parses the key of such a place: the process, and the kind of the place.
    pub fn parse_publisher<'a>(&self, key: &'a str) -> Option<(Incarnation, &'a str)> {
        let (process, kind) = self.after_host(key, "/z/")?.split_once('/')?;
        Some((process.parse().ok()?, kind))
    }

    /// Returns the key of a reader's presence.
    pub fn reader(&self, card: &ReaderInfo) -> String {
        let flag = |set: bool, letter: char| if set { letter } else { '-' };
        let flags: String =
            [flag(card.reliable, 'r'), flag(card.hold.keeps(), 'f'), flag(card.direct, 'd')].into_iter().collect();
        let flags = if card.hold == Hold::Interim { flags + "i" } else { flags };
        let partitions = match &card.partitions {
            PartitionFilter::All => "all".to_owned(),
            PartitionFilter::Any(names) => Partition::of(names.iter().map(String::as_str)).key(),
        };
        let (source, topics) = (escape(&card.source), escape(card.topics.as_str()));
        format!("{}/r/{OWN_HOST}/{}/{}/{flags}/{source}/{topics}/{partitions}", self.root, card.incarnation, card.reader)
    }

    /// Returns the pattern of all readers' presences.
    pub fn readers(&self) -> String {
        format!("{}/r/**", self.root)
    }

    /// Parses the key of a reader's presence.
    pub fn parse_reader(&self, key: &str) -> Option<ReaderInfo> {
        let mut chunks = self.after_host(key, "/r/")?.split('/');
        let incarnation = chunks.next()?.parse().ok()?;
        let reader = chunks.next()?.parse().ok()?;
        let flags = chunks.next()?;
        let source = unescape(chunks.next()?)?;
        let topics = TopicFilter::new(unescape(chunks.next()?)?).ok()?;
        let partitions = match chunks.next()? {
            "all" => PartitionFilter::All,
            set => PartitionFilter::Any(Partition::from_key(set)?.names().map(str::to_owned).collect::<BTreeSet<_>>()),
        };
        Some(ReaderInfo {
            incarnation,
            reader,
            source,
            topics,
            partitions,
            reliable: flags.contains('r'),
            hold: match (flags.contains('f'), flags.contains('i')) {
                (true, true) => Hold::Interim,
                (true, false) => Hold::Full,
                (false, _) => Hold::Bounded,
            },
            direct: flags.contains('d'),
        })
    }

    /// Returns the part of a key behind the chunk of its host.
    fn after_host<'a>(&self, key: &'a str, kind: &str) -> Option<&'a str> {
        Some(key.strip_prefix(&self.root)?.strip_prefix(kind)?.split_once('/')?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presences_lead_back_to_what_they_announce() {
        let keys = Keys::new(&Domain::new("ALMA site").unwrap());
        let incarnation = Incarnation { boot: 1, pid: 2, start: 3 };
        let card = ReaderInfo {
            incarnation,
            reader: 4,
            source: "jlog 1".to_owned(),
            topics: TopicFilter::new("log/**").unwrap(),
            partitions: PartitionFilter::any(["Operator", "a.b"]),
            reliable: true,
            hold: Hold::Full,
            direct: false,
        };
        assert_eq!(keys.parse_reader(&keys.reader(&card)), Some(card.clone()));
        let interim = ReaderInfo { hold: Hold::Interim, ..card.clone() };
        assert_eq!(keys.parse_reader(&keys.reader(&interim)), Some(interim));
        let all = ReaderInfo { partitions: PartitionFilter::All, reliable: false, ..card };
        assert_eq!(keys.parse_reader(&keys.reader(&all)), Some(all));

        let source = SourceName::new("CONTROL/DV01").unwrap();
        assert_eq!(keys.parse_presence(&keys.presence(incarnation, &source)), Some((incarnation, source)));
        assert_eq!(keys.parse_node(&keys.node(7)), Some(7));
        assert_eq!(keys.parse_publisher(&keys.publisher(incarnation, "in")), Some((incarnation, "in")));
        assert_eq!(keys.parse_reader("tampu/other/r/x"), None);
        let keys = Keys::new(&Domain::new("lab").unwrap());
        let capital = keys.parse_reader("tampu/lab/r/-/00000001-00000002-0000000000000003/1/rfd/_44v/lyg/all");
        assert_eq!(capital, None, "no key of ours has a capital letter as an escape");
    }

    #[test]
    fn keys_name_their_host_and_a_refetch_its_stream() {
        let keys = Keys::new(&Domain::new("lab").unwrap());
        let (topic, partition) = (TopicName::new("Log/Info").unwrap(), Partition::everybody());
        let incarnation = Incarnation { boot: 1, pid: 2, start: 3 };
        let asked = keys.refetch("pc7", incarnation, &topic, &partition).replace(OWN_HOST, "mast");
        assert_eq!(keys.host_of(&asked), Some("mast"));
        assert!(keys.is_refetch_of(&asked, &topic, &partition));
        assert!(!keys.is_refetch_of(&asked, &TopicName::new("log").unwrap(), &partition));
        assert!(!keys.is_refetch_of(&asked, &TopicName::new("log/debug").unwrap(), &partition));
        assert_eq!(keys.host_of(&keys.node(7).replace(OWN_HOST, "pc7")), Some("pc7"));
        assert_eq!(keys.host_of("tampu/other/d/pc7/x/."), None);
        let sent = keys.group(0x2a, 1, &topic, &partition).replace(OWN_HOST, "mast");
        assert_eq!(sent, "tampu/lab/g/mast/0000002a/1/log/info/.");
        let place = keys.group_place(&sent).unwrap();
        assert_eq!(keys.group_arrived("mast", 7, place), "tampu/lab/g/mast/00000007/in/log/info/.");
        assert_eq!(keys.host_of(&sent), Some("mast"));
        let within = keys.data_within(0x2a, &topic, &partition).replace(OWN_HOST, "mast");
        assert_eq!(within, "tampu/lab/h/mast/0000002a/log/info/.");
        let logs = TopicFilter::new("log/*").unwrap();
        assert_eq!(keys.data_patterns_within(0x2a, &logs, &PartitionFilter::All), ["tampu/lab/h/*/0000002a/log/*/*"]);
        let service = TopicName::new("log/query").unwrap();
        assert_eq!(keys.service(&service).replace(OWN_HOST, "mast"), "tampu/lab/s/mast/*/log/query");
        assert_eq!(keys.questions(incarnation, &service), format!("tampu/lab/s/*/{incarnation}$*/log/query"));
        assert_eq!(keys.node_questions(0x2a, &service), "tampu/lab/s/*/0000002a/log/query");
    }
}
