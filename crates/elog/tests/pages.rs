//! ELOG's pages as people and programs see them: what is there, where it leads, and who may.

mod support;

use std::panic::catch_unwind;

use support::{
    html::{self, Element},
    site::{ALL, TestSite, WRITER},
};
use tampu_elog::pages::clock::Zone;
use tampu_logbook::{
    attachment::Attachment,
    entry::{Content, Encoding, NewEntry},
    people::Right,
    search::Stop,
    store::{Attachments, Entries},
};
use tampu_types::Time;

const CONFIG: &str = "[global]\nTime format = %Y-%m-%d %H:%M\nWelcome title = The observatory\n[Shift log]\nComment = What happened\n\
    Attributes = Author, Type, Subject\nOptions Type = Routine, Problem\n[other]\nAttributes = Author, Subject\n";

fn filled() -> TestSite {
    let site = TestSite::new(CONFIG);
    site.post("Shift log", "2026-01-01T08:00:00", &["Author=Zoe", "Type=Problem", "Subject=HV trip"], "Channel 7 tripped");
    site.post_as("Shift log", "2026-01-01T09:00:00", &["Author=Kim", "Subject=Re: HV trip"], "Why?", Some(1), "kim");
    site.post(
        "Shift log",
        "2026-01-02T08:00:00",
        &["Author=Zoe", "Type=Routine", "Subject=quiet"],
        "see elog:1 and http://site.test/x.",
    );
    site
}

#[test]
fn the_reader_of_these_tests_minds_bad_html() {
    assert!(
        catch_unwind(|| html::parse("<!DOCTYPE html><html><head><title>x</title></head><body><p class=a class=b></body></html>"))
            .is_err()
    );
}

#[test]
fn the_page_of_all_books_has_those_one_may_read() {
    let site = filled();
    let page = site.get("/").page();
    assert_eq!(page.texts("div.seltitle"), ["The observatory"]);
    let links: Vec<_> = page.all("td.sellogbook a").iter().map(|a| (a.get("href").to_owned(), a.text())).collect();
    assert_eq!(links, [("Shift+log/".to_owned(), "Shift log".to_owned()), ("other/".to_owned(), "other".to_owned())]);
    assert_eq!(page.all("table.selection tr")[1].texts("td"), ["Shift log", "What happened", "3", "2026-01-02 08:00"]);
    let mut kim = site.person("kim", &WRITER);
    kim.rights.0.remove("other");
    assert_eq!(site.ask(&kim, "/", &[]).page().all("td.sellogbook").len(), 1);
    // A guest who may read nothing is asked to log in, and sees no names of logbooks.
    for path in ["/", "/Shift+log/", "/no+such/", "/Shift+log/1", "/?cmd=Login"] {
        let answer = site.ask(&site.person("", &[]), path, &[]);
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("type=password") && !answer.body.contains("What happened"), "{path}");
    }
}

#[test]
fn the_login_form_sends_what_elog_expects() {
    let site = filled();
    let page = site.ask(&site.person("", &[]), "/Shift+log/3?Author=Zoe", &[]).page();
    let form = page.one("form.login");
    assert_eq!((form.get("method"), form.get("action"), form.get("enctype")), ("post", "./", "multipart/form-data"));
    let names: Vec<&str> = form.all("input[name]").iter().map(|input| input.get("name")).collect();
    assert_eq!(names, ["redir", "tampu_form", "uname", "upassword", "remember"]);
    assert_eq!(form.one("input[name=redir]").get("value"), "3?Author=Zoe");
    assert!(site.get("/Shift+log/?cmd=Login&fail=1").error().contains("Invalid user name or password"));
}

#[test]
fn programs_read_ids_and_errors_from_lists() {
    let site = filled();
    assert_eq!(site.get("/Shift+log/").ids(), [1, 2, 3]);
    assert_eq!(site.get("/Shift+log/page?mode=full&reverse=1&npp=2").ids(), [3, 2, 1]);
    assert_eq!(site.get("/Shift+log/?mode=threaded").ids(), [1, 2, 3]);
    let answer = site.get("/Shift+log/99");
    assert_eq!(answer.status, 200);
    assert!(answer.error().starts_with("This entry has been deleted"), "{}", answer.body);
    assert!(answer.body.contains("<td class=\"errormsg\">This entry has been deleted"));
    let answer = site.get("/nobook/");
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (404, "The logbook \"nobook\" is not defined here"));
    for path in ["/Shift+log/nonsense", "/Shift+log/1/2/3/4", "/Shift+log/..%2f..%2fetc"] {
        assert_eq!(site.get(path).status, 404, "{path}");
    }
    assert_eq!(site.get(&format!("/Shift+log/?subtext={}", "x".repeat(20_000))).status, 414);
}

#[test]
fn guests_do_not_read_who_has_a_login() {
    let users = vec![("zoe".to_owned(), "Zoe Quartz".to_owned()), ("kim".to_owned(), "Kim Sand".to_owned())];
    let site =
        TestSite::with("[b]\nAttributes = Author, To\nType To = userlist\nQuick filter = To\n", |config| config.users = users);
    for place in ["?cmd=Find", "", "1?cmd=Edit"] {
        let told = |login| site.ask(&site.person(login, &[Right::Read]), &format!("/b/{place}"), &[]).body.contains("Kim Sand");
        assert!(!told(""), "{place}");
        assert_eq!(told("max"), !place.starts_with('1'), "{place}");
    }
}

#[test]
fn a_page_of_any_number_is_answered() {
    let site = filled();
    let (first, last) = (site.get("/Shift+log/page1").ids(), site.get("/Shift+log/page-1").ids());
    for number in ["9223372036854775807", "4294967297", "99"] {
        assert_eq!(site.get(&format!("/Shift+log/page{number}")).ids(), last, "{number}");
        assert_eq!(site.get(&format!("/Shift+log/page-{number}")).ids(), first, "{number}");
    }
    assert_eq!(site.get("/Shift+log/page-9223372036854775808").ids(), first);
    assert_eq!(site.get("/Shift+log/page9223372036854775808").status, 404);
}

#[test]
fn addresses_lead_where_the_site_is() {
    let site = TestSite::with(CONFIG, |config| config.prefix = "/elog".to_owned());
    site.post("Shift log", "2026-01-01T08:00:00", &["Subject=x"], "x");
    let zoe = site.person("zoe", &ALL);
    for (path, headers, expected) in [
        ("/elog/Shift+log", &[][..], "http://site.test:8080/elog/Shift+log/"),
        ("/Shift+log", &[], "http://site.test:8080/elog/Shift+log/"),
        ("/elog/Shift+log/page1?a=", &[], "http://site.test:8080/elog/Shift+log/page1"),
        (
            "/Shift+log",
            &[("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "logs.site.test, inner"), ("X-Forwarded-Prefix", "/books/")],
            "https://logs.site.test/books/Shift+log/",
        ),
        // An invalid host is not used.
        (
            "/Shift+log",
            &[("X-Forwarded-Host", "evil\"><script>"), ("X-Forwarded-Proto", "javascript")],
            "http://site.test:8080/elog/Shift+log/",
        ),
    ] {
        let answer = site.ask(&zoe, path, headers);
        assert_eq!((answer.status.as_u16(), answer.location.as_str()), (302, expected), "{path} {headers:?}");
    }
    let fixed = TestSite::with(CONFIG, |config| config.url = "https://logs.test/x/".to_owned());
    assert_eq!(fixed.get("/other").location, "https://logs.test/x/other/");
    // Within pages every link is relative, so a proxy can put them anywhere.
    let page = site.ask(&zoe, "/elog/Shift+log/", &[]).page();
    for link in page.all("a[href]").iter().chain(&page.all("link[href]")) {
        assert!(!link.get("href").starts_with('/'), "{link:?}");
    }
}

#[test]
fn lists_are_read_without_marks_and_say_their_zone() {
    let site = TestSite::with(CONFIG, |config| config.zone = Zone::named("Europe/Zurich").unwrap());
    let post = |date: &str, text: &str| {
        let content = Content { text: text.to_owned(), encoding: Encoding::Markdown, ..Content::default() };
        let new = NewEntry { book: "other".to_owned(), content, date: Some(date.parse().unwrap()), ..NewEntry::default() };
        site.store.post(new, vec![], "zoe").unwrap();
    };
    post("2026-01-01T08:00:00", "# Begin\n\n**HV** of [RICH1](http://site.test/x)");
    let page = site.get("/other/").page();
    assert_eq!(page.texts("td.summary"), ["Begin HV of RICH1"]);
    assert_eq!((page.texts("span.zone"), page.one("span.date").get("title")), (vec!["Times: UTC+01:00".to_owned()], "UTC+01:00"));
    assert_eq!(site.get("/other/?subtext=rich1").page().texts("td.summary mark"), ["RICH1"]);
    assert_eq!(site.get("/other/1").page().one("b.date").get("title"), "UTC+01:00");
    // With summer time, each entry shows its own zone.
    post("2026-07-01T08:00:00", "x");
    let page = site.get("/other/").page();
    assert!(page.all("span.zone").is_empty());
    let titles: Vec<&str> = page.all("span.date").iter().map(|date| date.get("title")).collect();
    assert_eq!(titles, ["UTC+01:00", "UTC+02:00"]);
}

#[test]
fn an_entry_has_what_was_said_and_the_way_on() {
    let site = filled();
    let page = site.get("/Shift+log/1?Author=Zoe").page();
    assert_eq!(page.texts("td.attribvalue"), ["Zoe", "Problem", "HV trip"]);
    assert_eq!(page.one("div.messageframe").text(), "Channel 7 tripped");
    assert_eq!(page.one("div.entryhead").text(), "Message ID: 1 Entry time: 2026-01-01 08:00 Reply to this: 2");
    assert_eq!(page.texts("ul.thread li"), ["1 2026-01-01 08:00, Zoe, HV trip", "2 2026-01-01 09:00, Kim, Re: HV trip"]);
    let steps: Vec<&str> = page.all("nav.steps a").iter().map(|a| a.get("href")).collect();
    assert_eq!(steps[2], "1?cmd=Next&Author=Zoe");
    assert_eq!(site.get("/Shift+log/1?cmd=Next&Author=Zoe").location, "http://site.test:8080/Shift+log/3?Author=Zoe");
    for (path, expected) in [
        ("/Shift+log/1?cmd=Next", "2"),
        ("/Shift+log/2?cmd=Previous", "1"),
        // From an entry that the search does not match.
        ("/Shift+log/2?cmd=Next&Author=Zoe", "3?Author=Zoe"),
        ("/Shift+log/2?cmd=Previous&Author=Zoe", "1?Author=Zoe"),
        ("/Shift+log/1?cmd=Last", "3"),
        ("/Shift+log/3?cmd=First&Author=Kim", "2?Author=Kim"),
    ] {
        assert_eq!(site.get(path).location, format!("http://site.test:8080/Shift+log/{expected}"), "{path}");
    }
    assert_eq!(site.get("/Shift+log/3?cmd=Next").error(), "This is the last entry");
    assert_eq!(site.get("/Shift+log/1?cmd=Previous").error(), "This is the first entry");
    let links: Vec<String> =
        site.get("/Shift+log/3").page().all("div.messageframe a").iter().map(|a| a.get("href").to_owned()).collect();
    assert_eq!(links, ["../Shift+log/1", "http://site.test/x"]);
}

#[test]
fn entries_of_one_second_are_all_stepped_through() {
    let site = TestSite::new("[b]\nAttributes = Subject\n");
    for _ in 0..120 {
        site.post("b", "2026-01-01T00:00:00", &["Subject=x"], "x");
    }
    for (from, to, expected) in
        [(1, "Next", "2"), (60, "Next", "61"), (119, "Next", "120"), (60, "Previous", "59"), (2, "Previous", "1")]
    {
        assert_eq!(site.get(&format!("/b/{from}?cmd={to}")).location, format!("http://site.test:8080/b/{expected}"));
    }
}

#[test]
fn an_attachment_is_found_by_its_name_without_a_search() {
    // A search that may take no time finds nothing.
    let site = TestSite::with("[b]\nAttributes = Author\n", |config| config.search_time = std::time::Duration::ZERO);
    let upload = site.store.upload(&mut &b"found"[..], 100).unwrap();
    let attachments = vec![upload.attachment("-", Time::from_unix(1_221_000_000, 0))];
    let content = Content { attachments, ..Content::default() };
    site.store.post(NewEntry { book: "b".to_owned(), content, ..NewEntry::default() }, vec![upload], "zoe").unwrap();
    assert_eq!(site.get("/b/080909_224000/-").body, "found");
    assert_eq!(site.get("/b/080909_224001/-").status, http::StatusCode::NOT_FOUND);
}

#[test]
fn attachments_are_linked_and_pictures_shown() {
    let site = filled();
    let upload = site.store.upload(&mut &b"bytes"[..], 100).unwrap();
    let mut entry = site.store.entry(&site.at("Shift log", 3)).unwrap();
    let added = "2026-01-02T08:00:00".parse::<Time>().unwrap();
    entry.content.attachments = vec![
        Attachment { elog: Some("260102_090000_plot.png".to_owned()), ..upload.attachment("plot.png", added) },
        upload.attachment("my data, \"raw\".txt", added),
        Attachment {
            name: "lost.dat".to_owned(),
            sha: None,
            size: 0,
            added: Time(0),
            elog: Some("260102_090000_lost.dat".to_owned()),
        },
    ];
    site.store.edit(&site.at("Shift log", 3), entry.content, vec![upload], "zoe", None).unwrap();
    let page = site.get("/Shift+log/3").page();
    let links: Vec<String> = page.all("td.attachment a").iter().map(|a| a.get("href").to_owned()).collect();
    assert_eq!(
        links,
        [
            "../Shift+log/3/260102_090000_plot.png",
            "../Shift+log/3/260102_080000_my_data__%22raw%22.txt",
            "../Shift+log/3/260102_090000_lost.dat"
        ]
    );
    let images: Vec<&str> = page.all("td.attachmentframe img").iter().map(|img| img.get("src")).collect();
    assert_eq!(images, ["../Shift+log/3/260102_090000_plot.png?thumb=1"]);
    assert!(page.text().contains("the file was missing when the entry was imported"));
}

#[test]
fn who_may_not_is_told_or_asked() {
    let site = filled();
    let (reader, writer, guest) =
        (site.person("kim", &[Right::Read]), site.person("kim", &WRITER), site.person("", &[Right::Read]));
    for (path, reads, writes) in [
        ("/Shift+log/", 200, 200),
        ("/Shift+log/?cmd=New", 403, 200),
        ("/Shift+log/1?cmd=Edit", 403, 403),
        ("/Shift+log/2?cmd=Edit", 403, 200),
        ("/Shift+log/1?cmd=Reply", 403, 200),
        ("/Shift+log/?cmd=Admin", 403, 403),
        ("/Shift+log/?cmd=Find", 200, 200),
    ] {
        assert_eq!(site.ask(&reader, path, &[]).status, reads, "{path}");
        assert_eq!(site.ask(&writer, path, &[]).status, writes, "{path}");
        let answer = site.ask(&guest, path, &[]);
        assert_eq!(answer.body.contains("type=password"), reads == 403, "{path}");
    }
    let menu = |caller| site.ask(caller, "/Shift+log/1", &[]).page().texts("nav.menuframe a");
    assert_eq!(menu(&writer), ["List", "New", "Edit", "Delete", "Reply", "Duplicate", "Find", "Config", "Help"]);
    assert_eq!(menu(&reader), ["List", "Find", "Config", "Help"]);
    let none = site.person("kim", &[]);
    assert_eq!(site.ask(&none, "/Shift+log/", &[]).status, 403);
}

fn value<'a>(form: &'a Element, name: &str) -> &'a str {
    form.one(&format!("[name={name}]")).get("value")
}

#[test]
fn forms_have_a_field_for_each_kind() {
    let site = TestSite::with(
        "[b]\nAttributes = Author, Type, Systems, Level, Done, Energy, Day, When, Who, Team, Run number\nOptions Type = Routine, Problem\n\
         MOptions Systems = A, B\nROptions Level = low, high\nOptions Done = boolean\nType Energy = numeric\nType Day = date\nType When = datetime\n\
         Type Who = userlist\nType Team = muserlist\nExtendable Options = Type, Systems\nRequired Attributes = Author, Type\n\
         Preset Author = $long_name\nPreset Type = Problem\nPreset Systems = B\nPreset Done = 1\nPreset When = $date\nComment Energy = in GeV\nTooltip Energy = of the beam\n",
        |config| config.users = vec![("zoe".to_owned(), "Zoe Quartz".to_owned()), ("kim".to_owned(), "Kim".to_owned())],
    );
    let page = site.get("/b/?cmd=New").page();
    let form = page.one("form.entry");
    assert_eq!((form.get("method"), form.get("action"), form.get("enctype")), ("post", "./", "multipart/form-data"));
    assert_eq!((value(form, "Author"), value(form, "Type")), ("Zoe Quartz", "Problem"));
    assert!(form.one("input[name=Author]").attributes.contains_key("required"));
    assert_eq!(form.all("span.required").len(), 2);
    assert_eq!(form.all("datalist option").iter().map(|o| o.get("value")).collect::<Vec<_>>(), ["Routine", "Problem"]);
    assert!(
        !form.one("[name=Systems_0]").attributes.contains_key("checked")
            && form.one("[name=Systems_1]").attributes.contains_key("checked")
    );
    assert_eq!(form.one("[name=Systems_2]").get("type"), "text");
    assert_eq!(form.all("input[name=Level]").iter().map(|radio| radio.get("value")).collect::<Vec<_>>(), ["low", "high"]);
    assert!(form.one("input[name=Done]").attributes.contains_key("checked"));
    assert_eq!(form.one("input[name=Energy]").get("inputmode"), "decimal");
    assert!(form.text().contains("in GeV"));
    assert!(form.all("th[title]").iter().any(|th| th.get("title") == "of the beam"));
    assert_eq!((form.all("input[name=h6]").len(), form.all("input[name=y6]").len(), form.all("input[name=c7]").len()), (0, 1, 1));
    assert_eq!(value(form, "y7").len(), 4);
    assert_eq!(form.texts("select[name=Who] option"), ["- please select -", "Zoe Quartz", "Kim"]);
    assert_eq!(form.all("input[name=Team_1]").len(), 1);
    assert_eq!(form.all("input[name=Run_number]").len(), 1);
    assert_eq!(form.all("input[type=file]").len(), 3);
    assert_eq!(form.texts("div.encodings label"), ["ELCode", "plain", "HTML"]);
    assert_eq!(value(form, "tampu_form").len(), 32);
    assert_eq!(page.all("script").len(), 1);
    // The address can fill fields in.
    let filled = site.get("/b/?cmd=New&ptype=Routine&pRun+number=7").page();
    assert_eq!((value(&filled, "Type"), value(&filled, "Run_number")), ("Routine", "7"));
}

#[test]
fn edits_replies_and_duplicates_begin_with_what_is_there() {
    let site = filled();
    let page = site.get("/Shift+log/1?cmd=Edit").page();
    let form = page.one("form.entry");
    assert_eq!((value(form, "edit_id"), value(form, "entry_revision"), value(form, "Subject")), ("1", "0", "HV trip"));
    assert_eq!(form.one("textarea").text(), "Channel 7 tripped");
    assert_eq!(form.texts("button"), ["Submit", "Save as draft", "Preview"]);
    let form = site.get("/Shift+log/1?cmd=Reply").page();
    assert_eq!((value(&form, "reply_to"), form.all("[name=edit_id]").len()), ("1", 0));
    assert_eq!(form.one("textarea").text(), "> Channel 7 tripped");
    let form = site.get("/Shift+log/1?cmd=Duplicate").page();
    assert_eq!((value(&form, "orig_id"), value(&form, "Subject")), ("1", "HV trip"));
    for cmd in ["Edit", "Reply", "Duplicate"] {
        assert!(site.get(&format!("/Shift+log/99?cmd={cmd}")).error().contains("deleted"));
    }
}

#[test]
fn conditions_change_the_form() {
    let site = TestSite::new(
        "[b]\nAttributes = Type, System, Subject\nOptions Type = Routine{a}, Problem{b}\n{b}Options System = RICH1, HLT\n\
         {b}Required Attributes = Subject\n{a}Preset Subject = routine shift\n{a}Show attributes edit = Type, Subject\n{b}Comment Subject = what broke\n",
    );
    let page = site.get("/b/?cmd=New").page();
    assert!(page.all("select[name=Type]")[0].attributes.contains_key("data-decides"));
    assert_eq!(page.one("button[id=update]").get("value"), "Update");
    let page = site.get("/b/?cmd=New&pType=Routine").page();
    assert_eq!(
        (page.all("[name=System]").len(), value(&page, "Subject")),
        (0, ""),
        "presets are of what the book presets itself"
    );
    let page = site.get("/b/?cmd=New&pType=Problem").page();
    assert_eq!(page.texts("select[name=System] option"), ["- please select -", "RICH1", "HLT"]);
    assert!(page.one("input[name=Subject]").attributes.contains_key("required"));
    assert!(page.text().contains("what broke"));
    let preset = TestSite::new(
        "[b]\nAttributes = Type, Subject\nOptions Type = Routine{a}, Problem{b}\nPreset Type = Routine\n{a}Preset Subject = routine shift\n",
    );
    assert_eq!(value(&preset.get("/b/?cmd=New").page(), "Subject"), "routine shift");
}

#[test]
fn the_search_form_asks_what_searches_understand() {
    let site = TestSite::new(
        "[b]\nAttributes = Type, Systems, Day, Subject\nOptions Type = A (1), B\nMOptions Systems = X, Y\nType Day = date\n",
    );
    site.post("b", "2026-01-01T00:00:00", &["Type=A (1)", "Systems=X | Y", "Subject=s"], "text");
    site.post("b", "2026-01-02T00:00:00", &["Type=B", "Systems=Y", "Subject=s"], "text");
    let page = site.get("/b/?cmd=Find").page();
    let form = page.one("form.find");
    assert_eq!((form.get("method"), form.get("action")), ("get", "./"));
    for name in [
        "mode",
        "reverse",
        "npp",
        "last",
        "ma",
        "da",
        "ya",
        "mb",
        "m2a",
        "y2b",
        "Type",
        "Systems_0",
        "Systems_1",
        "Subject",
        "subtext",
        "sall",
        "casesensitive",
    ] {
        assert!(!form.all(&format!("[name={name}]")).is_empty(), "{name}");
    }
    // An offered option finds exactly its entries.
    let option = form.all("select[name=Type] option")[1].get("value").to_owned();
    let of = |name: &str, value: &str| format!("/b/?{name}={}", tampu_elog::pages::address::escape(value));
    assert_eq!((option.as_str(), site.get(&of("Type", &option)).ids()), ("^A \\(1\\)$", vec![1]));
    assert_eq!(site.get(&of("Systems_0", form.one("[name=Systems_0]").get("value"))).ids(), [1]);
    // A search can be changed.
    let again = site.get("/b/?cmd=Find&subtext=te.t&Type=%5EB%24&ya=2026").page();
    assert_eq!((value(&again, "subtext"), value(&again, "ya")), ("te.t", "2026"));
    assert_eq!(again.texts("select[name=Type] option[selected]"), ["B"]);
}

#[test]
fn a_month_leads_to_its_days() {
    let site = filled();
    let page = site.get("/Shift+log/cal.html?y=2026&m=1").page();
    let days: Vec<(String, String)> = page.all("td.has a").iter().map(|a| (a.text(), a.get("title").to_owned())).collect();
    assert_eq!(days, [("1".to_owned(), "2 entries".to_owned()), ("2".to_owned(), "1 entries".to_owned())]);
    let href = page.one("td.has a").get("href").to_owned();
    assert_eq!(site.get(&format!("/Shift+log/{}", &href[2..])).ids(), [1, 2]);
    // 1 January 2026 is a Thursday.
    assert_eq!(page.all("table.calendar tr")[1].texts("td")[..4], ["", "", "", "1"]);
    assert_eq!(site.get("/Shift+log/cal.html?y=99999&m=77").status, 200);
}

#[test]
fn the_configuration_is_shown_without_passwords() {
    let site = TestSite::new(
        "[b]\nAttributes = A\nSMTP password = secret1\nLDAP user password = secret2\nPassword file = users.xml\nComment = <b>x\n",
    );
    let text = site.get("/b/?cmd=Admin").page().one("textarea").text();
    assert!(text.contains("Password file = users.xml") && text.contains("Comment = <b>x") && !text.contains("secret"), "{text}");
}

#[test]
fn a_page_ends_with_its_request() {
    let site = TestSite::with("[b]\nAttributes = Author\n", |_| {});
    for n in 0..3 {
        site.post("b", "2026-01-02T09:00:00", &[], &format!("text {n}"));
    }
    let over = Stop::after(std::time::Duration::ZERO);
    let page = site.ask_until(&site.person("zoe", &ALL), "/b/1", &over).body;
    assert!(page.contains("before this text was rendered") && !page.contains("text 0"), "{page}");
    // The same page, once it is rendered, needs no more time.
    assert!(site.get("/b/1").body.contains("text 0"));
    assert!(site.ask_until(&site.person("zoe", &ALL), "/b/1", &over).body.contains("text 0"));
}

#[test]
fn a_long_thread_is_shown_in_part_and_in_order() {
    let site = TestSite::new("[b]\nAttributes = Author, Subject\n");
    let first = site.post("b", "2026-01-02T09:00:00", &["Subject=first"], "x");
    for n in 0..600 {
        let parent = Some(if n < 2 { first } else { first + 1 });
        site.post_as("b", "2026-01-02T10:00:00", &["Subject=reply"], "y", parent, "zoe");
    }
    let page = site.get(&format!("/b/{first}")).page();
    let lines = page.texts("ul.thread li");
    assert_eq!(lines.len(), 501, "500 entries, and the remark");
    assert!(lines[500].contains("the first 500 are shown"), "{}", lines[500]);
    // The first reply stands before its own replies, and the second one after them.
    assert!(
        lines[1].starts_with(&format!("{} ", first + 1)) && lines[2].starts_with(&format!("{} ", first + 3)),
        "{:?}",
        &lines[..4]
    );
    assert!(lines[499].starts_with(&format!("{} ", first + 2)), "{}", lines[499]);
}
