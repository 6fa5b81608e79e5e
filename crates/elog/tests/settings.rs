//! Every option of elogd.cfg that is said to have an effect on pages has it.

mod support;

use support::{
    html::Element,
    site::{ALL, TestSite, WRITER},
};
use tampu_logbook::people::Right;
use tampu_logbook::store::{Attachments, Drafts, Entries};

const DAY: &str = "2026-01-01T08:00:00";

/// A book `b` with these options and one entry.
fn book(options: &str) -> TestSite {
    let site = TestSite::new(&format!("[b]\nAttributes = Author, Type, Subject\nOptions Type = Routine, Problem\n{options}"));
    site.post("b", DAY, &["Author=Zoe", "Type=Problem", "Subject=HV trip"], "first line of the text\nsecond line of it\nthird");
    site
}

fn list(options: &str) -> Element {
    book(options).get("/b/").page()
}

fn entry(options: &str) -> Element {
    book(options).get("/b/1").page()
}

fn form(options: &str) -> Element {
    book(options).get("/b/?cmd=New").page()
}

fn value(form: &Element, name: &str) -> String {
    form.one(&format!("[name={name}]")).get("value").to_owned()
}

#[test]
fn titles_and_texts_around_pages() {
    assert_eq!(list("List Page Title = $logbook of $long_name").texts("title"), ["b of Zoe Quartz"]);
    // A list does not have the title of entries.
    assert_eq!(list("Page Title = ELOG - $subject").texts("title"), ["b"]);
    assert_eq!(entry("Page Title = [$logbook:$message id] $Subject").texts("title"), ["[b:1] HV trip"]);
    assert_eq!(list("Page Title = x\nList Page Title = the list").texts("title"), ["the list"]);
    assert_eq!(form("Edit Page Title = writing").texts("title"), ["writing"]);
    assert_eq!(list("Comment = What happened").texts("span.title2"), ["What happened"]);
    // A description alone does not say which book it is; a tab does.
    assert_eq!(list("Comment = What happened").texts("b.bookname"), ["b"]);
    assert!(list("Comment = What happened\nMain Tab = Home").texts("b.bookname").is_empty());
    assert!(list("").texts("b.bookname").is_empty());
    let site = TestSite::new("[global]\nWelcome Title = <b>Our</b> site\n[b]\nWelcome Title = <b>Its</b>\nAttributes = Author\n");
    assert_eq!(site.get("/").page().texts("div.seltitle b"), ["Our"]);
    assert_eq!(list("Top text = <i>above</i>\nBottom text = <u>below</u>").texts("div.configured"), ["above", "below"]);
    let image = list("Title image = https://site.test/logo.png\nTitle image URL = https://site.test/");
    assert_eq!(image.one("div.title1 img").get("src"), "https://site.test/logo.png");
    assert_eq!(list("Refresh = 60").one("meta[http-equiv=refresh]").get("content"), "60");
    assert!(entry("Refresh = 60").all("meta[http-equiv=refresh]").is_empty());
    assert_eq!(book("Help URL = https://site.test/help").get("/b/?cmd=Help").location, "https://site.test/help");
    assert_eq!(list("Theme = dark").all("link[rel=stylesheet]")[1].get("href"), "../theme-dark.css");
}

#[test]
fn tabs_of_books_and_groups() {
    let text = "[global]\nTop group Detectors = rich, muon\nTop group Machine = lhc, secret\nMain tab = Home\nMain tab URL = https://site.test/\n\
        [rich]\n[muon]\n[lhc]\n[secret]\nHidden = 1\n[alone]\nLogbook tabs = 0\n";
    let site = TestSite::new(text);
    let page = site.get("/rich/").page();
    let tabs: Vec<String> = page.texts("nav.tabs span");
    assert_eq!(tabs, ["Home", "Detectors", "Machine", "rich", "muon"]);
    assert_eq!(page.texts("nav.tabs span.sltab"), ["Detectors", "rich"]);
    assert_eq!(page.one("nav.tabs a").get("href"), "https://site.test/");
    assert!(site.get("/alone/").page().all("nav.tabs").is_empty());
    assert_eq!(site.get("/lhc/").page().texts("nav.tabs span.sltab"), ["Machine", "lhc"]);
    assert!(!site.get("/lhc/").page().texts("nav.tabs span").contains(&"secret".to_owned()));
    assert_eq!(site.get("/").page().texts("h2"), ["Detectors", "Machine", "Other logbooks"]);
    assert!(!site.get("/").page().texts("td.sellogbook").contains(&"secret".to_owned()));
    let flat = TestSite::new(&text.replace("[global]", "[global]\nShow top groups = 0"));
    assert!(flat.get("/").page().all("h2").is_empty());
}

#[test]
fn lists_show_what_is_configured() {
    let titles = |options: &str| list(options).texts("th.listtitle");
    assert_eq!(titles(""), ["ID", "Date ▲", "Author", "Type", "Subject", "Text", "Files"]);
    assert_eq!(titles("List display = ID, Subject\nShow text = 0\nShow attachments = 0"), ["ID", "Subject"]);
    assert_eq!(titles("Summary lines = 0\nReverse sort = 1")[1..], ["Date ▼", "Author", "Type", "Subject", "Files"]);
    assert_eq!(titles("Sort attributes = Subject, Date")[4], "Subject ▲");
    let site = book("Guest list display = ID, Subject\nShow text = 0");
    let guest = site.person("", &[Right::Read]);
    assert_eq!(site.ask(&guest, "/b/", &[]).page().texts("th.listtitle"), ["ID", "Subject", "Files"]);
    assert_eq!(list("Summary lines = 1\nSummary line length = 10").texts("td.summary"), ["first line..."]);
    assert_eq!(list("Time format = %d/%m/%y").texts("td.list1")[1], "01/01/26");
    assert_eq!(list("ID display = #$message id").texts("td.list1")[0], "#1");
    assert_eq!(list("Display Subject = <$subject>").texts("td.list1")[4], "<HV trip>");
    assert_eq!(list("Display Subject = <b>$subject</b><script>x</script>\nAllow HTML = 1").texts("td.list1 b"), ["HV trip"]);
    assert_eq!(list("Cell Style Type Problem = background-color:red").one("td[style]").text(), "Problem");
    assert_eq!(list("Link display = Subject").all("td.list1 a").len(), 2, "the first column always leads there");
    assert_eq!(list("Display mode = full").texts("td.messagelist").len(), 1);
    assert_eq!(
        book("Display mode = threaded").get("/b/").page().texts("table.threads a"),
        ["1, Thu Jan 1 08:00:00 2026, Zoe, Problem, HV trip"]
    );
    assert_eq!(
        list("Display mode = threaded\nThread display = $subject by $author").texts("table.threads a"),
        ["HV trip by Zoe"]
    );
    assert_eq!(list("Display mode = threaded\nExpand default = 2").texts("table.threads div.messagelist").len(), 1);
    let start = book("Start page = page1?mode=full&Author=Z");
    assert_eq!(start.get("/b/").location, "http://site.test:8080/b/page1?mode=full&Author=Z");
    assert_eq!(start.get("/b/page1").status, 200);
    assert_eq!(book("Start page = //evil.test").get("/b/").status, 200);
    assert_eq!(book("Search slave = 1").get("/b/?subtext=first").ids(), [1]);
    assert_eq!(book("Case sensitive search = 1").get("/b/?subtext=FIRST").ids(), [0; 0]);
    let limited = book("Entries per page = 1\nAll display limit = 2");
    limited.post("b", DAY, &["Subject=x"], "x");
    assert!(limited.get("/b/").page().texts("nav.pagelinks a").contains(&"All".to_owned()));
    limited.post("b", DAY, &["Subject=x"], "x");
    assert!(!limited.get("/b/").page().texts("nav.pagelinks a").contains(&"All".to_owned()));
}

#[test]
fn quick_filters_find() {
    let page = list("Quick filter = Date, Type, Subject");
    let form = page.one("form.quickfilter");
    assert_eq!(form.texts("select[name=Type] option"), ["-- all --", "Routine", "Problem"]);
    assert_eq!(form.all("select[name=last] option").len(), 8);
    assert_eq!(form.one("input[name=Subject]").get("type"), "text");
    // The chosen option stays, and so does the rest of the search.
    let page = book("Quick filter = Type").get("/b/?Type=%5EProblem%24&subtext=first&npp=5").page();
    assert_eq!(page.texts("select[name=Type] option[selected]"), ["Problem"]);
    let kept: Vec<(String, String)> = page
        .all("form.quickfilter input[type=hidden]")
        .iter()
        .map(|input| (input.get("name").to_owned(), input.get("value").to_owned()))
        .collect();
    assert_eq!(kept, [("subtext".to_owned(), "first".to_owned()), ("npp".to_owned(), "5".to_owned())]);
}

#[test]
fn entries_show_what_is_configured() {
    assert_eq!(entry("Show attributes = Subject").texts("td.attribvalue"), ["HV trip"]);
    let site = book("Guest display = Type");
    assert_eq!(site.ask(&site.person("", &[Right::Read]), "/b/1", &[]).page().texts("td.attribvalue"), ["Problem"]);
    // 1: on the line of the attribute before.
    assert_eq!(entry("Format Type = 1, mine").all("table.attributes tr").len(), 2);
    assert_eq!(entry("Format Type = 0, mine").texts("td.mine"), ["Problem"]);
    assert_eq!(entry("Tooltip Type = category").one("th[title=category]").text(), "Type:");
    let site = TestSite::new(
        "[b]\nAttributes = Day, When, Done\nType Day = date\nType When = datetime\nOptions Done = boolean\nDate format = %Y/%m/%d\nTime format When = at %H:%M\n",
    );
    site.post("b", DAY, &["Day=1767268800", "When=1767268800", "Done=1"], "x");
    assert_eq!(site.get("/b/1").page().texts("td.attribvalue"), ["2026/01/01", "at 12:00", "☑"]);
    let site = TestSite::new("[b]\nAttributes = Day\nType Day = date\nDate format = %Y\nDate format Day = %d.%m.\n");
    site.post("b", DAY, &["Day=1767268800"], "x");
    assert_eq!(site.get("/b/1").page().texts("td.attribvalue"), ["01.01."]);
}

#[test]
fn thumbnails_have_their_size() {
    for (options, expected) in
        [("", "max-width:300px;max-height:300px"), ("Thumbnail size = 128x128>", "max-width:128px;max-height:128px")]
    {
        let site = book(options);
        let upload = site.store.upload(&mut &b"x"[..], 10).unwrap();
        let mut content = site.store.entry(&site.at("b", 1)).unwrap().content;
        content.attachments = vec![upload.attachment("a.png", tampu_types::Time(0))];
        site.store.edit(&site.at("b", 1), content, vec![upload], "zoe", None).unwrap();
        assert_eq!(site.get("/b/1").page().one("td.attachmentframe img").get("style"), expected);
    }
}

#[test]
fn presets_and_substitutions_fill_forms_in() {
    let options = "Preset Author = $long_name ($short_name, $user_email) from $remote_host\nPreset Subject = in $logbook\nPreset text = Dear all,\\n$author\n";
    let page = form(options);
    assert_eq!(value(&page, "Author"), "Zoe Quartz (zoe, zoe@site.test) from 192.0.2.7");
    assert_eq!(value(&page, "Subject"), "in b");
    assert_eq!(page.one("textarea").text(), "Dear all, $author", "an empty entry has no author");
    let site = book(
        "Preset on reply Type = Routine\nPreset on first reply Subject = First: $subject\nPreset on edit Author = $author, $long_name\n\
         Preset on duplicate Subject = Copy of $subject\nSubst on reply Author = $long_name\nRemove on reply = Type\n",
    );
    let reply = site.get("/b/1?cmd=Reply").page();
    assert_eq!((value(&reply, "Subject"), value(&reply, "Author")), ("First: HV trip".to_owned(), "Zoe Quartz".to_owned()));
    assert_eq!(reply.texts("select[name=Type] option[selected]"), ["Routine"]);
    site.post_as("b", DAY, &["Subject=answer"], "x", Some(1), "kim");
    assert_eq!(value(&site.get("/b/1?cmd=Reply").page(), "Subject"), "HV trip");
    assert_eq!(value(&site.get("/b/1?cmd=Edit").page(), "Author"), "Zoe, Zoe Quartz");
    assert_eq!(value(&site.get("/b/1?cmd=Duplicate").page(), "Subject"), "Copy of HV trip");
    let removed = book("Remove on reply = Subject").get("/b/1?cmd=Reply").page();
    assert_eq!(value(&removed, "Subject"), "");
}

#[test]
fn texts_of_answers_and_edits() {
    let text = |options: &str, cmd: &str| book(options).get(&format!("/b/1?cmd={cmd}")).page().one("textarea").text();
    let all = "> first line of the text > second line of it > third";
    assert_eq!(text("", "Reply"), all);
    assert_eq!(text("Reply string = |", "Reply"), "|first line of the text |second line of it |third");
    assert_eq!(text("Quote on reply = 0", "Reply"), "");
    assert_eq!(text("Prepend on reply = $author wrote:\\n\nAppend on reply = --", "Reply"), format!("Zoe wrote: {all} --"));
    assert_eq!(text("Prepend on edit = [\nAppend on edit = ]", "Edit"), "[first line of the text second line of it third]");
}

#[test]
fn forms_are_as_configured() {
    let page = form(
        "Locked Attributes = Author\nPreset Author = me\nRequired Attributes = Subject\nMessage comment = what happened\nAttachment comment = plots\n\
         Format Subject = 0, cell, field, 33\nComment Subject = short\nMessage width = 50\nMessage height = 5\nSuppress default = 1\nShow attributes edit = Author, Subject\n",
    );
    assert_eq!((page.one("span.fixed").text(), page.one("input[name=Author]").get("type")), ("me".to_owned(), "hidden"));
    assert_eq!((page.one("input[name=Subject]").get("size"), page.one("input[name=Subject]").get("class")), ("33", "field"));
    assert_eq!(page.texts("div.comment"), ["what happened"]);
    assert_eq!(page.texts("span.comment"), ["short", "plots"]);
    assert_eq!((page.one("textarea").get("cols"), page.one("textarea").get("rows")), ("50", "5"));
    assert!(page.all("[name=suppress]").is_empty(), "no mail is sent that could be suppressed");
    assert!(page.all("select[name=Type]").is_empty());
    assert!(form("Enable attachments = 0").all("input[type=file]").is_empty());
    assert!(form("Show text = 0").all("textarea").is_empty());
    let edit = |options: &str| book(options).get("/b/1?cmd=Edit").page();
    assert!(edit("Resubmit default = 1").one("[name=resubmit]").attributes.contains_key("checked"));
    assert!(!edit("").one("[name=resubmit]").attributes.contains_key("checked"));
    assert!(edit("Resubmit default = 2").all("[name=resubmit]").is_empty());
    assert_eq!(edit("Fixed Attributes Edit = Subject").texts("span.fixed"), ["HV trip"]);
    let site = book("Fixed Attributes Reply = Subject\nReply comment = be kind");
    let reply = site.get("/b/1?cmd=Reply").page();
    assert_eq!((reply.texts("span.fixed"), reply.texts("div.comment")), (vec!["HV trip".to_owned()], vec!["be kind".to_owned()]));
    assert_eq!(form("Allowed encoding = 1").texts("div.encodings label"), ["plain", "ELCode"], "the default is offered too");
    assert_eq!(form("Default encoding = 2").one("div.encodings input[checked]").get("value"), "HTML");
    assert_eq!(form("Allow HTML = 0").texts("div.encodings label"), ["ELCode", "plain"]);
}

#[test]
fn a_lock_is_told_and_can_be_passed() {
    let site = book("Use lock = 1");
    assert_eq!(site.get("/b/1?cmd=Edit").page().all("form.entry").len(), 1);
    let kim = site.person("kim", &ALL);
    site.store.unlock(&site.at("b", 1), "zoe").unwrap();
    for headers in [("sec-fetch-dest", "image"), ("accept", "image/png,*/*")] {
        site.ask(&kim, "/b/1?cmd=Edit", &[headers, ("accept-language", "en")]);
        assert!(site.store.locked(&site.at("b", 1)).unwrap().is_none(), "a picture locks nothing: {headers:?}");
    }
    site.ask(&site.person("zoe", &ALL), "/b/1?cmd=Edit", &[("sec-fetch-dest", "document")]);
    let answer = site.ask(&kim, "/b/1?cmd=Edit", &[]);
    assert!(answer.error().starts_with("Entry is currently edited by zoe"), "{}", answer.body);
    assert!(site.ask(&kim, "/b/1", &[]).page().text().contains("Entry is currently edited by zoe"));
    let passed = site.ask(&kim, "/b/1?cmd=Edit&skiplock=1", &[]).page();
    assert_eq!(value(&passed, "skiplock"), "1");
    assert!(book("").store.locked(&site.at("b", 1)).unwrap().is_none());
}

#[test]
fn commands_are_allowed_as_configured() {
    let status = |options: &str, login: &str, path: &str| {
        let site = book(options);
        let answer = site.ask(&site.person(login, if login.is_empty() { &[Right::Read] } else { &WRITER }), path, &[]);
        if answer.body.contains("type=password") { 401 } else { answer.status.as_u16() }
    };
    for (options, login, path, expected) in [
        ("Deny New = kim", "kim", "/b/?cmd=New", 403),
        ("Deny New = kim", "zoe", "/b/?cmd=New", 200),
        ("Allow New = zoe", "kim", "/b/?cmd=New", 403),
        ("Allow New = zoe", "zoe", "/b/?cmd=New", 200),
        ("Menu commands = List, Reply", "zoe", "/b/1?cmd=Edit", 403),
        ("Menu commands = List, Reply", "zoe", "/b/1?cmd=Reply", 200),
        ("Menu commands = List\nList menu commands = New", "zoe", "/b/?cmd=New", 200),
        ("Guest menu commands = List", "", "/b/?cmd=Find", 401),
        ("Guest menu commands = List, Find", "", "/b/?cmd=Find", 200),
        ("Login user = kim", "zoe", "/b/", 403),
        ("Login user = kim", "kim", "/b/", 200),
        ("Login user = kim\nAdmin user = zoe", "zoe", "/b/", 200),
        ("Restrict edit = 1", "zoe", "/b/1?cmd=Edit", 200),
        ("Restrict edit = 1", "kim", "/b/1?cmd=Edit", 403),
        ("Restrict edit time = 1", "zoe", "/b/1?cmd=Edit", 403),
        ("Restrict edit time = 1\nAdmin user = zoe", "zoe", "/b/1?cmd=Edit", 200),
        ("Admin restrict edit time = 1\nAdmin user = zoe", "zoe", "/b/1?cmd=Edit", 403),
        ("Search slave = 1", "zoe", "/b/?cmd=New", 403),
    ] {
        assert_eq!(status(options, login, path), expected, "{options} {login} {path}");
    }
    assert_eq!(
        entry("Menu commands = Find, New, Last 10, Last day, Coffee, Submit").texts("nav.menuframe a"),
        ["Find", "New", "Last 10", "Last day"]
    );
    let site = book("List menu commands = Find\nGuest list menu commands = Help");
    assert_eq!(site.get("/b/").page().texts("nav.menuframe a"), ["Find"]);
    assert_eq!(site.ask(&site.person("", &[Right::Read]), "/b/", &[]).page().texts("nav.menuframe a"), ["Help"]);
    // Without users there is no registration, whatever the option says; `accounts.rs` has the sites with users.
    let site = book("Self register = 1");
    assert!(!site.ask(&site.person("", &[]), "/b/", &[]).body.contains("Register"));
}
