//! The steps from one entry to the next, and the places to which commands lead.

use http::StatusCode;

use super::support::site::TestSite;

/// A book `b` with three entries: two of Zoe, and one of Kim between them.
fn three(options: &str) -> TestSite {
    let site = TestSite::new(&format!(
        "[b]\nAttributes = Author, Subject\n{options}\n[c]\nAttributes = Author\n[d]\nAttributes = Author\n"
    ));
    for (hour, author) in [(8, "Zoe"), (9, "Kim"), (10, "Zoe")] {
        site.post("b", &format!("2026-01-01T{hour:02}:00:00"), &[&format!("Author={author}"), "Subject=a.b"], "text");
    }
    site
}

#[test]
fn browsing_can_be_off_and_can_stay_with_a_value() {
    assert_eq!(three("").get("/b/1").page().all("nav.steps").len(), 1);
    assert!(three("").get("/b/1").page().all("a.samevalue").is_empty());
    let off = three("Enable browsing = 0\nFiltered browsing = 1").get("/b/1").page();
    assert!(off.all("nav.steps").is_empty() && off.all("a.samevalue").is_empty());
    let site = three("Filtered browsing = 1");
    let boxes = site.get("/b/1").page();
    let href = boxes.all("a.samevalue")[0].get("href").to_owned();
    let ticked = site.get(&format!("/b/{href}"));
    assert_eq!(ticked.page().texts("a.samevalue")[0], "\u{2611}");
    // The next entry is the next one with the same author.
    let next = ticked.page().all("nav.steps a")[2].get("href").to_owned();
    assert!(site.get(&format!("/b/{next}")).location.contains("/b/3"), "{next}");
    assert!(site.get("/b/1?cmd=Next").location.contains("/b/2"));
    // A second click takes the limit away.
    assert_eq!(ticked.page().all("a.samevalue")[0].get("href"), "1");
}

#[test]
fn list_can_lead_to_all_logbooks() {
    let list = |options: &str| {
        let page = three(options).get("/b/1").page();
        let link = page.all("nav.menuframe a").into_iter().find(|link| link.text() == "List");
        link.map(|link| link.get("href").to_owned()).unwrap()
    };
    assert_eq!((list("").as_str(), list("Back to main = 1").as_str()), ("./", "../"));
}

#[test]
fn copies_and_moves_go_where_the_configuration_lets_them() {
    let site = three("Copy to = c\nMove to = d");
    assert_eq!(site.get("/b/1?cmd=Copy+to").page().texts("option"), ["c"]);
    assert_eq!(site.get("/b/1?cmd=Move+to").page().texts("option"), ["d"]);
    let refused = site.get("/b/1?cmd=Copy+to&destc=d");
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.error().contains("'Copy to' of the logbook b does not name d"), "{}", refused.error());
    assert_eq!(site.get("/b/1?cmd=Copy+to&destc=c").status, StatusCode::FOUND);
    assert_eq!(three("").get("/b/1?cmd=Copy+to").page().texts("option"), ["c", "d"]);
}

#[test]
fn a_thread_without_branches_has_one_reply_to_each_entry() {
    let site = three("Allow branching = 0");
    assert_eq!(site.get("/b/1?cmd=Reply").status, StatusCode::OK);
    site.post_as("b", "2026-01-02T08:00:00", &["Author=Kim"], "answer", Some(1), "kim");
    let refused = site.get("/b/1?cmd=Reply");
    assert!(refused.status == StatusCode::FORBIDDEN && refused.error().contains("entry 1 has a reply"), "{}", refused.error());
    assert_eq!(site.get("/b/4?cmd=Reply").status, StatusCode::OK);
    let free = three("");
    free.post_as("b", "2026-01-02T08:00:00", &["Author=Kim"], "answer", Some(1), "kim");
    assert_eq!(free.get("/b/1?cmd=Reply").status, StatusCode::OK);
}

#[test]
fn a_search_can_leave_attachments_out() {
    let find = |options: &str| three(options).get("/b/?cmd=Find").page();
    let page = find("");
    let fields = page.all("input[name=attach]");
    let values: Vec<&str> = fields.iter().map(|field| field.get("value")).collect();
    // A box that is not ticked sends only the hidden field.
    assert_eq!(values, ["1", "0"]);
    assert!(find("Show attachments = 0").all("input[name=attach]").is_empty());
}

#[test]
fn a_line_of_a_thread_leads_to_its_attachments() {
    let desk = super::desk::Desk::new("[b]\nAttributes = Author\nDisplay mode = threaded\n");
    let part = |name: &'static str, value: &'static [u8]| (name, None, value);
    let sent = desk.post(
        "/b/",
        &[part("cmd", b"Submit"), part("Author", b"Zoe"), part("Text", b"x"), ("attfile1", Some("plot.png"), &b"png"[..])],
    );
    sent.id();
    let list = desk.get("/b/").text();
    assert!(list.contains("class=\"clip\"") && list.contains("title=\"plot.png\""), "{list}");
    let link = list.split("class=\"clip\" href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(desk.get(&format!("/b/{}", link.trim_start_matches("../b/"))).bytes, b"png");
}
