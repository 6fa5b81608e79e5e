//! The engine of the bus, as a person chooses it.

#[cfg(feature = "zmq")]
use std::{fs, os::unix::fs::PermissionsExt};

use tampu_bus::connect::engine_names;

use crate::site::Site;
#[cfg(feature = "zmq")]
use crate::{
    events::{Follower, Publisher},
    site::until,
};

#[test]
fn an_engine_that_this_build_lacks_is_named_beside_those_it_has() {
    let site = Site::new();
    let said = site.tampu(&["up", "--engine", "pigeon"]);
    assert!(said.code == 2 && said.err.contains("this build has no engine 'pigeon'; it has: "), "{said:?}");
    assert!(engine_names().all(|name| said.err.contains(name)), "{said:?}");
}

#[cfg(feature = "zmq")]
#[test]
fn records_and_events_travel_on_the_engine_of_the_hub() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node,collector", "--engine", "zmq"]);
    site.tampu(&["log", "send", "cable wrap at limit", "--level", "Warning"]).ok();
    until("the record is in the archive", || site.tampu(&["log", "query"]).out.contains("cable wrap at limit"));

    let mut publisher = Publisher::start(&site, &["lab/pump/1/pressure", "--process", "pumps", "--abs", "0.1"]);
    publisher.say("1");
    let follower = Follower::start(&site, &["lab/pump/1/pressure"]);
    while follower.next()["value"] != 1.0 {}
    publisher.say("2");
    while follower.next()["value"] != 2.0 {}

    let usual = engine_names().next().unwrap();
    let other = site.command(&["log", "query"]).env("TAMPU_ENGINE", usual).output().unwrap();
    let why = String::from_utf8_lossy(&other.stderr);
    assert!(!other.status.success() && why.contains("the node of this host has the engine 'zmq'"), "{why}");
}

#[cfg(feature = "zmq")]
#[test]
fn a_hub_with_certificates_opens_no_link_without_encryption() {
    let site = Site::new();
    let cert = site.path("cert").display().to_string();
    site.tampu(&["--domain", "lab", "cert", "init", "--certificates", &cert]).ok();
    let key = site.file("lab.key", "a key of more than twenty-two characters 0815");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let key_holder = ["--domain", "lab", "--key-file", &key, "--certificates", &cert];
    let up = ["up", "--roles", "node", "--in-process", "--engine", "zmq", "--lan", "127.0.0.1:0"];
    let said = site.tampu(&[&key_holder[..], &up[..]].concat());
    assert!(said.code == 1 && said.err.contains("samples on ZeroMQ are not encrypted; choose the engine "), "{said:?}");
}
