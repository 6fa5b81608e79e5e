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
    people::{
        password_files::{PasswordFiles, password_file},
        user::User,
    },
};

/// The name of the file, unless a book names another one.
const NAME: &str = "passwd";
/// A digest that no password has.
const UNUSABLE: &str = "*";

/// A password file of the export.
pub(super) struct ExportedFile {
    pub name: String,
    /// The groups of the password files that it replaces.
    pub groups: Vec<String>,
    pub users: Vec<User>,
}

/// Returns the password files of the export, and the lines of `[global]` that books without such an option need. A file has
/// the users whom its logbooks admit, and the administrators.
pub(super) fn files<'a>(
    books: impl Iterator<Item = &'a Book> + Clone,
    users: &[User],
    known: &PasswordFiles,
    notes: &mut Vec<String>,
) -> (Vec<ExportedFile>, String) {
    let mut files: Vec<ExportedFile> = Vec::new();
    let admitted = |value: &str| users.iter().filter(|user| user.admin || known.admit(value, &user.groups)).cloned().collect();
    for value in books.clone().filter_map(password_file) {
        let (group, users): (String, Vec<User>) = (known.group(value), admitted(value));
        if files.iter().any(|file| file.groups.contains(&group)) {
            continue;
        }
        if let Some(file) = files.iter_mut().find(|file| file.users == users) {
            file.groups.push(group);
            continue;
        }
        let name = free_name(value, &files);
        if name != value {
            notes.push(format!("the password file of elogd.cfg is '{name}' beside it, and no longer '{value}'"));
        }
        files.push(ExportedFile { name, groups: vec![group], users });
    }
    let (name, lines) = options(books, users, &files, notes);
    // Without a file elogd would be open to everybody.
    if lines.starts_with("Password file") && files.iter().all(|file| file.name != name) {
        files.push(ExportedFile { name, groups: Vec::new(), users: users.to_vec() });
    }
    (files, lines)
}

/// Returns the name of a file's copy beside `elogd.cfg`.
fn free_name(value: &str, files: &[ExportedFile]) -> String {
    let own = Path::new(value.trim()).file_name().and_then(|name| name.to_str()).unwrap_or(NAME);
    let own = if ["elogd.cfg", "logbooks"].contains(&own) { NAME } else { own };
    let mut name = own.to_owned();
    while files.iter().any(|file| file.name == name) {
        name.push('_');
    }
    name
}

/// Returns the name of the file with all users, and the lines of `[global]` that books without such an option need.
fn options<'a>(
    books: impl Iterator<Item = &'a Book> + Clone,
    users: &[User],
    files: &[ExportedFile],
    notes: &mut Vec<String>,
) -> (String, String) {
    let whole = files.iter().find(|file| file.users == users);
    let name = whole.map_or_else(|| free_name(NAME, files), |file| file.name.clone());
    let mut lines = String::new();
    let lacks = |option: &str| books.clone().any(|book| elog_options::option(book, option).is_none());
    if lacks("Password file") {
        lines.push_str(&format!("Password file = {name}\n"));
        let open = books.clone().filter(|book| elog_options::option(book, "Password file").is_none());
        notes.push(format!(
            "logbooks without 'Password file' have one in this export, so that elogd is not open to everybody: {}",
            open.map(|book| book.name.as_str()).collect::<Vec<_>>().join(", ")
        ));
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
            "{} of {} users have no password that elogd can check, and cannot log in there until an administrator sets one: {}. \
             --elog-passwords with elogd's former password file keeps those that are still the same",
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
