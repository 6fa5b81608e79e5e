//! Sessions, and those who would like to have somebody else's.

use serde_json::json;
use tampu_hub::book::settings::{BookSettings, Guests};

use crate::site::{Client, PASSWORD, Said, Site};

fn log_in(site: &Site) -> (Client, String) {
    let said = site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
    let form = said.json()["form"].as_str().unwrap().to_owned();
    (site.anybody().with("cookie", &said.cookie()), form)
}

fn with_zoe() -> Site {
    let site = Site::new();
    site.shift();
    site.user(json!({ "login": "zoe" }));
    site
}

fn by(said: &Said) -> String {
    said.json()["by"].as_str().unwrap().to_owned()
}

#[test]
fn a_stolen_cookie_is_worthless_after_logout_and_after_a_new_password() {
    let site = with_zoe();
    let (zoe, form) = log_in(&site);
    let thief = zoe.clone();
    assert_eq!(by(&thief.get("/whoami")), "session");
    let gone = zoe.with("x-tampu-form", &form).post("/logout", json!({})).is(204);
    assert!(gone.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(by(&thief.get("/whoami")), "guest");
    let (zoe, form) = log_in(&site);
    let thief = zoe.clone();
    let zoe = zoe.with("x-tampu-form", &form);
    zoe.put("/password", json!({ "old": "wrong", "new": "battery staple" })).is(401);
    zoe.put("/password", json!({ "old": PASSWORD, "new": "battery staple" })).is(204);
    assert_eq!((by(&thief.get("/whoami")), by(&zoe.get("/whoami"))), ("guest".into(), "guest".into()));
    site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(401);
    // An inactive user is logged out, too.
    let said = site.anybody().post("/login", json!({ "login": "zoe", "password": "battery staple" })).is(200);
    let zoe = site.anybody().with("cookie", &said.cookie());
    assert_eq!(by(&zoe.get("/whoami")), "session");
    site.owner().with_json("PATCH", "/users/zoe", json!({ "inactive": true })).is(200);
    assert_eq!(by(&zoe.get("/whoami")), "guest");
}

#[test]
fn the_cookie_is_for_browsers_alone_and_nothing_guessable() {
    let site = with_zoe();
    let said = site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
    let line = said.header("set-cookie");
    for word in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(line.contains(word), "{line}");
    }
    let secret = said.cookie();
    assert_eq!(secret.len(), "tampu_session=".len() + 64);
    let changed = format!("{}0", &secret[..secret.len() - 1]);
    let other = if changed == secret { format!("{}1", &secret[..secret.len() - 1]) } else { changed };
    for cookie in [other.as_str(), "tampu_session=", "tampu_session=' OR 1=1", &"tampu_session=".repeat(50)] {
        assert_eq!(by(&site.anybody().with("cookie", cookie).get("/whoami")), "guest", "{cookie}");
    }
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let site = with_zoe();
    let (zoe, form) = log_in(&site);
    let post = |client: &Client| client.post("/books/Shift/entries", json!({ "text": "forged" }));
    assert_eq!(post(&zoe).is(403).problem(), "no-form-token");
    assert_eq!(post(&zoe.with("x-tampu-form", "0")).is(403).problem(), "no-form-token");
    let zoe = zoe.with("x-tampu-form", &form);
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("referer", "https://evil.example/page"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        assert_eq!(post(&zoe.with(name, value)).is(403).problem(), "other-site", "{name}: {value}");
    }
    // Another site cannot log a user in as somebody else, nor reach the hub by a name of its own.
    let login =
        site.anybody().with("origin", "https://evil.example").post("/login", json!({ "login": "zoe", "password": PASSWORD }));
    assert_eq!(login.is(403).problem(), "other-site");
    assert_eq!(zoe.with("host", "evil.example").get("/whoami").is(421).problem(), "other-host");
    assert_eq!(zoe.found("forged"), 0);
    post(&zoe.with("origin", &site.url)).is(201);
    // No other page can read a response, either.
    let said = zoe.with("origin", "https://evil.example").get("/whoami");
    assert!(said.headers.get("access-control-allow-origin").is_none());
    assert_eq!(said.header("x-content-type-options"), "nosniff");
}

#[test]
fn nor_does_it_while_the_site_is_its_owners() {
    let site = Site::new();
    site.shift();
    // A connection of this host's user is no owner: a forwarder of that user opens it for anybody.
    assert_eq!(by(&site.anybody().get("/whoami")), "guest");
    let post = |client: &Client| client.post("/books/Shift/entries", json!({ "text": "forged" })).status;
    assert_eq!(post(&site.anybody()), 401);
    site.anybody().post("/users", json!({ "login": "mallory", "admin": true })).is(401);
    // The code makes one browser the owner, once.
    let url = site.hub.as_ref().unwrap().book().unwrap().owner_url().unwrap();
    let begun = site.anybody().get(&url).is(303);
    assert_eq!(begun.header("location"), "../../");
    assert!(begun.header("set-cookie").contains("HttpOnly"), "{}", begun.header("set-cookie"));
    assert_eq!(site.anybody().get(&url).is(401).problem(), "ended");
    site.anybody().get("/owner?code=").is(401);
    let browser = site.anybody().with("cookie", &begun.cookie());
    assert_eq!(by(&browser.get("/whoami")), "owner");
    assert_eq!(post(&browser), 201);
    assert_eq!(post(&browser.with("origin", "https://evil.example")), 403);
    assert_eq!(post(&browser.with("sec-fetch-site", "cross-site")), 403);
    // The first user ends the owner's session, and there is no further code.
    site.user(json!({ "login": "zoe" }));
    assert_eq!((by(&browser.get("/whoami")), by(&site.owner().get("/whoami"))), ("guest".into(), "owner".into()));
    assert_eq!(site.hub.as_ref().unwrap().book().unwrap().owner_url(), None);
}

#[test]
fn a_form_of_one_session_is_of_no_use_in_another() {
    let site = with_zoe();
    let session = || {
        let begun = site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
        site.anybody().with("cookie", &begun.cookie())
    };
    let (one, other) = (session(), session());
    let token = |client: &Client| {
        let page = String::from_utf8(client.get("/elog/Shift/?cmd=New").is(200).bytes).unwrap();
        let (_, rest) = page.split_once("name=\"tampu_form\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    assert_eq!(token(&one), token(&one));
    let post = |client: &Client, token: &str| {
        let form = format!("cmd=Submit&Author=zoe&Text=x&tampu_form={token}");
        client.with("content-type", "application/x-www-form-urlencoded").send("POST", "/elog/Shift/", form.as_bytes()).status
    };
    assert_eq!(post(&other, &token(&one)), 403);
    assert_eq!(post(&one, &token(&one)), 302);
    // One session ends all of them, after a question.
    let asked = one.get("/elog/Shift/?cmd=Logout&everywhere=1").is(200);
    assert!(asked.headers.get("set-cookie").is_none() && by(&other.get("/whoami")) == "session");
    let form = format!("cmd=Logout&everywhere=1&tampu_form={}", token(&one));
    let typed = one.with("content-type", "application/x-www-form-urlencoded");
    typed.send("POST", "/elog/Shift/", form.as_bytes()).is(302);
    assert_eq!((by(&one.get("/whoami")), by(&other.get("/whoami"))), ("guest".into(), "guest".into()));
}

#[test]
fn a_user_logs_out_everywhere_and_an_administrator_does_it_for_others() {
    let site = with_zoe();
    site.user(json!({ "login": "max" }));
    let ((one, form), (other, _)) = (log_in(&site), log_in(&site));
    let is = |client: &Client| by(&client.get("/whoami"));
    // Another site's page cannot do it, and nobody does it for another user.
    one.delete("/sessions").is(403);
    let one = one.with("x-tampu-form", &form);
    one.delete("/sessions?login=max").is(403);
    site.anybody().delete("/sessions").is(401);
    assert_eq!((is(&one), is(&other)), ("session".into(), "session".into()));
    one.delete("/sessions").is(204);
    assert_eq!((is(&one), is(&other)), ("guest".into(), "guest".into()));
    let (again, _) = log_in(&site);
    site.owner().delete("/sessions?login=zoee").is(404);
    assert_eq!(is(&again), "session");
    site.owner().delete("/sessions?login=zoe").is(204);
    assert_eq!(is(&again), "guest");
}

#[test]
fn guessing_passwords_takes_longer_and_longer() {
    let site = with_zoe();
    let guess = |n: u32| site.anybody().post("/login", json!({ "login": "zoe", "password": format!("guess {n}") }));
    let said: Vec<Said> = (0..12).map(guess).collect();
    let statuses: Vec<u16> = said.iter().map(|said| said.status).collect();
    assert!(statuses.starts_with(&[401, 401, 401, 401, 401]) && statuses.ends_with(&[429]), "{statuses:?}");
    let last = said.last().unwrap();
    assert_eq!(last.problem(), "too-many-tries");
    assert!(last.header("retry-after").parse::<u64>().unwrap() >= 1);
    // The right password has to wait, too: otherwise the response would reveal it.
    site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(429);
    // The same holds for a password in every request.
    let basic = format!("Basic {}", "em9lOmd1ZXNz");
    site.anybody().with("authorization", &basic).get("/whoami").is(429);
    // A token still works.
    assert_eq!(by(&site.owner().get("/whoami")), "owner");
}

#[test]
fn guests_may_what_the_site_says() {
    for (guests, reads, writes) in [(Guests::None, false, false), (Guests::Read, true, false), (Guests::Write, true, true)] {
        let site = Site::with(BookSettings { guests, ..BookSettings::default() });
        site.shift();
        site.user(json!({ "login": "zoe" }));
        let guest = site.anybody();
        assert_eq!(guest.get("/books/Shift").status == 200, reads, "{guests:?}");
        let posted = guest.post("/books/Shift/entries", json!({ "text": "x" }));
        assert_eq!(posted.status, if writes { 201 } else { 401 }, "{guests:?}");
        if writes {
            // A guest's entry has no owner: no guest changes it.
            assert_eq!(guest.get("/books/Shift/entries/1").json()["by"], "guest@127.0.0.1");
            guest.with("if-match", "*").put("/books/Shift/entries/1", json!({ "text": "y" })).is(401);
        }
    }
}

#[test]
fn names_and_passwords_come_with_a_request_too() {
    let site = with_zoe();
    let basic = "Basic em9lOmNvcnJlY3QgaG9yc2U=";
    let zoe = site.anybody().with("authorization", basic);
    assert_eq!(by(&zoe.get("/whoami")), "password");
    zoe.post("/books/Shift/entries", json!({ "text": "by a script" })).is(201);
    assert_eq!(zoe.get("/books/Shift/entries/1").json()["by"], "zoe");
}

#[test]
fn an_old_cookie_is_a_guests_and_locks_nobody_out() {
    let site = with_zoe();
    for n in 0..20 {
        let old = site.anybody().with("cookie", "unm=zoe; upwd=long%20ago");
        assert_eq!(old.get("/elog/Shift/").status, 200, "{n}");
        site.anybody().with("cookie", &format!("unm=eve; upwd={n}")).get("/elog/Shift/").is(200);
    }
    site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
}

#[test]
fn other_cookies_do_not_hide_the_session() {
    let site = with_zoe();
    let said = site.anybody().post("/login", json!({ "login": "zoe", "password": PASSWORD })).is(200);
    let mut zoe = site.anybody().with("cookie", &format!("name=Zoë; {}", said.cookie()));
    assert_eq!(by(&zoe.get("/whoami")), "session");
    zoe.headers = vec![("cookie".into(), "a=b".into()), ("cookie".into(), said.cookie())];
    assert_eq!(by(&zoe.get("/whoami")), "session");
}

#[test]
fn a_link_on_another_page_shows_what_one_may_see_and_a_password_of_the_browser_changes_nothing() {
    let site = with_zoe();
    let (zoe, _) = log_in(&site);
    let elsewhere = |client: &Client| client.with("sec-fetch-site", "cross-site");
    let rights = |client: &Client| client.get("/whoami").json()["rights"].clone();
    assert_eq!(rights(&elsewhere(&zoe)), rights(&zoe));
    let basic = site.anybody().with("authorization", "Basic em9lOmNvcnJlY3QgaG9yc2U=");
    for path in ["/uploads", "/books/Shift/entries/1/attachments?name=x"] {
        assert_eq!(elsewhere(&basic).send("POST", path, b"x").is(403).problem(), "other-site", "{path}");
    }
    basic.send("POST", "/uploads", b"x").is(201);
    // Browsers send no token by themselves.
    elsewhere(&site.owner()).send("POST", "/uploads", b"x").is(201);
    // On ELOG's pages, by a form or a command.
    let id = basic.post("/books/Shift/entries", json!({ "text": "mine" })).is(201).json()["id"].clone();
    for client in [&zoe, &basic] {
        for path in [format!("/elog/Shift/{id}?cmd=Delete&confirm=Yes"), format!("/elog/Shift/{id}?%63md=Delete&confirm=Yes")] {
            elsewhere(client).get(&path);
        }
        elsewhere(client).send("POST", &format!("/elog/Shift/{id}?cmd=Delete&confirm=Yes"), b"");
    }
    basic.get(&format!("/books/Shift/entries/{id}")).is(200);
}
