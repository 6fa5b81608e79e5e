//! The desktop of the person at the terminal, whose browser opens the console.

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal, Write},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Variables of the environment that a desktop sets.
const DISPLAYS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];
/// Name of the page, in the data directory.
const PAGE: &str = "console.html";

/// Returns true if a person at a terminal has a desktop.
pub fn is_there(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    io::stdout().is_terminal() && DISPLAYS.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// A page for this user alone that leads a browser to an address. It is removed when this is dropped.
///
/// The address may make its first reader the owner of the site, and all users of a host see the arguments of commands.
#[derive(Debug)]
pub struct OpenedPage {
    path: PathBuf,
    opener: Option<Child>,
}

impl OpenedPage {
    /// Makes the page in this directory, and opens it in the desktop's browser.
    pub fn open(address: &str, directory: &Path) -> io::Result<OpenedPage> {
        let path = directory.join(PAGE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut page = OpenedPage { path, opener: None };
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&page.path)?;
        let address = address.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        write!(
            file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<a href=\"{address}\">The console of Tampu</a>\n"
        )?;
        let mut opener = Command::new("xdg-open");
        opener.arg(&page.path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C at the terminal ends the demo and no browser.
        page.opener = Some(opener.process_group(0).spawn()?);
        Ok(page)
    }
}

impl Drop for OpenedPage {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(opener) = &mut self.opener {
            let _ = opener.try_wait();
        }
    }
}
