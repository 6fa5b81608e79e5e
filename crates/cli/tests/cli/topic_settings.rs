//! Settings of topics: from a hub's configuration to every program of the site.

use std::{
    fs,
    path::Path,
    time::{Instant, SystemTime},
};

use serde_json::Value;
use tampu_bus::{Participant, connect::Settings, run_dir::RunDir};
use tampu_tls::Authority;
use tampu_types::{Domain, SourceName, TopicName};

use crate::{
    encrypted::{Lab, host_files},
    events::{Follower, Publisher},
    site::{PATIENCE, Said, Site},
};

/// Returns the value and the ground of a field.
fn field(said: Said, name: &str) -> (Value, String) {
    let lines = said.ok().json();
    let found = lines.iter().find(|line| line["field"] == name).unwrap_or_else(|| panic!("no {name} in {lines:?}"));
    (found["value"].clone(), found["ground"].as_str().unwrap_or("default").to_owned())
}

/// Repeats a question until a field has this value, and returns its ground.
#[track_caller]
fn await_value(ask: impl Fn() -> Said, name: &str, wanted: u64) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let (value, ground) = field(ask(), name);
        if value == wanted {
            return ground;
        }
        assert!(Instant::now() < until, "{name} is {value} by {ground}, not {wanted}");
    }
}

fn qos_with(site: &Site, variables: &[(&str, &str)], arguments: &[&str]) -> Said {
    let all = [&["bus", "qos", "--json"], arguments].concat();
    let output = site.command(&all).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

fn follows_the_hub(up: &[&str]) {
    let site = Site::new();
    let config = site.file("tampu.toml", "[[topic]]\ntopics = \"log/*\"\nkeep = 1111\n");
    let hub = site.hub_with(&[up, &["--config", &config]].concat());
    let ask = |arguments: &[&str]| qos_with(&site, &[], arguments);
    let (keep, ground) = field(ask(&["log/info"]), "keep");
    assert_eq!(keep, 1111);
    assert!(ground.starts_with("the hub hub@") && ground.ends_with(", [[topic]] 1"), "{ground}");
    assert_eq!(field(ask(&["log/info"]), "credit"), (Value::from(4 << 20), "default".to_owned()));
    assert_eq!(field(ask(&["log/info"]), "urgent").0, false);
    assert_eq!(field(ask(&["log/error"]), "urgent").0, true);

    // A program that is there before the settings change.
    let run = RunDir::at(site.path("run"));
    let settings = Settings::new(Domain::new("local").unwrap(), run);
    let program = Participant::open(settings, SourceName::new("program").unwrap()).unwrap();
    let topic = TopicName::new("log/info").unwrap();
    assert_eq!(program.qos(&topic).keep, 1111);
    site.file(
        "tampu.toml",
        "[[topic]]\ntopics = \"log/*\"\nkeep = 2222\n[[topic]]\ntopics = \"log/*\"\naudience = \"operator\"\nkeep = 3333\n",
    );
    await_value(|| ask(&["log/info"]), "keep", 2222);
    assert_eq!(program.qos(&topic).keep, 2222);
    let (keep, ground) = field(ask(&["log/info", "--audience", "Operator"]), "keep");
    assert!(keep == 3333 && ground.ends_with(", [[topic]] 2"), "{keep} by {ground}");

    // A broken file keeps the settings, and the log says where it is broken.
    site.file("tampu.toml", "[[topic]]\ntopics = \"log/*\"\nmax_wait_ms = 99999999\n");
    let broken = ["log", "query", "--json", "--contains", "stay as they were", "-n", "0"];
    let until = Instant::now() + PATIENCE;
    while !site.tampu(&broken).ok().out.contains("[[topic]] 1: max_wait_ms = 99999999: it may be 0 to 60000 ms") {
        assert!(Instant::now() < until, "no record about the broken file");
    }
    assert_eq!(field(ask(&["log/info"]), "keep").0, 2222);

    // The program's file beats the site, and the environment beats both.
    let own = site.file("program.toml", "[log]\nlevel = \"Info\"\n[[topic]]\ntopics = \"log/info\"\nkeep = 4444\ncache = 5555\n");
    let environment = site.file("qos.toml", "[[topic]]\ntopics = \"log/info\"\nkeep = 6666\n");
    let of_file = [("TAMPU_LOG_CONFIG", own.as_str())];
    let (keep, ground) = field(qos_with(&site, &of_file, &["log/info"]), "keep");
    assert!(keep == 4444 && ground == format!("{own}, [[topic]] 1"), "{keep} by {ground}");
    let of_both = [of_file[0], ("TAMPU_QOS", environment.as_str())];
    let (keep, ground) = field(qos_with(&site, &of_both, &["log/info"]), "keep");
    assert!(keep == 6666 && ground == format!("{environment}, [[topic]] 1"), "{keep} by {ground}");
    assert_eq!(field(qos_with(&site, &of_both, &["log/info"]), "cache").0, 5555);
    let bad = site.file("bad.toml", "[[topic]]\ntopcs = \"log/*\"\n");
    let said = qos_with(&site, &[("TAMPU_QOS", &bad)], &["log/info"]);
    assert!(said.code == 2 && said.err.contains("bad.toml, line 2: unknown field `topcs`"), "{said:?}");

    // A program keeps what it has when the hub ends.
    drop(hub);
    assert_eq!(program.qos(&topic).keep, 2222);
}

#[test]
fn programs_follow_the_hub_of_their_host() {
    follows_the_hub(&["up", "--in-process"]);
}

#[test]
fn programs_follow_a_hub_of_several_processes() {
    follows_the_hub(&["up"]);
}

#[test]
fn an_attribute_that_a_setting_names_gets_a_stream_of_its_own() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[[topic]]\nattributes = \"lab/psu/*/alarm\"\nurgent = true\nkeep = 7777\n");
    let _hub = site.hub(&["--config", &config]);
    let of = |name: &str| qos_with(&site, &[], &["--attribute", name]);
    let (urgent, ground) = field(of("lab/psu/1/alarm"), "urgent");
    assert!(urgent == true && ground.ends_with("[[topic]] 1"), "{urgent} by {ground}");
    assert_eq!(field(of("lab/psu/1/voltage"), "urgent").0, false);
    let text = site.tampu(&["bus", "qos", "--attribute", "lab/psu/1/voltage"]).ok();
    assert!(
        text.err.contains("no setting names the attribute") && text.out.contains("default of streams of one attribute"),
        "{text:?}"
    );
    // Subscribers follow it there.
    let follower = Follower::start(&site, &["lab/psu/1/alarm"]);
    let mut publisher = Publisher::start(&site, &["lab/psu/1/alarm", "--user", "--process", "psu"]);
    publisher.say("1.5");
    while follower.next()["value"] != 1.5 {}
}

#[test]
fn a_wrong_setting_stops_a_hub_with_its_number() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[[topic]]\ntopics = \"log/*\"\n[[topic]]\ntopics = \"log/*\"\ncredit = 0\n");
    let said = site.tampu(&["up", "--in-process", "--config", &config]);
    assert!(said.code == 2 && said.err.contains("[[topic]] 2: credit = 0: it may be 1 to 4294967295 bytes"), "{said:?}");
}

#[test]
fn settings_reach_the_programs_of_other_hosts() {
    let lab = Lab::with_certificates();
    let own = lab.certificate_dir();
    let mast = host_files(&own, &Authority::open(&own).unwrap(), SystemTime::now());
    fs::copy(own.authority(), mast.authority()).unwrap();
    let central = lab.site.file("central.toml", "[[topic]]\ntopics = \"log/*\"\nkeep = 1111\ncache = 2222\n");
    let (_hub, port) = lab.open_with(&["--config", &central]);
    let config = format!(
        "roles = [\"node\"]\n[network]\nconnect = [\"127.0.0.1:{port}\"]\nkey_file = \"{}\"\ncertificates = \"{}\"\n",
        lab.key().display(),
        mast.path().display()
    );
    let of_mast = |topic: &str| lab.elsewhere.file("mast.toml", format!("{config}{topic}"));
    let path = of_mast("[[topic]]\ntopics = \"log/*\"\ncache = 3333\n");
    let _far = lab.elsewhere.hub(&["--domain", "lab", "--config", &path]);
    let at = |site: &Site| qos_with(site, &[], &["log/info", "--domain", "lab"]);
    // The hub of the host is the last one.
    await_value(|| at(&lab.elsewhere), "keep", 1111);
    assert_eq!(field(at(&lab.elsewhere), "cache").0, 3333);
    // The central hub does not connect to the mast, so it does not obey it.
    assert_eq!(field(at(&lab.site), "cache").0, 2222);
    of_mast("[[topic]]\ntopics = \"log/*\"\nbatch = 4444\n");
    await_value(|| at(&lab.elsewhere), "batch", 4444);
    assert_eq!(field(at(&lab.elsewhere), "cache").0, 2222);
    assert_eq!(field(at(&lab.site), "batch").1, "default");
    let audit = ["--domain", "lab", "log", "query", "--json", "--logger", "audit", "-n", "0"];
    assert!(lab.site.tampu(&audit).ok().out.contains("the host 'mast' may not admin the topic site/qos"));
    lab.site.tampu(&["--domain", "lab", "access", "allow", "host:mast", "admin", "site/qos"]).ok();
    let ground = await_value(|| at(&lab.site), "batch", 4444);
    assert!(ground.starts_with("the hub hub@"), "{ground}");
    // A program without a hub on its host gets what holds at the hub that it is connected to.
    let beside = Beside::new();
    let far = || beside.ask(&lab, port, mast.path());
    await_value(far, "batch", 4444);
    assert_eq!(field(far(), "keep").0, 1111);
}

/// A host without a hub.
struct Beside {
    site: Site,
}

impl Beside {
    fn new() -> Beside {
        Beside { site: Site::new() }
    }

    fn ask(&self, lab: &Lab, port: u16, certificates: &Path) -> Said {
        let all = lab.far_arguments(port, Some(certificates), &["bus", "qos", "log/info", "--json"]);
        self.site.tampu(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

#[test]
fn without_certificates_a_program_believes_the_hub_that_it_is_connected_to() {
    let site = Site::new();
    let key = site.file("domain.key", "correct horse battery staple");
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let config = site.file("hub.toml", "[[topic]]\ntopics = \"log/*\"\nkeep = 1111\n");
    let mut hub = site.hub(&["--domain", "lab", "--key-file", &key, "--lan", "127.0.0.1:0", "--config", &config]);
    hub.wait_for("listening at 127.0.0.1:");
    let line = hub.heard.lines().find(|line| line.contains("listening at")).unwrap();
    let address = format!("127.0.0.1:{}", line.rsplit(':').next().unwrap());
    let beside = Site::new();
    let all = ["--domain", "lab", "--key-file", &key, "--hub", &address, "bus", "qos", "log/info", "--json"];
    await_value(|| beside.tampu(&all), "keep", 1111);
}
