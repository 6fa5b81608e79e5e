//! ELOG's dialect, many entries at once: `Select` of a list, and a list of all.

#[path = "support/desk.rs"]
mod desk;
#[path = "support/html.rs"]
mod html;

use desk::{Desk, caller};
use http::StatusCode;
use tampu_elog::pages::Body;
use tampu_logbook::{
    entry::{Entry, EntryRef},
    people::Right,
    store::{Drafts, Entries, Imports, StoreError},
};

const CFG: &str = "[global]\nReverse sort = 1\n[Shift]\nAttributes = Author, Type, System, Done, Subject\nRequired Attributes = Author\n\
    Options Type = Routine, Problem\nMOptions System = RICH1, HLT\nOptions Done = boolean\nSubst on edit Subject = $Subject (checked)\n\
    [Other]\nAttributes = Author\n[Third]\nAttributes = Author\n";

/// A book with entries 1 to 6, of which 3 answers 2, and 4 answers 3.
fn six() -> Desk {
    let desk = Desk::new(CFG);
    for id in 1..=6_u32 {
        let parent = if matches!(id, 3 | 4) { (id - 1).to_string() } else { String::new() };
        let fields = [("cmd", "Submit"), ("Author", "Zoe"), ("Type", "Routine"), ("Subject", "s"), ("reply_to", &parent)];
        assert_eq!(desk.fields("/Shift/", &fields).id(), id);
    }
    desk
}

fn entry(desk: &Desk, id: u32) -> Entry {
    desk.store.entry(&EntryRef::new("Shift", id)).unwrap()
}

fn there(desk: &Desk, book: &str) -> Vec<u32> {
    let is_there = |id: &u32| desk.store.entry(&EntryRef::new(book, *id)).is_ok();
    (1..=9).filter(is_there).collect()
}

fn said(entry: &Entry, name: &str) -> String {
    entry.content.attribute(name).map(|said| said.joined()).unwrap_or_default()
}

#[test]
fn a_list_has_boxes_where_something_can_be_done() {
    let mut desk = six();
    let list = html::parse(&desk.get("/Shift/").text());
    let select =
        list.one("nav.menuframe").all("a").into_iter().find(|link| link.text() == "Select").unwrap().get("href").to_owned();
    assert_eq!(select, "./?select=1");
    for address in ["/Shift/?select=1&Author=Zoe", "/Shift/?cmd=Select", "/Shift/?select=1&mode=threaded", "/Shift/page?select=1"]
    {
        let page = html::parse(&desk.get(address).text());
        let form = page.one("form.select");
        let boxes: Vec<&str> = form.all("td.tick").iter().map(|cell| cell.one("input").get("value")).collect();
        assert_eq!(boxes.len(), 6, "{address}: {boxes:?}");
        let buttons: Vec<&str> = form.all("button").iter().map(|button| button.get("value")).collect();
        assert_eq!(buttons, ["Edit", "Delete", "Copy to", "Move to"], "{address}");
        assert_eq!(form.all("input").iter().find(|input| input.get("name") == "nsel").unwrap().get("value"), "6");
    }
    assert!(desk.get("/Shift/?select=all").text().matches(" checked>").count() >= 6);
    // A user who may only read has nothing to select for.
    desk.caller = caller("max", &[Right::Read], &["Shift", "Other", "Third"]);
    let page = desk.get("/Shift/?select=1").text();
    assert!(!page.contains("form class=\"select\"") && !page.contains(">Select<"), "{page}");
}

#[test]
fn several_are_deleted_with_what_answers_them() {
    let mut desk = six();
    let delete = [("cmd", "Delete"), ("nsel", "6"), ("s0", "6"), ("s3", "3"), ("s4", "2"), ("redir", "?Author=Zoe")];
    let asked = desk.fields("/Shift/", &delete).text();
    assert!(asked.contains("these entries: 2, 3, 6, and an answer to them?"), "{asked}");
    assert!(asked.contains("name=\"tampu_selected\" value=\"2,3,6\""), "{asked}");
    let sure =
        |answer: &'static str| [("cmd", "Delete"), ("tampu_selected", "2,3,6"), ("confirm", answer), ("redir", "?Author=Zoe")];
    desk.fields("/Shift/", &sure("No"));
    assert_eq!(there(&desk, "Shift"), [1, 2, 3, 4, 5, 6]);
    // One selected entry or reply that may not be deleted keeps the others.
    desk.caller = caller("max", &[Right::Read, Right::Write, Right::EditOwn], &["Shift", "Other", "Third"]);
    assert_eq!(desk.fields("/Shift/", &sure("Yes")).status, StatusCode::FORBIDDEN);
    desk.caller = caller("zoe", &desk::ALL, &["Shift", "Other", "Third"]);
    assert_eq!(there(&desk, "Shift"), [1, 2, 3, 4, 5, 6]);
    let done = desk.fields("/Shift/", &sure("Yes"));
    assert_eq!((done.status, done.location()), (StatusCode::FOUND, "http://elog.site:8080/Shift/?Author=Zoe"));
    assert_eq!(there(&desk, "Shift"), [1, 5]);
    assert_eq!(desk.fields("/Shift/", &[("cmd", "Delete"), ("nsel", "6")]).error(), "No entries selected");
    assert!(desk.fields("/Shift/", &[("cmd", "Delete"), ("nsel", "6"), ("s0", "2")]).error().contains("has been deleted"));
}

#[test]
fn several_are_copied_and_moved() {
    let desk = six();
    let tick = |cmd: &'static str, field: &'static str, to: &'static str| {
        desk.fields("/Shift/", &[("cmd", cmd), ("nsel", "6"), ("s0", "3"), ("s1", "2"), ("s2", "6"), (field, to)])
    };
    assert!(tick("Move to", "destm", "").error().contains("choose the logbook"));
    assert_eq!(tick("Copy to", "destc", "Other").status, StatusCode::FOUND);
    assert_eq!((there(&desk, "Other"), there(&desk, "Shift").len()), (vec![1, 2, 3, 4], 6), "each once");
    assert_eq!(tick("Move to", "destm", "Third").status, StatusCode::FOUND);
    assert_eq!((there(&desk, "Third"), there(&desk, "Shift")), (vec![1, 2, 3, 4], vec![1, 5]));
    let gone = desk.store.entry(&EntryRef::new("Shift", 4)).unwrap_err();
    assert!(matches!(gone, StoreError::Gone(gone) if gone.moved_to.is_some()));
}

#[test]
fn attributes_of_several_are_changed_or_kept() {
    let desk = six();
    desk.fields("/Shift/", &[("cmd", "Submit"), ("edit_id", "5"), ("System", "HLT"), ("Text", "five"), ("Subject", "own")]);
    let form = html::parse(&desk.fields("/Shift/", &[("cmd", "Edit"), ("nsel", "2"), ("s0", "1"), ("s1", "5")]).text());
    let names: Vec<&str> = form.one("form.entry").all("select").iter().map(|field| field.get("name")).collect();
    assert_eq!(names, ["Type", "Done"]);
    let change = |fields: &[(&str, &str)]| {
        desk.fields(
            "/Shift/",
            &[&[("cmd", "Submit"), ("tampu_selected", "1,5"), ("Author", ""), ("Subject", "")], fields].concat(),
        )
    };
    assert_eq!(change(&[("Type", "problem"), ("Done", "1"), ("System_0", "RICH1")]).status, StatusCode::FOUND);
    for (id, subject, text) in [(1, "s (checked)", ""), (5, "own (checked) (checked)", "five")] {
        let entry = entry(&desk, id);
        let all: Vec<String> = ["Author", "Type", "System", "Done", "Subject"].iter().map(|name| said(&entry, name)).collect();
        assert_eq!(all, ["Zoe", "Problem", "RICH1", "1", subject]);
        assert_eq!(entry.content.text, text);
    }
    assert_eq!(change(&[("tampu_empty2", "1")]).status, StatusCode::FOUND);
    assert_eq!((said(&entry(&desk, 1), "System"), said(&entry(&desk, 1), "Done")), (String::new(), "1".to_owned()));
    // A change that one entry rejects is made to none of them.
    let before = entry(&desk, 1).revision;
    assert!(change(&[("Type", "Holiday")]).error().contains("Entry 1: Error: Attribute option <b>Holiday</b> not existing"));
    desk.store.lock(&EntryRef::new("Shift", 5), "max", "pc7", std::time::Duration::from_secs(60)).unwrap();
    assert!(change(&[("Type", "Routine")]).error().contains("being edited by max"));
    assert_eq!(entry(&desk, 1).revision, before);
}

#[test]
fn all_of_a_list_comes_in_pieces() {
    let desk = Desk::new("[b]\nAttributes = Subject\nAll display limit = 5000\n");
    let one = |id: u32| {
        let mut entry = tampu_logbook::entry::NewEntry { book: "b".to_owned(), ..Default::default() };
        entry.content.text = format!("text {id}");
        entry.date = Some(tampu_types::Time(i64::from(id) * 1_000_000_000));
        tampu_logbook::store::Imported { id, entry, thread: id, ..Default::default() }
    };
    desk.store.import("b", (1..=1700).map(one).collect(), vec![], "test").unwrap();
    let get = |uri: &str| {
        let mut nothing: &[u8] = &[];
        let body: &mut (dyn std::io::Read + Send) = &mut nothing;
        let (_, body) = desk.site.answer(&desk.caller, http::Request::builder().uri(uri).body(body).unwrap()).into_parts();
        let Body::Pieces(pieces) = body else { panic!("{uri}: one piece") };
        pieces.map(|piece| String::from_utf8(piece.unwrap()).unwrap()).collect::<Vec<_>>()
    };
    for mode in ["summary", "full", "threaded"] {
        let pieces = get(&format!("/b/page?mode={mode}"));
        assert!(pieces.len() > 3 && pieces[0].len() < 200_000 && pieces.iter().all(|piece| piece.len() < 1 << 20), "{mode}");
        assert!(pieces[0].starts_with("<!DOCTYPE html>") && pieces.last().unwrap().ends_with("</body></html>\n"), "{mode}");
        let page = html::parse(&pieces.concat());
        let rows = page.one("table.list").all("tr");
        let ids: Vec<u32> = rows
            .iter()
            .filter_map(|row| row.all("a").first()?.get("href").split('?').next()?.rsplit('/').next()?.parse().ok())
            .collect();
        assert_eq!(ids, (1..=1700).collect::<Vec<_>>(), "{mode}");
    }
    assert_eq!(html::parse(&get("/b/past99999?subtext=text").concat()).one("table.list").all("tr").len(), 1701);
}
