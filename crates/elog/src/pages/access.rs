//! Permissions in ELOG's order: guests, then `Login user`, then `Deny` and `Allow` of a command, then the menus. They
//! only restrict the rights of [`tampu_logbook::people`], and never grant a right.

use tampu_logbook::{
    book::Book,
    entry::Entry,
    people::{Caller, Right, decide::is_own},
    store::is_locked,
};
use tampu_types::Time;

use crate::pages::{
    command::PageCommand,
    hosts,
    settings::{BookSettings, has},
};

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessDenied {
    /// The caller has to log in first.
    Login,
    /// The caller may not use the command.
    Forbidden(String),
}

/// Checks that a caller may use a command in a book; [`may_change`] checks the owner of an entry. Callers who may not
/// read can only log in and out.
pub fn check(caller: &Caller, book: &Book, settings: &BookSettings, command: PageCommand) -> Result<(), AccessDenied> {
    if matches!(command, PageCommand::Login | PageCommand::Logout) {
        return Ok(());
    }
    if !hosts::open_to(settings, caller.from) {
        return Err(AccessDenied::Forbidden(format!("access from {} to logbook '{}' is not allowed", caller.from, book.name)));
    }
    let guest = caller.login.is_empty();
    let no = |why: String| if guest { Err(AccessDenied::Login) } else { Err(AccessDenied::Forbidden(why)) };
    let refused =
        || no(format!("the command '{}' is not allowed for user '{}' in logbook '{}'", command.name(), caller.login, book.name));
    let may = |right: Right| caller.rights.may(right, &book.name);
    if !may(Right::Read) {
        return no(format!("user '{}' has no access to logbook '{}'", caller.login, book.name));
    }
    if guest && command.needs_login() {
        return Err(AccessDenied::Login);
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
        return Err(AccessDenied::Forbidden("this server only searches: change the entry on the main server".to_owned()));
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

/// Returns true if the configuration names the caller as `Admin user`.
pub fn is_admin(caller: &Caller, book: &Book, settings: &BookSettings) -> bool {
    !caller.login.is_empty() && (has(&settings.admins(), &caller.login) || caller.rights.may(Right::Admin, &book.name))
}

/// Checks that a caller may change or delete this entry now.
pub fn may_change(caller: &Caller, book: &Book, settings: &BookSettings, entry: &Entry, now: Time) -> Result<(), AccessDenied> {
    let admin = is_admin(caller, book, settings);
    let own = is_own(&caller.login, &caller.full_name, entry);
    let no = |why: &str| {
        if caller.login.is_empty() { Err(AccessDenied::Login) } else { Err(AccessDenied::Forbidden(why.to_owned())) }
    };
    if is_locked(entry) {
        return no("the entry is signed: reply to it to correct it");
    }
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
    use crate::config;
    use tampu_logbook::{entry::EntryRef, people::Rights};

    fn caller(login: &str, rights: &[Right]) -> Caller {
        let rights = Rights([("b".to_owned(), rights.to_vec())].into());
        let full_name = if login.is_empty() { String::new() } else { format!("{login} Quartz") };
        Caller { login: login.to_owned(), full_name, email: String::new(), from: IpAddr::V4(Ipv4Addr::LOCALHOST), rights }
    }

    fn book(text: &str) -> (Book, BookSettings) {
        let book = config::parse(format!("[b]\nA = b\n{text}").as_bytes()).logbooks()[0].book();
        let settings = BookSettings::of(&book);
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
        assert_eq!(may("", &zoe, PageCommand::New), Ok(()));
        assert_eq!(may("", &guest, PageCommand::List), Ok(()));
        assert_eq!(may("", &guest, PageCommand::New), Err(AccessDenied::Login));
        for command in [PageCommand::GetMd5, PageCommand::Help, PageCommand::Forgot] {
            assert_eq!(may("", &guest, command), Ok(()));
            assert_eq!(may("", &caller("", &[]), command), Err(AccessDenied::Login));
            assert!(may("Login user = kim", &zoe, command).is_err());
        }
        assert_eq!(may("", &caller("zoe", &[]), PageCommand::List).map_err(|why| why == AccessDenied::Login), Err(false));
        assert_eq!(may("Allow New = zoe", &guest, PageCommand::New), Err(AccessDenied::Login));
        for (text, command, good) in [
            ("Login user = kim", PageCommand::List, false),
            ("Login user = kim\nAdmin user = zoe", PageCommand::List, true),
            ("Deny New = kim, ZOE", PageCommand::New, false),
            ("Deny New = kim", PageCommand::New, true),
            ("Allow Delete = kim", PageCommand::Delete, false),
            ("Allow Delete = zoe\nMenu commands = List", PageCommand::Delete, true),
            ("Menu commands = List", PageCommand::Delete, false),
            ("Search slave = 1", PageCommand::New, false),
            ("Search slave = 1", PageCommand::List, true),
            ("Admin user = zoe", PageCommand::Admin, false),
            ("", PageCommand::Config, true),
        ] {
            assert_eq!(may(text, &zoe, command).is_ok(), good, "{text} {command:?}");
        }
        assert_eq!(may("", &caller("kim", &ALL), PageCommand::Admin), Ok(()));
        assert_eq!(may("", &guest, PageCommand::Config), Err(AccessDenied::Login));
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
            content: tampu_logbook::entry::Content {
                attributes: vec![tampu_logbook::book::EntryAttribute::new("Author", author)],
                ..Default::default()
            },
            signatures: vec![],
        };
        let (zoe, kim, root) = (caller("zoe", &WRITER), caller("kim", &ALL[..4]), caller("root", &ALL));
        for (text, caller, of, good) in [
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
            assert_eq!(may_change(caller, &book, &settings, &of, now).is_ok(), good, "{text} {} {}", caller.login, of.by);
        }
        let (book, settings) = book("");
        assert_eq!(may_change(&caller("", &ALL), &book, &settings, &entry("", ""), now), Ok(()), "guests whom the site lets");
    }
}
