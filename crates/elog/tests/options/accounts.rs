//! Logging in and out.

use std::{sync::Arc, time::Duration};

use tampu_elog::{
    pages::{Site, SiteConfig},
    users,
};
use tampu_logbook::people::{People, registry::Settings};

use super::desk::{Answer, Desk, caller};

/// A site with the user zoe, whose password is `secret`, and a guest who asks.
fn site(options: &str, settings: Settings) -> (Desk, Arc<People>) {
    let mut desk = Desk::new(&format!("[b]\nAttributes = Author\nPassword file = passwd\n{options}"));
    let people = Arc::new(People::new(desk.store.clone(), settings).unwrap());
    let read = users::read(
        b"<list><user><name>zoe</name><password encoding=\"SHA256\">o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5</password>\
        <full_name>Zoe Quartz</full_name></user></list>",
    );
    read.users.into_iter().for_each(|user| people.add_user(user).unwrap());
    desk.site = Site::new(desk.store.clone(), SiteConfig::default()).with_people(people.clone());
    desk.caller = caller("", &[], &["b"]);
    (desk, people)
}

fn cookie(answer: &Answer) -> String {
    answer.headers["set-cookie"].to_str().unwrap().to_owned()
}

#[test]
fn keep_me_logged_in_does_what_it_says() {
    let log_in = |options: &str, remember: &str, idle: u64| {
        let settings = Settings { idle: Duration::from_secs(idle), ..Settings::default() };
        let (desk, people) = site(options, settings);
        let cookie = cookie(&desk.fields("/b/", &[("uname", "zoe"), ("upassword", "secret"), ("remember", remember)]));
        let secret = cookie["tampu_session=".len()..].split(';').next().unwrap().to_owned();
        (cookie, people.by_session(&secret).is_ok())
    };
    // Without the box the login ends with the browser.
    let (short, lives) = log_in("", "0", 3600);
    assert!(!short.contains("Max-Age") && lives, "{short}");
    // 31 days as in elogd, and at most as long as the site lets a session live.
    assert!(log_in("", "1", 3600).0.contains("Max-Age=2592000"));
    assert!(log_in("Login expiration = 2\n", "1", 3600).0.contains("Max-Age=7200"));
    // A kept login does not end because nobody uses it; another one does.
    assert!(log_in("Login expiration = 2\n", "1", 0).1);
    assert!(!log_in("Login expiration = 2\n", "0", 0).1);
    // Nothing can be kept.
    assert!(!log_in("Login expiration = 0\n", "1", 3600).0.contains("Max-Age"));
    let form = |options: &str| site(options, Settings::default()).0.get("/b/").text();
    assert!(form("").contains("name=\"remember\"") && !form("Login expiration = 0\n").contains("name=\"remember\""));
}

#[test]
fn a_logout_leads_where_the_configuration_says() {
    let after = |options: &str| {
        let (mut desk, _) = site(options, Settings::default());
        desk.caller = caller("zoe", &super::desk::ALL, &["b"]);
        desk.get("/b/?cmd=Logout").location().to_owned()
    };
    assert_eq!(after(""), "http://elog.site:8080/");
    assert_eq!(after("Logout to main = 1\n"), "http://elog.site:8080/");
    assert_eq!(after("Logout to URL = https://portal.test/bye\n"), "https://portal.test/bye");
    assert_eq!(after("Logout to URL = javascript:alert(1)\n"), "http://elog.site:8080/");
}

#[test]
fn the_login_page_has_the_text_of_the_site() {
    let page = site("Bottom text login = <b>Ask the desk</b><script>x</script>\n", Settings::default()).0.get("/b/").text();
    assert!(page.contains("<b>Ask the desk</b>") && !page.contains("<script>x"), "{page}");
}
