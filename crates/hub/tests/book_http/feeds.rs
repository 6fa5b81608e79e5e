//! Feeds: what feed readers and calendars ask for again and again.

use serde_json::json;

use crate::site::Site;

#[test]
fn a_feed_is_sent_again_only_after_a_change() {
    let site = Site::new();
    site.shift();
    let owner = site.owner();
    owner.entry("the first");
    let mut days = 0;
    for (path, kind) in [("/search/feed.atom", "application/atom+xml"), ("/search/calendar.ics?book=Shift", "text/calendar")] {
        let feed = owner.get(path).is(200);
        assert!(feed.header("content-type").starts_with(kind) && !feed.bytes.is_empty(), "{path}");
        let etag = feed.header("etag").to_owned();
        let again = owner.with("if-none-match", &format!("\"x\", {etag}"));
        let same = again.get(path).is(304);
        assert!(same.bytes.is_empty() && same.header("etag") == etag, "{path}");
        owner.entry("another");
        let changed = again.get(path).is(200);
        assert!(changed.header("etag") != etag && String::from_utf8_lossy(&changed.bytes).contains("another"), "{path}");
        days += 1;
        // The kinds of attributes are part of a calendar.
        let attributes = json!([{ "name": "Author", "kind": "text" }, { "name": format!("Day {days}"), "kind": "date" }]);
        owner.put("/books/Shift", json!({ "name": "Shift", "attributes": attributes })).is(200);
        owner.with("if-none-match", changed.header("etag")).get(path).is(200);
    }
    let one = String::from_utf8(owner.get("/search/feed.atom?limit=1").is(200).bytes).unwrap();
    assert_eq!(one.matches("<entry>").count(), 1, "{one}");
}
