//! A forgotten password, and the mails about registrations. The mail server is away: what would be sent waits in the queue.

#[path = "support/accounts.rs"]
mod accounts;
#[path = "support/desk.rs"]
mod desk;

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use accounts::{CFG, PASSWORD, Visitors};
use http::StatusCode;
use tampu_elog::pages::SiteConfig;
use tampu_logbook::{
    mail::{MailSettings, MailTls, Outbox},
    people::{
        reset::{KIND, OF_ONE_ADDRESS},
        user::User,
    },
    store::Records,
};

const NEW: &str = "battery staple";
const URL: &str = "https://elog.example.org/elog";

struct Office {
    visitors: Visitors,
    outbox: Arc<Outbox>,
    queue: PathBuf,
    _dir: tempfile::TempDir,
}

impl Office {
    fn new(cfg: &str, url: &str) -> Office {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("mail");
        let settings = MailSettings {
            host: Some("127.0.0.1".to_owned()),
            // Nobody listens at this port.
            port: Some(1),
            tls: MailTls::None,
            from: Some("Logbook <logbook@example.org>".to_owned()),
            ..MailSettings::default()
        };
        let outbox = Arc::new(Outbox::start(settings, &queue, |_| {}).unwrap());
        let to_site = outbox.clone();
        let config = SiteConfig { url: url.to_owned(), ..SiteConfig::default() };
        let visitors = Visitors::with_config(cfg, config, |site| site.with_mail(Some(to_site)));
        Office { visitors, outbox, queue, _dir: dir }
    }

    fn ask(&self, name: &str) -> desk::Answer {
        self.visitors.send("/Shift/", &[("cmd", "Forgot"), ("login_name", name)])
    }

    /// Waits for a mail, and takes it out of the queue: its recipients and its text.
    fn mail(&self) -> (Vec<String>, String) {
        let id = loop {
            match self.outbox.mails().first() {
                Some(mail) => break mail.id.clone(),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let mail = self.outbox.mails().into_iter().find(|mail| mail.id == id).unwrap();
        let text = fs::read_to_string(self.queue.join(format!("{id}.eml"))).unwrap();
        self.outbox.remove(&id).unwrap();
        let text = text.replace("\r\n ", " ").replace("=\r\n", "").replace("=3D", "=");
        (mail.to.iter().map(|to| to.to.clone()).collect(), text)
    }
}

fn key(text: &str) -> &str {
    let begin = format!("{URL}/?cmd=Forgot&user=zoe&key=");
    let at = text.find(&begin).unwrap_or_else(|| panic!("{text}")) + begin.len();
    &text[at..at + 64]
}

#[test]
fn a_link_sets_a_new_password_once() {
    let office = Office::new(CFG, URL);
    let site = &office.visitors;
    let (_, old_session) = site.people.log_in("zoe", PASSWORD, site.desk.caller.from).unwrap();
    assert!(site.desk.get("/Shift/?cmd=Login").text().contains("?cmd=Forgot"));
    assert!(site.desk.get("/Shift/?cmd=Forgot").text().contains("name=\"login_name\""));
    // The answer shows nothing about users.
    let unknown = office.ask("nobody").text();
    let known = office.ask("ZOE@example.org").text();
    assert!(known == unknown && known.contains("If there is such a user"), "{known}");
    let (to, text) = office.mail();
    assert_eq!(to, ["zoe@example.org"]);
    let key = key(&text);
    let record = site.desk.store.record(KIND, "zoe").unwrap().unwrap().value.to_string();
    assert!(!record.contains(key), "the store has only the digest");
    // A further request sends nothing for a while, and leaves the link as it is.
    office.ask("zoe");
    let page = site.desk.get(&format!("/?cmd=Forgot&user=zoe&key={key}")).text();
    assert!(page.contains("name=\"newpwd\""), "{page}");
    let set = |key: &str, new: &str, again: &str| {
        site.send("/", &[("cmd", "Forgot"), ("user", "zoe"), ("key", key), ("newpwd", new), ("newpwd2", again)])
    };
    for (key, new, again, told) in [
        (key, NEW, PASSWORD, "the two new passwords differ"),
        (key, "short", "short", "at least 8 characters"),
        (&"0".repeat(64), NEW, NEW, "has expired"),
    ] {
        let error = set(key, new, again).error();
        assert!(error.contains(told), "{error}");
    }
    assert!(set(key, NEW, NEW).text().contains("The password was set"));
    let people = &site.people;
    assert!(people.log_in("zoe", NEW, site.desk.caller.from).is_ok() && people.by_session(&old_session).is_err());
    assert!(set(key, PASSWORD, PASSWORD).error().contains("was used"));
    assert!(site.desk.get(&format!("/?cmd=Forgot&user=zoe&key={key}")).error().contains("was used"));
    assert!(office.outbox.mails().is_empty());
}

#[test]
fn a_link_ends_with_the_password_and_its_time() {
    let office = Office::new(CFG, URL);
    let people = &office.visitors.people;
    let ask = || {
        office.ask("zoe");
        let (_, text) = office.mail();
        key(&text).to_owned()
    };
    let first = ask();
    people.set_password("zoe", NEW).unwrap();
    assert!(people.check_reset("zoe", &first).is_err());
    // The record is made older than its life.
    let store = &office.visitors.desk.store;
    let age = |seconds: i64| {
        let mut value = store.record(KIND, "zoe").unwrap().unwrap().value;
        let made = tampu_types::Time(now().0 - seconds * 1_000_000_000);
        value["made"] = made.to_rfc3339().into();
        store.put_record(KIND, "zoe", &value, None).unwrap();
    };
    age(200);
    let second = ask();
    assert!(people.check_reset("zoe", &second).is_ok());
    age(29 * 60);
    assert!(people.check_reset("zoe", &second).is_ok());
    age(30 * 60 + 1);
    assert!(people.check_reset("zoe", &second).is_err());
    // A link is no link of a user who was made anew.
    let third = ask();
    people.drop_user("zoe").unwrap();
    people.add_user(User { generation: 1, email: "zoe@example.org".into(), ..User::new("zoe") }).unwrap();
    assert!(people.check_reset("zoe", &third).is_err());
}

#[test]
fn a_request_of_somebody_else_leaves_the_link_valid() {
    let office = Office::new(CFG, URL);
    let people = &office.visitors.people;
    let ask = || {
        office.ask("zoe");
        let (_, text) = office.mail();
        let store = &office.visitors.desk.store;
        let mut value = store.record(KIND, "zoe").unwrap().unwrap().value;
        // The next request is far enough away.
        value["made"] = tampu_types::Time(now().0 - 200 * 1_000_000_000).to_rfc3339().into();
        store.put_record(KIND, "zoe", &value, None).unwrap();
        key(&text).to_owned()
    };
    let keys: Vec<String> = (0..4).map(|_| ask()).collect();
    for key in &keys {
        assert!(people.check_reset("zoe", key).is_ok());
    }
    people.use_reset("zoe", &keys[0], NEW, office.visitors.desk.caller.from).unwrap();
    for key in &keys {
        assert!(people.check_reset("zoe", key).is_err(), "the use of one ends all");
    }
}

fn now() -> tampu_types::Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    tampu_types::Time::from_unix(since.as_secs() as i64, since.subsec_nanos())
}

#[test]
fn requests_are_few_and_only_where_they_are_allowed() {
    let office = Office::new(CFG, URL);
    let site = &office.visitors;
    let refused = site.send("/Fixed/", &[("cmd", "Forgot"), ("login_name", "zoe")]);
    assert!(refused.status == StatusCode::FORBIDDEN && refused.error().contains("sends no new passwords"));
    let ask = |_| loop {
        // While other requests are worked on, a request waits for its turn.
        match office.ask("nobody").status {
            StatusCode::SERVICE_UNAVAILABLE => std::thread::yield_now(),
            status => break status,
        }
    };
    let statuses: Vec<StatusCode> = (0..=OF_ONE_ADDRESS).map(ask).collect();
    assert_eq!(statuses.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    assert!(statuses[..OF_ONE_ADDRESS].iter().all(StatusCode::is_success), "{statuses:?}");
    // Without a public address, a request could choose the host of the link.
    let without = Office::new("[Shift]\nAttributes = Author\n", "");
    assert!(!without.visitors.desk.get("/Shift/?cmd=Login").text().contains("?cmd=Forgot"));
    assert_eq!(without.ask("zoe").status, StatusCode::FORBIDDEN);
    let no_mail = Visitors::new("[Shift]\nAttributes = Author\n");
    assert!(!no_mail.desk.get("/Shift/?cmd=Login").text().contains("?cmd=Forgot"));
}

#[test]
fn registrations_are_mailed() {
    let mut office = Office::new(&format!("{CFG}[Told]\nAttributes = Author\nSelf register = 2\n"), URL);
    let register = |site: &Visitors, uri: &str, login: &str| {
        let mail = format!("{login}@example.org");
        let fields = [
            ("cmd", "New user"),
            ("new_user_name", login),
            ("new_full_name", ""),
            ("new_user_email", &mail),
            ("newpwd", NEW),
            ("newpwd2", NEW),
        ];
        site.send(uri, &fields)
    };
    register(&office.visitors, "/Open/", "one");
    assert!(office.outbox.mails().is_empty());
    register(&office.visitors, "/Told/", "two");
    let (to, text) = office.mail();
    assert!(to == ["root@example.org"] && text.contains("Subject: Logbook: 'two' has registered"), "{to:?} {text}");
    register(&office.visitors, "/Asked/", "three");
    let (to, text) = office.mail();
    assert!(to == ["root@example.org"] && text.contains("'three' waits for approval") && text.contains(URL), "{to:?} {text}");
    // The link of the mail decides without a login; to look at it decides nothing.
    register(&office.visitors, "/Asked/", "four");
    let text = office.mail().1.replace("=\r\n", "").replace("=3D", "=");
    let link = text.lines().find_map(|line| line.strip_prefix(URL).filter(|rest| rest.starts_with("/?approval="))).unwrap();
    let page = office.visitors.desk.get(link).text();
    assert!(page.contains("<th>Time</th>") && page.contains("four@example.org") && page.contains("value=\"approve\""), "{page}");
    assert_eq!(office.visitors.desk.get(&format!("{}x", &link[..link.len() - 1])).status, StatusCode::NOT_FOUND);
    assert!(office.visitors.send(&link.replace("=", "=a"), &[("act", "approve")]).status == StatusCode::NOT_FOUND);
    assert_eq!(office.visitors.people.registrations().unwrap().len(), 2);
    let form = [("act", "approve")];
    assert!(office.visitors.desk.fields(link, &form).text().contains("The registration of four is approved"));
    assert!(office.visitors.people.user("four").is_ok());
    let (to, text) = office.mail();
    assert!(to == ["four@example.org"] && text.contains("was approved"), "{to:?} {text}");
    assert!(office.visitors.desk.fields(link, &form).text().contains("Somebody has decided already"));
    let id = office.visitors.people.registrations().unwrap()[0].id.clone();
    office.visitors.enter("root");
    office.visitors.send("/", &[("cmd", "Users"), ("act", "approve"), ("registration", &id)]);
    let (to, text) = office.mail();
    assert!(to == ["three@example.org"] && text.contains("was approved"), "{to:?} {text}");
}
