//! All of it together: who somebody is, from a password, a session or a token, and what they may.
//!
//! Users and rights are read from the store when they are older than [`FRESH`]: what another process changes holds here so soon, what this
//! one changes, at once. Sessions and tokens are asked of the store each time, so that one that was ended is worthless at once, everywhere.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::IpAddr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::{
    Right, Rights,
    access::{self, Access, EVERY_BOOK},
    attempts::{Attempts, Wait},
    decide::Refused,
    let_in::LetIn,
    password::{BadPassword, Given, Password},
    session::{self, MAX_SESSIONS, Session, form_token},
    token::{self, ApiToken, MAX_COMMENT, MAX_TOKENS, digest, random, secret},
    user::{self, BadUser, User, check_name},
};
use crate::{
    elog::web::Caller,
    store::{Store, StoreError},
};

/// How old what is known of users and rights may be.
pub const FRESH: Duration = Duration::from_secs(1);
/// Passwords hashed at a time: each takes 19 MiB and some of a processor. Further ones wait.
const HASHING: u32 = 2;
/// Passwords that were right within [`REMEMBER`], so that a program that sends its own with each request does not wait each time; and as many
/// that were wrong, so that one that is sent with each request counts as one try.
const REMEMBERED: usize = 1024;
/// How long.
const REMEMBER: Duration = Duration::from_secs(300);
/// How old the time of the last use may be before it is written anew.
const USED: i64 = 60_000_000_000;

/// What a site says about people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What guests may in books of which nothing is said.
    pub guests: Vec<Right>,
    /// Whether ELOG's digest of a password is taken in place of the password, for its old programs.
    pub accept_elog_hashes: bool,
    /// A session that is not used for so long ends.
    pub idle: Duration,
    /// A session that is so old ends.
    pub longest: Duration,
    /// The name of whom the installation belongs to.
    pub owner: String,
}

impl Default for Settings {
    fn default() -> Settings {
        let (idle, longest) = (Duration::from_secs(12 * 3600), Duration::from_secs(30 * 86_400));
        Settings { guests: vec![Right::Read], accept_elog_hashes: false, idle, longest, owner: "owner".to_owned() }
    }
}

/// How somebody is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Not at all: a guest.
    Nothing,
    /// The installation is theirs.
    Owner,
    /// By the cookie of a session.
    Session {
        /// The session's record.
        name: String,
        /// What their forms carry.
        form: String,
    },
    /// By a token.
    Token(ApiToken),
    /// By a password that came with the request.
    Password {
        /// The user's generation at that time.
        generation: u32,
    },
}

/// Somebody who asks for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// What they log in with; empty for a guest.
    pub login: String,
    /// The name people know.
    pub full_name: String,
    /// Their address for mail; empty if there is none.
    pub email: String,
    /// Whether they look after the site: its books and users.
    pub admin: bool,
    /// What they may, by book.
    pub rights: Rights,
    /// How they are known.
    pub by: By,
}

impl Principal {
    /// As ELOG's dialect wants it.
    pub fn caller(&self, from: IpAddr) -> Caller {
        let Principal { login, full_name, email, rights, .. } = self.clone();
        Caller { login, full_name, email, from, rights }
    }

    /// Whether it is nobody in particular.
    pub fn is_guest(&self) -> bool {
        self.login.is_empty()
    }
}

/// Why it is not done.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// They may not.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The login or the password is wrong, or the user is inactive: which of them is not said.
    #[error("the login or the password is wrong")]
    Wrong,
    /// Too many wrong passwords.
    #[error("too many wrong passwords: try again in {} s", .0.as_secs() + 1)]
    Wait(Duration),
    /// The session or the token is not, or no longer, good.
    #[error("the {0} is not good, or no longer: {1}")]
    Ended(&'static str, &'static str),
    /// No such user.
    #[error("there is no user '{0}'")]
    NoUser(String),
    /// There is one.
    #[error("there is a user '{0}' already")]
    IsThere(String),
    /// No such token.
    #[error("there is no token '{0}'")]
    NoToken(String),
    /// A user who cannot be.
    #[error(transparent)]
    User(#[from] BadUser),
    /// A password that cannot be.
    #[error(transparent)]
    Password(#[from] BadPassword),
    /// Something else that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// Another place that knows users does not answer.
    #[error("the place that knows this login does not answer: {0}")]
    Elsewhere(io::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system has no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[from] io::Error),
}

impl PeopleError {
    /// Reads a record's value.
    pub(super) fn read<T: DeserializeOwned>(kind: &str, name: &str, value: Value) -> Result<T, PeopleError> {
        serde_json::from_value(value).map_err(|error| StoreError::Damaged(format!("{kind} '{name}': {error}")).into())
    }
}

impl From<Wait> for PeopleError {
    fn from(wait: Wait) -> PeopleError {
        PeopleError::Wait(wait.0)
    }
}

/// What this does.
pub type Result<T, E = PeopleError> = std::result::Result<T, E>;

/// Another place that knows users, as a directory service: asked about logins that have no password here. The seam for LDAP and the like.
pub trait Authenticate: Send + Sync {
    /// The user, if the password is theirs; their groups and names are taken over as they are told. None if it is not.
    fn authenticate(&self, login: &str, password: &str) -> io::Result<Option<User>>;
}

/// Users, rights, sessions and tokens of a store.
pub struct People {
    store: Arc<dyn Store>,
    settings: Settings,
    others: Vec<Box<dyn Authenticate>>,
    known: Mutex<Option<(Instant, Arc<Known>)>>,
    attempts: Attempts,
    hashing: (Mutex<u32>, Condvar),
    right: Mutex<HashMap<[u8; 32], Instant>>,
    wrong: Mutex<HashMap<[u8; 32], Instant>>,
    key: [u8; 32],
    owner: Mutex<Option<String>>,
}

/// What is known of users and rights.
#[derive(Debug, Default)]
struct Known {
    users: BTreeMap<String, User>,
    access: HashMap<String, Access>,
    books: Vec<(String, LetIn)>,
}

/// Remembers one for [`REMEMBER`], of at most [`REMEMBERED`].
fn remember(of: &Mutex<HashMap<[u8; 32], Instant>>, seen: [u8; 32]) {
    let mut of = lock(of);
    if of.len() >= REMEMBERED {
        of.retain(|_, at| at.elapsed() < REMEMBER);
        if of.len() >= REMEMBERED {
            of.clear();
        }
    }
    of.insert(seen, Instant::now());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing here is left half done by a panic elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What time it is.
pub(super) fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}

impl People {
    /// The people of a store.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Result<People> {
        Ok(People {
            store,
            settings,
            others: Vec::new(),
            known: Mutex::default(),
            attempts: Attempts::default(),
            hashing: Default::default(),
            right: Mutex::default(),
            wrong: Mutex::default(),
            key: random()?,
            owner: Mutex::default(),
        })
    }

    /// Asks others too about logins without a password here.
    pub fn with(mut self, other: Box<dyn Authenticate>) -> People {
        self.others.push(other);
        self
    }

    /// What the site says.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes the secret that stands for whom the installation belongs to; it is kept nowhere but in memory.
    pub fn make_owner_token(&self) -> Result<String> {
        let text = format!("{}{}", token::PREFIX, secret()?);
        *lock(&self.owner) = Some(digest(&text));
        Ok(text)
    }

    /// Forgets what is known, because it was changed.
    pub fn forget(&self) {
        *lock(&self.known) = None;
    }

    fn known(&self) -> Result<Arc<Known>> {
        if let Some((read, known)) = &*lock(&self.known)
            && read.elapsed() < FRESH
        {
            return Ok(known.clone());
        }
        let books = self.store.books()?.into_iter().map(|info| (info.book.name.clone(), LetIn::of(&info.book))).collect();
        let mut known = Known { books, ..Known::default() };
        for (name, record) in self.store.records(user::KIND)? {
            known.users.insert(name.clone(), PeopleError::read(user::KIND, &name, record.value)?);
        }
        for (name, record) in self.store.records(access::KIND)? {
            known.access.insert(name.clone(), PeopleError::read(access::KIND, &name, record.value)?);
        }
        let known = Arc::new(known);
        *lock(&self.known) = Some((Instant::now(), known.clone()));
        Ok(known)
    }

    /// Whether nobody has been made a user yet: then the site is its owner's.
    pub fn is_open(&self) -> Result<bool> {
        Ok(self.known()?.users.is_empty())
    }

    // Who somebody is.

    fn principal(&self, user: &User, by: By) -> Result<Principal> {
        let known = self.known()?;
        let mut rights = Rights::default();
        for (book, let_in) in &known.books {
            let may =
                if user.admin { Right::ALL.to_vec() } else { self.access_in(&known, book).rights(&user.login, &user.groups) };
            if !may.is_empty() && (user.admin || let_in.lets(&user.login, &may)) {
                rights.0.insert(book.clone(), may);
            }
        }
        let mut admin = user.admin;
        if let By::Token(token) = &by {
            rights = rights.only(|book, right| token.leaves(book, right));
            admin &= token.is_whole();
        }
        let User { login, email, .. } = user.clone();
        Ok(Principal { login, full_name: user.shown().to_owned(), email, admin, rights, by })
    }

    fn access_in(&self, known: &Known, book: &str) -> Access {
        let found = known.access.get(&book.to_lowercase()).or_else(|| known.access.get(EVERY_BOOK));
        found.cloned().unwrap_or_else(|| Access::usual(&self.settings.guests))
    }

    /// Somebody who says nothing about themselves.
    pub fn guest(&self) -> Result<Principal> {
        self.principal(&User::default(), By::Nothing)
    }

    /// Whom the installation belongs to.
    pub fn owner(&self) -> Result<Principal> {
        self.principal(&User { admin: true, ..User::new(&self.settings.owner) }, By::Owner)
    }

    /// Who has this login and password, which come with a request and begin no session. ELOG's digest is taken if the site says so.
    pub fn by_password(&self, login: &str, password: &str, from: IpAddr) -> Result<Principal> {
        let user = self.check_password(login, password, from)?;
        self.principal(&user, By::Password { generation: user.generation })
    }

    /// Begins a session. Returns who it is, and the secret for the cookie.
    pub fn log_in(&self, login: &str, password: &str, from: IpAddr) -> Result<(Principal, String)> {
        let user = self.check_password(login, password, from)?;
        let secret = secret()?;
        let name = digest(&secret);
        self.make_room(login)?;
        let at = now();
        let session = Session { login: user.login.clone(), generation: user.generation, begun: at, used: at };
        self.write(session::KIND, &name, &session, Some(0))?;
        let form = form_token(&secret);
        Ok((self.principal(&user, By::Session { name, form })?, secret))
    }

    /// Ends what of sessions has ended, and one of this login if there are too many.
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

    /// Whose session this is the secret of. The session is used by it, and so goes on.
    pub fn by_session(&self, secret: &str) -> Result<Principal> {
        self.session(secret, true)
    }

    fn session(&self, secret: &str, uses: bool) -> Result<Principal> {
        let ended = |why| PeopleError::Ended("session", why);
        let name = digest(secret);
        let record = self.store.record(session::KIND, &name)?.ok_or(ended("log in again"))?;
        let mut session: Session = PeopleError::read(session::KIND, &name, record.value)?;
        let now = now();
        let lives = session.lives(now, self.settings.idle, self.settings.longest);
        let Some(user) = self.user_of(&session.login, session.generation)?.filter(|_| lives) else {
            self.store.drop_record(session::KIND, &name)?;
            return Err(ended("log in again"));
        };
        if uses && now.0.saturating_sub(session.used.0) > USED {
            session.used = now;
            // Somebody else has just written the same, or ended it; neither is to be undone.
            let _ = self.write(session::KIND, &name, &session, Some(record.version));
        }
        self.principal(&user, By::Session { name, form: form_token(secret) })
    }

    /// The user of a login, if they may do something and are of this generation still.
    fn user_of(&self, login: &str, generation: u32) -> Result<Option<User>> {
        let fits = |user: &User| user.generation == generation && !user.inactive;
        if let Some(user) = self.known()?.users.get(login).filter(|user| fits(user)) {
            return Ok(Some(user.clone()));
        }
        // What is known may be older than what begins here: another hub has just made the user, or given a password.
        match self.user(login) {
            Ok(user) if fits(&user) => {
                self.forget();
                Ok(Some(user))
            }
            Ok(_) | Err(PeopleError::NoUser(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Who somebody is now who was met a while ago and has been here since, by the `secret` of their session or token if they have one. An
    /// error if the same request would be refused now, or be another's. It is no use of the session or the token: only who asks for something
    /// keeps those.
    pub fn look_again(&self, met: &Principal, secret: Option<&str>) -> Result<Principal> {
        let ended = || PeopleError::Ended("login", "ask again");
        match (&met.by, secret) {
            (By::Nothing, _) => self.guest(),
            (By::Session { .. }, Some(secret)) => self.session(secret, false),
            (By::Token(_), Some(text)) => self.token(text, false),
            (By::Owner, Some(text)) if lock(&self.owner).as_ref() == Some(&digest(text)) => self.owner(),
            (By::Owner, None) if self.is_open()? => self.owner(),
            (By::Password { generation }, _) => {
                let user = self.user_of(&met.login, *generation)?.ok_or_else(ended)?;
                self.principal(&user, met.by.clone())
            }
            _ => Err(ended()),
        }
    }

    /// Ends a session; it may have ended already.
    pub fn log_out(&self, secret: &str) -> Result<bool> {
        Ok(self.store.drop_record(session::KIND, &digest(secret))?)
    }

    /// Whose token this is.
    pub fn by_token(&self, text: &str) -> Result<Principal> {
        self.token(text, true)
    }

    fn token(&self, text: &str, uses: bool) -> Result<Principal> {
        let ended = |why| PeopleError::Ended("token", why);
        let name = digest(text);
        if lock(&self.owner).as_ref() == Some(&name) {
            return self.owner();
        }
        let record = self.store.record(token::KIND, &name)?.ok_or(ended("have a new one made"))?;
        let mut token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
        let now = now();
        if token.expires.is_some_and(|expires| now >= expires) {
            return Err(ended("its time is over"));
        }
        let user = self.known()?.users.get(&token.login).filter(|user| !user.inactive).cloned();
        let user = user.ok_or(ended("its user cannot log in any longer"))?;
        if uses && token.used.is_none_or(|used| now.0.saturating_sub(used.0) > USED) {
            token.used = Some(now);
            let _ = self.write(token::KIND, &name, &token, Some(record.version));
        }
        self.principal(&user, By::Token(token))
    }

    fn check_password(&self, login: &str, password: &str, from: IpAddr) -> Result<User> {
        let user = self.known()?.users.get(login).cloned();
        let kept = user.as_ref().and_then(|user| user.password.clone());
        let seen = self.seen(login, password, kept.as_ref());
        if let Some(user) = &user
            && !user.inactive
            && self.is_remembered(&seen)
        {
            return Ok(user.clone());
        }
        // The same wrong password again is no guess: a browser sends an old cookie with each request.
        if lock(&self.wrong).get(&seen).is_some_and(|at| at.elapsed() < REMEMBER) {
            return Err(PeopleError::Wrong);
        }
        self.attempts.begin(login, from, Instant::now())?;
        let found = match &kept {
            Some(kept) => self.is_password(kept, password).then_some(user).flatten(),
            None => {
                let other = self.ask_others(login, password).inspect_err(|_| self.attempts.unknown(login, from))?;
                if other.is_none() {
                    self.is_password(&Password::nobodys(), password);
                }
                other
            }
        };
        // Of others it is not known when a password becomes right.
        if found.is_none() && (kept.is_some() || self.others.is_empty()) {
            remember(&self.wrong, seen);
        }
        let user = found.filter(|user| !user.inactive).ok_or(PeopleError::Wrong)?;
        self.attempts.right(login, from);
        if kept.as_ref().is_some_and(Password::is_old) && !crate::elog::password::is_hash(password) {
            let new = Password::of(password)?;
            // The generation stays: it is the same password.
            return self.change_user(login, |user| user.password = Some(new.clone()));
        }
        remember(&self.right, seen);
        Ok(user)
    }

    fn ask_others(&self, login: &str, password: &str) -> Result<Option<User>> {
        for other in &self.others {
            if let Some(told) = other.authenticate(login, password).map_err(PeopleError::Elsewhere)? {
                let User { full_name, email, groups, .. } = told;
                let new = |user: &mut User| {
                    (user.full_name, user.email, user.groups) = (full_name.clone(), email.clone(), groups.clone());
                };
                let known = self.store.record(user::KIND, login)?.is_some();
                if !known {
                    self.add_user(User::new(login))?;
                }
                return self.change_user(login, new).map(Some);
            }
        }
        Ok(None)
    }

    /// A login and a password that were right, together with what was kept then, under a key that nobody else has.
    fn seen(&self, login: &str, password: &str, kept: Option<&Password>) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        for part in [login, password, kept.map_or("", Password::line)] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    fn is_remembered(&self, seen: &[u8; 32]) -> bool {
        lock(&self.right).get(seen).is_some_and(|at| at.elapsed() < REMEMBER)
    }

    /// Hashes, a few at a time.
    fn is_password(&self, kept: &Password, password: &str) -> bool {
        let mut hashing = lock(&self.hashing.0);
        while *hashing >= HASHING {
            hashing = self.hashing.1.wait(hashing).unwrap_or_else(PoisonError::into_inner);
        }
        *hashing += 1;
        drop(hashing);
        let given = if self.settings.accept_elog_hashes { Given::PlainOrDigest(password) } else { Given::Plain(password) };
        let is = kept.is(given);
        *lock(&self.hashing.0) -= 1;
        self.hashing.1.notify_one();
        is
    }

    // Looking after them. Who may do so is asked by whoever calls.

    fn write<T: Serialize>(&self, kind: &str, name: &str, value: &T, expected: Option<u64>) -> Result<u64> {
        let value = serde_json::to_value(value).map_err(|error| PeopleError::Invalid(error.to_string()))?;
        Ok(self.store.put_record(kind, name, &value, expected)?)
    }

    /// All users, by login.
    pub fn users(&self) -> Result<Vec<User>> {
        let users = self.store.records(user::KIND)?.into_iter();
        users.map(|(name, record)| PeopleError::read(user::KIND, &name, record.value)).collect()
    }

    /// The logins and the names of all users, as they were within [`FRESH`].
    pub fn names(&self) -> Result<Vec<(String, String)>> {
        Ok(self.known()?.users.values().map(|user| (user.login.clone(), user.shown().to_owned())).collect())
    }

    /// One user.
    pub fn user(&self, login: &str) -> Result<User> {
        let record = self.store.record(user::KIND, login)?.ok_or_else(|| PeopleError::NoUser(login.to_owned()))?;
        PeopleError::read(user::KIND, login, record.value)
    }

    /// Makes a user.
    pub fn add_user(&self, user: User) -> Result<()> {
        user.check()?;
        match self.write(user::KIND, &user.login, &user, Some(0)) {
            Err(PeopleError::Store(StoreError::RecordChanged { .. })) => Err(PeopleError::IsThere(user.login)),
            done => done.map(|_| self.forget()),
        }
    }

    /// Changes a user, and returns what it is now. `change` may be called again, if somebody else changes the same user.
    pub fn change_user(&self, login: &str, mut change: impl FnMut(&mut User)) -> Result<User> {
        loop {
            let record = self.store.record(user::KIND, login)?.ok_or_else(|| PeopleError::NoUser(login.to_owned()))?;
            let mut user: User = PeopleError::read(user::KIND, login, record.value)?;
            let was_inactive = user.inactive;
            change(&mut user);
            user.login = login.to_owned();
            if user.inactive && !was_inactive {
                user.generation = user.generation.wrapping_add(1);
            }
            user.check()?;
            match self.write(user::KIND, login, &user, Some(record.version)) {
                Err(PeopleError::Store(StoreError::RecordChanged { .. })) => {}
                done => {
                    done?;
                    self.forget();
                    return Ok(user);
                }
            }
        }
    }

    /// Gives a user another password; their sessions end.
    pub fn set_password(&self, login: &str, password: &str) -> Result<()> {
        let new = Password::new(password)?;
        self.change_user(login, |user| {
            user.password = Some(new.clone());
            user.generation = user.generation.wrapping_add(1);
        })?;
        self.end_sessions(login)
    }

    /// Ends all sessions of a user.
    pub fn end_sessions(&self, login: &str) -> Result<()> {
        for (name, record) in self.store.records(session::KIND)? {
            if PeopleError::read::<Session>(session::KIND, &name, record.value)?.login == login {
                self.store.drop_record(session::KIND, &name)?;
            }
        }
        Ok(())
    }

    /// Takes a user away, with their sessions and tokens. What they have written stays, under their login.
    pub fn drop_user(&self, login: &str) -> Result<()> {
        if !self.store.drop_record(user::KIND, login)? {
            return Err(PeopleError::NoUser(login.to_owned()));
        }
        self.forget();
        self.end_sessions(login)?;
        for token in self.tokens(Some(login))? {
            self.drop_token(login, &token.id)?;
        }
        Ok(())
    }

    /// Groups and who is in them, by name.
    pub fn groups(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for user in self.users()? {
            user.groups.into_iter().for_each(|group| groups.entry(group).or_default().push(user.login.clone()));
        }
        Ok(groups)
    }

    /// Says who is in a group; with nobody in it there is no group.
    pub fn set_group(&self, group: &str, members: &[String]) -> Result<()> {
        check_name(group)?;
        members.iter().try_for_each(|login| self.user(login).map(drop))?;
        for user in self.users()? {
            let (is, shall) = (user.groups.iter().any(|name| name == group), members.contains(&user.login));
            if is != shall {
                self.change_user(&user.login, |user| {
                    user.groups.retain(|name| name != group);
                    if shall {
                        user.groups.push(group.to_owned());
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Who may do what in a book; `*` is what holds for books of which nothing is said. And whether something was said of this one.
    pub fn access(&self, book: &str) -> Result<(Access, bool)> {
        let said = self.store.record(access::KIND, &book.to_lowercase())?;
        match said {
            Some(record) => Ok((PeopleError::read(access::KIND, book, record.value)?, true)),
            None if book == EVERY_BOOK => Ok((Access::usual(&self.settings.guests), false)),
            None => Ok((self.access(EVERY_BOOK)?.0, false)),
        }
    }

    /// Says who may do what in a book, or with `*` in those of which nothing is said.
    pub fn set_access(&self, book: &str, access: &Access) -> Result<()> {
        if access.grants.len() > access::MAX_GRANTS {
            return Err(PeopleError::Invalid(format!("{} grants; at most {}", access.grants.len(), access::MAX_GRANTS)));
        }
        if book != EVERY_BOOK {
            self.store.book(book)?;
        }
        self.write(access::KIND, &book.to_lowercase(), access, None)?;
        self.forget();
        Ok(())
    }

    /// Tokens, of one user or of all.
    pub fn tokens(&self, of: Option<&str>) -> Result<Vec<ApiToken>> {
        let mut tokens = Vec::new();
        for (name, record) in self.store.records(token::KIND)? {
            let token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
            if of.is_none_or(|login| token.login == login) {
                tokens.push(token);
            }
        }
        tokens.sort_by(|a, b| (&a.login, a.made).cmp(&(&b.login, b.made)));
        Ok(tokens)
    }

    /// Makes a token. What it says of its id and its time is made here. Returns it and its secret, which is told this once.
    pub fn make_token(&self, token: ApiToken) -> Result<(ApiToken, String)> {
        self.user(&token.login)?;
        if token.comment.chars().count() > MAX_COMMENT || token.comment.chars().any(char::is_control) {
            return Err(PeopleError::Invalid(format!("a token's remark has at most {MAX_COMMENT} characters, in one line")));
        }
        if token.books.len() > access::MAX_GRANTS {
            return Err(PeopleError::Invalid(format!("{} logbooks; at most {}", token.books.len(), access::MAX_GRANTS)));
        }
        token.books.iter().try_for_each(|book| self.store.book(book).map(drop))?;
        if self.tokens(Some(&token.login))?.len() >= MAX_TOKENS {
            return Err(PeopleError::Invalid(format!("'{}' has {MAX_TOKENS} tokens; end some of them", token.login)));
        }
        let text = format!("{}{}", token::PREFIX, secret()?);
        let name = digest(&text);
        let token = ApiToken { id: name[..12].to_owned(), made: now(), used: None, ..token };
        self.write(token::KIND, &name, &token, Some(0))?;
        Ok((token, text))
    }

    /// Ends a token of a user.
    pub fn drop_token(&self, login: &str, id: &str) -> Result<()> {
        for (name, record) in self.store.records(token::KIND)? {
            let token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
            if token.id == id && token.login == login {
                self.store.drop_record(token::KIND, &name)?;
                return Ok(());
            }
        }
        Err(PeopleError::NoToken(id.to_owned()))
    }
}

#[cfg(test)]
mod tests;
