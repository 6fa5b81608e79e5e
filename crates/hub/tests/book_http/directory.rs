//! Login methods whose service answers oddly: a directory about one person, and a provider not at all.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::json;
use tampu_hub::{
    book::settings::BookSettings,
    login::{ldap_settings::LdapSettings, oidc::settings::OidcSettings, settings::LoginSettings},
};
use tampu_logbook::people::outside::GroupRule;

use crate::site::{PASSWORD, Site};

/// Result codes of LDAP.
const SUCCESS: u8 = 0;
const CONSTRAINT: u8 = 19;
const NO_OBJECT: u8 = 32;
const UNAVAILABLE: u8 = 52;
const UNWILLING: u8 = 53;

/// A value of BER with a short length.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag, u8::try_from(content.len()).unwrap()];
    assert!(content.len() < 128);
    bytes.extend(content);
    bytes
}

fn text(of: &str) -> Vec<u8> {
    tagged(4, of.as_bytes())
}

fn message(id: &[u8], operation: Vec<u8>) -> Vec<u8> {
    tagged(0x30, &[tagged(2, id), operation].concat())
}

/// A response with a result code.
fn done(tag: u8, code: u8) -> Vec<u8> {
    tagged(tag, &[tagged(10, &[code]), text(""), text("of the test")].concat())
}

fn entry(login: &str, number: usize) -> Vec<u8> {
    let attribute = |name: &str, value: &str| tagged(0x30, &[text(name), tagged(0x31, &text(value))].concat());
    let subject = if login == "bare" { "x" } else { "entryUUID" };
    let group = if login == "chief" { "cn=admins,ou=groups" } else { "cn=admins,ou=lists" };
    let attributes = [attribute(subject, login), attribute("uid", login), attribute("memberOf", group)].concat();
    tagged(0x64, &[text(&format!("uid={login},ou=p{number}")), tagged(0x30, &attributes)].concat())
}

/// Reads a message; its id, the tag of its operation, and all of its bytes.
fn received(from: &mut TcpStream) -> Option<(Vec<u8>, u8, Vec<u8>)> {
    let mut head = [0; 2];
    from.read_exact(&mut head).ok()?;
    let mut length = usize::from(head[1]);
    if length >= 128 {
        let mut long = vec![0; length - 128];
        from.read_exact(&mut long).ok()?;
        length = long.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).ok()?;
    let end = 2 + usize::from(bytes[1]);
    Some((bytes[2..end].to_vec(), bytes[end], bytes))
}

/// Answers a connection. The login of a person says how the directory behaves about them.
fn serve(mut connection: TcpStream) {
    let people = ["zoe", "chief", "locked", "expired", "twice", "bare", "lost", "silent", "closing", "away"];
    while let Some((id, tag, bytes)) = received(&mut connection) {
        let names = |name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
        let who = people.into_iter().find(|name| names(name));
        let answer = match (tag, who) {
            // A bind. The search is anonymous.
            (0x60, Some("locked")) => done(0x61, UNWILLING),
            (0x60, Some("expired")) => done(0x61, CONSTRAINT),
            (0x60, Some("away")) => done(0x61, UNAVAILABLE),
            (0x60, Some("silent")) => continue,
            (0x60, Some("closing")) => return,
            (0x60, Some(_)) if names("wrong") => done(0x61, 49),
            (0x60, _) => done(0x61, SUCCESS),
            // A search of groups, which finds none.
            (0x63, Some("lost")) if names("groups") => done(0x65, NO_OBJECT),
            (0x63, _) if names("groups") => done(0x65, SUCCESS),
            (0x63, Some(login)) => {
                let entries = (0..1 + usize::from(login == "twice")).map(|number| message(&id, entry(login, number)));
                connection.write_all(&entries.collect::<Vec<_>>().concat()).unwrap();
                done(0x65, SUCCESS)
            }
            (0x63, None) => done(0x65, SUCCESS),
            _ => return,
        };
        connection.write_all(&message(&id, answer)).unwrap();
    }
}

/// A directory that counts its connections; the threads end with their connections.
fn directory() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ldap://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::AcqRel);
            thread::spawn(move || serve(connection));
        }
    });
    (url, count)
}

#[test]
fn the_odd_state_of_one_person_keeps_nobody_else_out() {
    let (url, connections) = directory();
    let ldap = LdapSettings {
        url,
        base: "ou=people".into(),
        group_base: Some("ou=groups".into()),
        timeout_s: 4,
        ..LdapSettings::default()
    };
    let group = vec![GroupRule { from: "admins".into(), admin: true, ..GroupRule::default() }];
    let login = LoginSettings { name: "lab".into(), register: true, group, ldap: Some(ldap), ..LoginSettings::default() };
    let site = Site::with(BookSettings { login: vec![login], ..BookSettings::default() });
    site.shift();
    let log_in = |login: &str, password: &str| site.anybody().post("/login", json!({ "login": login, "password": password }));
    log_in("zoe", "wrong").is(401);
    // A group outside of the subtree of groups means nothing, whatever its first name.
    assert_eq!(log_in("chief", "right").is(200).json()["admin"], true);
    assert_eq!(log_in("zoe", "right").is(200).json()["admin"], false);
    for (number, (login, status)) in [
        // To the caller it is a wrong password, which is slowed down as one.
        ("locked", 401),
        ("expired", 401),
        ("twice", 401),
        ("bare", 401),
        // These could not be checked.
        ("lost", 503),
        ("silent", 503),
        ("closing", 503),
    ]
    .into_iter()
    .enumerate()
    {
        log_in(login, "any").is(status);
        // Each time another password, which nothing remembers.
        log_in("zoe", &format!("right {number}")).is(200);
    }
    // A directory that says that it serves nobody is left alone.
    log_in("away", "any").is(503);
    let before = connections.load(Ordering::Acquire);
    log_in("zoe", "right again").is(503);
    assert_eq!(connections.load(Ordering::Acquire), before);
}

#[test]
fn a_provider_that_does_not_answer_is_left_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    thread::spawn(move || {
        // The connections stay open.
        let mut silent = Vec::new();
        for connection in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::AcqRel);
            silent.push(connection);
        }
    });
    let oidc = OidcSettings { issuer, client_id: "tampu".into(), timeout_s: 1, ..OidcSettings::default() };
    let login = LoginSettings { name: "sso".into(), oidc: Some(oidc), ..LoginSettings::default() };
    let site = Site::with(BookSettings { login: vec![login], ..BookSettings::default() });
    site.user(json!({ "login": "zoe" }));
    let begin = || {
        let url = format!("{}/login/oidc/sso", site.url);
        site.anybody().get(&url).is(503);
    };
    begin();
    thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(begin);
        }
    });
    // Each was a request to the provider, before it was left alone for some seconds.
    let asked = count.load(Ordering::Acquire);
    assert!(asked < 12, "{asked} requests");
    site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
    // People may choose their login at a provider.
    let owner = site.owner();
    let refused = owner.put("/users/zoe/method", json!({ "method": "sso" })).is(422).json();
    assert!(refused["detail"].as_str().unwrap().contains("subject"), "{refused}");
    owner.put("/users/zoe/method", json!({ "method": "sso", "subject": "7" })).is(200);
}
