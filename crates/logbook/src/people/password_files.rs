//! The users of ELOG's password files, each file as a group.
//!
//! elogd asks for a login of the file that `Password file` names for a logbook. So each file is a set of users of its
//! own, and a user of one file has no access to the logbooks of another. Here all users of a site are in one registry.
//! The users of a file are therefore members of a group, which the import of users and a registration at a logbook fill.
//! In a logbook with a file, rights of `everybody` reach the members of its group alone. Rights that name a user or
//! another group reach them in any case, because an administrator gave them.
//!
//! A user of no such group was made here. While the site has one file, such a user counts as one of it; where logbooks name
//! several files, nobody can tell which one is meant, and the user is a guest there.

use std::path::{Component, Path};

use super::user::MAX_LOGIN;
use crate::book::{Book, elog_options::option};

/// The group of users who registered at a place without a password file.
pub const SELF_REGISTERED: &str = "self-registered";
/// The beginning of the name of a file's group.
const GROUP: &str = "elog ";
/// Stands for a separator of directories, which no name of a group has.
const SEPARATOR: &str = "|";

/// The password files that the logbooks of a site name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PasswordFiles(Vec<FileName>);

/// A value of `Password file`, by its parts. The first part of an absolute path is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileName(Vec<String>);

impl FileName {
    fn new(value: &str) -> FileName {
        let parts = value.trim().split(['/', '\\']).enumerate();
        FileName(
            parts.filter(|(at, part)| *part != "." && (*at == 0 || !part.is_empty())).map(|(_, part)| part.to_owned()).collect(),
        )
    }

    fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

/// Returns the value of `Password file` of a book.
pub fn password_file(book: &Book) -> Option<&str> {
    option(book, "Password file")
}

impl PasswordFiles {
    /// The files of these books.
    pub fn of<'a>(books: impl IntoIterator<Item = &'a Book>) -> PasswordFiles {
        let mut files = PasswordFiles::default();
        for name in books.into_iter().filter_map(password_file).map(FileName::new) {
            if !files.0.contains(&name) {
                files.0.push(name);
            }
        }
        files
    }

    /// Returns true if no book names a file.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the files.
    pub fn values(&self) -> Vec<String> {
        self.0.iter().map(|name| name.0.join("/")).collect()
    }

    /// Returns true if the books name more than one file.
    pub fn are_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns true if a book names the file.
    pub fn has(&self, value: &str) -> bool {
        self.0.contains(&FileName::new(value))
    }

    /// Returns the group of the users of a file, for its value in a configuration. Its name is that of the file, with the
    /// directories if books name two files of the same name.
    pub fn group(&self, value: &str) -> String {
        let name = FileName::new(value);
        let is_shared = self.0.iter().any(|other| *other != name && other.last() == name.last());
        let shown = if is_shared { name.0.join(SEPARATOR) } else { name.last().to_owned() };
        let plain: String = shown.chars().map(|c| if c.is_control() || ",;:".contains(c) { '_' } else { c }).collect();
        // The end of a long name tells more than its beginning.
        let too_long = plain.chars().count().saturating_sub(MAX_LOGIN - GROUP.len());
        let cut: String = plain.chars().skip(too_long).collect();
        format!("{GROUP}{}", cut.trim()).trim_end().to_owned()
    }

    /// Returns the group of the only file; `None` if there is none, or several.
    pub fn only_group(&self) -> Option<String> {
        match &self.0[..] {
            [only] => Some(self.group(only.last())),
            _ => None,
        }
    }

    /// Returns the value of a configuration that a file of users on disk stands for: the one with the same name. Of several,
    /// the one with the most directories in common counts; without any, the values are returned as an error.
    pub fn value_of(&self, file: &Path) -> Result<String, Vec<String>> {
        let own: Vec<String> = file.components().map(part).collect();
        let last = own.last().cloned().unwrap_or_default();
        let values = || self.0.iter().filter(|name| name.last() == last);
        let mut fitting: Vec<&FileName> = values().filter(|name| own.ends_with(&name.0)).collect();
        fitting.sort_by_key(|name| name.0.len());
        match (values().count(), fitting.pop()) {
            (0, _) => Ok(last),
            (1, _) => Ok(values().map(|name| name.0.join("/")).collect()),
            (_, Some(name)) => Ok(name.0.join("/")),
            (_, None) => Err(values().map(|name| name.0.join("/")).collect()),
        }
    }

    /// Returns true if rights of `everybody` in a book with this file reach a user of these groups.
    pub fn admit(&self, value: &str, groups: &[String]) -> bool {
        let is_from_elsewhere = |group: &String| group == SELF_REGISTERED || is_group_of_file(group);
        groups.contains(&self.group(value)) || !self.are_several() && !groups.iter().any(is_from_elsewhere)
    }
}

/// Returns true if a group is that of a password file.
pub fn is_group_of_file(group: &str) -> bool {
    group.starts_with(GROUP)
}

/// Returns a part of a path; that of the root is empty.
fn part(component: Component<'_>) -> String {
    match component {
        Component::RootDir => String::new(),
        other => other.as_os_str().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::user::check_name;

    fn files(values: &[&str]) -> PasswordFiles {
        let book = |value: &&str| Book { elog: vec![("Password file".into(), (*value).to_owned())], ..Book::new("b", vec![]) };
        PasswordFiles::of(&values.iter().map(book).collect::<Vec<_>>())
    }

    #[test]
    fn each_file_is_a_group() {
        for (values, value, group) in [
            (&["passwd"][..], "passwd", "elog passwd"),
            (&["passwd", "./passwd"], "./passwd", "elog passwd"),
            (&["/etc/elog/a.pwd", "b.pwd"], "/etc/elog/a.pwd", "elog a.pwd"),
            (&["/etc/elog/passwd", "passwd"], "/etc/elog/passwd", "elog |etc|elog|passwd"),
            (&["/etc/elog/passwd", "passwd"], "passwd", "elog passwd"),
            (&["x\\passwd", "y/passwd"], "x/passwd", "elog x|passwd"),
            (&["a,b:c"], "a,b:c", "elog a_b_c"),
        ] {
            assert_eq!(files(values).group(value), group, "{values:?}");
            assert!(check_name(group).is_ok(), "{group}");
        }
        let long = format!("{}end", "x".repeat(200));
        assert!(files(&[&long]).group(&long).ends_with("end") && check_name(&files(&[&long]).group(&long)).is_ok());
        assert_eq!((files(&[]).only_group(), files(&["a", "b"]).only_group()), (None, None));
        assert_eq!(files(&["x/a"]).only_group(), Some("elog a".to_owned()));
    }

    #[test]
    fn a_file_on_disk_stands_for_a_value() {
        let several = files(&["passwd", "x/passwd", "/etc/y/passwd", "b.pwd"]);
        for (path, value) in [
            ("/copy/passwd", "passwd"),
            ("/copy/x/passwd", "x/passwd"),
            ("/etc/y/passwd", "/etc/y/passwd"),
            ("/copy/b.pwd", "b.pwd"),
            ("/copy/new", "new"),
        ] {
            assert_eq!(several.value_of(Path::new(path)), Ok(value.to_owned()), "{path}");
        }
        let two = files(&["/etc/x/passwd", "/etc/y/passwd"]);
        assert_eq!(two.value_of(Path::new("/copy/passwd")), Err(vec!["/etc/x/passwd".into(), "/etc/y/passwd".into()]));
        assert_eq!(files(&["/etc/x/passwd"]).value_of(Path::new("/copy/passwd")), Ok("/etc/x/passwd".to_owned()));
    }

    #[test]
    fn a_file_admits_its_users() {
        let groups = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let (one, two) = (files(&["a"]), files(&["a", "b"]));
        for (groups, of_one, of_two) in [
            (groups(&[]), true, false),
            (groups(&["ops"]), true, false),
            (groups(&["elog a"]), true, true),
            (groups(&["elog b"]), false, false),
            (groups(&["elog a", "elog b"]), true, true),
            (groups(&[SELF_REGISTERED]), false, false),
            (groups(&[SELF_REGISTERED, "elog a"]), true, true),
        ] {
            assert_eq!((one.admit("a", &groups), two.admit("a", &groups)), (of_one, of_two), "{groups:?}");
        }
    }
}
