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
fn the_text_stands_where_an_image_is_missing() {
    let cfg = "[b]\nAttributes = Author, Mood, State\nIOptions Mood = good.gif, bad.gif\nIcon comment bad.gif = HV off\n\
        Thread icon = Mood\nIcon State on = lamp.png\n";
    let (site, faults) = imported(cfg, &[("icons/good.gif", "GIF")]);
    assert_eq!(faults.len(), 2, "{faults:?}");
    site.post("b", DAY, &["Author=Zoe", "Mood=bad.gif", "State=on"], "text");
    for path in ["/b/1", "/b/", "/b/?mode=threaded"] {
        let page = site.get(path);
        assert!(page.page().all("img.icon").is_empty() && page.body.contains("HV off"), "{path}: {}", page.body);
        assert!(page.body.contains("on<") || page.body.contains(", on"), "{path}");
    }
    let form = site.get("/b/?cmd=New").page();
    assert_eq!(form.all("img.icon").len(), 1);
    let labels: Vec<String> = form.texts("label").into_iter().filter(|text| !text.is_empty()).collect();
    assert!(labels.contains(&"HV off".to_owned()) && !labels.contains(&"good.gif".to_owned()), "{labels:?}");
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

/// Texts as in a language file of ELOG, in ISO-8859-1.
const GERMAN: &[u8] = b"# German\nNew = Neu\nFind = Finden\nList = Liste\nLast = Letzter\nEdit = \xc4ndern\nSubmit = Absenden\nEntries = Eintr\xe4ge\n\
    Page %d of %d = Seite %d von %d\nFull = ausf\xfchrlich\nThreaded = mit&nbsp;Antwortketten\nMessage ID = Eintrag-ID\n\
    please select = bitte ausw\xe4hlen\nSearch = Suchen\nJanuary = Januar\nPassword = Kennwort\nLogbook = Logbuch\nDate = Datum\n\
    This is the last entry = Dies ist der letzte Eintrag\nSubject = Betreff\n";

/// A book in German with two entries, and one in English.
fn german() -> TestSite {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("elog");
    fs::create_dir_all(root.join("logbooks")).unwrap();
    fs::write(root.join("eloglang.german"), GERMAN).unwrap();
    let cfg = "[global]\nLanguage = German\n[b]\nAttributes = Author, Type, Subject\nOptions Type = A, B\nEntries per page = 1\n\
        [e]\nAttributes = Author\nLanguage = english\n";
    fs::write(root.join("elogd.cfg"), cfg).unwrap();
    let store = Arc::new(SqliteStore::open(&dir.path().join("book")).unwrap());
    let source =
        ImportSource { config: Some(root.join("elogd.cfg")), logbooks: root.join("logbooks"), ..ImportSource::default() };
    let report = import_elog(&*store, &source, &mut |_, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let site = TestSite { site: Site::new(store.clone(), SiteConfig::default()), dir, store };
    site.post("b", DAY, &["Author=Zoe", "Subject=New"], "text");
    site.post("b", "2026-01-02T08:00:00", &["Author=Kim"], "text");
    site
}

#[test]
fn pages_are_in_the_language_of_the_configuration() {
    let site = german();
    let list = site.get("/b/").page();
    assert_eq!(list.one("html").get("lang"), "de");
    assert_eq!(list.texts("nav.menuframe a")[..2], ["Neu", "Finden"]);
    assert!(list.one("div.told").text().contains("2 Eintr\u{e4}ge") && list.one("div.told").text().contains("Seite 2 von 2"));
    assert!(
        list.one("div.modes").text().contains("ausf\u{fc}hrlich | Summary | mit Antwortketten")
            || list.one("div.modes").text().contains("mit Antwortketten")
    );
    // Names and values of attributes are those of the site.
    let headings = list.texts("th.listtitle");
    assert!(headings.iter().any(|text| text.starts_with("Datum")) && headings.contains(&"Subject".to_owned()), "{headings:?}");
    let entry = site.get("/b/1").page();
    assert!(
        entry.one("div.entryhead").text().contains("Eintrag-ID: 1")
            && entry.texts("nav.menuframe a").contains(&"\u{c4}ndern".to_owned())
    );
    assert!(entry.texts("td.attribvalue").contains(&"New".to_owned()));
    let form = site.get("/b/?cmd=New").page();
    assert_eq!(form.texts("select[name=Type] option")[0], "- bitte ausw\u{e4}hlen -");
    assert!(form.texts("button").contains(&"Absenden".to_owned()));
    // The value that a button sends is a command.
    assert!(form.all("button").iter().any(|button| button.get("value") == "Submit"));
    assert!(site.get("/b/?cmd=Find").page().texts("option").contains(&"Januar".to_owned()));
    assert_eq!(site.get("/b/2?cmd=Next").error(), "Dies ist der letzte Eintrag");
    assert!(site.get("/").page().texts("th").contains(&"Logbuch".to_owned()));
    assert_eq!(site.get("/e/").page().texts("nav.menuframe a")[..2], ["New", "Find"]);
}

#[test]
fn commands_of_the_language_are_understood() {
    let site = german();
    assert!(site.get("/b/1?cmd=Letzter").location.ends_with("/b/2"), "{}", site.get("/b/1?cmd=Letzter").location);
    assert_eq!(site.get("/b/?cmd=Finden").page().all("form.find").len(), 1);
    let guest = site.person("", &[]);
    assert!(site.ask(&guest, "/b/", &[]).body.contains("Kennwort: <input type=password"));
}

#[test]
fn a_missing_language_is_reported() {
    let (site, faults) = imported("[b]\nAttributes = Author\nLanguage = klingon\n", &[]);
    assert!(faults.iter().any(|fault| fault.contains("'eloglang.klingon' is not taken")), "{faults:?}");
    assert_eq!(
        (site.get("/b/").page().one("html").get("lang"), &*site.get("/b/").page().texts("nav.menuframe a")[0]),
        ("en", "New")
    );
}

#[test]
fn the_first_text_of_an_entry_comes_from_a_file_of_the_site() {
    let cfg = "[b]\nAttributes = Author, Type\nOptions Type = A{1}, B{2}, C{3}\n{1}Preset text = network.txt\n{2}Preset text = ../secret.txt\n\
        {3}Preset text = own.txt\n";
    let (site, _) = imported(cfg, &[("network.txt", "Routers checked"), ("logbooks/b/own.txt", "Pumps checked")]);
    let text = |kind: &str| site.get(&format!("/b/?cmd=New&pType={kind}")).page().one("textarea[name=Text]").text();
    assert_eq!((text("A").trim(), text("C").trim()), ("Routers checked", "Pumps checked"));
    assert_eq!(text("B").trim(), "../secret.txt");
}
