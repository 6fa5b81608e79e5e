//! The commands that a book's ELOG configuration allows, for surfaces that have no pages.
//!
//! ELOG checks a command by `Deny <command>`, then `Allow <command>`, then its menus. A change of an entry is also checked by `Restrict edit` and
//! `Restrict edit time`. The rules restrict rights and grant none. A surface that is no page of ELOG's names the command that it stands for.

use std::fmt;

use tampu_types::Time;

use super::{Right, decide::is_own};
use crate::{
    book::{
        Book,
        elog_options::{is_on, leading_number, list, option},
        same_name,
    },
    entry::Entry,
    search::is_hidden,
};

/// A command of ELOG, as an action of another surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElogCommand {
    /// Read a list, an entry, a search or an attachment.
    List,
    /// Post an entry.
    New,
    /// Post a reply.
    Reply,
    /// Change an entry.
    Edit,
    /// Delete an entry.
    Delete,
    /// Copy an entry to a book.
    CopyTo,
    /// Move an entry to a book.
    MoveTo,
}

impl ElogCommand {
    /// ELOG's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            ElogCommand::List => "List",
            ElogCommand::New => "New",
            ElogCommand::Reply => "Reply",
            ElogCommand::Edit => "Edit",
            ElogCommand::Delete => "Delete",
            ElogCommand::CopyTo => "Copy to",
            ElogCommand::MoveTo => "Move to",
        }
    }

    /// Returns true if a name in a menu means the command; older menus have shorter names.
    fn is(self, name: &str) -> bool {
        let name = name.replace('_', " ");
        let older = match self {
            ElogCommand::CopyTo => "Copy",
            ElogCommand::MoveTo => "Move",
            command => command.name(),
        };
        [self.name(), older].iter().any(|known| known.eq_ignore_ascii_case(name.trim()))
    }
}

/// The reason why a command is not allowed.
#[derive(Debug, Clone, PartialEq)]
pub enum ElogDenial {
    /// `Deny <command>` names the user.
    Denied(ElogCommand),
    /// `Allow <command>` does not name the user.
    NotAllowed(ElogCommand),
    /// No menu has the command.
    NotInMenus(ElogCommand),
    /// `Search slave`: entries are changed elsewhere.
    OnlyReads,
    /// `Restrict edit`: only the author changes an entry.
    NotAuthor,
    /// `Restrict edit time`: the entry is too old.
    TooOld {
        /// The option's name.
        option: &'static str,
        /// The value of the option.
        hours: f64,
    },
}

impl fmt::Display for ElogDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElogDenial::Denied(command) => write!(f, "'Deny {}' names this user", command.name()),
            ElogDenial::NotAllowed(command) => write!(f, "'Allow {}' does not name this user", command.name()),
            ElogDenial::NotInMenus(command) => write!(f, "no menu has the command '{}'", command.name()),
            ElogDenial::OnlyReads => f.write_str("'Search slave' is on, so that entries are changed on the main server only"),
            ElogDenial::NotAuthor => f.write_str("'Restrict edit' is on, so that only the author changes an entry"),
            ElogDenial::TooOld { option, hours } => {
                write!(f, "'{option}' lets an entry be changed for {hours} hours after it was written")
            }
        }
    }
}

/// The rules of a book's configuration.
#[derive(Debug, Clone, Copy)]
pub struct ElogRules<'a>(&'a Book);

impl<'a> ElogRules<'a> {
    /// The rules of a book.
    pub fn of(book: &'a Book) -> ElogRules<'a> {
        ElogRules(book)
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        option(self.0, name).map(list)
    }

    fn is_on(&self, name: &str) -> bool {
        option(self.0, name).is_some_and(is_on)
    }

    fn names(&self, option: &str, login: &str) -> bool {
        self.list(option).is_some_and(|users| users.iter().any(|user| same_name(user, login)))
    }

    /// Returns true if the configuration says nothing, as in a book that never was ELOG's.
    pub fn is_empty(&self) -> bool {
        self.0.elog.is_empty()
    }

    /// Checks that a login may use a command; an empty login is a guest.
    pub fn allow(&self, command: ElogCommand, login: &str) -> Result<(), ElogDenial> {
        if command != ElogCommand::List && self.is_on("Search slave") {
            return Err(ElogDenial::OnlyReads);
        }
        if self.names(&format!("Deny {}", command.name()), login) {
            return Err(ElogDenial::Denied(command));
        }
        match self.list(&format!("Allow {}", command.name())) {
            Some(users) if !users.iter().any(|user| same_name(user, login)) => return Err(ElogDenial::NotAllowed(command)),
            Some(_) => return Ok(()),
            None => {}
        }
        if self.menus_have(command, login.is_empty()) { Ok(()) } else { Err(ElogDenial::NotInMenus(command)) }
    }

    /// Returns true if the menus have a command. Without a menu of entries all commands are allowed, and `List` always is.
    fn menus_have(&self, command: ElogCommand, guest: bool) -> bool {
        let first = |names: &[&str]| names.iter().find_map(|name| self.list(name));
        let (of_entry, of_list) = match guest {
            true => (
                first(&["Guest Menu commands", "Menu commands"]),
                first(&["Guest List Menu commands", "Guest Menu commands", "List Menu commands"]),
            ),
            false => (first(&["Menu commands"]), first(&["List Menu commands"])),
        };
        let Some(of_entry) = of_entry else { return true };
        // The default menu of a list has no other of these commands.
        let of_list = of_list.unwrap_or_else(|| vec![ElogCommand::New.name().to_owned()]);
        command == ElogCommand::List || of_entry.iter().chain(&of_list).any(|name| command.is(name))
    }

    /// Returns true if a login is an administrator of the book, by its rights or by `Admin user`.
    fn is_admin(&self, login: &str, rights: &[Right]) -> bool {
        !login.is_empty() && (rights.contains(&Right::Admin) || self.names("Admin user", login))
    }

    /// Returns true if the configuration may hide attributes from somebody.
    pub fn may_hide(&self) -> bool {
        ["Guest display", "Show attributes"].iter().any(|name| option(self.0, name).is_some())
    }

    /// Returns the attributes that ELOG's pages show to a caller, with an entry or in a list; `None` stands for all. Others
    /// are hidden on every surface, except from callers who may change entries: a change without them would lose them.
    pub fn shown_to(&self, login: &str, rights: &[Right]) -> Option<Vec<String>> {
        if self.is_empty() || [Right::EditOwn, Right::EditAny, Right::Admin].iter().any(|right| rights.contains(right)) {
            return None;
        }
        let of_guest = |name: &str| if login.is_empty() { self.list(name) } else { None };
        let of_entry = of_guest("Guest display");
        // A list for guests that is missing shows what `Guest display` shows: a hidden attribute stays closed.
        let of_list = of_guest("Guest list display").or_else(|| of_entry.clone()).or_else(|| self.list("List display"));
        let mut shown = of_entry.or_else(|| self.list("Show attributes"))?;
        shown.extend(of_list?);
        let all = self.0.attributes.iter().all(|attribute| !is_hidden(Some(&shown), &attribute.name));
        (!all).then_some(shown)
    }

    /// Checks that a user may change or delete an entry that was written at a time. `rights` are the user's in the book.
    pub fn allow_change(
        &self,
        (login, full_name): (&str, &str),
        rights: &[Right],
        entry: &Entry,
        written: Time,
        now: Time,
    ) -> Result<(), ElogDenial> {
        let admin = self.is_admin(login, rights);
        if self.is_on("Restrict edit") && !admin && !is_own(login, full_name, entry) {
            return Err(ElogDenial::NotAuthor);
        }
        let name = if admin { "Admin restrict edit time" } else { "Restrict edit time" };
        if let Some(hours) = self.hours(name)
            && now.0.saturating_sub(written.0) as f64 / 3.6e12 > hours
        {
            return Err(ElogDenial::TooOld { option: name, hours });
        }
        Ok(())
    }

    /// Returns the hours of an option; `None` for no limit.
    fn hours(&self, name: &str) -> Option<f64> {
        let value = option(self.0, name)?.trim();
        let hours: f64 = value.parse().ok().or_else(|| leading_number(value)?.parse().ok())?;
        (hours > 0.0).then_some(hours)
    }

    /// Returns the hours during which an entry can be changed after it was written: by users, and by administrators. `None`
    /// stands for no limit.
    pub fn edit_hours(&self) -> [Option<f64>; 2] {
        ["Restrict edit time", "Admin restrict edit time"].map(|name| self.hours(name))
    }

    /// Returns true if changes depend on the age of an entry.
    pub fn limits_age(&self) -> bool {
        self.edit_hours().iter().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Content, EntryRef};

    fn book(text: &str) -> Book {
        let pair = |line: &str| line.split_once(" = ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
        Book { elog: text.lines().map(pair).collect(), ..Book::new("b", vec![]) }
    }

    #[test]
    fn a_configuration_takes_commands_away() {
        use ElogCommand::*;
        for (text, command, login, good) in [
            ("", Delete, "zoe", true),
            ("Deny Delete = kim, ZOE", Delete, "zoe", false),
            ("Deny Delete = kim", Delete, "zoe", true),
            ("Allow Delete = kim", Delete, "zoe", false),
            ("Allow Delete = zoe\nMenu commands = List", Delete, "zoe", true),
            ("Menu commands = List", Delete, "zoe", false),
            ("Menu commands = List", List, "zoe", true),
            ("Menu commands = List", New, "zoe", true),
            ("Menu commands = List\nList Menu commands = Find", New, "zoe", false),
            ("Menu commands = New, Copy", CopyTo, "zoe", true),
            ("Menu commands = New, move_to", MoveTo, "zoe", true),
            ("Menu commands = New, Copy", MoveTo, "zoe", false),
            ("Guest menu commands = List, Find", New, "", false),
            ("Guest menu commands = List, Find", New, "zoe", true),
            ("Deny List = zoe", List, "zoe", false),
            ("Search slave = 1", Edit, "zoe", false),
            ("Search slave = 1", List, "zoe", true),
            ("Search slave = 0", Edit, "zoe", true),
        ] {
            assert_eq!(ElogRules::of(&book(text)).allow(command, login).is_ok(), good, "{text} {command:?} {login}");
        }
    }

    #[test]
    fn attributes_that_no_page_shows_are_hidden() {
        use crate::book::{AttributeDef, AttributeKind};
        let (reader, editor) = (&[Right::Read, Right::Write][..], &[Right::Read, Right::EditOwn][..]);
        for (text, login, rights, hidden) in [
            ("", "", reader, ""),
            ("Guest display = Author", "", reader, "Salary"),
            ("Guest display = author", "zoe", reader, ""),
            ("Guest display = Author", "", editor, ""),
            ("Guest display = Author\nGuest list display = ID, Salary", "", reader, ""),
            ("Guest display = Author\nGuest list display = ID, Date", "", reader, "Salary"),
            // Lists still show it.
            ("Guest list display = Author", "", reader, ""),
            ("Show attributes = Author", "zoe", reader, ""),
            ("Show attributes = Author\nList display = ID, Author", "zoe", reader, "Salary"),
            ("Show attributes = Author\nList display = ID, Author", "", reader, "Salary"),
            ("Show attributes = Author\nList display = ID, Author", "zoe", editor, ""),
            ("Show attributes = Author\nGuest display = Author, Salary", "", reader, ""),
        ] {
            let mut book = book(text);
            book.attributes = ["Author", "Salary"].map(|name| AttributeDef::new(name, AttributeKind::Text)).to_vec();
            let shown = ElogRules::of(&book).shown_to(login, rights);
            let is = ["Author", "Salary"].into_iter().filter(|name| is_hidden(shown.as_deref(), name)).collect::<String>();
            assert_eq!(is, hidden, "{text:?} {login:?} {rights:?}");
        }
    }

    #[test]
    fn an_entry_is_changed_by_its_author_in_time() {
        let hour = 3_600_000_000_000;
        let (written, now) = (Time(1000 * hour), Time(1005 * hour));
        let entry = |by: &str| Entry {
            at: EntryRef::new("b", 1),
            date: written,
            zone: 0,
            by: by.to_owned(),
            revision: 0,
            changed: written,
            parent: None,
            thread: 1,
            content: Content::default(),
            signatures: vec![],
        };
        let (editor, keeper) = (&[Right::Read, Right::EditOwn, Right::EditAny][..], &Right::ALL[..]);
        for (text, login, rights, by, good) in [
            ("", "zoe", editor, "kim", true),
            ("Restrict edit = 1", "zoe", editor, "kim", false),
            ("Restrict edit = 1", "zoe", editor, "zoe", true),
            ("Restrict edit = 1", "zoe", keeper, "kim", true),
            ("Restrict edit = 1\nAdmin user = zoe", "zoe", editor, "kim", true),
            ("Restrict edit time = 4", "zoe", editor, "zoe", false),
            ("Restrict edit time = 6", "zoe", editor, "zoe", true),
            ("Restrict edit time = 4", "zoe", keeper, "zoe", true),
            ("Restrict edit time = 0", "zoe", editor, "zoe", true),
            ("Admin restrict edit time = 4", "zoe", keeper, "zoe", false),
        ] {
            let book = book(text);
            let done = ElogRules::of(&book).allow_change((login, ""), rights, &entry(by), written, now);
            assert_eq!(done.is_ok(), good, "{text} {login} {by}");
        }
    }
}
