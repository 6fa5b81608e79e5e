//! The parameter of a file transfer: the file's name, size and modification time.
//!
//! ```text
//! {"file": "run7/dump.bin", "size": 1048576, "modified": 1763809431000000000, "continue": true, "parameter": "uid://A002/X1"}
//! ```
//! Any other parameter belongs to a program, and the transfer is not a file. The name comes from another host and
//! becomes a path here, so it is validated strictly. It consists of names between slashes, none of them `.`, `..`,
//! empty or too long.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest name of a file with its directories, in bytes.
pub const PATH_LIMIT: usize = 4000;
/// Longest name between two slashes, in bytes: the limit of file systems.
pub const PART_LIMIT: usize = 255;

/// File name relative to the receiver's directory. It cannot lead out of this directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName(String);

/// Error for an invalid file name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid name {name:?} for a received file: {why}")]
pub struct BadFileName {
    /// The text, or its beginning.
    pub name: String,
    /// The fault of the name.
    pub why: &'static str,
}

impl FileName {
    /// Checks the name.
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

    /// Returns the name in its wire form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directories of the name, from the outermost on, and its last part.
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

/// Parameter of a file transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLabel {
    /// The relative path at the receiver.
    pub file: FileName,
    /// Size in bytes; `None` if the sender does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The time of the last change, in ns since 1970, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// True to keep the receiver's part of an earlier attempt and to send only the rest.
    #[serde(default, rename = "continue", skip_serializing_if = "std::ops::Not::not")]
    pub go_on: bool,
    /// The sender's text about the transfer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter: String,
}

impl FileLabel {
    /// Encodes the label as the parameter of a transfer.
    pub fn encode(&self) -> Vec<u8> {
        // Texts and numbers always have a JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns a parameter of about `most` characters. The label of a file stays whole except for the sender's text in
    /// it, so that its name and size can be read.
    pub fn shorten(parameter: &str, most: usize) -> String {
        let first = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        match FileLabel::parse(parameter.as_bytes()) {
            Ok(Some(label)) if parameter.chars().count() > most => {
                let text = first(&label.parameter, most);
                String::from_utf8(FileLabel { parameter: text, ..label }.encode()).unwrap_or_default()
            }
            Ok(Some(_)) => parameter.to_owned(),
            Ok(None) | Err(_) => first(parameter, most),
        }
    }

    /// Decodes a parameter. `Ok(None)` means that the transfer is not a file; an error, that it is a file with invalid
    /// fields.
    pub fn parse(parameter: &[u8]) -> Result<Option<FileLabel>, BadLabel> {
        let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(parameter) else { return Ok(None) };
        if value.get("file").is_none() {
            return Ok(None);
        }
        serde_json::from_value(value).map(Some).map_err(|error| BadLabel(error.to_string()))
    }
}

/// Error for a file parameter with invalid fields.
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
    fn a_shortened_label_still_names_its_file() {
        let (name, text) = ("d/".repeat(300) + "dump", "ü\"".repeat(400));
        let label = FileLabel {
            parameter: text.clone(),
            ..FileLabel::parse(format!("{{\"file\":\"{name}\",\"size\":7}}").as_bytes()).unwrap().unwrap()
        };
        let short = FileLabel::shorten(&String::from_utf8(label.encode()).unwrap(), 500);
        let read = FileLabel::parse(short.as_bytes()).unwrap().unwrap();
        assert_eq!((read.file.as_str(), read.size, read.parameter.chars().count()), (name.as_str(), Some(7), 500));
        assert!(text.starts_with(&read.parameter));
        assert_eq!(FileLabel::shorten("{\"file\":\"a\"}", 5), "{\"file\":\"a\"}");
        assert_eq!(FileLabel::shorten(&"é".repeat(9), 5), "é".repeat(5));
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
