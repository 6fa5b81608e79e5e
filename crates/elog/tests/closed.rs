//! A closed book reveals nothing to callers who may not read it, whatever they request and by whichever way.

use desk::{ALL, Desk, caller};
use http::Method;
use tampu_elog::pages::{address, command::PageCommand};
use tampu_logbook::{
    people::{Caller, People, Right, registry::Settings},
    store::Entries,
};

#[path = "support/desk.rs"]
mod desk;

const CFG: &str = "[Open]\nAttributes = Author\n[Closed]\nComment = hush1\nAttributes = Author\nLogin user = zoe\n\
    Hosts deny = 192.0.2., 198.51.100.9\n";

/// The words of the book, each in another place.
const HUSHED: [&str; 5] = ["hush1", "hush2", "hush3", "hush4", "hush5"];

const COMMANDS: [&str; 32] = [
    "New",
    "Edit",
    "Reply",
    "Duplicate",
    "Delete",
    "Find",
    "List",
    "Select",
    "Config",
    "Help",
    "Login",
    "Logout",
    "Copy to",
    "Move to",
    "Download",
    "CSV Import",
    "XML Import",
    "GetMD5",
    "First",
    "Previous",
    "Next",
    "Last",
    "Last day",
    "Last 10",
    "Submit",
    "Update",
    "Save",
    "Back",
    "Search",
    "Forgot",
    "Change password",
    "Coffee",
];

fn filled() -> (Desk, Vec<String>) {
    let desk = Desk::new(CFG);
    for _ in 0..2 {
        let fields: [(&str, Option<&str>, &[u8]); 4] = [
            ("cmd", None, b"Submit"),
            ("Author", None, b"hush2"),
            ("Text", None, b"hush3"),
            ("attfile1", Some("hush4.txt"), b"hush5"),
        ];
        desk.post("/Closed/", &fields).id();
    }
    let entry = desk.store.entry(&tampu_logbook::entry::EntryRef::new("Closed", 1)).unwrap();
    let stored = entry.content.attachments[0].elog.clone().unwrap();
    let places = ["", "1", "page1", "page", "last5", "past5", "elog.rdf", "cal.html", "coffee"].map(str::to_owned);
    let files = [stored.clone(), format!("1/{stored}"), stored.replacen('_', "/", 2).replacen('/', "_", 1)];
    (desk, places.into_iter().chain(files).collect())
}

#[test]
fn a_closed_book_gives_nothing_of_itself() {
    let (mut desk, places) = filled();
    assert!(COMMANDS.iter().filter(|name| PageCommand::named(name).is_some()).count() == 31);
    let everything = places.iter().map(|place| desk.get(&format!("/Closed/{place}")).bytes).collect::<Vec<_>>().concat();
    let everything = String::from_utf8_lossy(&everything);
    assert!(HUSHED[1..].iter().all(|word| everything.contains(word)), "these places have something of the book");
    let digests = desk.get("/Closed/?cmd=GetMD5").text();
    assert!(digests.contains("ID:      1"));

    let (read, all) = ([Right::Read], [Right::Read, Right::Write, Right::EditOwn]);
    let strangers = [
        caller("", &read, &["Open"]),
        caller("kim", &all, &["Open"]),
        caller("kim", &all, &["Open", "Closed"]),
        caller("", &[], &[]),
        // A user with rights, at an address that nobody may use.
        Caller { from: [192, 0, 2, 7].into(), ..caller("zoe", &ALL, &["Open", "Closed"]) },
    ];
    for stranger in strangers {
        desk.caller = stranger;
        for place in &places {
            for command in COMMANDS.map(Some).into_iter().chain([None]) {
                for more in ["", "mode=CSV3", "mode=XML", "mode=full", "thumb=1"] {
                    let command = command.map(|name| format!("cmd={}", address::escape(name))).unwrap_or_default();
                    let uri = format!("/Closed/{place}?{command}&{more}");
                    for method in [Method::GET, Method::HEAD, Method::POST] {
                        let answer = desk.ask(method.clone(), &uri, &[("content-length", "0")], b"");
                        let text = String::from_utf8_lossy(&answer.bytes);
                        let who = (&desk.caller.login, &method);
                        assert!(!HUSHED.iter().any(|word| text.contains(word)), "{who:?} {uri}: {text}");
                        assert!(!text.contains("MD5:") && !text.contains("Configuration"), "{who:?} {uri}: {text}");
                    }
                }
            }
        }
    }
    let answer = desk.get("/Closed/1").error();
    assert_eq!(answer, "Error: access from 192.0.2.7 to logbook &#39;Closed&#39; is not allowed");
    for place in ["/", "/Open/", "/Open/?all=1&subtext=hush3"] {
        let text = desk.get(place).text();
        assert!(!HUSHED[..2].iter().any(|word| text.contains(word)) && !text.contains("Closed"), "{place}: {text}");
    }
    // The pointer of a moved entry does not show its place, either.
    desk.caller = caller("zoe", &[Right::Read, Right::Write], &["Open", "Closed"]);
    let id = desk.fields("/Open/", &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")]).id();
    let at = tampu_logbook::entry::EntryRef::new("Open", id);
    desk.store.move_to(&at, "Closed", "zoe", true).unwrap();
    assert!(desk.get(&format!("/Open/{id}")).error().contains("was moved to Closed/3"));
    desk.caller = caller("kim", &[Right::Read], &["Open", "Closed"]);
    assert!(desk.get(&format!("/Open/{id}")).error().ends_with("was moved"));
    desk.store.delete(&tampu_logbook::entry::EntryRef::new("Closed", 3), "zoe", true).unwrap();
    assert_eq!(desk.store.books().unwrap().iter().map(|info| info.entries).sum::<u64>(), 2);
}

/// A name is not looked up, so any other address could be the denied one. Pages and rights agree.
#[test]
fn a_denied_name_shuts_out_all_hosts_that_are_not_allowed() {
    let mut desk = Desk::new("[Named]\nAttributes = Author\nHosts deny = 203.0.113., .student.test\nHosts allow = 198.51.100.\n");
    desk.fields("/Named/", &[("cmd", "Submit"), ("Author", "Zoe"), ("Text", "hush")]).id();
    let people = People::new(desk.store.clone(), Settings::default()).unwrap();
    for (from, open) in [
        ("192.0.2.7", false),
        ("203.0.113.7", false),
        ("198.51.100.7", true),
        ("::ffff:198.51.100.7", true),
        ("127.0.0.1", true),
        ("::1", true),
    ] {
        let from = from.parse().unwrap();
        desk.caller = Caller { from, ..caller("zoe", &ALL, &["Named"]) };
        assert_eq!(desk.get("/Named/1").text().contains("hush"), open, "{from}");
        assert_eq!(people.is_open_to("Named", from).unwrap(), open, "{from}");
    }
}
