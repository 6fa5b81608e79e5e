//! Files of entries: who may have them, how much of them, and as what.

use std::io::{Read, repeat};

use serde_json::json;
use tampu_hub::book::settings::BookSettings;

use crate::site::{PASSWORD, Site};

#[test]
fn a_file_is_given_out_in_parts_and_never_as_a_page_of_ours() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let id = zoe.entry("with files");
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let path = format!("/books/Shift/entries/{id}/attachments");
    zoe.send("POST", &format!("{path}?name=..%2F..%2Fraw.dat"), &bytes).is(201);
    zoe.send("POST", &format!("{path}?name=page.html"), b"<script>alert(1)</script>").is(201);
    zoe.send("POST", &format!("{path}?name=picture.svg"), b"<svg onload='alert(1)'/>").is(201);
    zoe.send("POST", &path, b"x").is(400);
    assert_eq!(zoe.get(&format!("/books/Shift/entries/{id}")).json()["attachments"][0]["name"], "raw.dat");

    let file = format!("{path}/0");
    let whole = zoe.get(&file).is(200);
    assert_eq!((whole.bytes == bytes, whole.header("accept-ranges")), (true, "bytes"));
    let part = zoe.with("range", "bytes=70000-70009").get(&file).is(206);
    assert_eq!((&part.bytes[..], part.header("content-range")), (&bytes[70_000..70_010], "bytes 70000-70009/100000"));
    assert_eq!(zoe.with("range", "bytes=-5").get(&file).is(206).bytes, bytes[99_995..]);
    zoe.with("range", "bytes=100000-").get(&file).is(416);
    zoe.with("range", "bytes=0-1").with("if-range", "\"other\"").get(&file).is(200);
    let etag = whole.header("etag").to_owned();
    assert!(zoe.with("if-none-match", &etag).get(&file).is(304).bytes.is_empty());
    assert!(zoe.send("HEAD", &file, b"").is(200).bytes.is_empty());

    for (number, inline) in [(1, false), (1, true), (2, true)] {
        let said = zoe.get(&format!("{path}/{number}?inline={inline}")).is(200);
        assert_eq!(said.header("content-type"), "application/octet-stream");
        assert!(said.header("content-disposition").starts_with("attachment;"));
        assert!(said.header("content-security-policy").contains("sandbox"));
        assert_eq!(said.header("x-content-type-options"), "nosniff");
    }
    // A PDF is shown in the same sandbox, in which the viewer of Chromium works.
    zoe.send("POST", &format!("{path}?name=scan.pdf"), b"%PDF-1.4").is(201);
    let said = zoe.get(&format!("{path}/3?inline=true")).is(200);
    assert_eq!((said.header("content-type"), &said.header("content-disposition")[..7]), ("application/pdf", "inline;"));
    assert_eq!(said.header("content-security-policy"), "sandbox; default-src 'none'; style-src 'unsafe-inline'");
    zoe.get(&format!("{path}/2/preview")).is(422);
    zoe.get(&format!("{path}/0/preview")).is(422);
}

#[test]
fn nobody_gets_a_file_by_knowing_its_digest() {
    let site = Site::new();
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    site.owner().put("/books/Secret", json!({ "name": "Secret", "attributes": [] })).is(201);
    site.owner().put("/books/Secret/access", json!({ "grants": [{ "to": "user:zoe", "may": ["read", "write"] }] })).is(200);
    let sha = zoe.send("POST", "/uploads", b"the secret").is(201).json()["sha"].clone();
    let with = |sha| json!({ "text": "x", "attachments": [{ "name": "a.txt", "sha": sha }] });
    // The file waits for an entry of this user only.
    assert_eq!(max.post("/books/Shift/entries", with(&sha)).is(422).problem(), "no-upload");
    max.delete(&format!("/uploads/{}", sha.as_str().unwrap())).is(404);
    zoe.post("/books/Secret/entries", with(&sha)).is(201);
    assert_eq!(max.post("/books/Shift/entries", with(&sha)).is(422).problem(), "no-upload");
    let id = max.entry("mine");
    let path = format!("/books/Shift/entries/{id}");
    max.with("if-match", "*").put(&path, with(&sha)).is(422);
    max.get("/books/Secret/entries/1/attachments/0").is(404);
    assert_eq!(zoe.get("/books/Secret/entries/1/attachments/0").is(200).bytes, b"the secret");
    // An edit that omits a file drops it; the history keeps it.
    zoe.post("/books/Secret/entries", with(&sha)).is(422);
}

#[test]
fn too_large_a_file_is_refused_and_leaves_nothing() {
    let site = Site::with(BookSettings { attachment_mb: 1, ..BookSettings::default() });
    site.shift();
    let owner = site.owner();
    owner.stream("/uploads", repeat(7).take(1 << 20)).is(201);
    let large = owner.stream("/uploads", repeat(7).take((1 << 20) + 1));
    assert_eq!(large.is(413).problem(), "too-large");
    owner.send("POST", "/uploads", &vec![7; (1 << 20) + 1]).is(413);
    let text = json!({ "text": "x".repeat(30 << 20) });
    owner.post("/books/Shift/entries", text).is(413);
    let text = json!({ "text": "x".repeat(17 << 20) });
    owner.post("/books/Shift/entries", text).is(422);
    let many: Vec<_> = (0..2000).map(|n| json!({ "name": format!("{n}"), "sha": "0".repeat(64) })).collect();
    owner.post("/books/Shift/entries", json!({ "attachments": many })).is(400);
    assert_eq!(owner.found(""), 0);
    let store = site.hub.as_ref().unwrap().book().unwrap().store().clone();
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
    // The number of waiting files is limited.
    let statuses: Vec<u16> = (0..130u32).map(|n| owner.send("POST", "/uploads", &n.to_le_bytes()).status).collect();
    assert_eq!((statuses[100], statuses[129]), (201, 409));
}

#[test]
fn a_refused_entry_does_not_lose_its_file() {
    let site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let sha = zoe.send("POST", "/uploads", b"a long measurement").is(201).json()["sha"].clone();
    let files = json!([{ "name": "run.dat", "sha": sha }]);
    let wrong = json!({ "attributes": { "Type": "Holiday" }, "attachments": files });
    for _ in 0..3 {
        zoe.post("/books/Shift/entries", wrong.clone()).is(422);
    }
    let id = zoe.entry("locked");
    let path = format!("/books/Shift/entries/{id}");
    site.owner().put(&format!("{path}/lock"), json!({})).is(200);
    let content = json!({ "text": "with a file", "attachments": files });
    zoe.with("if-match", "*").put(&path, content.clone()).is(423);
    site.owner().delete(&format!("{path}/lock")).is(204);
    zoe.with("if-match", "*").put(&path, content).is(200);
    assert_eq!(zoe.get(&format!("{path}/attachments/0")).is(200).bytes, b"a long measurement");
    // The file belongs to the entry, and is not in the staging.
    zoe.post("/books/Shift/entries", json!({ "text": "x", "attachments": files })).is(422);
    zoe.get(&format!("{path}/attachments/0")).is(200);
}

#[test]
fn a_draft_keeps_its_files_for_its_owner() {
    let site = Site::new();
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    let upload = |bytes: &[u8]| zoe.send("POST", "/uploads", bytes).is(201).json()["sha"].clone();
    let (plot, other) = (upload(b"a plot"), upload(b"another"));
    let draft = |files: serde_json::Value| json!({ "book": "Shift", "text": "half", "attachments": files });
    let files =
        json!([{ "name": "../plot.png", "sha": plot }, { "name": "gone.png", "sha": "0".repeat(64) }, { "name": "none.png" }]);
    // A file that is not there must not lose the text.
    let saved = zoe.post("/drafts", draft(files)).is(201).json();
    assert_eq!(saved["missing"], json!(["gone.png", "none.png"]));
    let number = saved["number"].as_str().unwrap();
    let shown = zoe.get("/drafts").json()[0].clone();
    let names: Vec<_> = shown["attachments"].as_array().unwrap().iter().map(|file| (&file["name"], &file["size"])).collect();
    assert_eq!((names, shown.get("missing")), (vec![(&json!("plot.png"), &json!(6))], None));
    // A digest alone brings no file of another user into a draft.
    let stolen = json!([{ "name": "plot.png", "sha": plot }]);
    assert_eq!(max.post("/drafts", draft(stolen.clone())).is(201).json()["missing"], json!(["plot.png"]));
    assert_eq!(max.get("/drafts").json()[0]["attachments"], json!([]));

    // The entry takes the file; a draft that stays says that it is gone, and the files of a changed entry are its own.
    let id = zoe.post("/books/Shift/entries", json!({ "text": "whole", "attachments": stolen })).is(201).json()["id"].clone();
    let shown = zoe.get("/drafts").json()[0].clone();
    assert_eq!((&shown["attachments"], &shown["missing"]), (&json!([]), &json!(["plot.png"])));
    let change = json!({ "book": "Shift", "edits": id, "attachments": [{ "name": "plot.png", "sha": plot }, { "name": "b", "sha": other }] });
    assert_eq!(zoe.put(&format!("/drafts/{number}"), change).is(200).json().get("missing"), None);
    let shown = zoe.get("/drafts").json()[0].clone();
    assert_eq!((shown["attachments"].as_array().unwrap().len(), shown.get("missing")), (2, None));
    zoe.delete(&format!("/drafts/{number}")).is(204);
    let with = json!({ "text": "x", "attachments": [{ "name": "b", "sha": other }] });
    zoe.post("/books/Shift/entries", with).is(201);
}

#[test]
fn files_of_drafts_outlive_the_hub() {
    let mut site = Site::new();
    site.shift();
    let zoe = site.user(json!({ "login": "zoe" }));
    let upload = |bytes: &[u8]| zoe.send("POST", "/uploads", bytes).is(201).json()["sha"].clone();
    let (plot, alone) = (upload(b"a plot"), upload(b"without a draft"));
    let files = json!([{ "name": "plot.png", "sha": plot }]);
    zoe.post("/drafts", json!({ "book": "Shift", "text": "half", "attachments": files })).is(201);
    let secret = zoe.post("/tokens", json!({ "comment": "again", "password": PASSWORD })).is(201).json()["secret"].clone();
    site.restart(|_| {});
    let zoe = site.anybody().with("authorization", &format!("Bearer {}", secret.as_str().unwrap()));
    let draft = zoe.get("/drafts").is(200).json()[0].clone();
    assert_eq!((&draft["attachments"][0]["size"], draft.get("missing")), (&json!(6), None), "{draft}");
    let with = |sha: &serde_json::Value| json!({ "text": "whole", "attachments": [{ "name": "plot.png", "sha": sha }] });
    zoe.post("/books/Shift/entries", with(&alone)).is(422);
    let id = zoe.post("/books/Shift/entries", with(&plot)).is(201).json()["id"].clone();
    assert_eq!(zoe.get(&format!("/books/Shift/entries/{id}/attachments/0")).is(200).bytes, b"a plot");
    // The entry has the file, and nothing waits for it.
    let left = std::fs::read_dir(site.directory().join("book/drafts")).unwrap().flatten();
    assert_eq!(left.flat_map(|of| std::fs::read_dir(of.path()).unwrap()).count(), 0);
}
