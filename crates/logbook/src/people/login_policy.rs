//! The callers that a book's ELOG configuration admits: by login, as a guest, and by the address of the client.
//!
//! An imported book stays as closed as it was in ELOG, on every interface and despite all granted rights. Its
//! administrators are always admitted. The rule is here and not in `tampu-elog`, so that no program can open a book by
//! leaving that crate out.
//!
//! ELOG asks everybody to log in if a book has a file of passwords, unless it names commands of guests. Versions before
//! 2.6 had passwords of books in place of users. Such a book is closed to guests in the same way.

use std::net::IpAddr;

use super::{Right, host_list, password_files::password_file};
use crate::book::{
    Book,
    elog_options::{list, option},
    same_name,
};

/// Options with which ELOG asks everybody to log in.
const CLOSING: [&str; 4] = ["Login user", "Password file", "Authentication", "Read password"];
/// Options with which ELOG before 2.6 asked for a password before a change, and the rights that a guest loses by each.
const NARROWING: [(&str, &[Right]); 3] = [
    ("Write password", &[Right::Write, Right::EditOwn, Right::EditAny, Right::Admin]),
    ("Delete password", &[Right::EditOwn, Right::EditAny]),
    ("Admin password", &[Right::Admin]),
];

/// The callers that a book admits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginPolicy {
    /// The admitted logins; `None` admits every login.
    users: Option<Vec<String>>,
    /// The password file, whose users alone have the rights of `everybody`.
    password_file: Option<String>,
    /// The option that closes the book to guests.
    closed_by: Option<&'static str>,
    /// Rights that no guest has.
    no_guest: Vec<Right>,
    /// `Deny List` and `Allow List`: the users who may not read, and the only ones who may.
    list: (Vec<String>, Option<Vec<String>>),
    hosts: HostPolicy,
}

/// The addresses of clients that a book admits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct HostPolicy {
    allow: Vec<String>,
    deny: Vec<String>,
}

impl LoginPolicy {
    /// Reads the policy of a book's configuration.
    pub fn of(book: &Book) -> LoginPolicy {
        let listed = |name: &str| option(book, name).map(list);
        let users = listed("Login user").map(|users| [users, listed("Admin user").unwrap_or_default()].concat());
        let is_there = |name: &str| option(book, name).is_some();
        let names_guests = listed("Guest menu commands").is_some();
        let closed_by = CLOSING.into_iter().find(|name| is_there(name)).filter(|_| !names_guests);
        let lost = NARROWING.into_iter().filter(|(name, _)| is_there(name)).flat_map(|(_, rights)| rights);
        let hosts =
            HostPolicy { allow: listed("Hosts allow").unwrap_or_default(), deny: listed("Hosts deny").unwrap_or_default() };
        let list = (listed("Deny List").unwrap_or_default(), listed("Allow List"));
        let password_file = password_file(book).map(ToOwned::to_owned);
        LoginPolicy { users, password_file, closed_by, no_guest: lost.copied().collect(), list, hosts }
    }

    /// Returns the rights that the policy leaves to a login; an empty login is a guest.
    pub fn leaves(&self, login: &str, mut rights: Vec<Right>) -> Vec<Right> {
        if login.is_empty() {
            rights.retain(|right| self.closed_by.is_none() && !self.no_guest.contains(right));
        } else if let Some(users) = &self.users
            && !rights.contains(&Right::Admin)
            && !users.iter().any(|user| same_name(user, login))
        {
            rights.clear();
        }
        rights
    }

    /// Returns true if the configuration lets a login read lists and entries; an empty login is a guest.
    pub fn lists(&self, login: &str) -> bool {
        let has = |users: &[String]| users.iter().any(|user| same_name(user, login));
        let (deny, allow) = &self.list;
        !has(deny) && allow.as_ref().is_none_or(|allow| has(allow))
    }

    /// Returns the password file that the book names.
    pub fn password_file(&self) -> Option<&str> {
        self.password_file.as_deref()
    }

    /// Returns the option that closes the book to guests, if one does.
    pub fn guests_closed_by(&self) -> Option<&'static str> {
        self.closed_by
    }

    /// Returns the only logins that are admitted; `None` if all are.
    pub fn users(&self) -> Option<&[String]> {
        self.users.as_deref()
    }

    /// Returns true if the book is open to a client's address.
    pub fn admits_host(&self, from: IpAddr) -> bool {
        host_list::admit(&self.hosts.allow, &self.hosts.deny, from)
    }

    /// Returns the names among the denied hosts.
    pub fn denied_names(&self) -> Vec<&str> {
        host_list::names(&self.hosts.deny)
    }

    /// Returns true if the book admits only some addresses.
    pub fn limits_hosts(&self) -> bool {
        !self.hosts.deny.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(text: &str) -> Book {
        let pair = |line: &str| line.split_once(" = ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
        Book { elog: text.lines().map(pair).collect(), ..Book::new("b", vec![]) }
    }

    #[test]
    fn a_book_stays_as_closed_as_it_was() {
        const READ: &[Right] = &[Right::Read];
        const EVERYTHING: &[Right] = &Right::ALL;
        let closed = "Login user = zoe, Max\nAdmin user = kim\n";
        for (text, login, rights, expected) in [
            ("", "", READ, READ),
            ("", "eve", READ, READ),
            (closed, "", READ, &[]),
            (closed, "zoe", READ, READ),
            (closed, "max", READ, READ),
            (closed, "kim", READ, READ),
            (closed, "eve", &[Right::Read, Right::Write, Right::EditAny], &[]),
            (closed, "eve", &[Right::Admin], &[Right::Admin]),
            ("Login user = zoe\nGuest menu commands = List\n", "", READ, READ),
            ("Login user = zoe\nGuest menu commands = List\n", "eve", READ, &[]),
            // A file of passwords means that everybody logs in, unless guests have a menu.
            ("Password file = passwd\n", "", EVERYTHING, &[]),
            ("password  FILE = passwd\n", "", EVERYTHING, &[]),
            ("Password file = passwd\n", "eve", READ, READ),
            ("Password file = passwd\nGuest Menu commands = List, Find\n", "", READ, READ),
            ("Password file = passwd\nGuest Menu commands = \n", "", READ, &[]),
            ("Authentication = LDAP\n", "", READ, &[]),
            // The passwords of ELOG before it had users.
            ("Read password = c2VjcmV0\n", "", EVERYTHING, &[]),
            ("Read password = c2VjcmV0\n", "eve", READ, READ),
            ("Write password = c2VjcmV0\n", "", EVERYTHING, READ),
            ("Delete password = c2VjcmV0\n", "", EVERYTHING, &[Right::Read, Right::Write, Right::Admin]),
        ] {
            assert_eq!(LoginPolicy::of(&book(text)).leaves(login, rights.to_vec()), expected, "{text} {login}");
        }
    }

    #[test]
    fn the_command_list_decides_who_reads() {
        for (text, login, reads) in [
            ("", "", true),
            ("Deny List = zoe\n", "Zoe", false),
            ("Deny List = zoe\n", "", true),
            ("Allow List = zoe\n", "zoe", true),
            ("Allow List = zoe\n", "", false),
        ] {
            assert_eq!(LoginPolicy::of(&book(text)).lists(login), reads, "{text} {login}");
        }
    }

    #[test]
    fn the_address_of_a_client_decides_too() {
        for (text, from, open) in [
            ("", "192.0.2.7", true),
            ("Hosts deny = ALL\n", "192.0.2.7", false),
            ("Hosts deny = ALL\nHosts allow = 192.0.2., localhost\n", "192.0.2.7", true),
            ("Hosts deny = ALL\nHosts allow = 192.0.2., localhost\n", "::ffff:192.0.2.7", true),
            ("Hosts deny = ALL\nHosts allow = 192.0.2., localhost\n", "::1", true),
            ("Hosts deny = ALL\nHosts allow = 192.0.2.\n", "192.0.20.7", false),
            ("Hosts allow = 192.0.2.7\n", "192.0.2.8", true),
            // A name could be that of any address.
            ("Hosts deny = pc7.lab.org\n", "192.0.2.7", false),
            ("Hosts deny = 198.51.100., .student.lab.org\n", "192.0.2.7", false),
            ("Hosts deny = .student.lab.org\nHosts allow = 192.0.2.\n", "192.0.2.7", true),
            ("Hosts deny = .student.lab.org\nHosts allow = pc7.lab.org\n", "192.0.2.7", false),
            ("Hosts deny = .student.lab.org\n", "::1", true),
            ("Hosts deny = .student.lab.org\n", "::ffff:127.0.0.1", true),
            ("Hosts deny = .student.lab.org, localhost\n", "127.0.0.1", false),
        ] {
            assert_eq!(LoginPolicy::of(&book(text)).admits_host(from.parse().unwrap()), open, "{text} from {from}");
        }
    }
}
