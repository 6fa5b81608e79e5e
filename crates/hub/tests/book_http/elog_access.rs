//! ELOG's access options on every surface: what they mean is written down here by hand, and each surface is compared with it.

use serde_json::{Value, json};

use crate::site::{Client, Said, Site};

/// A word that stands in an entry's text, in an attribute and in its file.
const WORD: &str = "hushed";
/// The callers, in the order of the tables.
const WHO: [&str; 4] = ["guest", "reader", "writer", "admin"];

/// A surface on which entries are read, and its path.
type ReadSurface = (&'static str, String);

struct Setup {
    site: Site,
    clients: [Client; 4],
}

impl Setup {
    fn new() -> Setup {
        let site = Site::new();
        site.owner().put("/books/Other", json!({ "name": "Other", "attributes": [] })).is(201);
        let user = |login: &str| site.user(json!({ "login": login, "admin": login == "admin" }));
        let clients = [site.anybody(), user("reader"), user("writer"), user("admin")];
        let setup = Setup { site, clients };
        setup.configure("");
        let access = json!({ "site_guests": true, "grants": [
            { "to": "user:reader", "may": ["read"] },
            { "to": "user:writer", "may": ["read", "write", "edit-own", "edit-any"] },
        ] });
        for book in ["Book", "Other"] {
            setup.site.owner().put(&format!("/books/{book}/access"), access.clone()).is(200);
        }
        setup
    }

    /// Gives the logbook these options of an elogd.cfg.
    fn configure(&self, options: &str) {
        let pairs: Vec<Vec<&str>> = options.lines().map(|line| line.split(" = ").collect()).collect();
        let attributes = json!([{ "name": "Author", "kind": "text" }]);
        let said = self.site.owner().put("/books/Book", json!({ "name": "Book", "attributes": attributes, "elog": pairs }));
        assert!([200, 201].contains(&said.status), "{options}");
    }

    /// Posts an entry of the owner's; its number.
    fn entry(&self) -> u64 {
        let entry = json!({ "attributes": { "Author": WORD }, "text": WORD });
        self.site.owner().post("/books/Book/entries", entry).is(201).json()["id"].as_u64().unwrap()
    }
}

fn text(said: &Said) -> String {
    String::from_utf8_lossy(&said.bytes).into_owned()
}

/// Returns the surfaces that show an entry with one file.
fn surfaces(owner: &Client, book: &str, id: u64) -> Vec<ReadSurface> {
    let entry = owner.get(&format!("/books/{book}/entries/{id}")).json();
    let added = entry["attachments"][0]["added"].as_str().unwrap();
    let digits: String = added[2..19].chars().filter(char::is_ascii_digit).collect();
    let stored = format!("{}_{}_a.txt", &digits[..6], &digits[6..]);
    vec![
        ("ELOG's list", format!("/elog/{book}/")),
        ("ELOG's entry", format!("/elog/{book}/{id}")),
        ("ELOG's download", format!("/elog/{book}/{id}?cmd=Download")),
        ("ELOG's CSV", format!("/elog/{book}/?mode=CSV1")),
        ("ELOG's XML", format!("/elog/{book}/?mode=XML")),
        ("ELOG's attachment", format!("/elog/{book}/{stored}")),
        ("ELOG's RSS", format!("/elog/{book}/elog.rdf")),
        ("API entry", format!("/books/{book}/entries/{id}")),
        ("API thread", format!("/books/{book}/entries/{id}/thread")),
        ("API history", format!("/books/{book}/entries/{id}/history")),
        ("API attachment", format!("/books/{book}/entries/{id}/attachments/0")),
        ("API search of the book", format!("/search?book={book}&q={WORD}")),
        ("API search of all", format!("/search?q={WORD}")),
        ("API export", format!("/search/export?book={book}")),
    ]
}

#[test]
fn each_password_file_admits_its_own_users() {
    let site = Site::new();
    let owner = site.owner();
    let a = site.user(json!({ "login": "ann", "groups": ["elog a.pwd"] }));
    let b = site.user(json!({ "login": "ben", "groups": ["elog b.pwd"] }));
    let both = site.user(json!({ "login": "cyd", "groups": ["elog a.pwd", "elog b.pwd"] }));
    let none = site.user(json!({ "login": "dan" }));
    let named = site.user(json!({ "login": "eve" }));
    let admin = site.user(json!({ "login": "root", "admin": true }));
    let configure = |book: &str, options: Value| {
        let attributes = json!([{ "name": "Author", "kind": "text" }]);
        let said = owner.put(&format!("/books/{book}"), json!({ "name": book, "attributes": attributes, "elog": options }));
        assert!([200, 201].contains(&said.status), "{book}");
    };
    let entry = |book: &str| {
        let entry = json!({ "attributes": { "Author": WORD }, "text": WORD });
        let id = owner.post(&format!("/books/{book}/entries"), entry).is(201).json()["id"].as_u64().unwrap();
        owner.send("POST", &format!("/books/{book}/entries/{id}/attachments?name=a.txt"), WORD.as_bytes()).is(201);
        id
    };
    configure("Pub", json!([["Password file", "a.pwd"], ["Self register", "1"]]));
    let public = entry("Pub");
    // While one file is all, users without a file are admitted, and those who came from another file are not.
    for (who, client, reads) in [("ann", &a, true), ("ben", &b, false), ("dan", &none, true)] {
        assert_eq!(client.get(&format!("/books/Pub/entries/{public}")).status == 200, reads, "{who}");
    }
    configure("Same", json!([["Password file", "./a.pwd"]]));
    configure("Priv", json!([["Password file", "b.pwd"]]));
    configure("Seen", json!([["Password file", "b.pwd"], ["Guest menu commands", "List, Find"]]));
    configure("Free", json!([["Self register", "1"]]));
    let usual = json!({ "to": "everybody", "may": ["read", "write", "edit-own"] });
    let access = json!({ "site_guests": true, "grants": [usual, { "to": "user:eve", "may": ["read"] }] });
    owner.put("/books/Priv/access", access).is(200);
    site.register("Pub", "mallory");
    site.register("Free", "trudy");
    let registered = |login: &str| {
        let token = owner.post("/tokens", json!({ "login": login, "comment": "test" })).is(201).json();
        site.anybody().with("authorization", &format!("Bearer {}", token["secret"].as_str().unwrap()))
    };
    let who = [
        ("guest", site.anybody()),
        ("ann of a.pwd", a),
        ("ben of b.pwd", b.clone()),
        ("cyd of both", both),
        ("dan of none", none),
        ("eve, named", named),
        ("mallory, registered at Pub", registered("mallory")),
        ("trudy, registered at Free", registered("trudy")),
        ("an administrator", admin),
    ];
    for (book, reads, writes) in [
        (
            "Pub",
            [false, true, false, true, false, false, true, false, true],
            [false, true, false, true, false, false, true, false, true],
        ),
        (
            "Same",
            [false, true, false, true, false, false, true, false, true],
            [false, true, false, true, false, false, true, false, true],
        ),
        (
            "Priv",
            [false, false, true, true, false, true, false, false, true],
            [false, false, true, true, false, false, false, false, true],
        ),
        ("Seen", [true; 9], [false, false, true, true, false, false, false, false, true]),
        ("Free", [true; 9], [false, true, true, true, true, true, true, true, true]),
    ] {
        let id = entry(book);
        for ((who, client), (reads, writes)) in who.iter().zip(reads.into_iter().zip(writes)) {
            for (surface, path) in surfaces(&owner, book, id) {
                // A search of all logbooks finds what the others show.
                if surface == "API search of all" {
                    let found = client.get(&format!("{path}&limit=100")).json();
                    let books: Vec<&str> =
                        found["hits"].as_array().unwrap().iter().map(|hit| hit["entry"]["book"].as_str().unwrap()).collect();
                    assert_eq!(books.contains(&book), reads, "{book} {surface} {who}: {found}");
                    continue;
                }
                let said = client.get(&path);
                assert_eq!(text(&said).contains(WORD), reads, "{book} {surface} {who}: {} {}", said.status, text(&said));
            }
            let posted = client.post(&format!("/books/{book}/entries"), json!({ "attributes": { "Author": "x" }, "text": "x" }));
            assert_eq!(posted.status == 201, writes, "{book} {who}: {} {}", posted.status, text(&posted));
        }
    }
    // The administrator of a logbook does not decide who is admitted to others.
    let access = json!({ "grants": [{ "to": "user:ben", "may": ["read", "write", "admin"] }] });
    owner.put("/books/Free/access", access).is(200);
    let book = json!({ "name": "Free", "attributes": [], "elog": [["Self register", "1"], ["Password file", "c.pwd"]] });
    let said = b.put("/books/Free", book).is(403);
    assert!(text(&said).contains("'Password file' decides about the users of all logbooks"), "{}", text(&said));
    let why = owner.get("/whoami/explain?login=dan").json().to_string();
    assert!(why.contains("which admits the group 'elog b.pwd'"), "{why}");
}

#[test]
fn who_reads_is_the_same_on_every_surface() {
    let setup = Setup::new();
    let owner = setup.site.owner();
    let id = setup.entry();
    owner.send("POST", &format!("/books/Book/entries/{id}/attachments?name=a.txt"), WORD.as_bytes()).is(201);
    let surfaces = surfaces(&owner, "Book", id);
    // From the manual of ELOG: guest, reader, writer, administrator of the site.
    let table: [(&str, [bool; 4]); 16] = [
        ("", [true, true, true, true]),
        ("Password file = passwd", [false, true, true, true]),
        ("Password file = passwd\nGuest menu commands = List, Find", [true, true, true, true]),
        ("Authentication = LDAP", [false, true, true, true]),
        ("Read password = c2VjcmV0", [false, true, true, true]),
        ("Write password = c2VjcmV0", [true, true, true, true]),
        ("Login user = writer", [false, false, true, true]),
        ("Login user = reader\nGuest menu commands = List", [true, true, false, true]),
        ("Login user = reader\nAdmin user = writer", [false, true, true, true]),
        ("Hosts deny = ALL", [false, false, false, false]),
        ("Hosts deny = ALL\nHosts allow = localhost", [true, true, true, true]),
        ("Hosts deny = 127.0.0.", [false, false, false, false]),
        ("Hosts deny = 192.0.2.", [true, true, true, true]),
        ("Deny List = reader", [true, false, true, true]),
        ("Allow List = writer", [false, false, true, false]),
        ("Menu commands = New", [true, true, true, true]),
    ];
    for (options, expected) in table {
        setup.configure(options);
        for ((who, client), expected) in WHO.iter().zip(&setup.clients).zip(expected) {
            for (surface, path) in &surfaces {
                let said = client.get(path);
                assert_eq!(text(&said).contains(WORD), expected, "{options:?} {surface} {who}: {} {}", said.status, text(&said));
            }
        }
        // The owner of the installation reads by the API whatever is configured, and so can mend a configuration.
        owner.get(&format!("/books/Book/entries/{id}")).is(200);
    }
}

#[test]
fn an_attribute_that_is_hidden_is_hidden_on_every_surface() {
    let setup = Setup::new();
    let owner = setup.site.owner();
    let configure = |options: &str| {
        let pairs: Vec<Vec<&str>> = options.lines().map(|line| line.split(" = ").collect()).collect();
        let attributes = json!([{ "name": "Author", "kind": "text" }, { "name": "Salary", "kind": "text" }]);
        owner.put("/books/Book", json!({ "name": "Book", "attributes": attributes, "elog": pairs })).is(200);
    };
    configure("");
    let content = |text: &str| json!({ "attributes": { "Author": "zoe", "Salary": WORD }, "text": text });
    let id = owner.post("/books/Book/entries", content("plain")).is(201).json()["id"].as_u64().unwrap();
    owner.with("if-match", "*").put(&format!("/books/Book/entries/{id}"), content("plain text")).is(200);
    let values = [
        format!("/books/Book/entries/{id}"),
        format!("/books/Book/entries/{id}/thread"),
        format!("/books/Book/entries/{id}/history"),
        "/search?book=Book&q=plain".to_owned(),
        "/search?q=plain&sort=-Author".to_owned(),
        "/search/export?book=Book".to_owned(),
        "/search/export?format=json".to_owned(),
        "/search/feed.atom?book=Book".to_owned(),
        "/search/calendar.ics?book=Book".to_owned(),
        format!("/elog/Book/{id}?cmd=Download"),
        "/elog/Book/?mode=CSV1".to_owned(),
        "/elog/Book/?mode=XML".to_owned(),
        "/elog/Book/?mode=raw".to_owned(),
    ];
    // The layout of a page may leave out more than what is hidden.
    let pages = [
        format!("/elog/Book/{id}"),
        "/elog/Book/".to_owned(),
        "/elog/Book/?mode=full".to_owned(),
        "/elog/Book/?mode=threaded".to_owned(),
        "/elog/Book/elog.rdf".to_owned(),
        format!("/elog/Book/?cmd=Reply&reply_to={id}"),
    ];
    // Conditions by which a caller could guess a value.
    let finds = [
        (format!("/search?book=Book&q={WORD}"), true),
        (format!("/search?q={}*", &WORD[..3]), true),
        (format!("/search?q=~{}", &WORD[1..4]), true),
        (format!("/search?q=/{}/", &WORD[..4]), true),
        (format!("/search?q=salary:{WORD}"), true),
        (format!("/search?q=salary:%3D{WORD}"), true),
        ("/search?q=has:salary".to_owned(), true),
        (format!("/search?q=-{WORD}"), false),
        (format!("/search?q=-salary:{WORD}"), false),
        (format!("/search?q=plain+-{WORD}"), false),
        (format!("/elog/Book/?mode=CSV1&Salary={WORD}"), true),
        (format!("/elog/Book/?mode=CSV1&subtext={WORD}&sall=1"), true),
    ];
    for (options, sees) in [
        ("", [true, true, true, true]),
        ("Guest display = Author", [false, true, true, true]),
        ("Guest display = Author\nGuest list display = ID, Author", [false, true, true, true]),
        ("Guest display = Author\nGuest list display = ID, Salary", [true, true, true, true]),
        ("Show attributes = Author", [true, true, true, true]),
        ("Show attributes = Author\nList display = ID, Author", [false, false, true, true]),
    ] {
        configure(options);
        for ((who, client), sees) in WHO.iter().zip(&setup.clients).zip(sees) {
            for path in &values {
                let said = client.get(path).is(200);
                assert_eq!(text(&said).contains(WORD), sees, "{options:?} {path} {who}: {}", text(&said));
                assert!(text(&said).contains("zoe"), "{options:?} {path} {who}");
            }
            for path in pages.iter().filter(|_| !sees) {
                assert!(!text(&client.get(path)).contains(WORD), "{options:?} {path} {who}");
            }
            for (path, finds) in &finds {
                // Without the attribute a condition is unknown, or matches as if the entry had no value.
                let said = client.get(path);
                let found = said.status == 200 && text(&said).contains("zoe");
                let expected = if sees { *finds } else { !finds };
                let is_unknown = said.status == 400 && !sees && path.contains("salary");
                assert!(found == expected || is_unknown, "{options:?} {path} {who}: {} {}", said.status, text(&said));
            }
            let sorted = client.get("/search?book=Book&sort=Salary");
            assert_eq!(sorted.status, if sees { 200 } else { 400 }, "{options:?} {who}");
        }
    }
    // A caller who may post elsewhere cannot copy what is hidden.
    let access = json!({ "site_guests": true, "grants": [{ "to": "user:reader", "may": ["read", "write"] }] });
    owner.put("/books/Other/access", access).is(200);
    let copy = |to: &str| setup.clients[1].post(&format!("/books/Book/entries/{id}/copy"), json!({ "to": to }));
    assert!(copy("Other").is(403).json()["detail"].as_str().unwrap().contains("hidden"));
    // A writer sees all, and may.
    setup.clients[2].post(&format!("/books/Book/entries/{id}/copy"), json!({ "to": "Book" })).is(201);
    let said = setup.clients[1].get("/search?sort=nope").is(400);
    assert!(text(&said).contains("no order by 'nope'; use date, id, Author"), "{}", text(&said));
}

#[test]
fn words_of_a_logbook_that_is_not_readable_change_no_answer() {
    let setup = Setup::new();
    setup.entry();
    let owner = setup.site.owner();
    owner.put("/books/Secret", json!({ "name": "Secret", "attributes": [{ "name": "Code", "kind": "text" }] })).is(201);
    owner.put("/books/Secret/access", json!({ "grants": [] })).is(200);
    let asked = ["q=hush*", "q=hushed*", "q=~ush", "q=/hush\\w+/", "q=code:x", "q=hushedx", "q=-hush*", "sort=Code"];
    let answers = || {
        let one = |q: &&str| {
            let said = setup.clients[1].get(&format!("/search?{q}"));
            (said.status, text(&said))
        };
        asked.iter().map(one).collect::<Vec<_>>()
    };
    let before = answers();
    for word in ["hushedxyz", "hushabc", "crushed"] {
        let entry = json!({ "attributes": { "Code": word }, "text": word });
        owner.post("/books/Secret/entries", entry).is(201);
    }
    assert_eq!(answers(), before);
}

/// An action of a caller on an entry.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Post,
    Reply,
    Edit,
    Delete,
    Copy,
}

impl Deed {
    const ALL: [Deed; 5] = [Deed::Post, Deed::Reply, Deed::Edit, Deed::Delete, Deed::Copy];

    /// Does it by the API. Returns true if it is done.
    fn by_api(self, client: &Client, id: u64) -> bool {
        let entries = "/books/Book/entries";
        let content = json!({ "attributes": { "Author": "x" }, "text": "x" });
        let with = |name: &str, value: Value| {
            let mut content = content.clone();
            content[name] = value;
            content
        };
        let said = match self {
            Deed::Post => client.post(entries, content),
            Deed::Reply => client.post(entries, with("parent", json!(id))),
            Deed::Edit => client.with("if-match", "*").put(&format!("{entries}/{id}"), content),
            Deed::Delete => client.delete(&format!("{entries}/{id}")),
            Deed::Copy => client.post(&format!("{entries}/{id}/copy"), json!({ "to": "Other" })),
        };
        assert!([200, 201, 401, 403, 404].contains(&said.status), "{self:?}: {} {}", said.status, text(&said));
        said.status < 300
    }

    /// Does it as ELOG's programs do. Returns true if it is done.
    fn by_page(self, client: &Client, id: u64) -> bool {
        let submit = |more: &[(&str, String)]| {
            let mut fields = vec![("cmd", "Submit".to_owned()), ("Author", "x".to_owned()), ("Text", "x".to_owned())];
            fields.extend_from_slice(more);
            let part = |(name, value): &(&str, String)| {
                format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
            };
            let body = fields.iter().map(part).collect::<String>() + "--x--\r\n";
            let client = client.with("content-type", "multipart/form-data; boundary=x");
            client.send("POST", "/elog/Book/", body.as_bytes())
        };
        let said = match self {
            Deed::Post => submit(&[]),
            Deed::Reply => submit(&[("reply_to", id.to_string())]),
            Deed::Edit => submit(&[("edit_id", id.to_string()), ("skiplock", "1".to_owned())]),
            Deed::Delete => client.get(&format!("/elog/Book/{id}?cmd=Delete&confirm=Yes")),
            Deed::Copy => client.get(&format!("/elog/Book/{id}?cmd=Copy+to&destc=Other")),
        };
        said.status == 302 && !said.header("location").contains("fail")
    }
}

#[test]
fn who_writes_is_the_same_on_every_surface() {
    let setup = Setup::new();
    const NONE: [bool; 5] = [false; 5];
    const ALL: [bool; 5] = [true; 5];
    // Post, reply, edit, delete and copy: of the writer, and of the administrator of the site.
    let table: [(&str, [bool; 5], [bool; 5]); 13] = [
        ("", ALL, ALL),
        ("Password file = passwd", ALL, ALL),
        ("Hosts deny = ALL", NONE, NONE),
        ("Login user = reader", NONE, ALL),
        ("Deny New = writer", [false, true, true, true, true], ALL),
        ("Deny Reply = writer", [true, false, true, true, true], ALL),
        ("Deny Edit = writer", [true, true, false, true, true], ALL),
        ("Allow Delete = admin", [true, true, true, false, true], ALL),
        ("Deny Copy to = writer", [true, true, true, true, false], ALL),
        ("Menu commands = List, New", [true, false, false, false, false], [true, false, false, false, false]),
        ("Restrict edit = 1", [true, true, false, false, true], ALL),
        ("Restrict edit time = 0.0000001", [true, true, false, false, true], ALL),
        ("Search slave = 1", NONE, NONE),
    ];
    for (row, (options, writer, admin)) in table.into_iter().enumerate() {
        // No option gives a right, so two rows suffice for callers who may not write.
        let skipped = if row < 2 { 0 } else { 2 };
        for (who, client, expected) in [
            ("guest", &setup.clients[0], NONE),
            ("reader", &setup.clients[1], NONE),
            ("writer", &setup.clients[2], writer),
            ("admin", &setup.clients[3], admin),
        ]
        .into_iter()
        .skip(skipped)
        {
            for (deed, expected) in Deed::ALL.into_iter().zip(expected) {
                setup.configure("");
                let (first, second) = (setup.entry(), setup.entry());
                setup.configure(options);
                assert_eq!(deed.by_page(client, first), expected, "{options:?} {deed:?} by ELOG's pages, {who}");
                assert_eq!(deed.by_api(client, second), expected, "{options:?} {deed:?} by the API, {who}");
                // The entry says whether the caller may change it.
                let shown = client.get(&format!("/books/Book/entries/{second}"));
                if shown.status == 200 && matches!(deed, Deed::Edit) {
                    assert_eq!(shown.json()["may_edit"], expected, "{options:?} {who}");
                }
            }
        }
    }
}
