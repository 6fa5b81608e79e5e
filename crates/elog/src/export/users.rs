//! The users of an export: elogd's password file.
//!
//! A password stays valid only if its user has not logged in since the import from ELOG. Of a later password there is
//! only a hash that ELOG cannot check, so the user is written with a password that nobody has. elogd then offers no
//! visitor the form for the first user, who would be the administrator.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use tampu_logbook::{
    book::{Book, elog_options},
    people::user::User,
};

/// The name of the file, unless a book names another one.
const NAME: &str = "passwd";
/// A digest that no password has.
const UNUSABLE: &str = "*";

/// Returns the name of the password file in the export, and the lines of `[global]` that books without such an option
/// need.
pub(super) fn options<'a>(
    books: impl Iterator<Item = &'a Book> + Clone,
    users: &[User],
    notes: &mut Vec<String>,
) -> (String, String) {
    let configured = books.clone().find_map(|book| elog_options::option(book, "Password file"));
    let name = configured.and_then(|file| Path::new(file.trim()).file_name()?.to_str()).unwrap_or(NAME).to_owned();
    let name = if ["elogd.cfg", "logbooks"].contains(&name.as_str()) { NAME.to_owned() } else { name };
    if let Some(file) = configured.filter(|file| *file != name) {
        notes.push(format!("the password file of elogd.cfg is '{name}' beside it, and no longer '{file}'"));
    }
    let mut lines = String::new();
    let lacks = |option: &str| books.clone().any(|book| elog_options::option(book, option).is_none());
    if lacks("Password file") {
        lines.push_str(&format!("Password file = {name}\n"));
        notes.push(
            "logbooks without 'Password file' have one in this export: ELOG would be open to everybody without it".to_owned(),
        );
    }
    let admins: Vec<&str> = users.iter().filter(|user| user.admin).map(|user| user.login.as_str()).collect();
    if lacks("Admin user") && !admins.is_empty() {
        lines.push_str(&format!("Admin user = {}\n", admins.join(", ")));
    }
    (name, lines)
}

/// Writes the password file, which only its owner may read.
pub(super) fn write(path: &Path, users: &[User], books: &[&str], notes: &mut Vec<String>) -> io::Result<()> {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<list>\n");
    let mut without = Vec::new();
    for user in users {
        let digest = user.password.as_ref().and_then(|password| password.elog_digest());
        if digest.is_none() {
            without.push(user.login.as_str());
        }
        text.push_str(&format!(
            "  <user>\n    <name>{}</name>\n    <password encoding=\"SHA256\">{}</password>\n    <full_name>{}</full_name>\n    \
             <last_logout>0</last_logout>\n    <last_activity>0</last_activity>\n    <email>{}</email>\n    <inactive>{}</inactive>\n    \
             <email_notify>{}</email_notify>\n  </user>\n",
            escaped(&user.login),
            digest.unwrap_or(UNUSABLE),
            escaped(&user.full_name),
            escaped(&user.email),
            u8::from(user.inactive),
            notify(user, books),
        ));
    }
    text.push_str("</list>\n");
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    if !without.is_empty() {
        notes.push(format!(
            "{} of {} users have no password that ELOG can check, and cannot log in there until an administrator sets one: {}",
            without.len(),
            users.len(),
            without.join(", ")
        ));
    }
    Ok(())
}

/// Returns the elements of the logbooks about whose entries a user gets mail.
fn notify(user: &User, books: &[&str]) -> String {
    let wanted = books.iter().filter(|book| user.wants_mail_of(book));
    wanted.map(|book| format!("<logbook>{}</logbook>", escaped(book))).collect()
}

/// Escapes a text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
