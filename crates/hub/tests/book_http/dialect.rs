//! ELOG's dialect as the hub mounts it: where it is, whose it is, which time it has.

use serde_json::json;
use tampu_hub::{
    book::settings::{BookSettings, Guests},
    listen::ListenAddress,
};

use crate::site::{Site, until};

fn with_door() -> Site {
    let site =
        Site::with(BookSettings { elog_listen: ListenAddress::loopback(0), guests: Guests::Write, ..BookSettings::default() });
    site.shift();
    site
}

#[test]
fn links_lead_back_to_where_one_came_from() {
    let site = with_door();
    let urls = site.hub.as_ref().unwrap().book().unwrap().elog_urls();
    let [alone, below] = &urls[..] else { panic!("{urls:?}") };
    assert!(below.ends_with("/elog/") && !alone.ends_with("/elog/"));
    for base in [alone, below] {
        let led = site.anybody().get(&format!("{base}Shift?cmd=New")).is(302);
        assert_eq!(led.header("location"), format!("{base}Shift/?cmd=New"));
        site.anybody().get(led.header("location")).is(200);
        // A post as ELOG's programs send it, and the address of the entry.
        let body = "--x\r\nContent-Disposition: form-data; name=\"cmd\"\r\n\r\nSubmit\r\n--x\r\n\
            Content-Disposition: form-data; name=\"Author\"\r\n\r\nZoe\r\n--x\r\nContent-Disposition: form-data; name=\"Text\"\r\n\r\nhello\r\n--x--\r\n";
        let client = site.anybody().with("content-type", "multipart/form-data; boundary=x");
        let posted = client.send("POST", &format!("{base}Shift/"), body.as_bytes()).is(302);
        assert!(posted.header("location").starts_with(&format!("{base}Shift/")), "{}", posted.header("location"));
        site.anybody().get(posted.header("location")).is(200);
    }
    // A logbook may have the name of the prefix.
    site.owner().put("/books/elog", json!({ "name": "elog", "attributes": [] })).is(201);
    let page = String::from_utf8(site.anybody().get(&format!("{alone}elog/?cmd=New")).is(200).bytes).unwrap();
    assert!(page.contains("name=\"Text\""), "{page}");
}

#[test]
fn only_a_trusted_proxy_names_the_public_address() {
    let claimed = |proxies: &[&str]| {
        let proxies = proxies.iter().map(|ip| ip.parse().unwrap()).collect();
        let site = Site::with(BookSettings { proxies, guests: Guests::Write, ..BookSettings::default() });
        site.shift();
        let client = site.anybody().with("x-forwarded-host", "logs.site.test").with("x-forwarded-proto", "https");
        let led = client.with("x-forwarded-prefix", "/books").get("/elog/Shift?cmd=New").is(302);
        led.header("location").to_owned()
    };
    assert_eq!(claimed(&["127.0.0.1"]), "https://logs.site.test/books/Shift/?cmd=New");
    let own = claimed(&[]);
    assert!(own.starts_with("http://127.0.0.1:") && own.ends_with("/elog/Shift/?cmd=New"), "{own}");
}

#[test]
fn somebody_who_comes_is_in_the_lists_of_users_at_once() {
    let site = Site::new();
    let attributes = json!([{ "name": "Author", "kind": "text" }, { "name": "Shift leader", "kind": "userlist" }]);
    site.owner().put("/books/Shift", json!({ "name": "Shift", "attributes": attributes })).is(201);
    let zoe = site.user(json!({ "login": "zoe", "full_name": "Zoe Quartz" }));
    for login in ["max", "kim"] {
        site.user(json!({ "login": login, "full_name": format!("{login} Later") }));
        let form = String::from_utf8(zoe.get("/elog/Shift/?cmd=New").is(200).bytes).unwrap();
        assert!(form.contains("Zoe Quartz") && form.contains(&format!("{login} Later")), "{form}");
    }
}

#[test]
fn whom_elog_does_not_let_in_is_let_in_nowhere() {
    let site = Site::new();
    for (book, user) in [("Open", None), ("Closed", Some("zoe"))] {
        let elog: Vec<[&str; 2]> = user.map(|user| ["Login user", user]).into_iter().collect();
        site.owner().put(&format!("/books/{book}"), json!({ "name": book, "attributes": [], "elog": elog })).is(201);
        site.owner().post(&format!("/books/{book}/entries"), json!({ "text": "the words" })).is(201);
    }
    let (zoe, max, keeper) =
        (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })), site.user(json!({ "login": "keeper" })));
    site.owner()
        .put(
            "/books/Closed/access",
            json!({ "grants": [
        { "to": "everybody", "may": ["read", "write"] }, { "to": "guests", "may": ["read"] },
        { "to": "user:keeper", "may": ["read", "admin"] },
    ] }),
        )
        .is(200);
    for (client, found) in [(&zoe, 2), (&max, 1), (&site.anybody(), 1), (&keeper, 2), (&site.owner(), 2)] {
        assert_eq!(client.found("words"), found);
        assert_eq!(client.get("/books").json().as_array().unwrap().len(), found);
        assert_eq!(client.get("/books/Closed/entries/1").status == 200, found == 2);
        let pages = ["/elog/", "/elog/Open/", "/elog/Open/?all=1&subtext=words"].map(|path| client.get(path).bytes).concat();
        assert_eq!(String::from_utf8(pages).unwrap().contains("Closed"), found == 2);
    }
    // Without the list its effect ends.
    site.owner().put("/books/Closed", json!({ "name": "Closed", "attributes": [], "elog": [] })).is(200);
    until("the list of readers is off", || match max.found("words") {
        2 => Ok(()),
        other => Err(format!("{other} entries")),
    });
}

#[test]
fn the_site_has_its_local_time() {
    let shown = |zone: Option<&str>| {
        let site = Site::with(BookSettings { zone: zone.map(str::to_owned), ..BookSettings::default() });
        site.shift();
        // 2026-07-01T22:30:00 UTC, which is past midnight in Zürich.
        let entry = json!({ "text": "late", "date": "2026-07-01T22:30:00Z", "zone": 0 });
        site.owner().post("/books/Shift/entries", entry).is(201);
        let client = site.owner();
        let page = String::from_utf8(client.get("/elog/Shift/1").is(200).bytes).unwrap();
        let of_july = |day: u8| {
            let path = format!("/elog/Shift/?ya=2026&ma=July&da={day}&yb=2026&mb=July&db={day}");
            String::from_utf8(client.get(&path).is(200).bytes).unwrap().contains("1 Entry")
        };
        (page.contains("Thu Jul  2 00:30:00 2026"), of_july(1), of_july(2))
    };
    assert_eq!(shown(Some("Europe/Zurich")), (true, false, true));
    assert_eq!(shown(None), (false, true, false));
    let wrong = BookSettings { zone: Some("Europe/Nowhere".to_owned()), ..BookSettings::default() };
    let (setting, why) = wrong.check().unwrap_err();
    assert!(setting == "zone" && why.contains("Europe/Nowhere"), "{why}");
}
