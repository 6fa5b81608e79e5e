//! Users of login methods: who becomes a user, who stays one, and what their groups mean.

use super::*;
use crate::people::outside::{CheckPassword, GroupRule, LoginMethod, MethodFailure, MethodKind, OutsideUser};

/// A directory of one person, whose password is `from elsewhere`; without a person it is away.
struct Directory(Option<OutsideUser>);

impl CheckPassword for Directory {
    fn check(&self, login: &str, password: &str, _: IpAddr) -> Result<Option<OutsideUser>, MethodFailure> {
        let person = self.0.as_ref().ok_or(MethodFailure::Away("connection refused".into()))?;
        Ok((login.eq_ignore_ascii_case(&person.login) && password == "from elsewhere").then(|| person.clone()))
    }
}

fn person(subject: &str, login: &str) -> OutsideUser {
    let (full_name, groups) = ("Max Quartz".into(), vec!["cn=Operators,ou=groups,dc=lab".to_owned()]);
    OutsideUser { subject: subject.into(), login: login.into(), full_name, email: "max@lab.example".into(), groups }
}

fn method(name: &str, person: Option<OutsideUser>) -> LoginMethod {
    let rule = |from: &str| GroupRule { from: from.into(), ..GroupRule::default() };
    let groups = vec![
        GroupRule { group: Some("ops".into()), ..rule("operators") },
        GroupRule { book: Some("shift".into()), may: vec![Right::EditAny], ..rule("operators") },
        GroupRule { admin: true, ..rule("admins") },
    ];
    let passwords = Some(Box::new(Directory(person)) as Box<dyn CheckPassword>);
    LoginMethod { name: name.into(), kind: MethodKind::Ldap, register: true, groups, passwords }
}

#[test]
fn a_directory_that_is_away_is_held_against_nobody_and_local_users_go_on() {
    let (_dir, people) = with_zoe();
    let people = people.with(method("lab", None));
    for n in 0..50 {
        let error = people.log_in("max", "from elsewhere", HOME).unwrap_err();
        assert!(matches!(&error, PeopleError::Away { method, .. } if method == "lab"), "{n}: {error}");
    }
    assert!(people.log_in("zoe", "wrong again", HOME).is_err_and(|error| matches!(error, PeopleError::Wrong)));
    assert!(people.log_in("zoe", "correct horse", HOME).is_ok());
    // Another method may still know the person.
    let people = people.with(method("office", Some(person("7", "max"))));
    assert!(people.log_in("max", "from elsewhere", HOME).is_ok());
}

#[test]
fn the_first_login_makes_a_user_whose_groups_mean_rights() {
    let (_dir, people) = with_zoe();
    let people = people.with(method("lab", Some(person("7", "Max"))));
    let rights = Access { grants: vec![Grant { to: "group:ops".parse().unwrap(), may: vec![Right::Read] }], ..Access::default() };
    people.set_access("Shift", &rights).unwrap();
    assert!(people.log_in("max", "", HOME).is_err() && people.log_in("max", "wrong", HOME).is_err());
    let (max, secret) = people.log_in(" MAX ".trim(), "from elsewhere", HOME).unwrap();
    assert_eq!((max.login.as_str(), max.full_name.as_str(), max.email.as_str()), ("max", "Max Quartz", "max@lab.example"));
    assert_eq!(max.rights.of("Shift"), [Right::Read, Right::EditAny]);
    assert!(!max.admin && people.user("max").unwrap().groups.is_empty());
    assert!(people.by_password("max", "from elsewhere", HOME).is_ok(), "again, with the login as it is stored");
    // No password can be set here, and none lets the person in.
    assert!(matches!(people.set_password("max", "correct horse"), Err(PeopleError::PasswordElsewhere { .. })));
    // A disabled user stays out, with the right password too.
    people.change_user("max", |user| user.inactive = true).unwrap();
    assert!(people.by_session(&secret).is_err());
    assert!(matches!(people.log_in("max", "from elsewhere", HOME), Err(PeopleError::Wrong)));
    assert!(matches!(people.by_method("lab", &person("7", "max")), Err(PeopleError::Wrong)));
}

#[test]
fn names_and_groups_follow_the_directory_and_the_login_stays() {
    let (_dir, people) = with_zoe();
    let people = people.with(method("lab", None));
    people.by_method("lab", &person("7", "max")).unwrap();
    let changed = OutsideUser { full_name: "Maxine\r\n".into(), groups: vec!["admins".into()], ..person("7", "maxine") };
    let max = people.by_method("lab", &changed).unwrap();
    assert_eq!((max.login.as_str(), max.full_name.as_str(), max.admin), ("max", "Maxine", true));
    assert_eq!(people.users().unwrap().len(), 2);
}

#[test]
fn a_method_never_takes_over_a_user() {
    let (_dir, people) = with_zoe();
    let people = people.with(method("lab", Some(person("7", "ZOE")))).with(method("office", Some(person("9", "max"))));
    let not_bound = |error| matches!(error, PeopleError::NotBound { login, .. } if login == "zoe");
    assert!(people.log_in("zoe", "from elsewhere", HOME).is_err(), "a local user is asked here alone");
    assert!(not_bound(people.log_in("Zoe", "from elsewhere", HOME).unwrap_err()));
    assert!(not_bound(people.by_method("lab", &person("7", "zoe")).unwrap_err()));
    // Nor does another person of the same method, or another method with the same subject.
    people.log_in("max", "from elsewhere", HOME).unwrap();
    assert!(people.by_method("office", &person("10", "max")).is_err());
    assert!(people.by_method("lab", &person("9", "max")).is_err());
    // An administrator binds the user; the password here ends.
    people.bind_user("zoe", "lab", "").unwrap();
    assert!(matches!(people.log_in("zoe", "correct horse", HOME), Err(PeopleError::Wrong)));
    assert_eq!(people.log_in("zoe", "from elsewhere", HOME).unwrap().0.login, "zoe");
    assert_eq!(people.user("zoe").unwrap().outside.unwrap().subject, "7");
    assert!(people.by_method("lab", &person("8", "zoe")).is_err(), "the first person keeps it");
    assert!(people.bind_user("max", "lab", "7").is_err());
    people.unbind_user("zoe").unwrap();
    assert!(people.log_in("zoe", "from elsewhere", HOME).is_err());
    people.set_password("zoe", "battery staple").unwrap();
    assert!(people.log_in("zoe", "battery staple", HOME).is_ok());
}

#[test]
fn a_login_that_people_choose_at_a_provider_names_no_user() {
    let (_dir, people) = with_zoe();
    // Bound before, without the method.
    people.bind_user("zoe", "sso", "").unwrap();
    let people = people.with(LoginMethod { kind: MethodKind::Oidc, passwords: None, ..method("sso", None) });
    let error = people.log_in_by_method("sso", &person("7", "zoe"), None).unwrap_err();
    assert!(matches!(error, PeopleError::NotBound { .. }), "{error}");
    let error = people.bind_user("zoe", "sso", "").unwrap_err();
    assert!(matches!(&error, PeopleError::Invalid(why) if why.contains("subject")), "{error}");
    people.bind_user("zoe", "sso", "7").unwrap();
    assert!(people.log_in_by_method("sso", &person("8", "zoe"), None).is_err());
    assert_eq!(people.log_in_by_method("sso", &person("7", "other"), None).unwrap().0.login, "zoe");
}

#[test]
fn a_method_without_registration_admits_bound_users_alone() {
    let (_dir, people) = with_zoe();
    let people = people.with(LoginMethod { register: false, ..method("lab", Some(person("7", "max"))) });
    let error = people.log_in("max", "from elsewhere", HOME).unwrap_err();
    assert!(matches!(error, PeopleError::NotRegistered { .. }), "{error}");
    people.add_user(User::new("max")).unwrap();
    people.bind_user("max", "lab", "").unwrap();
    assert!(people.log_in("max", "from elsewhere", HOME).is_ok());
}

#[test]
fn groups_of_a_method_that_is_gone_mean_nothing() {
    let (_dir, people) = with_zoe();
    let store = people.store.clone();
    people.set_access("Shift", &Access::default()).unwrap();
    let with = people.with(method("lab", None));
    with.by_method("lab", &OutsideUser { groups: vec!["admins".into()], ..person("7", "max") }).unwrap();
    let without = People::new(store, Settings::default()).unwrap();
    let max = without.rights_of(Some("max"), None).unwrap();
    assert!(!max.admin && max.rights.of("Shift").is_empty());
    assert!(matches!(without.log_in("max", "from elsewhere", HOME), Err(PeopleError::Wrong)));
}
