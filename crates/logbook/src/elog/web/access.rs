//! Who may do what, in ELOG's order: guests, then who may log in, then who is denied or allowed a command, then what menus have. This
//! narrows what [`crate::people`] gives; nothing here gives more.

use tampu_types::Time;

use super::{
    Caller,
    command::Command,
    hosts,
    settings::{Settings, has},
};
use crate::{
    book::Book,
    entry::Entry,
    people::{Right, decide::is_own},
};

/// Why somebody may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// They may, perhaps, when they say who they are.
    Login,
    /// They may not.
    Forbidden(String),
}

/// Whether somebody may use a command in a book; what an entry's owner decides is [`may_change`]. Only logging in and out is for those who may not read.
pub fn check(caller: &Caller, book: &Book, settings: &Settings, command: Command) -> Result<(), Denied> {
    if matches!(command, Command::Login | Command::Logout) {
        return Ok(());
    }
    if !hosts::open_to(settings, caller.from) {
        return Err(Denied::Forbidden(format!("access from {} to logbook '{}' is not allowed", caller.from, book.name)));
    }
    let guest = caller.login.is_empty();
    let no = |why: String| if guest { Err(Denied::Login) } else { Err(Denied::Forbidden(why)) };
    let refused =
        || no(format!("the command '{}' is not allowed for user '{}' in logbook '{}'", command.name(), caller.login, book.name));
    let may = |right: Right| caller.rights.may(right, &book.name);
    if !may(Right::Read) {
        return no(format!("user '{}' has no access to logbook '{}'", caller.login, book.name));
    }
    let has_right = match command.right() {
        Right::EditOwn => may(Right::EditOwn) || may(Right::EditAny),
        right => may(right),
    };
    let is_admin = is_admin(caller, book, settings);
    let only_reads = settings.search_slave() && !matches!(command.right(), Right::Read | Right::Admin);
    if !has_right {
        return refused();
    }
    if only_reads {
        return Err(Denied::Forbidden("this server searches beside another one, and changes nothing".to_owned()));
    }
    if !guest && !is_admin && settings.login_users().is_some_and(|users| !has(&users, &caller.login)) {
        return no(format!("user '{}' has no access to logbook '{}'", caller.login, book.name));
    }
    if has(&settings.denied(command), &caller.login) {
        return refused();
    }
    match settings.allowed(command) {
        Some(users) if !has(&users, &caller.login) => return refused(),
        Some(_) => return Ok(()),
        None => {}
    }
    if settings.menus_allow(command, guest) { Ok(()) } else { refused() }
}

/// Whether somebody is what a configuration calls an admin user.
pub fn is_admin(caller: &Caller, book: &Book, settings: &Settings) -> bool {
    !caller.login.is_empty() && (has(&settings.admins(), &caller.login) || caller.rights.may(Right::Admin, &book.name))
}

/// Whether somebody may change or delete this entry now.
pub fn may_change(caller: &Caller, book: &Book, settings: &Settings, entry: &Entry, now: Time) -> Result<(), Denied> {
    let admin = is_admin(caller, book, settings);
    let own = is_own(&caller.login, &caller.full_name, entry);
    let no = |why: &str| {
        if caller.login.is_empty() { Err(Denied::Login) } else { Err(Denied::Forbidden(why.to_owned())) }
    };
    let any = caller.rights.may(Right::EditAny, &book.name) || admin;
    let mine = own && caller.rights.may(Right::EditOwn, &book.name);
    if !any && !mine || settings.restrict_edit() && !own && !admin {
        return no("only the author of an entry may change it");
    }
    if let Some(hours) = settings.edit_hours(admin) {
        let age = now.0.saturating_sub(entry.date.0) as f64 / 3.6e12;
        if age > hours {
            return no(&format!("an entry can be changed only {hours} hours after it was written"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::{elog::config, entry::EntryRef, people::Rights};

    fn caller(login: &str, rights: &[Right]) -> Caller {
        let rights = Rights([("b".to_owned(), rights.to_vec())].into());
        let full_name = if login.is_empty() { String::new() } else { format!("{login} Quartz") };
        Caller { login: login.to_owned(), full_name, email: String::new(), from: IpAddr::V4(Ipv4Addr::LOCALHOST), rights }
    }

    fn book(text: &str) -> (Book, Settings) {
        let book = config::parse(format!("[b]\nA = b\n{text}").as_bytes()).logbooks()[0].book();
        let settings = Settings::of(&book);
        (book, settings)
    }

    const ALL: [Right; 5] = [Right::Read, Right::Write, Right::EditOwn, Right::EditAny, Right::Admin];
    const WRITER: [Right; 3] = [Right::Read, Right::Write, Right::EditOwn];

    #[test]
    fn a_configuration_takes_away_and_never_gives() {
        let may = |text: &str, caller: &Caller, command| {
            let (book, settings) = book(text);
            check(caller, &book, &settings, command)
        };
        let (zoe, guest) = (caller("zoe", &WRITER), caller("", &[Right::Read]));
        assert_eq!(may("", &zoe, Command::New), Ok(()));
        assert_eq!(may("", &guest, Command::List), Ok(()));
        assert_eq!(may("", &guest, Command::New), Err(Denied::Login));
        for command in [Command::GetMd5, Command::Help, Command::Forgot] {
            assert_eq!(may("", &guest, command), Ok(()));
            assert_eq!(may("", &caller("", &[]), command), Err(Denied::Login));
            assert!(may("Login user = kim", &zoe, command).is_err());
        }
        assert_eq!(may("", &caller("zoe", &[]), Command::List).map_err(|why| why == Denied::Login), Err(false));
        assert_eq!(may("Allow New = zoe", &guest, Command::New), Err(Denied::Login));
        for (text, command, good) in [
            ("Login user = kim", Command::List, false),
            ("Login user = kim\nAdmin user = zoe", Command::List, true),
            ("Deny New = kim, ZOE", Command::New, false),
            ("Deny New = kim", Command::New, true),
            ("Allow Delete = kim", Command::Delete, false),
            ("Allow Delete = zoe\nMenu commands = List", Command::Delete, true),
            ("Menu commands = List", Command::Delete, false),
            ("Search slave = 1", Command::New, false),
            ("Search slave = 1", Command::List, true),
            ("Admin user = zoe", Command::Config, false),
        ] {
            assert_eq!(may(text, &zoe, command).is_ok(), good, "{text} {command:?}");
        }
        assert_eq!(may("", &caller("kim", &ALL), Command::Config), Ok(()));
    }

    #[test]
    fn an_entry_is_changed_by_who_may() {
        let now: Time = "2026-11-22T12:00:00".parse().unwrap();
        let (written, _) = (Time(now.0 - 5 * 3_600_000_000_000), ());
        let entry = |by: &str, author: &str| Entry {
            at: EntryRef::new("b", 1),
            date: written,
            zone: 0,
            by: by.to_owned(),
            revision: 0,
            changed: written,
            parent: None,
            thread: 1,
            content: crate::entry::Content {
                attributes: vec![crate::book::EntryAttribute::new("Author", author)],
                ..Default::default()
            },
        };
        let (zoe, kim, root) = (caller("zoe", &WRITER), caller("kim", &ALL[..4]), caller("root", &ALL));
        for (text, who, of, good) in [
            ("", &zoe, entry("zoe", ""), true),
            ("", &zoe, entry("kim", ""), false),
            ("", &zoe, entry("kim", "zoe"), false),
            ("", &zoe, entry("import-elog", "zoe Quartz"), true),
            ("", &kim, entry("zoe", ""), true),
            ("Restrict edit = 1", &kim, entry("zoe", ""), false),
            ("Restrict edit = 1", &root, entry("zoe", ""), true),
            ("Restrict edit time = 4", &zoe, entry("zoe", ""), false),
            ("Restrict edit time = 6", &zoe, entry("zoe", ""), true),
            ("Restrict edit time = 4", &root, entry("zoe", ""), true),
            ("Admin restrict edit time = 4", &root, entry("zoe", ""), false),
        ] {
            let (book, settings) = book(text);
            assert_eq!(may_change(who, &book, &settings, &of, now).is_ok(), good, "{text} {} {}", who.login, of.by);
        }
        let (book, settings) = book("");
        assert_eq!(may_change(&caller("", &ALL), &book, &settings, &entry("", ""), now), Ok(()), "guests whom the site lets");
    }
}
