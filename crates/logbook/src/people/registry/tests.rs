use tampu_types::Time;
use tempfile::TempDir;

use super::*;
use crate::{
    book::Book,
    people::{
        Rights,
        access::{EVERY_BOOK, EditPolicy, Grant, Subject},
        password::Password,
    },
    store::{Entries, StoreError, sqlite::SqliteStore},
};

mod outside;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const SECRET: &str = "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5";

fn people(settings: Settings) -> (TempDir, People) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    store.put_book(&Book::new("Shift", vec![])).unwrap();
    store.put_book(&Book::new("Vacuum", vec![])).unwrap();
    (dir, People::new(Arc::new(store), settings).unwrap())
}

fn with_zoe() -> (TempDir, People) {
    let (dir, people) = people(Settings::default());
    people.add_user(User { full_name: "Zoë".into(), groups: vec!["ops".into()], ..User::new("zoe") }).unwrap();
    people.set_password("zoe", "correct horse").unwrap();
    (dir, people)
}

#[test]
fn callers_who_may_not_read_a_logbook_see_a_part() {
    let (_dir, people) = with_zoe();
    let zoe = || people.log_in("zoe", "correct horse", HOME).unwrap().0;
    let sees = |who: &Principal| people.sees_a_part(who).unwrap();
    assert!(!sees(&people.owner().unwrap()) && !sees(&zoe()) && !sees(&people.guest().unwrap()));
    let grants = vec![Grant { to: Subject::User("zoe".into()), may: vec![Right::Read] }];
    people.set_access("Vacuum", &Access { grants, ..Access::default() }).unwrap();
    assert!(!sees(&people.owner().unwrap()) && !sees(&zoe()) && sees(&people.guest().unwrap()));
    people.set_access("Vacuum", &Access::default()).unwrap();
    assert!(!sees(&people.owner().unwrap()) && sees(&zoe()));
}

#[test]
fn a_session_is_worthless_after_logout_and_after_a_new_password() {
    let (_dir, people) = with_zoe();
    let (zoe, first) = people.log_in("zoe", "correct horse", HOME).unwrap();
    assert_eq!((zoe.login.as_str(), zoe.full_name.as_str()), ("zoe", "Zoë"));
    let second = people.log_in("zoe", "correct horse", HOME).unwrap().1;
    assert_eq!(people.by_session(&first).unwrap().rights, zoe.rights);
    people.log_out(&first).unwrap();
    assert!(matches!(people.by_session(&first), Err(PeopleError::Ended(..))));
    assert!(people.by_session(&second).is_ok());
    people.set_password("zoe", "battery staple").unwrap();
    assert!(matches!(people.by_session(&second), Err(PeopleError::Ended(..))));
    assert!(matches!(people.log_in("zoe", "correct horse", HOME), Err(PeopleError::Wrong)));
    // The store has no secret that could be stolen from it.
    let third = people.log_in("zoe", "battery staple", HOME).unwrap().1;
    let kept = format!("{:?}{:?}", people.store.records(session::KIND).unwrap(), people.store.records(user::KIND).unwrap());
    assert!(!kept.contains(&third) && !kept.contains("staple"), "{kept}");
    people.change_user("zoe", |user| user.inactive = true).unwrap();
    assert!(people.by_session(&third).is_err() && people.by_password("zoe", "battery staple", HOME).is_err());
    people.change_user("zoe", |user| user.inactive = false).unwrap();
    assert!(people.by_session(&third).is_err(), "a session that has ended does not begin again");
}

#[test]
fn sessions_end_by_themselves_and_are_few() {
    let (_dir, people) = with_zoe();
    let secret = people.log_in("zoe", "correct horse", HOME).unwrap().1;
    let record = people.store.record(session::KIND, &digest(&secret)).unwrap().unwrap();
    let mut session: Session = serde_json::from_value(record.value).unwrap();
    session.used = Time(session.used.0 - people.settings.idle.as_nanos() as i64 - 1);
    people.write(session::KIND, &digest(&secret), &session, None).unwrap();
    assert!(people.by_session(&secret).is_err());
    for _ in 0..MAX_SESSIONS + 3 {
        people.log_in("zoe", "correct horse", HOME).unwrap();
    }
    assert_eq!(people.store.records(session::KIND).unwrap().len(), MAX_SESSIONS);
}

#[test]
fn a_token_may_what_it_says_and_what_its_owner_may() {
    let (_dir, people) = with_zoe();
    let token = |may: Vec<Right>, books: &[&str], expires| {
        let books = books.iter().map(|&book| book.to_owned()).collect();
        people.make_token(ApiToken { comment: "ci".into(), may, books, expires, ..ApiToken::of("zoe") }).unwrap()
    };
    let (_, all) = token(vec![], &[], None);
    let (kept, few) = token(vec![Right::Read, Right::Admin], &["shift"], None);
    let (_, late) = token(vec![], &[], Some(Time(1)));
    assert_eq!(people.by_token(&all).unwrap().rights, people.by_password("zoe", "correct horse", HOME).unwrap().rights);
    let rights = people.by_token(&few).unwrap().rights;
    assert_eq!(rights.0.into_iter().collect::<Vec<_>>(), [("Shift".to_owned(), vec![Right::Read])]);
    assert!(people.by_token(&late).is_err() && people.by_token("tampu_x").is_err());
    assert!(people.tokens(Some("zoe")).unwrap().iter().any(|token| token.id == kept.id && token.used.is_some()));
    assert!(!format!("{:?}", people.store.records(token::KIND).unwrap()).contains(&few[6..]));
    people.drop_token("zoe", &kept.id).unwrap();
    assert!(people.by_token(&few).is_err());
    // A token with all rights of an administrator is an administrator's; a limited token is not.
    people.change_user("zoe", |user| user.admin = true).unwrap();
    assert!(people.by_token(&all).unwrap().admin);
    let (_, reader) = token(vec![Right::Read], &[], None);
    assert!(!people.by_token(&reader).unwrap().admin);
    people.drop_user("zoe").unwrap();
    assert!(people.by_token(&all).is_err() && people.tokens(None).unwrap().is_empty());
}

#[test]
fn a_token_ends_with_the_password_and_after_a_year() {
    let (_dir, people) = with_zoe();
    let (token, text) = people.make_token(ApiToken::of("zoe")).unwrap();
    let life = token.expires.unwrap().0 - token.made.0;
    assert_eq!(life, 365 * 86_400 * 1_000_000_000, "a token without an end lives for a year");
    assert_eq!(people.by_token(&text).unwrap().login, "zoe");
    people.set_password("zoe", "battery staple").unwrap();
    assert!(matches!(people.by_token(&text), Err(PeopleError::Ended("token", _))));
    assert!(people.tokens(Some("zoe")).unwrap().is_empty(), "it is not listed either");
    // The record of a token that another process is making meanwhile is worth nothing, too.
    let (token, text) = people.make_token(ApiToken::of("zoe")).unwrap();
    people
        .write(token::KIND, &digest(&text), &ApiToken { generation: token.generation.map(|one| one - 1), ..token }, None)
        .unwrap();
    assert!(people.by_token(&text).is_err());
    let (_, text) = people.make_token(ApiToken::of("zoe")).unwrap();
    people.change_user("zoe", |user| user.inactive = true).unwrap();
    people.change_user("zoe", |user| user.inactive = false).unwrap();
    assert!(people.by_token(&text).is_err(), "disabling a user ends the tokens as it ends the sessions");
}

#[test]
fn tokens_of_older_stores_work_until_their_end() {
    let (_dir, people) = with_zoe();
    const DAY: i64 = 86_400 * 1_000_000_000;
    // The form in which tokens were stored without a generation. The user has had a password change before.
    let stored = |text: &str, age: i64, expires: Option<i64>| {
        let shown = |time: Time| time.to_rfc3339();
        let record = serde_json::json!({
            "id": &digest(text)[..12], "login": "zoe", "comment": "older", "may": [], "books": [],
            "made": shown(Time(now().0 - age)), "expires": expires.map(|time| shown(Time(time))), "used": null,
        });
        people.store.put_record(token::KIND, &digest(text), &record, None).unwrap();
        text.to_owned()
    };
    let lasting = stored("tampu_lasting", 10 * DAY, Some(now().0 + 3 * 365 * DAY));
    let endless = stored("tampu_endless", 364 * DAY, None);
    let aged = stored("tampu_aged", 366 * DAY, None);
    let expired = stored("tampu_expired", 10 * DAY, Some(now().0 - DAY));
    for text in [&lasting, &endless, &lasting] {
        assert_eq!(people.by_token(text).unwrap().login, "zoe", "{text}");
    }
    assert!(matches!(people.by_token(&aged), Err(PeopleError::Ended("token", _))), "a year after it was made");
    assert!(matches!(people.by_token(&expired), Err(PeopleError::Ended("token", _))));
    assert!(people.tokens(Some("zoe")).unwrap().iter().all(|token| token.expires.is_some()), "each is listed with its end");
    people.change_user("zoe", |user| user.inactive = true).unwrap();
    assert!(people.by_token(&lasting).is_err());
    people.change_user("zoe", |user| user.inactive = false).unwrap();
    assert!(people.by_token(&lasting).is_err(), "disabling a user ends these tokens, too");
    let again = stored("tampu_again", 10 * DAY, None);
    people.set_password("zoe", "battery staple").unwrap();
    assert!(people.by_token(&again).is_err(), "and so does a new password");
}

#[test]
fn wrong_passwords_from_elsewhere_do_not_lock_the_owner_out() {
    let (_dir, people) = with_zoe();
    for n in 0..12u8 {
        let from = IpAddr::from([10, 0, 0, n]);
        assert!(matches!(people.log_in("zoe", &format!("wrong {n}"), from), Err(PeopleError::Wrong)));
    }
    people.log_in("zoe", "correct horse", HOME).unwrap();
}

#[test]
fn rights_that_another_program_grants_keep_the_sites_default_for_guests() {
    for (guests, expected) in [(vec![], vec![]), (vec![Right::Read], vec!["Shift".to_owned()])] {
        let (dir, hub) = people(Settings { guests, ..Settings::default() });
        // A program on the data directory does not know the hub's settings.
        let program = People::new(Arc::new(SqliteStore::open(dir.path()).unwrap()), Settings::default()).unwrap();
        let mut access = program.access("Shift").unwrap().0;
        access.give("user:zoe".parse().unwrap(), vec![Right::Read]);
        program.set_access("Shift", &access).unwrap();
        hub.forget();
        let mut books = hub.guest().unwrap().rights.books(Right::Read);
        books.retain(|book| book == "Shift");
        assert_eq!(books, expected);
    }
}

#[test]
fn a_book_with_elogs_file_of_passwords_is_closed_to_guests() {
    let (_dir, people) = people(Settings { guests: vec![Right::Read, Right::Write], ..Settings::default() });
    let with = |options: &[(&str, &str)]| {
        let elog = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        people.store.put_book(&Book { elog, ..Book::new("Shift", vec![]) }).unwrap();
        people.forget();
        people.guest().unwrap().rights.of("Shift").to_vec()
    };
    assert_eq!(with(&[]), [Right::Read, Right::Write]);
    assert_eq!(with(&[("Password file", "passwd")]), []);
    // Not even a grant opens it.
    let mut access = people.access("Shift").unwrap().0;
    access.give(Subject::Guests, vec![Right::Read]);
    people.set_access("Shift", &access).unwrap();
    assert_eq!(with(&[("Password file", "passwd")]), []);
    assert_eq!(with(&[("Password file", "passwd"), ("Guest menu commands", "List, Find")]), [Right::Read]);
}

#[test]
fn elogs_passwords_are_hashed_anew_at_the_first_login() {
    for accept in [false, true] {
        let (_dir, people) = people(Settings { accept_elog_hashes: accept, ..Settings::default() });
        people.add_user(User { password: Password::from_elog(SECRET), ..User::new("zoe") }).unwrap();
        assert_eq!(people.by_password("zoe", SECRET, HOME).is_ok(), accept, "the digest before the first login");
        assert!(people.user("zoe").unwrap().password.unwrap().is_old());
        let (_, cookie) = people.log_in("zoe", "secret", HOME).unwrap();
        assert!(!people.user("zoe").unwrap().password.unwrap().is_old());
        assert!(people.by_session(&cookie).is_ok() && people.by_password("zoe", "secret", HOME).is_ok());
        assert_eq!(people.by_password("zoe", SECRET, HOME).is_ok(), accept, "the digest after it");
    }
}

#[test]
fn guessing_takes_longer_and_longer_whoever_is_guessed() {
    let (_dir, people) = with_zoe();
    assert!(people.by_password("zoe", "correct horse", HOME).is_ok());
    for login in ["zoe", "nobody"] {
        let tries = (0..20).map(|n| people.log_in(login, &format!("wrong {n}"), HOME).unwrap_err());
        let waits = tries.filter(|error| matches!(error, PeopleError::Wait(wait) if *wait > Duration::ZERO)).count();
        assert_eq!(waits, 15, "{login}");
    }
    // A program with a recently accepted password continues; a new login waits with the others.
    assert!(people.by_password("zoe", "correct horse", HOME).is_ok());
}

#[test]
fn rights_are_given_book_by_book() {
    let (_dir, people) = with_zoe();
    let guest = people.guest().unwrap();
    assert!(guest.rights.may(Right::Read, "Shift") && !guest.rights.may(Right::Write, "Shift"));
    let to = |to: &str, may: &[Right]| Grant { to: to.parse().unwrap(), may: may.to_vec() };
    let access = Access {
        grants: vec![to("group:ops", &[Right::Read, Right::Write])],
        policy: EditPolicy::AppendOnly,
        ..Access::default()
    };
    people.set_access("SHIFT", &access).unwrap();
    assert!(matches!(people.set_access("None", &access), Err(PeopleError::Store(StoreError::NoBook(_)))));
    assert_eq!(people.guest().unwrap().rights.books(Right::Read), ["Vacuum"]);
    let zoe = people.by_password("zoe", "correct horse", HOME).unwrap();
    assert!(zoe.rights.may(Right::Write, "shift") && !zoe.rights.may(Right::EditOwn, "Shift") && !zoe.admin);
    people.set_group("ops", &[]).unwrap();
    assert!(people.groups().unwrap().is_empty());
    assert_eq!(people.by_password("zoe", "correct horse", HOME).unwrap().rights.books(Right::Read), ["Vacuum"]);
    assert!(matches!(people.set_group("ops", &["max".to_owned()]), Err(PeopleError::NoUser(_))));
    people.set_access(EVERY_BOOK, &Access { grants: vec![to("user:zoe", &[Right::Read])], ..Access::default() }).unwrap();
    assert_eq!((people.guest().unwrap().rights, people.access("Vacuum").unwrap().1), (Rights::default(), false));
    let mut access = people.access("Shift").unwrap().0;
    access.give(Subject::Guests, vec![Right::Read]);
    people.set_access("Shift", &access).unwrap();
    assert_eq!(people.guest().unwrap().rights.books(Right::Read), ["Shift"]);
}

#[test]
fn the_owner_may_everything() {
    let (_dir, people) = people(Settings::default());
    assert!(people.is_open().unwrap());
    let token = people.make_owner_token().unwrap();
    let owner = people.by_token(&token).unwrap();
    assert!(owner.admin && owner.rights.may(Right::Admin, "Shift") && owner.by == Credentials::Owner);
    assert!(people.store.records(token::KIND).unwrap().is_empty());
    people.add_user(User::new("zoe")).unwrap();
    assert!(!people.is_open().unwrap());
    assert!(matches!(people.add_user(User::new("zoe")), Err(PeopleError::IsThere(_))));
    assert!(people.by_token(&token).is_ok());
    // A user without a password cannot log in with any.
    for password in ["", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert!(matches!(people.log_in("zoe", password, HOME), Err(PeopleError::Wrong)));
    }
}

#[test]
fn who_stays_is_looked_up_again_and_does_not_keep_a_session_by_it() {
    let (_dir, people) = with_zoe();
    let (by_session, secret) = people.log_in("zoe", "correct horse", HOME).unwrap();
    let by_password = people.by_password("zoe", "correct horse", HOME).unwrap();
    // Unused for an hour.
    let kept = || serde_json::from_value::<Session>(people.store.record(session::KIND, &digest(&secret)).unwrap().unwrap().value);
    let mut session = kept().unwrap();
    session.used = Time(session.used.0 - 3_600_000_000_000);
    people.write(session::KIND, &digest(&secret), &session, None).unwrap();
    assert_eq!(people.look_again(&by_session, Some(&secret)).unwrap().login, "zoe");
    assert_eq!(kept().unwrap().used, session.used);
    people.by_session(&secret).unwrap();
    assert!(kept().unwrap().used > session.used);
    // The check returns the current rights.
    assert!(people.look_again(&by_password, None).unwrap().rights.may(Right::Read, "Shift"));
    people.set_access("Shift", &Access::default()).unwrap();
    assert!(!people.look_again(&by_password, None).unwrap().rights.may(Right::Read, "Shift"));
    people.set_password("zoe", "battery staple").unwrap();
    assert!(people.look_again(&by_password, None).is_err() && people.look_again(&by_session, Some(&secret)).is_err());
    let by_password = people.by_password("zoe", "battery staple", HOME).unwrap();
    people.change_user("zoe", |user| user.inactive = true).unwrap();
    assert!(people.look_again(&by_password, None).is_err());
    // Only the token identifies the owner, with users and without.
    let owner = people.owner().unwrap();
    let token = people.make_owner_token().unwrap();
    assert!(people.look_again(&owner, None).is_err() && people.look_again(&owner, Some("tampu_x")).is_err());
    assert_eq!(people.look_again(&owner, Some(&token)).unwrap(), owner);
    people.drop_user("zoe").unwrap();
    assert!(people.look_again(&owner, None).is_err());
}

#[test]
fn a_session_of_a_user_who_was_just_made_elsewhere_stays() {
    let (dir, here) = with_zoe();
    let there = People::new(Arc::new(SqliteStore::open(dir.path()).unwrap()), Settings::default()).unwrap();
    // The cache here is fresh, and does not have the new password.
    assert!(!here.is_open().unwrap());
    there.set_password("zoe", "battery staple").unwrap();
    let secret = there.log_in("zoe", "battery staple", HOME).unwrap().1;
    here.by_session(&secret).unwrap();
    there.by_session(&secret).unwrap();
}
