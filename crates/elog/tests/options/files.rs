//! Files that the configuration names: images, pages, texts of menus, styles.

use std::{fs, sync::Arc};

use http::StatusCode;
use tampu_elog::{
    import::{ImportSource, import_elog},
    pages::{Site, SiteConfig},
};
use tampu_logbook::{people::Right, store::sqlite::SqliteStore};

use super::{desk::Desk, support::site::TestSite};

const DAY: &str = "2026-01-01T08:00:00";

/// An imported site with these files beside its `elogd.cfg`, and the faults of the import.
fn imported(cfg: &str, files: &[(&str, &str)]) -> (TestSite, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("elog");
    fs::create_dir_all(root.join("logbooks")).unwrap();
    fs::write(root.join("elogd.cfg"), cfg).unwrap();
    fs::write(dir.path().join("secret.txt"), "not for readers").unwrap();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let store = Arc::new(SqliteStore::open(&dir.path().join("book")).unwrap());
    let source =
        ImportSource { config: Some(root.join("elogd.cfg")), logbooks: root.join("logbooks"), ..ImportSource::default() };
    let report = import_elog(&*store, &source, &mut |_, _| true).unwrap();
    let site = Site::new(store.clone(), SiteConfig::default());
    (TestSite { dir, store, site }, report.faults.into_iter().map(|fault| fault.what).collect())
}

#[test]
fn values_are_images_of_the_configuration() {
    let cfg =
        "[b]\nAttributes = Author, Mood\nIOptions Mood = good.gif, bad.gif\nIcon comment bad.gif = HV off\nThread icon = Mood\n";
    let (site, faults) = imported(cfg, &[("themes/default/icons/good.gif", "GIF89a good"), ("icons/bad.gif", "GIF89a bad")]);
    assert_eq!(faults, Vec::<String>::new());
    site.post("b", DAY, &["Author=Zoe", "Mood=bad.gif"], "text");
    for path in ["/b/", "/b/1", "/b/?mode=threaded"] {
        let page = site.get(path).page();
        let image = page.one("img.icon");
        assert_eq!((image.get("src"), image.get("alt")), ("../b/icons/bad.gif", "HV off"), "{path}");
    }
    let form = site.get("/b/?cmd=New").page();
    let images: Vec<String> = form.all("img.icon").iter().map(|image| image.get("src").to_owned()).collect();
    assert_eq!(images, ["icons/good.gif", "icons/bad.gif"]);
    assert_eq!(form.all("input[name=Mood]").len(), 2);
    assert_eq!(site.get("/b/icons/good.gif").body, "GIF89a good");
    assert_eq!(site.get("/b/icons/none.gif").status, StatusCode::NOT_FOUND);
}

#[test]
fn an_image_precedes_a_value() {
    let (site, _) = imported("[b]\nAttributes = Author, State\nIcon State on = lamp.png\n", &[("lamp.png", "png")]);
    site.post("b", DAY, &["Author=Zoe", "State=on"], "text");
    let page = site.get("/b/1").page();
    assert!(page.one("img.icon").get("src").ends_with("/icons/lamp.png"));
    assert!(page.texts("td.attribvalue").contains(&"on".to_owned()), "{:?}", page.texts("td.attribvalue"));
}

#[test]
fn only_named_files_of_the_right_kinds_are_taken() {
    let cfg = "[b]\nAttributes = Author\nWelcome page = ../secret.txt\nSubmit page = elogd.cfg\nMenu text = gone.html\n\
        Selection page = /etc/passwd\n";
    let (site, faults) = imported(cfg, &[("icons/unnamed.gif", "GIF")]);
    let has =
        |line: usize, what: &str| faults.iter().any(|fault| fault.starts_with(&format!("line {line}: ")) && fault.contains(what));
    assert!(has(3, "outside of the directories") && has(4, "ends in .html") && has(5, "missing"), "{faults:?}");
    assert!(has(6, "ends in .html") && faults.len() == 4, "{faults:?}");
    assert_eq!(site.get("/b/icons/unnamed.gif").status, StatusCode::NOT_FOUND);
    assert!(!site.get("/b/").body.contains("not for readers") && site.get("/b/").page().all("table.list").len() == 1);
}

#[test]
fn a_welcome_page_precedes_the_list() {
    let page = "<h1>Welcome</h1><img src=\"team.jpg\"><a href=\"?cmd=New\">Enter</a><script>alert(1)</script>";
    let (site, faults) =
        imported("[b]\nAttributes = Author\nWelcome page = hello.html\n", &[("hello.html", page), ("team.jpg", "jpg")]);
    assert_eq!(faults, Vec::<String>::new());
    let first = site.get("/b/");
    assert!(first.body.contains("<h1>Welcome</h1>") && first.body.contains("?cmd=New") && !first.body.contains("alert(1)"));
    assert!(first.page().all("table.list").is_empty());
    assert_eq!(site.get("/b/team.jpg").body, "jpg");
    site.post("b", DAY, &["Author=Zoe"], "text");
    let list = site.get("/b/1").page().all("nav.menuframe a")[0].get("href").to_owned();
    assert_eq!(site.get(&format!("/b/{}", list.trim_start_matches("./"))).ids(), [1]);
}

#[test]
fn a_submit_page_follows_a_new_entry() {
    let (site, _) = imported("[b]\nAttributes = Author\nSubmit page = done.html\n", &[("done.html", "<h1>Thank you</h1>")]);
    let TestSite { dir, store, site: pages } = site;
    let desk = Desk { dir, store, site: pages, caller: super::desk::caller("zoe", &super::desk::ALL, &["b"]), headers: vec![] };
    let form = desk.get("/b/?cmd=New").text();
    let token = form.split("name=\"tampu_form\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let sent = desk.fields("/b/", &[("tampu_form", &token), ("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")]);
    assert!(sent.location().ends_with("/b/?submitted=1"), "{}", sent.location());
    assert!(desk.get("/b/?submitted=1").text().contains("<h1>Thank you</h1>"));
    // A program still reads the number of its entry.
    assert_eq!(desk.fields("/b/", &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")]).id(), 2);
}

#[test]
fn a_selection_page_replaces_the_page_of_all_logbooks() {
    let cfg = "[global]\nSelection page = all.html\nGuest Selection page = guests.html\n[b]\nAttributes = Author\n";
    let (site, _) = imported(cfg, &[("all.html", "<a href=\"b/\">ours</a>"), ("guests.html", "<p>open to you</p>")]);
    assert!(
        site.get("/").body.contains("<a href=\"b/\" rel=\"noopener noreferrer nofollow\">ours</a>"),
        "{}",
        site.get("/").body
    );
    let guest = site.person("", &[Right::Read]);
    assert!(site.ask(&guest, "/", &[]).body.contains("<p>open to you</p>"));
}

#[test]
fn menus_and_edges_of_pages_have_the_texts_of_files() {
    let cfg = "[b]\nAttributes = Author\nMenu text = m.html\nList Menu text = l.html\nFilter Menu text = f.html\nTop text = top.html\n\
        Bottom text = plain <i>words</i>\n";
    let files =
        [("m.html", "<a href=\"?x=1\">m</a>"), ("l.html", "<i>l</i>"), ("f.html", "<i>f</i>"), ("top.html", "<i>top</i>")];
    let (site, faults) = imported(cfg, &files);
    assert_eq!(faults, Vec::<String>::new());
    site.post("b", DAY, &["Author=Zoe"], "text");
    assert_eq!(site.get("/b/").page().texts(".menutext"), ["l", "f"]);
    let entry = site.get("/b/1").page();
    assert_eq!(
        (entry.texts(".menutext"), entry.texts(".configured i")),
        (vec!["m".to_owned()], vec!["top".to_owned(), "words".to_owned()])
    );
    let old = imported("[b]\nAttributes = Author\nFind menu text = l.html\n", &files).0;
    assert_eq!(old.get("/b/").page().texts(".menutext"), ["l"]);
}

#[test]
fn styles_come_with_the_import() {
    let cfg = "[b]\nAttributes = Author\nCSS = own.css&screen, print.css&print\nTheme = dark\n";
    let files = [("themes/dark/elog.css", "b{}"), ("own.css", "i{}"), ("themes/default/print.css", "u{}")];
    let (site, _) = imported(cfg, &files);
    let links =
        site.get("/b/").page().all("link[rel=stylesheet]").iter().map(|link| link.get("href").to_owned()).collect::<Vec<_>>();
    assert_eq!(links[1..], ["../theme-dark.css", "../own.css", "../print.css"]);
    for (name, text) in [("theme-dark.css", "b{}"), ("own.css", "i{}"), ("print.css", "u{}")] {
        assert_eq!(site.get(&format!("/{name}")).body, text);
    }
}
