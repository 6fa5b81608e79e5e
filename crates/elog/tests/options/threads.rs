//! Threads: their lists, and changes of all of their entries.

use http::StatusCode;

use super::{
    desk::Desk,
    support::{html::parse, site::TestSite},
};

/// A book with a thread of 1, its reply 2 and the reply 3 to that.
fn thread(options: &str) -> Desk {
    let desk = Desk::new(&format!("[b]\nAttributes = Author, State, Subject\n{options}"));
    let post = |subject: &str, to: &str| {
        let fields =
            [("cmd", "Submit"), ("Author", "Zoe"), ("State", "open"), ("Subject", subject), ("Text", "t"), ("reply_to", to)];
        desk.fields("/b/", &fields[..if to.is_empty() { 5 } else { 6 }]).id()
    };
    assert_eq!((post("first", ""), post("second", "1"), post("third", "2")), (1, 2, 3));
    desk
}

fn raw(desk: &Desk, id: u32) -> String {
    desk.get(&format!("/b/{id}?cmd=Download")).text()
}

#[test]
fn a_collapsed_thread_shows_one_entry() {
    let shown = |options: &str, path: &str| {
        let page = parse(&thread(options).get(path).text());
        page.all("table.threads td a")
            .iter()
            .map(|link| link.get("href").rsplit('/').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown("Display mode = threaded\n", "/b/"), ["1", "2", "3"]);
    assert_eq!(shown("Display mode = threaded\nExpand default = 0\n", "/b/"), ["3"]);
    assert_eq!(shown("Display mode = threaded\nCollapse to last = 0\n", "/b/?expand=0"), ["1"]);
}

#[test]
fn attributes_are_given_to_the_whole_thread() {
    let edit = |desk: &Desk, id: &str| {
        let fields = [("cmd", "Submit"), ("edit_id", id), ("Author", "Kim"), ("State", "fixed"), ("Subject", "x"), ("Text", "t")];
        desk.fields("/b/", &fields)
    };
    let desk = thread("Propagate attributes = State\n");
    assert_eq!(edit(&desk, "2").id(), 2);
    for id in 1..=3 {
        assert!(raw(&desk, id).contains("State: fixed"), "{id}");
    }
    // The others stay.
    assert!(raw(&desk, 1).contains("Author: Zoe") && raw(&desk, 3).contains("Subject: third"));
    // So does a reply.
    let reply = [("cmd", "Submit"), ("Author", "Max"), ("State", "closed"), ("Text", "t"), ("reply_to", "3")];
    assert_eq!(desk.fields("/b/", &reply).id(), 4);
    assert!(raw(&desk, 1).contains("State: closed"));
    let without = thread("");
    edit(&without, "2").id();
    assert!(raw(&without, 1).contains("State: open"));
}

#[test]
fn an_entry_that_another_user_edits_is_reported() {
    let mut desk = thread("Propagate attributes = State\nUse Lock = 1\n");
    desk.caller = super::desk::caller("kim", &super::desk::ALL, &["b"]);
    assert_eq!(desk.ask(http::Method::GET, "/b/1?cmd=Edit", &[("sec-fetch-dest", "document")], b"").status, StatusCode::OK);
    desk.caller = super::desk::caller("zoe", &super::desk::ALL, &["b"]);
    let fields = [("cmd", "Submit"), ("edit_id", "2"), ("Author", "Zoe"), ("State", "fixed"), ("Subject", "x"), ("Text", "t")];
    let answer = desk.fields("/b/", &fields);
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.error().contains("entry 2 was saved"), "{}", answer.error());
    assert!(raw(&desk, 2).contains("State: fixed") && raw(&desk, 3).contains("State: open"));
}

#[test]
fn replies_are_resubmitted_with_their_entry() {
    let resubmit = |desk: &Desk| {
        let fields =
            [("cmd", "Submit"), ("edit_id", "1"), ("resubmit", "1"), ("Author", "Zoe"), ("Subject", "again"), ("Text", "t")];
        desk.fields("/b/", &fields)
    };
    let desk = thread("Resubmit replies = 1\n");
    assert_eq!(resubmit(&desk).id(), 4);
    assert!(raw(&desk, 4).contains("Subject: again") && raw(&desk, 4).contains("Reply to: 5"));
    assert!(raw(&desk, 5).contains("In reply to: 4") && raw(&desk, 5).contains("Subject: second"));
    assert!(raw(&desk, 6).contains("In reply to: 5") && raw(&desk, 6).contains("Subject: third"));
    assert!(desk.get("/b/1").text().contains("errormsg") && desk.get("/b/3").text().contains("errormsg"));
    let refused = thread("");
    assert_eq!(resubmit(&refused).status, StatusCode::CONFLICT);
}

#[test]
fn groups_of_logbooks_are_rows_of_tabs() {
    let names = ["RedHat", "Debian", "NT", "CE10", "CE20", "Lone"];
    let sections: String = names.iter().map(|name| format!("[{name}]\nAttributes = Author\n")).collect();
    let site = TestSite::new(&format!(
        "[global]\nGroup Linux = RedHat, Debian\nGroup Windows = NT, CE\nGroup CE = CE10, CE20\n{sections}"
    ));
    let tabs = |path: &str| {
        let page = site.get(path).page();
        page.all("nav.tabs a").iter().map(|tab| (tab.text(), tab.get("href").to_owned())).collect::<Vec<_>>()
    };
    let expected = |tabs: &[(&str, &str)]| tabs.iter().map(|(a, b)| ((*a).to_owned(), format!("../{b}/"))).collect::<Vec<_>>();
    let outer = [("Linux", "RedHat"), ("Windows", "NT"), ("Lone", "Lone")];
    assert_eq!(tabs("/Debian/"), expected(&[&outer[..], &[("RedHat", "RedHat"), ("Debian", "Debian")]].concat()));
    let inner = [("NT", "NT"), ("CE", "CE10"), ("CE10", "CE10"), ("CE20", "CE20")];
    assert_eq!(tabs("/CE20/"), expected(&[&outer[..], &inner].concat()));
    assert_eq!(site.get("/CE20/").page().texts("nav.tabs .sltab a"), ["Windows", "CE", "CE20"]);
}
