//! Names as keys of an engine: one escaping for zenoh, DDS and ZeroMQ.
//!
//! Names keep their case but are compared without it, so a key is made of the lower-case name. Engines forbid different
//! characters: zenoh `* $ ? # /`, DDS everything but letters, digits and `_`; ZeroMQ matches bare prefixes. So the safe
//! set is the common one. `a-z` and `0-9` are unchanged. Every other byte of the UTF-8 text is `_` and two hexadecimal
//! digits. The empty name is a single `_`. Escaped names are therefore valid DDS topic parts and single zenoh chunks,
//! and can be read back. Decision and vectors: `spec/decisions/0004-names.md`.

use std::{collections::BTreeSet, fmt};

use crate::glob;

/// Writes one name (not a path) in the safe set; the case is lost, as names are compared without it.
pub fn escape(name: &str) -> String {
    if name.is_empty() {
        return "_".to_owned();
    }
    let mut key = String::with_capacity(name.len() + 8);
    for byte in name.to_lowercase().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => key.push(byte as char),
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                key.push('_');
                key.push(HEX[usize::from(other >> 4)] as char);
                key.push(HEX[usize::from(other & 15)] as char);
            }
        }
    }
    key
}

/// Reads an escaped name; `None` if [`escape`] does not write it. So each name has one key.
pub fn unescape(key: &str) -> Option<String> {
    if key == "_" {
        return Some(String::new());
    }
    if key.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => bytes.push(byte),
            b'_' => {
                let high = hex(rest.next()?)?;
                let low = hex(rest.next()?)?;
                bytes.push(high << 4 | low);
            }
            _ => return None,
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (escape(&name) == key).then_some(name)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// A topic: a path of names, as `log/warning` or `event/lab/psu/1/voltage`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

/// Error of a text that cannot name a topic or a pattern of topics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a topic: it needs names between single slashes, none of them empty (`*` for one name and `**` for any number are for patterns)"
)]
pub struct BadTopic(pub String);

impl TopicName {
    /// Checks a path of names.
    pub fn new(path: impl Into<String>) -> Result<TopicName, BadTopic> {
        let path = path.into();
        let good = path.split('/').all(|name| !matches!(name, "" | "*" | "**"));
        if good { Ok(TopicName(path)) } else { Err(BadTopic(path)) }
    }

    /// Returns the path in its original spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The escaped path.
    pub fn key(&self) -> String {
        self.0.split('/').map(escape).collect::<Vec<_>>().join("/")
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A pattern of topics: `*` matches one name, `**` any number of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicFilter(String);

impl TopicFilter {
    /// Checks a pattern.
    pub fn new(pattern: impl Into<String>) -> Result<TopicFilter, BadTopic> {
        let pattern = pattern.into();
        if pattern.split('/').all(|name| !name.is_empty()) { Ok(TopicFilter(pattern)) } else { Err(BadTopic(pattern)) }
    }

    /// Returns the pattern in its original spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The escaped pattern, wildcards kept: a valid zenoh key expression.
    pub fn key(&self) -> String {
        let chunk = |name: &str| if matches!(name, "*" | "**") { name.to_owned() } else { escape(name) };
        self.0.split('/').map(chunk).collect::<Vec<_>>().join("/")
    }

    /// Returns true if the topic matches the pattern; case does not count.
    pub fn matches(&self, topic: &TopicName) -> bool {
        let (pattern, name) = (self.0.to_lowercase(), topic.0.to_lowercase());
        glob::matches_path(&pattern, &name, |part, name| part == "*" || part == name)
    }
}

impl fmt::Display for TopicFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Receivers of a sample: a set of names (for logs, the audiences). The empty set is for everybody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Partition(BTreeSet<String>);

impl Partition {
    /// The empty set: a sample for everybody.
    pub fn everybody() -> Partition {
        Partition::default()
    }

    /// Makes the set of these names; case is ignored, empty names are dropped.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Partition {
        Partition(names.into_iter().filter(|name| !name.is_empty()).map(str::to_lowercase).collect())
    }

    /// The names, in lower case and sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns one chunk of a key: `.` for everybody, `.operator.scilog.` for two names. The dots let a reader request
    /// every set that holds one name with a single pattern.
    pub fn key(&self) -> String {
        let mut key = String::from(".");
        for name in &self.0 {
            key.push_str(&escape(name));
            key.push('.');
        }
        key
    }

    /// Reads the text of [`Partition::key`]; `None` for any other text. So each set has one key.
    pub fn from_key(key: &str) -> Option<Partition> {
        let inner = key.strip_prefix('.')?;
        if inner.is_empty() {
            return Some(Partition::everybody());
        }
        let names = inner.strip_suffix('.')?.split('.').map(unescape).collect::<Option<BTreeSet<_>>>()?;
        let partition = Partition(names);
        // An empty name, a repeated one, or another order.
        (!partition.0.contains("") && partition.key() == key).then_some(partition)
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        f.pad(&names.join(","))
    }
}

/// Partitions that a reader requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PartitionFilter {
    /// All of them.
    #[default]
    All,
    /// Samples for everybody, and samples for at least one of these names.
    Any(BTreeSet<String>),
}

impl PartitionFilter {
    /// Requests samples for everybody or for one of these names; case is ignored.
    pub fn any<'a>(names: impl IntoIterator<Item = &'a str>) -> PartitionFilter {
        PartitionFilter::Any(Partition::of(names).0)
    }

    /// Returns true if the reader requests samples of this partition.
    pub fn matches(&self, partition: &Partition) -> bool {
        match self {
            PartitionFilter::All => true,
            PartitionFilter::Any(wanted) => partition.0.is_empty() || !wanted.is_disjoint(&partition.0),
        }
    }

    /// Returns the chunks to subscribe to (zenoh's `$*` matches any characters). They overlap where a sample is for two
    /// wanted names. The reader drops the second copy by its sequence number.
    pub fn keys(&self) -> Vec<String> {
        match self {
            PartitionFilter::All => vec!["*".to_owned()],
            PartitionFilter::Any(wanted) => {
                let for_one = wanted.iter().map(|name| format!("$*.{}.$*", escape(name)));
                std::iter::once(".".to_owned()).chain(for_one).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escaping_has_the_vectors_of_the_spec() {
        let vectors = [
            ("", "_"),
            ("Info", "info"),
            ("a_b", "a_5fb"),
            ("lab/psu 1", "lab_2fpsu_201"),
            ("*", "_2a"),
            ("é", "_c3_a9"),
            ("É", "_c3_a9"),
        ];
        for (name, key) in vectors {
            assert_eq!(escape(name), key);
            assert_eq!(unescape(key), Some(name.to_lowercase()));
        }
        for bad in ["", "A", "_g0", "_2", "a-b", "_ff", "_44v", "_61"] {
            assert_eq!(unescape(bad), None, "{bad}");
        }
    }

    #[test]
    fn patterns_match_as_the_engine_does() {
        let topic = TopicName::new("Log/Warning").unwrap();
        for (pattern, expected) in [
            ("log/warning", true),
            ("log/*", true),
            ("**", true),
            ("log/**", true),
            ("log/warning/**", true),
            ("*", false),
            ("log", false),
        ] {
            assert_eq!(TopicFilter::new(pattern).unwrap().matches(&topic), expected, "{pattern}");
        }
        assert!(TopicName::new("log//x").is_err());
        assert!(TopicName::new("log/*").is_err());
    }

    #[test]
    fn a_sample_reaches_its_audiences_and_everybody_if_it_has_none() {
        let operators = PartitionFilter::any(["Operator"]);
        assert!(operators.matches(&Partition::everybody()));
        assert!(operators.matches(&Partition::of(["SciLog", "operator"])));
        assert!(!operators.matches(&Partition::of(["Developer"])));
        assert!(PartitionFilter::All.matches(&Partition::of(["Developer"])));
        assert_eq!(Partition::of(["SciLog", "Operator"]).key(), ".operator.scilog.");
    }

    proptest! {
        #[test]
        fn escaped_names_are_safe_and_lead_back(name in "\\PC*") {
            let key = escape(&name);
            prop_assert!(key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'));
            prop_assert_eq!(unescape(&key), Some(name.to_lowercase()));
        }

        #[test]
        fn partitions_lead_back(names in proptest::collection::vec("[a-zA-Z ._/]{1,8}", 0..4)) {
            let partition = Partition::of(names.iter().map(String::as_str));
            prop_assert_eq!(Partition::from_key(&partition.key()), Some(partition));
        }
    }
}
