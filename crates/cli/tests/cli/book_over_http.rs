//! `tampu book` of another computer: all it knows is an address and a token.

use std::fs;

use serde_json::Value;

use crate::site::{Hub, Said, Site};

/// A hub's logbook, and somebody elsewhere who has a token for it.
struct Far {
    site: Site,
    _hub: Hub,
    elsewhere: Site,
    url: String,
    token: String,
}

impl Far {
    fn new() -> Far {
        let (site, elsewhere) = (Site::new(), Site::new());
        let hub = site.hub(&[]);
        let text = fs::read_to_string(site.path("run/local/book.json")).unwrap();
        let place: Value = serde_json::from_str(&text).unwrap();
        let said = |name: &str| place[name].as_str().unwrap().to_owned();
        Far { site, _hub: hub, elsewhere, url: said("url"), token: said("token") }
    }

    /// A command there.
    fn book(&self, arguments: &[&str]) -> Said {
        let all = [&["book", "--hub", &self.url, "--token", &self.token], arguments].concat();
        self.elsewhere.tampu_without("TAMPU_DATA_DIR", b"", &all)
    }

    fn with_entries() -> Far {
        let far = Far::new();
        far.book(&["make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem", "-a", "Subject"]).ok();
        far.book(&["make", "Archive", "-a", "Author"]).ok();
        let plot = far.elsewhere.file("trend plot.png", "not really a picture");
        let post = ["post", "Shift", "-a", "Author=Zoe", "-a", "Type=Problem", "-t", "MAG-01 **tripped**", "--attachment", &plot];
        assert_eq!(far.book(&post).ok().out, "Shift/1\n");
        far.book(&["reply", "Shift/1", "-a", "Author=Max", "-a", "Subject=a, b", "-t", "the fuse"]).ok();
        far.book(&["post", "Archive", "-a", "Author=Ann", "-t", "old"]).ok();
        far
    }
}

#[test]
fn what_is_found_becomes_a_file_elsewhere() {
    let far = Far::with_entries();
    let csv = far.book(&["export", "--format", "csv", "--book", "Shift", "--sort", "-id"]).ok().out;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].contains("Author") && lines[1].contains("\"a, b\"") && lines[2].contains("trend plot.png"), "{csv}");
    assert_eq!(lines.len(), 3, "{csv}");
    let json = far.book(&["export", "--format", "json", "MAG-01"]).ok().json();
    assert_eq!((json.len(), &json[0]["text"]), (1, &"MAG-01 **tripped**".into()));
    far.book(&["export", "--format", "markdown", "-o", "out.md"]).ok();
    let markdown = fs::read_to_string(far.elsewhere.path("out.md")).unwrap();
    assert!(markdown.contains("the fuse") && markdown.contains("## Archive/1"), "{markdown}");
    // The output is the same as on the logbooks' host.
    assert_eq!(far.site.tampu(&["book", "export", "--format", "markdown"]).ok().out, markdown);

    far.book(&["export", "--format", "elog", "-o", "back"]).ok();
    assert!(far.elsewhere.path("back/elogd.cfg").exists());
    let said = far.book(&["export-elog", "-o", "again", "--book", "Shift", "--json"]).ok().json();
    assert_eq!((&said[0]["entries"], &said[0]["attachments"]), (&2.into(), &1.into()));
    let [year] = &fs::read_dir(far.elsewhere.path("again/logbooks/Shift")).unwrap().collect::<Vec<_>>()[..] else { panic!() };
    let names = fs::read_dir(year.as_ref().unwrap().path()).unwrap().map(|file| file.unwrap().path());
    let picture = names.into_iter().find(|name| name.to_string_lossy().ends_with("trend_plot.png")).unwrap();
    assert_eq!(fs::read(picture).unwrap(), b"not really a picture");

    far.book(&["export", "--format", "html", "-o", "pages"]).ok();
    let plot = far.elsewhere.path("pages/Shift/files/1/trend plot.png");
    assert_eq!(fs::read(plot).unwrap(), b"not really a picture");

    for (arguments, code, named) in [
        (&["export", "--format", "csv", "/(/"][..], 1, "invalid query"),
        (&["export", "--format", "csv", "--book", "Nope"], 1, "Nope"),
        (&["export", "--format", "elog", "-o", "back"], 1, "not empty"),
        (&["export-elog", "-o", "third", "--book", "Nope"], 1, "Nope"),
        (&["export", "--format", "pdf"], 2, "--output FILE.pdf"),
        (&["export", "--format", "csv", "--thread"], 2, "are for --format pdf"),
        (&["export", "--format", "pdf", "-o", "a.pdf", "--layout", "x.typ"], 2, "pdf_layout"),
    ] {
        let said = far.book(arguments);
        assert!(said.code == code && said.err.contains(named), "{arguments:?}: {said:?}");
    }
}

#[test]
fn the_logbooks_are_checked_from_elsewhere() {
    let far = Far::with_entries();
    assert_eq!(far.book(&["check"]).ok().out, "everything is as it should be\n");
    let mut files = vec![far.site.path("data/local/book/attachments")];
    let blob = loop {
        let next = files.pop().expect("a blob");
        match next.is_dir() {
            true => files.extend(fs::read_dir(next).unwrap().map(|one| one.unwrap().path())),
            false if next.file_name().is_some_and(|name| name.len() == 62) => break next,
            false => {}
        }
    };
    fs::write(blob, "something else").unwrap();
    let said = far.book(&["check"]);
    assert!(said.code == 1 && said.out.contains("its bytes do not match its SHA-256"), "{said:?}");
    assert!(said.err.contains("1 fault found"), "{said:?}");
    let faults = far.book(&["check", "--json"]).json();
    assert_eq!(faults[0]["faults"].as_array().unwrap().len(), 1);

    // These commands are for the site's administrator.
    far.elsewhere
        .tampu_reading(b"correct horse\n", &["book", "users", "add", "zoe", "--hub", &far.url, "--token", &far.token])
        .ok();
    let token = far.book(&["users", "token", "make", "zoe"]).ok().out;
    let said = far.elsewhere.tampu(&["book", "check", "--hub", &far.url, "--token", token.trim()]);
    assert!(said.code == 1 && said.err.contains("needs an administrator of the site"), "{said:?}");
}

#[test]
fn what_is_only_done_beside_the_data_says_so() {
    let far = Far::new();
    fs::create_dir_all(far.elsewhere.path("logbooks")).unwrap();
    let passwords = far.elsewhere.file("passwd", "<list></list>");
    for arguments in [&["backup", "-o", "copy"][..], &["import-elog", "logbooks"], &["users", "import-elog", &passwords]] {
        let said = far.book(arguments);
        assert!(
            said.code == 2 && said.err.contains("not over HTTP") && said.err.contains("--data DIR"),
            "{arguments:?}: {said:?}"
        );
    }
    assert!(!far.elsewhere.path("copy").exists() && !far.elsewhere.path("data").exists());
    // The environment can hold the address, as for any hub.
    let mut command = far.elsewhere.command(&["book", "list"]);
    let listed = command.env("TAMPU_HUB", &far.url).env("TAMPU_BOOK_TOKEN", &far.token).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}
