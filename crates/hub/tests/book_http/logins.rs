//! Login methods over HTTP: who is believed about a person, and what that person may.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::json;
use tampu_hub::{
    book::settings::{BookSettings, Guests},
    login::settings::{LoginSettings, ProxySettings},
};
use tampu_logbook::people::{Right, outside::GroupRule};
use tempfile::TempDir;

use crate::site::{Client, Site};

const SECRET: &str = "between the proxy and the hub";

/// A site behind a proxy of this host that names persons.
fn behind_proxy(proxies: &[&str]) -> (TempDir, Site) {
    let dir = tempfile::tempdir().unwrap();
    let file: PathBuf = dir.path().join("proxy.secret");
    fs::write(&file, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = ProxySettings {
        full_name_header: Some("X-Forwarded-Name".into()),
        groups_header: Some("X-Forwarded-Groups".into()),
        realm: Some("EXAMPLE.ORG".into()),
        secret_file: Some(file),
        ..ProxySettings::default()
    };
    let rule =
        GroupRule { from: "Operators".into(), book: Some("Shift".into()), may: vec![Right::Write], ..GroupRule::default() };
    let login =
        LoginSettings { name: "sso".into(), register: true, group: vec![rule], proxy: Some(proxy), ..LoginSettings::default() };
    let proxies = proxies.iter().map(|ip| ip.parse().unwrap()).collect();
    let site = Site::with(BookSettings { guests: Guests::None, proxies, login: vec![login], ..BookSettings::default() });
    site.shift();
    site.owner().put("/books/Shift/access", json!({ "grants": [{ "to": "everybody", "may": ["read"] }] })).is(200);
    (dir, site)
}

fn proxied(site: &Site, user: &str) -> Client {
    let anybody = site.anybody().with("x-tampu-proxy-secret", SECRET).with("x-forwarded-for", "192.0.2.7");
    anybody.with("x-forwarded-user", user)
}

#[test]
fn a_proxy_that_proves_itself_is_believed_about_the_person() {
    let (_dir, site) = behind_proxy(&["127.0.0.1"]);
    let zoe =
        proxied(&site, "Zoe@EXAMPLE.ORG").with("x-forwarded-name", "Zoë Müller").with("x-forwarded-groups", "staff, operators");
    let me = zoe.get("/whoami").is(200).json();
    assert_eq!((&me["login"], &me["by"], &me["full_name"]), (&json!("zoe"), &json!("proxy"), &json!("Zoë Müller")));
    zoe.post("/books/Shift/entries", json!({ "text": "by proxy" })).is(201);
    assert!(String::from_utf8_lossy(&zoe.get("/elog/Shift/").is(200).bytes).contains("Zoë Müller"));
    // A password that the proxy passes on is its own affair; a token is of this hub.
    assert_eq!(zoe.with("authorization", "Basic em9lOng=").get("/whoami").is(200).json()["by"], "proxy");
    zoe.with("authorization", "Bearer tampu_0").get("/whoami").is(401);
    // Groups of a later request are those of that request.
    let without = zoe.with("x-forwarded-groups", "staff");
    without.post("/books/Shift/entries", json!({ "text": "no operator" })).is(403);
    // A proxy that has checked nobody says so by an empty header.
    assert_eq!(proxied(&site, "").get("/whoami").is(200).json()["by"], "guest");
    // A page of another site changes nothing with the proxy's login.
    let post = zoe.with("origin", "https://evil.example").post("/books/Shift/entries", json!({ "text": "forged" }));
    assert_eq!(post.is(403).problem(), "other-site");
    // A disabled user stays out.
    site.owner().with_json("PATCH", "/users/zoe", json!({ "inactive": true })).is(200);
    zoe.get("/whoami").is(401);
}

#[test]
fn nobody_else_is_believed() {
    let (_dir, site) = behind_proxy(&["127.0.0.1"]);
    let bare = site.anybody().with("x-forwarded-user", "zoe");
    assert_eq!(bare.get("/whoami").is(403).problem(), "not-the-proxy");
    assert_eq!(bare.with("x-tampu-proxy-secret", "guess").get("/whoami").is(403).problem(), "not-the-proxy");
    bare.get("/elog/Shift/").is(403);
    bare.with("x-tampu-proxy-secret", SECRET).get("/whoami").is(200);
    let twice = proxied(&site, "zoe");
    let mut both = twice.clone();
    both.headers.push(("x-forwarded-user".into(), "root".into()));
    assert_eq!(both.get("/whoami").is(403).problem(), "not-the-proxy");
    proxied(&site, &"x".repeat(5000)).get("/whoami").is(403);
    // From an address that is no proxy, the secret does not help.
    let (_dir, site) = behind_proxy(&["192.0.2.1", "127.0.0.2"]);
    assert_eq!(proxied(&site, "zoe").get("/whoami").is(403).problem(), "not-the-proxy");
    assert_eq!(site.owner().get("/users").is(200).json(), json!([]));
}

#[test]
fn a_person_whom_a_proxy_alone_names_cannot_sign_and_is_told_so() {
    let (_dir, site) = behind_proxy(&["127.0.0.1"]);
    let owner = site.owner();
    let mut access = owner.get("/books/Shift/access").json();
    access["signing"] = json!({ "meanings": [{ "meaning": "author", "by": ["everybody"] }] });
    owner.put("/books/Shift/access", access).is(200);
    let zoe = proxied(&site, "zoe").with("x-forwarded-groups", "operators");
    zoe.post("/books/Shift/entries", json!({ "text": "by proxy" })).is(201);
    let sign = |body: serde_json::Value| zoe.post("/books/Shift/entries/1/signatures", body);
    for password in [json!(null), json!("any")] {
        let said = sign(json!({ "meaning": "author", "revision": 0, "password": password })).is(403);
        assert_eq!(said.problem(), "no-proof");
        let detail = said.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("'zoe' cannot sign") && detail.contains("'sso'"), "{detail}");
    }
    let page = String::from_utf8(zoe.get("/elog/Shift/1").is(200).bytes).unwrap();
    assert!(page.contains("You cannot sign: the login method sso") && !page.contains("name=\"password\""), "{page}");
    // A second account, with a password here, signs at the same browser.
    site.user(json!({ "login": "zoe-signs", "full_name": "Zoë Müller" }));
    let password = crate::site::PASSWORD;
    let signed = sign(json!({ "meaning": "author", "revision": 0, "login": "zoe-signs", "password": password })).is(201).json();
    assert_eq!((&signed["by"], &signed["method"]), (&json!("zoe-signs"), &json!("password")));
}

#[test]
fn a_user_of_the_logbook_is_bound_by_an_administrator_alone() {
    let (_dir, site) = behind_proxy(&["127.0.0.1"]);
    site.user(json!({ "login": "max", "groups": ["crew"] }));
    let max = proxied(&site, "max").with("x-forwarded-groups", "operators");
    assert_eq!(max.get("/whoami").is(403).problem(), "not-bound");
    let owner = site.owner();
    assert_eq!(owner.put("/users/max/method", json!({ "method": "ldap" })).is(422).problem(), "invalid");
    owner.put("/users/max/method", json!({ "method": "sso" })).is(200);
    let explained = max.get("/whoami/explain").is(200).json();
    assert_eq!((&explained["method"], &explained["subject"]), (&json!("sso (proxy)"), &json!("max")));
    assert_eq!(explained["groups"], json!([{ "group": "crew", "from": "this logbook" }]));
    assert_eq!(
        explained["books"][0]["rights"],
        json!([
            { "right": "read", "from": ["everybody"] },
            { "right": "write", "from": ["operators, by a rule of the login method"] },
        ])
    );
    max.get("/whoami/explain?login=zoe").is(403);
    assert_eq!(owner.get("/whoami/explain?login=max").is(200).json()["method"], "sso (proxy)");
    // The password here has ended, and none can be set.
    site.anybody().post("/login", json!({ "login": "max", "password": crate::site::PASSWORD })).is(401);
    assert_eq!(owner.put("/users/max/password", json!({ "password": "battery staple" })).is(409).problem(), "password-elsewhere");
    owner.with_json("DELETE", "/users/max/method", json!(null)).is(200);
    owner.put("/users/max/password", json!({ "password": "battery staple" })).is(204);
    assert_eq!(max.get("/whoami").is(403).problem(), "not-bound");
}

#[test]
fn a_site_without_kerberos_takes_no_ticket() {
    let site = Site::with(BookSettings::default());
    site.shift();
    let answer = site.anybody().with("authorization", "Negotiate YII=").get("/whoami").is(401);
    assert_eq!(answer.problem(), "log-in");
    assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"Tampu\"");
}
