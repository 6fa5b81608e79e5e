//! The times of searches say nothing about logbooks that the caller may not read.

use std::time::{Duration, Instant};

use serde_json::json;
use tampu_hub::http::time_steps::STEP;

use crate::site::Site;

#[test]
fn searches_of_callers_who_do_not_see_everything_end_with_a_step() {
    let site = Site::new();
    for (book, guests) in [("Open", true), ("Closed", false)] {
        site.owner().put(&format!("/books/{book}"), json!({ "name": book, "attributes": [] })).is(201);
        let grants = json!([{ "to": "user:zoe", "may": ["read", "write"] }]);
        site.owner().put(&format!("/books/{book}/access"), json!({ "site_guests": guests, "grants": grants })).is(200);
    }
    let zoe = site.user(json!({ "login": "zoe" }));
    zoe.post("/books/Closed/entries", json!({ "text": "xylophone" })).is(201);
    let guest = site.anybody();
    // The shortest of several, because a busy machine makes each longer.
    let shortest = |ask: &dyn Fn()| -> Duration {
        let times = (0..8).map(|_| {
            let begun = Instant::now();
            ask();
            begun.elapsed()
        });
        times.min().unwrap_or_default()
    };
    for path in ["/search?book=Open&q=xy*", "/search?q=nothing", "/search/export?book=Open&q=xy*", "/search/feed.atom?q=xy*"] {
        let time = shortest(&|| drop(guest.get(path).is(200)));
        assert!(time >= STEP, "{path}: {time:?}");
    }
    let page = format!("{}/elog/Open/?subtext=xy", site.url.trim_end_matches('/'));
    let time = shortest(&|| drop(ureq::get(&page).call().unwrap()));
    assert!(time >= STEP, "{page}: {time:?}");
    assert_eq!((guest.found("xylophone"), zoe.found("xylophone")), (0, 1));
}
