//! Tests of wrong usage and missing hubs, and of the output for people and for programs.

use std::process::Stdio;

use crate::site::Site;

#[test]
fn wrong_usage_ends_with_2_and_names_what_is_wrong() {
    let site = Site::new();
    for (arguments, named) in [
        (&["log", "query", "--min-level", "Loud"][..], "'Loud' is not a level"),
        (&["log", "query", "--since", "soon"], "'soon' is not a time"),
        (&["log", "query", "--since", "5m", "--until", "10m"], "is not before"),
        (&["log", "query", "--regex", "a("], "regular expression 'a('"),
        (&["log", "query", "--field", "colour=red"], "unknown field 'colour'"),
        (&["log", "query", "--json", "--xml"], "cannot be used with"),
        (&["log", "query", "--mode", "dba"], "engineer, operator, scilog"),
        (&["log", "query", "--not", "colour=red"], "unknown field 'colour'"),
        (&["log", "query", "--not", "level=Loud"], "'Loud' is not a level"),
        (&["log", "query", "--exclude-regex", "a("], "regular expression 'a('"),
        (&["log", "query", "--sort=-colour"], "'colour' is not a column"),
        (&["log", "query", "--columns", "time,colour"], "'colour' is not a column"),
        (&["log", "tail", "--since", "soon"], "'soon' is not a time"),
        (&["log", "tail", "--replayed", "a/b"], "invalid replay name 'a/b'"),
        (&["log", "replay", "--as", "*"], "invalid replay name '*'"),
        (&["log", "replay", "--speed", "fast"], "invalid speed 'fast'"),
        (&["log", "tail", "--regex", "a("], "regular expression 'a('"),
        (&["log", "stat", "--by", "weather"], "weather"),
        (&["log", "stat", "--loggers", "-p", "pipe"], "--loggers"),
        (&["log", "levels", "set", "mount"], "<LEVEL>"),
        (&["log", "levels", "set", "mount", "Loud"], "'Loud' is not a level"),
        (&["log", "import"], "FILE"),
        (&["event", "sub", "a/b"], "2 parts"),
        (&["event", "get", "a/b/c"], "3 parts"),
        (&["event", "sub", "*", "--kind", "chnge"], "unknown kind of event 'chnge'"),
        (&["event", "conf", "*", "--abs", "1,2"], "is not a threshold"),
        (&["event", "bridge-tango"], "nothing to bridge"),
        (&["event", "bridge-tango", "--subscribe", "sr/*/*/pressure"], "needs a Tango database"),
        (&["event", "bridge-tango", "--subscribe", "a/b/c"], "invalid Tango attribute"),
        (&["log", "export", "--every", "10m"], "--output"),
        (&["log", "export", "--columns", "time"], "ACS XML and Parquet have all of a record"),
        (&["log", "split", "-o", "parts"], "--every"),
        (&["log", "split", "-o", "parts", "--file-size", "3 parsecs"], "'3 parsecs' is not a size"),
        (&["log", "stat", "--every", "1500ms"], "whole number of seconds"),
        (&["--hub", "not an address", "log", "query"], "invalid endpoint 'not an address'"),
        (&["up", "--roles", "console"], "'console' comes in a later release"),
        (&["up", "--lan"], "key"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let said = site.tampu(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {said:?}");
        assert!(said.err.contains(named), "{arguments:?}: {said:?}");
        assert_eq!(said.out, "", "{arguments:?}");
    }
}

#[test]
fn a_missing_hub_ends_with_3_and_says_what_to_do() {
    let site = Site::new();
    let file = site.file("a.xml", "<Log></Log>");
    for arguments in [
        &["log", "query"][..],
        &["log", "stat"],
        &["log", "send", "hello"],
        &["log", "import", &file],
        &["log", "export"],
        &["log", "split", "-o", "parts", "--every", "10m"],
        &["log", "tail", "--since", "10m"],
        &["log", "replay"],
        &["log", "levels"],
        &["event", "list"],
        &["event", "sub", "*"],
        &["event", "doctor", "a/b/c/d"],
        &["event", "bridge-tango", "--no-database", "--serve", "*"],
        &["log", "levels", "set", "*", "off"],
        &["log", "stat", "--loggers"],
        &["--domain", "elsewhere", "log", "query"],
    ] {
        let said = site.tampu(arguments);
        assert_eq!(said.code, 3, "{arguments:?}: {said:?}");
        assert!(said.err.contains("tampu up") && said.out.is_empty(), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_configuration_is_refused_with_file_and_line() {
    let site = Site::new();
    let file = site.file("tampu.toml", "domain = \"x\"\n[collector]\nsegment = 3\n");
    let said = site.tampu(&["up", "--config", &file]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains(&format!("{file}, line 3: unknown field `segment`")), "{said:?}");
    let said = site.tampu(&["up", "--config", "/nowhere/tampu.toml"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("/nowhere/tampu.toml"), "{said:?}");
}

#[test]
fn completions_pages_and_help_come_from_the_same_definitions() {
    let site = Site::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(site.tampu(&["completions", shell]).ok().out.contains("import"));
    }
    assert!(site.tampu(&["man"]).ok().out.contains(".TH tampu"));
    let pages = site.path("man");
    site.tampu(&["man", "-o", &pages.to_string_lossy()]).ok();
    for page in ["tampu.1", "tampu-up.1", "tampu-log-query.1", "tampu-perf-bus.1", "tampu-doctor.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    for verb in [
        &["up"][..],
        &["demo"],
        &["log", "tail"],
        &["log", "import"],
        &["log", "view"],
        &["log", "split"],
        &["log", "levels", "set"],
        &["perf", "log"],
        &["doctor"],
    ] {
        let help = site.tampu(&[verb, &["--help"]].concat()).ok().out;
        assert!(help.contains("Usage: tampu"), "{verb:?}: {help}");
    }
    assert!(site.tampu(&["--help"]).ok().out.contains("Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no hub"));
}

#[test]
fn nobody_reading_is_no_error() {
    let site = Site::new();
    let mut child = site.command(&["completions", "bash"]).spawn().unwrap();
    // As `head` does: the reading end is closed before or during the output.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn doctor_tells_each_check_with_its_way_out() {
    let site = Site::new();
    let said = site.tampu(&["doctor", "--json"]);
    let findings = said.json();
    let of = |check: &str| findings.iter().find(|finding| finding["check"] == check).unwrap().clone();
    assert_eq!(of("run dir")["state"], "ok");
    assert_eq!(of("hub")["state"], "warn");
    assert!(of("hub")["way_out"].as_str().unwrap().contains("tampu up"));
    assert!(findings.iter().all(|finding| finding["state"] == "ok" || finding["way_out"].is_string()));

    let _hub = site.hub(&[]);
    let findings = site.tampu(&["doctor", "--json"]).json();
    assert!(findings.iter().any(|finding| finding["check"] == "collector" && finding["state"] == "ok"), "{findings:?}");

    // A run-time directory that others can write to is refused.
    let open = site.path("open");
    std::fs::create_dir(&open).unwrap();
    rustix::fs::chmod(&open, rustix::fs::Mode::from_bits_truncate(0o777)).unwrap();
    let child = site.command(&["doctor"]).env("TAMPU_RUN_DIR", &open).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("can be written by others"));
}
