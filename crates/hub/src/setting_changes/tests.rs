use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

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

const ZOE: Asked<'static> = Asked { by: "user:zoe", from: "127.0.0.1", confirmed: false, version: None };
const SURE: Asked<'static> = Asked { confirmed: true, ..ZOE };

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
    settings.set("collector.keep_days", json!(365), &ZOE).unwrap();
    settings.set("quota.source", json!([{ "names": "CORR/*", "records_per_s": 0 }]), &ZOE).unwrap();
    settings
        .set("target", json!({ "night": { "file": "/var/log/night" }, "day": { "syslog": "udp log.site:514" } }), &ZOE)
        .unwrap();
    settings.set("route", json!([{ "min_level": "Error", "to": ["day"] }]), &Asked { by: "user:max", ..ZOE }).unwrap();
    assert_eq!(*seen.lock(), [365, 365, 365, 365]);

    let again = SettingChanges::open(&config).unwrap().in_force();
    assert_eq!((again.config.collector.keep_days, again.config.collector.commit_ms), (365, 2));
    assert_eq!((again.config.quota.source.len(), again.config.route.len(), again.config.target.len()), (1, 1, 2));
    assert_eq!(again.changes["route"].by, "user:max");
    assert_eq!(again.config.data, config.data);

    assert!(settings.reset("collector.keep_days", &SURE).unwrap());
    assert!(!settings.reset("collector.keep_days", &SURE).unwrap());
    assert_eq!(SettingChanges::open(&config).unwrap().in_force().config.collector.keep_days, 30);
}

#[test]
fn invalid_changes_are_refused_by_the_name_of_the_setting_and_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "[collector]\nkeep_days = 30\n");
    let settings = SettingChanges::open(&config).unwrap();
    let refused = |name: &str, value: Value| settings.set(name, value, &ZOE).unwrap_err().to_string();
    for (name, value, expected) in [
        ("collector.keep_days", json!("x"), "collector.keep_days: invalid type"),
        ("collector.keep_days", json!(-1), "collector.keep_days: invalid value"),
        ("collector.keep_days", json!(3), "3 is less than keep_at_least_days"),
        ("collector.keep_gb", json!(1_u64 << 34), "collector.keep_gb: 17179869184 GiB are more than an archive can have"),
        ("collector.min_free_gb", json!(u64::MAX), "collector.min_free_gb: "),
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
    SettingChanges::open(&open).unwrap().set("collector.keep_days", json!(40), &SURE).unwrap();
    let closed = configured(directory.path(), "[access]\nchange_settings = false\n");
    let settings = SettingChanges::open(&closed).unwrap();
    assert_eq!(settings.in_force().config.collector.keep_days, 0);
    assert!(matches!(settings.set("collector.keep_days", json!(1), &ZOE), Err(ChangeError::Closed)));
    assert!(changeable_names(&closed).is_empty());
    let without = configured(directory.path(), "roles = [\"node\", \"book\"]\n");
    let settings = SettingChanges::open(&without).unwrap();
    assert!(matches!(settings.set("quota.streams", json!(1), &ZOE), Err(ChangeError::Elsewhere(_))));
    let names = changeable_names(&without);
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("book.")), "{names:?}");
}

#[test]
fn a_broken_file_stops_the_start_and_changes_nothing_later() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let settings = SettingChanges::open(&config).unwrap();
    settings.set("collector.keep_days", json!(40), &SURE).unwrap();
    fs::write(config.settings_file(), "[\"collector.keep_days\"]\nvalue = ").unwrap();
    assert!(settings.read_again().unwrap_err().to_string().contains("the file of changed settings"));
    assert_eq!(settings.in_force().config.collector.keep_days, 40);
    assert!(settings.set("collector.keep_days", json!(41), &ZOE).is_err(), "nobody's changes are overwritten");
    assert!(SettingChanges::open(&config).is_err());
    fs::write(config.settings_file(), "[\"collector.keep_days\"]\nvalue = 50\nby = \"x\"\nat = \"y\"\n").unwrap();
    settings.read_again().unwrap();
    assert_eq!(settings.in_force().config.collector.keep_days, 50);
}

#[test]
fn a_change_that_removes_records_is_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "[collector]\nkeep_days = 30\n");
    let settings = SettingChanges::open(&config).unwrap();
    let why = settings.set("collector.keep_days", json!(20), &ZOE).unwrap_err();
    assert_eq!(why.to_string(), "'collector.keep_days' as 20 in place of 30 lets the hub remove records at once and for good");
    assert_eq!(settings.in_force().config.collector.keep_days, 30);
    settings.set("collector.keep_days", json!(40), &ZOE).unwrap();
    assert!(matches!(settings.reset("collector.keep_days", &ZOE), Err(ChangeError::Removes { .. })));
    assert_eq!(settings.in_force().config.collector.keep_days, 40);
    assert!(settings.reset("collector.keep_days", &SURE).unwrap());
    settings.set("collector.keep_days", json!(20), &SURE).unwrap();
    // It wins records, and asks nobody.
    assert!(settings.reset("collector.keep_days", &ZOE).unwrap());
}

#[test]
fn a_vanished_file_changes_nothing_and_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "[collector]\nkeep_days = 30\n");
    let file = config.settings_file();
    let settings = SettingChanges::open(&config).unwrap();
    settings.set("collector.keep_days", json!(40), &ZOE).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let remove = || fs::remove_file(&file).unwrap();
    let clear = || fs::write(&file, "\n").unwrap();
    for vanish in [&remove as &dyn Fn(), &clear] {
        vanish();
        assert!(matches!(settings.read_again(), Err(ChangeError::Gone { .. })));
        assert!(!settings.read_again().unwrap(), "it is said once");
        assert!(matches!(settings.set("quota.streams", json!(9), &ZOE), Err(ChangeError::Gone { .. })));
        assert_eq!(settings.in_force().config.collector.keep_days, 40);
        fs::write(&file, &text).unwrap();
        assert!(settings.read_again().unwrap());
    }
    // The last reset leaves a file without changes, which other processes tell from a vanished one.
    let other = SettingChanges::open(&config).unwrap();
    assert!(settings.reset("collector.keep_days", &SURE).unwrap());
    assert!(other.read_again().unwrap());
    assert_eq!(other.in_force().config.collector.keep_days, 30);
}

#[test]
fn a_file_that_cannot_be_read_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let settings = SettingChanges::open(&config).unwrap();
    symlink(directory.path().join("elsewhere.toml"), config.settings_file()).unwrap();
    fs::write(directory.path().join("elsewhere.toml"), "[\"quota.streams\"]\nvalue = 5\nby = \"x\"\nat = \"y\"\n").unwrap();
    for _ in 0..2 {
        assert!(settings.read_again().unwrap_err().to_string().contains("symbolic link"));
    }
    assert!(settings.in_force().changes.is_empty());
}

#[test]
fn a_role_that_starts_again_beside_a_broken_file_has_the_changes_that_its_supervisor_knows() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = configured(directory.path(), "");
    let settings = SettingChanges::open(&config).unwrap();
    settings.set("collector.keep_days", json!(40), &SURE).unwrap();
    config.changes = text_of(&settings.in_force().changes);
    for broken in [Some("broken"), None] {
        match broken {
            Some(text) => fs::write(config.settings_file(), text).unwrap(),
            None => fs::remove_file(config.settings_file()).unwrap(),
        }
        let role = SettingChanges::open(&config).unwrap();
        assert_eq!(role.in_force().config.collector.keep_days, 40);
        assert!(role.read_again().is_err(), "the log names the fault");
    }
}

#[test]
fn changes_without_effect_are_named_and_stay_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let of = |name: &str| format!("[\"{name}\"]\nvalue = 1\nby = \"x\"\nat = \"y\"\n");
    fs::write(config.settings_file(), of("collector.later") + &of("quota.streams")).unwrap();
    let settings = SettingChanges::open(&config).unwrap();
    assert_eq!(settings.in_force().ignored, ["collector.later"]);
    assert!(settings.reset("quota.streams", &ZOE).unwrap());
    assert!(fs::read_to_string(config.settings_file()).unwrap().contains("collector.later"));
}

#[test]
fn a_change_that_no_longer_fits_the_configuration_is_named_with_its_person() {
    let directory = tempfile::tempdir().unwrap();
    let before = configured(directory.path(), "[target.night]\n[target.day]\n");
    let settings = SettingChanges::open(&before).unwrap();
    settings.set("quota.streams", json!(5), &ZOE).unwrap();
    settings.set("target", json!({ "night": {} }), &ZOE).unwrap();
    let now = configured(directory.path(), "[target.night]\n[target.day]\n[[route]]\nto = [\"day\"]\n");
    let why = SettingChanges::open(&now).err().unwrap().to_string();
    assert!(why.starts_with("the change of 'target' by user:zoe in "), "{why}");
    assert!(why.contains("does not fit the configuration: ") && why.contains("there is no [target.day]"), "{why}");
    assert!(why.ends_with("'tampu settings reset target --offline' takes it back"), "{why}");
}

#[test]
fn a_configured_target_has_the_file_of_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let before = configured(directory.path(), "[target.night]\nfile = \"/var/log/night\"\n");
    let settings = SettingChanges::open(&before).unwrap();
    settings.set("target", json!({ "night": { "file": "/var/log/night", "files": 3 } }), &ZOE).unwrap();
    assert!(!fs::read_to_string(before.settings_file()).unwrap().contains("/var/log/night"));
    let now = configured(directory.path(), "[target.night]\nfile = \"/srv/night\"\n");
    let night = SettingChanges::open(&now).unwrap().in_force().config.target["night"].clone();
    assert_eq!(night.file, Some(PathBuf::from("/srv/night")));
}

#[test]
fn the_audit_has_both_values_also_of_changes_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "[collector]\nkeep_days = 30\n");
    let settings = SettingChanges::open(&config).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let of_audit = told.clone();
    settings.audit_to(move |Told { by, from, setting, values }| of_audit.lock().push(format!("{by} {from} {setting} {values}")));
    settings.set("collector.keep_days", json!(40), &ZOE).unwrap();
    settings.reset("collector.keep_days", &SURE).unwrap();
    settings.set("quota.source", json!([{ "names": "x".repeat(1000) }]), &ZOE).unwrap();
    let file = config.settings_file();
    fs::write(&file, "[\"quota.streams\"]\nvalue = 5\nby = \"max\"\nat = \"y\"\n").unwrap();
    settings.read_again().unwrap();
    let told = told.lock();
    let file = format!("file {}", file.display());
    assert_eq!(told[0], "user:zoe 127.0.0.1 collector.keep_days 30 -> 40");
    assert_eq!(told[1], "user:zoe 127.0.0.1 collector.keep_days 40 -> 30 (the configuration's)");
    assert!(told[2].ends_with("xxx...") && told[2].len() < 300, "{}", told[2]);
    assert!(told[3].starts_with(&format!("somebody {file} quota.source [")), "{}", told[3]);
    assert!(told[4].starts_with(&format!("max {file} quota.streams ")) && told[4].ends_with(" -> 5"), "{}", told[4]);
}

#[test]
fn changed_targets_send_to_hosts_of_the_configuration_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[access]\nsyslog_hosts = [\"*.site:514\"]\n[target.far]\nsyslog = \"tcp log.other:601\"\n";
    let settings = SettingChanges::open(&configured(directory.path(), text)).unwrap();
    let set = |place: &str| settings.set("target", json!({ "x": { "syslog": place } }), &ZOE);
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

#[test]
fn a_change_is_made_of_the_settings_that_the_person_has_read() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let [settings, other] = [(); 2].map(|()| SettingChanges::open(&config).unwrap());
    let version = settings.in_force().version();
    let read = Asked { version: Some(&version), ..ZOE };
    // Another process changes the file, which this one has not read again.
    other.set("quota.streams", json!(7), &ZOE).unwrap();
    assert!(matches!(settings.set("quota.streams", json!(9), &read), Err(ChangeError::Changed)));
    assert!(matches!(settings.reset("quota.streams", &read), Err(ChangeError::Changed)));
    let version = other.in_force().version();
    settings.set("quota.streams", json!(9), &Asked { version: Some(&version), ..ZOE }).unwrap();
    assert_ne!(settings.in_force().version(), version);
    let version = settings.in_force().version();
    assert!(settings.reset("quota.streams", &Asked { version: Some(&version), ..ZOE }).unwrap());
    assert_eq!(settings.in_force().version(), read.version.unwrap());
}

#[test]
fn a_hub_that_cannot_start_is_led_back_one_change_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let before = configured(directory.path(), "[target.night]\n[target.day]\n");
    let settings = SettingChanges::open(&before).unwrap();
    settings.set("quota.streams", json!(5), &ZOE).unwrap();
    settings.set("collector.keep_days", json!(40), &SURE).unwrap();
    settings.set("target", json!({ "night": {} }), &ZOE).unwrap();
    let now = configured(directory.path(), "[target.night]\n[target.day]\n[[route]]\nto = [\"day\"]\n");
    let why = SettingChanges::open(&now).err().unwrap().to_string();
    assert!(why.contains("'tampu settings reset target --offline'"), "{why}");
    assert_eq!(reset_offline(&now, Some("route"), false).unwrap(), None);
    reset_offline(&now, Some("quota.streams"), false).unwrap().unwrap();
    assert!(SettingChanges::open(&now).err().is_some_and(|why| why.to_string().contains("'target'")));
    let reset = reset_offline(&now, Some("target"), false).unwrap().unwrap();
    assert_eq!(reset.names, ["target"]);
    assert_eq!(SettingChanges::open(&now).unwrap().in_force().changes.len(), 1);
    // What it keeps may go at the next start.
    assert!(matches!(reset_offline(&now, Some("collector.keep_days"), false), Err(ChangeError::Unconfirmed)));
    assert!(matches!(reset_offline(&now, None, false), Err(ChangeError::Unconfirmed)));
    let reset = reset_offline(&now, None, true).unwrap().unwrap();
    assert_eq!(reset.names, ["collector.keep_days"]);
    assert!(fs::read_to_string(reset.kept.unwrap()).unwrap().contains("keep_days"));
    assert!(SettingChanges::open(&now).unwrap().in_force().changes.is_empty());
    assert_eq!(reset_offline(&now, None, true).unwrap(), None);
    assert!(offline::lost(&now).unwrap().is_none());
}

#[test]
fn a_file_that_nobody_can_read_is_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    fs::write(config.settings_file(), "[\"quota.streams\"]\nvalue = ").unwrap();
    assert!(matches!(reset_offline(&config, Some("quota.streams"), true), Err(ChangeError::Text { .. })));
    assert!(matches!(reset_offline(&config, None, false), Err(ChangeError::Unconfirmed)));
    let reset = reset_offline(&config, None, true).unwrap().unwrap();
    assert!(reset.names.is_empty() && fs::read_to_string(reset.kept.unwrap()).unwrap().ends_with("value = "));
    assert!(SettingChanges::open(&config).unwrap().in_force().changes.is_empty());
    symlink("/nowhere", directory.path().join("link")).unwrap();
    fs::rename(directory.path().join("link"), config.settings_file()).unwrap();
    assert!(SettingChanges::open(&config).is_err());
    reset_offline(&config, None, true).unwrap().unwrap();
    assert!(SettingChanges::open(&config).is_ok());
}

/// The error of a start.
#[track_caller]
fn refusal(config: &Config) -> String {
    SettingChanges::open(config).err().expect("the hub must not start").to_string()
}

#[test]
fn a_hub_whose_changes_are_lost_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "[collector]\nkeep_days = 30\n");
    let (file, copy) = (config.settings_file(), file::copy_of(&config.settings_file()));
    let settings = SettingChanges::open(&config).unwrap();
    settings.set("collector.keep_days", json!(365), &ZOE).unwrap();
    fs::remove_file(&file).unwrap();
    for empty in [false, true] {
        let why = refusal(&config);
        for part in [&*file.to_string_lossy(), "collector.keep_days", "cp -p", "'tampu settings reset --all --offline'"] {
            assert!(why.contains(part), "{part}: {why}");
        }
        if !empty {
            fs::write(&file, "\n").unwrap();
        }
    }
    // A copy that cannot be read may have changes, too.
    let text = fs::read(&copy).unwrap();
    fs::write(&copy, "broken").unwrap();
    assert!(refusal(&config).contains("changed.toml.copy"));
    fs::write(&copy, text).unwrap();
    // Where no change would have an effect, none is lost.
    let closed = configured(directory.path(), "[access]\nchange_settings = false\n");
    assert!(SettingChanges::open(&closed).is_ok());
    // The first way out.
    fs::copy(&copy, &file).unwrap();
    assert_eq!(SettingChanges::open(&config).unwrap().in_force().config.collector.keep_days, 365);
    // After the last reset there is nothing to lose.
    settings.reset("collector.keep_days", &SURE).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(SettingChanges::open(&config).is_ok());
}

#[test]
fn a_reset_of_all_accepts_the_loss() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let (file, copy) = (config.settings_file(), file::copy_of(&config.settings_file()));
    let lose = || {
        let settings = SettingChanges::open(&config).unwrap();
        settings.set("collector.keep_days", json!(40), &SURE).unwrap();
        fs::remove_file(&file).unwrap();
    };
    lose();
    assert!(matches!(reset_offline(&config, Some("collector.keep_days"), true), Err(ChangeError::Lost { .. })));
    assert!(matches!(reset_offline(&config, None, false), Err(ChangeError::Unconfirmed)), "records may go");
    let reset = reset_offline(&config, None, true).unwrap().unwrap();
    assert_eq!(reset.names, ["collector.keep_days"]);
    assert!(fs::read_to_string(reset.kept.unwrap()).unwrap().contains("keep_days"));
    assert!(SettingChanges::open(&config).unwrap().in_force().changes.is_empty());
    assert_eq!(reset_offline(&config, None, true).unwrap(), None);
    // A copy that cannot be read is put aside, too.
    lose();
    fs::write(&copy, "broken").unwrap();
    assert!(matches!(reset_offline(&config, None, false), Err(ChangeError::Unconfirmed)));
    let reset = reset_offline(&config, None, true).unwrap().unwrap();
    assert!(reset.names.is_empty() && fs::read_to_string(reset.kept.unwrap()).unwrap() == "broken");
    assert!(SettingChanges::open(&config).is_ok());
}

#[test]
fn a_change_without_its_copy_holds_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let settings = SettingChanges::open(&config).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_user = seen.clone();
    settings.on_change(move |config| of_user.lock().push(config.quota.streams));
    let copy = file::copy_of(&config.settings_file());
    fs::create_dir_all(copy.join("in its place")).unwrap();
    let why = settings.set("quota.streams", json!(5), &ZOE).unwrap_err().to_string();
    assert!(why.starts_with("the settings are changed and the change holds, but the copy"), "{why}");
    assert!(why.contains("changed.toml.copy"), "{why}");
    assert_eq!((seen.lock().as_slice(), settings.in_force().config.quota.streams), (&[5][..], 5));
    assert_eq!(SettingChanges::open(&config).unwrap().in_force().config.quota.streams, 5);
    let why = reset_offline(&config, Some("quota.streams"), true).unwrap_err().to_string();
    assert!(why.contains("the change holds"), "{why}");
    assert_eq!(reset_offline(&config, Some("quota.streams"), true).unwrap(), None, "it was reset");
    // The next start mends the copy, also after a change by hand.
    assert!(mend_copy(&config).is_err());
    fs::remove_dir_all(&copy).unwrap();
    fs::write(config.settings_file(), "[\"quota.streams\"]\nvalue = 7\nby = \"x\"\nat = \"y\"\n").unwrap();
    mend_copy(&config).unwrap();
    fs::remove_file(config.settings_file()).unwrap();
    assert!(refusal(&config).contains("quota.streams"));
    // A change that is not written is no change.
    fs::create_dir_all(config.settings_file().join("in its place")).unwrap();
    let why = settings.reset("quota.streams", &ZOE).unwrap_err().to_string();
    assert!(!why.contains("holds"), "{why}");
    assert_eq!(settings.in_force().config.quota.streams, 5);
}

#[test]
fn files_keep_their_owner_and_mode() {
    // Only root can give files away; another user keeps what is its own.
    let owner = if rustix::process::geteuid().is_root() { 65_534 } else { rustix::process::geteuid().as_raw() };
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let file = config.settings_file();
    let settings = SettingChanges::open(&config).unwrap();
    settings.set("quota.streams", json!(5), &ZOE).unwrap();
    let copy = file::copy_of(&file);
    for path in [file.parent().unwrap(), &file, &copy] {
        std::os::unix::fs::chown(path, Some(owner), None).unwrap();
    }
    let permissions = fs::Permissions::from_mode(0o640);
    fs::set_permissions(&file, permissions).unwrap();
    let found = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.mode() & 0o777)).unwrap();
    let check = |what: &str| assert_eq!((found(&file), found(&copy)), ((owner, 0o640), (owner, 0o600)), "{what}");
    settings.set("book.user_gb", json!(5), &ZOE).unwrap();
    check("a change");
    reset_offline(&config, Some("book.user_gb"), true).unwrap().unwrap();
    check("a reset of one");
    reset_offline(&config, None, true).unwrap().unwrap();
    check("a reset of all");
    settings.set("quota.streams", json!(5), &ZOE).unwrap();
    fs::remove_file(&file).unwrap();
    reset_offline(&config, None, true).unwrap().unwrap();
    assert_eq!((found(&file), found(&copy)), ((owner, 0o600), (owner, 0o600)), "a reset of lost changes");
}

#[test]
fn nothing_is_reset_offline_beside_a_process_that_uses_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    SettingChanges::open(&config).unwrap().set("quota.streams", json!(5), &ZOE).unwrap();
    let refused = || {
        let why = reset_offline(&config, Some("quota.streams"), true).unwrap_err();
        assert!(matches!(why, ChangeError::Running { .. }), "{why}");
        why.to_string()
    };
    let archive = tampu_archive::LocalArchive::open(config.log_dir(), config.archive()).unwrap();
    assert!(refused().contains(&format!("process {}", std::process::id())));
    drop(archive);
    let book = tampu_logbook::store::sqlite::SqliteStore::open(&config.book_dir()).unwrap();
    assert!(refused().contains("logbook"));
    drop(book);
    reset_offline(&config, Some("quota.streams"), true).unwrap().unwrap();
}

#[test]
fn names_in_messages_are_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let config = configured(directory.path(), "");
    let hostile = "\u{1b}[2J\u{202e}\u{200b}\n";
    let is_harmless = |text: &str| assert!(!text.chars().any(tampu_types::terminal::is_harmful), "{text:?}");
    let settings = SettingChanges::open(&config).unwrap();
    is_harmless(&settings.set(hostile, json!(1), &ZOE).unwrap_err().to_string());
    let outside = format!("../{hostile}");
    is_harmless(&settings.set("target", json!({ outside: {} }), &ZOE).unwrap_err().to_string());
    is_harmless(&settings.set("route", json!([{ hostile: 1 }]), &ZOE).unwrap_err().to_string());
    let quoted = toml::Value::String(hostile.to_owned());
    fs::write(config.settings_file(), format!("[\"quota.streams\"]\nvalue = -1\nby = {quoted}\nat = \"y\"\n")).unwrap();
    is_harmless(&refusal(&config));
    fs::write(config.settings_file(), format!("[\"quota.streams\"]\nvalue = 1\nby = \"x\"\nat = \"y\"\n{quoted} = 2\n")).unwrap();
    is_harmless(&refusal(&config));
    is_harmless(&reset_offline(&config, Some(hostile), true).map_or_else(|why| why.to_string(), |_| String::new()));
}
