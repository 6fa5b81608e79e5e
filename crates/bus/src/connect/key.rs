//! The key of a domain.

use std::{
    collections::BTreeSet,
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// Key shared by all members of a domain. It is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// Error for an invalid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key has 8 to 200 characters, none of them a blank at its ends or a control character")]
pub struct BadKey;

/// Error for a file without a valid key.
#[derive(Debug, thiserror::Error)]
pub enum BadKeyFile {
    /// The file cannot be read.
    #[error("the key file {path}: {why}")]
    Io {
        /// Path of the key file.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// The file's only line is not a valid key.
    #[error("the key file {path}: {why}")]
    Key {
        /// Path of the key file.
        path: PathBuf,
        /// The rule for keys.
        why: BadKey,
    },
}

impl Key {
    /// Checks a key.
    pub fn new(text: impl Into<String>) -> Result<Key, BadKey> {
        let text = text.into();
        let good = (8..=200).contains(&text.len()) && text.trim() == text && !text.chars().any(char::is_control);
        if good { Ok(Key(text)) } else { Err(BadKey) }
    }

    /// Reads a key from a file that holds nothing else; a newline at its end is not part of it.
    pub fn from_file(path: &Path) -> Result<Key, BadKeyFile> {
        let text = fs::read_to_string(path).map_err(|why| BadKeyFile::Io { path: path.to_owned(), why })?;
        let line = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
        Key::new(line).map_err(|why| BadKeyFile::Key { path: path.to_owned(), why })
    }

    /// Returns true if the key can have 16 random bytes, so that nobody guesses it from a recorded handshake. In base64
    /// these are 22 characters. A text of few different characters was typed and not drawn.
    pub fn is_strong(&self) -> bool {
        let different: BTreeSet<char> = self.0.chars().collect();
        self.0.len() >= 22 && different.len() >= 8
    }

    /// Returns the text of the key, for storing or sending it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_never_shown() {
        assert_eq!(Key::new("short"), Err(BadKey));
        assert_eq!(Key::new("a line\nand another"), Err(BadKey));
        let key = Key::new("correct horse").unwrap();
        assert_eq!(format!("{key:?}"), "Key(...)");
    }

    #[test]
    fn sixteen_random_bytes_are_a_strong_key_and_a_phrase_is_none() {
        let strong = |text: &str| Key::new(text).unwrap().is_strong();
        // 16 bytes in base64, in base64 without padding, in hexadecimal digits.
        for text in ["Hs9K3mUO0lYhzqk1E3m5Zw==", "Hs9K3mUO0lYhzqk1E3m5Zw", "1ecf4adf650ed25621cea935137e6567"] {
            assert!(strong(text), "{text}");
        }
        for text in ["correct horse", "12345678", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0101010101010101010101010101"] {
            assert!(!strong(text), "{text}");
        }
    }

    #[test]
    fn a_file_holds_a_key_and_perhaps_a_newline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        assert!(matches!(Key::from_file(&path), Err(BadKeyFile::Io { .. })));
        for text in ["correct horse", "correct horse\n", "correct horse\r\n"] {
            fs::write(&path, text).unwrap();
            assert_eq!(Key::from_file(&path).unwrap().reveal(), "correct horse");
        }
        for text in ["", "short\n", "two lines\nof text\n", "correct horse \n"] {
            fs::write(&path, text).unwrap();
            let error = Key::from_file(&path).unwrap_err().to_string();
            assert!(error.contains("a key has 8 to 200 characters") && error.contains(path.to_str().unwrap()), "{error}");
        }
    }
}
