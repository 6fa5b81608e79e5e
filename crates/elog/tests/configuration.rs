//! The page of a book's configuration: check, saving, history, undo.

#[path = "support/accounts.rs"]
mod accounts;
#[path = "support/desk.rs"]
mod desk;

use accounts::{CFG, Visitors};
use http::StatusCode;
use tampu_elog::book_config;
use tampu_logbook::{
    people::{Right, access::Subject},
    store::Entries,
};

fn act(site: &Visitors, act: &str, version: &str, options: &str, change: &str) -> desk::Answer {
    let fields = [("cmd", "Admin"), ("act", act), ("version", version), ("options", options), ("change", change)];
    site.send("/Shift/", &fields)
}

fn version(site: &Visitors) -> String {
    site.desk.store.book("Shift").unwrap().version()
}

/// Makes `kim` an administrator of the book, and not of the site.
fn with_administrator() -> Visitors {
    let mut site = Visitors::new(CFG);
    let mut access = site.people.access("Shift").unwrap().0;
    access.give(Subject::User("kim".to_owned()), vec![Right::Read, Right::Admin]);
    site.people.set_access("Shift", &access).unwrap();
    site.enter("kim");
    site
}

#[test]
fn administrators_change_the_configuration_of_a_book() {
    let mut site = with_administrator();
    let first = book_config::text(&site.desk.store.book("Shift").unwrap());
    let page = site.desk.get("/Shift/?cmd=Change+elogd.cfg").text();
    assert!(page.contains("Options Type = Routine, Problem\n") && page.contains("cols=\"120\" rows=\"30\""), "{page}");
    // A browser ends lines with CR LF.
    let new = format!("{first}Comment = <b>Shifts</b>\nAdmin textarea = 80, 10\n");
    let browser = new.replace('\n', "\r\n");
    let began = version(&site);
    let checked = act(&site, "check", &began, &browser, "");
    assert!(checked.status == StatusCode::OK && checked.text().contains("not saved yet") && version(&site) == began);
    let saved = act(&site, "save", &began, &browser, "");
    assert_eq!((saved.status, saved.location()), (StatusCode::FOUND, "?cmd=Admin&saved=1"), "{}", saved.text());
    assert_eq!(site.desk.store.book("Shift").unwrap().comment, "<b>Shifts</b>");
    let page = site.desk.get("/Shift/?cmd=Admin&saved=1").text();
    assert!(page.contains("cols=\"80\" rows=\"10\"") && page.contains("The configuration was saved"), "{page}");
    assert!(page.contains("<td>kim</td><td>changed</td><td>+2 -0</td>") && !page.contains("<b>Shifts"), "{page}");
    // Somebody who has read the old text changes nothing, and keeps the own one.
    let late = act(&site, "save", &began, &format!("{first}Theme = dark\n"), "");
    assert!(late.status == StatusCode::CONFLICT && late.text().contains("Theme = dark"), "{}", late.text());
    // Undo, from the page of the change.
    let shown = site.desk.get("/Shift/?cmd=Admin&change=2").text();
    assert!(shown.contains("<ins>+ Comment = &lt;b&gt;Shifts&lt;/b&gt;</ins>") && shown.contains("value=\"undo\""), "{shown}");
    assert!(!shown.contains("value=\"restore\""), "the book is as the change left it");
    assert_eq!(act(&site, "undo", &version(&site), "", "2").status, StatusCode::FOUND);
    assert_eq!(version(&site), began);
    assert_eq!(act(&site, "restore", &version(&site), "", "2").status, StatusCode::FOUND);
    assert_eq!(site.desk.store.book("Shift").unwrap().comment, "<b>Shifts</b>");
    let changes = site.desk.get("/Shift/?cmd=Admin").text();
    assert!(changes.contains("restored before 2") && changes.contains("restored 2"), "{changes}");
    assert_eq!(act(&site, "undo", &version(&site), "", "1").status, StatusCode::BAD_REQUEST);
    assert_eq!(act(&site, "undo", &version(&site), "", "77").status, StatusCode::NOT_FOUND);
    // Others neither see nor change it.
    site.enter("zoe");
    assert_eq!(site.desk.get("/Shift/?cmd=Admin").status, StatusCode::FORBIDDEN);
    assert_eq!(act(&site, "save", &version(&site), &first, "").status, StatusCode::FORBIDDEN);
}

#[test]
fn a_configuration_with_faults_is_not_saved() {
    let mut site = with_administrator();
    let began = version(&site);
    let refused = act(&site, "save", &began, "Attributes = Author\nThem = dark\n<b>\n", "");
    assert_eq!((refused.status, refused.error().as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "Nothing was saved"));
    let page = refused.text();
    assert!(page.contains("<li>line 2: ELOG has no option &#39;Them&#39;") && page.contains("<li>line 3:"), "{page}");
    assert!(page.contains("Them = dark\n&lt;b&gt;"), "the text is still in the form: {page}");
    // Options of the whole site are for its administrators, and a form needs this site's token.
    let open = "Attributes = Author\nSelf register = 1\n";
    let error = act(&site, "save", &began, open, "").error();
    assert!(error.contains("&#39;Self register&#39; decides about the users of all logbooks"), "{error}");
    let forged = site.desk.fields("/Shift/", &[("cmd", "Admin"), ("act", "save"), ("version", &began), ("options", open)]);
    assert_eq!((forged.status, version(&site)), (StatusCode::FORBIDDEN, began.clone()));
    site.enter("root");
    assert_eq!(act(&site, "save", &began, open, "").status, StatusCode::FOUND);
    // An administrator of the book changes the rest.
    site.enter("kim");
    assert_eq!(act(&site, "save", &version(&site), &format!("{open}Theme = dark\n"), "").status, StatusCode::FOUND);
}
