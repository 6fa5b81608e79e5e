//! Registrations of new users: made on a page, approved by the API.

use serde_json::json;

use crate::site::{PASSWORD, Site};

#[test]
fn a_registration_waits_for_an_administrator() {
    let site = Site::new();
    let attributes = json!([{ "name": "Author", "kind": "text" }]);
    let book = json!({ "name": "Asked", "attributes": attributes, "elog": [["Self register", "3"]] });
    site.owner().put("/books/Asked", book).is(201);
    let zoe = site.user(json!({ "login": "zoe" }));
    let root = site.user(json!({ "login": "root", "admin": true }));
    let register = |login: &str| site.register("Asked", login);
    let text = register("max");
    assert!(text.contains("after an administrator has approved it"), "{text}");
    register("eve");
    site.anybody().post("/login", json!({ "login": "max", "password": PASSWORD })).is(401);
    zoe.get("/registrations").is(403);
    let waiting = root.get("/registrations").is(200).json();
    assert!(!waiting.to_string().contains("argon2"), "{waiting}");
    let ids: Vec<String> = waiting.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((waiting[0]["login"].as_str(), ids.len()), (Some("max"), 2));
    zoe.post(&format!("/registrations/{}/approve", ids[0]), json!({})).is(403);
    root.post(&format!("/registrations/{}/approve", ids[0]), json!({})).is(201);
    root.with_json("DELETE", &format!("/registrations/{}", ids[1]), json!({})).is(204);
    root.with_json("DELETE", &format!("/registrations/{}", ids[1]), json!({})).is(404);
    site.anybody().post("/login", json!({ "login": "max", "password": PASSWORD })).is(200);
    site.anybody().post("/login", json!({ "login": "eve", "password": PASSWORD })).is(401);
}
