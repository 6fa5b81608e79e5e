//! Rights of the local user, holders of the key on another host, and the people of the logbook.

use std::time::Instant;

use serde_json::Value;

use crate::{
    bulk::beside::Beside,
    site::{Hub, PATIENCE, Said, Site},
};

const KEY: &str = "correct horse battery staple";

/// A hub on the network, with the address for other hosts.
fn open_hub(site: &Site) -> (Hub, String) {
    let key = site.file("domain.key", KEY);
    rustix::fs::chmod(&key, rustix::fs::Mode::from_bits_truncate(0o600)).unwrap();
    let mut hub = site.hub(&["--domain", "lab", "--lan", "127.0.0.1:0", "--key-file", &key]);
    hub.wait_for("listening at ");
    let address = |heard: &str| {
        let line = heard.lines().find_map(|line| line.split_once("listening at "))?;
        line.1.trim().rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map(|_| line.1.trim().to_owned())
    };
    while address(&hub.heard).is_none() {
        hub.wait_for("\n");
    }
    let address = address(&hub.heard).unwrap();
    (hub, address)
}

/// Runs a command as the hub's own user on its host.
fn local(site: &Site, arguments: &[&str]) -> Said {
    site.tampu(&[&["--domain", "lab"], arguments].concat())
}

/// Runs a command as a holder of the key that does not see the hub's run-time directory, as on another host.
fn key_holder(site: &Site, address: &str, arguments: &[&str]) -> Said {
    let all = [&["--domain", "lab", "--hub", address], arguments].concat();
    let child = site.command(&all).env("TAMPU_RUN_DIR", site.path("elsewhere")).env("TAMPU_KEY", KEY).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Repeats an action until its outcome is as expected.
#[track_caller]
fn until(mut act: impl FnMut() -> Said, expected: impl Fn(&Said) -> bool) -> Said {
    let end = Instant::now() + PATIENCE;
    loop {
        let said = act();
        if expected(&said) {
            return said;
        }
        assert!(Instant::now() < end, "{said:?}");
    }
}

fn audited(site: &Site, expected: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = local(site, &["log", "query", "--json", "--logger", "audit", "-n", "0"]).ok().json();
        if let Some(record) = found.iter().find(|record| expected(record)) {
            return record.clone();
        }
        assert!(Instant::now() < end, "{found:?}");
    }
}

#[test]
fn a_key_holder_publishes_and_reads_and_the_local_user_administers() {
    let site = Site::new();
    let (_hub, address) = open_hub(&site);
    key_holder(&site, &address, &["log", "send", "from elsewhere"]).ok();
    let found = |said: &Said| said.code == 0 && said.out.contains("from elsewhere");
    until(|| key_holder(&site, &address, &["log", "query", "--json", "elsewhere"]), found);
    key_holder(&site, &address, &["log", "levels"]).ok();
    key_holder(&site, &address, &["log", "stat"]).ok();
    key_holder(&site, &address, &["event", "list"]).ok();

    let target = site.path("backup").to_string_lossy().into_owned();
    for (arguments, refusal) in [
        (&["log", "levels", "set", "hub@*", "Error"][..], "may not set the service log/levels"),
        (&["log", "archive", "backup", "-o", &target], "may not backup the service log/archive"),
        (&["log", "archive", "compact"], "may not backup the service log/archive"),
        (&["log", "archive", "check"], "may not backup the service log/archive"),
        (&["event", "archive", "backup", "-o", &target], "may not backup the service event/archive"),
    ] {
        let before = site.path("backup").exists();
        let said = key_holder(&site, &address, arguments);
        assert_eq!(said.code, 1, "{arguments:?}: {said:?}");
        let whole = format!("the holder of the key of 'lab' {refusal}: by default holders of the key publish and read");
        assert!(said.err.contains(&whole), "{arguments:?}: {said:?}");
        assert!(said.err.contains("[[allow]] who = \"key\"") && said.err.contains("data/lab/access/policy.toml"), "{said:?}");
        assert_eq!(site.path("backup").exists(), before);
        local(&site, arguments).ok();
    }
    assert!(site.path("backup").exists());

    // Every refusal and every administrative action is in the log.
    let refused = audited(&site, |record| {
        let text = record.to_string();
        text.contains("refused") && text.contains("log/levels") && text.contains("key of 'lab'")
    });
    assert!(refused.to_string().contains("\"bus\""), "{refused}");
    audited(&site, |record| record.to_string().contains("did set") && record.to_string().contains("log/levels"));
    audited(&site, |record| record.to_string().contains("did backup") && record.to_string().contains("backup to "));
}

#[test]
fn rules_change_while_the_hub_runs_and_a_broken_file_changes_nothing() {
    let site = Site::new();
    let (_hub, address) = open_hub(&site);
    let set = || key_holder(&site, &address, &["log", "levels", "set", "hub@*", "Debug"]);
    assert_eq!(set().code, 1);
    let said = local(&site, &["access", "explain", "key", "set", "log/levels"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.starts_with("key may not set log/levels: by default holders of the key publish and read"), "{said:?}");
    assert!(said.out.contains("to allow it: [[allow]] who = \"key\", may = [\"set\"], what = \"log/levels\" in "), "{said:?}");

    let said = local(&site, &["access", "allow", "key", "set", "log/levels", "--reason", "shift leaders"]).ok();
    assert!(said.out.contains("policy.toml:1)  # shift leaders"), "{said:?}");
    set().ok();
    let said = local(&site, &["access", "explain", "key", "set", "log/levels"]).ok();
    assert!(
        said.out.contains("key may set log/levels: the rule at ") && said.out.contains("policy.toml:1 allows it"),
        "{said:?}"
    );
    let json = local(&site, &["access", "explain", "--json", "key", "set", "log/levels"]).ok().json();
    assert_eq!((&json[0]["allowed"], &json[0]["rule"]["line"]), (&true.into(), &1.into()));
    audited(&site, |record| record.to_string().contains("/access/rules"));

    // An edited file.
    let policy = site.path("data").join("lab/access/policy.toml");
    let text = std::fs::read_to_string(&policy).unwrap();
    std::fs::write(&policy, format!("{text}\n[[deny]]\nwho = \"key\"\nmay = [\"change\"]\nwhat = \"**\"\n")).unwrap();
    let denied = until(set, |said| said.code == 1);
    assert!(denied.err.contains("policy.toml:7 denies it"), "{denied:?}");
    // A broken one: the rules stay, and the log names the line.
    std::fs::write(&policy, "[[allow]]\nwho = \"everybody\"\n").unwrap();
    until(
        || local(&site, &["log", "query", "--json", "--min-level", "Error", "-n", "0"]),
        |said| said.out.contains("policy.toml, line 2") && said.out.contains("the rules stay as they were"),
    );
    assert!(set().err.contains("policy.toml:7 denies it"));
    let said = site.tampu(&["access", "check", &policy.to_string_lossy()]);
    assert!(said.code == 1 && said.err.contains("line 2"), "{said:?}");
    // A file that an editor removes before it writes the new one.
    std::fs::remove_file(&policy).unwrap();
    until(
        || local(&site, &["log", "query", "--json", "--min-level", "Error", "-n", "0"]),
        |said| said.out.contains("policy.toml is gone or empty, and had rules"),
    );
    assert!(set().err.contains("policy.toml:7 denies it"));
    let said = local(&site, &["access", "allow", "key", "backup", "backup"]);
    assert!(said.code == 1 && said.err.contains("put it back"), "{said:?}");
    std::fs::write(&policy, &text).unwrap();
    site.tampu(&["access", "check", &policy.to_string_lossy()]).ok();
    until(set, |said| said.code == 0);
    local(&site, &["access", "revoke", "1"]).ok();
    assert_eq!(set().code, 1);
    assert!(local(&site, &["access", "revoke", "1"]).err.contains("no rule begins at line 1"));
}

#[test]
fn a_process_that_logs_obeys_the_rules_of_its_host() {
    let site = Site::new();
    let (_hub, address) = open_hub(&site);
    let mut talker = site.command(&["--domain", "lab", "log", "send", "-p", "talker"]);
    let mut talker = talker.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(talker.stdin.as_mut().unwrap(), b"talks\n").unwrap();
    until(|| local(&site, &["log", "query", "talks"]), |said| said.out.contains("talks"));
    let said = key_holder(&site, &address, &["log", "levels", "set", "*", "Error"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!said.out.contains("central Error"), "{said:?}");
    local(&site, &["log", "levels", "set", "*", "Error"]).ok();
    drop(talker.stdin.take());
    talker.wait().unwrap();
}

#[test]
fn one_command_explains_the_logbooks_grants_too() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    // Changes through the hub hold at once.
    let through = |arguments: &[&str]| site.tampu_without("TAMPU_DATA_DIR", b"", arguments);
    through(&["book", "make", "Shift", "-a", "Author"]).ok();
    through(&["book", "users", "add", "zoe", "--no-password"]).ok();
    through(&["book", "users", "role", "Shift", "user:zoe", "read"]).ok();
    through(&["book", "users", "role", "Shift", "everybody", "none"]).ok();
    let explain = |who: &str, verb: &str, what: &str| site.tampu(&["access", "explain", who, verb, what]);
    let said = explain("user:zoe", "read", "book/Shift").ok();
    assert!(said.out.contains("user:zoe may read book/Shift: the logbook's own grants decide"), "{said:?}");
    let said = explain("user:zoe", "admin", "book/Shift");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("to allow it: tampu book users role 'Shift' user:zoe admin"), "{said:?}");
    explain("local", "admin", "book/Shift").ok();
    for (who, what, why) in [
        ("user:nobody", "book/Shift", "there is no user 'nobody'"),
        ("user:zoe", "book/None", "there is no logbook 'None'"),
        ("user:zoe", "log/query", "rights for logbooks only"),
        ("key", "book/Shift", "the network is open only"),
    ] {
        let said = explain(who, "read", what);
        assert!(said.code == 1 && said.out.contains(why), "{said:?}");
    }
    // A rule narrows the grants, on every surface.
    site.tampu(&["access", "deny", "user:zoe", "read", "book/Shift", "--reason", "on leave"]).ok();
    let said = explain("user:zoe", "read", "book/Shift");
    assert!(said.code == 1 && said.out.contains("policy.toml:1 denies it") && said.out.contains("on leave"), "{said:?}");
    // Wrong words are named.
    for (arguments, why) in [
        (["zoe", "read", "book/Shift"], "'zoe' is no principal"),
        (["key", "look", "log/query"], "'look' is no verb"),
        (["key", "read", ""], "missing"),
    ] {
        let said = site.tampu(&[&["access", "explain"][..], &arguments].concat());
        assert!(said.code != 0 && said.err.contains(why), "{said:?}");
    }
}

#[test]
fn a_holder_of_the_key_controls_transfers_only_by_a_rule() {
    let site = Site::new();
    let (_hub, address) = open_hub(&site);
    let arguments = ["--domain", "lab", "bulk", "recv", "--stream", "s", "-o", "out", "--json", "--control", "archive"];
    let receiver = Beside::start(&site, &arguments);
    receiver.await_event("listening");
    let far = |command: &str| key_holder(&site, &address, &["bulk", "control", command, "archive"]);
    let said = until(|| far("close"), |said| said.code != 3);
    assert!(said.code == 1 && said.err.contains("may not set the service bulk/control/archive"), "{said:?}");
    assert!(said.err.contains("do not administer"), "closed by default: {said:?}");
    assert!(far("state").ok().out.contains(", open"), "and it is still open");
    local(&site, &["access", "allow", "key", "set", "bulk/control/archive", "--reason", "shift leaders"]).ok();
    until(|| far("close"), |said| said.code == 0);
    assert!(far("state").ok().out.contains(", closed"));
}
