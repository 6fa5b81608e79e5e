//! `tampu book`: a person and a script at the logbooks of a data directory.

use std::os::unix::fs::PermissionsExt;

use crate::site::{Said, Site};

fn book(site: &Site, arguments: &[&str]) -> Said {
    site.tampu(&[&["book"], arguments].concat())
}

fn shift(site: &Site) {
    let make = ["make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem", "-a", "Subject", "--required", "Author"];
    book(site, &make).ok();
}

#[test]
fn entries_are_posted_answered_edited_shown_and_found() {
    let site = Site::new();
    shift(&site);
    let plot = site.file("trend plot.png", "not really a picture");
    let post = [
        "post",
        "Shift",
        "-a",
        "Author=Zoe",
        "-a",
        "type=Problem",
        "-t",
        "LHC:MAG-01/cur **tripped**",
        "--attachment",
        &plot,
        "--link",
        "run:80123",
    ];
    assert_eq!(book(&site, &post).ok().out, "Shift/1\n");
    let reply = site.tampu_reading(b"It was the fuse.\n", &["book", "reply", "Shift/1", "-a", "Author=Max", "--json"]).ok();
    assert_eq!(reply.json()[0]["id"], 2);
    let edited = book(&site, &["edit", "shift/1", "-a", "Type=Routine", "--author", "zoe", "--json"]).ok().json();
    assert_eq!((&edited[0]["book"], &edited[0]["revision"]), (&"Shift".into(), &1.into()));
    let late = book(&site, &["edit", "Shift/1", "-t", "mine", "--revision", "0"]);
    assert!(late.code == 1 && late.err.contains("changed by another user"), "{late:?}");

    let shown = book(&site, &["show", "Shift/1", "--output", "files"]).ok();
    for part in ["Shift/1", "Type: Routine", "-> run:80123", "[trend plot.png, 20 bytes]", "LHC:MAG-01/cur **tripped**"] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    assert_eq!(std::fs::read(site.path("files/trend plot.png")).unwrap(), b"not really a picture");
    assert!(book(&site, &["show", "Shift/1", "--html"]).ok().out.contains("<strong>tripped</strong>"));
    let thread = book(&site, &["show", "Shift/2", "--thread", "--json"]).ok().json();
    assert_eq!((thread.len(), &thread[1]["text"], &thread[1]["parent"]), (2, &"It was the fuse.\n".into(), &1.into()));
    for line in book(&site, &["show", "Shift/1", "--revisions"]).ok().out.lines().filter(|line| line.starts_with("revision ")) {
        assert!(line.contains(" UTC  "), "{line}");
    }
    let history = book(&site, &["show", "Shift/1", "--revisions", "--json"]).ok().json();
    assert_eq!((history.len(), &history[0]["what"], &history[1]["by"]), (2, &"posted".into(), &"zoe".into()));

    let found = book(&site, &["search", "MAG-01", "has:attachment"]).ok();
    assert!(found.out.starts_with("Shift/1  ") && found.err.contains("1 found"), "{found:?}");
    assert_eq!(book(&site, &["search", "fuse", "--json"]).ok().json()[0]["entry"]["id"], 2);
    assert_eq!(book(&site, &["search", "--count"]).ok().out, "2\n");
    let first = book(&site, &["search", "-n", "1", "--sort", "Author", "--json"]).ok();
    assert_eq!(first.json()[0]["entry"]["id"], 2);
    let place = first.err.split("--after ").nth(1).unwrap().trim();
    let second = book(&site, &["search", "-n", "1", "--sort", "Author", "--after", place, "--json"]).ok();
    assert_eq!(second.json()[0]["entry"]["id"], 1);
    let list = book(&site, &["list", "--json"]).ok().json();
    assert_eq!((&list[0]["name"], &list[0]["entries"]), (&"Shift".into(), &2.into()));

    book(&site, &["make", "Archive"]).ok();
    assert_eq!(book(&site, &["copy", "Shift/2", "archive", "--author", "max"]).ok().out, "Archive/1\n");
    assert_eq!(book(&site, &["move", "Archive/1", "Shift"]).ok().out, "Shift/3\n");
    assert_eq!(book(&site, &["delete", "Shift/3"]).ok().out, "1 entry deleted\n");
    let gone = book(&site, &["show", "Archive/1"]);
    assert!(gone.code == 1 && gone.err.contains("was moved to Shift/3"), "{gone:?}");

    assert_eq!(book(&site, &["delete", "Archive"]).code, 2, "a logbook is not deleted without a question");
    assert!(book(&site, &["rename", "Archive", "shift"]).err.contains("there is a logbook 'Shift' already"));
    book(&site, &["rename", "Archive", "Old runs"]).ok();
    assert!(book(&site, &["show", "Old runs/1"]).err.contains("was moved to Shift/3"));
    assert!(book(&site, &["delete", "Old runs", "--yes"]).ok().err.contains("tampu book undelete"));
    assert!(book(&site, &["delete", "--list"]).ok().out.contains("Old runs: 0 entries, deleted"));
    assert!(book(&site, &["delete", "--list", "--replies"]).code == 2 && book(&site, &["undelete", "x"]).code == 1);
    book(&site, &["undelete", "old runs", "--as", "Archive"]).ok();
    assert_eq!(book(&site, &["list", "--json"]).ok().json()[0]["name"], "Archive");
    book(&site, &["delete", "Archive", "--yes"]).ok();
    assert_eq!(book(&site, &["purge", "Archive", "--reason", "a test"]).code, 2);
    assert!(book(&site, &["purge", "Archive", "--reason", "a test", "--yes"]).ok().out.contains("removed for good"));
    assert!(
        book(&site, &["undelete", "Archive"]).err.contains("no deleted logbook")
            || book(&site, &["undelete", "2"]).err.contains("was purged")
    );

    let copy = site.path("copy/local/book");
    assert!(book(&site, &["backup", "-o", copy.to_str().unwrap()]).ok().err.contains("tampu book list --data"));
    assert_eq!(book(&site, &["search", "fuse", "--count", "--data", copy.to_str().unwrap()]).ok().out, "1\n");
    let other = book(&site, &["list", "--domain", "alma"]);
    assert!(other.code == 2 && other.err.contains("other domains: local"), "{other:?}");
    let copy = site.path("copy");
    assert!(book(&site, &["check", "--data", copy.to_str().unwrap()]).ok().out.contains("everything is as it should be"));
    assert_eq!(book(&site, &["search", "fuse", "--count", "--data", copy.to_str().unwrap()]).ok().out, "1\n");
}

#[test]
fn the_options_of_an_elogd_cfg_are_checked_without_a_logbook() {
    let site = Site::new();
    let good = site.file("good.cfg", "[global]\nport = 8080\n[Shift]\nReverse sort = 1\nExecute new = x\n");
    let said = book(&site, &["config", "check", &good]).ok();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines[0], "line 2 [global] port: replaced: `tampu up --elog-listen HOST:PORT`");
    assert_eq!(lines[1], "line 4 [Shift] Reverse sort: honoured");
    assert!(lines[2].starts_with("line 5 [Shift] Execute new: not applicable: a page never starts a program"), "{said:?}");
    assert_eq!(lines[3..], ["3 options: 1 honoured, 1 replaced, 1 not applicable, 0 unknown"]);
    let bad = site.file("bad.cfg", "[Shift]\nReverse srot = 1\n");
    let said = book(&site, &["config", "check", &bad, "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let found = &said.json()[0];
    assert_eq!((&found["unknown"], &found["options"][0]["remark"]), (&1.into(), &"did you mean `Reverse sort`?".into()));
    assert!(!site.path("data").exists(), "a check makes no logbook");
}

#[test]
fn elogs_files_are_taken_over_and_back() {
    let site = Site::new();
    std::fs::create_dir_all(site.path("elog/Shift/2008")).unwrap();
    let entry = "$@MID@$: 7\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nAuthor: Zoe\nAttachment: \nEncoding: plain\n\
        ========================================\nthe HV tripped\n";
    site.file("elog/Shift/2008/080910a.log", format!("junk\n{entry}"));
    let config = site.file("elogd.cfg", "[global]\nport = 8080\n[Shift]\nAttributes = Author\nLanguage = german\n");
    let import = ["import-elog", "elog", "--elog-config", &config];
    let said = book(&site, &import).ok();
    assert!(said.out.contains("Shift: 1 entry, 1 new"), "{said:?}");
    assert!(said.err.contains("the logbooks are in") && said.err.contains("data/local/book, domain 'local'"), "{said:?}");
    assert!(
        said.err.contains("bytes before the first entry")
            && said.err.contains("[global] port: replaced: `tampu up --elog-listen"),
        "{said:?}"
    );
    assert!(book(&site, &import).ok().out.contains("0 new, 0 changed, 1 as they were"));
    assert_eq!(book(&site, &["search", "tripped", "--json"]).ok().json()[0]["entry"]["id"], 7);
    book(&site, &["export-elog", "-o", "back"]).ok();
    assert_eq!(std::fs::read_to_string(site.path("back/logbooks/Shift/2008/080910a.log")).unwrap(), entry);
    let again = book(&site, &["export-elog", "-o", "back"]);
    assert!(again.code == 1 && again.err.contains("not empty"), "{again:?}");

    // With users, elogd's password file is written for its owner alone.
    site.tampu_reading(b"correct horse\n", &["book", "users", "add", "zoe", "--admin"]).ok();
    let with_users = book(&site, &["export-elog", "-o", "users"]).ok();
    assert!(with_users.err.contains("1 of 1 users have no password that elogd can check"), "{with_users:?}");
    let passwords = site.path("users/passwd");
    assert!(std::fs::read_to_string(&passwords).unwrap().contains("<name>zoe</name>"));
    assert_eq!(std::fs::metadata(&passwords).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(site.path("users/elogd.cfg")).unwrap().contains("Admin user = zoe"));
}

#[test]
fn a_text_can_begin_with_a_hyphen() {
    let site = Site::new();
    shift(&site);
    book(&site, &["post", "Shift", "-a", "Author=Zoe", "-a", "Type=Routine", "-t", "- [ ] read the gauges"]).ok();
    assert!(book(&site, &["show", "Shift/1"]).ok().out.contains("- [ ] read the gauges"));
}

#[test]
fn an_edit_leaves_standard_input_to_others() {
    let site = Site::new();
    shift(&site);
    book(&site, &["post", "Shift", "-a", "Author=Zoe", "-t", "as it was"]).ok();
    site.tampu_reading(b"Shift/2\nShift/3\n", &["book", "edit", "Shift/1", "-a", "Type=Routine"]).ok();
    assert_eq!(book(&site, &["show", "Shift/1", "--json"]).ok().json()[0]["text"], "as it was");
    site.tampu_reading(b"read", &["book", "edit", "Shift/1", "-t", "-"]).ok();
    assert_eq!(book(&site, &["show", "Shift/1", "--json"]).ok().json()[0]["text"], "read");
}

#[test]
fn templates_exports_and_summaries() {
    let site = Site::new();
    shift(&site);
    let save =
        ["template", "save", "Shift", "Begin", "-a", "Author={author}", "-a", "Type=Routine", "-t", "# Run {run} of {book}"];
    book(&site, &save).ok();
    assert_eq!(book(&site, &["template", "list", "shift"]).ok().out, "begin\n");
    book(&site, &["post", "Shift", "--template", "begin", "--set", "run=7", "--author", "zoe"]).ok();
    let posted = book(&site, &["show", "Shift/1", "--json"]).ok().json();
    assert_eq!((&posted[0]["text"], &posted[0]["attributes"][0]["values"][0]), (&"# Run 7 of Shift".into(), &"zoe".into()));
    assert_eq!(book(&site, &["post", "Shift", "--template", "nope"]).code, 1);
    book(&site, &["template", "drop", "Shift", "begin"]).ok();
    book(&site, &["post", "Shift", "-a", "Author=Max", "-a", "Type=Problem", "-a", "Subject=a *star*", "-t", "it tripped"]).ok();

    let csv = book(&site, &["export", "type:=Problem", "--format", "csv"]).ok().out;
    assert!(csv.lines().count() == 2 && csv.contains("a *star*"), "{csv}");
    assert_eq!(book(&site, &["export", "--format", "json"]).ok().json().len(), 2);
    book(&site, &["export", "--format", "markdown", "-o", "out.md"]).ok();
    assert!(std::fs::read_to_string(site.path("out.md")).unwrap().contains("it tripped"));
    book(&site, &["export", "--format", "elog", "-o", "elog"]).ok();
    assert!(site.path("elog/elogd.cfg").exists());
    let said = book(&site, &["export", "--format", "html", "-o", "pages", "--book", "Shift"]).ok();
    assert_eq!(said.out, "1 logbook, 2 entries, 0 attachments\n");
    assert!(std::fs::read_to_string(site.path("pages/Shift/entries/2.html")).unwrap().contains("<p>it tripped</p>"));
    let again = book(&site, &["export", "--format", "html", "-o", "pages"]);
    assert!(again.code == 1 && again.err.contains("not empty"), "{again:?}");
    assert!(book(&site, &["export", "--format", "ical"]).ok().out.contains("a *star*"));
    assert_eq!(book(&site, &["export", "type:=Problem", "--format", "html", "-o", "other"]).code, 2);
    book(&site, &["export", "type:=Problem", "--format", "eln", "-o", "problems.eln"]).ok();
    let import = ["import", "problems.eln", "--book", "Copy"];
    let said = book(&site, &import).ok();
    assert!(said.out.starts_with("Copy: 1 entry, 1 new, 0 changed"), "{said:?}");
    assert!(book(&site, &import).ok().out.contains("0 new, 0 changed, 1 as they were"));
    assert!(book(&site, &["show", "Copy/2"]).ok().out.contains("it tripped"));
    std::fs::write(site.path("logs.json"), "[{\"id\": 1, \"createdDate\": 0, \"owner\": \"zoe\"}, {\"id\": 0}]").unwrap();
    let said = book(&site, &["import", "--format", "olog", "logs.json", "--book", "Olog"]).ok();
    assert!(said.out.contains("1 new") && said.err.contains("logs.json /1: 'id' is not a positive number"), "{said:?}");
    let refused = book(&site, &["import", "logs.json", "--book", "Olog"]);
    assert!(refused.code == 1 && refused.err.contains("no ZIP archive"), "{refused:?}");
    assert_eq!(book(&site, &["export", "--format", "eln"]).code, 2);
    for wrong in [&["export", "--format", "pdf"][..], &["export", "--format", "elog"], &["export", "--format", "csv", "/(/"]] {
        assert_eq!(book(&site, wrong).code, 2, "{wrong:?}");
    }

    // Without a hub, the draft has the entries and names the missing parts.
    let draft = book(&site, &["summary", "--since", "8h", "--book", "Shift"]).ok().out;
    for part in ["## Entries: 2", "**Problem** (1)", "Shift/2: a \\*star\\*", "**Routine** (1)", "Not known: no hub"] {
        assert!(draft.contains(part), "{part} is not in\n{draft}");
    }
    let post = ["summary", "--book", "Shift", "--post", "-a", "Author=Zoe", "--author", "zoe"];
    assert_eq!(book(&site, &post).ok().out, "Shift/3\n");
    assert!(book(&site, &["show", "Shift/3"]).ok().out.contains("## Entries"));
    let late = book(&site, &["search", "/it\\s+tripped/", "--timeout", "0s"]);
    assert!(late.code == 1 && late.err.contains("--timeout"), "{late:?}");
}

#[test]
fn a_template_is_read_from_standard_input() {
    let site = Site::new();
    shift(&site);
    site.tampu_reading(b"# All quiet\n", &["book", "template", "save", "Shift", "quiet", "-a", "Author=Zoe"]).ok();
    site.tampu_reading(b"not read", &["book", "template", "save", "Shift", "said", "-t", "as said"]).ok();
    let listed = book(&site, &["template", "list", "Shift", "--json"]).ok().json();
    let texts: Vec<_> = listed.iter().map(|line| line["template"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["# All quiet\n", "as said"]);
}

#[test]
fn making_a_logbook_again_keeps_what_is_not_named() {
    let site = Site::new();
    let made = book(&site, &["make", "Shift", "-a", "Author", "-a", "Type=A,B", "--required", "Author"]).ok();
    assert!(made.err.contains("made 'Shift'"), "{made:?}");
    let said = book(&site, &["make", "shift", "-a", "type=A,B,C", "-a", "Run"]).ok();
    assert!(said.err.contains("changed 'Shift': new Run; other than before Type"), "{said:?}");
    let known = |site: &Site| book(site, &["list", "--json"]).ok().json()[0]["attributes"].clone();
    let is = known(&site);
    assert_eq!((&is[0]["name"], &is[0]["required"]), (&"Author".into(), &true.into()));
    assert_eq!((&is[1]["name"], is[1]["options"].as_array().unwrap().len(), &is[2]["name"]), (&"Type".into(), 3, &"Run".into()));
    assert!(book(&site, &["make", "Shift"]).ok().err.contains("is as it was"));
    for (arguments, named) in [
        (&["make", "Shift", "-a", "Author="][..], "write 'Author' alone"),
        (&["make", "Shift", "-a", "Type=A,B,A"], "'A' is there twice"),
        (&["make", "Shift", "-a", "Type=A,,B"], "an option is empty"),
        (&["make", "Shift", "-a", "Type=A", "-a", "type=B"], "'type' is given twice"),
        (&["make", ""], "invalid logbook name"),
    ] {
        let said = book(&site, arguments);
        assert!(said.code == 2 && said.err.contains(named), "{arguments:?}: {said:?}");
    }
    assert_eq!(known(&site), is);
    let said = book(&site, &["make", "Shift", "-a", "Type=A", "--replace"]).ok();
    assert!(said.err.contains("other than before Type; no longer Author, Run"), "{said:?}");
    assert_eq!(known(&site).as_array().unwrap().len(), 1);
}

#[test]
fn a_living_elog_is_followed() {
    use crate::site::Following;
    let site = Site::new();
    std::fs::create_dir_all(site.path("elog/Shift/2008")).unwrap();
    let entry = |id: u32, text: &str| {
        format!(
            "$@MID@$: {id}\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nAuthor: Zoe\nAttachment: \nEncoding: plain\n\
             ========================================\n{text}\n"
        )
    };
    let day = site.file("elog/Shift/2008/080910a.log", entry(7, "first"));
    let config = site.file("elogd.cfg", "[Shift]\nAttributes = Author\n");
    let into = site.path("followed");
    let into = into.to_str().unwrap();
    let arguments = ["book", "follow-elog", "--elog-config", &config, "elog", "--data", into, "--json"];
    let mut following = Following::start(&site, &arguments);
    let mut next = || serde_json::from_str::<serde_json::Value>(&following.lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["imported"]["books"][0]["new"], 1);
    std::fs::write(&day, entry(7, "first") + &entry(8, "second")).unwrap();
    assert_eq!(next()["book"]["new"], 1);
    let found = book(&site, &["search", "second", "--json", "--data", into]).ok().json();
    assert_eq!(found[0]["entry"]["id"], 8);
    std::fs::write(&day, entry(7, "first")).unwrap();
    assert_eq!(next()["book"]["deleted"], 1);
    assert_eq!(book(&site, &["search", "second", "--count", "--data", into]).ok().out, "0\n");
}

#[test]
fn unknown_attributes_are_errors() {
    let site = Site::new();
    shift(&site);
    let post = ["post", "Shift", "-a", "Author=Zoe", "-a", "Bogus=1", "-t", "x"];
    let said = book(&site, &post);
    assert!(said.code == 2 && said.err.contains("no attribute 'Bogus' in 'Shift'"), "{said:?}");
    assert!(said.err.contains("Author, Type, Subject") && said.err.contains("--force"), "{said:?}");
    assert_eq!(book(&site, &[&post[..], &["--force"]].concat()).ok().err, "");
    assert_eq!(book(&site, &["edit", "Shift/1", "-a", "type=Routine"]).ok().err, "");
    assert_eq!(book(&site, &["edit", "Shift/1", "-a", "bogus=2"]).ok().err, "", "the entry has it");
    let said = book(&site, &["search", "--sort", "-Foo"]);
    assert!(said.code == 2 && said.err.contains("no attribute 'Foo'") && said.out.is_empty(), "{said:?}");
    assert!(!book(&site, &["search", "--sort", "author"]).ok().err.contains("attribute"));
    book(&site, &["template", "save", "Shift", "t", "-a", "Author={author}", "-t", "{run} {Beam}"]).ok();
    let said = book(&site, &["post", "Shift", "--template", "t", "--set", "beam=4"]).ok();
    assert!(
        said.err.contains("{run} stays as it is: give its value with --set run=VALUE") && !said.err.contains("Beam"),
        "{said:?}"
    );
}

#[test]
fn what_is_wrong_is_told() {
    let site = Site::new();
    let nowhere = book(&site, &["list"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("tampu book make"), "{nowhere:?}");
    shift(&site);
    for (arguments, code, named) in [
        (&["post", "Shift", "-t", "x"][..], 1, "'Author' needs a value"),
        (&["post", "Nope", "-t", "x"], 1, "no logbook 'Nope'"),
        (&["post", "Shift", "-a", "Author=Z", "-a", "Type=Party", "-t", "x"], 1, "its options are"),
        (&["show", "Shift/9"], 1, "no entry Shift/9"),
        (&["show", "Shift"], 2, "BOOK/NUMBER"),
        (&["search", "/(/"], 2, "invalid query"),
        (&["search", "--after", "x"], 2, "invalid page cursor"),
        (&["post", "Shift", "--link", "ship:7"], 2, "invalid link"),
        (&["import-elog", "missing"], 1, "missing"),
        (&["restore", "missing"], 2, "--data postgres://"),
    ] {
        let said = book(&site, arguments);
        assert_eq!(said.code, code, "{arguments:?}: {said:?}");
        assert!(said.err.contains(named), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_configuration_is_changed_and_restored() {
    for over_http in [false, true] {
        let site = Site::new();
        let hub = over_http.then(|| site.hub(&[]));
        let run = |input: &[u8], arguments: &[&str]| {
            let arguments = [&["book"], arguments].concat();
            if over_http {
                site.tampu_without("TAMPU_DATA_DIR", input, &arguments)
            } else {
                site.tampu_reading(input, &arguments)
            }
        };
        run(b"", &["make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem"]).ok();
        let first = run(b"", &["config", "show", "Shift"]).ok().out;
        assert_eq!(first, "Attributes = Author, Type\nOptions Type = Routine, Problem\n");
        let new = site.file("new.cfg", format!("{first}Reverse sort = 1\n"));
        run(b"", &["config", "edit", "Shift", &new]).ok();
        let fault = run(b"Attributes = Author\nRevers sort = 1\n", &["config", "edit", "Shift", "-"]);
        assert!(fault.code == 1 && fault.err.contains("line 2: ELOG has no option 'Revers sort'"), "{fault:?}");
        let none = run(b"", &["config", "edit", "Shift"]);
        assert!(none.code == 2 && none.err.contains("set EDITOR"), "{none:?}");
        let mut edit = site.command(&["book", "config", "edit", "Shift"]);
        if over_http {
            edit.env_remove("TAMPU_DATA_DIR");
        }
        let edited = edit.env("EDITOR", "sed -i s/Problem/Problem,Fixed/").output().unwrap();
        assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
        assert!(run(b"", &["config", "show", "Shift"]).ok().out.contains("Options Type = Routine, Problem, Fixed\n"));
        let changes = run(b"", &["config", "history", "Shift", "--json"]).ok().json();
        let told: Vec<_> = changes.iter().map(|change| (change["number"].clone(), change["what"].clone())).collect();
        assert_eq!(told, [(3.into(), "changed".into()), (2.into(), "changed".into()), (1.into(), "made".into())]);
        let lines = run(b"", &["config", "history", "Shift", "--change", "3"]).ok().out;
        assert!(lines.contains("- Options Type = Routine, Problem\n+ Options Type = Routine, Problem, Fixed\n"), "{lines}");
        run(b"", &["config", "restore", "Shift", "2", "--before"]).ok();
        assert_eq!(run(b"", &["config", "show", "Shift"]).ok().out, first);
        run(b"", &["config", "restore", "Shift", "3"]).ok();
        assert!(run(b"", &["config", "show", "Shift"]).ok().out.contains("Fixed"));
        assert!(run(b"", &["config", "history", "Shift"]).ok().out.contains("restored before 2"));
        let unknown = run(b"", &["config", "restore", "Shift", "9"]);
        assert!(unknown.code != 0 && unknown.err.contains("no change 9"), "{unknown:?}");
        drop(hub);
    }
}
