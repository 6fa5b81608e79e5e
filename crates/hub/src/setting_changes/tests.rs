use serde_json::json;

use super::*;

fn configured(directory: &Path, text: &str) -> Config {
    let config = Config::isolated(directory);
    let read = Config::parse(text, Path::new("test.toml")).unwrap();
    let config = Config {
        collector: read.collector,
        quota: read.quota,
        route: read.route,
        target: read.target,
        access: read.access,
        roles: read.roles,
        ..config
    };
    fs::create_dir_all(config.settings_file().parent().unwrap()).unwrap();
    config
}

#[test]
fn changes_hold_over_the_configuration_and_in_the_next_life() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(
        directory.path(),
        "[access]\nsyslog_hosts = [\"log*.site:514\"]\n[collector]\nkeep_days = 30\n[target.night]\nfile = \"/var/log/night\"\n",
    );
    let settings = SettingChanges::open(&config).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_user = seen.clone();
    settings.on_change(move |config| of_user.lock().push(config.collector.keep_days));
    settings.set("collector.keep_days", json!(365), "user:zoe").unwrap();
    settings.set("quota.source", json!([{ "names": "CORR/*", "records_per_s": 0 }]), "user:zoe").unwrap();
    settings
        .set("target", json!({ "night": { "file": "/var/log/night" }, "day": { "syslog": "udp log.site:514" } }), "user:zoe")
        .unwrap();
    settings.set("route", json!([{ "min_level": "Error", "to": ["day"] }]), "user:max").unwrap();
    assert_eq!(*seen.lock(), [365, 365, 365, 365]);

    let again = SettingChanges::open(&config).unwrap().in_force();
    assert_eq!((again.config.collector.keep_days, again.config.collector.commit_ms), (365, 2));
    assert_eq!((again.config.quota.source.len(), again.config.route.len(), again.config.target.len()), (1, 1, 2));
    assert_eq!(again.changes["route"].by, "user:max");
    assert_eq!(again.config.data, config.data);

    assert!(settings.reset("collector.keep_days").unwrap());
    assert!(!settings.reset("collector.keep_days").unwrap());
    assert_eq!(SettingChanges::open(&config).unwrap().in_force().config.collector.keep_days, 30);
}

#[test]
fn invalid_changes_are_refused_by_the_name_of_the_setting_and_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "[collector]\nkeep_days = 30\n");
    let settings = SettingChanges::open(&config).unwrap();
    let refused = |name: &str, value: Value| settings.set(name, value, "user:zoe").unwrap_err().to_string();
    for (name, value, expected) in [
        ("collector.keep_days", json!("x"), "collector.keep_days: invalid type"),
        ("collector.keep_days", json!(-1), "collector.keep_days: invalid value"),
        ("collector.keep_days", json!(3), "3 is less than keep_at_least_days"),
        ("collector.commit_ms", json!(3), "'collector.commit_ms' cannot be changed while the hub runs"),
        ("data", json!("/"), "'data' cannot be changed"),
        ("route", json!([{ "to": ["x"] }]), "there is no [target.x]"),
        ("route", json!([{ "min_level": "Error", "to": [], "archive": false, "more": 1 }]), "unknown field `more`"),
        ("target", json!({ "x": { "file": "/root/.bashrc" } }), "[target.x] file: only the configuration file names a file"),
        ("target", json!({ "../x": {} }), "a target's name is the name of a file"),
        ("target", json!({ "x": { "files": u32::MAX } }), "[target.x] files: 4294967295 is not a number of files from 1 to 1000"),
        ("target", json!({ "x": { "size_mb": 1_u64 << 44 } }), "[target.x] size_mb"),
        ("quota.source", json!([{ "records_per_s": 0 }]), "missing field `names`"),
    ] {
        let why = refused(name, value);
        assert!(why.contains(expected), "{name}: {why}");
    }
    assert!(!config.settings_file().exists());
    assert_eq!(settings.in_force().config.collector.keep_days, 30);
}

#[test]
fn a_hub_that_allows_no_changes_or_keeps_no_logs_uses_none() {
    let directory = tempfile::tempdir().unwrap();
    let open = configured(directory.path(), "");
    SettingChanges::open(&open).unwrap().set("collector.keep_days", json!(40), "user:zoe").unwrap();
    let closed = configured(directory.path(), "[access]\nchange_settings = false\n");
    let settings = SettingChanges::open(&closed).unwrap();
    assert_eq!(settings.in_force().config.collector.keep_days, 0);
    assert!(matches!(settings.set("collector.keep_days", json!(1), "user:zoe"), Err(ChangeError::Closed)));
    assert!(changeable_names(&closed).is_empty());
    let without = configured(directory.path(), "roles = [\"node\", \"book\"]\n");
    let settings = SettingChanges::open(&without).unwrap();
    assert!(matches!(settings.set("quota.streams", json!(1), "user:zoe"), Err(ChangeError::Elsewhere(_))));
    assert_eq!(changeable_names(&without), OF_BOOK);
}

#[test]
fn a_broken_file_stops_the_start_and_changes_nothing_later() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let settings = SettingChanges::open(&config).unwrap();
    settings.set("collector.keep_days", json!(40), "user:zoe").unwrap();
    fs::write(config.settings_file(), "[\"collector.keep_days\"]\nvalue = ").unwrap();
    assert!(settings.read_again().unwrap_err().to_string().contains("the file of changed settings"));
    assert_eq!(settings.in_force().config.collector.keep_days, 40);
    assert!(settings.set("collector.keep_days", json!(41), "user:zoe").is_err(), "nobody's changes are overwritten");
    assert!(SettingChanges::open(&config).is_err());
    fs::write(config.settings_file(), "[\"collector.keep_days\"]\nvalue = 50\nby = \"x\"\nat = \"y\"\n").unwrap();
    settings.read_again().unwrap();
    assert_eq!(settings.in_force().config.collector.keep_days, 50);
}

#[test]
fn changed_targets_send_to_hosts_of_the_configuration_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[access]\nsyslog_hosts = [\"*.site:514\"]\n[target.far]\nsyslog = \"tcp log.other:601\"\n";
    let settings = SettingChanges::open(&configured(directory.path(), text)).unwrap();
    let set = |place: &str| settings.set("target", json!({ "x": { "syslog": place } }), "user:zoe");
    for place in ["tcp log.other:601", "udp a.site:514", "tcp B.Site:514"] {
        set(place).unwrap_or_else(|why| panic!("{place}: {why}"));
    }
    for place in ["udp log.other:601", "tcp log.other:602", "tcp a.site:22", "tcp evil.example:514", "tcp  evil.example:514"] {
        let why = set(place).unwrap_err().to_string();
        assert!(why.contains("[target.x] syslog: no target of the configuration file has"), "{why}");
        assert!(why.contains("syslog_hosts in [access]"), "{why}");
    }
    assert_eq!(settings.in_force().config.target["x"].syslog.as_deref(), Some("tcp B.Site:514"));
}
