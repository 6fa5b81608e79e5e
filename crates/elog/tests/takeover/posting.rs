//! Posting, editing and answering.

use http::StatusCode;
use tampu_elog::{config, pages::csrf};
use tampu_logbook::{
    book::{
        EntryAttribute,
        locked::{LockedBy, keeps_locked},
    },
    entry::{Entry, EntryRef},
    store::Entries,
};

use crate::{
    desk::{self, Desk},
    html::parse,
};

fn entry(desk: &Desk, id: u32) -> Entry {
    desk.store.entry(&EntryRef::new("Runs", id)).unwrap()
}

fn values(desk: &Desk, id: u32, name: &str) -> Vec<String> {
    entry(desk, id).content.attribute(name).map_or_else(Vec::new, |said| said.values.clone())
}

/// Sends a form of this site's page.
fn send(desk: &Desk, fields: &[(&str, &str)]) -> desk::Answer {
    let token = csrf::token(&desk.site, &desk.caller, None);
    desk.fields("/Runs/", &[&[(csrf::FIELD, token.as_str()), ("cmd", "Submit")], fields].concat())
}

const BOXES: &str = "[Runs]\nAttributes = Kind, Att, Subject\nOptions Kind = A{1}, B{2}, C\n{1} MOptions Att = x, y, z\n\
    {2} MOptions Att = p, q\n";

#[test]
fn ticked_boxes_of_a_condition_are_kept() {
    let desk = Desk::new(BOXES);
    let id = send(&desk, &[("Kind", "A"), ("Att_0", "x"), ("Att_2", "z"), ("Text", "t")]).id();
    assert_eq!(values(&desk, id, "Att"), ["x", "z"]);
    // The same from a program, as one text.
    let id = desk.fields("/Runs/", &[("cmd", "Submit"), ("Kind", "B"), ("Att", "p | q"), ("Text", "t")]).id();
    assert_eq!(values(&desk, id, "Att"), ["p", "q"]);
    // A reply and a duplicate bring the boxes of the entry, ticked.
    for cmd in ["Reply", "Duplicate", "Edit"] {
        let page = parse(&desk.get(&format!("/Runs/{id}?cmd={cmd}")).text());
        let ticked: Vec<String> = page
            .all("input[type=checkbox]")
            .into_iter()
            .filter(|found| found.get("name").starts_with("Att_"))
            .map(|found| format!("{}{}", found.get("value"), if found.attributes.contains_key("checked") { "+" } else { "" }))
            .collect();
        assert_eq!(ticked, ["p+", "q+"], "{cmd}");
    }
    let id = send(&desk, &[("reply_to", "2"), ("Kind", "B"), ("Att_1", "q"), ("Text", "t")]).id();
    assert_eq!(values(&desk, id, "Att"), ["q"]);
    // Without a box, an edit by the page clears them; a program that does not name them leaves them.
    send(&desk, &[("edit_id", "1"), ("Kind", "A"), ("Text", "t")]).id();
    assert!(values(&desk, 1, "Att").is_empty());
    desk.fields("/Runs/", &[("cmd", "Submit"), ("edit_id", "2"), ("Subject", "s")]).id();
    assert_eq!(values(&desk, 2, "Att"), ["p", "q"]);
    // Without its condition the attribute is a text.
    let id = send(&desk, &[("Kind", "C"), ("Att", "anything"), ("Text", "t")]).id();
    assert_eq!(values(&desk, id, "Att"), ["anything"]);
}

#[test]
fn imported_values_of_a_condition_are_cut() {
    let config = config::parse(BOXES.as_bytes());
    let book = config.logbooks()[0].book();
    let def = book.attribute("Att").unwrap();
    assert!(def.takes_several() && def.options.is_empty(), "{def:?}");
    book.accepts(&[EntryAttribute { name: "Att".to_owned(), values: vec!["x".to_owned(), "z".to_owned()] }]).unwrap();
}

#[test]
fn a_program_that_is_not_run_leaves_what_was_typed() {
    let cfg = "[Runs]\nAttributes = Event, Position, Subject\nRequired Attributes = Event\nSubst Event = $shell(number)\n\
        Subst Position = $shell(where)\nSubst on reply Position = $shell(where)\nPreset Subject = $shell(subject)\n";
    let desk = Desk::new(cfg);
    let id = send(&desk, &[("Event", "901"), ("Position", "12 N"), ("Text", "t")]).id();
    assert_eq!((values(&desk, id, "Event"), values(&desk, id, "Position")), (vec!["901".to_owned()], vec!["12 N".to_owned()]));
    let id = desk.elog("Runs", &[("cmd", "Submit"), ("Event", "902")], "text", &[]).id();
    assert_eq!(values(&desk, id, "Event"), ["902"]);
    let id = send(&desk, &[("reply_to", "1"), ("Event", "903"), ("Position", "13 N"), ("Text", "t")]).id();
    assert_eq!(values(&desk, id, "Position"), ["13 N"]);
    let faults = config::parse(cfg.as_bytes()).faults;
    assert_eq!(faults.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 5, 6, 7]);
    assert!(faults[0].1.contains("'Subst Event' has $shell(...), which is not run"), "{faults:?}");
}

#[test]
fn a_locked_attribute_that_the_configuration_sets_does_not_stop_an_edit() {
    let desk = Desk::new(
        "[Runs]\nAttributes = Comment, Revisions, State\nLocked Attributes = Revisions, State\nSubst on Edit Revisions = by $short_name\n\
         Preset State = new\nPreset on edit State = edited\n",
    );
    send(&desk, &[("Comment", "first"), ("Revisions", "none"), ("State", "new"), ("Text", "t")]).id();
    send(&desk, &[("edit_id", "1"), ("Comment", "changed"), ("Revisions", "forged"), ("State", "forged"), ("Text", "t")]).id();
    let now = |name| values(&desk, 1, name).join(",");
    assert_eq!((now("Comment"), now("Revisions"), now("State")), ("changed".into(), "by zoe".into(), "edited".into()));
    // py_elog sends all attributes back.
    desk.fields("/Runs/", &[("cmd", "Submit"), ("edit_id", "1"), ("Comment", "again"), ("Revisions", "x"), ("State", "y")]).id();
    assert_eq!((now("Comment"), now("Revisions")), ("again".into(), "by zoe".into()));
    // Nobody but the configuration changes it.
    let (was, mut is) = (entry(&desk, 1).content.attributes, entry(&desk, 1).content.attributes);
    is.iter_mut().find(|said| said.name == "Revisions").unwrap().values = vec!["forged".to_owned()];
    let book = config::parse(b"[Runs]\nAttributes = Revisions\nLocked Attributes = Revisions\n{1}Subst on edit Revisions = x\n");
    assert!(keeps_locked(&book.logbooks()[0].book(), &was, &is, LockedBy::People).is_err());
}

#[test]
fn an_entry_older_than_a_locked_attribute_gets_no_value_of_it() {
    let desk = Desk::new(
        "[Runs]\nAttributes = Comment, Revisions\nLocked Attributes = Revisions\nSubst on edit Revisions = $shell(x)\n",
    );
    desk.fields("/Runs/", &[("cmd", "Submit"), ("Comment", "first"), ("Text", "t")]).id();
    let mut old = desk.store.entry(&EntryRef::new("Runs", 1)).unwrap();
    old.content.attributes.retain(|said| said.name != "Revisions");
    desk.store.edit(&old.at, old.content.clone(), vec![], "zoe", None).unwrap();
    send(&desk, &[("edit_id", "1"), ("Comment", "second"), ("Revisions", "forged"), ("Text", "t")]).id();
    assert_eq!((values(&desk, 1, "Comment"), values(&desk, 1, "Revisions")), (vec!["second".to_owned()], vec![]));
}

#[test]
fn a_reply_has_its_prefix_once() {
    let desk = Desk::new(
        "[Runs]\nAttributes = Author, Subject, Comment\nSubst on reply Subject = Re: $Subject\nPreset on reply Comment =\n",
    );
    send(&desk, &[("Author", "Zoe"), ("Subject", "leak"), ("Comment", "of the parent"), ("Text", "t")]).id();
    let form = parse(&desk.get("/Runs/1?cmd=Reply").text());
    assert_eq!(form.one("input[name=Subject]").get("value"), "Re: leak");
    // An empty preset clears the field.
    assert_eq!(form.one("input[name=Comment]").get("value"), "");
    let id = send(&desk, &[("reply_to", "1"), ("Author", "Max"), ("Subject", "Re: leak"), ("Text", "t")]).id();
    assert_eq!(values(&desk, id, "Subject"), ["Re: leak"]);
    let desk = Desk::new("[Runs]\nAttributes = Author, Ser\nSubst on reply Author = $long_name\nSubst on reply Ser = R-###\n");
    send(&desk, &[("Author", "Max"), ("Text", "t")]).id();
    let id = send(&desk, &[("reply_to", "1"), ("Author", "forged"), ("Ser", "R-###"), ("Text", "t")]).id();
    assert_eq!(
        (values(&desk, id, "Author"), values(&desk, id, "Ser")),
        (vec!["zoe Quartz".to_owned()], vec!["R-001".to_owned()])
    );
}

#[test]
fn a_program_has_seen_no_form_of_a_reply() {
    let desk = Desk::new("[Runs]\nAttributes = Author, Subject\nSubst on reply Subject = Re: $Subject\n");
    send(&desk, &[("Author", "Zoe"), ("Subject", "leak"), ("Text", "t")]).id();
    let id = desk.elog("Runs", &[("cmd", "Submit"), ("reply_to", "1"), ("Subject", "leak")], "text", &[]).id();
    assert_eq!(values(&desk, id, "Subject"), ["Re: leak"]);
    let answer = send(&desk, &[("edit_id", "99"), ("Text", "t")]);
    assert_ne!(answer.status, StatusCode::FOUND);
}

#[test]
fn a_preset_gives_numbers_in_turn() {
    let desk = Desk::new("[Runs]\nAttributes = Ser, Subject\nPreset Ser = N-#####\n");
    for expected in ["N-00001", "N-00002"] {
        let form = parse(&desk.get("/Runs/?cmd=New").text());
        assert_eq!(form.one("input[name=Ser]").get("value"), expected);
        send(&desk, &[("Ser", expected), ("Text", "t")]).id();
    }
}
