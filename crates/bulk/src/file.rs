//! What the parameter of a transfer says where the transfer is a file: its name, its size, when it was written.
//!
//! ```text
//! {"file": "run7/dump.bin", "size": 1048576, "modified": 1763809431000000000, "continue": true, "parameter": "uid://A002/X1"}
//! ```
//! A parameter that is not such an object is one of a program's own, and the transfer is no file. The name comes from elsewhere and
//! becomes a path here, so it is read strictly: names between slashes, none of them `.`, `..`, empty or too long.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest name of a file with its directories, bytes.
pub const PATH_LIMIT: usize = 4000;
/// The longest name between two slashes, bytes: what file systems take.
pub const PART_LIMIT: usize = 255;

/// A file's name, relative to where the receiver puts files: it cannot lead out of there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName(String);

/// A text that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name for a received file: {why}")]
pub struct BadFileName {
    /// The text, or its beginning.
    pub name: String,
    /// What is wrong.
    pub why: &'static str,
}

impl FileName {
    /// Checks it.
    pub fn new(name: impl Into<String>) -> Result<FileName, BadFileName> {
        let name = name.into();
        let bad = |why| Err(BadFileName { name: name.chars().take(200).collect(), why });
        if name.len() > PATH_LIMIT {
            return bad("it is too long");
        }
        if name.starts_with('/') {
            return bad("it begins at the root");
        }
        if name.chars().any(char::is_control) {
            return bad("it has control characters");
        }
        for part in name.split('/') {
            match part {
                "" => return bad("a name in it is empty"),
                "." | ".." => return bad("it leads elsewhere"),
                part if part.len() > PART_LIMIT => return bad("a name in it is too long"),
                _ => {}
            }
        }
        Ok(FileName(name))
    }

    /// As it travels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directories it lies in, from the outermost on, and its own name.
    pub fn split(&self) -> (impl Iterator<Item = &str>, &str) {
        let (directories, own) = self.0.rsplit_once('/').map_or((None, self.0.as_str()), |(path, own)| (Some(path), own));
        (directories.into_iter().flat_map(|path| path.split('/')), own)
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for FileName {
    type Error = BadFileName;

    fn try_from(name: String) -> Result<FileName, BadFileName> {
        FileName::new(name)
    }
}

impl From<FileName> for String {
    fn from(name: FileName) -> String {
        name.0
    }
}

/// The parameter of a transfer that is a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLabel {
    /// Where it belongs.
    pub file: FileName,
    /// Bytes of it; `None` where the sender does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// When it was written last, ns since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// What the receiver has of it from an earlier attempt shall be kept, and only the rest be sent.
    #[serde(default, rename = "continue", skip_serializing_if = "std::ops::Not::not")]
    pub go_on: bool,
    /// What the sender says about it besides.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter: String,
}

impl FileLabel {
    /// As the parameter of a transfer.
    pub fn encode(&self) -> Vec<u8> {
        // Texts and numbers: nothing in it that JSON does not have.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads one. `Ok(None)`: the transfer is no file; an error: it is one that cannot be taken.
    pub fn parse(parameter: &[u8]) -> Result<Option<FileLabel>, BadLabel> {
        let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(parameter) else { return Ok(None) };
        if value.get("file").is_none() {
            return Ok(None);
        }
        serde_json::from_value(value).map(Some).map_err(|error| BadLabel(error.to_string()))
    }
}

/// A parameter that speaks of a file, and not as it must.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the parameter: {0}")]
pub struct BadLabel(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(PART_LIMIT + 1);
        let deep = "a/".repeat(PATH_LIMIT / 2) + "a";
        for bad in
            ["", "/", "/etc/passwd", "..", "../a", "a/../b", "a/..", ".", "./a", "a//b", "a/", "a\0b", "a\nb", &long, &deep]
        {
            assert!(FileName::new(bad).is_err(), "{bad:?}");
            let text = format!("{{\"file\":{}}}", Value::from(bad));
            assert!(FileLabel::parse(text.as_bytes()).is_err(), "{bad:?}");
        }
        for good in ["a", "a/b", "...", "..a/b", "a\\b", "-rf", "~", "é", " "] {
            assert_eq!(FileName::new(good).map(String::from), Ok(good.to_owned()));
        }
        let name = FileName::new("a/b/c.bin").unwrap();
        let (directories, own) = name.split();
        assert_eq!((directories.collect::<Vec<_>>(), own), (vec!["a", "b"], "c.bin"));
        let name = FileName::new("c.bin").unwrap();
        assert_eq!((name.split().0.count(), name.split().1), (0, "c.bin"));
    }

    #[test]
    fn labels_lead_back_and_other_parameters_are_no_files() {
        let whole = FileLabel {
            file: FileName::new("run/dump").unwrap(),
            size: Some(u64::MAX),
            modified: Some(-1),
            go_on: true,
            parameter: "uid://A002/X1".to_owned(),
        };
        assert_eq!(FileLabel::parse(&whole.encode()), Ok(Some(whole)));
        let least = FileLabel {
            size: None,
            modified: None,
            go_on: false,
            parameter: String::new(),
            ..FileLabel::parse(b"{\"file\":\"a\",\"later\":1}").unwrap().unwrap()
        };
        assert_eq!(least.encode(), b"{\"file\":\"a\"}");
        for other in [&b""[..], b"uid://A002/X1", b"{}", b"[]", b"\"file\"", b"{\"size\":1}", b"\xff\xfe", b"{\"file\":\"a\""] {
            assert_eq!(FileLabel::parse(other), Ok(None), "{other:?}");
        }
        for bad in [&b"{\"file\":1}"[..], b"{\"file\":\"a\",\"size\":-1}", b"{\"file\":\"a\",\"modified\":\"x\"}"] {
            assert!(FileLabel::parse(bad).is_err(), "{bad:?}");
        }
    }
}
