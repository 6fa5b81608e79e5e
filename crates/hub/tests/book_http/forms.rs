//! Forms and previews for editors: the same text, fields and rights as with the entry itself.

use serde_json::{Value, json};
use tampu_hub::book::settings::BookSettings;

use crate::site::{Client, Site};

const TEXTS: [(&str, &str); 4] = [
    ("markdown", "**HV** [x](javascript:alert(1)) ![a](attachment:trip.png) <script>alert(1)</script>\n\n- [ ] open"),
    ("plain", "a < b, see elog:12 and elog:Other/3 <script>alert(1)</script>"),
    ("elcode", "[b]HV[/b] elog:1 [url=javascript:alert(1)]x[/url] <img src=x onerror=alert(1)>"),
    ("html", "<p onclick='alert(1)'>HV <a href='javascript:alert(1)'>x</a><script>alert(1)</script><form><input name=a></form>"),
];

#[test]
fn a_preview_is_what_the_entry_shows() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    for (encoding, text) in TEXTS {
        let content = json!({ "text": text, "encoding": encoding });
        let html = zoe.post("/books/Shift/preview", content.clone()).is(200).json()["html"].as_str().unwrap().to_owned();
        let id = zoe.post("/books/Shift/entries", content).is(201).json()["id"].clone();
        let entry = zoe.get(&format!("/books/Shift/entries/{id}?html=true")).is(200).json();
        assert_eq!(entry["html"], html, "{encoding}");
        assert!(!html.contains("<script") && !html.contains("javascript:") && !html.contains("<form"), "{html}");
    }
    // Nothing is stored but the entries.
    assert_eq!(zoe.found(""), TEXTS.len());
}

#[test]
fn a_preview_needs_the_rights_and_has_the_bounds_of_its_entry() {
    let site = Site::with(BookSettings { changes_per_minute: 60, changes_burst: 4, ..BookSettings::default() });
    site.shift();
    let owner = site.owner();
    let (reader, editor) = (site.user(json!({ "login": "reader" })), site.user(json!({ "login": "editor" })));
    owner
        .put(
            "/books/Shift/access",
            json!({ "grants": [{ "to": "user:reader", "may": ["read"] }, { "to": "user:editor", "may": ["read", "edit-any"] }] }),
        )
        .is(200);
    let id = owner.entry("written by another");
    let said = |edits: Value| json!({ "text": "x", "edits": edits });
    for path in ["/books/Shift/preview", "/books/Shift/form"] {
        let body = |edits: Value| if path.ends_with("form") { json!({ "edits": edits }) } else { said(edits) };
        reader.post(path, body(Value::Null)).is(403);
        reader.post(path, body(json!(id))).is(403);
        editor.post(path, body(Value::Null)).is(403);
        editor.post(path, body(json!(id))).is(200);
        editor.post(path, body(json!(id + 1))).is(404);
        assert!([401, 404].contains(&site.anybody().post(path, body(Value::Null)).status));
    }
    // Previews while somebody types are no changes, which are few here.
    for _ in 0..20 {
        editor.post("/books/Shift/preview", said(json!(id))).is(200);
    }
    owner.post("/books/Shift/preview", json!({ "text": "x".repeat(17 << 20) })).is(422);
    owner.post("/books/Shift/preview", json!({ "text": "x".repeat(30 << 20) })).is(413);
    assert_eq!(owner.post("/books/Shift/preview", json!({ "text": "x", "encoding": "word" })).is(400).problem(), "bad-request");
}

/// Makes a logbook with options of an elogd.cfg.
fn configured(owner: &Client, attributes: Value, options: &str) {
    let pairs: Vec<Vec<&str>> = options.lines().map(|line| line.split(" = ").collect()).collect();
    let attributes = json!({ "name": "Book", "attributes": attributes, "elog": pairs });
    owner.put("/books/Book", attributes).is(201);
}

fn field<'a>(form: &'a Value, name: &str) -> &'a Value {
    let fields = form["fields"].as_array().unwrap();
    fields.iter().find(|field| field["name"] == name).unwrap_or_else(|| panic!("{name}: {form}"))
}

#[test]
fn fields_follow_the_values_and_the_configuration() {
    let site = Site::new();
    let attributes = json!([
        { "name": "Author", "kind": "text", "locked": true },
        { "name": "Type", "kind": "options", "options": ["Beam", "Access"], "required": true },
        { "name": "Cause", "kind": "text", "several": true },
        { "name": "Door", "kind": "text" },
        { "name": "Area", "kind": "multiple", "options": ["A", "B"], "extendable": true },
    ]);
    configured(
        &site.owner(),
        attributes,
        "Attributes = Author, Type, Cause, Door, Area\nOptions Type = Beam{1}, Access{2}\n{1} ROptions Cause = Trip, Dump\n{2} MOptions Cause = Key, Badge\n\
         {1} Show Attributes Edit = Type, Author, Cause\n{2} Show Attributes Edit = Type, Author, Cause, Door, Area\n{2} Required Attributes = Type, Door\n\
         Preset Author = $long_name\n{2} Preset Door = North\nPreset on reply Type = Access\nRemove on reply = Cause\nPreset text = Shift of $short_name:\n\
         Prepend on reply = Hello\nTooltip Door = Which door\nAllowed encoding = 2\nFixed Attributes Edit = Area",
    );
    let zoe = site.user(json!({ "login": "zoe", "full_name": "Zoe Miller" }));
    let form = |body: Value| zoe.post("/books/Book/form", body).is(200).json();

    let first = form(json!({}));
    assert_eq!(first["first"]["attributes"], json!([{ "name": "Author", "values": ["Zoe Miller"] }]));
    assert_eq!((&first["first"]["text"], &first["encodings"]), (&json!("Shift of zoe:"), &json!(["elcode"])));
    assert_eq!((&field(&first, "Author")["fixed"], &field(&first, "Type")["decides"]), (&json!(true), &json!(true)));

    let beam = form(json!({ "attributes": { "Type": "Beam" } }));
    let cause = field(&beam, "Cause");
    assert_eq!((&cause["kind"], &cause["options"]), (&json!("radio"), &json!(["Trip", "Dump"])));
    assert_eq!((&field(&beam, "Door")["shown"], beam.get("first")), (&json!(false), None));
    let names: Vec<&Value> = beam["fields"].as_array().unwrap().iter().map(|field| &field["name"]).take(3).collect();
    assert_eq!(names, ["Type", "Author", "Cause"], "the order of the form");

    let access = form(json!({ "attributes": { "Type": "Access" } }));
    let (cause, door) = (field(&access, "Cause"), field(&access, "Door"));
    assert_eq!((&cause["kind"], &cause["options"]), (&json!("multiple"), &json!(["Key", "Badge"])));
    assert_eq!((&door["shown"], &door["required"], &door["tooltip"]), (&json!(true), &json!(true), &json!("Which door")));

    // A reply takes what the configuration leaves, and a quotation.
    let entry = json!({ "attributes": { "Type": "Beam", "Cause": "Dump" }, "encoding": "elcode", "text": "gone" });
    let id = zoe.post("/books/Book/entries", entry).is(201).json()["id"].clone();
    let reply = form(json!({ "parent": id }));
    let values = &reply["first"]["attributes"];
    assert!(values.as_array().unwrap().iter().all(|one| one["name"] != "Cause"), "{values}");
    assert!(values.as_array().unwrap().contains(&json!({ "name": "Type", "values": ["Access"] })), "{values}");
    let text = reply["first"]["text"].as_str().unwrap();
    assert!(text.starts_with("Hello") && text.contains("gone"), "{text}");
    let edit = form(json!({ "edits": id }));
    assert_eq!((&edit["first"]["text"], &field(&edit, "Area")["fixed"]), (&json!("gone"), &json!(true)));

    zoe.post("/books/Book/form", json!({ "attributes": { "a:b": "x" } })).is(422);
    zoe.post("/books/Book/form", json!({ "values": {} })).is(400);
}

#[test]
fn a_logbook_without_a_configuration_has_its_attributes_as_they_are() {
    let site = Site::new();
    let attributes =
        json!([{ "name": "Run", "kind": "numeric", "locked": true }, { "name": "Power", "kind": "text", "computed": "=$Run" }]);
    site.owner().put("/books/Book", json!({ "name": "Book", "attributes": attributes })).is(201);
    let zoe = site.user(json!({ "login": "zoe" }));
    let form = |body: Value| zoe.post("/books/Book/form", body).is(200).json();
    let id = zoe.post("/books/Book/entries", json!({ "attributes": { "Run": "7" }, "text": "one" })).is(201).json()["id"].clone();
    let new = form(json!({}));
    assert_eq!((&field(&new, "Run")["fixed"], &field(&new, "Power")["fixed"]), (&json!(false), &json!(true)));
    assert_eq!(new["encodings"].as_array().unwrap().len(), 4);
    assert_eq!(form(json!({ "parent": id }))["first"]["text"], "", "nobody asked for a quotation");
    let edit = form(json!({ "edits": id }));
    assert_eq!((&field(&edit, "Run")["fixed"], &edit["first"]["text"]), (&json!(true), &json!("one")));
}

#[test]
fn a_refusal_names_its_attribute() {
    let site = Site::new();
    let attributes = json!([
        { "name": "Type", "kind": "options", "options": ["A"] },
        { "name": "Run number", "kind": "numeric" },
        { "name": "Author", "kind": "text", "required": true, "locked": true },
    ]);
    site.owner().put("/books/Book", json!({ "name": "Book", "attributes": attributes })).is(201);
    let zoe = site.user(json!({ "login": "zoe" }));
    for (said, place) in [
        (json!({ "Type": "A" }), "body attributes Author"),
        (json!({ "Author": "z", "Type": "B" }), "body attributes Type"),
        (json!({ "Author": "z", "Run number": "many" }), "body attributes Run number"),
        (json!({ "Author": ["z", "m"] }), "body attributes Author"),
    ] {
        let problem = zoe.post("/books/Book/entries", json!({ "attributes": said })).is(422).json();
        assert_eq!(problem["place"], place, "{problem}");
    }
    zoe.post("/books/Book/entries", json!({ "attributes": { "Author": "z" } })).is(201);
    let said = json!({ "attributes": { "Author": "m" } });
    assert_eq!(zoe.with("if-match", "*").put("/books/Book/entries/1", said).is(422).json()["place"], "body attributes Author");
}
