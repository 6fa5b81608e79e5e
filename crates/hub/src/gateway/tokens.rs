//! Tokens of programs on other hosts: a file with a name and a token a line.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use tampu_bus::access::Principal;

/// Longest file, in bytes.
const LONGEST: u64 = 1 << 20;
/// Shortest token, in characters.
const SHORTEST: usize = 24;

/// Error of a file with tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("the tokens in {path}: {why}")]
    Io {
        /// The file with tokens.
        path: PathBuf,
        /// Reason of the system.
        why: io::Error,
    },
    /// Other users may read it.
    #[error("the tokens in {0} are readable by other users; set its mode to 0600")]
    Open(PathBuf),
    /// A line is not a name and a token.
    #[error("{path}, line {line}: write NAME TOKEN, with at least {SHORTEST} characters in the token")]
    Line {
        /// The file with tokens.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

/// A file with tokens. It is read anew for each session, so a changed one holds at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    path: PathBuf,
}

impl Tokens {
    /// Names the file, which is read once to find errors.
    pub fn open(path: &Path) -> Result<Tokens, TokenError> {
        let tokens = Tokens { path: path.to_owned() };
        tokens.read().map(|_| tokens)
    }

    /// Returns the principal of a token; none if it is unknown.
    pub fn principal(&self, token: &str) -> Result<Option<Principal>, TokenError> {
        // Digests are compared, so the time says nothing about the tokens.
        let given = Sha256::digest(token);
        let all = self.read()?;
        let found = all.into_iter().find(|(_, token)| Sha256::digest(token) == given);
        Ok(found.map(|(name, _)| Principal::Token(name)))
    }

    fn read(&self) -> Result<Vec<(String, String)>, TokenError> {
        let io = |why| TokenError::Io { path: self.path.clone(), why };
        let file = File::open(&self.path).map_err(io)?;
        let mode = file.metadata().map_err(io)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(TokenError::Open(self.path.clone()));
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map_err(io)?;
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let parse = |(line, text): (usize, &str)| {
            let parts = text.split_once(char::is_whitespace).map(|(name, token)| (name, token.trim()));
            let whole = parts.filter(|(_, token)| token.len() >= SHORTEST && !token.contains(char::is_whitespace));
            let (name, token) = whole.ok_or_else(|| TokenError::Line { path: self.path.clone(), line })?;
            Ok((name.to_owned(), token.to_owned()))
        };
        lines.map(parse).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_token_names_its_program_and_a_readable_or_wrong_file_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tokens");
        fs::write(&path, "# programs\n\nconsole 0123456789abcdef01234567\njava\tabcdefabcdefabcdefabcdef\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Tokens::open(&path), Err(TokenError::Open(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let tokens = Tokens::open(&path).unwrap();
        assert_eq!(tokens.principal("abcdefabcdefabcdefabcdef").unwrap(), Some(Principal::Token("java".into())));
        assert_eq!(tokens.principal("").unwrap(), None);
        assert_eq!(tokens.principal("abcdefabcdefabcdefabcdee").unwrap(), None);
        fs::write(&path, "java short\n").unwrap();
        let error = tokens.principal("short").unwrap_err().to_string();
        assert!(error.contains("line 1: write NAME TOKEN"), "{error}");
    }
}
