//! ELOG's programs, and what they read.

use http::header::CONTENT_TYPE;

use crate::{desk::Desk, html::parse};

#[test]
fn a_book_in_iso_8859_1_is_read_and_written_in_it() {
    let desk = Desk::new("[Runs]\nAttributes = Subject\ncharset = ISO-8859-1\n[Utf]\nAttributes = Subject\n");
    // py_elog posts ISO-8859-1, and reads it, whatever the header says.
    let post = |book: &str, fields: [(&str, Option<&str>, &[u8]); 3]| desk.post(&format!("/{book}/"), &fields).id();
    let id = post("Runs", [("cmd", None, b"Submit"), ("Subject", None, b"\xe4\xf6\xfc"), ("Text", None, b"\xdf \x80")]);
    let raw = desk.get(&format!("/Runs/{id}?cmd=download"));
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(&raw.bytes, b"Subject: \xe4\xf6\xfc\n") && has(&raw.bytes, b"\n\xdf \x80"), "{raw:?}");
    let page = desk.get(&format!("/Runs/{id}"));
    assert_eq!(page.headers.get(CONTENT_TYPE).unwrap(), "text/html; charset=ISO-8859-1");
    assert!(has(&page.bytes, b"\xe4\xf6\xfc") && has(&page.bytes, b"<meta charset=\"ISO-8859-1\">"));
    // A browser sends the form as UTF-8, so that nothing is guessed.
    assert!(has(&desk.get("/Runs/?cmd=New").bytes, b"<form accept-charset=\"utf-8\""));
    let id = post("Utf", [("cmd", None, b"Submit"), ("Subject", None, "äöü".as_bytes()), ("Text", None, b"t")]);
    assert!(desk.get(&format!("/Utf/{id}?cmd=download")).text().contains("Subject: äöü\n"));
}

#[test]
fn the_last_entry_and_printed_lists_are_found() {
    let desk = Desk::new("[Runs]\nAttributes = Subject\nEntries per page = 2\n");
    assert!(desk.get("/Runs/-1?cmd=download").error().contains("no entries"));
    for subject in ["one", "two", "three"] {
        desk.fields("/Runs/", &[("cmd", "Submit"), ("Subject", subject), ("Text", "t")]).id();
    }
    // `elog -w last`.
    assert!(desk.get("/Runs/-1?cmd=download").text().contains("$@MID@$: 3\n"));
    let lines = |path: &str| parse(&desk.get(path).text()).all("table.list tr").len() - 1;
    assert_eq!((lines("/Runs/page1"), lines("/Runs/page1?printable=1"), lines("/Runs/?printable=1&npp=1")), (2, 3, 3));
}
