//! ELOG's pages under hostile content: neither entries nor configurations bring scripts, frames or foreign addresses.

mod support;

use support::{html::Element, site::TestSite};
use tampu_logbook::{
    entry::{Content, Encoding},
    store::{Attachments, Entries},
};
use tampu_types::Time;

/// After OWASP's lists, for text, attributes and addresses.
const ATTACKS: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)",
    "javascript:alert(1)",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</select><script>alert(1)</script>",
    "</pre></div><iframe src=//evil>",
    "<svg/onload=alert(1)>",
    "--><script>alert(1)</script>",
    "{{7*7}}${7*7}$shell(id)",
    "http://evil/\"onclick=\"alert(1)",
    "https://evil/<script>",
    "\u{202e}<a href=x>",
    "&lt;script&gt;&#60;script&#62;",
];

/// No element, attribute or address of an attack is in a page.
fn assert_ours(page: &Element, of: &str) {
    for element in page.everything() {
        assert!(!matches!(element.name.as_str(), "iframe" | "svg" | "object" | "embed" | "base"), "{of}: {element:?}");
        let ours = || {
            let of_form = element.get("src").starts_with("../elog-form-") && element.get("src").ends_with(".js");
            element.text().is_empty() && of_form && element.get("integrity").starts_with("sha256-")
        };
        assert!(element.name != "script" || ours(), "{of}: {element:?}");
        for (name, value) in &element.attributes {
            assert!(!name.starts_with("on"), "{of}: {element:?}");
            let value = value.trim().to_lowercase();
            let leads = matches!(name.as_str(), "href" | "src" | "action" | "formaction");
            assert!(!leads || !value.starts_with("javascript") && !value.starts_with("data:"), "{of}: {element:?}");
            assert!(name != "style" || !value.contains("url("), "{of}: {element:?}");
        }
    }
}

#[test]
fn nothing_that_is_said_becomes_part_of_a_page() {
    let site = TestSite::new(
        "[b]\nAttributes = Author, Type, Subject, Link\nQuick filter = Type, Subject\nThread display = $subject by $author\n\
         Display Link = see $Link\nOptions Type = x\nExtendable options = Type\nPage title = $logbook $subject\n",
    );
    for attack in ATTACKS {
        let line = attack.replace('\n', " ");
        let said: Vec<String> = ["Author", "Type", "Subject", "Link"].iter().map(|name| format!("{name}={line}")).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let id = site.post("b", "2026-01-01T00:00:00", &said, attack);
        let mut content = Content { encoding: Encoding::Html, ..site.store.entry(&site.at("b", id)).unwrap().content };
        let upload = site.store.upload(&mut &b"x"[..], 10).unwrap();
        content.attachments = vec![upload.attachment(&format!("{attack}.png"), Time(0))];
        site.store.edit(&site.at("b", id), content, vec![upload], "zoe", None).unwrap();
        let escaped = tampu_elog::pages::address::escape(attack);
        let mut paths: Vec<String> = ["", "?mode=full", "?mode=threaded&expand=3", "?cmd=Find", "?cmd=New", "elog.css"]
            .iter()
            .map(|rest| format!("/b/{rest}"))
            .collect();
        paths.extend(
            [String::new(), "?cmd=Edit".to_owned(), "?cmd=Reply".to_owned(), "?cmd=Duplicate".to_owned()]
                .map(|rest| format!("/b/{id}{rest}")),
        );
        paths.push(format!("/b/?subtext={escaped}&sall=1"));
        paths.push(format!("/b/?Subject={escaped}&{escaped}={escaped}"));
        paths.push(format!("/b/?cmd=Find&subtext={escaped}&Subject={escaped}&ya={escaped}"));
        paths.push(format!("/b/?cmd=New&pSubject={escaped}"));
        paths.push(format!("/b/?last={escaped}&sort={escaped}&mode={escaped}"));
        paths.push(format!("/b/?cmd=Login&redir={escaped}"));
        paths.push(format!("/b/{escaped}"));
        paths.push(format!("/{escaped}/"));
        for path in paths {
            let answer = site.get(&path);
            if answer.status.is_redirection() || path.ends_with(".css") {
                assert!(!answer.location.contains(['<', '"', '\n']), "{path}");
                continue;
            }
            assert_ours(&answer.page(), &format!("{path} with {attack}"));
            assert!(answer.policy.contains("default-src 'none'") && !answer.policy.contains("script-src 'unsafe"), "{path}");
        }
    }
}

#[test]
fn a_configuration_cannot_bring_scripts_either() {
    let mut text = String::from("[b]\nAttributes = Author, Type\nOptions Type = x\n");
    for attack in ["<script>alert(1)</script><img src=x onerror=alert(1)>", "\"><script>alert(1)</script>"] {
        for name in [
            "Comment",
            "Page title",
            "Welcome title",
            "Top text",
            "Bottom text",
            "Main tab",
            "Title image",
            "Message comment",
            "Attachment comment",
            "Comment Author",
            "Tooltip Author",
            "Preset Author",
            "Display Author",
            "Cell Style Type x",
            "Format Author",
            "Theme",
            "CSS",
            "Menu commands",
            "Help URL",
            "Title image URL",
            "Main tab URL",
            "Preset text",
            "Time format",
            "ID display",
            "Refresh",
            "Message width",
            "Link display",
            "RSS title",
        ] {
            text.push_str(&format!("{name} = {attack}\n"));
        }
        let site = TestSite::new(&format!("{text}[{}]\nAttributes = A\n", "o<t>&\"her"));
        site.post("b", "2026-01-01T00:00:00", &["Author=Zoe", "Type=x"], "text");
        for path in [
            "/",
            "/b/",
            "/b/1",
            "/b/?cmd=New",
            "/b/1?cmd=Edit",
            "/b/?cmd=Find",
            "/b/?cmd=Config",
            "/b/?cmd=Admin",
            "/b/?mode=threaded",
            "/b/?cmd=Login",
        ] {
            assert_ours(&site.get(path).page(), path);
        }
        let help = site.get("/b/?cmd=Help");
        assert!(help.location.is_empty() || help.location.starts_with("http://site.test"), "{}", help.location);
    }
    let site = TestSite::new(
        "[b]\nAttributes = A\nHelp URL = javascript:alert(1)\nMain tab = x\nMain tab URL = javascript:alert(1)\nTitle image = x\nTitle image URL = javascript:alert(1)\n",
    );
    assert_ours(&site.get("/b/").page(), "addresses");
    assert_eq!(site.get("/b/?cmd=Help").status, 200);
}

#[test]
fn themes_add_styles_from_their_own_directory_alone() {
    let site = TestSite::new("[b]\nAttributes = A\nTheme = dark\nCSS = own.css, ../../book/book.db, /etc/passwd, other.txt\n");
    let themes = site.dir.path().join("themes");
    std::fs::create_dir_all(themes.join("dark")).unwrap();
    std::fs::write(themes.join("dark/elog.css"), "body{background:#000}").unwrap();
    std::fs::write(themes.join("own.css"), "b{color:red}").unwrap();
    std::fs::write(site.dir.path().join("secret.css"), "secret").unwrap();
    std::os::unix::fs::symlink(site.dir.path().join("secret.css"), themes.join("link.css")).unwrap();
    let page = site.get("/b/").page();
    let styles: Vec<&str> = page.all("link[rel=stylesheet]").iter().map(|link| link.get("href")).collect();
    assert_eq!(styles, ["../elog.css", "../theme-dark.css", "../own.css"]);
    for (path, expected) in
        [("/theme-dark.css", "#000"), ("/own.css", "red"), ("/b/own.css", "red"), ("/elog.css", "ELOG"), ("/theme-none.css", "")]
    {
        let answer = site.get(path);
        assert!(answer.status == 200 && answer.body.contains(expected), "{path} {answer:?}");
    }
    for path in ["/none.css", "/link.css", "/..%2fsecret.css", "/b/..%2fsecret.css", "/../secret.css"] {
        let answer = site.get(path);
        assert!(answer.status != 200 || !answer.body.contains("secret"), "{path} {answer:?}");
    }
}

#[test]
fn images_come_from_the_site_and_the_hosts_that_it_names() {
    let policy = |hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let site = TestSite::with("[b]\nAttributes = Author\n", |config| config.image_hosts = hosts);
        site.post("b", "2026-01-02T09:00:00", &[], "x");
        site.get("/b/1").policy
    };
    assert!(policy(&[]).contains("img-src 'self' data: blob:;"), "{}", policy(&[]));
    let named = policy(&["https://plots.example.org", "http://10.0.0.7:8080"]);
    assert!(named.contains("img-src 'self' data: blob: https://plots.example.org http://10.0.0.7:8080;"), "{named}");
}
