//! Data that goes once to a group, for all receivers: flags, the configuration file, and what cannot be.

use super::beside::{Beside, content, last};
use crate::site::Site;

#[test]
fn a_file_goes_to_a_group_and_all_receivers_have_it() {
    let site = Site::new();
    site.file("hub.toml", "[[bulk.flow]]\nstream = \"s\"\ndirection = \"send\"\nmulticast = \"239.255.77.3\"\nreceivers = 2\n");
    let _hub = site.hub(&["--roles", "node"]);
    let bytes = content(3_000_000, 7);
    let file = site.file("a", &bytes);
    let outs = ["one", "two"];
    let receivers = outs.map(|out| Beside::receiver_into(&site, out, &["--limit", "2", "--replace"]));
    let by_flag = ["--multicast", "239.255.77.2", "--receivers", "2"];
    for more in [&by_flag[..], &["--config", "hub.toml"]] {
        let events = site.tampu(&[&["bulk", "send", &file, "--stream", "s", "--json"], more].concat()).ok().json();
        let ended = last(&events, "ended");
        assert_eq!((&ended["complete"], ended["deliveries"].as_array().unwrap().len()), (&true.into(), 2), "{ended}");
    }
    for (receiver, out) in receivers.into_iter().zip(outs) {
        let (code, err) = receiver.end();
        assert!(code == 0 && err.contains("'data' over multicast"), "{code} {err}");
        assert!(std::fs::read(site.path(&format!("{out}/a"))).unwrap() == bytes);
    }
}

#[test]
fn a_distributor_gives_to_a_group() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let receiver = Beside::start(&site, &["bulk", "recv", "--stream", "far", "-o", "out", "--json", "--limit", "1"]);
    receiver.await_event("listening");
    let relay = ["bulk", "relay", "--from", "s", "--to", "far", "--receivers", "1", "--multicast", "239.255.77.4"];
    let _relay = Beside::start(&site, &relay);
    let file = site.file("a", content(500_000, 8));
    site.tampu(&["bulk", "send", &file, "--stream", "s", "--json"]).ok();
    let (code, err) = receiver.end();
    assert!(code == 0 && err.contains("'data' over multicast"), "{code} {err}");
}

#[test]
fn what_cannot_be_a_group_or_go_to_one_is_refused_before_anything_is_done() {
    let site = Site::new();
    let file = site.file("a", b"x");
    for (flags, why) in [
        (&["--multicast", "10.0.0.1"][..], "the address of one host"),
        (&["--multicast", "239.255.77.2:0"], "invalid multicast group"),
        (&["--multicast", "239.255.77.2", "--protocol", "udp"], "contradict each other"),
        (&["--multicast", "239.255.77.2", "--slow", "skip"], "nothing skipped"),
        (&["--protocol", "multicast"], "no multicast group is set"),
        (&["--interface", "127.0.0.1"], "name it with --multicast"),
        (&["--ttl", "2", "--protocol", "tcp"], "name it with --multicast"),
    ] {
        let said = site.tampu(&[&["bulk", "send", &file, "--stream", "s"], flags].concat());
        assert!(said.code == 2 && said.err.contains(why), "{flags:?}: {said:?}");
    }
}
