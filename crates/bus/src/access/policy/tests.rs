use proptest::prelude::*;

use super::*;
use crate::access::{Place, Who};

fn lab() -> Domain {
    Domain::new("lab").unwrap()
}

fn key() -> Principal {
    Principal::KeyHolder(lab())
}

fn service(name: &str) -> Resource {
    Resource::Service(name.to_owned())
}

fn rule(effect: Effect, who: &str, may: &[&str], what: &str) -> Rule {
    Rule::new(effect, Who::try_from(who.to_owned()).unwrap(), may, what).unwrap()
}

#[test]
fn a_rule_about_a_group_is_about_its_members() {
    let groups = [("shift".to_owned(), vec![Who::Login("zoe".to_owned()), Who::Host("pc*".to_owned())])].into();
    let deny = rule(Effect::Deny, "group:shift", &["read"], "**").with_groups(&groups).unwrap();
    let policy = Policy { rules: vec![deny.clone()], ..Policy::default() };
    let topic = Resource::Topic("log/info".to_owned());
    let may = |host: &str| policy.decide(&Principal::Host(host.to_owned()), Verb::Read, &topic).allowed;
    assert!(!may("pc7") && may("mast"));
    let why = policy.refusal(&Principal::Host("pc7".to_owned()), Verb::Read, &topic).unwrap();
    assert!(why.contains("'deny group:shift read **'"), "{why}");
    let json = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
    assert!(rule(Effect::Deny, "group:none", &["read"], "**").with_groups(&groups).is_err());
    let nested = [("all".to_owned(), vec![Who::Group("shift".to_owned())])].into();
    assert!(rule(Effect::Deny, "group:all", &["read"], "**").with_groups(&nested).is_err());
}

#[test]
fn by_default_key_holders_publish_and_read_and_the_local_user_does_everything() {
    let policy = Policy::default();
    let topic = Resource::Topic("log/error".to_owned());
    let attribute = Resource::Attribute("sr/vacuum/g1/pressure".to_owned());
    let bulk = Resource::Bulk("frames".to_owned());
    for (verb, what, key_may) in [
        (Verb::Write, &topic, true),
        (Verb::Write, &attribute, true),
        (Verb::Read, &attribute, true),
        (Verb::Query, &service("log/query"), true),
        (Verb::Query, &service("event/history"), true),
        (Verb::Send, &bulk, true),
        (Verb::Receive, &bulk, true),
        (Verb::Read, &service("log/levels"), true),
        (Verb::Set, &service("log/levels"), false),
        (Verb::Set, &attribute, false),
        (Verb::Backup, &service("log/archive"), false),
        (Verb::Backup, &service("event/archive"), false),
        (Verb::Admin, &Resource::Setting("config".to_owned()), false),
    ] {
        let may = |who: &Principal| policy.authorise(Some(&lab()), who, verb, what).is_ok();
        assert!(may(&Principal::this_user()), "{verb} {what}");
        assert_eq!(may(&key()), key_may, "{verb} {what}");
        assert_eq!(may(&Principal::Host("weather".to_owned())), key_may, "{verb} {what}");
        assert!(!may(&Principal::Login("zoe".to_owned())), "{verb} {what}");
    }
    assert!(policy.authorise(Some(&lab()), &Principal::Guest, Verb::Read, &Resource::Book("Shift".to_owned())).is_ok());
}

#[test]
fn a_deny_rule_beats_every_allow_rule_and_names_its_line() {
    let mut deny = rule(Effect::Deny, "key", &["read", "write"], "event/sr/vacuum/**");
    deny.place = Some(Place { file: "/etc/tampu/policy.toml".into(), line: 7 });
    deny.why = Some("interlocks".to_owned());
    let policy = Policy { rules: vec![rule(Effect::Allow, "anybody", &["read"], "**"), deny], ..Policy::default() };
    let vacuum = Resource::Attribute("SR/vacuum/g1/pressure".to_owned());
    let denied = policy.authorise(Some(&lab()), &key(), Verb::Read, &vacuum).unwrap_err();
    assert_eq!(
        denied.to_string(),
        "the holder of the key of 'lab' may not read the attribute SR/vacuum/g1/pressure: \
         the rule at /etc/tampu/policy.toml:7 denies it (interlocks)"
    );
    assert!(policy.authorise(Some(&lab()), &Principal::this_user(), Verb::Read, &vacuum).is_ok());
    assert!(policy.authorise(Some(&lab()), &key(), Verb::Read, &Resource::Attribute("sr/rf/c1/volts".to_owned())).is_ok());
}

#[test]
fn a_refusal_by_default_says_which_rule_in_which_file_would_permit() {
    let policy = Policy { file: Some("/srv/lab/policy.toml".into()), ..Policy::default() };
    let denied = policy.authorise(Some(&lab()), &key(), Verb::Backup, &service("log/archive")).unwrap_err();
    assert_eq!(
        denied.why,
        "by default holders of the key publish and read, and do not administer; to permit it, write [[allow]] who = \"key\", \
         may = [\"backup\"], what = \"log/archive\" in /srv/lab/policy.toml"
    );
    // The rule that is named does permit it.
    let permits = Policy { rules: vec![rule(Effect::Allow, "key", &["backup"], "log/archive")], ..policy };
    assert!(permits.authorise(Some(&lab()), &key(), Verb::Backup, &service("log/archive")).is_ok());
}

#[test]
fn words_of_files_stand_for_verbs_and_names_have_kinds() {
    let change = rule(Effect::Allow, "key", &["change"], "**");
    assert_eq!(change.may, [Verb::Set, Verb::Backup, Verb::Admin]);
    assert_eq!(rule(Effect::Allow, "key", &["bulk", "history"], "**").may, [Verb::Query, Verb::Send, Verb::Receive]);
    let backup = rule(Effect::Allow, "key", &["backup"], "backup");
    assert!(backup.applies(&key(), Verb::Backup, &service("event/archive")));
    assert!(!backup.applies(&key(), Verb::Backup, &service("log/query")));
    for (who, may, what) in [
        ("everyone", vec!["read"], "**"),
        ("host:", vec!["read"], "**"),
        ("key", vec!["look"], "**"),
        ("key", vec![], "**"),
        ("key", vec!["read"], ""),
        ("key", vec!["read"], "a//b"),
        ("user:zoe", vec!["read"], "book/Shift"),
    ] {
        let made = Who::try_from(who.to_owned()).and_then(|who| Rule::new(Effect::Allow, who, &may, what));
        assert!(made.is_err(), "{who} {may:?} {what}");
    }
    for (text, expected) in [
        ("log/query", service("log/query")),
        ("event/history", service("event/history")),
        ("event/sr/vacuum/g1/p", Resource::Attribute("sr/vacuum/g1/p".to_owned())),
        ("bulk/frames", Resource::Bulk("frames".to_owned())),
        ("book/Shift Log", Resource::Book("Shift Log".to_owned())),
        ("log/Info", Resource::Topic("log/Info".to_owned())),
        ("config", Resource::Setting("config".to_owned())),
        ("backup", service("log/archive")),
    ] {
        assert_eq!(text.parse::<Resource>().unwrap(), expected);
    }
    assert!("book/".parse::<Resource>().is_err() && "".parse::<Resource>().is_err());
}

#[test]
fn principals_are_read_as_they_are_written() {
    for text in ["local", "key", "guest", "host:weather", "user:zoe", "token:zoe/robot"] {
        assert_eq!(Principal::parse(text, &lab()).unwrap().word(), text);
    }
    for text in ["", "zoe", "user:", "group:ops", "key:lab"] {
        assert!(Principal::parse(text, &lab()).is_err(), "{text}");
    }
}

#[test]
fn a_rule_for_a_user_holds_for_the_tokens_of_that_user() {
    let deny = rule(Effect::Deny, "user:zoe", &["write"], "book/Shift");
    let shift = Resource::Book("Shift".to_owned());
    assert!(deny.applies(&Principal::Login("zoe".to_owned()), Verb::Write, &shift));
    assert!(deny.applies(&Principal::Token("zoe/robot".to_owned()), Verb::Write, &shift));
    assert!(!deny.applies(&Principal::Token("kim/zoe".to_owned()), Verb::Write, &shift));
}

fn principals() -> impl Strategy<Value = Principal> {
    prop_oneof![
        Just(Principal::this_user()),
        Just(key()),
        Just(Principal::Host("weather".to_owned())),
        Just(Principal::Login("zoe".to_owned())),
        Just(Principal::Token("zoe/robot".to_owned())),
        Just(Principal::Guest),
    ]
}

fn resources() -> impl Strategy<Value = Resource> {
    prop_oneof![
        Just(service("log/query")),
        Just(service("log/archive")),
        Just(Resource::Topic("log/error".to_owned())),
        Just(Resource::Attribute("sr/vacuum/g1".to_owned())),
        Just(Resource::Bulk("frames".to_owned())),
        Just(Resource::Book("Shift".to_owned())),
    ]
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let who = prop::sample::select(vec!["anybody", "local", "key", "guest", "host:w*", "user:zoe", "token:zoe/*"]);
    let what = prop::sample::select(vec!["**", "log/*", "log/query", "backup", "event/sr/**", "bulk/*", "*/error"]);
    let one = (any::<bool>(), who, prop::sample::subsequence(Verb::ALL.to_vec(), 1..4), what);
    let made = one.prop_map(|(allow, who, may, what)| {
        let words: Vec<&str> = may.iter().map(|verb| verb.name()).collect();
        rule(if allow { Effect::Allow } else { Effect::Deny }, who, &words, what)
    });
    prop::collection::vec(made, 0..8)
}

proptest! {
    #[test]
    fn the_order_of_rules_changes_no_decision(
        all in rules(), seed: u64, who in principals(), verb in prop::sample::select(Verb::ALL.to_vec()), what in resources(),
    ) {
        let mut shuffled = all.clone();
        let mut state = seed | 1;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        let decided = |rules: Vec<Rule>| Policy { rules, ..Policy::default() }.decide(&who, verb, &what).allowed;
        prop_assert_eq!(decided(all), decided(shuffled));
    }

    #[test]
    fn an_allow_rule_never_closes_and_a_deny_rule_never_opens(
        all in rules(), more in rules(), who in principals(), verb in prop::sample::select(Verb::ALL.to_vec()), what in resources(),
    ) {
        let decided = |rules: Vec<Rule>| Policy { rules, ..Policy::default() }.decide(&who, verb, &what).allowed;
        let before = decided(all.clone());
        for extra in more {
            let effect = extra.effect;
            let denied = effect == Effect::Deny && extra.applies(&who, verb, &what);
            let after = decided(all.iter().cloned().chain([extra]).collect());
            match effect {
                Effect::Allow => prop_assert!(after || !before),
                Effect::Deny => prop_assert!(!after || before),
            }
            prop_assert!(!(denied && after), "a deny rule that applies always holds");
        }
    }

    #[test]
    fn an_explanation_says_what_the_hook_does(
        all in rules(), who in principals(), verb in prop::sample::select(Verb::ALL.to_vec()), what in resources(), open: bool,
        defaults in prop::sample::select(vec![Defaults::Usual, Defaults::Local, Defaults::None]),
    ) {
        let policy = Policy { rules: all, defaults, file: None };
        let domain = lab();
        let open_to = open.then_some(&domain);
        let explained = policy.explain(open_to, &who, verb, &what);
        prop_assert_eq!(explained.allowed, policy.authorise(open_to, &who, verb, &what).is_ok());
        // A refused action is permitted by the rule that the refusal names, unless a deny rule holds.
        let is_open = who.is_of_the_logbook() || matches!(what, Resource::Book(_));
        if let (false, Basis::Default(_), false) = (explained.allowed, explained.basis, is_open) {
            let permit = rule(Effect::Allow, &who.word(), &[verb.name()], &what.name());
            let rules = policy.rules.iter().cloned().chain([permit]).collect();
            let allowed = Policy { rules, ..policy }.authorise(open_to, &who, verb, &what).is_ok();
            prop_assert!(allowed);
        }
    }
}
