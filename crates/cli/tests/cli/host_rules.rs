//! Rules about a host, whose certificate proves it, hold for what its processes log, publish and send.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use tampu_bulk::{
    Protection, Sender,
    directory::{RECEIVERS, parse},
    message::Refusal,
    receiver::Identity,
    sender::SendFlow,
};
use tampu_bus::{
    Event, History, Participant, ReaderQos,
    connect::{Encryption, Endpoint, Key, Lan, Settings},
    run_dir::RunDir,
};
use tampu_tls::{Authority, CertificateDir};
use tampu_types::{Incarnation, PartitionFilter, TopicFilter};

use crate::{
    bulk::beside::{Beside, files},
    encrypted::{Lab, host_files},
    site::{Following, Hub, PATIENCE, Said},
};

/// A hub, and the host `mast` with a certificate of its own.
struct Mast {
    lab: Lab,
    _hub: Hub,
    port: u16,
    certificates: PathBuf,
}

impl Mast {
    fn new() -> Mast {
        let lab = Lab::with_certificates();
        let own = lab.certificate_dir();
        let mast = host_files(&own, &Authority::open(&own).unwrap(), SystemTime::now());
        fs::copy(own.authority(), mast.authority()).unwrap();
        let config = lab.site.file("hub.toml", "[events]\nkeep = [\"lab/*\"]\n");
        let (hub, port) = lab.open_with(&["--config", &config]);
        Mast { lab, _hub: hub, port, certificates: mast.path().to_owned() }
    }

    /// Runs a command on the mast.
    fn run(&self, arguments: &[&str]) -> Said {
        self.lab.far(self.port, Some(&self.certificates), arguments)
    }

    /// Publishes an attribute on the mast until the returned process is dropped.
    fn publish(&self, name: &str, process: &str) -> Following {
        let arguments = ["event", "pub", name, "1.5", "--user", "--stay", "10m", "--process", process];
        let all = self.lab.far_arguments(self.port, Some(&self.certificates), &arguments);
        Following::start(&self.lab.elsewhere, &all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs a command on the hub's host.
    fn at_hub(&self, arguments: &[&str]) -> Said {
        self.lab.site.tampu(&[&["--domain", "lab"], arguments].concat())
    }

    /// Adds a rule. This example of what it closes is explained by it.
    fn deny(&self, verb: &str, what: &str, example: &str) {
        self.at_hub(&["access", "deny", "host:mast", verb, what, "--reason", "it stands outside"]).ok();
        let why = self.at_hub(&["access", "explain", "host:mast", verb, example]);
        assert!(why.code == 1 && why.out.contains("it stands outside"), "{why:?}");
    }

    /// Repeats a question at the hub until something in its answer is as wanted.
    #[track_caller]
    fn until_found(&self, arguments: &[&str], wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.at_hub(arguments).ok().json();
            if found.iter().any(&wanted) {
                return found;
            }
            assert!(Instant::now() < until, "{found:?}");
        }
    }

    #[track_caller]
    fn await_audit(&self, text: &str) {
        let audit = ["log", "query", "--json", "--logger", "audit", "-n", "0"];
        self.until_found(&audit, |record| record["message"].as_str().is_some_and(|message| message.contains(text)));
    }
}

#[test]
fn names_of_sources_are_closed_to_a_host() {
    let mast = Mast::new();
    mast.deny("write", "source/CONTROL/**", "source/CONTROL/pump");
    mast.run(&["log", "send", "-p", "CONTROL/pump", "in another name"]);
    mast.run(&["log", "send", "-p", "mast/pump", "in its own name"]).ok();
    let found = mast.until_found(&["log", "query", "--json", "-n", "0"], |record| record["message"] == "in its own name");
    assert!(found.iter().all(|record| record["message"] != "in another name"), "{found:?}");
    mast.await_audit("the host 'mast' may not write the source CONTROL/pump");
    // The rule is about this host alone.
    mast.at_hub(&["log", "send", "-p", "CONTROL/pump", "at the hub"]).ok();
    mast.until_found(&["log", "query", "--json", "-p", "CONTROL/pump"], |record| record["message"] == "at the hub");

    let _published =
        [("lab/gauge/1/a", "CONTROL/gauge"), ("lab/gauge/1/b", "mast/gauge")].map(|(name, by)| mast.publish(name, by));
    mast.await_audit("the host 'mast' may not write the source CONTROL/gauge");
    let history = ["event", "history", "--json", "lab/gauge/*"];
    let found = mast.until_found(&history, |row| row["name"] == "lab/gauge/1/b" && row["value"] == 1.5);
    assert!(found.iter().all(|row| row["name"] != "lab/gauge/1/a"), "{found:?}");
}

#[test]
fn topics_and_attributes_are_closed_to_a_host() {
    let mast = Mast::new();
    mast.deny("write", "log/warning", "log/Warning");
    mast.deny("write", "event/lab/vacuum/**", "event/lab/vacuum/1/a");
    // Nobody takes it, so it is not waited for long.
    mast.run(&["log", "send", "-p", "pump", "--level", "Warning", "--timeout", "1s", "closed"]);
    mast.run(&["log", "send", "-p", "pump", "--level", "Notice", "open"]).ok();
    let found = mast.until_found(&["log", "query", "--json", "-n", "0"], |record| record["message"] == "open");
    assert!(found.iter().all(|record| record["message"] != "closed"), "{found:?}");
    // Its samples are dropped at the link. The collector refuses the stream that the host announces, again and again.
    mast.await_audit("the host 'mast' may not write the topic log/warning");
    mast.run(&["log", "send", "-p", "pump", "--level", "Warning", "--timeout", "1s", "closed again"]);
    let audit = mast.at_hub(&["log", "query", "--json", "--logger", "audit", "-n", "0"]).ok().json();
    let about = |record: &&Value| record["message"].as_str().is_some_and(|message| message.contains("the topic log/warning"));
    assert_eq!(audit.iter().filter(about).count(), 1, "one record a minute: {audit:?}");

    let _published = ["lab/vacuum/1/a", "lab/gauge/1/b"].map(|name| mast.publish(name, "gauge"));
    mast.await_audit("the host 'mast' may not write the attribute lab/vacuum/1/a");
    let found = mast.until_found(&["event", "history", "--json", "lab/*"], |row| row["name"] == "lab/gauge/1/b");
    assert!(found.iter().all(|row| row["name"] != "lab/vacuum/1/a"), "{found:?}");
}

#[test]
fn a_receiver_asks_the_rules_again_for_each_connection() {
    let mast = Mast::new();
    let receiver = ["--domain", "lab", "bulk", "recv", "--stream", "s", "-o", "out", "--json"];
    let receiver = Beside::start(&mast.lab.site, &receiver);
    receiver.await_event("listening");
    let send = |name: &str| {
        let file = mast.lab.elsewhere.file(name, name);
        mast.run(&["bulk", "send", "--stream", "s", &file, "--wait", "5s"])
    };
    send("before").ok();
    mast.deny("send", "bulk/s", "bulk/s");
    let until = Instant::now() + PATIENCE;
    loop {
        // The receiver's process reads the rules again within half a second.
        let said = send("after");
        if said.code != 0 {
            assert!(said.err.contains("the host 'mast' may not send"), "{said:?}");
            break;
        }
        fs::remove_file(mast.lab.site.path("out/after")).unwrap();
        assert!(Instant::now() < until, "{said:?}");
    }
    assert_eq!(files(&mast.lab.site.path("out")), ["before"]);
}

/// A member of the bus on the mast.
fn join(mast: &Mast, name: &str) -> Participant {
    let lan = Lan {
        key: Key::from_file(mast.lab.key()).unwrap(),
        direct: None,
        encryption: Encryption::Tls(CertificateDir::new(&mast.certificates)),
    };
    let hub = Some(Endpoint::Tcp(format!("127.0.0.1:{}", mast.port)));
    let settings = Settings::new("lab".parse().unwrap(), RunDir::at(mast.lab.elsewhere.path("run")));
    Participant::open(Settings { hub, lan: Some(lan), ..settings }, name.parse().unwrap()).unwrap()
}

#[test]
fn a_token_and_the_process_of_another_host_open_no_closed_stream() {
    let mast = Mast::new();
    let receiver = ["--domain", "lab", "bulk", "recv", "--stream", "s", "-o", "out", "--json"];
    let receiver = Beside::start(&mast.lab.site, &receiver);
    receiver.await_event("listening");
    mast.deny("send", "bulk/s", "bulk/s");

    // Every member reads the token, and which process has announced the receiver.
    let member = join(&mast, "member");
    let everything = ReaderQos { history: History::All, ..ReaderQos::default() };
    let mut reader = member.reader(&TopicFilter::new(RECEIVERS).unwrap(), &PartitionFilter::All, everything).unwrap();
    let until = Instant::now() + PATIENCE;
    let (target, its_process) = loop {
        if let Some(Event::Sample(sample)) = reader.next(Duration::from_secs(1))
            && let Ok(Some(declaration)) = sample.payload.with(parse)
        {
            break (declaration.target, sample.stream.incarnation);
        }
        assert!(Instant::now() < until);
    };
    for process in [Incarnation { boot: 1, pid: 2, start: 3 }, its_process, member.incarnation()] {
        let identity = Identity { incarnation: process, ..Identity::alone("lab", "liar") };
        let flow = SendFlow { protection: Protection::Encrypted, ..SendFlow::new("data".parse().unwrap()) };
        let sender = Sender::open(identity, "s".parse().unwrap(), vec![flow]).unwrap();
        sender.connect(&target).unwrap();
        let until = Instant::now() + PATIENCE;
        let link = loop {
            let link = sender.state().flows[0].receivers[0].clone();
            if link.refusal.is_some() {
                break link;
            }
            assert!(Instant::now() < until && sender.flows()[0].connected() == 0, "{link:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(link.refusal == Some(Refusal::Denied) && link.why.contains("shows no pass"), "{link:?}");
    }
}
