//! The page of a book's configuration: check, saving, history, undo.

#[path = "support/accounts.rs"]
mod accounts;
#[path = "support/desk.rs"]
mod desk;

use accounts::{CFG, Visitors};
use http::StatusCode;
use tampu_elog::book_config;
use tampu_logbook::{
    entry::{Content, NewEntry},
    people::{Right, access::Subject, visit},
    store::{Entries, Records, Transactions},
};
use tampu_types::Time;

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

#[test]
fn administrators_of_the_site_make_logbooks() {
    let mut site = Visitors::new(CFG);
    site.enter("root");
    let make = |site: &Visitors, name: &str, like: &str| {
        site.send("/", &[("cmd", "Users"), ("act", "make-book"), ("book", name), ("like", like)])
    };
    assert!(site.desk.get("/?cmd=Users").text().contains("<option>Shift</option>"));
    assert_eq!(make(&site, "Vacuum", "Shift").status, StatusCode::FOUND);
    let made = site.desk.store.book("Vacuum").unwrap();
    assert_eq!(made.attributes, site.desk.store.book("Shift").unwrap().attributes);
    assert_eq!(site.desk.store.book_changes("Vacuum", None, 9).unwrap()[0].by, "root");
    assert_eq!(make(&site, "New", "").status, StatusCode::FOUND);
    for (name, like, told) in
        [("vacuum", "", "already"), ("a/b", "", "invalid logbook name"), ("Other", "None", "there is no logbook")]
    {
        let error = make(&site, name, like).error();
        assert!(error.contains(told), "{error}");
    }
    site.enter("kim");
    assert_eq!(make(&site, "Forged", "").status, StatusCode::FORBIDDEN);
    assert!(site.desk.store.book("Forged").is_err());
}

#[test]
fn users_see_the_entries_since_their_last_visit() {
    let mut site = Visitors::new(CFG);
    let post = |site: &Visitors, text: &str, date: Time| {
        let content = Content { text: text.to_owned(), ..Content::default() };
        let new = NewEntry { book: "Shift".to_owned(), date: Some(date), content, ..NewEntry::default() };
        site.desk.store.post(new, vec![], "zoe").unwrap();
    };
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ago = |hours: i64| Time::from_unix(since.as_secs() as i64 - hours * 3600, 0);
    post(&site, "an old one", ago(50));
    post(&site, "a new one", ago(1));
    let list = |site: &Visitors, query: &str| site.desk.get(&format!("/Shift/?mode=full{query}")).text();
    site.enter("zoe");
    let first = list(&site, "&new_entries=1");
    assert!(first.contains("This is your first visit") && first.contains("an old one"), "{first}");
    // The visit before ended a day ago.
    let earlier = serde_json::json!({ "last": ago(24).to_rfc3339() });
    site.desk.store.put_record(visit::KIND, "kim", &earlier, None).unwrap();
    site.enter("kim");
    let page = list(&site, "");
    assert!(page.contains("New entries since:") && page.contains("an old one"), "{page}");
    let new = list(&site, "&new_entries=1");
    assert!(new.contains("a new one") && !new.contains("an old one"), "{new}");
    // The visit goes on: the same entries are new on its next page.
    assert!(!list(&site, "&new_entries=1").contains("an old one"));
    let noted = site.desk.store.record(visit::KIND, "kim").unwrap().unwrap().value;
    assert_eq!(noted["before"], earlier["last"]);
    site.leave();
    assert!(list(&site, "&new_entries=1").contains("known after a login"));
}
