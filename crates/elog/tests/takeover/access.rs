//! Rights: the people who read and write where elogd lets them.

use std::{fs, net::Ipv4Addr, path::Path};

use http::StatusCode;
use tampu_elog::{
    access_report::GuestRights,
    import::{ImportReport, ImportSource, import_elog},
    pages::{Site, SiteConfig},
};
use tampu_logbook::{
    people::{Caller, People, registry::Settings},
    store::{Entries, Store, sqlite::SqliteStore},
};

use crate::desk::Desk;

const SITE: &str = "[Open]\nAttributes = Author\n[Closed]\nAttributes = Author\nPassword file = passwd\n\
    [Reads]\nAttributes = Author\nPassword file = passwd\nGuest menu commands = List, Find\n\
    [Posts]\nAttributes = Author\nPassword file = passwd\nGuest menu commands = List, New\n\
    [Restricted]\nAttributes = Author\nRestrict edit = 1\n[Slave]\nAttributes = Author\nSearch slave = 1\n\
    [Hides]\nAttributes = Author, Phone\nGuest display = Author\n";

#[test]
fn the_report_names_the_users_of_each_password_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("logbooks")).unwrap();
    let config = folder.path().join("elogd.cfg");
    let text = "[global]\nPassword file = a.pwd\n[Pub]\nAttributes = Author\n[Priv]\nAttributes = Author\nPassword file = x/b.pwd\n\
        [Few]\nAttributes = Author\nPassword file = x/b.pwd\nLogin user = zoe\nRestrict edit = 1\n";
    fs::write(&config, text).unwrap();
    let store = SqliteStore::open(&folder.path().join("store")).unwrap();
    let source = ImportSource { config: Some(config), logbooks: folder.path().join("logbooks"), ..ImportSource::default() };
    let report = import_elog(&store, &source, &mut |_, _| true).unwrap();
    let users: Vec<String> = report.books.iter().map(|book| book.access.clone().unwrap().users).collect();
    assert_eq!(
        users,
        [
            "read write edit-own edit-any, only users of 'a.pwd', who are the group 'elog a.pwd'",
            "read write edit-own edit-any, only users of 'x/b.pwd', who are the group 'elog b.pwd'",
            "read write edit-own, only zoe, only users of 'x/b.pwd', who are the group 'elog b.pwd'",
        ]
    );
}

fn taken_over(dir: &Path, store: &dyn Store, guests: Option<GuestRights>) -> ImportReport {
    fs::create_dir_all(dir.join("logbooks")).unwrap();
    fs::write(dir.join("elogd.cfg"), SITE).unwrap();
    let source =
        ImportSource { config: Some(dir.join("elogd.cfg")), logbooks: dir.join("logbooks"), guests, ..ImportSource::default() };
    import_elog(store, &source, &mut |_, _| true).unwrap()
}

/// A site with a user, as a guest asks for it.
fn asked_by_a_guest(desk: &mut Desk) -> Caller {
    let people = People::new(desk.store.clone(), Settings::default()).unwrap();
    people.guest().unwrap().caller(Ipv4Addr::LOCALHOST.into())
}

fn guests(report: &ImportReport) -> Vec<String> {
    report.books.iter().map(|book| format!("{}: {}", book.book, book.access.as_ref().unwrap().guests)).collect()
}

#[test]
fn a_guest_does_what_elogd_lets_a_guest_do() {
    let mut desk = Desk::new("");
    let folder = tempfile::tempdir().unwrap();
    let report = taken_over(folder.path(), &*desk.store, None);
    let by_site = "what [book] guests of the hub says, 'read' by default";
    assert_eq!(
        guests(&report),
        [
            "Open: read write edit-any, without a login as in elogd".to_owned(),
            "Closed: no rights, because of 'Password file'".to_owned(),
            format!("Reads: {by_site}"),
            "Posts: read write, without a login as in elogd".to_owned(),
            "Restricted: read write, without a login as in elogd".to_owned(),
            format!("Slave: {by_site}"),
            "Hides: read write, without a login as in elogd".to_owned(),
        ]
    );
    desk.site = Site::new(desk.store.clone(), SiteConfig::default());
    desk.caller = asked_by_a_guest(&mut desk);
    let post = |desk: &Desk, book: &str, fields: &[(&str, &str)]| {
        desk.elog(book, &[&[("cmd", "Submit"), ("Author", "Kim")], fields].concat(), "text", &[])
    };
    // The `elog` command without -u: a post, a reply, an edit.
    assert_eq!(post(&desk, "Open", &[]).id(), 1);
    assert_eq!(post(&desk, "Open", &[("reply_to", "1")]).id(), 2);
    assert_eq!(post(&desk, "Open", &[("edit_id", "1"), ("Author", "Max")]).id(), 1);
    assert_eq!(post(&desk, "Posts", &[]).id(), 1);
    assert_ne!(post(&desk, "Posts", &[("edit_id", "1")]).status, StatusCode::FOUND);
    for book in ["Closed", "Reads", "Slave"] {
        let answer = post(&desk, book, &[]);
        assert!(answer.status != StatusCode::FOUND || !answer.location().ends_with("/1"), "{book}");
        assert_eq!(desk.store.books().unwrap().iter().find(|info| info.book.name == book).unwrap().entries, 0, "{book}");
    }
}

#[test]
fn the_choice_of_guests_is_obeyed_and_opens_nothing_that_elog_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("store")).unwrap();
    let closed = "Closed: no rights, because of 'Password file'";
    for (choice, open) in [
        (Some(GuestRights::None), "Open: no rights"),
        // Without a choice, an import again leaves rights alone.
        (None, "Open: no rights"),
        (Some(GuestRights::Read), "Open: read"),
        (Some(GuestRights::AsElog), "Open: read write edit-any, without a login as in elogd"),
    ] {
        let guests = guests(&taken_over(folder.path(), &store, choice));
        assert_eq!(guests[..2], [open, closed], "{choice:?}");
    }
}
