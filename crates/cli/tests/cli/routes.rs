//! Rules that lead records elsewhere: files, and another host's syslog.

use std::{
    io::Read,
    net::TcpListener,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::site::{PATIENCE, Site};

/// Waits until a file has this many lines that hold a text.
#[track_caller]
fn lines_of(site: &Site, name: &str, text: &str, count: usize) -> Vec<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let content = std::fs::read_to_string(site.path(name)).unwrap_or_default();
        let found: Vec<String> = content.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < until, "{name}: {content}");
    }
}

#[test]
fn records_go_where_rules_lead_them() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = format!(
        "[target.errors]\n[target.lines]\nfile = \"{lines}\"\nformat = \"json\"\n[target.remote]\nsyslog = \"tcp {address}\"\n\
         [[route]]\nprocess = [\"mount\"]\nmin_level = \"Error\"\nto = [\"errors\", \"remote\"]\n\
         [[route]]\nprocess = [\"mount\"]\ncontains = \"noise\"\narchive = false\nto = [\"lines\"]\nstop = true\n\
         [[route]]\nprocess = [\"mount\"]\nto = [\"lines\"]\naudiences = [\"Operator\"]\n",
        lines = site.path("lines.json").display(),
    );
    let _hub = site.hub(&["--config", &site.file("tampu.toml", config)]);
    for (level, message) in
        [("Error", "no lock"), ("Info", "some NOISE here"), ("Info", "all is well"), ("Alert", "noise, and grave")]
    {
        site.tampu(&["log", "send", message, "--level", level, "-p", "mount", "--value", "axis=az"]).ok();
    }
    site.tampu(&["log", "send", "of somebody else", "--level", "Alert", "-p", "other"]).ok();

    let errors = lines_of(&site, "data/local/log/routes/errors.log", "Error", 1);
    assert!(errors[0].ends_with("Error     mount: no lock axis=az") || errors[0].contains(": no lock axis=az"), "{errors:?}");
    lines_of(&site, "data/local/log/routes/errors.log", "noise, and grave", 1);
    let lines = lines_of(&site, "lines.json", "message", 4);
    let messages: Vec<String> =
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].as_str().unwrap().to_owned()).collect();
    let mut sorted = messages.clone();
    sorted.sort();
    assert_eq!(sorted, ["all is well", "no lock", "noise, and grave", "some NOISE here"], "one line each");

    // The connection of another host, with length prefixes.
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut heard = String::new();
    while !(heard.contains("no lock") && heard.contains("noise, and grave")) {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).unwrap();
        heard.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    let (length, message) = heard.split_once(' ').unwrap();
    assert!(message.starts_with("<131>1 ") && message.contains(" mount - - [tampu@32473"), "{heard}");
    assert!(message.len() >= length.parse().unwrap());

    // A record that a rule excludes is not in the archive; all others are.
    let mut kept: Vec<String> =
        site.find(2, &["-p", "mount"]).iter().map(|record| record["message"].as_str().unwrap().to_owned()).collect();
    kept.sort();
    assert_eq!(kept, ["all is well", "no lock"]);
    let stat = site.tampu(&["log", "stat"]).ok();
    let target = |name: &str| stat.out.lines().find(|line| line.ends_with(name)).unwrap_or_default().split_whitespace().next();
    assert_eq!((target("  lines"), target("  errors")), (Some("4"), Some("2")), "{stat:?}");
}

#[test]
fn a_target_that_is_not_there_is_told_and_holds_nobody_up() {
    let site = Site::new();
    // A free port: it was bound a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!("[target.nowhere]\nsyslog = \"tcp {address}\"\n[[route]]\nto = [\"nowhere\"]\n");
    let _hub = site.hub(&["--config", &site.file("tampu.toml", config)]);
    site.tampu(&["log", "send", "kept all the same", "-p", "mount"]).ok();
    site.find(1, &["-p", "mount"]);
    let told = site.find(1, &["cannot be written"]);
    assert!(told[0]["message"].as_str().unwrap().starts_with("the target 'nowhere' cannot be written"), "{told:?}");
    let stat = site.tampu(&["log", "stat"]).ok();
    assert!(stat.out.contains("nowhere  failing: "), "{stat:?}");
}
