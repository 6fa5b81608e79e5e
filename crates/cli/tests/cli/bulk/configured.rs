//! Tests of `[[bulk.flow]]` in a configuration file, and of the settings that override it.

use std::time::Instant;

use super::beside::{Beside, last};
use crate::site::{PATIENCE, Site};

const FILE: &str = r#"
[[bulk.flow]]
stream = "s"
flow = "spectra"
protocol = "tcp"
[[bulk.flow]]
stream = "s"
flow = "spectra"
direction = "recv"
endpoint = "127.0.0.2:0"
[[bulk.flow]]
stream = "s"
flow = "spectra"
direction = "send"
receivers = 2
throttle_mb = 0.5
"#;

/// Returns the address of a receiver with these flags and this environment.
fn address(site: &Site, environment: Option<&str>, flags: &[&str]) -> (Beside, String) {
    let mut command =
        site.command(&[&["bulk", "recv", "-o", "out", "--json", "--replace", "--config", "hub.toml"], flags].concat());
    command.envs(environment.map(|listen| ("TAMPU_BULK_LISTEN", listen)));
    let receiver = Beside::run(command);
    let listening = receiver.await_event("listening");
    assert_eq!((&listening["stream"], &listening["flows"][0]), (&"s".into(), &"spectra".into()), "{listening}");
    let host = listening["address"].as_str().unwrap().split(':').next().unwrap().to_owned();
    (receiver, host)
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let site = Site::new();
    site.file("hub.toml", FILE);
    let _hub = site.hub(&["--roles", "node", "--config", "hub.toml"]);
    assert_eq!(address(&site, Some("127.0.0.3:0"), &["--listen", "127.0.0.4:0"]).1, "127.0.0.4");
    assert_eq!(address(&site, Some("127.0.0.3:0"), &[]).1, "127.0.0.3");
    let (receiver, host) = address(&site, None, &["--limit", "2"]);
    assert_eq!(host, "127.0.0.2");

    let file = site.file("a", vec![7; 500_000]);
    let send = |environment: &[(&str, &str)], flags: &[&str]| {
        let mut command = site.command(&[&["bulk", "send", &file, "--json", "--wait", "1500ms"], flags].concat());
        let sender = Beside::run({
            command.env("TAMPU_CONFIG", "hub.toml").envs(environment.iter().copied());
            command
        });
        sender.end()
    };
    let (code, err) = send(&[], &[]);
    assert!(code == 3 && err.contains("1 of 2 receivers of flow 'spectra'"), "{code} {err}");
    let (code, err) = send(&[("TAMPU_BULK_RECEIVERS", "3")], &["--receivers", "1"]);
    assert_eq!(code, 0, "{err}");
    let ended = receiver.await_event("ended");
    assert!(ended["seconds"].as_f64().unwrap() > 0.5, "at the file's rate: {ended}");
    let (code, err) = send(&[("TAMPU_BULK_RECEIVERS", "1"), ("TAMPU_BULK_PROTOCOL", "shm")], &["--protocol", "tcp"]);
    assert_eq!(code, 0, "{err}");
    let (code, err) = receiver.end();
    assert!(code == 0 && err.contains("'spectra' over tcp"), "{code} {err}");
}

#[test]
fn what_the_file_leaves_open_has_to_be_said_and_nonsense_is_refused() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let nothing = site.tampu(&["bulk", "recv", "-o", "out"]);
    assert!(nothing.code == 2 && nothing.err.contains("no stream is set"), "{nothing:?}");
    site.file(
        "two.toml",
        "[[bulk.flow]]\nstream = \"s\"\n[[bulk.flow]]\nstream = \"t\"\n[[bulk.flow]]\nstream = \"t\"\nflow = \"b\"\n",
    );
    let two = site.tampu(&["bulk", "recv", "-o", "out", "--config", "two.toml"]);
    assert!(two.code == 2 && two.err.contains("several streams: 's', 't'"), "{two:?}");
    let flow = site.tampu(&["bulk", "send", "two.toml", "--stream", "t", "--config", "two.toml"]);
    assert!(flow.code == 2 && flow.err.contains("several flows: 'data', 'b'"), "{flow:?}");
    site.file("bad.toml", "[[bulk.flow]]\nstream = \"s\"\ndirection = \"send\"\nendpoint = \"127.0.0.1:0\"\n");
    for arguments in [&["bulk", "relay", "--from", "s", "--to", "t", "--config", "bad.toml"][..], &["up", "--config", "bad.toml"]]
    {
        let bad = site.tampu(arguments);
        assert!(bad.code == 2 && bad.err.contains("s#data: endpoint: this setting belongs to the other side"), "{bad:?}");
    }
}

#[test]
fn a_distributor_takes_and_gives_as_the_file_says() {
    let site = Site::new();
    site.file(
        "hub.toml",
        "[[bulk.flow]]\nstream = \"s\"\ndirection = \"recv\"\nendpoint = \"127.0.0.2:0\"\nprotocol = \"tcp\"\n\
         [[bulk.flow]]\nstream = \"far\"\ndirection = \"send\"\nreceivers = 1\nprotocol = \"udp\"\n",
    );
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::start(&site, &["bulk", "recv", "--stream", "far", "-o", "out", "--json", "--limit", "1"]);
    receiver.await_event("listening");
    let _relay = Beside::start(&site, &["bulk", "relay", "--from", "s", "--to", "far", "--config", "hub.toml"]);
    let file = site.file("a", vec![7; 500_000]);
    let said = site.tampu(&["bulk", "send", &file, "--stream", "s", "--json", "--protocol", "tcp"]).ok();
    let events = said.json();
    let delivery = &last(&events, "ended")["deliveries"][0];
    assert!(delivery["receiver"]["address"].as_str().unwrap().starts_with("127.0.0.2:"), "{delivery}");
    let (code, err) = receiver.end();
    assert!(code == 0 && err.contains("'data' over udp"), "{code} {err}");
}

#[test]
fn the_protection_of_the_file_is_overridden_and_the_stronger_demand_holds() {
    let site = Site::new();
    site.file("hub.toml", "[[bulk.flow]]\nstream = \"s\"\nprotection = \"authenticated\"\n");
    let _hub = site.hub(&["--roles", "node"]);
    let file = site.file("a", vec![7; 2_000_000]);
    let cases = [("auto", "none", "none"), ("none", "encrypted", "encrypted"), ("", "none", "authenticated")];
    for (number, (taken, given, agreed)) in cases.into_iter().enumerate() {
        let flags = |demand: &str| if demand.is_empty() { Vec::new() } else { vec![format!("--protection={demand}")] };
        let (take, give) = (flags(taken), flags(given));
        let out = format!("out-{number}");
        let mut arguments = vec!["bulk", "recv", "-o", &out, "--json", "--config", "hub.toml"];
        arguments.extend(take.iter().map(String::as_str));
        let receiver = Beside::start(&site, &arguments);
        receiver.await_event("listening");
        // It runs as long as it is looked at, and is killed then.
        let mut arguments = vec!["bulk", "send", &file, "--json", "--throttle", "10KB", "--config", "hub.toml"];
        arguments.extend(give.iter().map(String::as_str));
        let sender = Beside::start(&site, &arguments);
        let until = Instant::now() + PATIENCE;
        loop {
            let states = site.tampu(&["bulk", "stat", "--json"]).ok().json();
            let levels = states.iter().map(|state| state["receiver"]["flows"][0]["protection"].as_str());
            if levels.clone().any(|level| level == Some(agreed)) {
                break;
            }
            assert!(Instant::now() < until, "{taken} {given}: {states:?}");
        }
        drop((sender, receiver));
    }
}
