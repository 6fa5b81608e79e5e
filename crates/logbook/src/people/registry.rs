//! The registry of users: it identifies callers by password, session or token, and knows their rights.
//!
//! Users and rights are cached for [`FRESH`]: changes by other processes take effect within that time, changes by this
//! one at once. Sessions and tokens are read from the store each time, so an ended one is invalid at once, in all
//! processes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use tampu_workers::Running;

use super::{
    Right,
    access::{self, Access},
    attempts::Attempts,
    elog_rules::ElogRules,
    error::{PeopleError, Result},
    hashing::HashingQueue,
    login_policy::LoginPolicy,
    outside::{LoginMethod, OutsideCalls},
    password_files::PasswordFiles,
    principal::{Credentials, Principal},
    request_limit::RequestLimit,
    session::{self, MAX_SESSIONS, Session, form_token},
    token::{self, ApiToken, digest, random, secret},
    user::{self, User},
    visit::Visit,
};
use crate::{
    book::Book,
    store::{BookInfo, PeopleStore, naming::former_names, now},
};

mod accounts;
mod explain;
mod kept;
mod log_filters;
mod names;
mod outside;
mod passwords;
mod registration;
mod reset;
mod rights;
pub mod signing;
mod visits;

pub use explain::Explanation;

/// The time for which users and rights are cached.
pub const FRESH: Duration = Duration::from_secs(1);
/// Minimum age, in nanoseconds, of the stored time of last use before it is updated.
const USED: i64 = 60_000_000_000;

/// A site's settings for logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The rights of guests in books without rules of their own.
    pub guests: Vec<Right>,
    /// True if ELOG's digest is accepted in place of the password, for ELOG's old programs.
    pub accept_elog_hashes: bool,
    /// A session without use for this time ends.
    pub idle: Duration,
    /// A session of this age ends.
    pub longest: Duration,
    /// The name of the installation's owner.
    pub owner: String,
}

impl Default for Settings {
    fn default() -> Settings {
        let (idle, longest) = (Duration::from_secs(12 * 3600), Duration::from_secs(30 * 86_400));
        Settings { guests: vec![Right::Read], accept_elog_hashes: false, idle, longest, owner: "owner".to_owned() }
    }
}

/// Users, rights, sessions and tokens of a store.
pub struct People {
    store: Arc<dyn PeopleStore>,
    settings: Settings,
    /// The login methods, in their order.
    methods: Vec<LoginMethod>,
    /// Passwords that are checked outside at this moment.
    asking: OutsideCalls,
    known: Mutex<Option<(Instant, Arc<Cache>)>>,
    attempts: Attempts,
    hashing: HashingQueue,
    registrations_of: RequestLimit,
    resets_of: RequestLimit,
    /// Requests for a new password that are worked on at this moment.
    resetting: Running,
    /// The visits of users that were noted a moment ago.
    visits: Mutex<HashMap<String, Visit>>,
    right: Mutex<HashMap<[u8; 32], Instant>>,
    wrong: Mutex<HashMap<[u8; 32], Instant>>,
    key: [u8; 32],
    owner: Mutex<Option<String>>,
    /// The callback for changes by this process.
    on_change: RwLock<Option<OnChange>>,
    /// Digests of the code that begins an owner's session, and of the secrets of such sessions.
    owner_code: Mutex<Option<String>>,
    owner_sessions: Mutex<HashSet<String>>,
    /// The site's rules, which narrow the rights of all callers but the owner.
    permits: Option<Box<Permits>>,
    /// Returns whether the site's rules name a login.
    names_in_rules: Option<Box<NamesInRules>>,
}

/// Returns whether the site's rules name a login.
type NamesInRules = dyn Fn(&str) -> bool + Send + Sync;

/// Returns whether a caller keeps a right in a logbook.
type Permits = dyn Fn(&Principal, &str, Right) -> bool + Send + Sync;

/// A callback for changes of users, rights, sessions and tokens.
type OnChange = Arc<dyn Fn() + Send + Sync>;

/// The cache of users, rights and login policies.
#[derive(Debug, Default)]
struct Cache {
    users: BTreeMap<String, User>,
    access: HashMap<String, Access>,
    books: Vec<(String, LoginPolicy)>,
    /// The password files of all books.
    files: PasswordFiles,
    /// Former names of books, each with the present name.
    former: Vec<(String, String)>,
    /// Books whose ELOG configuration may hide attributes.
    veiled: Vec<Book>,
}

/// The users and rules at one moment. Two are equal if nothing was read again between them.
#[derive(Debug, Clone)]
pub struct Rules(Arc<Cache>);

impl PartialEq for Rules {
    fn eq(&self, other: &Rules) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl People {
    /// The people of a store.
    pub fn new(store: Arc<dyn PeopleStore>, settings: Settings) -> Result<People> {
        Ok(People {
            store,
            settings,
            methods: Vec::new(),
            asking: OutsideCalls::default(),
            known: Mutex::default(),
            attempts: Attempts::default(),
            hashing: HashingQueue::default(),
            registrations_of: RequestLimit::new(super::registration::OF_ONE_ADDRESS, super::registration::WITHIN),
            resets_of: RequestLimit::new(super::reset::OF_ONE_ADDRESS, super::reset::WITHIN),
            resetting: Running::new(),
            visits: Mutex::default(),
            right: Mutex::default(),
            wrong: Mutex::default(),
            key: random()?,
            owner: Mutex::default(),
            on_change: RwLock::default(),
            owner_code: Mutex::default(),
            owner_sessions: Mutex::default(),
            permits: None,
            names_in_rules: None,
        })
    }

    /// Adds a login method after those that are there.
    pub fn with(mut self, method: LoginMethod) -> People {
        self.methods.push(method);
        self
    }

    /// The site's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Creates a code that begins one session of the owner in a browser, as long as there are no users. It is kept only in
    /// memory.
    pub fn make_owner_code(&self) -> Result<String> {
        let code = secret()?;
        *self.owner_code.lock() = Some(digest(&code));
        Ok(code)
    }

    /// Ends the owner's code and begins a session with it; returns the session's secret.
    pub fn use_owner_code(&self, code: &str) -> Result<String> {
        let ended =
            || PeopleError::Ended("code", "it begins one session, while there are no users; start the hub again for a new one");
        let mut expected = self.owner_code.lock();
        // Digests are compared, so the time of the comparison says nothing about the code.
        if expected.as_ref() != Some(&digest(code)) || !self.is_open()? {
            return Err(ended());
        }
        *expected = None;
        let secret = secret()?;
        self.owner_sessions.lock().insert(digest(&secret));
        Ok(secret)
    }

    /// Creates the owner's token. It is kept only in memory.
    pub fn make_owner_token(&self) -> Result<String> {
        let text = format!("{}{}", token::PREFIX, secret()?);
        *self.owner.lock() = Some(digest(&text));
        Ok(text)
    }

    /// Sets the callback that is called after each change of users, rights, sessions and tokens by this process, so that
    /// long-lived connections are checked again at once.
    pub fn on_change(&self, callback: impl Fn() + Send + Sync + 'static) {
        *self.on_change.write() = Some(Arc::new(callback));
    }

    /// Clears the cache.
    pub fn forget(&self) {
        *self.known.lock() = None;
    }

    /// Returns the users and rules that are in force, for comparison with those of an earlier moment.
    pub fn rules(&self) -> Result<Rules> {
        self.known().map(Rules)
    }

    /// Clears the cache after a change by this process, and calls the callback.
    fn changed(&self) {
        self.forget();
        let callback = self.on_change.read().clone();
        if let Some(callback) = callback {
            callback();
        }
    }

    fn known(&self) -> Result<Arc<Cache>> {
        if let Some((read, known)) = &*self.known.lock()
            && read.elapsed() < FRESH
        {
            return Ok(known.clone());
        }
        let mut known = Cache::default();
        let books = self.store.books()?;
        known.files = PasswordFiles::of(books.iter().map(|info| &info.book));
        for BookInfo { book, .. } in books {
            known.books.push((book.name.clone(), LoginPolicy::of(&book)));
            if ElogRules::of(&book).may_hide() {
                known.veiled.push(book);
            }
        }
        known.former = former_names(&*self.store)?;
        for (name, record) in self.store.records(user::KIND)? {
            known.users.insert(name.clone(), PeopleError::read(user::KIND, &name, record.value)?);
        }
        for (name, record) in self.store.records(access::KIND)? {
            known.access.insert(name.clone(), PeopleError::read(access::KIND, &name, record.value)?);
        }
        let known = Arc::new(known);
        *self.known.lock() = Some((Instant::now(), known.clone()));
        Ok(known)
    }

    /// Returns whether the site has no user yet.
    pub fn is_open(&self) -> Result<bool> {
        Ok(self.known()?.users.is_empty())
    }

    /// Checks a login and password that come with a request and begin no session. ELOG's digest is accepted if the
    /// site's settings say so.
    pub fn by_password(&self, login: &str, password: &str, from: IpAddr) -> Result<Principal> {
        let user = self.check_password(login, password, from)?;
        self.principal(&user, Credentials::Password { generation: user.generation })
    }

    /// Begins a session. Returns the caller, and the secret for the cookie.
    pub fn log_in(&self, login: &str, password: &str, from: IpAddr) -> Result<(Principal, String)> {
        let user = self.check_password(login, password, from)?;
        self.begin_session(&user, None)
    }

    /// Deletes expired sessions, and the oldest of this login if there are too many.
    fn make_room(&self, login: &str) -> Result<()> {
        let mut own = Vec::new();
        for (name, record) in self.store.records(session::KIND)? {
            let session: Session = PeopleError::read(session::KIND, &name, record.value)?;
            if !session.lives(now(), self.settings.idle, self.settings.longest) {
                self.store.drop_record(session::KIND, &name)?;
            } else if session.login == login {
                own.push((session.used, name));
            }
        }
        own.sort();
        let too_many = (own.len() + 1).saturating_sub(MAX_SESSIONS);
        for (_, name) in own.into_iter().take(too_many) {
            self.store.drop_record(session::KIND, &name)?;
        }
        Ok(())
    }

    /// Returns the user of a session by its secret. This counts as use of the session, which postpones its end.
    pub fn by_session(&self, secret: &str) -> Result<Principal> {
        self.session(secret, true)
    }

    fn session(&self, secret: &str, uses: bool) -> Result<Principal> {
        let ended = |why| PeopleError::Ended("session", why);
        let name = digest(secret);
        if self.owner_sessions.lock().contains(&name) {
            // The first user ends the owner's sessions.
            return if self.is_open()? { self.owner() } else { Err(ended("log in as a user")) };
        }
        let record = self.store.record(session::KIND, &name)?.ok_or(ended("log in again"))?;
        let mut session: Session = PeopleError::read(session::KIND, &name, record.value)?;
        let now = now();
        let lives = session.lives(now, self.settings.idle, self.settings.longest);
        let Some(user) = self.user_of(&session.login, Some(session.generation))?.filter(|_| lives) else {
            self.store.drop_record(session::KIND, &name)?;
            return Err(ended("log in again"));
        };
        if uses && now.0.saturating_sub(session.used.0) > USED {
            session.used = now;
            // Another process has just written the same session, or ended it; this write must not undo either.
            let _ = self.write(session::KIND, &name, &session, Some(record.version));
        }
        self.principal(&user, Credentials::Session { name, form: form_token(secret) })
    }

    /// Returns the user of a login, if the user is active and still of this generation. `None` fits every generation.
    fn user_of(&self, login: &str, generation: Option<u32>) -> Result<Option<User>> {
        let fits = |user: &User| generation.is_none_or(|one| one == user.generation) && !user.inactive;
        if let Some(user) = self.known()?.users.get(login).filter(|user| fits(user)) {
            return Ok(Some(user.clone()));
        }
        // The cache may be older than the session: another hub has just created the user, or set a password.
        match self.user(login) {
            Ok(user) if fits(&user) => {
                self.forget();
                Ok(Some(user))
            }
            Ok(_) | Err(PeopleError::NoUser(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Re-checks the credentials of a long-lived connection and returns its current [`Principal`]. `secret` is that of
    /// the session or token, if there is one. The call fails if the same request would be rejected, or would belong to
    /// another user. The call does not extend the life of the session or token.
    pub fn look_again(&self, met: &Principal, secret: Option<&str>) -> Result<Principal> {
        let ended = || PeopleError::Ended("login", "ask again");
        match (&met.by, secret) {
            (Credentials::Nothing, _) => self.guest(),
            (Credentials::Session { .. }, Some(secret)) => self.session(secret, false),
            (Credentials::Token(_), Some(text)) => self.token(text, false),
            (Credentials::Owner, Some(text)) if self.owner.lock().as_ref() == Some(&digest(text)) => self.owner(),
            (Credentials::Owner, Some(secret)) => self.session(secret, false),
            (Credentials::Password { generation } | Credentials::Proxy { generation, .. }, _) => {
                let user = self.user_of(&met.login, Some(*generation))?.ok_or_else(ended)?;
                self.principal(&user, met.by.clone())
            }
            _ => Err(ended()),
        }
    }

    /// Ends a session. A session that has already ended is not an error.
    pub fn log_out(&self, secret: &str) -> Result<bool> {
        if self.owner_sessions.lock().remove(&digest(secret)) {
            return Ok(true);
        }
        let ended = self.store.drop_record(session::KIND, &digest(secret))?;
        self.changed();
        Ok(ended)
    }

    /// Returns the owner of a token, with the token's rights.
    pub fn by_token(&self, text: &str) -> Result<Principal> {
        self.token(text, true)
    }

    fn token(&self, text: &str, uses: bool) -> Result<Principal> {
        let ended = |why| PeopleError::Ended("token", why);
        let name = digest(text);
        if self.owner.lock().as_ref() == Some(&name) {
            return self.owner();
        }
        let record = self.store.record(token::KIND, &name)?.ok_or(ended("create a new one"))?;
        let mut token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
        let now = now();
        if now >= token.end() {
            return Err(ended("it has expired; create a new one"));
        }
        let user = self.user_of(&token.login, token.generation)?;
        let user = user.ok_or(ended("its user has a new password, was disabled or was deleted; create a new one"))?;
        if uses && token.used.is_none_or(|used| now.0.saturating_sub(used.0) > USED) {
            token.used = Some(now);
            let _ = self.write(token::KIND, &name, &token, Some(record.version));
        }
        self.principal(&user, Credentials::Token(token))
    }

    /// Writes a record of users, sessions, tokens or access rules.
    fn write<T: Serialize>(&self, kind: &str, name: &str, value: &T, expected: Option<u64>) -> Result<u64> {
        let value = serde_json::to_value(value).map_err(|error| PeopleError::Invalid(error.to_string()))?;
        Ok(self.store.put_record(kind, name, &value, expected)?)
    }
}

#[cfg(test)]
mod tests;
