//! ELOG's dialect, writing: forms of browsers, the `elog` command and py_elog become entries, answers and changes.

#[path = "support/desk.rs"]
mod desk;

use desk::{ALL, Desk, caller};
use http::{Method, StatusCode};
use tampu_elog::pages::{Site, SiteConfig, csrf};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, Encoding, Entry, EntryRef, NewEntry},
    people::{Right, user::User},
    store::{Drafts, Entries, PagePart, Records, StoreError},
};
use tampu_types::Time;

const CFG: &str = "[global]\nTop group All = Shift, Other\n[Shift]\nAttributes = Author, Type, System, Run number, Day, When, Done, Subject\n\
    Required Attributes = Author\nOptions Type = Routine{a}, Problem\nMOptions System = RICH1, HLT, \"Muon, big\"\nType Run number = numeric\n\
    Type Day = date\nType When = datetime\nOptions Done = boolean\nExtendable Options = System\nLocked Attributes = Author\n\
    Subst Subject = [$Type] $Subject\nSubst on edit Subject = $Subject (edited by $short_name)\n\
    [Other]\nAttributes = Author, Subject\nAllowed encoding = 1\nEnable attachments = 0\nSubst Subject = N-###\n";

fn entry(desk: &Desk, id: u32) -> Entry {
    desk.store.entry(&EntryRef::new("Shift", id)).unwrap()
}

fn said(entry: &Entry, name: &str) -> String {
    entry.content.attribute(name).unwrap_or_else(|| panic!("no {name}")).joined()
}

#[test]
fn the_elog_command_posts_answers_edits_and_deletes() {
    let desk = Desk::new(CFG);
    let fields =
        [("cmd", "Submit"), ("exp", "Shift"), ("suppress", "1"), ("encoding", "ELCode"), ("Author", "Zoe"), ("Type", "routine")];
    let with = |more: &[(&'static str, &'static str)]| [&fields[..], more].concat();
    let answer = desk.elog(
        "Shift",
        &with(&[("System", "RICH1 | HLT"), ("Run_number", "80123"), ("Subject", "M\u{fc}ller")]),
        "two\r\nlines",
        &[("dir/a plot.png", b"PNG\r\n"), ("a plot.png", b"other")],
    );
    assert_eq!((answer.id(), answer.location()), (1, "http://elog.site:8080/Shift/1"));
    let first = entry(&desk, 1);
    assert_eq!((first.content.text.as_str(), first.content.encoding, first.by.as_str()), ("two\nlines", Encoding::ElCode, "zoe"));
    for (name, value) in [
        ("Author", "Zoe"),
        ("Type", "Routine"),
        ("System", "RICH1 | HLT"),
        ("Run number", "80123"),
        ("Done", "0"),
        ("Subject", "[Routine] Müller"),
        ("Day", ""),
    ] {
        assert_eq!(said(&first, name), value, "{name}");
    }
    let names: Vec<&str> = first.content.attachments.iter().filter_map(|file| file.elog.as_deref()).collect();
    assert!(
        names[0].ends_with("_a_plot.png") && names[1].ends_with("_a_plot_1.png") && names[0][..14] == names[1][..14],
        "{names:?}"
    );

    // An edit sends a downloaded entry back: every line of the head is a field.
    let download = desk.get("/Shift/1?cmd=download").text();
    let (head, text) = download.split_once(&format!("{}\n", "=".repeat(40))).unwrap();
    assert!(
        head.starts_with("$@MID@$: 1\nDate: ") && head.contains("\nRun number: 80123\n") && head.contains("\nDay: \n"),
        "{head}"
    );
    assert_eq!(text, "two\nlines\n");
    let lines: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"), value.trim().to_owned()))
        .collect();
    let mut edit = vec![("cmd", "Submit"), ("exp", "Shift"), ("edit_id", "1"), ("skiplock", "1"), ("encoding", "ELCode")];
    edit.extend(lines.iter().map(|(name, value)| (name.as_str(), if name == "Type" { "Problem" } else { value.as_str() })));
    assert_eq!(desk.elog("Shift", &edit, "changed", &[]).id(), 1);
    let changed = entry(&desk, 1);
    assert_eq!((changed.date, changed.revision, changed.content.text.as_str()), (first.date, 1, "changed"));
    assert_eq!(
        (said(&changed, "Type").as_str(), said(&changed, "Subject").as_str()),
        ("Problem", "[Routine] Müller (edited by zoe)")
    );
    assert_eq!(changed.content.attachments, first.content.attachments, "what the command does not speak of stays");
    assert_eq!(desk.store.history_page(&EntryRef::new("Shift", 1), PagePart::default()).unwrap().revisions.len(), 2);

    let reply = desk.elog(
        "Shift",
        &with(&[("reply_to", "1"), ("In_reply_to", "7"), ("Attachment", "x"), ("Encoding", "plain")]),
        "answer",
        &[],
    );
    assert_eq!(reply.id(), 2);
    assert_eq!((entry(&desk, 2).parent, entry(&desk, 2).content.encoding), (Some(1), Encoding::Plain));
    assert!(desk.get("/Shift/1?cmd=download").text().contains("\nReply to: 2\n"));
    assert!(desk.get("/Shift/2?cmd=download").text().contains("\nIn reply to: 1\n"));

    // Without a text, the command omits the boundary that ends the attribute before the file.
    let orphan = desk.elog("Shift", &with(&[("Subject", "file only")]), "", &[("b.txt", b"bytes")]);
    let only = entry(&desk, orphan.id());
    assert_eq!((said(&only, "Subject").as_str(), only.content.attachments.len()), ("[Routine] file only", 1));

    assert_eq!(desk.get("/Shift/1?cmd=Delete&confirm=Yes").id(), 3);
    for id in [1, 2] {
        assert!(matches!(desk.store.entry(&EntryRef::new("Shift", id)), Err(StoreError::Gone(_))));
    }
    assert!(desk.get("/Shift/1?cmd=download").error().contains("This entry has been deleted"));
    assert_eq!(desk.get("/Shift/3?cmd=Delete&confirm=Yes").id(), 0, "py_elog reads a number also where nothing is left");
}

#[test]
fn py_elog_posts_and_edits() {
    let desk = Desk::new(CFG);
    let when = "1221000000";
    let parts: Vec<(&str, Option<&str>, &[u8])> = vec![
        ("Author", None, b"M\xfcller"),
        ("Run_number", None, b"12.5"),
        ("When", None, when.as_bytes()),
        ("cmd", None, b"Submit"),
        ("exp", None, b"Shift"),
        ("attfile1", Some("my file.txt"), b"bytes"),
        ("", Some(""), b""),
        ("Text", Some(""), b"Gr\xfc\xdfe\nfrom py_elog"),
    ];
    let id = desk.post("/Shift/", &parts).id();
    let first = entry(&desk, id);
    assert_eq!((said(&first, "Author").as_str(), first.content.text.as_str()), ("Müller", "Grüße\nfrom py_elog"));
    assert_eq!((first.date, first.content.encoding), (Time::from_unix(1_221_000_000, 0), Encoding::Plain));
    let stored = first.content.attachments[0].elog.clone().unwrap();
    assert!(stored.ends_with("_my_file.txt"));

    // An edit names the attachments that stay.
    let edit = |more: Vec<(&str, Option<&str>, &[u8])>| {
        let mut parts: Vec<(&str, Option<&str>, &[u8])> =
            vec![("edit_id", None, b"1"), ("skiplock", None, b"1"), ("Author", None, b"somebody else"), ("cmd", None, b"Submit")];
        parts.extend(more);
        desk.post("/Shift/", &parts).id()
    };
    edit(vec![("attachment0", None, stored.as_bytes()), ("attfile1", Some("b.txt"), b"b"), ("Text", Some(""), b"new")]);
    let changed = entry(&desk, id);
    assert_eq!(said(&changed, "Author"), "Müller", "it is locked");
    assert_eq!(changed.content.attachments.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["my file.txt", "b.txt"]);
    assert_eq!(said(&changed, "Run number"), "12.5", "what is not spoken of stays");
    edit(vec![
        ("attachment0", None, stored.as_bytes()),
        ("attachment1", None, b"010101_000000_not_there.txt"),
        ("Text", Some(""), b"x"),
    ]);
    assert_eq!(entry(&desk, id).content.attachments.len(), 1);
}

#[test]
fn what_elog_refuses_is_refused_in_its_words() {
    let desk = Desk::new(CFG);
    let good = [("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")];
    for (name, value, told) in [
        ("Author", "", "<i>Error: Attribute <b>Author</b> not supplied.</i>"),
        ("Type", "Coffee<b>", "Error: Attribute option <b>Coffee&lt;b&gt;</b> not existing"),
        ("Run_number", "many", "Error: Attribute <b>Run number</b> must be numeric"),
        ("Done", "yes", "Error: Value <b>yes</b> not allowed for boolean attributes"),
        ("Day", "soon", "Error: Attribute <b>Day</b> must be a date"),
    ] {
        let answer = desk.fields("/Shift/", &[&good[..], &[(name, value)]].concat());
        assert!(answer.error().contains(told), "{name}: {}", answer.error());
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let html = desk.fields("/Other/", &[&good[..], &[("encoding", "HTML")]].concat());
    assert!(html.error().contains("HTML encoding not allowed"));
    let file = desk.post("/Other/", &[("cmd", None, b"Submit"), ("Author", None, b"x"), ("attfile1", Some("a"), b"x")]);
    assert!(file.error().contains("attachments are not enabled"));
    let unknown = desk.fields("/Shift/", &[("cmd", "Coffee")]);
    assert!(unknown.error().contains("the command &quot;Coffee&quot; is not known"));
    assert!(desk.fields("/Shift/", &[("cmd", "Config"), ("config", "zoe")]).error().contains("this site has no users"));
    assert!(desk.fields("/Shift/", &[&good[..], &[("edit_id", "77")]].concat()).error().contains("deleted"));
    assert!(desk.fields("/Shift/", &[&good[..], &[("reply_to", "77")]].concat()).error().contains("deleted"));
    assert_eq!(
        desk.ask(Method::POST, "/Shift/", &[("content-type", "text/plain")], b"x").status,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    let cut = desk.ask(
        Method::POST,
        "/Shift/",
        &[("content-type", "multipart/form-data; boundary=B")],
        b"--B\r\nContent-Disposition: form-data; name=\"attfile1\"; filename=\"a\"\r\n\r\nhalf",
    );
    assert_eq!((cut.status, cut.error().contains("ends in the middle of part 1")), (StatusCode::BAD_REQUEST, true));
    assert!(desk.store.books().unwrap().iter().all(|info| info.entries == 0));
    assert_eq!(std::fs::read_dir(desk.dir.path().join("attachments/incoming")).unwrap().count(), 0, "no upload is left");
    // A URL-encoded form, as scripts send it.
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(desk.ask(Method::POST, "/Shift/?cmd=Submit", &kind, b"Author=Zoe+Q&Text=a%26b").id(), 1);
    assert_eq!((said(&entry(&desk, 1), "Author").as_str(), entry(&desk, 1).content.text.as_str()), ("Zoe Q", "a&b"));
}

#[test]
fn a_size_that_the_configuration_says_is_kept_to() {
    let desk = Desk::new("[b]\nAttributes = Author\nMax content length = 1000\n");
    let big = vec![b'x'; 2000];
    let answer = desk.post("/b/", &[("cmd", None, b"Submit"), ("attfile1", Some("a"), &big)]);
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", answer.text());
    assert_eq!(std::fs::read_dir(desk.dir.path().join("attachments/incoming")).unwrap().count(), 0);
}

#[test]
fn browsers_forms_of_every_kind() {
    let mut desk = Desk::new(CFG);
    desk.headers = vec![("accept-language", "en".to_owned()), ("sec-fetch-site", "same-origin".to_owned())];
    let token = csrf::token(&desk.site, &desk.caller, None);
    let token = token.as_str();
    let new = [
        (csrf::FIELD, token),
        ("cmd", "Submit"),
        ("Author", "Zoe"),
        ("Type", "Problem"),
        ("System_0", "RICH1"),
        ("System_2", "new system"),
        ("y4", "2008"),
        ("m4", "9"),
        ("d4", "10"),
        ("When", "2008-09-10T00:20"),
        ("Done", "1"),
        ("Subject", "HV"),
        ("encoding", "HTML"),
        ("Text", "<b>x</b>\r\n"),
    ];
    let id = desk.fields("/Shift/", &new).id();
    let first = entry(&desk, id);
    for (name, value) in [
        ("System", "RICH1 | new system"),
        ("Day", "1221048000"),
        ("When", "1221006000"),
        ("Done", "1"),
        ("Subject", "[Problem] HV"),
    ] {
        assert_eq!(said(&first, name), value, "{name}");
    }
    assert!(desk.store.book("Shift").unwrap().attribute("System").unwrap().options.contains(&"new system".to_owned()));
    // A browser sends no boxes that are not ticked: in a form of ours, a missing box means no.
    let edit = [
        (csrf::FIELD, token),
        ("cmd", "Submit"),
        ("edit_id", "1"),
        ("entry_revision", "0"),
        ("Type", "Problem"),
        ("When", ""),
        ("Subject", "HV"),
        ("Text", "y"),
    ];
    assert_eq!(desk.fields("/Shift/", &edit).id(), 1);
    let changed = entry(&desk, id);
    for (name, value) in [("System", ""), ("Done", "0"), ("When", ""), ("Author", "Zoe"), ("Day", "1221048000")] {
        assert_eq!(said(&changed, name), value, "{name}");
    }
    assert_eq!(changed.content.encoding, Encoding::Html);
    // Another user saved first.
    let late = desk.fields("/Shift/", &edit);
    assert_eq!((late.status, late.error().contains("changed by somebody else")), (StatusCode::CONFLICT, true));
    assert_eq!(entry(&desk, id).revision, 1);

    // A draft is kept under a number, and is deleted when it becomes an entry.
    let draft =
        [(csrf::FIELD, token), ("cmd", "Submit"), ("draft", "1"), ("Subject", "begun"), ("Run_number", "not yet a number")];
    let kept = desk.fields("/Shift/", &draft).text();
    let number = kept.strip_prefix("OK ").unwrap().to_owned();
    assert_eq!(desk.fields("/Shift/", &[&draft[..], &[("draft_id", &number)]].concat()).text(), kept);
    assert_eq!(desk.store.drafts("zoe").unwrap().len(), 1);
    let done = [(csrf::FIELD, token), ("cmd", "Submit"), ("Author", "Zoe"), ("draft_id", &number)];
    assert_eq!(desk.fields("/Shift/", &done).id(), 2);
    assert_eq!(desk.store.drafts("zoe").unwrap(), []);

    // The entry is sent again as a new one.
    let again = [(csrf::FIELD, token), ("cmd", "Submit"), ("edit_id", "2"), ("resubmit", "1"), ("Author", "Zoe"), ("Text", "z")];
    assert_eq!(desk.fields("/Shift/", &again).id(), 3);
    assert!(matches!(desk.store.entry(&EntryRef::new("Shift", 2)), Err(StoreError::Gone(_))));
    assert!(entry(&desk, 3).date > first.date);
}

#[test]
fn copies_and_moves_take_the_thread_along() {
    let desk = Desk::new(CFG);
    let post = |fields: &[(&str, &str)]| {
        desk.fields("/Shift/", &[&[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x"), ("Type", "Routine")], fields].concat())
            .id()
    };
    assert_eq!((post(&[]), post(&[("reply_to", "1")]), post(&[("reply_to", "2")])), (1, 2, 3));
    assert!(desk.get("/Shift/2?cmd=Copy+to").text().contains("<option>Other</option>"));
    assert!(desk.get("/Shift/2?cmd=Move+to").text().contains("name=\"destm\""));
    let copied = desk.get("/Shift/2?cmd=Copy+to&destc=Other");
    assert_eq!((copied.location(), copied.id()), ("http://elog.site:8080/Other/1", 1));
    let copy = desk.store.entry(&EntryRef::new("Other", 2)).unwrap();
    assert_eq!((copy.parent, said(&copy, "Type").as_str()), (Some(1), "Routine"), "attributes that the target does not have too");
    assert_eq!(desk.get("/Shift/1?cmd=Move+to&destm=Other").location(), "http://elog.site:8080/Other/3");
    assert_eq!(desk.store.books().unwrap().iter().map(|info| info.entries).collect::<Vec<_>>(), [5, 0]);
    assert!(desk.get("/Other/3?cmd=Move+to&destm=None").error().contains("not defined"));
    assert!(desk.get("/Shift/1?cmd=Delete&confirm=Yes").error().contains("deleted"));
}

#[test]
fn an_entry_that_somebody_holds_is_not_doubled() {
    let mut desk = Desk::new("[Shift]\nAttributes = Author\nUse lock = 1\n");
    let at = EntryRef::new("Shift", 1);
    assert_eq!(desk.fields("/Shift/", &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")]).id(), 1);
    let entries = |desk: &Desk| desk.store.books().unwrap()[0].entries;
    let again = [("cmd", "Submit"), ("edit_id", "1"), ("resubmit", "1"), ("Text", "y")];
    desk.store.lock(&at, "max", "pc7", std::time::Duration::from_secs(60)).unwrap();
    assert!(desk.fields("/Shift/", &again).error().contains("being edited by max on pc7"));
    let old = desk.fields("/Shift/", &[&again[..], &[("entry_revision", "7"), ("skiplock", "1")]].concat());
    assert_eq!((old.status, entries(&desk)), (StatusCode::CONFLICT, 1));
    // A failed edit does not take another user's lock.
    let edit = [("cmd", "Submit"), ("edit_id", "1"), ("skiplock", "1"), ("Author", "Zoe")];
    let bad = desk.fields("/Shift/", &[&edit[..], &[("entry_revision", "7")]].concat());
    assert_eq!((bad.status, desk.store.locked(&at).unwrap().unwrap().by.as_str()), (StatusCode::CONFLICT, "max"));
    assert_eq!(desk.fields("/Shift/", &[&again[..], &[("skiplock", "1")]].concat()).id(), 2);
    assert_eq!(entries(&desk), 1);
    // A guest's own lock does not block the guest, and leaving the form releases it.
    desk.caller = caller("", &ALL, &["Shift"]);
    let at = EntryRef::new("Shift", 2);
    for leave in
        [[("cmd", "Submit"), ("edit_id", "2"), ("Text", "by a guest")], [("cmd", "Back"), ("edit_id", "2"), ("Text", "")]]
    {
        let form = desk.get("/Shift/2?cmd=Edit").text();
        assert!(form.contains("value=\"Back\""));
        let key = form.split_once("name=\"lock_key\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
        assert_eq!(desk.store.locked(&at).unwrap().unwrap().by, format!("(guest) {key}"));
        // Another guest counts as another user.
        let other = desk.get("/Shift/2?cmd=Edit").error();
        assert!(other.starts_with("Entry is currently edited by (guest) on 127.0.0.1"), "{other}");
        for foreign in [&[][..], &[("lock_key", "0123456789ab")]] {
            let refused = desk.fields("/Shift/", &[&leave[..], foreign].concat());
            assert_eq!(refused.status == StatusCode::FOUND, leave[0].1 == "Back", "{foreign:?}");
            assert!(desk.store.locked(&at).unwrap().is_some(), "{leave:?}");
        }
        assert_eq!(desk.fields("/Shift/", &[&leave[..], &[("lock_key", &key)]].concat()).id(), 2);
        assert!(desk.store.locked(&at).unwrap().is_none(), "{leave:?}");
    }
    assert_eq!(entry(&desk, 2).content.text, "by a guest");
}

#[test]
fn what_two_programs_change_at_once_is_all_there() {
    let desk = Desk::new("[Shift]\nAttributes = Author, A, B\n");
    assert_eq!(desk.fields("/Shift/", &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")]).id(), 1);
    std::thread::scope(|scope| {
        for name in ["A", "B"] {
            let desk = &desk;
            scope.spawn(move || {
                for nth in 0..60 {
                    let value = nth.to_string();
                    let edit = [("cmd", "Submit"), ("edit_id", "1"), (name, value.as_str())];
                    while desk.fields("/Shift/", &edit).status == StatusCode::CONFLICT {}
                    assert_eq!(said(&entry(desk, 1), name), value);
                }
            });
        }
    });
    assert_eq!((said(&entry(&desk, 1), "A"), said(&entry(&desk, 1), "B")), ("59".to_owned(), "59".to_owned()));
}

#[test]
fn an_imported_entry_is_its_authors() {
    let mut desk = Desk::new("[Shift]\nAttributes = Author\n");
    for (login, full_name) in [("kim", "Kim Quartz"), ("max", "Max Sand")] {
        let user = User { full_name: full_name.to_owned(), ..User::new(login) };
        desk.store.put_record("user", login, &serde_json::to_value(user).unwrap(), Some(0)).unwrap();
    }
    let content = Content { attributes: vec![EntryAttribute::new("Author", "Kim Quartz")], ..Content::default() };
    desk.store.post(NewEntry { book: "Shift".to_owned(), content, ..NewEntry::default() }, vec![], "import-elog").unwrap();
    let edit = [("cmd", "Submit"), ("edit_id", "1"), ("Text", "y")];
    for (login, full_name, good) in [("max", "Max Sand", false), ("kim", "Kim Quartz", true)] {
        desk.caller = caller(login, &[Right::Read, Right::Write, Right::EditOwn], &["Shift"]);
        desk.caller.full_name = full_name.to_owned();
        let status = desk.fields("/Shift/", &edit).status;
        assert_eq!(status, if good { StatusCode::FOUND } else { StatusCode::FORBIDDEN }, "{login}");
    }
    assert_eq!(entry(&desk, 1).content.text, "y");
}

#[test]
fn numbers_are_given_in_turn() {
    let desk = Desk::new(CFG);
    let new = [("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")];
    for expected in ["N-001", "N-002", "N-003"] {
        let id = desk.fields("/Other/", &new).id();
        assert_eq!(said(&desk.store.entry(&EntryRef::new("Other", id)).unwrap(), "Subject"), expected);
    }
}

#[test]
fn a_formula_is_text_in_a_table_and_comes_back_as_it_was() {
    let mut desk = Desk::new("[A]\nAttributes = Author, Level\n[B]\nAttributes = Author, Level\n");
    let formula = "=HYPERLINK(\"http://x\")";
    desk.fields("/A/", &[("cmd", "Submit"), ("Author", formula), ("Level", "-1.5"), ("Text", "@SUM(A1)")]).id();
    let table = desk.get("/A/?mode=CSV3");
    assert!(table.text().ends_with("\"'=HYPERLINK(\"\"http://x\"\")\";\"-1.5\";\"'@SUM(A1)\"\r\n"), "{}", table.text());
    let done = desk.post("/B/", &[("cmd", None, b"CSV Import"), ("csvfile", Some("x"), &table.bytes)]);
    assert!(done.text().contains("1 entries imported"), "{}", done.text());
    let read = desk.store.entry(&EntryRef::new("B", 1)).unwrap();
    assert_eq!((said(&read, "Author").as_str(), read.content.text.as_str()), (formula, "@SUM(A1)"));
    desk.site = Site::new(desk.store.clone(), SiteConfig { raw_csv: true, ..SiteConfig::default() });
    let raw = desk.get("/A/?mode=CSV3").text();
    assert!(raw.ends_with("\"=HYPERLINK(\"\"http://x\"\")\";\"-1.5\";\"@SUM(A1)\"\r\n"), "{raw}");
}

#[test]
fn exports_of_elog_come_back() {
    let desk = Desk::new(
        "[A]\nAttributes = Author, Run number, When\nType When = datetime\n[B]\nAttributes = Author, Run number, When\nType When = datetime\nRequired Attributes = Author\n",
    );
    let post = |fields: &[(&str, &str)]| {
        desk.fields(
            "/A/",
            &[&[("cmd", "Submit"), ("Author", "Zoe \"Q\", x"), ("Run_number", "7"), ("When", "1221000000")], fields].concat(),
        )
        .id()
    };
    post(&[("Text", "one;\n<b>"), ("encoding", "HTML")]);
    post(&[("reply_to", "1"), ("Text", "two")]);
    for (mode, cmd, field) in [("CSV3", "CSV Import", "csvfile"), ("XML", "XML Import", "xmlfile")] {
        assert!(desk.get(&format!("/B/?cmd={}", cmd.replace(' ', "+"))).text().contains(field), "{cmd}");
        let file = desk.get(&format!("/A/?mode={mode}&reverse=0")).bytes;
        let done = desk.post("/B/", &[("cmd", None, cmd.as_bytes()), (field, Some("export"), &file)]);
        assert!(done.text().contains("2 entries imported"), "{}", done.text());
    }
    let read = |id| desk.store.entry(&EntryRef::new("B", id)).unwrap();
    for id in [1, 3] {
        assert_eq!(
            (said(&read(id), "Author").as_str(), said(&read(id), "Run number").as_str(), read(id).content.text.as_str()),
            ("Zoe \"Q\", x", "7", "one;\n<b>")
        );
    }
    assert_eq!(
        (read(3).content.encoding, said(&read(3), "When").as_str(), read(4).parent),
        (Encoding::Html, "1221000000", Some(3))
    );
    let source = desk.store.entry(&EntryRef::new("A", 1)).unwrap();
    assert_eq!(read(3).date.0 / 1_000_000_000, source.date.0 / 1_000_000_000);
    // A file with a wrong line changes nothing.
    let bad =
        desk.post("/B/", &[("cmd", None, b"CSV Import"), ("csvfile", Some("x"), b"Author,When\nZoe,\n,\nMax,\nZoe,soon\n")]);
    assert!(bad.error().contains("Entry 3 of the file: Error: Attribute <b>When</b> must be a date"), "{}", bad.error());
    assert_eq!(desk.store.books().unwrap()[1].entries, 4);
    // A file whose last entry the store would reject changes nothing, either.
    let import = |text: &str| desk.post("/B/", &[("cmd", None, b"CSV Import"), ("csvfile", Some("x"), text.as_bytes())]);
    let ahead = import("Author,Date\nZoe,\nMax,Wed  10 Sep 2098 00:40:00 +0200\n");
    assert!(ahead.error().contains("Entry 2 of the file: Error: its date is more than a day ahead"), "{}", ahead.error());
    // An invalid date is not replaced by the current time.
    let soon = import("Author,Date\nZoe,\nMax,some day in 2008\n");
    let told = "Entry 2 of the file: Error: its date &quot;some day in 2008&quot; cannot be read. Nothing was imported.";
    assert!(soon.error().contains(told), "{}", soon.error());
    let list = b"<ELOG_LIST><ENTRY><DATE>soon</DATE><Author>Zoe</Author></ENTRY></ELOG_LIST>";
    let soon = desk.post("/B/", &[("cmd", None, b"XML Import"), ("xmlfile", Some("x"), list)]);
    assert!(soon.error().contains("Entry 1 of the file: Error: its date &quot;soon&quot; cannot be read"), "{}", soon.error());
    assert_eq!(desk.store.books().unwrap()[1].entries, 4);
}

#[test]
fn what_can_be_chosen_follows_from_what_was_chosen() {
    let desk = Desk::new(
        "[b]\nAttributes = Type, Sub, Author\nOptions Type = Hard{h}, Soft{s}\nOptions Sub = Other\n{h}Options Sub = Crate, Cable\n\
        {s}Options Sub = Crash\n{h}Required Attributes = Sub\n",
    );
    let tries = |kind: &str, sub: &str| desk.fields("/b/", &[("cmd", "Submit"), ("Type", kind), ("Sub", sub), ("Text", "x")]);
    assert_eq!(
        (tries("Hard", "crate").id(), tries("Soft{s}", "Crash").id(), tries("", "Other").id(), tries("Soft", "").id()),
        (1, 2, 3, 4)
    );
    assert_eq!(said(&desk.store.entry(&EntryRef::new("b", 1)).unwrap(), "Sub"), "Crate");
    assert_eq!(said(&desk.store.entry(&EntryRef::new("b", 2)).unwrap(), "Type"), "Soft");
    assert!(tries("Hard", "Crash").error().contains("option <b>Crash</b> not existing"));
    assert!(tries("Hard", "").error().contains("Attribute <b>Sub</b> not supplied"));
}
