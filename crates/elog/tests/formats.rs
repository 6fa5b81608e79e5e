//! ELOG's dialect, responses other than pages: tables, XML, files and digests.

#[path = "support/desk.rs"]
mod desk;

use desk::Desk;
use http::{Method, StatusCode, header};
use md5::{Digest, Md5};
use tampu_elog::export::export_elog;
use tampu_logbook::{
    attachment::Attachment,
    book::EntryAttribute,
    entry::{Content, Encoding, EntryRef, NewEntry},
    store::{Attachments, Drafts, Entries},
};
use tampu_types::Time;

const CFG: &str = "[global]\nURL = http://ignored/\n[Shift log]\nAttributes = Author, Run number, When, 2nd\nType When = datetime\nTime format = %Y-%m-%d %H:%M\n\
    Comment = all < that & more\nRSS Title = $Author: $message id\nRSS Entries = 2\n";

/// Four entries: one with everything, an answer to it, an empty one, one with characters that XML does not have.
fn filled() -> Desk {
    let desk = Desk::new(CFG);
    let post = |second: i64, parent: Option<u32>, values: [&str; 4], encoding: Encoding, text: &str, files: &[(&str, &[u8])]| {
        let names = ["Author", "Run number", "When", "2nd"];
        let attributes = names.iter().zip(values).map(|(name, value)| EntryAttribute::new(name, value)).collect();
        let (mut uploads, mut attachments) = (Vec::new(), Vec::new());
        for (name, bytes) in files {
            let upload = desk.store.upload(&mut &**bytes, 1 << 20).unwrap();
            attachments.push(upload.attachment(name, Time::from_unix(1_221_000_000 + second, 0)));
            uploads.push(upload);
        }
        let content = Content { attributes, encoding, text: text.to_owned(), attachments, ..Content::default() };
        let date = Some(Time::from_unix(1_221_000_000 + second, 0));
        let new = NewEntry { book: "Shift log".to_owned(), parent, content, date, zone: 120 };
        desk.store.post(new, uploads, "zoe").unwrap()
    };
    let files: [(&str, &[u8]); 3] =
        [("a plot.PNG", b"0123456789"), ("page.html", b"<script>alert(1)</script>"), ("tool.exe", b"MZ")];
    post(0, None, ["Zoe \"Q\"", "80123", "1221000000", "x;y"], Encoding::ElCode, "one, \"two\";\nthree", &files);
    post(60, Some(1), ["Max", "", "", ""], Encoding::Markdown, "*answer*", &[]);
    post(120, None, ["", "", "", ""], Encoding::Html, "", &[]);
    post(180, None, ["]]>&<é\u{1}", "", "", ""], Encoding::Plain, "bell \u{7}\r\nend", &[]);
    desk
}

#[test]
fn tables_are_as_elog_writes_them() {
    let desk = filled();
    let csv = desk.get("/Shift+log/?mode=CSV1&reverse=0");
    assert_eq!(csv.headers[header::CONTENT_TYPE], "text/csv; charset=utf-8");
    let text = csv.text();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], "\"Message ID\",\"Date\",\"Author\",\"Run number\",\"When\",\"2nd\"");
    assert_eq!(lines[1], "1,Wed  10 Sep 2008 00:40:00 +0200,\"Zoe \"\"Q\"\"\",\"80123\",\"2008-09-10 00:40\",\"x;y\"");
    assert_eq!((lines[3], lines.len()), ("3,Wed  10 Sep 2008 00:42:00 +0200,\"\",\"\",\"\",\"\"", 6));
    assert!(desk.get("/Shift+log/?mode=csv2&reverse=0").text().contains("\n2;Wed  10 Sep 2008 00:41:00 +0200;\"Max\";"));
    let three = desk.get("/Shift+log/?mode=CSV3&reverse=1").text();
    assert!(three.contains(";\"2nd\";\"Text\"\r\n4;") && three.contains(";\"one, \"\"two\"\";\nthree\"\r\n"), "{three}");
    // The result of a search, and the newest entries.
    assert_eq!(desk.get("/Shift+log/?mode=CSV1&Author=Max").text().lines().count(), 2);
    let last = desk.get("/Shift+log/last2?mode=CSV1&reverse=0").text();
    assert_eq!(last.lines().skip(1).map(|line| &line[..2]).collect::<Vec<_>>(), ["3,", "4,"]);
    assert_eq!(desk.get("/Shift+log/last2?mode=CSV1&reverse=1").text().lines().nth(1).unwrap().as_bytes()[0], b'4');
    assert_eq!(desk.get("/Shift+log/last5000?mode=CSV1").text().lines().count(), 5);
    let bad = desk.get("/Shift+log/?mode=CSV1&subtext=%28");
    assert_eq!((bad.status, bad.error().is_empty()), (StatusCode::NOT_FOUND, false));
}

#[test]
fn xml_is_read_by_every_parser() {
    let desk = filled();
    let xml = desk.get("/Shift+log/?mode=XML&reverse=0").text();
    let mut reader = quick_xml::Reader::from_str(&xml);
    let mut open = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Start(tag) => open.push(tag.name().as_ref().to_owned()),
            quick_xml::events::Event::End(tag) => assert_eq!(open.pop().as_deref(), Some(tag.name().as_ref())),
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }
    for expected in [
        "<ELOG_LIST>\n\t<ENTRY>\n\t\t<MID>1</MID>\n\t\t<DATE>Wed, 10 Sep 2008 00:40:00 +0200</DATE>\n\t\t<REPLY_TO>2</REPLY_TO>\n",
        "\t\t<ATTACHMENT>080909_224000_a_plot.PNG,080909_224000_page.html,080909_224000_tool.exe</ATTACHMENT>\n\t\t<ENCODING>ELCode</ENCODING>\n",
        "<Run_number>80123</Run_number>\n\t\t<When>2008-09-10 00:40 [1221000000]</When>\n\t\t<_2nd>x;y</_2nd>\n",
        "<When>- [0]</When>",
        "<IN_REPLY_TO>1</IN_REPLY_TO>\n\t\t<ENCODING>plain</ENCODING>",
        "<Author>]]&gt;&amp;&lt;é</Author>",
        "<TEXT>bell &#13;\nend</TEXT>\n\t</ENTRY>\n</ELOG_LIST>\n",
    ] {
        assert!(xml.contains(expected), "{expected} is not in {xml}");
    }
}

#[test]
fn entries_are_downloaded_as_an_export_has_them() {
    let desk = filled();
    let to = tempfile::tempdir().unwrap();
    export_elog(&*desk.store, &[], &to.path().join("out"), &mut |_, _| true).unwrap();
    let file = std::fs::read_to_string(to.path().join("out/logbooks/Shift log/2008/080910a.log")).unwrap();
    let one_by_one: String = (1..=4).map(|id| desk.get(&format!("/Shift+log/{id}?cmd=Download")).text()).collect();
    assert_eq!(one_by_one, file);
    let raw = desk.get("/Shift+log/?mode=Raw&reverse=0").text();
    assert_eq!(raw, file.replace('\n', "\r\n"));
    // The digests cover the entries' bytes, from the mark of one to the mark of the next.
    let digests = desk.get("/Shift+log/?cmd=GetMD5").text();
    let lines: Vec<&str> = digests.lines().collect();
    assert!(lines[0].starts_with("ID:      0 MD5:") && lines.len() == 5, "{digests}");
    for (nth, entry) in file.split("$@MID@$:").skip(1).enumerate() {
        let digest: String = Md5::digest(format!("$@MID@$:{entry}")).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(lines[nth + 1], format!("ID: {:6} MD5:{digest}", nth + 1));
    }
}

#[test]
fn the_newest_are_told_as_rss() {
    let desk = filled();
    let rss = desk.get("/Shift+log/elog.rdf").text();
    for expected in [
        "<rss version=\"2.0\">\n<channel>\n<title>ELOG Shift log</title>\n<link>http://elog.site:8080/Shift+log/</link>",
        "<description>all &lt; that &amp; more</description>",
        "<item>\n<title>]]&gt;&amp;&lt;é: 4</title>\n<link>http://elog.site:8080/Shift+log/4</link>",
        "<pubDate>Wed, 10 Sep 2008 00:43:00 +0200</pubDate>",
    ] {
        assert!(rss.contains(expected), "{expected} is not in {rss}");
    }
    assert_eq!(rss.matches("<item>").count(), 2);
}

#[test]
fn attachments_are_found_under_all_addresses() {
    let mut desk = filled();
    for uri in [
        "/Shift+log/080909_224000/a_plot.PNG",
        "/Shift+log/080909_224000_a_plot.PNG",
        "/Shift%20log/1/080909_224000/a_plot.PNG",
        "/Shift+log/1/080909_224000_a_plot.PNG",
        "/Shift+log/99/080909_224000_a_plot.PNG",
    ] {
        let answer = desk.get(uri);
        assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, "0123456789"), "{uri}");
        assert_eq!(answer.headers[header::CONTENT_TYPE], "image/png");
    }
    for uri in
        ["/Shift+log/080909_224001/a_plot.PNG", "/Shift+log/1/080909_224000_..%2f..%2fbook.db", "/Shift+log/080909_224000/___"]
    {
        assert_eq!(desk.get(uri).status, StatusCode::NOT_FOUND, "{uri}");
    }
    // A file of the same name that was added to an old entry years later.
    let at = EntryRef::new("Shift log", 3);
    let upload = desk.store.upload(&mut &b"late"[..], 100).unwrap();
    let late = Attachment { elog: Some("261122_080000_a_plot.PNG".to_owned()), ..upload.attachment("a plot.PNG", Time(0)) };
    let content = Content { attachments: vec![late], ..desk.store.entry(&at).unwrap().content };
    desk.store.edit(&at, content, vec![upload], "zoe", None).unwrap();
    assert_eq!(desk.get("/Shift+log/261122_080000/a_plot.PNG").text(), "late");
    // Ranges of a file.
    let uri = "/Shift+log/080909_224000/a_plot.PNG";
    let piece = |range: &str| {
        let answer = desk.ask(Method::GET, uri, &[("range", range)], b"");
        (
            answer.status.as_u16(),
            answer.text(),
            answer.headers.get("content-range").map(|value| value.to_str().unwrap().to_owned()),
        )
    };
    assert_eq!(piece("bytes=2-4"), (206, "234".to_owned(), Some("bytes 2-4/10".to_owned())));
    assert_eq!(piece("bytes=-3"), (206, "789".to_owned(), Some("bytes 7-9/10".to_owned())));
    assert_eq!(piece("bytes=10-"), (416, String::new(), Some("bytes */10".to_owned())));
    assert_eq!(piece("bytes=0-1,3-4").0, 200);
    let tag = desk.get(uri).headers[header::ETAG].to_str().unwrap().to_owned();
    assert_eq!(desk.ask(Method::GET, uri, &[("if-none-match", &tag)], b"").status, StatusCode::NOT_MODIFIED);
    assert_eq!(desk.ask(Method::GET, uri, &[("if-range", "\"other\""), ("range", "bytes=2-4")], b"").status, StatusCode::OK);
    // A file that a browser could run is sandboxed, or saved.
    let page = desk.get("/Shift+log/080909_224000/page.html");
    assert!(page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("sandbox; default-src 'none'"));
    assert_eq!(page.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    let tool = desk.get("/Shift+log/080909_224000/tool.exe");
    assert_eq!(tool.headers[header::CONTENT_TYPE], "application/octet-stream");
    assert!(tool.headers[header::CONTENT_DISPOSITION].to_str().unwrap().starts_with("attachment; "));
    // A caller who may not read the book gets none of its files.
    desk.caller = desk::caller("kim", &[], &["Shift log"]);
    assert!(!desk.get(uri).text().contains("0123456789"));
    // The page reports a file that is missing for good.
    desk.caller = desk::caller("zoe", &desk::ALL, &["Shift log"]);
    let missing = Attachment {
        name: "gone.txt".to_owned(),
        sha: None,
        size: 0,
        added: Time(0),
        elog: Some("080101_000000_gone.txt".to_owned()),
    };
    let content = Content { attachments: vec![missing], ..desk.store.entry(&at).unwrap().content };
    desk.store.edit(&at, content, vec![], "zoe", None).unwrap();
    assert!(desk.get("/Shift+log/3/080101_000000_gone.txt").error().contains("was missing when"));
}

#[test]
fn who_is_editing_is_told() {
    let desk = Desk::new("[b]\nAttributes = Author\nUse Lock = 1\n[c]\nAttributes = Author\n");
    for book in ["b", "c"] {
        let new = NewEntry { book: book.to_owned(), ..NewEntry::default() };
        let at = desk.store.post(new, vec![], "zoe").unwrap();
        desk.store.lock(&at, "max", "pc7", std::time::Duration::from_secs(60)).unwrap();
        let text = desk.get(&format!("/{book}/1?cmd=download")).text();
        assert_eq!(text.contains("\nEncoding: plain\nLocked by: max on pc7\n====="), book == "b", "{text}");
    }
}
