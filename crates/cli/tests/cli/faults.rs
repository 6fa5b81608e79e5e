//! Hubs that die, and hubs in one another's way.

use rustix::process::Signal;

use crate::site::Site;

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
    // Another domain in the same data directory has its own place.
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
