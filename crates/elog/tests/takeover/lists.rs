//! Lists: their rows, their order, their heads.

use tampu_logbook::store::Entries;

use crate::{desk::Desk, html::parse};

#[test]
fn lists_are_shown_as_elogd_shows_them() {
    let desk = Desk::new(
        "[Runs]\nAttributes = Subject, Zone, Kind\nOptions Kind = b, A\nSort Attribute Options Kind = 1\nShow Attributes Edit = Kind, Subject\n\
         Sort Attributes = ID\nReverse sort = 1\nEntries per page = 2\nMode commands = 0\nEnable attachments = 0\n",
    );
    for subject in ["one", "two", "three", "", "five"] {
        desk.fields("/Runs/", &[("cmd", "Submit"), ("Subject", subject), ("Text", "t")]).id();
    }
    let ids = |path: &str| -> Vec<String> {
        let page = parse(&desk.get(path).text());
        page.all("table.list tr").iter().filter_map(|row| row.texts("td").first().cloned()).collect()
    };
    assert_eq!(ids("/Runs/last3"), ["5", "4", "3"]);
    assert_eq!(ids("/Runs/"), ["5", "4"]);
    // A list in ascending order begins with its last page.
    assert_eq!(ids("/Runs/?reverse=0"), ["5"]);
    // An expression that fits nothing finds entries without a value.
    assert_eq!(ids("/Runs/?Subject=^$"), ["4"]);
    let list = parse(&desk.get("/Runs/").text());
    assert!(list.all("div.modes").is_empty() && list.one("div.told").text().contains("Page 1 of 3"), "{list:?}");
    assert!(!list.texts("th.listtitle").contains(&"Files".to_owned()));
    let form = parse(&desk.get("/Runs/?cmd=New").text());
    assert_eq!(form.texts("select[name=Kind] option"), ["- please select -", "A", "b"]);
    let fields: Vec<&str> = form.all("th.attribname").iter().map(|field| field.get("title")).collect();
    assert_eq!(form.texts("th.attribname"), ["Kind:", "Subject:"], "{fields:?}");
    for (cmd, to) in [("Last+Day", "past1"), ("Last+10", "last10")] {
        assert_eq!(desk.get(&format!("/Runs/?cmd={cmd}")).location().rsplit('/').next(), Some(to));
    }
}

#[test]
fn threads_of_a_search_and_of_the_newest_are_the_entries_themselves() {
    let desk = Desk::new("[Runs]\nAttributes = Author, Subject\nDisplay mode = threaded\nReverse sort = 1\n");
    desk.fields("/Runs/", &[("cmd", "Submit"), ("Author", "Zoe"), ("Subject", "first"), ("Text", "t")]).id();
    desk.fields("/Runs/", &[("cmd", "Submit"), ("Author", "Max"), ("Subject", "second"), ("Text", "t")]).id();
    desk.fields("/Runs/", &[("cmd", "Submit"), ("reply_to", "1"), ("Author", "Kim"), ("Subject", "reply"), ("Text", "t")]).id();
    let lines = |path: &str| parse(&desk.get(path).text()).all("table.threads tr").len();
    assert_eq!((lines("/Runs/"), lines("/Runs/last2"), lines("/Runs/?Author=Kim")), (3, 2, 1));
    // A new reply brings its thread to the front, and `?id=` finds the page of the thread.
    let links = |path: &str| -> Vec<String> {
        parse(&desk.get(path).text()).all("table.threads a").iter().map(|link| link.get("href").to_owned()).collect()
    };
    assert_eq!(links("/Runs/"), ["1", "3", "2"].map(|id| format!("../Runs/{id}")));
    assert_eq!(links("/Runs/?npp=1&id=2"), ["../Runs/2"]);
    assert_eq!(links("/Runs/?npp=1&id=3"), ["1", "3"].map(|id| format!("../Runs/{id}")));
    assert_eq!(links("/Runs/?sort=Author"), ["3", "2", "1"].map(|id| format!("../Runs/{id}")));
    // The same where a list goes back some days.
    let mut book = desk.store.book("Runs").unwrap();
    book.elog.push(("Last default".to_owned(), "31".to_owned()));
    desk.store.put_book(&book).unwrap();
    assert_eq!((lines("/Runs/"), lines("/Runs/?Author=Kim")), (3, 1));
}

#[test]
fn expressions_of_elog_are_understood() {
    let desk = Desk::new("[Runs]\nAttributes = Subject, Category\nMOptions Category = HV and AF, target chamber, cooling\n");
    let long = "x".repeat(600);
    for (category, text) in [("HV and AF | target chamber", "t"), ("target chamber", "t"), ("cooling", long.as_str())] {
        desk.fields("/Runs/", &[("cmd", "Submit"), ("Category", category), ("Text", text)]).id();
    }
    let ids = |query: &str| -> Vec<String> {
        let page = parse(&desk.get(&format!("/Runs/page?{query}")).text());
        page.all("table.list tr").iter().filter_map(|row| row.texts("td").first().cloned()).collect()
    };
    assert_eq!(ids("subtext=.{500}"), ["3"]);
    assert_eq!(ids("Category=^HV+and+AF+|+target+chamber$"), ["1"]);
    let find = parse(&desk.get("/Runs/?cmd=Find").text());
    for name in ["ha", "na", "ca", "hb", "nb", "cb", "printable"] {
        find.one(&format!("input[name={name}]"));
    }
}
