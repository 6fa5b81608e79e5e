//! Files with secrets: passwords of service accounts, and secrets that are shared with other programs.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// Longest secret, in bytes.
const MAX_SECRET: usize = 4096;

/// Reads a secret from the first line of a file. Other users must not be able to read the file.
pub fn read_secret(path: &Path) -> Result<String, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let mode = fs::metadata(path).map_err(|why| wrong(why.to_string()))?.mode();
    if mode & 0o077 != 0 {
        return Err(wrong(format!("others may read this secret (mode {:o}); run chmod 600 on it", mode & 0o777)));
    }
    let text = fs::read_to_string(path).map_err(|why| wrong(why.to_string()))?;
    let secret = text.lines().next().unwrap_or_default().to_owned();
    match secret.len() {
        0 => Err(wrong("its first line is empty; write the secret there".to_owned())),
        1..=MAX_SECRET => Ok(secret),
        _ => Err(wrong(format!("its first line is longer than {MAX_SECRET} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_the_first_line_of_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_secret(&path)
        };
        assert_eq!(write("hunter two\n# comment\n", 0o600).unwrap(), "hunter two");
        assert!(write("hunter two\n", 0o640).unwrap_err().contains("chmod 600"));
        assert!(write("\n", 0o600).unwrap_err().contains("empty"));
        assert!(read_secret(&dir.path().join("none")).unwrap_err().contains("none: "));
    }
}
