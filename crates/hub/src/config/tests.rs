use super::*;

const SAMPLE: &str = include_str!("../../tampu.toml");

#[test]
fn the_documented_file_says_the_defaults() {
    let path = Path::new("tampu.toml");
    let defaults = Config { data: PathBuf::from("/var/lib/tampu"), log: default_log(), ..Config::default() };
    assert_eq!(Config::parse(SAMPLE, path).unwrap(), defaults);
    // Commented settings must be valid, too, once the marks are removed.
    let uncommented: String =
        SAMPLE.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line)).flat_map(|line| [line, "\n"]).collect();
    let mut all = Config::parse(&uncommented, path).unwrap();
    assert_eq!(all.network.connect, ["archive.example.org:7447"]);
    assert_eq!((all.topic.len(), all.allow.len(), all.quota.source.len(), all.logger.len()), (2, 1, 1, 1));
    assert_eq!((all.route.len(), all.target.len(), all.route[0].to.len()), (1, 2, 2));
    assert_eq!((all.bulk.flow.len(), all.bulk.flow[1].receivers), (2, Some(2)));
    // The host of this test has no certificates.
    all.network.encryption = Encryption::None;
    all.check().unwrap();
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let error = Config::parse("domain = \"x\"\n\n[collector]\ncomit_ms = 3\n", Path::new("/etc/tampu.toml")).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the configuration /etc/tampu.toml, line 4: unknown field `comit_ms`"), "{text}");
}

#[test]
fn a_value_of_a_wrong_type_is_named_with_its_setting() {
    let read = |text: &str| Config::parse(text, Path::new("t.toml")).unwrap_err().to_string();
    let text = read("[collector]\nkeep_days = \"three\"\n");
    assert_eq!(text, "the configuration t.toml, line 2: keep_days: invalid type: string \"three\", expected a whole number");
    let text = read("[collector]\ncompact_share = \"x\"\n");
    assert!(text.ends_with("compact_share: invalid type: string \"x\", expected a number"), "{text}");
}

#[test]
fn the_environment_beats_the_file_and_the_file_beats_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tampu.toml");
    fs::write(&file, "domain = \"from-file\"\n[collector]\ncommit_ms = 5\n").unwrap();
    let none = |_: &str| None;
    assert_eq!(Config::load(Some(&file), none).unwrap().domain.as_str(), "from-file");
    let environment = |name: &str| (name == "TAMPU_DOMAIN").then(|| "from-environment".to_owned());
    let config = Config::load(Some(&file), environment).unwrap();
    assert_eq!((config.domain.as_str(), config.collector.commit_ms, config.collector.segment_mb), ("from-environment", 5, 128));
}

#[test]
fn roles_of_later_releases_are_refused_by_name() {
    let later = Config { roles: parse_roles("console,node").unwrap(), ..Config::default() };
    assert!(later.check().unwrap_err().to_string().contains("'console' comes in a later release"));
    assert!(parse_roles("nod").unwrap_err().to_string().contains("unknown role 'nod'"));
    assert!(Config { roles: Vec::new(), ..Config::default() }.check().is_err());
}

#[test]
fn nothing_listens_beyond_the_host_without_a_key() {
    let mut config = Config::default();
    assert!(config.network.listen.is_empty());
    config.network.listen.push("0.0.0.0:7447".into());
    assert!(config.check().unwrap_err().to_string().contains("key"));
}

#[test]
fn the_logbook_listens_beyond_the_host_only_with_a_domain_and_its_key() {
    let config = |domain: &str, key: bool, roles: &str, elog: bool| {
        let mut config = Config { domain: Domain::new(domain).unwrap(), roles: parse_roles(roles).unwrap(), ..Config::default() };
        config.network.key_file = key.then(|| "domain.key".into());
        let address = "0.0.0.0:7449".parse().unwrap();
        if elog {
            config.book.elog_listen = address
        } else {
            config.book.listen = Some(address)
        }
        config.check()
    };
    for (domain, key) in [("local", false), ("local", true), ("lab", false)] {
        for (elog, setting) in [(false, "book.listen"), (true, "book.elog_listen")] {
            let wrong = config(domain, key, "node,book", elog).unwrap_err().to_string();
            assert!(wrong.contains(setting) && wrong.contains("--domain") && wrong.contains("--key-file FILE"), "{wrong}");
        }
    }
    assert!(config("lab", true, "node,book", true).is_ok());
    assert!(config("lab", false, "book", false).is_ok(), "on another hub's node");
    assert!(config("local", false, "node", false).is_ok(), "without the logbook");
}

#[test]
fn of_the_log_the_file_beats_the_environment_which_beats_the_hub_s_default() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tampu.toml");
    fs::write(&file, "[log]\nlocal = \"Info\"\nformat = \"json\"\n").unwrap();
    let environment = |name: &str| ["TAMPU_LOG_LOCAL", "TAMPU_LOG_LEVEL"].contains(&name).then(|| "Off".to_owned());
    let log = Config::load(Some(&file), environment).unwrap().log.over(default_log());
    assert_eq!((log.level, log.local), (Some(Threshold::Off), Some(Threshold::From(Level::Info))));
    assert_eq!(log.immediate, Some(Threshold::From(Level::Error)), "the default");
    assert_eq!(log.format.map(|format| format.name()), Some("json"));
    let wrong = Config::load(Some(&file), |name| (name == "TAMPU_LOG_OUTPUT").then(|| "stdot".to_owned())).unwrap_err();
    assert!(wrong.to_string().starts_with("TAMPU_LOG_OUTPUT: invalid place for local output 'stdot'"), "{wrong}");
    fs::write(&file, "[log]\npacket_records = 0\n").unwrap();
    let wrong = Config::from_file(&file).unwrap_err().to_string();
    assert!(wrong.contains("tampu.toml, line 2: ") && wrong.contains("nonzero"), "{wrong}");
}

#[test]
fn a_hub_has_the_parts_of_its_roles_and_of_what_is_enabled() {
    let mut config = Config::default();
    assert_eq!(config.parts(), [HubPart::Node, HubPart::Collector, HubPart::Book, HubPart::Gateway]);
    config.roles = vec![Role::Node];
    config.epics.enabled = true;
    config.metrics.enabled = true;
    assert_eq!(config.parts(), [HubPart::Node, HubPart::Inputs, HubPart::Gateway, HubPart::Metrics]);
    config.metrics.listen = ListenAddress::Off;
    config.gateway.enabled = false;
    config.tango.enabled = true;
    assert_eq!(config.parts(), [HubPart::Node, HubPart::Inputs, HubPart::Tango]);
}

#[test]
fn a_size_in_bytes_is_refused_and_never_becomes_a_small_one() {
    for setting in ["keep_gb", "min_free_gb"] {
        let config = Config::parse(&format!("[collector]\n{setting} = {}\n", 1_u64 << 34), Path::new("t.toml")).unwrap();
        let why = config.check().unwrap_err().to_string();
        assert!(why.starts_with(&format!("collector.{setting}: 17179869184 GiB are more than")), "{why}");
        let archive = config.archive();
        assert!(archive.keep.bytes != Some(0) && archive.min_free > 0, "nothing is removed by an overflow");
    }
}
