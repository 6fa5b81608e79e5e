//! Two administrators and one logbook.

use serde_json::{Value, json};

use crate::site::Site;

fn with(attribute: &str) -> Value {
    json!({ "name": "Beam", "attributes": [{ "name": attribute, "kind": "text" }] })
}

#[test]
fn a_logbook_that_is_there_is_not_made_again() {
    let site = Site::new();
    let owner = site.owner();
    let maker = owner.with("if-none-match", "*");
    maker.put("/books/Beam", with("Run")).is(201);
    let refused =
        maker.put("/books/beam", json!({ "name": "beam", "attributes": [{ "name": "Author", "kind": "text" }] })).is(412);
    assert_eq!((refused.problem(), &refused.json()["place"]), ("exists".to_owned(), &json!("header If-None-Match")));
    assert_eq!(owner.get("/books/Beam").json()["attributes"][0]["name"], "Run");
    let other = json!({ "name": "Other", "attributes": [] });
    let refused = owner.with("if-none-match", "\"x\"").put("/books/Other", other).is(400).json();
    assert_eq!(refused["place"], "header If-None-Match");
    // Many makers at once: one of them makes it.
    let makers = 6;
    let made: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..makers)
            .map(|n| {
                let maker = &maker;
                scope.spawn(move || {
                    maker
                        .put(
                            "/books/Race",
                            json!({ "name": "Race", "attributes": [{ "name": format!("A{n}"), "kind": "text" }] }),
                        )
                        .status
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|status| **status == 201).count(), 1, "{made:?}");
    assert_eq!(made.iter().filter(|status| **status == 412).count(), makers - 1, "{made:?}");
}

#[test]
fn of_two_who_change_one_logbook_the_second_is_told() {
    let site = Site::new();
    let owner = site.owner();
    owner.put("/books/Beam", with("Run")).is(201);
    let version = owner.get("/books/Beam/config").header("etag").to_owned();
    let reader = owner.with("if-match", &version);
    reader.put("/books/Beam", with("Shift")).is(200);
    let late = reader.put("/books/Beam", with("Author")).is(412);
    assert_eq!(late.problem(), "changed");
    assert_eq!(owner.get("/books/Beam").json()["attributes"][0]["name"], "Shift");
    owner.with("if-match", "*").put("/books/Beam", with("Author")).is(200);
    // A version of a logbook that is gone makes no new one.
    assert_eq!(reader.put("/books/Gone", json!({ "name": "Gone", "attributes": [] })).is(412).problem(), "changed");
    owner.get("/books/Gone").is(404);
}

#[test]
fn of_two_who_change_the_rights_of_a_logbook_the_second_is_told() {
    let site = Site::new();
    let owner = site.owner();
    owner.put("/books/Beam", with("Run")).is(201);
    let path = "/books/Beam/access";
    let rights = |to: &str| json!({ "grants": [{ "to": to, "may": ["read"] }] });
    // Rules of others, before there are own ones.
    let first = owner.with("if-match", owner.get(path).header("etag"));
    let version = first.put(path, rights("user:zoe")).is(200).header("etag").to_owned();
    assert_eq!(first.put(path, rights("user:max")).is(412).problem(), "changed");
    assert_eq!(owner.get(path).header("etag"), version);
    assert_eq!(owner.get(path).json()["grants"][0]["to"], "user:zoe");
    owner.with("if-match", &version).put(path, rights("user:max")).is(200);
    owner.with("if-match", "*").put(path, rights("user:ada")).is(200);
    owner.put(path, rights("user:ida")).is(200);
    owner.with("if-match", "zoe").put(path, rights("user:zoe")).is(400);
    assert_eq!(owner.get(path).json()["grants"][0]["to"], "user:ida");
}
