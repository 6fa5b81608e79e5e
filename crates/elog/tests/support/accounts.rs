//! A site with users, and visitors with their sessions.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;

use tampu_elog::pages::{Site, SiteConfig, csrf};
use tampu_logbook::people::{People, password::Password, registry::Settings, user::User};

use crate::desk::{Answer, Desk, caller};

/// The password of everybody.
pub const PASSWORD: &str = "correct horse";

/// Books with each kind of registration.
pub const CFG: &str = "[Shift]\nAttributes = Author, Type, Subject\nOptions Type = Routine, Problem\n\
    [Open]\nAttributes = Author\nSelf register = 1\n[Asked]\nAttributes = Author\nSelf register = 3\n\
    [Fixed]\nAttributes = Author\nAllow password change = 0\nForgot password link = 0\n";

/// A site, its users, and the visitor of the moment.
pub struct Visitors {
    pub desk: Desk,
    pub people: Arc<People>,
    session: Option<String>,
}

impl Visitors {
    /// A site with the users `zoe`, `kim` and the administrator `root`. The first visitor is a guest.
    pub fn new(cfg: &str) -> Visitors {
        Visitors::with(cfg, |site| site)
    }

    /// The same, with a change of the site.
    pub fn with(cfg: &str, change: impl FnOnce(Site) -> Site) -> Visitors {
        Visitors::with_config(cfg, SiteConfig::default(), change)
    }

    /// The same, with a configuration of the site.
    pub fn with_config(cfg: &str, config: SiteConfig, change: impl FnOnce(Site) -> Site) -> Visitors {
        let Desk { dir, store, headers, .. } = Desk::new(cfg);
        let people = Arc::new(People::new(store.clone(), Settings::default()).unwrap());
        let password = Password::new(PASSWORD).unwrap();
        for login in ["zoe", "kim", "root"] {
            let (full_name, email) = (format!("{login} Quartz"), format!("{login}@example.org"));
            let password = Some(password.clone());
            people.add_user(User { full_name, email, password, admin: login == "root", ..User::new(login) }).unwrap();
        }
        let site = change(Site::new(store.clone(), config).with_people(people.clone()));
        let mut visitors =
            Visitors { desk: Desk { dir, store, site, caller: caller("", &[], &[]), headers }, people, session: None };
        visitors.leave();
        visitors
    }

    /// The next requests are those of a guest.
    pub fn leave(&mut self) {
        let from = self.desk.caller.from;
        self.desk.caller = self.people.guest().unwrap().caller(from);
        self.desk.headers.clear();
        self.session = None;
    }

    /// Logs a user in; the next requests are in the session. Returns its secret.
    pub fn enter(&mut self, login: &str) -> String {
        self.enter_with(login, PASSWORD)
    }

    pub fn enter_with(&mut self, login: &str, password: &str) -> String {
        let from = self.desk.caller.from;
        let (principal, secret) = self.people.log_in(login, password, from).unwrap();
        self.desk.caller = principal.caller(from);
        self.desk.headers = vec![("cookie", format!("tampu_session={secret}")), ("accept-language", "en".to_owned())];
        self.session = Some(secret.clone());
        secret
    }

    /// Sends a form of a page of this site.
    pub fn send(&self, uri: &str, fields: &[(&str, &str)]) -> Answer {
        let token = csrf::token(&self.desk.site, &self.desk.caller, self.session.as_deref());
        self.desk.fields(uri, &[&[(csrf::FIELD, token.as_str())], fields].concat())
    }
}
