//! Accounts in ELOG's pages: one's own account and password, registration, and the users of the site.

#[path = "support/accounts.rs"]
mod accounts;
#[path = "support/desk.rs"]
mod desk;

use accounts::{CFG, PASSWORD, Visitors};
use http::StatusCode;
use tampu_elog::{
    config, site_record,
    site_zone::{self, DatesOfZone, SourceZone},
};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, NewEntry},
    people::{Right, access::Subject, registration::OF_ONE_ADDRESS, token::ApiToken, user::User},
    store::{Entries, Records},
};

const NEW: &str = "battery staple";

#[test]
fn users_change_their_own_password() {
    let mut site = Visitors::new(CFG);
    let secret = site.enter("zoe");
    let (_, token) = site.people.make_token(ApiToken::of("zoe")).unwrap();
    let page = site.desk.get("/Shift/?cmd=Change+password").text();
    assert!(page.contains("name=\"oldpwd\"") && page.contains("at least 8 characters"), "{page}");
    let change = |site: &Visitors, old: &str, new: &str, again: &str| {
        site.send("/Shift/", &[("cmd", "Change password"), ("oldpwd", old), ("newpwd", new), ("newpwd2", again)])
    };
    for (old, new, again, told) in [
        ("wrong", NEW, NEW, "the password is wrong"),
        (PASSWORD, NEW, "another one", "the two new passwords differ"),
        (PASSWORD, "short", "short", "a password has at least 8 characters"),
    ] {
        let answer = change(&site, old, new, again);
        assert_eq!((answer.status, answer.error().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, told));
    }
    assert_eq!(site.people.by_session(&secret).unwrap().login, "zoe");
    let changed = change(&site, PASSWORD, NEW, NEW);
    assert_eq!((changed.status, changed.location()), (StatusCode::FOUND, "?cmd=Config&saved=password"));
    // The other sessions and the tokens have ended, and the browser has a new session.
    assert!(site.people.by_session(&secret).is_err() && site.people.by_token(&token).is_err());
    let cookie = changed.headers["set-cookie"].to_str().unwrap();
    let new = cookie["tampu_session=".len()..].split(';').next().unwrap().to_owned();
    assert_eq!(site.people.by_session(&new).unwrap().login, "zoe");
    // Where the configuration forbids it, the page says so.
    site.enter_with("zoe", NEW);
    assert!(site.desk.get("/Fixed/?cmd=Change+password").error().contains("are not changed here"));
    let refused =
        site.send("/Fixed/", &[("cmd", "Change password"), ("oldpwd", NEW), ("newpwd", PASSWORD), ("newpwd2", PASSWORD)]);
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[test]
fn users_change_their_name_and_address() {
    let mut site = Visitors::new(CFG);
    site.enter("zoe");
    let page = site.desk.get("/Shift/?cmd=Config").text();
    assert!(page.contains("zoe Quartz") && page.contains("zoe@example.org") && page.contains("everywhere=1"), "{page}");
    assert!(!page.contains("cmd=Users"), "only administrators see the users");
    let save = |site: &Visitors, name: &str, mail: &str, password: &str| {
        let fields =
            [("config", "zoe"), ("new_full_name", name), ("new_user_email", mail), ("password", password), ("cmd", "Save")];
        site.send("/Shift/", &fields)
    };
    for (name, mail, password, told) in [
        ("kim Quartz", "zoe@example.org", "", "is that of another user"),
        ("KIM", "zoe@example.org", "", "is that of another user"),
        ("Zoe", "new@example.org", "", "needs your password"),
        ("Zoe", "new@example.org", "wrong", "the password is wrong"),
    ] {
        let error = save(&site, name, mail, password).error();
        assert!(error.contains(told), "{error}");
    }
    assert_eq!(site.people.user("zoe").unwrap().email, "zoe@example.org");
    assert_eq!(save(&site, "Zoe <Q>", "new@example.org", PASSWORD).status, StatusCode::FOUND);
    let user = site.people.user("zoe").unwrap();
    assert_eq!((user.full_name.as_str(), user.email.as_str()), ("Zoe <Q>", "new@example.org"));
    assert!(site.desk.get("/?cmd=Config&saved=account").text().contains("Zoe &lt;Q&gt;"), "also outside of a book");
    // A form without the token of this session changes nothing; neither does one of another user.
    let forged = site.desk.fields("/Shift/", &[("config", "zoe"), ("new_full_name", "Forged"), ("cmd", "Save")]);
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    let other = site.send("/Shift/", &[("config", "kim"), ("new_full_name", "Forged"), ("cmd", "Save")]);
    assert!(other.error().contains("another user"));
    // Guests log in first.
    site.leave();
    assert!(site.desk.get("/Shift/?cmd=Config").text().contains("type=password name=\"upassword\""));
}

fn register(site: &Visitors, uri: &str, login: &str, name: &str, mail: &str, password: &str) -> desk::Answer {
    let fields = [
        ("cmd", "New user"),
        ("new_user_name", login),
        ("new_full_name", name),
        ("new_user_email", mail),
        ("newpwd", password),
        ("newpwd2", password),
    ];
    site.send(uri, &fields)
}

#[test]
fn visitors_register_at_once() {
    let site = Visitors::new(CFG);
    assert!(site.desk.get("/Open/?cmd=Login").text().contains("?cmd=New%20user"));
    assert!(!site.desk.get("/Shift/?cmd=Login").text().contains("?cmd=New%20user"));
    assert!(site.desk.get("/Shift/?cmd=New+user").error().contains("made by the administrator"));
    assert_eq!(register(&site, "/Shift/", "max", "Max", "max@example.org", PASSWORD).status, StatusCode::FORBIDDEN);
    for (login, name, mail, password, told) in [
        ("a/b", "Max", "max@example.org", PASSWORD, "invalid name"),
        ("max", "Max", "max", PASSWORD, "no address for mail"),
        ("max", "Max", "max@example.org", "short", "at least 8 characters"),
        ("ZOE", "Max", "max@example.org", PASSWORD, "there is a user"),
        ("max", "zoe quartz", "max@example.org", PASSWORD, "is that of another user"),
    ] {
        let error = register(&site, "/Open/", login, name, mail, password).error();
        assert!(error.contains(told), "{error}");
    }
    let answer = register(&site, "/Open/", "max", "Max", "max@example.org", PASSWORD);
    assert_eq!(answer.status, StatusCode::FOUND, "{}", answer.text());
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    let secret = cookie["tampu_session=".len()..].split(';').next().unwrap();
    let max = site.people.by_session(secret).unwrap();
    assert_eq!((max.login.as_str(), max.admin), ("max", false));
    // One address registers a few times in an hour.
    let statuses: Vec<StatusCode> =
        (0..OF_ONE_ADDRESS).map(|n| register(&site, "/Open/", &format!("n{n}"), "", "n@example.org", PASSWORD).status).collect();
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
}

#[test]
fn nobody_takes_the_name_of_an_author() {
    let mut site = Visitors::new(&format!("{CFG}[Many]\nAttributes = Author\nMOptions Author = Cy Marsh, Dee Fox\n"));
    // Authors of imported entries who are no users of the site: their entries belong to the users of these names.
    for authors in [&["Ada Stone"][..], &["ada"], &["Bo \"B\" Reed"], &["Dee Fox", "Cy Marsh"]] {
        let attributes = vec![EntryAttribute { name: "Author".into(), values: authors.iter().map(|&one| one.into()).collect() }];
        let content = Content { attributes, ..Content::default() };
        let book = if authors.len() > 1 { "Many" } else { "Shift" };
        let new = NewEntry { book: book.into(), content, ..NewEntry::default() };
        site.desk.store.post(new, vec![], "import-elog").unwrap();
    }
    let own = Content { attributes: vec![EntryAttribute::new("Author", "Eve Lake")], ..Content::default() };
    site.desk.store.post(NewEntry { book: "Shift".into(), content: own, ..NewEntry::default() }, vec![], "zoe").unwrap();
    let mut host = 0;
    let mut next = || {
        host += 1;
        std::net::IpAddr::from([192, 0, 2, host])
    };
    for (login, name) in [
        ("eve", "Ada Stone"),
        ("eve", "ADA  STONE."),
        ("Ada", "Eve"),
        ("eve", "Ada"),
        ("eve", "Bo \"B\" Reed"),
        ("eve", "Dee Fox | Cy Marsh"),
        ("eve", "cy marsh"),
    ] {
        // One address registers a few times only, so it cannot search for names.
        site.desk.caller.from = next();
        let error = register(&site, "/Open/", login, name, "e@example.org", PASSWORD).error();
        assert!(error.contains("ask an administrator of the logbook for this name"), "{login} {name}: {error}");
    }
    assert!(site.people.user("eve").is_err());
    site.desk.caller.from = next();
    // The author of an entry that was not imported is whoever posted it.
    let made = register(&site, "/Open/", "eve", "Eve Lake", "e@example.org", PASSWORD);
    assert_eq!(made.status, StatusCode::FOUND, "{}", made.text());
    site.enter("eve");
    let save = |site: &Visitors, name: &str| {
        site.send("/Shift/", &[("config", "eve"), ("new_full_name", name), ("new_user_email", "e@example.org"), ("cmd", "Save")])
    };
    assert!(save(&site, "Ada Stone").error().contains("ask an administrator"));
    assert_eq!(site.people.user("eve").unwrap().full_name, "Eve Lake");
    // With the name that an administrator gave, the page keeps on working.
    site.people.change_user("eve", |user| user.full_name = "Ada Stone".into()).unwrap();
    assert_eq!(save(&site, "Ada Stone").status, StatusCode::FOUND);
    // An administrator sees it before the approval, and decides.
    site.leave();
    register(&site, "/Asked/", "cy", "Cy Marsh", "c@example.org", PASSWORD);
    site.enter("root");
    assert!(site.desk.get("/?cmd=Users").text().contains("imported entries have this author"));
    let id = site.people.registrations().unwrap()[0].id.clone();
    assert_eq!(site.people.approve(&id).unwrap().full_name, "Cy Marsh");
}

#[test]
fn an_administrator_approves_a_registration() {
    let mut site = Visitors::new(CFG);
    // Outside of a book the strictest grade of all books counts.
    let waits = register(&site, "/", "max", "Max", "max@example.org", PASSWORD).text();
    assert!(waits.contains("after an administrator has approved it") && site.people.user("max").is_err());
    // The answer for a login that is taken is the same, so that it shows no logins.
    let taken = register(&site, "/", "zoe", "Another", "a@example.org", PASSWORD).text();
    assert_eq!(taken, waits);
    assert!(site.people.log_in("max", PASSWORD, site.desk.caller.from).is_err());
    site.enter("zoe");
    assert!(site.desk.get("/?cmd=Users").error().contains("only administrators"));
    let id = site.people.registrations().unwrap()[0].id.clone();
    let forbidden = site.send("/", &[("cmd", "Users"), ("act", "approve"), ("registration", &id)]);
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
    site.enter("root");
    let page = site.desk.get("/?cmd=Users").text();
    assert!(page.contains("max@example.org") && page.contains("the login or name is taken"), "{page}");
    assert_eq!(site.send("/", &[("cmd", "Users"), ("act", "approve"), ("registration", &id)]).status, StatusCode::FOUND);
    let other = site.people.registrations().unwrap()[0].id.clone();
    assert!(
        site.send("/", &[("cmd", "Users"), ("act", "approve"), ("registration", &other)]).error().contains("there is a user")
    );
    assert_eq!(site.send("/", &[("cmd", "Users"), ("act", "refuse"), ("registration", &other)]).status, StatusCode::FOUND);
    assert_eq!(site.people.registrations().unwrap(), []);
    assert_eq!(site.people.log_in("max", PASSWORD, site.desk.caller.from).unwrap().0.full_name, "Max");
}

#[test]
fn the_time_of_a_registration_is_the_sites() {
    let mut site = Visitors::new(CFG);
    let zone = SourceZone::chosen("+05:30").unwrap();
    site_zone::store(&*site.desk.store, &zone, DatesOfZone::default()).unwrap();
    let config = config::parse(b"[global]\nTime format = %d.%m.%Y um %H:%M\n[Asked]\n");
    site_record::store(&*site.desk.store, &config).unwrap();
    register(&site, "/Asked/", "max", "Max", "max@example.org", PASSWORD);
    let at = site.people.registrations().unwrap()[0].at;
    let local = zone.zone().write(at, 0, "%d.%m.%Y um %H:%M");
    site.enter("root");
    let page = site.desk.get("/?cmd=Users").text();
    assert!(page.contains(&format!("<td>{local}</td>")), "{local}: {page}");
}

#[test]
fn administrators_rename_delete_and_restore_logbooks() {
    let mut site = Visitors::new(CFG);
    let act = |site: &Visitors, act: &str, more: &[(&str, &str)]| {
        let fields: Vec<(&str, &str)> = [("cmd", "Users"), ("act", act)].into_iter().chain(more.iter().copied()).collect();
        site.send("/", &fields)
    };
    site.enter("zoe");
    assert_eq!(act(&site, "rename-book", &[("book", "Shift"), ("to", "Mine")]).status, StatusCode::FORBIDDEN);
    site.enter("root");
    assert!(site.desk.get("/?cmd=Users").text().contains("Rename a logbook"));
    assert!(act(&site, "rename-book", &[("book", "Shift"), ("to", "OPEN")]).error().contains("already; choose another name"));
    assert_eq!(act(&site, "rename-book", &[("book", "Shift"), ("to", "Night log")]).status, StatusCode::FOUND);
    site.enter("root");
    let moved = site.desk.get("/Shift/page2?mode=summary");
    assert_eq!(moved.status, StatusCode::FOUND);
    assert!(moved.location().ends_with("/Night+log/page2?mode=summary"), "{}", moved.location());
    assert!(act(&site, "delete-book", &[("book", "Night log")]).error().contains("box ticked"));
    assert_eq!(act(&site, "delete-book", &[("book", "Night log"), ("confirm", "Yes")]).status, StatusCode::FOUND);
    assert!(site.desk.get("/Night+log/").error().contains("is not defined here"));
    let page = site.desk.get("/?cmd=Users").text();
    assert!(page.contains("Deleted logbooks") && page.contains("<td>Night log</td>"), "{page}");
    let number = site.desk.store.records("deleted-book").unwrap()[0].0.clone();
    assert_eq!(act(&site, "undelete-book", &[("number", &number)]).status, StatusCode::FOUND);
    site.enter("root");
    assert_eq!(site.desk.get("/Night+log/").status, StatusCode::OK);
}

#[test]
fn administrators_manage_users() {
    let mut site = Visitors::new(CFG);
    site.enter("root");
    let add = [("cmd", "Users"), ("act", "add"), ("user", "max"), ("groups", "ops, crew"), ("newpwd", PASSWORD)];
    assert_eq!(site.send("/Shift/", &add).status, StatusCode::FOUND);
    let max = site.people.user("max").unwrap();
    assert_eq!((max.groups.join(" "), max.admin, max.password.is_some()), ("ops crew".to_owned(), false, true));
    let page = site.desk.get("/Shift/?cmd=Users&user=max").text();
    assert!(page.contains("value=\"read Shift\"") && page.contains("ops, crew"), "{page}");
    let change = [
        ("cmd", "Users"),
        ("act", "save"),
        ("user", "max"),
        ("new_full_name", "Max"),
        ("groups", ""),
        ("may", "read Shift"),
        ("may", "write Shift"),
    ];
    assert_eq!(site.send("/Shift/", &change).status, StatusCode::FOUND);
    let access = site.people.access("Shift").unwrap().0;
    let grant = access.grants.iter().find(|grant| grant.to == Subject::User("max".to_owned())).unwrap();
    assert_eq!(grant.may, [Right::Read, Right::Write]);
    assert!(!site.people.access("Open").unwrap().1, "books without a change keep the rules of all");
    // Nobody locks the last administrator out by mistake.
    let own = site.send("/", &[("cmd", "Users"), ("act", "save"), ("user", "root"), ("new_full_name", "Root")]);
    assert!(own.error().contains("cannot disable yourself"));
    assert!(
        site.send("/", &[("cmd", "Users"), ("act", "remove"), ("user", "root"), ("confirm", "Yes")]).error().contains("your own")
    );
    assert!(site.send("/", &[("cmd", "Users"), ("act", "remove"), ("user", "max")]).error().contains("box ticked"));
    assert_eq!(
        site.send("/", &[("cmd", "Users"), ("act", "remove"), ("user", "max"), ("confirm", "Yes")]).status,
        StatusCode::FOUND
    );
    assert!(site.people.user("max").is_err());
    // A cookie that is no session opens nothing, even with the rights of an administrator beside it.
    site.desk.headers = vec![("cookie", "tampu_session=forged".to_owned())];
    assert!(site.desk.get("/?cmd=Users").text().contains("name=\"upassword\""));
    assert_eq!(site.people.users().unwrap().iter().filter(|user: &&User| user.admin).count(), 1);
}
