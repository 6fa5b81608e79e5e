//! `tampu book` and programs at the logbook of a running hub.

use std::{
    fs,
    io::{ErrorKind, Read, repeat},
    net::TcpListener,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::site::{Hub, Said, Site};

/// The address of the hub's logbook, and the owner's token.
fn place(site: &Site) -> (String, String) {
    let text = fs::read_to_string(site.path("run/local/book.json")).unwrap();
    let place: Value = serde_json::from_str(&text).unwrap();
    (place["url"].as_str().unwrap().to_owned(), place["token"].as_str().unwrap().to_owned())
}

/// A command that is not told where the data are.
fn book(site: &Site, input: &[u8], arguments: &[&str]) -> Said {
    site.tampu_without("TAMPU_DATA_DIR", input, &[&["book"], arguments].concat())
}

fn with_hub() -> (Site, Hub) {
    let site = Site::new();
    let hub = site.hub(&[]);
    book(&site, b"", &["make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem"]).ok();
    (site, hub)
}

#[test]
fn the_commands_work_through_the_hub_of_this_host() {
    let (site, hub) = with_hub();
    let plot = site.file("trend plot.png", "not really a picture");
    let post = [
        "post",
        "Shift",
        "-a",
        "Author=Zoe",
        "-t",
        "MAG-01 **tripped**",
        "--attachment",
        &plot,
        "--link",
        "run:7",
        "--author",
        "robot",
    ];
    assert_eq!(book(&site, b"", &post).ok().out, "Shift/1\n");
    assert_eq!(book(&site, b"the fuse\n", &["reply", "Shift/1", "-a", "Author=Max"]).ok().out, "Shift/2\n");
    let late = book(&site, b"", &["edit", "Shift/1", "-t", "x", "--revision", "7"]);
    assert!(late.code == 1 && late.err.contains("changed by another user"), "{late:?}");
    book(&site, b"", &["edit", "Shift/1", "-t", "MAG-01 tripped twice"]).ok();
    let shown = book(&site, b"", &["show", "Shift/1", "--output", "files", "--json"]).ok().json();
    assert_eq!(
        (&shown[0]["by"], &shown[0]["text"], &shown[0]["links"][0]["target"]),
        (&json!("robot"), &json!("MAG-01 tripped twice"), &json!("7"))
    );
    assert_eq!(fs::read(site.path("files/trend plot.png")).unwrap(), b"not really a picture");
    assert_eq!(book(&site, b"", &["show", "Shift/2", "--thread", "--json"]).ok().json().len(), 2);
    assert_eq!(book(&site, b"", &["show", "Shift/1", "--revisions", "--json"]).ok().json().len(), 2);
    let found = book(&site, b"", &["search", "MAG-01", "has:attachment", "--json"]).ok().json();
    assert_eq!((found.len(), &found[0]["entry"]["id"]), (1, &json!(1)));
    assert_eq!(book(&site, b"", &["search", "--count"]).ok().out, "2\n");
    book(&site, b"", &["make", "Archive"]).ok();
    assert_eq!(book(&site, b"", &["copy", "Shift/2", "archive"]).ok().out, "Archive/1\n");
    assert_eq!(book(&site, b"", &["move", "Archive/1", "Shift"]).ok().out, "Shift/3\n");
    assert_eq!(book(&site, b"", &["delete", "Shift/3"]).ok().out, "1 entry deleted\n");
    assert!(book(&site, b"", &["list"]).ok().out.contains("Shift"));
    assert!(book(&site, b"", &["check"]).ok().out.contains("everything is as it should be"));
    for (arguments, code, named) in [
        (&["search", "/(/"][..], 1, "invalid query"),
        (&["show", "Shift/9"], 1, "no entry Shift/9"),
        (&["backup", "-o", "copy", "--hub", "http://127.0.0.1:1"], 2, "--data"),
        (&["check", "--hub", "http://127.0.0.1:1"], 3, "127.0.0.1:1"),
        (&["list", "--hub", "http://127.0.0.1:1"], 3, "127.0.0.1:1"),
        (&["list", "--hub", "127.0.0.1:1"], 2, "http://HOST:PORT"),
        (&["list", "--hub", "foo"], 2, "http://host:port"),
        (&["list", "--hub", "https://127.0.0.1:1"], 3, "127.0.0.1:1"),
    ] {
        let said = book(&site, b"", arguments);
        assert!(said.code == code && said.err.contains(named), "{arguments:?}: {said:?}");
    }
    let bus = site.tampu(&["log", "query", "--hub", "http://127.0.0.1:1"]);
    assert!(bus.code == 2 && bus.err.contains("address of a logbook"), "{bus:?}");

    // The same from elsewhere, with a token of fewer rights.
    book(&site, b"correct horse\n", &["users", "add", "zoe", "--full-name", "Zoë", "--admin"]).ok();
    let token = book(&site, b"", &["users", "token", "make", "zoe", "--may", "read", "--comment", "display"]).ok().out;
    let url = place(&site).0;
    let elsewhere = ["--hub", &url, "--token", token.trim()];
    assert_eq!(book(&site, b"", &[&["search", "--count"], &elsewhere[..]].concat()).ok().out, "2\n");
    let refused = book(&site, b"", &[&["post", "Shift", "-t", "x"], &elsewhere[..]].concat());
    assert!(refused.code == 1 && refused.err.contains("does not have the right 'write'"), "{refused:?}");
    assert_eq!(hub.end(Signal::TERM).0, Some(0));
    assert!(!site.path("run/local/book.json").exists());
}

#[test]
fn templates_are_kept_and_used_through_the_hub() {
    let (site, _hub) = with_hub();
    let save = ["template", "save", "Shift", "The start", "-a", "Author={author}", "-t", "# Run {run} of {book}"];
    book(&site, b"", &save).ok();
    let (url, token) = place(&site);
    let elsewhere = ["--hub", &url, "--token", &token];
    for at in [&[][..], &elsewhere] {
        assert_eq!(book(&site, b"", &[&["template", "list", "shift"], at].concat()).ok().out, "the start\n");
        let said = book(&site, b"", &[&["template", "list", "shift", "--json"], at].concat()).ok().json();
        assert_eq!(said[0]["template"]["text"], "# Run {run} of {book}");
        let post = ["post", "Shift", "--template", "the Start", "--set", "run=7", "--author", "zoe"];
        let posted = book(&site, b"", &[&post[..], at].concat()).ok().out;
        let shown = book(&site, b"", &["show", posted.trim(), "--json"]).ok().json();
        assert_eq!((&shown[0]["text"], &shown[0]["attributes"][0]["values"][0]), (&json!("# Run 7 of Shift"), &json!("zoe")));
        let none = book(&site, b"", &[&["post", "Shift", "--template", "nope"], at].concat());
        assert!(none.code == 1 && none.err.contains("has no template 'nope'"), "{none:?}");
    }
    book(&site, b"", &[&["template", "drop", "Shift", "the start"], &elsewhere[..]].concat()).ok();
    assert_eq!(book(&site, b"", &["template", "drop", "Shift", "the start"]).code, 1);
}

#[test]
fn a_hub_that_was_killed_leaves_its_directory_to_the_commands() {
    let (site, hub) = with_hub();
    assert_eq!(book(&site, b"", &["post", "Shift", "-a", "Author=Zoe", "-t", "before"]).ok().out, "Shift/1\n");
    let address = place(&site).0;
    hub.end(Signal::KILL);
    assert!(site.path("run/local/book.json").exists());
    // Another program has the address by then: it must not get the owner's token.
    let stranger = TcpListener::bind(address.trim_start_matches("http://")).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let said = book(&site, b"", &["post", "Shift", "-a", "Author=Zoe", "-t", "after"]).ok();
    assert!(said.out == "Shift/2\n" && said.err.contains("is gone; its logbooks are read in"), "{said:?}");
    assert!(stranger.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    // Logbooks in a database have no directory.
    let mut place: Value = serde_json::from_str(&fs::read_to_string(site.path("run/local/book.json")).unwrap()).unwrap();
    place["directory"] = Value::Null;
    fs::write(site.path("run/local/book.json"), place.to_string()).unwrap();
    let said = book(&site, b"", &["list"]);
    assert!(said.code == 3 && said.err.contains("tampu up"), "{said:?}");
}

#[test]
fn users_are_looked_after_in_a_directory_and_over_http() {
    for over_http in [false, true] {
        let site = Site::new();
        let hub = over_http.then(|| site.hub(&[]));
        let book = |input: &[u8], arguments: &[&str]| {
            let arguments = [&["book"], arguments].concat();
            if over_http {
                site.tampu_without("TAMPU_DATA_DIR", input, &arguments)
            } else {
                site.tampu_reading(input, &arguments)
            }
        };
        book(b"", &["make", "Shift", "-a", "Author"]).ok();
        let first = book(b"correct horse\n", &["users", "add", "zoe", "--full-name", "Zoë Müller", "--group", "ops"]).ok();
        assert!(first.err.contains("no user is an administrator"), "{first:?}");
        book(b"", &["users", "add", "robot", "--no-password"]).ok();
        let short = book(b"short\n", &["users", "add", "max"]);
        assert!(short.code == 1 && short.err.contains("8 characters"), "{short:?}");
        assert!(book(b"", &["users", "add", "zoe", "--no-password"]).err.contains("there is a user 'zoe' already"));
        assert!(book(b"", &["users", "add", "a:b", "--no-password"]).err.contains("invalid name 'a:b'"));
        book(b"battery staple\n", &["users", "password", "zoe"]).ok();
        assert_eq!(book(b"", &["users", "group", "ops", "--add", "robot"]).ok().out, "ops: zoe robot\n");
        assert_eq!(book(b"", &["users", "group", "ops", "--remove", "zoe"]).ok().out, "ops: robot\n");
        let usual = book(b"", &["users", "role", "Shift"]).ok().out;
        assert!(usual.contains("everybody: read write edit-own") && usual.contains("at any time"), "{usual}");
        let given = book(b"", &["users", "role", "Shift", "group:ops", "read", "write"]).ok().out;
        assert!(given.contains("group:ops: read write"), "{given}");
        assert!(book(b"", &["users", "role", "Shift", "group:ops", "fly"]).err.contains("unknown right 'fly'"));
        book(b"Attributes = Author\nRestrict edit time = 4\n", &["config", "edit", "Shift", "-"]).ok();
        let limited = "for 4 hours ('Restrict edit time'), by administrators of the logbook at any time\n";
        let shown = book(b"", &["users", "role", "Shift"]).ok().out;
        assert!(shown.contains(&format!("entries can be changed {limited}")), "{shown}");
        let shown = book(b"", &["users", "policy", "Shift", "--own-within", "30m"]).ok().out;
        assert!(shown.contains("for 30 minutes, and no longer than") && shown.ends_with(limited), "{shown}");
        assert_eq!(
            book(b"", &["users", "role", "Shift", "--json"]).ok().json().last().unwrap()["restrict_edit_hours"],
            json!(4.0)
        );
        assert!(!book(b"", &["users", "role", "Shift", "group:ops", "none"]).ok().out.contains("group:ops"));
        let token = book(b"", &["users", "token", "make", "robot", "--good-for", "1h", "--book", "Shift"]).ok().out;
        assert!(token.starts_with("tampu_") && token.trim().len() == 70, "{token}");
        let tokens = book(b"", &["users", "token", "list", "robot", "--json"]).ok().json();
        assert_eq!((tokens.len(), &tokens[0]["books"][0]), (1, &json!("Shift")));
        book(b"", &["users", "token", "drop", "robot", tokens[0]["id"].as_str().unwrap()]).ok();
        book(b"", &["users", "disable", "robot"]).ok();
        let listed = book(b"", &["users", "list", "--json"]).ok().json();
        assert_eq!((listed.len(), &listed[0]["inactive"], &listed[1]["full_name"]), (2, &json!(true), &json!("Zoë Müller")));
        assert!(!listed[1].to_string().contains("argon2"));
        assert!(book(b"", &["users", "list"]).ok().out.contains("[disabled]  [no password]"));
        book(b"", &["users", "drop", "robot"]).ok();
        assert_eq!(book(b"", &["users", "list", "--json"]).ok().json().len(), 1);
        drop(hub);
    }
}

#[test]
fn registrations_are_approved_and_refused_by_command() {
    let site = Site::new();
    let config = site.file("elogd.cfg", "[Asked]\nAttributes = Author\nSelf register = 3\n");
    fs::create_dir_all(site.path("elog/Asked")).unwrap();
    site.tampu(&["book", "import-elog", "elog", "--elog-config", &config]).ok();
    site.tampu_reading(b"correct horse\n", &["book", "users", "add", "root", "--admin"]).ok();
    let hub = site.hub(&[]);
    // The log of requests is off, and a search for it says so.
    let none = site.tampu(&["log", "query", "--logger", "access"]);
    assert!(none.err.contains("access_log = true"), "{none:?}");
    let url = place(&site).0;
    let register = |login: &str| {
        let mail = format!("{login}@example.org");
        let form = [
            ("cmd", "New user"),
            ("new_user_name", login),
            ("new_full_name", login),
            ("new_user_email", &mail),
            ("newpwd", "battery staple"),
            ("newpwd2", "battery staple"),
        ];
        ureq::post(format!("{url}/elog/Asked/")).send_form(form).unwrap();
    };
    ["max", "kim", "max"].into_iter().for_each(register);
    let users = |arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", b"", &[&["book", "users"], arguments].concat());
    let waiting = users(&["pending", "--json"]).ok().json();
    let logins: Vec<&str> = waiting.iter().map(|one| one["login"].as_str().unwrap()).collect();
    assert_eq!(logins, ["max", "kim", "max"]);
    assert!(!waiting[0].to_string().contains("argon2"), "{waiting:?}");
    let twice = users(&["approve", "max"]);
    assert!(twice.code == 1 && twice.err.contains("2 registrations have the login 'max'"), "{twice:?}");
    assert_eq!(users(&["approve", waiting[0]["id"].as_str().unwrap(), "--json"]).ok().json()[0], json!({ "approved": "max" }));
    assert!(users(&["pending"]).ok().out.contains("[the login or name is taken]"));
    users(&["refuse", "max"]).ok();
    // Without the hub, the same commands work on the data.
    drop(hub);
    assert!(site.tampu(&["book", "users", "pending"]).ok().out.contains("kim@example.org"));
    site.tampu(&["book", "users", "approve", "kim"]).ok();
    let unknown = site.tampu(&["book", "users", "refuse", "kim"]);
    assert!(unknown.code == 1 && unknown.err.contains("there is no registration 'kim'"), "{unknown:?}");
    let names: Vec<Value> = site.tampu(&["book", "users", "list", "--json"]).ok().json();
    assert_eq!(names.iter().map(|user| user["login"].clone()).collect::<Vec<_>>(), ["kim", "max", "root"]);
}

#[test]
fn elogs_users_log_in_with_their_passwords() {
    let site = Site::new();
    let file = site.file(
        "passwd",
        "<list><user><name>zoe</name><password encoding=\"SHA256\">o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5</password>\
         <full_name>Zoe</full_name><email/></user><user><name>bad/name</name></user></list>",
    );
    let said = site.tampu(&["book", "users", "import-elog", &file, "--make-admin", "nosuch"]);
    assert!(said.code != 0 && said.err.contains("--make-admin nosuch: the file has no such user"), "{said:?}");
    let said = site.tampu(&["book", "users", "import-elog", &file]).ok();
    assert!(said.out.contains("1 user taken over, 0 already here, 1 fault") && said.err.contains("'bad/name'"), "{said:?}");
    assert!(said.err.contains("accept_elog_hashes"), "{said:?}");
    let is_admin = || site.tampu(&["book", "users", "list", "--json"]).ok().json()[0]["admin"].clone();
    assert_eq!(is_admin(), json!(false));
    let said = site.tampu(&["book", "users", "import-elog", &file, "--make-admin", "zoe"]).ok();
    assert!(said.out.contains("0 users taken over, 1 already here"), "{said:?}");
    assert_eq!(is_admin(), json!(true));
    let _hub = site.hub(&[]);
    let url = place(&site).0;
    let log_in = |password: &str| {
        let body = json!({ "login": "zoe", "password": password }).to_string();
        let request = ureq::post(format!("{url}/api/v1/login")).header("content-type", "application/json");
        request.config().http_status_as_error(false).build().send(body).unwrap().status().as_u16()
    };
    assert_eq!((log_in("secret"), log_in("o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5"), log_in("secret")), (200, 401, 200));
}

#[test]
fn users_of_elogs_password_files_are_groups() {
    let site = Site::new();
    let digest = |of: char| format!("o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx{of}");
    let user = |login: &str, of: char| {
        format!("<user><name>{login}</name><password encoding=\"SHA256\">{}</password></user>", digest(of))
    };
    let import = |text: &str, name: &str, more: &[&str]| {
        let file = site.file(name, text);
        site.tampu(&[&["book", "users", "import-elog", &file][..], more].concat())
    };
    let groups = |login: &str| {
        let users = site.tampu(&["book", "users", "list", "--json"]).ok().json();
        users.into_iter().find(|user| user["login"] == login).unwrap()["groups"].clone()
    };
    // Before the logbooks, the name of the file counts.
    import(&(user("zoe", '5') + &user("kim", '5') + &user("max", '5')), "a.pwd", &[]).ok();
    let config = "[Pub]\nPassword file = a.pwd\n[Priv]\nPassword file = x/b.pwd\n[Other]\nPassword file = y/b.pwd\n";
    let config = site.file("elogd.cfg", config);
    for book in ["Pub", "Priv", "Other"] {
        fs::create_dir_all(site.path(&format!("logbooks/{book}"))).unwrap();
    }
    site.tampu(&["book", "import-elog", "logbooks", "--elog-config", &config]).ok();
    // Which of the two files of one name it is has to be said, or the directory says it.
    let said = import(&user("zoe", '5'), "b.pwd", &[]);
    assert!(said.code == 2 && said.err.contains("'y/b.pwd', 'x/b.pwd'; name one with --password-file"), "{said:?}");
    import(&user("zoe", '5'), "b.pwd", &["--password-file", "y/b.pwd"]).ok();
    assert_eq!(groups("zoe"), json!(["elog a.pwd", "elog y|b.pwd"]));
    fs::create_dir_all(site.path("x")).unwrap();
    // A user of two files is one person if the password is the same.
    let said = import(&(user("kim", '5') + &user("max", '4') + &user("new", '4')), "x/b.pwd", &[]).ok();
    assert!(said.out.contains("1 user taken over, 2 already here, 1 fault"), "{said:?}");
    assert!(said.err.contains("user 'max' is here from another password file") && !said.err.contains("'kim'"), "{said:?}");
    assert_eq!(groups("kim"), json!(["elog a.pwd", "elog x|b.pwd"]));
    assert_eq!((groups("max"), groups("new")), (json!(["elog a.pwd"]), json!(["elog x|b.pwd"])));
    let said = import(&user("ann", '5'), "renamed", &[]).ok();
    assert!(
        said.err.contains("no logbook has 'Password file = renamed'") && said.err.contains("'y/b.pwd', 'x/b.pwd', 'a.pwd'"),
        "{said:?}"
    );
}

/// The most memory a process has had, KiB.
fn most_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_file_of_a_gigabyte_takes_no_memory() {
    let (site, hub) = with_hub();
    let (url, token) = place(&site);
    let size: u64 = 1 << 30;
    let before = most_memory(hub.pid());
    assert_eq!(book(&site, b"", &["post", "Shift", "-a", "Author=Zoe", "-t", "a large one"]).ok().out, "Shift/1\n");
    let path = format!("{url}/api/v1/books/Shift/entries/1/attachments");
    let authorization = format!("Bearer {token}");
    let mut large = repeat(7).take(size);
    let body = ureq::SendBody::from_reader(&mut large);
    let sent = ureq::post(format!("{path}?name=dump.raw")).header("authorization", &authorization).send(body).unwrap();
    assert_eq!(sent.status(), 201);
    let mut answer = ureq::get(format!("{path}/0")).header("authorization", &authorization).call().unwrap();
    let mut from = answer.body_mut().with_config().limit(u64::MAX).reader();
    let (mut read, mut piece) = (0, vec![0; 1 << 16]);
    loop {
        match from.read(&mut piece).unwrap() {
            0 => break,
            length => {
                assert!(piece[..length].iter().all(|byte| *byte == 7));
                read += length as u64;
            }
        }
    }
    assert_eq!(read, size);
    let grown = most_memory(hub.pid()).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more than before");
}

#[test]
fn a_hub_that_is_killed_leaves_entries_whole_or_absent() {
    let (site, hub) = with_hub();
    let (url, token) = place(&site);
    let (acknowledged, highest) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let (url, token, acknowledged, highest) = (&url, &token, &acknowledged, &highest);
            scope.spawn(move || {
                let post = |path: &str, kind: &str, body: &[u8]| {
                    let request = ureq::post(format!("{url}/api/v1{path}")).header("authorization", format!("Bearer {token}"));
                    let mut answer = request.header("content-type", kind).send(body).ok()?;
                    serde_json::from_str::<Value>(&answer.body_mut().read_to_string().ok()?).ok()
                };
                for n in 0.. {
                    let bytes: Vec<u8> = (0..20_000u64).map(|at| (at * 7 + n * 13 + writer) as u8).collect();
                    let Some(upload) = post("/uploads", "application/octet-stream", &bytes) else { return };
                    let files = json!([{ "name": "dump", "sha": upload["sha"] }]);
                    let entry = json!({ "attributes": { "Author": format!("w{writer}") }, "text": format!("number {n}"), "attachments": files });
                    let Some(posted) = post("/books/Shift/entries", "application/json", entry.to_string().as_bytes()) else { return };
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    highest.fetch_max(posted["id"].as_u64().unwrap(), Ordering::Relaxed);
                }
            });
        }
        while acknowledged.load(Ordering::Relaxed) < 40 {
            std::thread::yield_now();
        }
        hub.end(Signal::KILL);
    });
    let (acknowledged, highest) = (acknowledged.into_inner(), highest.into_inner());
    let _hub = site.hub(&[]);
    let found: u64 = site.tampu(&["book", "search", "--count"]).ok().out.trim().parse().unwrap();
    assert!(found >= acknowledged, "{found} of {acknowledged}");
    site.tampu(&["book", "show", &format!("Shift/{highest}"), "--output", "files"]).ok();
    assert_eq!(fs::metadata(site.path("files/dump")).unwrap().len(), 20_000);
    // The check finds neither a file without an entry nor an entry without its file, once no other program uses the directory.
    assert!(site.tampu(&["book", "check"]).ok().out.contains("everything is as it should be"));
}

#[test]
fn a_site_without_guests_names_the_logbooks_that_an_import_opened() {
    let site = Site::new();
    let config = site.file("elogd.cfg", "[Open]\nAttributes = Author\n[Closed]\nAttributes = Author\nPassword file = passwd\n");
    fs::create_dir_all(site.path("logbooks/Open")).unwrap();
    fs::create_dir_all(site.path("logbooks/Closed")).unwrap();
    site.tampu(&["book", "import-elog", "logbooks", "--elog-config", &config]).ok();
    site.tampu_reading(b"correct horse\n", &["book", "users", "add", "zoe", "--admin"]).ok();
    let settings = site.file("tampu.toml", "[book]\nguests = \"none\"\n");
    let hub = site.hub(&["--config", &settings]);
    let warned = site.find(1, &["--contains", "in spite of [book] guests"]);
    let message = warned[0]["message"].as_str().unwrap();
    assert!(warned[0]["level"] == "Warning" && message.contains("'Open'") && !message.contains("'Closed'"), "{warned:?}");
    let doctor = || {
        let lines = site.tampu(&["doctor", "--config", &settings, "--json"]).json();
        lines.into_iter().find(|line| line["check"] == "guests").unwrap()
    };
    let found = doctor();
    assert!(found["state"] == "warn" && found["found"].as_str().unwrap().contains("'Open'"), "{found}");
    assert!(found["way_out"].as_str().unwrap().contains("users role LOGBOOK guests none"), "{found}");
    // A right of one user does not narrow those of everybody, and the command says so.
    let more = book(&site, b"", &["users", "role", "Open", "user:zoe", "read"]).ok();
    assert!(more.err.contains("also has the rights of 'everybody'") && more.err.contains("rights add up"), "{more:?}");
    book(&site, b"", &["users", "role", "Open", "guests", "none"]).ok();
    let found = doctor();
    assert_eq!((&found["state"], &found["found"]), (&json!("ok"), &json!("no logbook is open without a login")));
    drop(hub);
}
