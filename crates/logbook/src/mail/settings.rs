//! Settings of the mail that the logbook sends.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};

use crate::book::same_name;

tampu_types::named_enum! {
    /// The encryption of the connection to the mail server.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MailTls("encryption of mail") {
        /// The connection becomes encrypted by the command STARTTLS; without it no mail is sent.
        #[default]
        Starttls => "starttls",
        /// The connection is encrypted from the beginning.
        Tls => "tls",
        /// No encryption, for a server on this computer.
        None => "none",
    }
}

/// The section `[mail]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailSettings {
    /// The mail server; without it the logbook sends no mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port of the server; by default 587, 465 or 25, after `tls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The encryption of the connection.
    pub tls: MailTls,
    /// A file of certificates (PEM) that are trusted besides the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<PathBuf>,
    /// The name for the login at the server; without it there is no login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The file that holds the password of `user`, readable by its owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The sender of all mails, as `Logbook <logbook@example.org>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The address for replies, if it is not the sender's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Seconds until the first repetition of a failed attempt; each further wait is twice as long, up to an hour.
    pub retry_s: u64,
    /// Hours after which a mail that could not be sent counts as failed.
    pub give_up_h: u64,
    /// Mails that may wait.
    pub queue: usize,
    /// MiB that waiting and failed mails may take.
    pub queue_mb: u64,
    /// Largest size, in MiB, of the files in one mail; larger files are named with their address.
    pub attachment_mb: u64,
    /// Entries by mail; without it there are none.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub input: Option<MailIn>,
}

/// The place at which the site's mail server gives mails to the logbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MailInAddress {
    /// A port of this computer.
    Port(SocketAddr),
    /// A socket in the file system, for its owner and group.
    Socket(PathBuf),
}

impl TryFrom<String> for MailInAddress {
    type Error = String;

    fn try_from(text: String) -> Result<MailInAddress, String> {
        if text.starts_with('/') {
            return Ok(MailInAddress::Socket(text.into()));
        }
        let wrong = || format!("invalid address '{}'; write \"/run/tampu/lmtp.sock\" or \"127.0.0.1:2424\"", text.escape_debug());
        let at: SocketAddr = text.parse().map_err(|_| wrong())?;
        // Whoever reaches it can write in the name of every user.
        if at.ip().is_loopback() {
            Ok(MailInAddress::Port(at))
        } else {
            Err(format!("{}: a port for mail is one of this computer", wrong()))
        }
    }
}

impl From<MailInAddress> for String {
    fn from(address: MailInAddress) -> String {
        match address {
            MailInAddress::Port(at) => at.to_string(),
            MailInAddress::Socket(path) => path.display().to_string(),
        }
    }
}

/// The section `[mail.in]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailIn {
    /// The socket or port of LMTP.
    pub listen: MailInAddress,
    /// Logbooks by the part of an address before the `@`, such as `shift = "Shift"`.
    pub books: BTreeMap<String, String>,
    /// The domain of these addresses. With it, replies to mails about an entry go to the address of its logbook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Largest mail, in MiB.
    #[serde(default = "usual_mail")]
    pub max_mb: u64,
}

fn usual_mail() -> u64 {
    25
}

impl MailIn {
    /// Returns the logbook of an address. What follows a `+` before the `@` does not count.
    pub fn book_of(&self, address: &str) -> Option<&str> {
        let (local, _) = address.rsplit_once('@')?;
        let local = local.split('+').next().unwrap_or_default();
        let found = self.books.iter().find(|(known, _)| known.eq_ignore_ascii_case(local));
        found.map(|(_, book)| book.as_str())
    }

    /// Returns the address of a logbook, if the domain is known.
    pub fn address_of(&self, book: &str) -> Option<String> {
        let (local, _) = self.books.iter().find(|(_, known)| same_name(known, book))?;
        self.domain.as_ref().map(|domain| format!("{local}@{domain}"))
    }
}

impl Default for MailSettings {
    fn default() -> MailSettings {
        MailSettings {
            host: None,
            port: None,
            tls: MailTls::Starttls,
            certificates: None,
            user: None,
            password_file: None,
            from: None,
            reply_to: None,
            retry_s: 60,
            give_up_h: 72,
            queue: 10_000,
            queue_mb: 1024,
            attachment_mb: 10,
            input: None,
        }
    }
}

impl MailSettings {
    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            MailTls::Starttls => 587,
            MailTls::Tls => 465,
            MailTls::None => 25,
        })
    }

    /// Checks the settings; an error has the setting's name and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (setting, address) in [("from", &self.from), ("reply_to", &self.reply_to)] {
            if let Some(Err(why)) = address.as_deref().map(str::parse::<Mailbox>) {
                let example = "write \"logbook@example.org\" or \"Logbook <logbook@example.org>\"";
                return Err((setting, format!("invalid address ({why}); {example}")));
            }
        }
        for (setting, value, most) in [
            ("retry_s", self.retry_s, 3600),
            ("give_up_h", self.give_up_h, 24 * 30),
            ("queue", self.queue as u64, 1_000_000),
            ("queue_mb", self.queue_mb, 1 << 20),
            ("attachment_mb", self.attachment_mb, 1024),
        ] {
            if !(1..=most).contains(&value) {
                return Err((setting, format!("invalid value {value}; use 1 to {most}")));
            }
        }
        if let Some(input) = &self.input {
            if input.books.is_empty() {
                let why =
                    "name the logbooks, as books = { shift = \"Shift\" }: mail to shift@ this site is for the logbook Shift";
                return Err(("in.books", why.to_owned()));
            }
            if !(1..=1024).contains(&input.max_mb) {
                return Err(("in.max_mb", format!("invalid value {}; use 1 to 1024", input.max_mb)));
            }
            let addresses = input.books.values().filter_map(|book| input.address_of(book));
            if let Some(wrong) = addresses.into_iter().find(|address| address.parse::<Mailbox>().is_err()) {
                return Err((
                    "in.domain",
                    format!("'{}' is no address; write domain = \"log.example.org\"", wrong.escape_debug()),
                ));
            }
            if self.host.is_none() {
                return Err((
                    "host",
                    "[mail.in] needs [mail] host and from, because replies are known by the logbook's own mails".to_owned(),
                ));
            }
        }
        let Some(host) = &self.host else { return Ok(()) };
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
            return Err(("host", format!("invalid host '{}'; write \"mail.example.org\"", host.escape_debug())));
        }
        if self.from.is_none() {
            return Err(("from", "the sender is missing; write from = \"Logbook <logbook@example.org>\"".to_owned()));
        }
        if self.tls == MailTls::None && !is_loopback(host) {
            let why = format!(
                "mail to '{host}' would be readable on its way; use \"starttls\" or \"tls\", \"none\" is for a server on this computer"
            );
            return Err(("tls", why));
        }
        match (&self.user, &self.password_file) {
            (Some(_), None) => Err(("password_file", "user needs the file with its password".to_owned())),
            (None, Some(_)) => Err(("user", "password_file needs the user's name".to_owned())),
            // A file that is not there yet is named by the attempt to connect.
            (Some(_), Some(file)) if file.exists() => read_secret(file).map(drop).map_err(|why| ("password_file", why)),
            _ => Ok(()),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads the first line of a file that nobody but its owner may read.
pub fn read_secret(file: &Path) -> Result<String, String> {
    let failed = |why: std::io::Error| format!("{}: {why}", file.display());
    let mode = fs::metadata(file).map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        let name = file.display();
        return Err(format!("{name}: others may read it (mode {:o}); run chmod 600 on it", mode & 0o777));
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(format!("{}: it is empty; its first line is the password", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::write(&open, "secret\n").unwrap();
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let whole = || MailSettings {
            host: Some("mail.example.org".to_owned()),
            from: Some("Logbook <logbook@example.org>".to_owned()),
            ..MailSettings::default()
        };
        assert_eq!((MailSettings::default().check(), whole().check()), (Ok(()), Ok(())));
        let wrong = |settings: MailSettings| settings.check().unwrap_err();
        assert_eq!(wrong(MailSettings { from: None, ..whole() }).0, "from");
        assert_eq!(wrong(MailSettings { from: Some("a@b\r\nBcc: c@d".to_owned()), ..whole() }).0, "from");
        assert_eq!(wrong(MailSettings { tls: MailTls::None, ..whole() }).0, "tls");
        assert_eq!(wrong(MailSettings { user: Some("u".to_owned()), ..whole() }).0, "password_file");
        assert_eq!(wrong(MailSettings { give_up_h: 0, ..whole() }).0, "give_up_h");
        let (setting, why) = wrong(MailSettings { user: Some("u".to_owned()), password_file: Some(open), ..whole() });
        assert!(setting == "password_file" && why.contains("chmod 600"), "{why}");
        let local = MailSettings { tls: MailTls::None, host: Some("127.0.0.1".to_owned()), ..whole() };
        assert_eq!((local.check(), local.port(), whole().port()), (Ok(()), 25, 587));
    }
}
