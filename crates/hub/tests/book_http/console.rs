//! The routes of the console, each answer held against the document: a hub that keeps logs.

use serde_json::{Value, json};
use tampu_hub::{
    api::catalogue::{is_of_console, routes},
    config::lines::lines_of,
};

use crate::{
    checked::Checked,
    site::{Client, Site, until},
};

#[test]
fn every_route_of_the_console_does_what_the_document_says() {
    let site = Site::with_collector();
    let owner = site.owner();
    let all = Checked::of(&owner);
    let get = |path: &str| all.ask(&owner, "GET", path, None);

    let own = get("/capabilities").json();
    assert_eq!((&own["log"], &own["set_levels"], &own["guest"]), (&json!(true), &json!(true), &json!(false)));
    assert_eq!(all.ask(&site.anybody(), "GET", "/capabilities", None).json()["log"], false);
    // The hub logs its own start.
    let records = until("records of the hub", || {
        let page = get("/log/query?clip=4").json();
        let records = page["records"].as_array().unwrap().clone();
        if records.len() >= 2 { Ok(records) } else { Err(page.to_string()) }
    });
    let (id, cursor) = (records[0]["id"].as_str().unwrap(), records[0]["cursor"].as_str().unwrap());
    assert_eq!(get(&format!("/log/records/{id}")).json()["record"]["id"], id);
    // The hub goes on logging meanwhile, so there may be more records by now.
    let around = get(&format!("/log/context?at={cursor}")).json();
    assert!(around["records"].as_array().unwrap().iter().any(|record| record["id"] == id), "{around}");
    assert_eq!(get("/log/chain?stack=none").json()["records"], json!([]));
    assert!(get("/log/histogram?bins=10").json()["total"].as_u64() >= Some(2));
    assert!(get("/log/stat?by=process").json()["rows"][0]["count"].as_u64() >= Some(1));
    let patterns = get("/log/patterns?bins=3").json();
    let condition = patterns["patterns"][0]["condition"].as_str().unwrap();
    let condition: String = condition.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let of_it = get(&format!("/log/patterns?where={condition}")).json();
    assert_eq!(of_it["known"], 1, "{of_it}");
    assert!(String::from_utf8(get("/log/export").bytes).unwrap().lines().count() >= 2);
    let file = get("/log/export?format=parquet").bytes;
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1") && file.len() > 1000);
    assert_eq!(get("/log/loggers").json()["complete"], true);
    assert!(get("/log/status").json()["archive"].is_object());
    let levels = all.ask(&owner, "POST", "/log/levels", Some(json!({ "name": "nobody", "central": "Debug" }))).json();
    assert!(levels["processes"].as_array().unwrap().iter().all(|process| process["loggers"] == json!([])));

    let mine = json!({ "filter": "--min-level Error", "shared": true });
    assert_eq!(all.ask(&owner, "PUT", "/log/filters/faults", Some(mine)).json()["name"], "faults");
    assert_eq!(get("/log/filters").json()[0]["filter"], "--min-level Error");
    all.ask(&owner, "DELETE", "/log/filters/faults", None);

    assert_eq!(get("/event/attributes").json()["total"], 0);
    assert_eq!(get("/event/tree").json()["children"], json!([]));
    assert_eq!(get("/event/values?name=a/b/c/d").json()["missing"], json!(["a/b/c/d"]));
    assert_eq!(get("/event/history?name=a/b/c/d").json()["count"], 0);
    assert_eq!(get("/event/rows").json()["next"], json!(null));
    assert_eq!(get("/event/export").bytes, b"");
    let file = get("/event/export?format=parquet").bytes;
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"), "an empty file is one too");
    assert_eq!(get("/event/doctor?pattern=*").json(), json!([]));
    assert_eq!(get("/bulk/running").json()["processes"], json!([]));
    assert_eq!(get("/bulk/transfers").json()["transfers"], json!([]));
    all.refused(&owner, "GET", "/bulk/transfers/x", None, 404);
    assert_eq!(get("/site").json()["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(get("/mentions?to=run:7").json(), json!([]));
    assert_eq!(get("/mentions/counts?to=run:7&to=run:8").json()[1], json!({ "to": "run:8", "entries": 0 }));
    assert!(get("/timeline").json()["log"]["total"].as_u64() >= Some(2));

    let settings = get("/settings").json();
    assert_eq!((&settings["collects"], &settings["retention"][0]["name"]), (&json!(true), &json!("collector.keep_days")));

    let changed = all.ask(&owner, "PUT", "/settings/collector.keep_days?confirm=true", Some(json!({ "value": 40 }))).json();
    assert_eq!((&changed["retention"][0]["value"], changed["changes"]["collector.keep_days"].is_object()), (&json!(40), true));
    assert_eq!(all.ask(&owner, "DELETE", "/settings/collector.keep_days", None).json()["changes"], json!({}));

    let used = all.used.into_inner();
    let missing: Vec<_> = routes().filter(|route| is_of_console(route.path)).map(|route| route.id).collect();
    let missing: Vec<_> = missing.into_iter().filter(|id| !used.contains(id)).collect();
    assert!(missing.is_empty(), "not asked for: {missing:?}");
}

#[test]
fn settings_are_shown_to_administrators_with_the_lines_that_set_them() {
    let text = "[collector]\nkeep_days = 365\n\n[book]\nuser_gb = 2.5\n";
    let site = Site::configured(|config| {
        config.collector.keep_days = 365;
        config.book.user_gb = 2.5;
        (config.file, config.lines) = (Some("/etc/tampu.toml".into()), lines_of(text));
    });
    let shown = site.owner().get("/settings").json();
    let setting = |of: &str, name: &str| shown[of].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let [days, bytes] = [setting("retention", "collector.keep_days"), setting("quotas", "book.user_gb")];
    assert_eq!(days, json!({ "name": "collector.keep_days", "value": 365, "default": 0, "line": 2, "fixed": null }));
    assert_eq!((&bytes["value"], &bytes["line"]), (&json!(2.5), &json!(5)));
    assert_eq!(setting("quotas", "book.site_gb")["line"], json!(null));
    assert_eq!((&shown["file"], &shown["collects"]), (&json!("/etc/tampu.toml"), &json!(false)));
    let changeable = shown["changeable"].as_array().unwrap();
    assert!(changeable.contains(&json!("book.user_gb")) && !changeable.contains(&json!("route")), "no collector: {changeable:?}");
    site.user(json!({ "login": "zoe" })).get("/settings").is(403);
    site.anybody().get("/settings").is(401);
}

#[test]
fn settings_that_somebody_else_changed_meanwhile_are_not_overwritten() {
    let site = Site::new();
    let owner = site.owner();
    let read = owner.get("/settings");
    let tag = read.header("etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", read.json()["version"].as_str().unwrap()));
    let mine = owner.with("if-match", &tag);
    let changed = mine.put("/settings/book.user_gb", json!({ "value": 5 })).is(200);
    let fresh = changed.header("etag").to_owned();
    assert_ne!(fresh, tag);
    for refused in [mine.put("/settings/book.user_gb", json!({ "value": 6 })), mine.delete("/settings/book.user_gb")] {
        assert_eq!(refused.is(412).problem(), "changed");
    }
    assert_eq!(owner.get("/usage").json()["quota"]["user"], 5_000_000_000_u64);
    owner.with("if-match", "*").put("/settings/book.user_gb", json!({ "value": 7 })).is(200);
    owner.put("/settings/book.user_gb", json!({ "value": 8 })).is(200);
    let now = owner.get("/settings").header("etag").to_owned();
    owner.with("if-match", &now).delete("/settings/book.user_gb").is(200);
    assert_eq!(owner.get("/settings").header("etag"), tag);
}

#[test]
fn filters_are_saved_for_their_user_or_for_all() {
    let site = Site::new();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    let put = |by: &Client, name: &str, filter: &str, shared: bool| {
        by.put(&format!("/log/filters/{name}"), json!({ "filter": filter, "shared": shared }))
    };
    put(&zoe, "faults", "--min-level Error", true).is(200);
    put(&zoe, "a%20lock%2Funlock", "lock", false).is(200);
    put(&max, "faults", "--level Alert", false).is(200);
    put(&zoe, "faults", "--min-level Critical", true).is(200);
    let seen = |by: &Client| -> Vec<(String, String, String)> {
        let all = by.get("/log/filters").json();
        let text = |one: &Value, of: &str| one[of].as_str().unwrap().to_owned();
        all.as_array().unwrap().iter().map(|one| (text(one, "owner"), text(one, "name"), text(one, "filter"))).collect()
    };
    let row = |owner: &str, name: &str, filter: &str| (owner.to_owned(), name.to_owned(), filter.to_owned());
    let shared = row("zoe", "faults", "--min-level Critical");
    assert_eq!(seen(&zoe), [row("zoe", "a lock/unlock", "lock"), shared.clone()]);
    assert_eq!(seen(&max), [row("max", "faults", "--level Alert"), shared]);

    max.delete("/log/filters/a%20lock%2Funlock").is(404);
    put(&max, &"x".repeat(129), "lock", false).is(400);
    put(&max, "%20", "lock", false).is(400);
    put(&max, "two", "a\nb", false).is(400);
    put(&max, "long", &"x".repeat(4097), false).is(400);
    for n in 1..200 {
        put(&max, &format!("number%20{n}"), "lock", false).is(200);
    }
    put(&max, "one%20more", "lock", false).is(409);
    put(&max, "faults", "lock", false).is(200);
    site.anybody().get("/log/filters").is(401);
    // The login may be another person's later.
    site.owner().delete("/users/zoe").is(204);
    assert!(seen(&max).iter().all(|(owner, ..)| owner == "max"));
}

#[test]
fn requests_of_the_console_name_what_is_wrong() {
    let site = Site::with_collector();
    let owner = site.owner();
    for (path, kind, part) in [
        ("/log/query?level=loud", "bad-request", "'loud' is not a level"),
        ("/log/query?field=colour%3Dred", "bad-request", "unknown field 'colour'"),
        ("/log/query?regex=(", "bad-query", "unclosed"),
        ("/log/query?limit=1001", "bad-request", "1 to 1000"),
        ("/log/query?since=soon", "bad-request", "not a time"),
        ("/log/query?since=now&until=1h", "bad-request", "not after the beginning"),
        ("/log/query?after=x", "bad-request", "not a cursor"),
        ("/log/query?order=random", "bad-request", "newest or oldest"),
        ("/log/query?colour=red", "bad-request", "unknown parameter"),
        ("/log/records/7", "bad-request", "id of a record"),
        ("/log/context", "bad-request", "missing"),
        ("/log/histogram?every_ns=1&since=1h&until=now", "bad-request", "too many"),
        ("/log/stat?by=colour", "bad-request", "unknown field"),
        ("/log/export?format=docx", "bad-request", "'docx'"),
        ("/event/values", "bad-request", "1 to 200"),
        ("/event/values?name=a", "bad-request", "a"),
        ("/event/history", "bad-request", "missing"),
        ("/event/rows?after=x", "bad-request", "not a cursor"),
        ("/event/export?format=docx", "bad-request", "'docx'"),
        ("/mentions?to=x", "bad-request", "x"),
        ("/mentions/counts", "bad-request", "1 to 200 links"),
        ("/bulk/transfers?outcome=lost", "bad-request", "write under_way"),
        ("/bulk/transfers?after=x", "bad-request", "not a cursor"),
        ("/timeline?lanes=x", "bad-request", "is no lane"),
        ("/log/export?columns=time", "bad-request", "only csv"),
    ] {
        let said = owner.get(path).is(400);
        assert_eq!(said.problem(), kind, "{path}");
        assert!(said.json()["detail"].as_str().unwrap().contains(part), "{path}: {}", said.json());
    }
    let missing = owner.get("/log/records/00000001-00000002-0000000000000003.4.5").is(404);
    assert_eq!(missing.problem(), "no-record");
}

#[test]
fn a_timeline_says_if_it_leaves_out_entries() {
    let site = Site::with_collector();
    site.shift();
    let owner = site.owner();
    let all = Checked::of(&owner);
    let entries = || all.ask(&owner, "GET", "/timeline?lanes=entries", None).json();
    (0..500).for_each(|number| assert_eq!(owner.entry(&format!("entry {number}")), number + 1));
    let whole = entries();
    assert_eq!((whole["entries"].as_array().unwrap().len(), &whole["cut"]), (500, &json!([])));
    owner.entry("one more");
    let cut = entries();
    assert_eq!((cut["entries"].as_array().unwrap().len(), &cut["cut"]), (500, &json!(["entries"])));
    assert_eq!((&cut["entries"][0]["id"], &cut["entries"][499]["id"]), (&json!(501), &json!(2)));
}

/// Adds a rule of the site.
fn allow(owner: &Client, who: &str, may: &str, what: &str) -> Value {
    let rule = json!({ "effect": "allow", "who": who, "may": [may], "what": what });
    owner.post("/access/rules", rule).is(201).json()
}

#[test]
fn users_and_guests_see_the_log_where_a_rule_lets_them() {
    let site = Site::with_collector();
    let (owner, guest) = (site.owner(), site.anybody());
    let zoe = site.user(json!({ "login": "zoe" }));
    assert_eq!(guest.get("/log/query").is(401).problem(), "log-in");
    assert_eq!(zoe.get("/log/query").is(403).problem(), "no-right");
    let rule = allow(&owner, "user:zoe", "query", "log/query");
    // A rule about a user is also about the tokens of this user.
    zoe.get("/log/query").is(200);
    zoe.get("/log/histogram").is(200);
    // A lane that is refused leaves the others.
    let timeline = zoe.get("/timeline").is(200).json();
    assert!(timeline["log"].is_object() && timeline["missing"][0]["lane"] == "transfers", "{timeline}");
    for path in ["/log/loggers", "/log/status", "/event/attributes", "/event/values?name=a/b/c/d", "/bulk/running", "/site"] {
        assert_eq!(zoe.get(path).is(403).problem(), "no-right", "{path}");
    }
    assert_eq!(zoe.post("/log/levels", json!({ "name": "*", "central": "Off" })).is(403).problem(), "no-right");
    assert_eq!(guest.get("/log/query").is(401).problem(), "log-in");
    allow(&owner, "guest", "query", "log/query");
    guest.get("/log/query").is(200);
    owner.delete(&format!("/access/rules/{}", rule["line"])).is(204);
    assert_eq!(zoe.get("/log/query").is(403).problem(), "no-right");
}

#[test]
fn without_a_collector_the_log_is_unavailable() {
    let site = Site::new();
    let said = site.owner().get("/log/status").is(503);
    assert_eq!(said.problem(), "unanswered");
    assert!(said.json()["way_out"].as_str().unwrap().contains("collector"), "{}", said.json());
}

#[test]
fn administrators_change_settings_that_hold_at_once_and_after_a_restart() {
    let mut site = Site::with_collector();
    let owner = site.owner();
    let set = |site: &Site, name: &str, value: serde_json::Value| {
        site.owner().put(&format!("/settings/{name}"), json!({ "value": value }))
    };
    let problem = set(&site, "collector.keep_days", json!(3));
    assert!(problem.is(422).json()["detail"].as_str().unwrap().contains("keep_at_least_days"));
    assert!(set(&site, "collector.commit_ms", json!(3)).is(404).json()["type"].as_str().unwrap().ends_with("no-setting"));
    assert!(owner.delete("/settings/route").is(404).json()["type"].as_str().unwrap().ends_with("no-change"));
    // Hours of records would go with a number of bytes, and with days that nobody has confirmed.
    assert!(
        set(&site, "collector.keep_gb", json!(1_u64 << 34)).is(422).json()["detail"]
            .as_str()
            .unwrap()
            .contains("the unit is GiB")
    );
    let problem = set(&site, "collector.keep_days", json!(50)).is(409);
    assert_eq!(problem.problem(), "removes-records");
    assert!(problem.json()["way_out"].as_str().unwrap().contains("confirm=true"));
    // The archive is young, and the refusal says that nothing would go.
    assert!(problem.json()["detail"].as_str().unwrap().ends_with("nothing is beyond the new limits"), "{}", problem.json());
    assert_eq!(
        problem.json()["removes"][0],
        json!({ "what": "log records", "records": 0, "files": 0, "bytes": 0, "earliest": null, "latest": null })
    );
    assert_eq!(owner.get("/settings").json()["changes"], json!({}));
    owner.put("/settings/collector.keep_days?confirm=true", json!({ "value": 50 })).is(200);
    set(&site, "book.user_gb", json!(0.000_001)).is(200);
    assert_eq!(owner.get("/usage").json()["quota"]["user"], 1000);
    // The routes begin to work while the hub runs, and the file of the target is where the hub keeps them.
    set(&site, "target", json!({ "audit": { "format": "json" } })).is(200);
    set(&site, "route", json!([{ "logger": ["audit"], "to": ["audit"] }])).is(200);
    let file = site.directory().join("log/routes/audit.log");
    until("a record of the new route", || {
        set(&site, "collector.keep_days", json!(50)).is(200);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let told = "admin setting collector.keep_days: 50 -> 50";
        if text.contains("PUT /settings/collector.keep_days") && text.contains(told) { Ok(()) } else { Err(text) }
    });
    site.restart(|_| {});
    let shown = site.owner().get("/settings").json();
    assert_eq!(shown["retention"][0]["value"], 50);
    assert_eq!(shown["changes"].as_object().unwrap().len(), 4);
    assert_eq!(shown["routes"][0]["value"], json!({ "logger": ["audit"], "to": ["audit"] }));
}
