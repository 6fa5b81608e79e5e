//! Hubs that die, hubs in one another's way, and hubs that say no.

use rustix::process::Signal;

use crate::site::{Site, acs_file};

#[test]
fn what_was_confirmed_survives_a_killed_hub() {
    let site = Site::new();
    let hub = site.hub(&[]);
    let lines: String = (0..300).map(|number| format!("before {number}\n")).collect();
    site.tampu_reading(lines.as_bytes(), &["log", "send", "-p", "survivor"]).ok();
    assert_eq!(hub.end(Signal::KILL).0, None);

    let hub = site.hub(&[]);
    assert_eq!(site.find(300, &["-p", "survivor", "-n", "0"]).len(), 300);
    site.tampu(&["log", "send", "-p", "survivor", "after"]).ok();
    assert_eq!(site.find(301, &["-p", "survivor", "-n", "0"]).len(), 301);
    let (code, said) = hub.end(Signal::TERM);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("has stopped"), "{said}");
}

#[test]
fn a_second_hub_is_refused_with_the_first_ones_place() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let said = site.tampu(&["up"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("already has a node"), "{said:?}");
    // Another domain in the same data directory has its own archive.
    let other = site.hub(&["--domain", "other"]);
    assert!(other.heard.contains("'other'"));
}

#[test]
fn a_hub_is_found_where_the_flag_says() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let socket = site.path("run").join("local/node.sock");
    let elsewhere = site.path("elsewhere");
    let query = |hub: &str| {
        let child =
            site.command(&["--hub", hub, "log", "query", "--json", "-n", "1"]).env("TAMPU_RUN_DIR", &elsewhere).spawn().unwrap();
        child.wait_with_output().unwrap()
    };
    let found = query(&socket.to_string_lossy());
    assert_eq!(found.status.code(), Some(0), "{found:?}");
    assert_eq!(query("/nowhere/node.sock").status.code(), Some(3));
}

#[test]
fn what_no_rule_allows_is_refused_with_who_and_what() {
    let site = Site::new();
    let rules = "[[allow]]\nmay = [\"write\", \"query\", \"read\"]\nwhat = \"log/*\"\n";
    let config = site.file("tampu.toml", rules);
    let _hub = site.hub(&["--config", &config]);
    site.tampu(&["log", "send", "as ever"]).ok();
    site.find(1, &["ever"]);
    let file = site.file("old.xml", acs_file(&["one", "two"]));
    let said = site.tampu(&["log", "import", &file]);
    assert_eq!((said.code, said.out.as_str()), (1, "2 read, 0 new, 0 duplicates, 0 bad\n"), "{said:?}");
    assert!(said.err.contains("2 records were refused"), "{said:?}");
    assert!(said.err.contains("may not write the topic log-import: no [[allow]]"), "{said:?}");

    // Once the network is open, this user proves it; other holders of the key cannot.
    let key = site.file("domain.key", "correct horse battery");
    rustix::fs::chmod(&key, rustix::fs::Mode::from_bits_truncate(0o600)).unwrap();
    let config = site.file("key.toml", "[[allow]]\nwho = \"user\"\nmay = [\"query\"]\nwhat = \"**\"\n");
    let _hub = site.hub(&["--config", &config, "--domain", "open", "--lan", "127.0.0.1:0", "--key-file", &key]);
    site.tampu(&["--domain", "open", "log", "query"]).ok();

    let config = site.file("none.toml", "[[allow]]\nmay = [\"write\"]\nwhat = \"log/*\"\n");
    let _hub = site.hub(&["--config", &config, "--domain", "other"]);
    let said = site.tampu(&["--domain", "other", "log", "query"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("may not query the service log/query"), "{said:?}");
}
