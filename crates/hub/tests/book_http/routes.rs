//! Every route of the catalogue, each answer held against the document.

use serde_json::{Value, json};
use tampu_hub::{
    api::catalogue::{is_of_console, routes},
    book::settings::BookSettings,
    login::{oidc::settings::OidcSettings, settings::LoginSettings},
};

use crate::{
    checked::Checked,
    site::{Client, PASSWORD, Site},
};

#[test]
fn every_route_does_what_the_document_says() {
    let oidc = OidcSettings { issuer: "https://sso.example.org".into(), client_id: "tampu".into(), ..OidcSettings::default() };
    let login = LoginSettings { name: "sso".into(), oidc: Some(oidc), ..LoginSettings::default() };
    let site = Site::with(BookSettings { login: vec![login], ..BookSettings::default() });
    let owner = site.owner();
    let all = Checked::of(&owner);
    let ask = |client: &Client, method: &str, path: &str, body: Value| all.ask(client, method, path, Some(body));
    let get = |client: &Client, path: &str| all.ask(client, "GET", path, None);
    let drop = |client: &Client, path: &str| all.ask(client, "DELETE", path, None);
    get(&owner, "/openapi.json");

    let attributes =
        json!([{ "name": "Author", "kind": "text" }, { "name": "Type", "kind": "options", "options": ["Routine", "Problem"] }]);
    ask(&owner, "PUT", "/books/Shift", json!({ "name": "Shift", "attributes": attributes, "elog": [["Theme", "dark"]] }));
    ask(&owner, "PUT", "/books/Archive", json!({ "name": "Archive", "attributes": [] }));
    assert_eq!(get(&owner, "/books").json().as_array().unwrap().len(), 2);
    assert_eq!(get(&owner, "/books/shift").json()["elog"][0][0], "Theme");
    ask(
        &owner,
        "PUT",
        "/books/Archive",
        json!({ "name": "Archive", "attributes": [], "comment": "old", "elog": [["Self register", "3"]] }),
    );

    let read = get(&owner, "/books/Archive/config");
    let (etag, version) = (read.header("etag").to_owned(), read.json()["version"].clone());
    assert_eq!(
        (etag.as_str(), read.json()["text"].as_str().unwrap().contains("Self register = 3")),
        (format!("\"{}\"", version.as_str().unwrap()).as_str(), true)
    );
    let text = |comment: &str| json!({ "text": format!("Comment = {comment}\nAttributes = Author\nSelf register = 3\n") });
    ask(&owner.with("if-match", &etag), "PUT", "/books/Archive/config", text("older"));
    owner.with("if-match", &etag).with_json("PUT", "/books/Archive/config", text("other")).is(412);
    owner.with_json("PUT", "/books/Archive/config", text("other")).is(428);
    let fault = json!({ "text": "Attributes = Author\nCommint = x\n" });
    let fault = owner.with("if-match", "*").with_json("PUT", "/books/Archive/config", fault).is(422).json();
    assert!(fault["detail"].as_str().unwrap().starts_with("line 2: ELOG has no option 'Commint'"), "{fault}");
    let changes = get(&owner, "/books/Archive/config/history?limit=2").json();
    assert_eq!(
        (&changes[0]["number"], &changes[0]["what"], changes.as_array().unwrap().len()),
        (&json!(3), &json!("changed"), 2)
    );
    let change = get(&owner, "/books/Archive/config/history/3").json();
    assert!(
        change["before"].as_str().unwrap().contains("Comment = old\n") && change["after"].as_str().unwrap().contains("older")
    );
    let restored = all.ask(&owner, "POST", "/books/Archive/config/history/3/restore?before=true", None).json();
    assert!(restored["text"].as_str().unwrap().contains("Comment = old\n"), "{restored}");
    owner.send("POST", "/books/Archive/config/history/1/restore?before=true", b"").is(400);
    owner.get("/books/Archive/config/history/9").is(404);

    // While there are no users, a code begins a session of the owner.
    let begun = site.hub.as_ref().unwrap().book().unwrap().owner_url().unwrap();
    get(&site.anybody(), begun.split_once("/api/v1").unwrap().1);
    let rule = json!({ "effect": "deny", "who": "guest", "may": ["write"], "what": "book/Archive", "why": "closed" });
    let made = ask(&owner, "POST", "/access/rules", rule).json();
    assert_eq!(get(&owner, "/access").json()["rules"][0]["line"], made["line"]);
    let explained = get(&owner, "/access/explain?who=guest&verb=write&what=book/Archive").json();
    assert_eq!((&explained["allowed"], &explained["rule"]["why"]), (&json!(false), &json!("closed")));
    drop(&owner, &format!("/access/rules/{}", made["line"]));
    assert_eq!(get(&owner, "/access").json()["rules"], json!([]));

    let form = json!({ "attributes": { "Type": "Problem" } });
    assert_eq!(ask(&owner, "POST", "/books/Shift/form", form).json()["fields"][1]["name"], "Type");
    let text = json!({ "text": "**HV**", "encoding": "markdown" });
    assert_eq!(ask(&owner, "POST", "/books/Shift/preview", text).json()["html"], "<p><strong>HV</strong></p>\n");

    // People.
    let zoe = json!({ "login": "zoe", "full_name": "Zoë", "email": "zoe@example.org", "password": PASSWORD });
    ask(&owner, "POST", "/users", zoe);
    get(&owner, "/users");
    get(&owner, "/users/zoe");
    let changed = ask(&owner, "PATCH", "/users/zoe", json!({ "groups": ["ops"] })).json();
    assert_eq!((&changed["full_name"], &changed["groups"][0]), (&json!("Zoë"), &json!("ops")));
    ask(&owner, "POST", "/users", json!({ "login": "max" }));
    ask(&owner, "PUT", "/users/max/method", json!({ "method": "sso", "subject": "7" }));
    assert_eq!(get(&owner, "/whoami/explain?login=max").json()["method"], "sso (oidc)");
    drop(&owner, "/users/max/method");
    ask(&owner, "PUT", "/users/max/password", json!({ "password": "battery staple" }));
    ask(&owner, "PUT", "/groups/ops", json!({ "members": ["zoe", "max"] }));
    assert_eq!(get(&owner, "/groups").json()[0]["members"], json!(["max", "zoe"]));
    site.register("Archive", "ann");
    site.register("Archive", "ben");
    let waiting = get(&owner, "/registrations").json();
    let registration = |at: usize| format!("/registrations/{}", waiting[at]["id"].as_str().unwrap());
    assert_eq!(all.ask(&owner, "POST", &format!("{}/approve", registration(0)), None).json()["login"], "ann");
    drop(&owner, &registration(1));
    get(&owner, "/books/*/access");
    let access = json!({ "grants": [{ "to": "group:ops", "may": ["read", "write", "edit-any"] }], "policy": { "kind": "own-within", "minutes": 5 } });
    ask(&owner, "PUT", "/books/Shift/access", access.clone());
    assert_eq!(get(&owner, "/books/Shift/access").json(), access);

    let logged_in = ask(&site.anybody(), "POST", "/login", json!({ "login": "zoe", "password": PASSWORD }));
    let form = logged_in.json()["form"].as_str().unwrap().to_owned();
    let browser = site.anybody().with("cookie", &logged_in.cookie()).with("x-tampu-form", &form);
    assert_eq!(get(&browser, "/whoami").json()["by"], "session");
    let made = ask(
        &browser,
        "POST",
        "/tokens",
        json!({ "password": PASSWORD, "comment": "robot", "may": ["read", "write", "edit-own", "edit-any"] }),
    )
    .json();
    assert_eq!(get(&browser, "/tokens").json().as_array().unwrap().len(), 1);
    let zoe = site.anybody().with("authorization", &format!("Bearer {}", made["secret"].as_str().unwrap()));
    assert_eq!(get(&zoe, "/whoami").json()["rights"]["Shift"], json!(["read", "write", "edit-any"]));
    zoe.get("/books/Shift/config").is(403);

    // An administrator of a logbook does not change options of the whole site.
    ask(
        &owner,
        "PUT",
        "/books/Archive/access",
        json!({ "grants": [{ "to": "user:zoe", "may": ["read", "admin"] }], "policy": { "kind": "free" } }),
    );
    let book = |register: &str| json!({ "name": "Archive", "attributes": [], "elog": [["Self register", register]] });
    let refused = browser.with_json("PUT", "/books/Archive", book("1")).is(403).json();
    assert!(refused["detail"].as_str().unwrap().contains("'Self register'"), "{refused}");
    let text = json!({ "text": "Attributes = Author\nSelf register = 1\n" });
    browser.with("if-match", "*").with_json("PUT", "/books/Archive/config", text).is(403);
    ask(&browser, "PUT", "/books/Archive", book("3"));

    // Entries.
    let (method, path) = ("POST", "/uploads");
    let operation = &all.document["paths"]["/api/v1/uploads"]["post"];
    let upload = |bytes: &[u8]| {
        let said = zoe.send(method, path, bytes);
        all.answered("upload", operation, &said, path);
        said.json()["sha"].as_str().unwrap().to_owned()
    };
    let (sha, other) = (upload(b"not really a picture"), upload(b"nobody wants this"));
    drop(&zoe, &format!("/uploads/{other}"));
    let entry = json!({
        "attributes": { "Author": "Zoe", "Type": "Problem" }, "text": "LHC:MAG-01/cur **tripped**", "links": ["run:80123"],
        "attachments": [{ "name": "trend plot.png", "sha": sha }], "zone": 60,
    });
    let posted = ask(&zoe, "POST", "/books/Shift/entries", entry);
    assert_eq!(posted.header("location"), "/api/v1/books/Shift/entries/1");
    let shown = get(&zoe, "/books/Shift/entries/1?html=true").json();
    assert!(shown["html"].as_str().unwrap().contains("<strong>tripped</strong>") && shown["may_edit"] == true, "{shown}");
    assert_eq!((&shown["by"], &shown["zone"]), (&json!("zoe"), &json!(60)));
    ask(
        &zoe,
        "POST",
        "/books/Shift/entries",
        json!({ "parent": 1, "attributes": [{ "name": "Author", "values": ["Max"] }], "text": "the fuse" }),
    );
    assert!(get(&zoe, "/books/Shift/entries/2/looks").json()["days"].is_array());
    assert_eq!(get(&zoe, "/books/Shift/entries/2/thread").json()["entries"].as_array().unwrap().len(), 2);
    let mut content =
        json!({ "attributes": shown["attributes"], "text": "LHC:MAG-01/cur tripped twice", "attachments": shown["attachments"] });
    content["links"] = shown["links"].clone();
    let edited = ask(&zoe.with("if-match", "\"0\""), "PUT", "/books/Shift/entries/1", content);
    assert_eq!(edited.header("etag"), "\"1\"");
    ask(&zoe, "POST", "/books/Shift/entries/1/links", json!({ "link": { "kind": "transfer", "target": "a:b" } }));
    assert_eq!(get(&zoe, "/books/Shift/entries/1/links").json().as_array().unwrap().len(), 2);
    let resolved = get(&zoe, "/books/Shift/entries/1/links/resolved").json();
    assert!(resolved.as_array().unwrap().iter().all(|link| link["found"] == false && link["why"].is_string()), "{resolved}");
    if tampu_logbook::export::pdf::BUILT_IN {
        assert!(get(&zoe, "/books/Shift/entries/1/pdf?thread=true").bytes.starts_with(b"%PDF-"));
    } else {
        all.refused(&zoe, "GET", "/books/Shift/entries/1/pdf", None, 501);
        let problem = zoe.get("/search/export?format=pdf&book=Shift").is(501).json();
        assert!(problem["detail"].as_str().unwrap().contains("the feature 'pdf'"), "{problem}");
    }
    zoe.get("/search/export?format=csv&thread=true").is(400);
    drop(&zoe, "/books/Shift/entries/1/links/run%3A80123");
    assert_eq!(get(&zoe, "/books/Shift/entries/1/history").json()["revisions"].as_array().unwrap().len(), 4);
    let attach = "/books/Shift/entries/1/attachments?name=dot.png";
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(500, 250).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let said = zoe.send("POST", attach, png.get_ref());
    all.answered("attach", &all.document["paths"]["/api/v1/books/{book}/entries/{id}/attachments"]["post"], &said, attach);
    assert_eq!(get(&zoe, "/books/Shift/entries/1/attachments/0").bytes, b"not really a picture");
    let preview = get(&zoe, "/books/Shift/entries/1/attachments/1/preview?size=50");
    assert_eq!(image::load_from_memory(&preview.bytes).unwrap().width(), 50);
    let reply = get(&zoe, "/books/Shift/entries/2").json();
    let edit = json!([{
        "id": 2, "revision": reply["revision"], "attributes": reply["attributes"], "text": "the fuse, and its holder",
    }]);
    assert_eq!(ask(&zoe, "PUT", "/books/Shift/entries", edit).json()[0]["id"], 2);

    // Drafts and locks.
    assert_eq!(get(&zoe, "/books/Shift/entries/1/lock").json(), Value::Null);
    ask(&zoe, "PUT", "/books/Shift/entries/1/lock", json!({ "seconds": 60, "host": "console3" }));
    assert_eq!(get(&zoe, "/books/Shift/entries/1").json()["locked"]["host"], "console3");
    get(&zoe, "/books/Shift/entries/1/lock");
    drop(&zoe, "/books/Shift/entries/1/lock");
    let number =
        ask(&browser, "POST", "/drafts", json!({ "book": "Shift", "edits": 1, "text": "I have beg" })).json()["number"].clone();
    let number = number.as_str().unwrap();
    ask(&browser, "PUT", &format!("/drafts/{number}"), json!({ "book": "Shift", "text": "I have begun" }));
    let drafts = get(&browser, "/drafts").json();
    assert_eq!((drafts.as_array().unwrap().len(), &drafts[0]["text"]), (1, &json!("I have begun")));
    drop(&browser, &format!("/drafts/{number}"));

    // Searches.
    let page = get(&zoe, "/search?q=tripped&book=Shift&sort=-id&limit=1&count=10&time_ms=4000&text=true").json();
    assert_eq!((&page["hits"][0]["entry"]["id"], &page["count"]["exactly"]), (&json!(1), &json!(1)));
    let first = get(&zoe, "/search?limit=1").json();
    let second = get(&zoe, &format!("/search?limit=1&after={}", first["next"].as_str().unwrap())).json();
    assert_eq!((&first["hits"][0]["entry"]["id"], &second["hits"][0]["entry"]["id"]), (&json!(2), &json!(1)));
    assert_eq!(get(&zoe, "/search?limit=1&skip=1").json()["hits"], second["hits"]);
    let csv = String::from_utf8(get(&zoe, "/search/export?q=tripped").bytes).unwrap();
    assert!(csv.contains("Author") && csv.contains("tripped twice"), "{csv}");
    for format in ["json", "markdown"] {
        assert!(String::from_utf8(get(&zoe, &format!("/search/export?format={format}")).bytes).unwrap().contains("the fuse"));
    }
    for (path, part) in [("/search/feed.atom?q=tripped&book=Shift", "</entry>"), ("/search/calendar.ics", "BEGIN:VEVENT")] {
        let said = get(&zoe, path);
        assert!(String::from_utf8_lossy(&said.bytes).contains(part), "{path}");
    }
    ask(&browser, "PUT", "/searches/my%20magnets", json!({ "q": "MAG-01 last:7d" }));
    assert_eq!(get(&browser, "/searches").json()[0], json!({ "name": "my magnets", "q": "MAG-01 last:7d" }));
    drop(&browser, "/searches/my%20magnets");
    let stream = zoe.open("/search/stream?q=x");
    assert_eq!((stream.status().as_u16(), stream.headers()["content-type"].to_str().unwrap()), (200, "text/event-stream"));
    all.used.borrow_mut().insert("streamSearch");

    // Signatures; the rest is in `signing.rs`.
    let mut access = get(&owner, "/books/Shift/access").json();
    access["signing"] = json!({ "meanings": [{ "meaning": "approved", "by": ["group:ops"] }] });
    ask(&owner, "PUT", "/books/Shift/access", access);
    assert_eq!(get(&zoe, "/books/Shift/signing").json()["mine"], json!(["approved"]));
    let revision = get(&zoe, "/books/Shift/entries/2").json()["revision"].clone();
    let signature = json!({ "meaning": "approved", "revision": revision, "password": PASSWORD });
    assert_eq!(ask(&zoe, "POST", "/books/Shift/entries/2/signatures", signature).json()["name"], "Zoë");
    assert_eq!(all.ask(&owner, "POST", "/books/Shift/verify", None).json()["signatures"], 1);

    // Templates.
    let template =
        json!({ "attributes": [{ "name": "Type", "values": ["Routine"] }], "encoding": "markdown", "text": "{author} begins" });
    ask(&owner, "PUT", "/books/Shift/templates/night", template.clone());
    assert_eq!(get(&zoe, "/books/Shift/templates").json(), json!([{ "name": "night" }]));
    assert_eq!(get(&zoe, "/books/Shift/templates/night").json(), template);
    assert_eq!(get(&zoe, "/books/Shift/templates/night?filled=true").json()["text"], "Zoë begins");
    zoe.delete("/books/Shift/templates/night").is(403);
    drop(&owner, "/books/Shift/templates/night");
    owner.get("/books/Shift/templates/night").is(404);

    // Upkeep.
    let lines = String::from_utf8(all.ask(&owner, "POST", "/check", None).bytes).unwrap();
    assert_eq!(lines.lines().last(), Some("{\"faults\":0}"), "{lines}");
    zoe.send("POST", "/check", b"").is(403);
    assert_eq!(get(&owner, "/usage").json()["used"][0]["book"], "Shift");
    zoe.post("/books/Shift/entries/1/purge", json!({ "reason": "a test" })).is(403);
    let purged = ask(&owner, "POST", "/books/Shift/entries/1/purge", json!({ "revision": 0, "reason": "a test" })).json();
    assert_eq!((&purged["contents"], &purged["files"]), (&json!(1), &json!(0)));
    owner.post("/books/Shift/entries/1/purge", json!({ "revision": 0 })).is(400);
    ask(&owner, "PUT", "/books/Spare", json!({ "name": "Spare", "attributes": [] }));
    zoe.post("/books/Spare/rename", json!({ "name": "Mine" })).is(403);
    zoe.send("DELETE", "/books/Spare", b"").is(403);
    zoe.send("GET", "/deleted-books", b"").is(403);
    owner.post("/books/Spare/rename", json!({ "name": "shift" })).is(409);
    assert_eq!(ask(&owner, "POST", "/books/Spare/rename", json!({ "name": "Spare 2" })).json()["name"], "Spare 2");
    owner.send("GET", "/books/Spare", b"").is(404);
    let number = drop(&owner, "/books/Spare%202").json()["number"].clone();
    assert_eq!(get(&owner, "/deleted-books").json()[0]["name"], "Spare 2");
    owner.send("GET", &format!("/books/%2Fdeleted%2F{number}"), b"").is(404);
    let deleted = format!("/deleted-books/{number}");
    assert_eq!(ask(&owner, "POST", &format!("{deleted}/restore"), json!({ "name": "Spare" })).json()["name"], "Spare");
    drop(&owner, "/books/Spare");
    zoe.post(&format!("{deleted}/purge"), json!({ "reason": "a test" })).is(403);
    let purged = ask(&owner, "POST", &format!("{deleted}/purge"), json!({ "reason": "a test" })).json();
    assert!(purged["purged"].as_str().unwrap().ends_with(": a test"), "{purged}");
    owner.post(&format!("{deleted}/restore"), json!({})).is(422);
    owner.post("/books/Shift/entries/1/purge", json!({ "revision": 99, "reason": "a test" })).is(422);
    assert_eq!(get(&owner, "/books/Shift/entries/1/history").json()["revisions"][0]["note"], "purged");

    let rule = ask(&owner, "POST", "/users/zoe/rules", json!({ "book": "shift", "query": "HV", "about": "mentions" })).json();
    assert_eq!(rule["book"], "Shift");
    ask(&owner, "PUT", "/users/zoe/quiet", json!({ "from": "22:00", "to": "07:00", "zone": "Europe/Zurich" }));
    assert_eq!(get(&owner, "/users/zoe/rules").json()["quiet"]["to"], "07:00");
    drop(&owner, "/users/zoe/quiet");
    let rule = format!("/users/zoe/rules/{}", rule["id"].as_str().unwrap());
    // The queue of mails: this site has no mail server.
    all.refused(&owner, "POST", &format!("{rule}/test"), None, 409);
    drop(&owner, &rule);
    all.refused(&owner, "DELETE", &rule, None, 404);
    all.refused(&owner, "GET", "/mail", None, 409);
    all.refused(&owner, "POST", "/mail/test", Some(json!({ "to": "zoe@example.org" })), 409);
    all.refused(&owner, "POST", "/mail/1/retry", None, 409);
    all.refused(&owner, "DELETE", "/mail/1", None, 409);

    // Deleting.
    ask(&owner, "POST", "/books/Shift/entries/2/copy", json!({ "to": "Archive" }));
    let moved = ask(&owner, "POST", "/books/Shift/entries/1/move", json!({ "to": "archive", "replies": true })).json();
    assert_eq!((&moved["book"], &moved["id"]), (&json!("Archive"), &json!(2)));
    assert!(
        owner.get("/books/Shift/entries/1").is(410).json()["way_out"]
            .as_str()
            .unwrap()
            .contains("/api/v1/books/Archive/entries/2")
    );
    assert_eq!(drop(&owner, "/books/Archive/entries/2?replies=true").json()["deleted"], 2);
    drop(&browser, &format!("/tokens/{}", made["id"].as_str().unwrap()));
    ask(&browser, "PUT", "/password", json!({ "old": PASSWORD, "new": "another password" }));
    let logged_in = site.anybody().post("/login", json!({ "login": "zoe", "password": "another password" })).is(200);
    let form = logged_in.json()["form"].as_str().unwrap().to_owned();
    all.ask(&site.anybody().with("cookie", &logged_in.cookie()).with("x-tampu-form", &form), "POST", "/logout", None);
    // It is no WebSocket.
    all.refused(&owner, "GET", "/gateway", None, 400);
    drop(&owner, "/sessions?login=zoe");
    drop(&owner, "/users/zoe");

    let used = all.used.into_inner();
    // Those of the console are asked for in `console.rs`.
    let missing: Vec<_> =
        routes().filter(|route| !is_of_console(route.path)).map(|route| route.id).filter(|id| !used.contains(id)).collect();
    assert!(missing.is_empty(), "not asked for: {missing:?}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let site = Site::new();
    site.shift();
    let owner = site.owner();
    let entry = owner.entry("something");
    assert_eq!(entry, 1);
    let json_of = owner.with("content-type", "application/json");
    for (method, path, body, status, kind, named) in [
        ("GET", "/nothing", "", 404, "no-route", "'/api/v1/nothing'"),
        ("GET", "/books/Shift/entries/1/", "", 404, "no-route", ""),
        ("POST", "/search", "", 405, "no-method", "GET"),
        ("GET", "/search?q=%2F%28%2F", "", 400, "bad-query", "query q"),
        ("GET", "/search?limit=0", "", 400, "bad-request", "query limit"),
        ("GET", "/search?limit=many", "", 400, "bad-request", "query limit"),
        ("GET", "/search?after=x", "", 400, "bad-request", "query after"),
        ("GET", "/search?after=00000000.0.", "", 400, "other-search", "first page"),
        ("GET", "/search?what=x", "", 400, "bad-request", "query what"),
        ("GET", "/search?q=%ff", "", 400, "bad-request", "UTF-8"),
        ("GET", "/search?book=None", "", 404, "not-there", "'None'"),
        ("GET", "/search/export?format=docx", "", 400, "bad-request", "'docx'"),
        ("GET", "/search/feed.atom?limit=0", "", 400, "bad-request", "1 to 1000"),
        ("GET", "/search/stream?q=%2F%28%2F", "", 400, "bad-query", "query q"),
        ("GET", "/books/None", "", 404, "not-there", "'None'"),
        ("GET", "/books/Shift/entries/9", "", 404, "not-there", "Shift/9"),
        ("GET", "/books/Shift/entries/x", "", 400, "bad-request", "'x'"),
        ("GET", "/books/Shift/entries/99999999999", "", 400, "bad-request", "99999999999"),
        ("GET", "/books/Shift/entries/1/attachments/0", "", 404, "not-there", "attachment 0"),
        ("PUT", "/books/Other", "{\"name\":\"Another\",\"attributes\":[]}", 400, "bad-request", "body name"),
        ("PUT", "/books/a%2Fb", "{\"name\":\"a/b\",\"attributes\":[]}", 422, "invalid", "'a/b'"),
        ("POST", "/books/Shift/entries", "{", 400, "bad-request", "line 1"),
        ("POST", "/books/Shift/entries", "[1]", 400, "bad-request", "body"),
        ("POST", "/books/Shift/entries", "{\"texd\":\"x\"}", 400, "bad-request", "texd"),
        ("POST", "/books/Shift/entries", "{\"text\":7}", 400, "bad-request", "body"),
        ("POST", "/books/Shift/entries", "{\"attributes\":{\"Type\":\"Party\"}}", 422, "invalid", "'Party'"),
        ("POST", "/books/Shift/entries", "{\"attributes\":{\"a:b\":\"x\"}}", 422, "invalid", "'a:b'"),
        ("POST", "/books/Shift/entries", "{\"parent\":77}", 404, "not-there", "Shift/77"),
        ("POST", "/books/Shift/entries", "{\"links\":[\"ship:7\"]}", 400, "bad-request", "'ship:7'"),
        ("POST", "/books/Shift/entries", "{\"date\":\"2255-03-13T16:00:00Z\"}", 400, "bad-request", "body date"),
        ("POST", "/books/Shift/entries", "{\"attachments\":[{\"name\":\"x\"}]}", 422, "no-upload", "'x'"),
        ("PUT", "/books/Shift/entries/1", "{}", 428, "no-revision", "If-Match"),
        (
            "PUT",
            "/books/Shift/access",
            "{\"grants\":[{\"to\":\"all\",\"may\":[]}]}",
            400,
            "bad-request",
            "unknown receiver of rights 'all'",
        ),
        ("PUT", "/books/Shift/entries/1/lock", "{\"seconds\":0}", 400, "bad-request", "body seconds"),
        ("POST", "/drafts", "{\"book\":\"Shift\",\"attachments\":[{\"name\":7}]}", 400, "bad-request", "line 1"),
        ("DELETE", "/drafts/7", "", 404, "not-there", "no draft"),
        ("DELETE", "/searches/x", "", 404, "not-there", "no saved search"),
        ("DELETE", "/uploads/x", "", 400, "bad-request", "SHA-256"),
        ("POST", "/users", "{\"login\":\"a:b\"}", 422, "invalid", "'a:b'"),
        ("POST", "/users", "{\"login\":\"zoe\",\"password\":\"short\"}", 422, "invalid", "8 characters"),
        ("GET", "/users/nobody", "", 404, "not-there", "'nobody'"),
        ("DELETE", "/tokens/abc", "", 404, "not-there", "'abc'"),
    ] {
        let said = json_of.send(method, path, body.as_bytes());
        let text = String::from_utf8_lossy(&said.bytes).into_owned();
        assert_eq!(said.status, status, "{method} {path} {body}: {text}");
        assert_eq!(said.problem(), kind, "{method} {path} {body}: {text}");
        assert!(text.contains(named), "{method} {path} {body}: {text}");
    }
    // Deep nesting uses no stack, and a body of another media type is not parsed.
    let deep = "[".repeat(100_000);
    assert_eq!(json_of.send("POST", "/books/Shift/entries", deep.as_bytes()).is(400).problem(), "bad-request");
    let form = owner.with("content-type", "application/x-www-form-urlencoded").send("POST", "/books/Shift/entries", b"text=x");
    assert_eq!(form.is(415).problem(), "no-json");
    assert_eq!((owner.found("something"), owner.found("")), (1, 1));
}
