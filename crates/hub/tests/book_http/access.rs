//! Access over HTTP: a matrix of people and actions.

use serde_json::{Value, json};
use tampu_types::Time;

use crate::site::{Client, PASSWORD, Said, Site};

#[test]
fn the_matrix_of_people_and_deeds() {
    let site = Site::new();
    site.shift();
    site.owner().put("/books/Archive", json!({ "name": "Archive", "attributes": [] })).is(201);
    let everybody = ["guest", "reader", "writer", "author", "editor", "keeper", "admin", "stranger"];
    let user = |login: &str| site.user(json!({ "login": login, "admin": login == "admin" }));
    let clients: Vec<Client> =
        everybody.iter().map(|login| if *login == "guest" { site.anybody() } else { user(login) }).collect();
    // A new password ends the tokens of its user.
    user("spare");
    let access = json!({ "grants": [
        { "to": "user:reader", "may": ["read"] },
        { "to": "user:writer", "may": ["read", "write"] },
        { "to": "user:author", "may": ["read", "write", "edit-own"] },
        { "to": "user:editor", "may": ["read", "write", "edit-own", "edit-any"] },
        { "to": "user:keeper", "may": ["read", "admin"] },
    ] });
    for book in ["Shift", "Archive"] {
        site.owner().put(&format!("/books/{book}/access"), access.clone()).is(200);
    }
    let own = |client: &Client| client.post("/books/Shift/entries", json!({ "text": "own" })).json()["id"].as_u64();
    let foreign = site.owner().entry("foreign");
    let content = json!({ "text": "changed" });
    type Deed<'a> = (&'a str, Box<dyn Fn(&Client) -> u16 + 'a>, [bool; 8]);
    // In the order of `everybody`.
    let deeds: Vec<Deed<'_>> = vec![
        (
            "read",
            Box::new(|c| c.get(&format!("/books/Shift/entries/{foreign}")).status),
            [false, true, true, true, true, true, true, false],
        ),
        ("search", Box::new(|c| c.get("/search?book=Shift").status), [false, true, true, true, true, true, true, false]),
        (
            "history",
            Box::new(|c| c.get(&format!("/books/Shift/entries/{foreign}/history")).status),
            [false, true, true, true, true, true, true, false],
        ),
        (
            "thread",
            Box::new(|c| c.get(&format!("/books/Shift/entries/{foreign}/thread")).status),
            [false, true, true, true, true, true, true, false],
        ),
        ("export", Box::new(|c| c.get("/search/export?book=Shift").status), [false, true, true, true, true, true, true, false]),
        ("feed", Box::new(|c| c.get("/search/feed.atom?book=Shift").status), [false, true, true, true, true, true, true, false]),
        (
            "calendar",
            Box::new(|c| c.get("/search/calendar.ics?book=Shift").status),
            [false, true, true, true, true, true, true, false],
        ),
        (
            "stream",
            Box::new(|c| c.open("/search/stream?book=Shift").status().as_u16()),
            [false, true, true, true, true, true, true, false],
        ),
        (
            "post",
            Box::new(|c| c.post("/books/Shift/entries", json!({ "text": "x" })).status),
            [false, false, true, true, true, false, true, false],
        ),
        (
            "reply",
            Box::new(|c| c.post("/books/Shift/entries", json!({ "text": "x", "parent": foreign })).status),
            [false, false, true, true, true, false, true, false],
        ),
        ("upload", Box::new(|c| c.send("POST", "/uploads", b"x").status), [false, false, true, true, true, false, true, false]),
        (
            "edit own",
            Box::new(|c| {
                own(c)
                    .map_or(403, |id| c.with("if-match", "*").put(&format!("/books/Shift/entries/{id}"), content.clone()).status)
            }),
            [false, false, false, true, true, false, true, false],
        ),
        (
            "edit any",
            Box::new(|c| c.with("if-match", "*").put(&format!("/books/Shift/entries/{foreign}"), content.clone()).status),
            [false, false, false, false, true, false, true, false],
        ),
        (
            "attach",
            Box::new(|c| c.send("POST", &format!("/books/Shift/entries/{foreign}/attachments?name=x"), b"x").status),
            [false, false, false, false, true, false, true, false],
        ),
        (
            "lock",
            Box::new(|c| {
                let said = c.put(&format!("/books/Shift/entries/{foreign}/lock"), json!({}));
                c.delete(&format!("/books/Shift/entries/{foreign}/lock"));
                said.status
            }),
            [false, false, false, false, true, false, true, false],
        ),
        (
            "copy",
            Box::new(|c| c.post(&format!("/books/Shift/entries/{foreign}/copy"), json!({ "to": "Archive" })).status),
            [false, false, true, true, true, false, true, false],
        ),
        (
            "delete",
            Box::new(|c| {
                let id = site.owner().entry("to be deleted");
                c.delete(&format!("/books/Shift/entries/{id}")).status
            }),
            [false, false, false, false, true, false, true, false],
        ),
        (
            "move",
            Box::new(|c| {
                let id = site.owner().entry("to be moved");
                c.post(&format!("/books/Shift/entries/{id}/move"), json!({ "to": "Archive" })).status
            }),
            [false, false, false, false, true, false, true, false],
        ),
        (
            "change the book",
            Box::new(|c| c.put("/books/Archive", json!({ "name": "Archive", "attributes": [] })).status),
            [false, false, false, false, false, true, true, false],
        ),
        ("see rights", Box::new(|c| c.get("/books/Shift/access").status), [false, false, false, false, false, true, true, false]),
        (
            "give rights",
            Box::new(|c| c.put("/books/Shift/access", access.clone()).status),
            [false, false, false, false, false, true, true, false],
        ),
        (
            "give rights to all books",
            Box::new(|c| c.put("/books/*/access", access.clone()).status),
            [false, false, false, false, false, false, true, false],
        ),
        (
            "make a book",
            Box::new(|c| c.put("/books/New", json!({ "name": "New", "attributes": [] })).status),
            [false, false, false, false, false, false, true, false],
        ),
        ("see users", Box::new(|c| c.get("/users").status), [false, false, false, false, false, false, true, false]),
        (
            "make users",
            Box::new(|c| c.post("/users", json!({ "login": "new" })).status),
            [false, false, false, false, false, false, true, false],
        ),
        (
            "give a password",
            Box::new(|c| c.put("/users/spare/password", json!({ "password": "something" })).status),
            [false, false, false, false, false, false, true, false],
        ),
        (
            "promote oneself",
            Box::new(|c| c.with_json("PATCH", "/users/stranger", json!({ "admin": false })).status),
            [false, false, false, false, false, false, true, false],
        ),
        (
            "see others' tokens",
            Box::new(|c| c.get("/tokens?login=admin").status),
            [false, false, false, false, false, false, true, false],
        ),
        (
            "make others' tokens",
            Box::new(|c| c.post("/tokens", json!({ "login": "admin", "comment": "x", "password": PASSWORD })).status),
            [false, false, false, false, false, false, true, false],
        ),
        ("own tokens", Box::new(|c| c.get("/tokens").status), [false, true, true, true, true, true, true, true]),
        ("own drafts", Box::new(|c| c.get("/drafts").status), [false, true, true, true, true, true, true, true]),
        ("whoami", Box::new(|c| c.get("/whoami").status), [true; 8]),
    ];
    for (deed, act, expected) in &deeds {
        for ((login, client), expected) in everybody.iter().zip(&clients).zip(expected) {
            let status = act(client);
            assert_eq!((200..300).contains(&status), *expected, "{login}: {deed}: {status}");
            assert!(*expected || [401, 403, 404].contains(&status), "{login}: {deed}: {status}");
        }
    }
    // A logbook that the caller may not read does not exist, in lists and in searches of everything.
    let stranger = &clients[7];
    assert_eq!((stranger.get("/books").json(), stranger.found("")), (json!([]), 0));
    assert_eq!(stranger.get("/books/Shift").is(404).problem(), "not-there");
}

#[test]
fn a_token_is_no_more_than_it_says() {
    let site = Site::new();
    site.shift();
    site.owner().put("/books/Archive", json!({ "name": "Archive", "attributes": [] })).is(201);
    let zoe = site.user(json!({ "login": "zoe", "admin": true }));
    // A token can make no token that ends later than itself, so the password makes them.
    let by_password = site.anybody().with("authorization", "Basic em9lOmNvcnJlY3QgaG9yc2U=");
    let token = |said: Value| {
        let made = by_password.post("/tokens", said).is(201).json();
        site.anybody().with("authorization", &format!("Bearer {}", made["secret"].as_str().unwrap()))
    };
    let reader = token(json!({ "comment": "display", "may": ["read"], "books": ["Shift"] }));
    let id = zoe.entry("hello");
    reader.get(&format!("/books/Shift/entries/{id}")).is(200);
    reader.get("/books/Archive").is(404);
    reader.post("/books/Shift/entries", json!({ "text": "x" })).is(403);
    for (method, path, body) in [
        ("POST", "/tokens", json!({ "comment": "more" })),
        ("POST", "/drafts", json!({ "book": "Shift", "text": "x" })),
        ("PUT", "/searches/x", json!({ "q": "x" })),
        ("PUT", "/password", json!({ "old": "x", "new": "something" })),
        ("POST", "/users", json!({ "login": "eve" })),
        ("PUT", "/books/Shift/access", json!({})),
    ] {
        reader.with_json(method, path, body).is(403);
    }
    let refused = reader.delete(&format!("/books/Shift/entries/{id}")).is(403).json();
    assert_eq!(refused["detail"], "this token of 'zoe' does not have the right 'edit-own'");
    for (query, words) in [("limit=abc", "invalid number 'abc'"), ("text=perhaps", "invalid value 'perhaps'")] {
        let detail = reader.get(&format!("/search?{query}")).is(400).json()["detail"].clone();
        assert!(detail.as_str().unwrap().contains(words), "{detail}");
    }
    for path in ["/drafts", "/searches", "/tokens"] {
        reader.get(path).is(403);
        zoe.get(path).is(200);
    }
    for token in zoe.get("/tokens").json().as_array().unwrap() {
        reader.delete(&format!("/tokens/{}", token["id"].as_str().unwrap())).is(403);
    }
    zoe.post("/tokens", json!({ "comment": "late", "expires": "1970-01-01T00:00:00Z" })).is(400);
    // Browsers round a large number, so times are text; the response shows the format.
    let refused = zoe.post("/tokens", json!({ "comment": "late", "expires": 4_000_000_000_000_000_000i64 })).is(400).json();
    assert!(refused["detail"].as_str().unwrap().contains("write RFC 3339, as \"20"), "{refused}");
    // A token that expires cannot make a token that does not.
    let text = |ns: i64| Time(ns).to_rfc3339();
    let end = 4_000_000_000_000_000_001i64;
    let short = token(json!({ "comment": "short", "expires": text(end) }));
    short.post("/tokens", json!({ "comment": "longer", "expires": text(end + 1) })).is(403);
    let shorter = json!({ "comment": "shorter", "expires": text(end - 1), "password": PASSWORD });
    for (said, ends) in [(json!({ "comment": "as long", "password": PASSWORD }), end), (shorter, end - 1)] {
        assert_eq!(short.post("/tokens", said).is(201).json()["expires"], text(ends));
    }
    for wrong in ["Bearer ", "Bearer tampu_00", "Bearer x y", "Basic !", "Basic em9l", "Digest x", "x"] {
        site.anybody().with("authorization", wrong).get("/whoami").is(401);
    }
    // A user who was removed has no access.
    site.owner().delete("/users/zoe").is(204);
    reader.get("/whoami").is(401);
}

#[test]
fn a_token_with_fewer_rights_uses_nothing_of_its_user() {
    let site = Site::new();
    site.shift();
    site.owner().put("/books/Closed", json!({ "name": "Closed", "attributes": [] })).is(201);
    let zoe = site.user(json!({ "login": "zoe" }));
    let narrow = |may: &[&str]| {
        let said = json!({ "login": "zoe", "comment": "x", "may": may, "books": ["Shift"] });
        let made = site.owner().post("/tokens", said).is(201).json();
        site.anybody().with("authorization", &format!("Bearer {}", made["secret"].as_str().unwrap()))
    };
    let (reader, writer) = (narrow(&["read"]), narrow(&["read", "write"]));
    // The logbooks of others have no name for it.
    let names = |client: &Client| {
        let told = client.get("/whoami/explain").is(200).json();
        told["books"].as_array().unwrap().iter().map(|one| one["book"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&zoe).len(), names(&reader)), (2, vec!["Shift".to_owned()]));
    // A file that waits for its entry, and a lock.
    let sha = zoe.send("POST", "/uploads", b"bytes").is(201).json()["sha"].as_str().unwrap().to_owned();
    reader.delete(&format!("/uploads/{sha}")).is(403);
    let id = zoe.entry("hello");
    zoe.put(&format!("/books/Shift/entries/{id}/lock"), json!({})).is(200);
    reader.delete(&format!("/books/Shift/entries/{id}/lock")).is(403);
    // Pages: sessions, and drafts of other logbooks.
    let session = site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
    let browser = site.anybody().with("cookie", &session.cookie());
    let number = |book: &str, text: &str| {
        zoe.post("/drafts", json!({ "book": book, "text": text })).is(201).json()["number"].as_str().unwrap().to_owned()
    };
    let (here, closed) = (number("Shift", "here"), number("Closed", "closed"));
    for client in [&reader, &writer] {
        let typed = client.with("content-type", "application/x-www-form-urlencoded");
        for form in [
            "cmd=Logout&everywhere=1".to_owned(),
            format!("cmd=Back&edit_id={id}"),
            format!("cmd=Drop+draft&draft_id={closed}"),
            format!("cmd=Submit&draft=1&draft_id={closed}&Author=x&Text=overwritten"),
            format!("cmd=Submit&draft_id={closed}&Author=x&Text=posted"),
        ] {
            let said = typed.send("POST", "/elog/Shift/", form.as_bytes());
            assert!(said.status < 500, "{form}: {said:?}");
        }
        let is_held = zoe.get(&format!("/books/Shift/entries/{id}/lock")).json()["by"] == "zoe";
        assert_eq!(is_held, std::ptr::eq(client, &reader), "only a token that may write gives the lock back");
    }
    assert_eq!(browser.get("/whoami").json()["by"], "session");
    let kept = zoe.get("/drafts").json();
    let texts: Vec<&str> = kept.as_array().unwrap().iter().map(|draft| draft["text"].as_str().unwrap()).collect();
    assert!(texts.contains(&"closed") && texts.contains(&"here") && texts.contains(&"overwritten"), "{texts:?}");
    // In its own logbook, a token that may write has the drafts of the pages.
    let typed = writer.with("content-type", "application/x-www-form-urlencoded");
    typed.send("POST", "/elog/Shift/", format!("cmd=Drop+draft&draft_id={here}").as_bytes());
    assert!(!zoe.get("/drafts").json().to_string().contains("here"));
}

#[test]
fn drafts_of_a_logbook_are_read_with_the_right_to_read_it() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let draft = zoe.post("/drafts", json!({ "book": "Shift", "text": "a secret, changed" })).is(201).json()["number"].clone();
    let path = format!("/drafts/{}", draft.as_str().unwrap());
    let grant = |may: &[&str]| {
        site.owner().put("/books/Shift/access", json!({ "grants": [{ "to": "user:zoe", "may": may }] })).is(200);
    };
    grant(&[]);
    assert_eq!(zoe.get("/drafts").is(200).json(), json!([]));
    site.owner().put("/books/Open", json!({ "name": "Open", "attributes": [] })).is(201);
    zoe.put(&path, json!({ "book": "Open", "text": "x" })).is(404);
    grant(&["read"]);
    assert_eq!(zoe.get("/drafts").is(200).json()[0]["text"], "a secret, changed");
    grant(&[]);
    zoe.delete(&path).is(204);
}

#[test]
fn a_token_is_made_with_the_password_and_ends_with_it() {
    let site = Site::new();
    let zoe = site.user(json!({ "login": "zoe" }));
    let session = site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
    let form = session.json()["form"].as_str().unwrap().to_owned();
    let browser = site.anybody().with("cookie", &session.cookie()).with("x-tampu-form", &form);
    // A session or a token that was stolen does not become a lasting access.
    for thief in [&zoe, &browser] {
        assert_eq!(thief.post("/tokens", json!({ "comment": "more" })).is(403).problem(), "no-password");
        let wrong = json!({ "comment": "more", "password": "wrong horse" });
        assert_eq!(thief.post("/tokens", wrong).is(401).problem(), "wrong-password");
    }
    let made = browser.post("/tokens", json!({ "comment": "robot", "password": PASSWORD })).is(201).json();
    let (begin, end) = (made["made"].as_str().unwrap(), made["expires"].as_str().unwrap());
    let time = |text: &str| text[..19].parse::<Time>().unwrap().0;
    assert_eq!(time(end) - time(begin), 365 * 86_400 * 1_000_000_000);
    let robot = site.anybody().with("authorization", &format!("Bearer {}", made["secret"].as_str().unwrap()));
    robot.get("/whoami").is(200);
    browser.put("/password", json!({ "old": PASSWORD, "new": "battery staple" })).is(204);
    for ended in [&robot, &zoe] {
        assert_eq!(ended.get("/whoami").is(401).problem(), "ended");
    }
}

#[test]
fn a_book_can_be_one_that_only_grows() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe", "admin": true }));
    let id = zoe.entry("as it was");
    zoe.put("/books/Shift/access", json!({ "grants": [], "policy": { "kind": "append-only" } })).is(200);
    let path = format!("/books/Shift/entries/{id}");
    let refused = zoe.with("if-match", "*").put(&path, json!({ "text": "as it should have been" })).is(403);
    assert_eq!(refused.problem(), "stays");
    zoe.delete(&path).is(403);
    assert_eq!(zoe.get(&path).json()["may_edit"], false);
    zoe.post("/books/Shift/entries", json!({ "parent": id, "text": "it was otherwise" })).is(201);
    zoe.put("/books/Shift/access", json!({ "policy": { "kind": "locked-after", "hours": 0 } })).is(200);
    zoe.with("if-match", "*").put(&path, json!({ "text": "its administrator may" })).is(200);
}

#[test]
fn where_an_entry_went_is_told_to_who_may_read_there() {
    let site = Site::new();
    site.shift();
    site.owner().put("/books/Closed", json!({ "name": "Closed", "attributes": [] })).is(201);
    site.owner().put("/books/Closed/access", json!({ "grants": [] })).is(200);
    let zoe = site.user(json!({ "login": "zoe" }));
    let id = site.owner().entry("something");
    site.owner().post(&format!("/books/Shift/entries/{id}/move"), json!({ "to": "Closed" })).is(201);
    let path = format!("/books/Shift/entries/{id}");
    let any = |who: &Client| who.with("if-match", "*");
    type Deed<'a> = &'a dyn Fn(&Client) -> Said;
    let deeds: [(&str, Deed<'_>); 9] = [
        ("read", &|who| who.get(&path)),
        ("history", &|who| who.get(&format!("{path}/history"))),
        ("thread", &|who| who.get(&format!("{path}/thread"))),
        ("links", &|who| who.get(&format!("{path}/links"))),
        ("link", &|who| who.post(&format!("{path}/links"), json!({ "link": "run:1" }))),
        ("edit", &|who| any(who).put(&path, json!({ "text": "x" }))),
        ("delete", &|who| who.delete(&path)),
        ("copy", &|who| who.post(&format!("{path}/copy"), json!({ "to": "Shift" }))),
        ("reply", &|who| who.post("/books/Shift/entries", json!({ "text": "x", "parent": id }))),
    ];
    for (deed, act) in deeds {
        let (said, to_owner) = (act(&zoe), act(&site.owner()));
        let text = |said: &Said| String::from_utf8_lossy(&said.bytes).into_owned();
        assert!(said.status >= 400 || deed == "history", "{deed}");
        assert!(!text(&said).contains("Closed"), "{deed}: {}", text(&said));
        let told = text(&to_owner).contains("Closed");
        assert!(told || ["history", "reply"].contains(&deed), "{deed}: {}", text(&to_owner));
    }
}

#[test]
fn dating_ahead_keeps_no_entry_open() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let posted = |date: i64| {
        zoe.post("/books/Shift/entries", json!({ "text": "x", "date": Time(date).to_rfc3339() })).is(201).json()["id"].clone()
    };
    let (ahead, behind) = (posted(now + 240_000_000_000), posted(now - 240_000_000_000));
    let edit = |id: &serde_json::Value| {
        let path = format!("/books/Shift/entries/{id}");
        let said = zoe.with("if-match", "*").put(&path, json!({ "text": "y" })).status;
        assert_eq!(zoe.get(&path).json()["may_edit"], said == 200);
        said
    };
    let within = |minutes: u32| {
        let policy = json!({ "kind": "own-within", "minutes": minutes });
        let grants = json!([{ "to": "user:zoe", "may": ["read", "write", "edit-own"] }]);
        site.owner().put("/books/Shift/access", json!({ "grants": grants, "policy": policy })).is(200);
    };
    within(1000);
    assert_eq!((edit(&ahead), edit(&behind)), (200, 200));
    within(0);
    assert_eq!((edit(&ahead), edit(&behind)), (403, 403));
}

#[test]
fn a_new_name_takes_no_logbook_out_of_a_rule() {
    let site = Site::new();
    let owner = site.owner();
    let zoe = site.user(json!({ "login": "zoe" }));
    for book in ["Secret", "Gone"] {
        owner.put(&format!("/books/{book}"), json!({ "name": book, "attributes": [] })).is(201);
        owner.post(&format!("/books/{book}/entries"), json!({ "text": "hushed" })).is(201);
        let rule = json!({ "effect": "deny", "who": "anybody", "may": ["read"], "what": format!("book/{book}") });
        owner.post("/access/rules", rule).is(201);
    }
    let rename = |book: &str, to: &str| owner.post(&format!("/books/{book}/rename"), json!({ "name": to })).is(200);
    let closed = |book: &str| {
        for client in [&zoe, &site.anybody()] {
            let said = client.get(&format!("/books/{book}/entries/1"));
            assert!([401, 403, 404].contains(&said.status), "{book}: {} {}", said.status, String::from_utf8_lossy(&said.bytes));
        }
        let why = owner.get(&format!("/access/explain?who=guest&verb=read&what=book/{book}")).is(200).json();
        assert_eq!(why["allowed"], json!(false), "{book}: {why}");
        why["why"].as_str().unwrap().to_owned()
    };
    closed("Secret");
    rename("Secret", "Second");
    assert!(closed("Second").contains("the logbook had the name 'secret'"));
    rename("Second", "Third");
    closed("Third");
    // Another logbook takes the former name, and leaves it again.
    owner.put("/books/Other", json!({ "name": "Other", "attributes": [] })).is(201);
    rename("Other", "Secret");
    closed("Third");
    rename("Secret", "Last");
    closed("Third");
    closed("Last");
    // The same for a logbook that was deleted.
    let deleted = owner.delete("/books/Gone").is(200).json()["number"].to_string();
    owner.post(&format!("/deleted-books/{deleted}/restore"), json!({ "name": "Back" })).is(200);
    closed("Back");
    // Without the rules they are open.
    let rules = owner.get("/access").is(200).json();
    for rule in rules["rules"].as_array().unwrap().iter().rev() {
        owner.delete(&format!("/access/rules/{}", rule["line"])).is(204);
    }
    zoe.get("/books/Third/entries/1").is(200);
    zoe.get("/books/Back/entries/1").is(200);
}
