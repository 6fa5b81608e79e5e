//! The way back to ELOG with the users of the site.

use std::{fs, os::unix::fs::PermissionsExt};

use tampu_elog::{config, export::export_site, users};
use tampu_logbook::{
    people::{elog_digest, password::Password, user::User},
    store::{Entries, sqlite::SqliteStore},
};

const DIGEST: &str = "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5";

fn export(cfg: &str, people: &[User]) -> (tempfile::TempDir, String, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("book")).unwrap();
    for logbook in config::parse(cfg.as_bytes()).logbooks() {
        store.put_book(&logbook.book()).unwrap();
    }
    let report = export_site(&store, &[], people, &dir.path().join("out"), &mut |_, _| true).unwrap();
    let config = fs::read_to_string(dir.path().join("out/elogd.cfg")).unwrap();
    (dir, config, report.notes)
}

fn people() -> [User; 3] {
    let zoe = User { full_name: "Zoë <M&M>".into(), email: "zoe@example.org".into(), admin: true, ..User::new("zoe") };
    let zoe = User { notify: vec!["shift".into(), "gone".into()], ..zoe };
    [
        User { password: Password::from_elog(DIGEST), ..zoe },
        User { password: Some(Password::new("correct horse").unwrap()), ..User::new("kim") },
        User { inactive: true, ..User::new("max") },
    ]
}

#[test]
fn an_export_has_the_users() {
    let (dir, config, notes) = export("[Shift]\nAttributes = Author\nPassword file = /usr/local/elog/users.xml\n", &people());
    let path = dir.path().join("out/users.xml");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let read = users::read(&fs::read(&path).unwrap());
    let [zoe, kim, max] = &read.users[..] else { panic!("{read:?}") };
    assert_eq!((zoe.full_name.as_str(), zoe.email.as_str()), ("Zoë <M&M>", "zoe@example.org"));
    assert_eq!((&zoe.notify[..], &kim.notify[..]), (&["Shift".to_owned()][..], &[][..]));
    assert_eq!(zoe.password.as_ref().and_then(Password::elog_digest), Some(DIGEST));
    // No password fits, but the users are there: elogd makes no visitor the administrator.
    assert_eq!((kim.password.is_some(), max.password.is_some(), max.inactive), (false, false, true));
    assert!(config.contains("Password file = users.xml\n") && !config.contains("/usr/local"), "{config}");
    assert!(config.contains("Admin user = zoe\n"), "{config}");
    assert!(notes.iter().any(|note| note.contains("2 of 3 users") && note.contains(": kim, max. ")), "{notes:?}");
}

#[test]
fn options_that_elogd_reads_in_global_alone_stand_there() {
    let cfg = "[global]\nport = 8443\nSSL = 1\nSMTP host = mail.example.org\nUsr = elog\nTheme = dark\n\
        [Shift]\nAttributes = Author\n[RICH]\nAttributes = Author\nTheme = light\n";
    let (_dir, config, _) = export(cfg, &[]);
    let (global, books) = config.split_once("\n[").unwrap();
    for line in ["port = 8443", "SSL = 1", "SMTP host = mail.example.org", "Usr = elog"] {
        assert!(global.lines().any(|one| one == line), "{line}: {config}");
        assert!(!books.contains(line), "{line}: {config}");
    }
    assert!(books.contains("Theme = dark\n") && books.contains("Theme = light\n"), "{config}");
}

#[test]
fn a_user_who_has_logged_in_here_gets_the_digest_of_the_former_file_if_the_password_is_the_same() {
    let file = |login: &str, digest: &str| {
        format!("<user><name>{login}</name><password encoding=\"SHA256\">{digest}</password><full_name>x</full_name></user>")
    };
    let digest = elog_digest::hash(b"very secret").unwrap();
    let text = format!("<list>{}{}{}</list>", file("zoe", &digest), file("kim", DIGEST), file("gone", &digest));
    let former = users::read(text.as_bytes());
    // A login replaces the digest by a hash of it.
    let logged_in = |login: &str| User { password: Some(Password::of("very secret").unwrap()), ..User::new(login) };
    let mut people = [logged_in("zoe"), logged_in("kim"), User::new("max")];
    assert_eq!(former.give_digests(&mut people), 1);
    let digests = people.each_ref().map(|user| user.password.as_ref().and_then(Password::elog_digest));
    assert_eq!(digests, [Some(digest.as_str()), None, None]);
}

#[test]
fn a_site_that_elog_would_open_gets_a_password_file() {
    let (dir, config, notes) = export("[Shift]\nAttributes = Author\n", &people());
    assert!(dir.path().join("out/passwd").is_file() && config.contains("Password file = passwd\n"), "{config}");
    assert!(notes.iter().any(|note| note.contains("open to everybody")), "{notes:?}");
    // Without users the report warns of the first visitor.
    let (_, _, notes) = export("[Shift]\nAttributes = Author\nPassword file = passwd\n", &[]);
    assert!(notes.iter().any(|note| note.contains("first visitor")), "{notes:?}");
}

#[test]
fn each_password_file_is_written_with_its_own_users() {
    let of = |login: &str, groups: &[&str]| User { groups: groups.iter().map(|&name| name.into()).collect(), ..User::new(login) };
    let people = [
        of("ann", &["elog a.pwd"]),
        of("ben", &["elog b.pwd"]),
        of("cyd", &["elog a.pwd", "elog b.pwd"]),
        of("dan", &[]),
        User { admin: true, ..User::new("root") },
    ];
    let cfg = "[Pub]\nAttributes = A\nPassword file = a.pwd\n[Priv]\nAttributes = A\nPassword file = /x/b.pwd\n[Free]\nAttributes = A\n";
    let (dir, config, _) = export(cfg, &people);
    let logins = |name: &str| -> String {
        let read = users::read(&fs::read(dir.path().join("out").join(name)).unwrap());
        read.users.iter().map(|user| user.login.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(logins("a.pwd"), "ann cyd root");
    assert_eq!(logins("b.pwd"), "ben cyd root");
    assert_eq!(logins("passwd"), "ann ben cyd dan root");
    let named: Vec<&str> = config.lines().filter(|line| line.starts_with("Password file")).collect();
    assert_eq!(named, ["Password file = passwd", "Password file = b.pwd", "Password file = a.pwd"]);
}
