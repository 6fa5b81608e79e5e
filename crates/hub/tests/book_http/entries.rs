//! Two people and one entry.

use serde_json::json;

use crate::site::Site;

#[test]
fn of_two_who_edit_one_entry_the_second_is_told() {
    let site = Site::new();
    site.shift();
    let access = json!({ "grants": [{ "to": "everybody", "may": ["read", "write", "edit-own", "edit-any"] }] });
    site.owner().put("/books/Shift/access", access).is(200);
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    let id = zoe.entry("first");
    let path = format!("/books/Shift/entries/{id}");
    let etag = max.get(&path).header("etag").to_owned();
    zoe.with("if-match", &etag).put(&path, json!({ "text": "second" })).is(200);
    let late = max.with("if-match", &etag).put(&path, json!({ "text": "mine" })).is(412);
    assert_eq!(late.problem(), "changed");
    assert_eq!(zoe.get(&path).json()["text"], "second");
    for wrong in ["0", "\"x\"", "W/\"1\"", ""] {
        max.with("if-match", wrong).put(&path, json!({ "text": "mine" })).is(400);
    }
    // Many edits at once: each revision has one author.
    let (writers, rounds) = (4, 5);
    let made = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for n in 0..writers {
            let (zoe, path, made) = (&zoe, &path, &made);
            scope.spawn(move || {
                for round in 0..rounds {
                    let etag = zoe.get(path).header("etag").to_owned();
                    let said = zoe.with("if-match", &etag).put(path, json!({ "text": format!("{n} {round}") }));
                    assert!([200, 412].contains(&said.status), "{}", said.status);
                    made.fetch_add(u64::from(said.status == 200), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    let made = made.into_inner();
    assert!(made >= rounds, "{made}");
    assert_eq!(zoe.get(&path).json()["revision"], made + 1);

    // A lock excludes others while it lasts.
    zoe.put(&format!("{path}/lock"), json!({ "host": "console1" })).is(200);
    let locked = max.put(&format!("{path}/lock"), json!({})).is(423);
    assert!(locked.json()["detail"].as_str().unwrap().contains("zoe on console1"));
    max.with("if-match", "*").put(&path, json!({ "text": "mine" })).is(423);
    max.delete(&path).is(423);
    max.delete(&format!("{path}/lock")).is(204);
    assert_eq!(max.get(&format!("{path}/lock")).json()["by"], "zoe");
    zoe.delete(&format!("{path}/lock")).is(204);
    max.with("if-match", "*").put(&path, json!({ "text": "mine" })).is(200);
}

#[test]
fn a_draft_and_a_saved_search_are_for_nobody_else() {
    let site = Site::new();
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    let number = zoe.post("/drafts", json!({ "book": "Shift", "text": "secretdraft" })).is(201).json()["number"]
        .as_str()
        .unwrap()
        .to_owned();
    zoe.put("/searches/mine", json!({ "q": "x" })).is(200);
    assert_eq!((max.get("/drafts").json(), max.get("/searches").json()), (json!([]), json!([])));
    max.put(&format!("/drafts/{number}"), json!({ "book": "Shift", "text": "y" })).is(404);
    max.delete(&format!("/drafts/{number}")).is(404);
    assert_eq!((zoe.get("/drafts").json()[0]["text"].as_str(), max.found("secretdraft")), (Some("secretdraft"), 0));
    max.post("/drafts", json!({ "book": "None", "text": "y" })).is(404);
}
