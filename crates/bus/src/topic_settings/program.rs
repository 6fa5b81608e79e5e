//! Settings of topics in the files of one program.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    patch::{BadTopicSetting, QosPatch},
    table::QosTable,
};

/// Error of a file with settings of topics.
#[derive(Debug, thiserror::Error)]
pub enum BadSettingsFile {
    /// The file cannot be read.
    #[error("{path}: {why}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// The text is invalid.
    #[error("{path}, line {line}: {why}")]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
        /// Reason of the reader of TOML.
        why: String,
    },
    /// A setting is invalid.
    #[error("{path}, [[topic]] {number}: {why}")]
    Setting {
        /// Path of the file.
        path: PathBuf,
        /// Number of the setting in the file, from 1.
        number: usize,
        /// The reason why it is invalid.
        why: BadTopicSetting,
    },
}

/// A file with nothing but settings of topics.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfTopics {
    #[serde(default)]
    topic: Vec<QosPatch>,
}

/// The part of a program's file that is about topics. Other parts belong to their readers, which check them.
#[derive(Deserialize)]
struct OfProgram {
    #[serde(default)]
    topic: Vec<QosPatch>,
}

/// Reads the settings in a file of nothing else.
pub(crate) fn from_file(path: &Path) -> Result<QosTable, BadSettingsFile> {
    read(path, |file: OfTopics| file.topic)
}

/// Reads the settings in a program's file.
pub(crate) fn from_file_of_program(path: &Path) -> Result<QosTable, BadSettingsFile> {
    read(path, |file: OfProgram| file.topic)
}

fn read<F: DeserializeOwned>(path: &Path, topic: impl Fn(F) -> Vec<QosPatch>) -> Result<QosTable, BadSettingsFile> {
    let text = fs::read_to_string(path).map_err(|why| BadSettingsFile::Io { path: path.to_owned(), why })?;
    let file: F = toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        BadSettingsFile::Text { path: path.to_owned(), line, why: error.message().trim().replace('\n', "; ") }
    })?;
    QosTable::from_place(&path.display().to_string(), topic(file)).map_err(|(number, why)| BadSettingsFile::Setting {
        path: path.to_owned(),
        number,
        why,
    })
}

#[cfg(test)]
mod tests {
    use tampu_types::TopicName;

    use super::*;

    #[test]
    fn a_file_has_settings_beside_other_parts_and_errors_name_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program.toml");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            from_file_of_program(&path).map_err(|why| why.to_string())
        };
        let table = read("[log]\nlevel = \"Info\"\n[[topic]]\ntopics = \"log/*\"\nkeep = 7\n").unwrap();
        assert_eq!(table.of(&TopicName::new("log/info").unwrap()).keep, 7);
        assert_eq!(read("[log]\n").unwrap(), QosTable::default());
        let why = read("\n[[topic]]\ntopcs = \"log/*\"\n").unwrap_err();
        assert!(why.contains("program.toml, line 3: unknown field `topcs`"), "{why}");
        let why = read("[[topic]]\ntopics = \"log/*\"\nmax_wait_ms = 600000\n").unwrap_err();
        assert!(why.contains("program.toml, [[topic]] 1: max_wait_ms = 600000: it may be 0 to 60000 ms"), "{why}");
        fs::write(&path, "[log]\n").unwrap();
        assert!(from_file(&path).unwrap_err().to_string().contains("line 1: unknown field `log`"));
        assert!(from_file(Path::new("/nowhere/q.toml")).unwrap_err().to_string().starts_with("/nowhere/q.toml: "));
    }
}
