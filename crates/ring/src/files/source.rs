//! The file `source`: the description that an incarnation gives of itself, in lines that a person can read too.
//!
//! ```text
//! tampu-rings 1
//! domain alma
//! source CONTROL/DV01/cppContainer
//! process mountContainer
//! host gw01
//! incarnation 1a2b3c4d-00001267-18ea008b6316cd15
//! end
//! ```
//! Its owner holds it locked while it lives. It is the last file of an incarnation to get its name and is complete by
//! then; only rings come later. The line `drainer none` says that the process will not drain its rings itself. Unknown
//! lines belong to a later release and are skipped.

use tampu_types::{Domain, Incarnation, SourceName};

const FIRST: &str = "tampu-rings 1";
/// Line of a process that will not drain its rings itself.
const NO_DRAINER: &str = "drainer none";
/// The longest believed.
pub(crate) const LONGEST: u64 = 64 << 10;

/// Description that an incarnation of a process gives of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name of the installation.
    pub domain: Domain,
    /// The stable name of the source.
    pub name: SourceName,
    /// The program, as its users call it.
    pub process: String,
    /// Name of the host.
    pub host: String,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
}

/// Error of a text that is not a description of a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSource {
    /// Something else, or of a later release.
    #[error("line 1: '{0}', not '{FIRST}'")]
    First(String),
    /// A line is missing.
    #[error("no line '{0} ...'")]
    Missing(&'static str),
    /// A line has an invalid value.
    #[error("{key}: {why}")]
    Value {
        /// Key of the line.
        key: &'static str,
        /// Defect of the line.
        why: String,
    },
}

/// Returns true if the text of a file says that the process will not drain its rings itself.
pub(crate) fn has_no_drainer(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| line == NO_DRAINER.as_bytes())
}

impl Source {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        let Source { domain, name, process, host, incarnation } = self;
        let [process, host] = [process, host].map(|text| text.replace(char::is_control, " "));
        let header = [
            FIRST.to_owned(),
            format!("domain {domain}"),
            format!("source {name}"),
            format!("process {process}"),
            format!("host {host}"),
            format!("incarnation {incarnation}"),
            "end\n".to_owned(),
        ];
        header.join("\n")
    }

    /// Reads the file.
    pub fn parse(bytes: &[u8]) -> Result<Source, BadSource> {
        let text = String::from_utf8_lossy(bytes);
        let first = text.lines().next().unwrap_or_default();
        if first != FIRST {
            return Err(BadSource::First(first.chars().take(40).collect()));
        }
        if !text.ends_with("\nend\n") {
            return Err(BadSource::Missing("end"));
        }
        let value = |key: &'static str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.ok_or(BadSource::Missing(key))
        };
        fn checked<T, E: ToString>(key: &'static str, read: Result<T, E>) -> Result<T, BadSource> {
            read.map_err(|why| BadSource::Value { key, why: why.to_string() })
        }
        Ok(Source {
            domain: checked("domain", Domain::new(value("domain")?))?,
            name: checked("source", SourceName::new(value("source")?))?,
            process: value("process")?.to_owned(),
            host: value("host")?.to_owned(),
            incarnation: checked("incarnation", value("incarnation")?.parse())?,
        })
    }
}
