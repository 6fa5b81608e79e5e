//! Forms as people use them: the script and its permission, previews, drafts, references to files, other editors.

use http::{Method, StatusCode, header};

mod support;

#[path = "support/desk.rs"]
mod desk;

use desk::{ALL, Answer, Desk, caller};
use support::html;
use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute},
    entry::{Change, Content, Encoding, EntryRef, NewEntry},
    people::Right,
    store::{Drafts, Entries, PagePart},
};

const CFG: &str =
    "[b]\nAttributes = Author, Subject\nRequired Attributes = Author\nAllowed encoding = 7\nTime format = at %H:%M on %d.%m.%Y\n";

/// A site whose visitor uses a browser.
fn desk(cfg: &str) -> Desk {
    let mut desk = Desk::new(cfg);
    desk.headers.push(("accept-language", "en".to_owned()));
    desk
}

fn token(desk: &Desk) -> String {
    let page = html::parse(&desk.get("/b/?cmd=New").text());
    page.one("form.entry [name=tampu_form]").get("value").to_owned()
}

fn send(desk: &Desk, fields: &[(&str, &str)]) -> Answer {
    let token = token(desk);
    let all: Vec<_> = [("tampu_form", token.as_str())].into_iter().chain(fields.iter().copied()).collect();
    desk.fields("/b/", &all)
}

#[test]
fn the_policy_allows_the_script_of_forms_and_no_other() {
    let desk = desk(CFG);
    let answer = desk.get("/b/?cmd=New");
    let page = html::parse(&answer.text());
    let script = page.one("script");
    let (address, digest) = (script.get("src"), script.get("integrity"));
    let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    let name = address.strip_prefix("../").unwrap();
    let sources = policy.split("script-src ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(sources, format!("'{digest}' http://elog.site:8080/{name}"));
    let file = desk.get(&format!("/{name}"));
    assert_eq!(file.status, StatusCode::OK);
    assert!(file.headers[header::CACHE_CONTROL].to_str().unwrap().contains("immutable"));
    assert!(file.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/javascript"));
    assert_eq!(desk.get("/elog-form-0000000000000000.js").status, StatusCode::NOT_FOUND, "an older script");
    assert!(html::parse(&desk.get("/b/").text()).all("script").is_empty(), "lists have no script");
}

#[test]
fn a_preview_shows_the_text_and_keeps_the_form() {
    let desk = desk(CFG);
    let answer =
        send(&desk, &[("cmd", "Preview"), ("Author", "Zoe"), ("encoding", "HTML"), ("Text", "<b>HV</b><script>x</script>")]);
    let page = html::parse(&answer.text());
    let preview = page.all("div.messageframe").into_iter().find(|one| one.get("id") == "preview").unwrap();
    assert_eq!((preview.texts("b"), preview.all("script").len()), (vec!["HV".to_owned()], 0));
    assert_eq!(page.one("form.entry [name=Author]").get("value"), "Zoe");
    assert_eq!(desk.store.books().unwrap()[0].entries, 0, "nothing is posted");
}

#[test]
fn drafts_outlive_the_session_and_are_offered_where_they_belong() {
    let desk = desk(CFG);
    let id = send(&desk, &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "one")]).id().to_string();
    // A script gets the number; a page without scripts the form again.
    let kept = send(&desk, &[("cmd", "Save"), ("scripted", "1"), ("edit_id", &id), ("Author", "Zoe"), ("Text", "two")]);
    let kept = kept.text();
    let (number, note) = kept.strip_prefix("OK ").unwrap().split_once('\n').unwrap();
    let (number, time) = (number.to_owned(), note.strip_prefix("Draft saved at ").unwrap());
    let saved = desk.store.drafts("zoe").unwrap()[0].saved;
    assert_eq!(time, tampu_elog::pages::Zone::default().write(saved, 0, "at %H:%M on %d.%m.%Y"));
    let again = send(&desk, &[("cmd", "Save"), ("draft_id", &number), ("edit_id", &id), ("Author", "Zoe"), ("Text", "three")]);
    let page = html::parse(&again.text());
    assert_eq!(page.one("form.entry [name=draft_id]").get("value"), number);
    assert_eq!(desk.store.drafts("zoe").unwrap().len(), 1);
    // Offered beside the form of that entry and beside an empty form; not beside a reply, and to nobody else.
    let link = format!("./?cmd=New&draft={number}");
    let offers = |desk: &Desk, path: &str| {
        let page = html::parse(&desk.get(path).text());
        page.all("form.drafts a").iter().any(|one| one.get("href") == link)
    };
    let places = ["/b/?cmd=New".to_owned(), "/b/".to_owned(), format!("/b/{id}?cmd=Edit"), format!("/b/{id}?cmd=Reply")];
    assert_eq!(places.each_ref().map(|path| offers(&desk, path)), [true, true, true, false]);
    assert!(html::parse(&desk.get("/b/?cmd=New").text()).one("form.entry").attributes.contains_key("data-saves"));
    for option in ["List drafts", "Save drafts"] {
        let mut book = desk.store.book("b").unwrap();
        book.elog.push((option.to_owned(), "0".to_owned()));
        desk.store.put_book(&book).unwrap();
        assert!(!offers(&desk, "/b/") && offers(&desk, "/b/?cmd=New"), "{option}");
        let form = html::parse(&desk.get("/b/?cmd=New").text());
        assert_eq!(form.one("form.entry").attributes.contains_key("data-saves"), option == "List drafts");
        book.elog.pop();
        desk.store.put_book(&book).unwrap();
    }
    // Resumed, it is an edit of the revision that is there, with a warning if that is newer.
    let resumed = format!("/b/?cmd=New&draft={number}");
    let page = html::parse(&desk.get(&resumed).text());
    let value = |name: &str| page.one(&format!("form.entry [name={name}]")).get("value").to_owned();
    assert_eq!(
        (value("edit_id"), value("entry_revision"), page.one("textarea").text()),
        (id.clone(), "0".to_owned(), "three".to_owned())
    );
    assert!(page.all("td.errormsg").is_empty());
    let at = EntryRef::new("b", id.parse().unwrap());
    let mut content = desk.store.entry(&at).unwrap().content;
    content.text = "meanwhile".to_owned();
    desk.store.edit(&at, content, vec![], "max", None).unwrap();
    assert!(html::parse(&desk.get(&resumed).text()).texts("td.errormsg")[0].contains("was changed after this draft"));
    let other = Desk { caller: caller("max", &ALL, &["b"]), ..desk };
    assert!(!offers(&other, "/b/?cmd=New"));
    assert_eq!(send(&other, &[("cmd", "Drop draft"), ("draft_id", &number)]).status, StatusCode::FOUND);
    let desk = Desk { caller: caller("zoe", &ALL, &["b"]), ..other };
    assert_eq!(desk.store.drafts("zoe").unwrap().len(), 1, "nobody discards another user's draft");
    send(&desk, &[("cmd", "Drop draft"), ("draft_id", &number)]);
    assert!(desk.store.drafts("zoe").unwrap().is_empty());
}

#[test]
fn a_reference_to_a_sent_file_becomes_its_address() {
    let desk = desk(CFG);
    let token = token(&desk);
    let text = b"<img src=\"attachment:pasted-1.png\"> and attachment:other.png";
    let parts: [(&str, Option<&str>, &[u8]); 7] = [
        ("tampu_form", None, token.as_bytes()),
        ("cmd", None, b"Submit"),
        ("scripted", None, b"1"),
        ("Author", None, b"Zoe"),
        ("encoding", None, b"HTML"),
        ("attfile1", Some("pasted-1.png"), b"one"),
        ("attfile1", Some("b.txt"), b"two"),
    ];
    let parts: Vec<_> = parts.into_iter().chain([("Text", None, &text[..])]).collect();
    let answer = desk.post("/b/", &parts);
    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, "OK 1"));
    let entry = desk.store.entry(&EntryRef::new("b", 1)).unwrap();
    assert_eq!(entry.content.attachments.len(), 2, "several files under one name");
    let page = html::parse(&desk.get("/b/1").text());
    let address = page.one("div.messageframe img").get("src").to_owned();
    assert!(address.ends_with("/pasted-1.png") && entry.content.text.ends_with("attachment:other.png"), "{}", entry.content.text);
    let picture = desk.get(&format!("/b/{address}"));
    assert_eq!((picture.status, picture.bytes.as_slice()), (StatusCode::OK, &b"one"[..]));
}

#[test]
fn a_form_learns_who_else_edits_and_that_the_entry_has_changed() {
    let desk = desk(CFG);
    let id = send(&desk, &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "one")]).id().to_string();
    let ask = |desk: &Desk| send(desk, &[("cmd", "Editing"), ("edit_id", &id)]).text();
    assert_eq!(ask(&desk), "0");
    let max = Desk { caller: caller("max", &ALL, &["b"]), ..desk };
    assert_eq!(ask(&max), "0\nzoe Quartz");
    send(&max, &[("cmd", "Submit"), ("edit_id", &id), ("Author", "Zoe"), ("Text", "two")]);
    assert_eq!(ask(&max), "1\nzoe Quartz");
    let reader = Desk { caller: caller("eve", &ALL[..1], &["b"]), ..max };
    let answer = reader.ask(
        Method::POST,
        "/b/",
        &[("content-type", "application/x-www-form-urlencoded")],
        format!("cmd=Editing&edit_id={id}").as_bytes(),
    );
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

#[test]
fn guests_of_one_address_learn_of_each_other() {
    let desk = desk(CFG);
    let id = send(&desk, &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "one")]).id().to_string();
    let guest = Desk { caller: caller("", &[Right::Read, Right::Write, Right::EditAny], &["b"]), ..desk };
    let ask = |tab: &str| send(&guest, &[("cmd", "Editing"), ("edit_id", &id), ("form_key", tab)]).text();
    assert_eq!(ask("1a"), "0");
    assert_eq!(ask("1a"), "0", "the same tab");
    assert_eq!(ask("2b"), "0\nsomebody at 127.0.0.1");
    assert_eq!(ask("1a"), "0\nsomebody at 127.0.0.1");
}

#[test]
fn ticks_are_changes_by_those_who_may_edit() {
    let desk = desk(CFG);
    let content = Content {
        attributes: vec![EntryAttribute::new("Author", "Zoe")],
        encoding: Encoding::Markdown,
        text: "- [ ] open valve <7>\n- [x] check `HV`\n".to_owned(),
        ..Content::default()
    };
    let new = |content: Content| NewEntry { book: "b".to_owned(), content, ..NewEntry::default() };
    let at = desk.store.post(new(content.clone()), vec![], "zoe").unwrap();
    let page = html::parse(&desk.get("/b/1").text());
    let form = page.one("form.checklist");
    let boxes = form.all("input[type=checkbox]");
    let shown: Vec<_> =
        boxes.iter().map(|one| (one.get("name"), one.get("aria-label"), one.attributes.contains_key("checked"))).collect();
    assert_eq!(shown, [("tick0", "open valve <7>", false), ("tick1", "check HV", true)]);
    let tick = |fields: &[(&str, &str)]| {
        let token = token(&desk);
        let all: Vec<_> = [("tampu_form", token.as_str()), ("cmd", "Tick")].into_iter().chain(fields.iter().copied()).collect();
        desk.fields("/b/1", &all)
    };
    assert_eq!(tick(&[("entry_revision", "0"), ("tick0", "1")]).status, StatusCode::FOUND);
    let entry = desk.store.entry(&at).unwrap();
    assert_eq!((entry.content.text.as_str(), entry.revision), ("- [x] open valve <7>\n- [ ] check `HV`\n", 1));
    let history = desk.store.history_page(&at, PagePart::default()).unwrap();
    assert_eq!((history.revisions[1].by.as_str(), history.revisions[1].what), ("zoe", Change::Edited));
    // The page of an older revision changes nothing.
    assert!(tick(&[("entry_revision", "0"), ("tick1", "1")]).error().contains("was changed by another user"));
    assert!(tick(&[]).error().contains("was changed by another user"));
    // Boxes of the author's own HTML are not items.
    desk.store.post(new(Content { text: "- [ ] a\n\n<input type=checkbox>\n".to_owned(), ..content }), vec![], "zoe").unwrap();
    assert!(html::parse(&desk.get("/b/2").text()).all("form.checklist").is_empty());
    let reader = Desk { caller: caller("eve", &ALL[..1], &["b"]), ..desk };
    assert!(html::parse(&reader.get("/b/1").text()).all("form.checklist").is_empty());
}

#[test]
fn attributes_of_a_whole_thread_change_together() {
    let desk = desk(CFG);
    let first = send(&desk, &[("cmd", "Submit"), ("Author", "Zoe"), ("Subject", "a")]).id().to_string();
    send(&desk, &[("cmd", "Submit"), ("reply_to", &first), ("Author", "Max"), ("Subject", "b")]).id();
    let page = html::parse(&desk.get("/b/1").text());
    let form = page.one("form.wholethread");
    let fields: Vec<(String, String)> =
        form.all("input").iter().map(|one| (one.get("name").to_owned(), one.get("value").to_owned())).collect();
    let mut all: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.push(("cmd", "Edit"));
    let page = html::parse(&desk.fields("/b/", &all).text());
    let selected = page.one("[name=tampu_selected]").get("value").to_owned();
    assert_eq!(selected, "1,2");
    let change = [("cmd", "Submit"), ("tampu_selected", selected.as_str()), ("Subject", "fixed")];
    assert_eq!(send(&desk, &change).status, StatusCode::FOUND);
    let said = |id: u32, name: &str| desk.store.entry(&EntryRef::new("b", id)).unwrap().content.attribute(name).unwrap().joined();
    assert_eq!([said(1, "Subject"), said(2, "Subject"), said(1, "Author"), said(2, "Author")], ["fixed", "fixed", "Zoe", "Max"]);
    // A lock of one of them keeps all as they are.
    desk.store.lock(&EntryRef::new("b", 2), "max", "host", std::time::Duration::from_secs(60)).unwrap();
    send(&desk, &[("cmd", "Submit"), ("tampu_selected", "1,2"), ("Subject", "later")]);
    assert_eq!([said(1, "Subject"), said(2, "Subject")], ["fixed", "fixed"]);
}

#[test]
fn forms_have_tags_lines_and_computed_values() {
    let desk = desk(CFG);
    let computed =
        AttributeDef { computed: "= $U * 2".to_owned(), required: true, ..AttributeDef::new("P", AttributeKind::Numeric) };
    let remark = AttributeDef { multi_line: true, ..AttributeDef::new("Remark", AttributeKind::Text) };
    let rest = [AttributeDef::new("U", AttributeKind::Numeric), computed, remark, AttributeDef::new("Tag", AttributeKind::Tags)];
    desk.store.put_book(&Book::new("b", rest.to_vec())).unwrap();
    let sent =
        [("cmd", "Submit"), ("U", "4"), ("P", "7"), ("Remark", "one\r\ntwo"), ("Tag", "hv, night shift,, HV"), ("Text", "x")];
    send(&desk, &sent).id();
    let entry = desk.store.entry(&EntryRef::new("b", 1)).unwrap();
    let values = |name: &str| entry.content.attribute(name).unwrap().values.clone();
    assert_eq!(
        (values("P"), values("Remark"), values("Tag")),
        (vec!["8".to_owned()], vec!["one\ntwo".to_owned()], vec!["hv".to_owned(), "night shift".to_owned()])
    );
    let page = html::parse(&desk.get("/b/1").text());
    assert_eq!(
        (page.texts("a.tag"), page.texts("span.lines")),
        (vec!["hv".to_owned(), "night shift".to_owned()], vec!["one two".to_owned()])
    );
    let list = page.one("a.tag").get("href").replace("../", "/");
    assert_eq!(html::parse(&desk.get(&list).text()).all("td.list1").len().min(1), 1, "{list}");
    let form = html::parse(&desk.get("/b/1?cmd=Edit").text());
    assert_eq!(form.one("input[data-tags]").get("value"), "hv, night shift");
    let offered: Vec<_> = form.all("datalist option").iter().map(|one| one.get("value")).collect();
    assert_eq!(offered, ["hv", "night shift"]);
    assert_eq!(
        (form.texts("span.fixed"), form.one("textarea[name=Remark]").text()),
        (vec!["8".to_owned()], "one two".to_owned())
    );
    let form = html::parse(&desk.get("/b/?cmd=New").text());
    assert_eq!(form.all("input[name=P]").len(), 1, "hidden, and nobody writes it");
}
