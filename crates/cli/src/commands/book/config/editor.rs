//! A text in the editor of the user.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::failure::Failure;

/// The text that a user wrote. Its file is removed, unless it is kept.
pub struct Edited {
    pub text: String,
    file: PathBuf,
}

impl Edited {
    /// Keeps the file, and returns its path.
    pub fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.file)
    }
}

impl Drop for Edited {
    fn drop(&mut self) {
        if self.file != Path::new("") {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Opens a text in the editor, and returns it after the editor has ended.
pub fn edit(text: &str) -> Result<Edited, Failure> {
    let named = ["VISUAL", "EDITOR"].into_iter().filter_map(|name| env::var(name).ok()).find(|editor| !editor.trim().is_empty());
    let editor = named.ok_or_else(|| {
        Failure::Usage("no editor is named: set EDITOR, or give a file with the text; '-' reads standard input".to_owned())
    })?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let file = env::temp_dir().join(format!("tampu-config-{}-{}.cfg", std::process::id(), since_1970.as_nanos()));
    let wrong = |error| Failure::failed(file.display(), error);
    // The configuration is for the eyes of its administrators.
    let mut opened = fs::File::options().write(true).create_new(true).mode(0o600).open(&file).map_err(wrong)?;
    let mut edited = Edited { text: String::new(), file: file.clone() };
    opened.write_all(text.as_bytes()).map_err(wrong)?;
    drop(opened);
    // The variable can have options of the editor.
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&file).status();
    let status = status.map_err(|error| Failure::failed(&editor, error))?;
    if !status.success() {
        return Err(Failure::Failed(format!("the editor '{editor}' failed ({status}); nothing was changed")));
    }
    edited.text = fs::read_to_string(&file).map_err(wrong)?;
    Ok(edited)
}
