use std::fs;

use super::*;

fn config(text: &str, dir: &Path) -> Config {
    let mut config = Config::parse(&format!("domain = \"lab\"\n{text}"), Path::new("test.toml")).unwrap();
    config.data = dir.to_owned();
    config
}

fn rules(text: &str, dir: &Path) -> Rules {
    let mut rules = Rules::of(&config(text, dir)).unwrap();
    rules.open_to = Some(rules.domain.clone());
    rules
}

fn key() -> Principal {
    Principal::KeyHolder(Domain::new("lab").unwrap())
}

#[test]
fn with_rules_in_the_configuration_only_what_one_allows_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let query = Resource::Service("log/query".into());
    let import = Resource::Topic("log-import".into());
    let live = Resource::Topic("log/error".into());
    let free = rules("", dir.path());
    let strict = rules(
        "[[allow]]\nwho = \"key\"\nmay = [\"query\", \"write\"]\nwhat = \"log/*\"\n\
         [[allow]]\nwho = \"user\"\nmay = [\"write\"]\nwhat = \"log-import\"\n",
        dir.path(),
    );
    for (who, verb, what, expected) in [
        (key(), Verb::Query, &query, true),
        (key(), Verb::Write, &live, true),
        (key(), Verb::Read, &query, false),
        (key(), Verb::Write, &import, false),
        (Principal::this_user(), Verb::Write, &import, true),
        (Principal::this_user(), Verb::Write, &live, false),
    ] {
        assert!(free.authorise(&who, verb, what).is_ok());
        assert_eq!(strict.authorise(&who, verb, what).is_ok(), expected, "{who} {verb} {what}");
    }
    let everything = rules("[[allow]]\nmay = [\"write\", \"read\"]\nwhat = \"**\"\n", dir.path());
    assert!(everything.authorise(&key(), Verb::Write, &import).is_ok());
    assert!(everything.authorise(&key(), Verb::Query, &query).is_err());
    let denied = strict.authorise(&key(), Verb::Write, &import).unwrap_err().to_string();
    assert!(denied.starts_with("the holder of the key of 'lab' may not write the topic log-import: no [[allow]]"), "{denied}");
    // No rule replaces the key.
    let other = Principal::KeyHolder(Domain::new("other").unwrap());
    assert!(everything.authorise(&other, Verb::Write, &import).is_err());
}

#[test]
fn on_an_open_network_rules_of_the_configuration_leave_the_local_user_alone() {
    let dir = tempfile::tempdir().unwrap();
    let text = "network = { listen = [\"127.0.0.1:0\"] }\n[[allow]]\nwho = \"key\"\nmay = [\"write\"]\nwhat = \"log/*\"\n";
    let open = rules(text, dir.path());
    let levels = Resource::Service("log/levels".into());
    assert!(open.authorise(&Principal::this_user(), Verb::Set, &levels).is_ok());
    assert!(open.authorise(&key(), Verb::Read, &levels).is_err());
}

#[test]
fn a_changed_policy_file_holds_and_a_broken_one_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("lab/access")).unwrap();
    let rules = rules("", dir.path());
    let levels = Resource::Service("log/levels".into());
    let may = || rules.authorise(&key(), Verb::Set, &levels).is_ok();
    assert!(!may() && !rules.read_again().unwrap());
    let text = "[[allow]]\nwho = \"key\"\nmay = [\"set\"]\nwhat = \"log/levels\"\n";
    fs::write(rules.file(), text).unwrap();
    assert!(rules.read_again().unwrap() && may());
    fs::write(rules.file(), format!("{text}\n[[deny]]\nwho = \"nobody\"\n")).unwrap();
    let error = rules.read_again().unwrap_err().to_string();
    assert!(error.contains("line 7"), "{error}");
    assert!(may(), "the rules stay as they were");
    assert!(!rules.read_again().unwrap(), "a broken file is reported once");
    // A file without rules ends them.
    fs::write(rules.file(), "defaults = \"usual\"\n").unwrap();
    assert!(rules.read_again().unwrap() && !may());
    // A hub does not start with a broken file.
    fs::write(rules.file(), "[[allow]]\n").unwrap();
    assert!(Rules::of(&config("", dir.path())).is_err());
}

#[test]
fn a_policy_file_that_is_away_or_empty_for_a_moment_keeps_its_rules() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("lab/access")).unwrap();
    let text = "[[deny]]\nwho = \"key\"\nmay = [\"read\"]\nwhat = \"log/error\"\n";
    fs::write(dir.path().join("lab/access/policy.toml"), text).unwrap();
    let rules = rules("", dir.path());
    let errors = Resource::Topic("log/error".into());
    let may = || rules.authorise(&key(), Verb::Read, &errors).is_ok();
    assert!(!may());
    let rule = Rule::new(Effect::Allow, tampu_bus::access::Who::Key, &["backup"], "backup").unwrap();
    for make_away in [|file: &Path| fs::remove_file(file).unwrap(), |file: &Path| fs::write(file, "").unwrap()] {
        make_away(rules.file());
        let error = rules.read_again().unwrap_err();
        assert!(matches!(error, PolicyError::Gone { .. }) && error.to_string().contains("had rules"), "{error}");
        assert!(!may(), "the rules stay as they were");
        assert!(!rules.read_again().unwrap(), "it is reported once");
        // A new file of one rule would end the others.
        assert!(matches!(rules.add(&rule), Err(PolicyError::Gone { .. })) && !may());
        fs::write(rules.file(), text).unwrap();
        assert!(!rules.read_again().unwrap() && !may());
    }
}

#[test]
fn a_rule_that_is_added_holds_at_once() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("lab/access")).unwrap();
    let rules = rules("", dir.path());
    let archive = Resource::Service("log/archive".into());
    let rule = Rule::new(Effect::Allow, tampu_bus::access::Who::Key, &["backup"], "backup").unwrap();
    let line = rules.add(&rule).unwrap();
    assert!(rules.authorise(&key(), Verb::Backup, &archive).is_ok());
    rules.remove(line).unwrap();
    assert!(rules.authorise(&key(), Verb::Backup, &archive).is_err());
}

#[test]
fn the_door_opens_only_for_a_domain_with_a_name_and_a_key() {
    let dir = tempfile::tempdir().unwrap();
    let door = |domain: &str, key: bool| {
        let mut config = Config { domain: Domain::new(domain).unwrap(), data: dir.path().to_owned(), ..Config::default() };
        config.network.listen.push("0.0.0.0:7447".into());
        config.network.key_file = key.then(|| "domain.key".into());
        Rules::of(&config).unwrap().check_doors(&config)
    };
    assert_eq!(door("lab", true), Ok(()));
    assert!(door("lab", false).is_err());
    let denied = door("local", true).unwrap_err();
    assert_eq!((denied.verb, denied.resource.name()), (Verb::Enter, "0.0.0.0:7447".to_owned()));
    let closed = Config { data: dir.path().to_owned(), ..Config::default() };
    assert_eq!(Rules::of(&closed).unwrap().check_doors(&closed), Ok(()));
}
