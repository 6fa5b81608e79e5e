//! Mails by the rules of users. The mail server is away, so that they stay in the queue.

use std::fs;

use serde_json::{Value, json};
use tampu_logbook::{
    mail::{MailSettings, MailTls},
    store::{Records, sqlite::SqliteStore},
};

use crate::site::{Client, Site, until};

/// A site whose mails stay in the queue.
fn site() -> Site {
    Site::configured(|config| {
        config.book.elog_url = "https://log.example.org/elog".to_owned();
        config.mail = MailSettings {
            host: Some("127.0.0.1".to_owned()),
            // Nobody listens at this port.
            port: Some(1),
            tls: MailTls::None,
            from: Some("Logbook <logbook@example.org>".to_owned()),
            ..MailSettings::default()
        };
    })
}

/// Waits until so many entries wait for Kim's digest.
#[track_caller]
fn until_due(site: &Site, count: usize) {
    until("entries wait for the digest", || {
        let record = site.hub.as_ref().unwrap().book().unwrap().store().record("notify-due", "kim").unwrap();
        let waiting = record.map_or(0, |record| record.value["entries"].as_array().unwrap().len());
        if waiting == count { Ok(()) } else { Err(format!("{waiting} instead of {count}")) }
    });
}

/// Takes mails out of the queue when there are this many: subjects, recipients and texts.
#[track_caller]
fn take(site: &Site, count: usize) -> Vec<(String, String, String)> {
    let hub = site.hub.as_ref().unwrap();
    let outbox = hub.book().unwrap().mail().unwrap();
    until("mails wait", || {
        let mails = outbox.mails();
        if mails.len() < count { Err(format!("{mails:?}")) } else { Ok(()) }
    });
    let directory = site.directory().join("book/mail");
    let find = |id: &str| fs::read_to_string(directory.join(format!("{id}.eml")));
    let taken = outbox.mails().into_iter().map(|mail| {
        let text = find(&mail.id).unwrap_or_else(|why| panic!("{}: {why}", directory.display()));
        outbox.remove(&mail.id).unwrap();
        let to: Vec<String> = mail.to.iter().map(|to| to.to.clone()).collect();
        (mail.subject, to.join(" "), text.replace("\r\n ", " ").replace("=\r\n", "").replace("=3D", "="))
    });
    taken.collect()
}

fn add(client: &Client, login: &str, rule: Value) -> String {
    let said = client.post(&format!("/users/{login}/rules"), rule).is(201).json();
    said["id"].as_str().unwrap().to_owned()
}

#[test]
fn rules_mail_what_others_write() {
    let site = site();
    site.shift();
    let user = |login: &str| site.user(json!({ "login": login, "email": format!("{login}@example.org") }));
    let (zoe, kim, max) = (user("zoe"), user("kim"), user("max"));
    let all: Vec<&str> = vec!["read", "write"];
    let grants = json!({ "grants": [{ "to": "everybody", "may": all }], "policy": { "kind": "free" } });
    site.owner().put("/books/Shift/access", grants).is(200);

    let mentions = add(&kim, "kim", json!({ "about": "mentions" }));
    add(&kim, "kim", json!({ "book": "Shift", "query": "System:RICH1 HV" }));
    add(&zoe, "zoe", json!({ "about": "replies" }));
    // The rules of others are for administrators.
    kim.get("/users/zoe/rules").is(403);
    kim.post("/users/zoe/rules", json!({})).is(403);
    // What a rule names has to be there.
    for wrong in [json!({ "book": "None" }), json!({ "query": "(" }), json!({ "digest": "weekly" })] {
        let status = kim.post("/users/kim/rules", wrong.clone()).status;
        assert!([400, 422].contains(&status), "{wrong}: {status}");
    }

    let post = |client: &Client, body: Value| client.post("/books/Shift/entries", body).is(201).json()["id"].as_u64().unwrap();
    // An own entry, one that no rule means, and one that a rule means.
    post(&kim, json!({ "text": "HV trip, ask @kim", "attributes": { "System": ["RICH1"] } }));
    post(&zoe, json!({ "text": "quiet night for kim@example.org" }));
    let first = post(&zoe, json!({ "text": "HV trip, ask @kim.", "attributes": { "System": ["RICH1"], "Subject": "trip" } }));
    let answer = post(&max, json!({ "text": "see to it", "parent": first }));
    let mails = take(&site, 2);
    let [(subject, to, text), (_, to_zoe, reply)] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!((to.as_str(), to_zoe.as_str()), ("kim@example.org", "zoe@example.org"));
    assert_eq!(subject, "[Shift] trip");
    // One mail for both rules, with the links that end them.
    assert_eq!(text.matches("by your rule").count(), 2, "{text}");
    assert!(text.contains(&format!("https://log.example.org/elog/Shift/{first}")), "{text}");
    assert!(text.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click"), "{text}");
    assert!(
        reply.contains(&format!("In-Reply-To: <entry.{first}.Shift@example.org>"))
            && reply.contains(&format!("entry {answer} in Shift")),
        "{reply}"
    );

    // One click ends the first rule; a look at the link does not.
    let link = text.lines().find_map(|line| line.strip_prefix("List-Unsubscribe: <https://log.example.org")).unwrap();
    let link = link.trim_end_matches('>');
    let page = site.anybody().get(link).is(200);
    assert!(String::from_utf8_lossy(&page.bytes).contains("End this rule"));
    let names = |client: &Client| client.get("/users/kim/rules").is(200).json()["rules"].as_array().unwrap().len();
    assert_eq!(names(&kim), 2);
    site.anybody().get(&format!("{}x", &link[..link.len() - 1])).is(404);
    let clicked = site.anybody().with("content-type", "application/x-www-form-urlencoded").send(
        "POST",
        link,
        b"List-Unsubscribe=One-Click",
    );
    assert!(String::from_utf8_lossy(&clicked.is(200).bytes).contains("The rule has ended"));
    assert_eq!(names(&kim), 1);
    kim.delete(&format!("/users/kim/rules/{mentions}")).is(404);
}

#[test]
fn digests_wait_and_rights_are_asked_again() {
    let site = site();
    site.shift();
    let user = |login: &str| site.user(json!({ "login": login, "email": format!("{login}@example.org") }));
    let (zoe, kim) = (user("zoe"), user("kim"));
    let access = |to: &str| {
        let grants = json!({ "grants": [{ "to": to, "may": ["read"] }, { "to": "user:zoe", "may": ["read", "write"] }], "policy": { "kind": "free" } });
        site.owner().put("/books/Shift/access", grants).is(200);
    };
    access("user:kim");
    add(&kim, "kim", json!({ "digest": "daily" }));
    let now = add(&kim, "kim", json!({ "query": "urgent" }));
    let tested = kim.send("POST", &format!("/users/kim/rules/{now}/test"), b"").is(200).json();
    assert_eq!(tested["to"], "kim@example.org");
    assert_eq!(take(&site, 1)[0].0, "Test of a rule of the logbook");
    zoe.entry("not so important");
    zoe.entry("also");
    until_due(&site, 2);
    zoe.entry("urgent");
    assert_eq!(take(&site, 1)[0].1, "kim@example.org");
    // Whoever may not read the logbook any more is not mailed.
    access("user:nobody");
    add(&zoe, "zoe", json!({}));
    zoe.entry("urgent too");
    site.owner().entry("by the owner");
    let mails = take(&site, 1);
    assert_eq!(mails.iter().map(|mail| mail.1.as_str()).collect::<Vec<_>>(), ["zoe@example.org"], "{mails:?}");
}

#[test]
fn a_digest_is_sent_at_its_time() {
    let mut site = site();
    site.shift();
    let user = |site: &Site, login: &str| site.user(json!({ "login": login, "email": format!("{login}@example.org") }));
    let (zoe, kim) = (user(&site, "zoe"), user(&site, "kim"));
    let grants = json!({ "grants": [{ "to": "everybody", "may": ["read", "write"] }], "policy": { "kind": "free" } });
    site.owner().put("/books/Shift/access", grants).is(200);
    add(&kim, "kim", json!({ "digest": "daily" }));
    let (first, second) = (zoe.entry("a first entry"), zoe.entry("a second entry"));
    until_due(&site, 2);
    // While the hub is away, the time of the digest comes.
    site.restart(|book| {
        let store = SqliteStore::open(book).unwrap();
        let mut value = store.record("notify-due", "kim").unwrap().unwrap().value;
        for entry in value["entries"].as_array_mut().unwrap() {
            entry["due"] = json!(1);
        }
        store.put_record("notify-due", "kim", &value, None).unwrap();
    });
    let mails = take(&site, 1);
    let [(subject, to, text)] = &mails[..] else { panic!("one mail has both entries: {mails:?}") };
    assert_eq!(to, "kim@example.org");
    for entry in [first, second] {
        assert!(text.contains(&format!("https://log.example.org/elog/Shift/{entry}")), "{subject} {text}");
    }
    // What was sent waits no longer.
    until_due(&site, 0);
}

#[test]
fn the_api_mails_as_options_of_elog_ask() {
    let site = site();
    let elog = json!([
        ["Email Type Problem", "problem@example.org"],
        ["Use Email Subject", "$Type in $logbook"],
        ["Suppress Email on edit", "3"]
    ]);
    let attributes = json!([{ "name": "Type", "kind": "options", "options": ["Routine", "Problem"] }]);
    site.owner().put("/books/Shift", json!({ "name": "Shift", "attributes": attributes, "elog": elog })).is(201);
    let zoe = site.user(json!({ "login": "zoe", "full_name": "Zoe", "email": "zoe@example.org" }));
    let grants = json!({ "grants": [{ "to": "user:zoe", "may": ["read", "write", "edit-any"] }], "policy": { "kind": "free" } });
    site.owner().put("/books/Shift/access", grants).is(200);
    let post = |kind: &str| zoe.post("/books/Shift/entries", json!({ "text": "HV", "attributes": { "Type": kind } })).is(201);
    post("Routine");
    post("Problem");
    zoe.with("if-match", "\"0\"")
        .put("/books/Shift/entries/2", json!({ "text": "HV back", "attributes": { "Type": "Problem" } }))
        .is(200);
    let mails = take(&site, 1);
    let [(subject, to, text)] = &mails[..] else { panic!("{mails:?}") };
    assert_eq!((subject.as_str(), to.as_str()), ("Problem in Shift", "problem@example.org"));
    assert!(text.contains("From: Zoe <zoe@example.org>") && text.contains("https://log.example.org/elog/Shift/2"), "{text}");
}
