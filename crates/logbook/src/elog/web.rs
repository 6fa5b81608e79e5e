//! ELOG's dialect of HTTP: a site's bookmarks, browsers and programs go on as they did. A request goes in, an answer comes out; sockets,
//! time limits and who somebody is are the hub's.
//!
//! | part | module |
//! |-|-|
//! | what an address names | [`address`] |
//! | commands, and who may use them | [`command`], [`access`], [`hosts`] |
//! | what a book's configuration says | [`settings`], [`subst`] |
//! | a search from an address | [`find`], [`ere`], [`paging`] |
//! | pages | [`list`], [`entry`], [`form`], [`finder`], [`desk`] |
//! | what all pages have | [`layout`], [`html`], [`style`] |
//! | local times | [`clock`] |
//! | what forms and programs send | [`post`], [`multipart`], [`csrf`] |
//! | files, tables, RSS | [`formats`] |
//!
//! Pages need no scripts; there is one, of which the header gives the digest, that asks for the form again when a choice decides what
//! else it has. Links between pages are relative, so that a proxy may put the site anywhere; `Location` is absolute, as ELOG's clients want it.

use std::{
    io::{self, Read},
    net::IpAddr,
    ops::Deref,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use http::{Method, StatusCode, header};
use tampu_types::Time;

use crate::{
    book::{Book, same_name},
    people::{People, Right, Rights, session},
    search::Stop,
    store::{BookInfo, Store, StoreError},
};
use access::Denied;
use address::{MAX_ADDRESS, Parameters, Place};
use command::Command;
use settings::Settings;

pub mod access;
pub mod address;
pub mod clock;
pub mod command;
pub mod csrf;
pub mod desk;
pub mod entry;
pub mod ere;
pub mod find;
pub mod finder;
pub mod form;
pub mod formats;
pub mod hosts;
pub mod html;
pub mod layout;
pub mod list;
pub mod multipart;
pub mod paging;
pub mod post;
pub mod sent;
pub mod settings;
pub mod style;
pub mod subst;
pub mod values;

pub use clock::Zone;

/// How long the list of books is used before the store is asked again.
const BOOKS_FRESH: Duration = Duration::from_secs(1);

/// A request, as far as it was read: the body is read by whoever answers it. A [`Stop`] among its extensions ends its search.
pub type Request<'a> = http::Request<&'a mut (dyn Read + Send)>;

/// Who asks, from where.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name they log in with; empty for a guest.
    pub login: String,
    /// The name people know.
    pub full_name: String,
    /// Their address for mail; empty if there is none.
    pub email: String,
    /// Where the request comes from; what a trusted proxy says if there is one.
    pub from: IpAddr,
    /// What they may, by book; the hub has asked for it.
    pub rights: Rights,
}

/// What is answered.
pub type Response = http::Response<Body>;

/// What an answer carries.
pub enum Body {
    /// All of it.
    Bytes(Vec<u8>),
    /// This many bytes, read while they are sent.
    Read(Box<dyn Read + Send>, u64),
    /// Pieces, made while they are sent; the end is the end of the connection or of the last chunk.
    Pieces(Box<dyn Iterator<Item = io::Result<Vec<u8>>> + Send>),
}

/// What a site says beside its books' configurations.
#[derive(Debug, Clone)]
pub struct SiteConfig {
    /// The path before everything, as `/elog`; empty for none. A request that does not have it, because a proxy took it off, is understood too.
    pub prefix: String,
    /// Where the site is for the world, as `https://site/elog`; empty: what `URL` or the proxy's or the request's own header says.
    pub url: String,
    /// Its local time.
    pub zone: Zone,
    /// The directory with its themes and files of styles.
    pub themes: Option<PathBuf>,
    /// What forms are signed with; the same in all hubs of a site.
    pub secret: [u8; 32],
    /// After this time a search ends with what it has.
    pub search_time: Duration,
    /// Up to how many entries that a search finds are counted.
    pub count_to: u64,
    /// Logins and full names, for attributes that are users, where nobody can log in.
    pub users: Vec<(String, String)>,
}

impl Default for SiteConfig {
    fn default() -> SiteConfig {
        SiteConfig {
            prefix: String::new(),
            url: String::new(),
            zone: Zone::default(),
            themes: None,
            secret: [0; 32],
            search_time: Duration::from_secs(5),
            count_to: 1000,
            users: Vec::new(),
        }
    }
}

/// A site: its books, as ELOG would show them. A clone is the same site.
#[derive(Clone)]
pub struct Site {
    store: Arc<dyn Store>,
    people: Option<Arc<People>>,
    config: Arc<SiteConfig>,
    books: Arc<Mutex<Option<KnownBooks>>>,
    marks: Arc<paging::Marks>,
}

/// All books, and when they were asked for.
type KnownBooks = (Instant, Arc<Vec<BookInfo>>);

/// A request that was read, and who asks.
pub struct Ask<'a> {
    /// Where.
    pub site: &'a Site,
    /// Who.
    pub caller: &'a Caller,
    /// What the path names, in the book.
    pub place: Place,
    /// What stands behind the `?`.
    pub query: Parameters,
    /// Where the site is for the world, without a slash at the end.
    pub base: String,
    /// From a page back to the page of all books.
    pub root: &'static str,
    /// The secret of the session that it came with.
    pub session: Option<String>,
    /// Whether a browser sent it, which another site can have made it do.
    pub by_browser: bool,
    /// How a browser came to send it.
    pub coming: csrf::Coming,
    /// Ends what takes long.
    pub stop: Stop,
    /// When it was asked.
    pub now: Time,
}

/// A request in a book that the caller may read.
pub struct BookAsk<'a> {
    /// The request.
    pub ask: Ask<'a>,
    /// The book.
    pub book: Book,
    /// What its configuration says.
    pub settings: Settings,
}

/// A request that goes on while its answer is sent: all of it, and nothing borrowed.
pub struct Held {
    site: Site,
    caller: Caller,
    place: Place,
    query: Parameters,
    base: String,
    root: &'static str,
    coming: csrf::Coming,
    by_browser: bool,
    stop: Stop,
    now: Time,
    book: Book,
    settings: Settings,
}

impl Held {
    /// Goes on with the request.
    pub fn with<T>(&self, act: impl FnOnce(&BookAsk<'_>) -> T) -> T {
        let ask = Ask {
            site: &self.site,
            caller: &self.caller,
            place: self.place.clone(),
            query: self.query.clone(),
            base: self.base.clone(),
            root: self.root,
            session: None,
            by_browser: self.by_browser,
            coming: self.coming,
            stop: self.stop.clone(),
            now: self.now,
        };
        act(&BookAsk { ask, book: self.book.clone(), settings: self.settings.clone() })
    }
}

impl<'a> Deref for BookAsk<'a> {
    type Target = Ask<'a>;

    fn deref(&self) -> &Ask<'a> {
        &self.ask
    }
}

impl Site {
    /// A site on these books.
    pub fn new(store: Arc<dyn Store>, config: SiteConfig) -> Site {
        let prefix = format!("/{}", config.prefix.trim_matches('/'));
        let config = SiteConfig { prefix: if prefix == "/" { String::new() } else { prefix }, ..config };
        Site { store, people: None, config: Arc::new(config), books: Arc::default(), marks: Arc::default() }
    }

    /// The same, where people can log in.
    pub fn with_people(self, people: Arc<People>) -> Site {
        Site { people: Some(people), ..self }
    }

    /// What keeps its books.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// What it was made with.
    pub fn config(&self) -> &SiteConfig {
        &self.config
    }

    /// All books, as they were within the last second.
    pub fn books(&self) -> Result<Arc<Vec<BookInfo>>, StoreError> {
        let mut known = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, books)) = &*known
            && at.elapsed() < BOOKS_FRESH
        {
            return Ok(books.clone());
        }
        let books = Arc::new(self.store.books()?);
        *known = Some((Instant::now(), books.clone()));
        Ok(books)
    }

    /// Logins and full names, for attributes that are users. Where users cannot be told a page has none of them to choose from.
    pub fn users(&self) -> Vec<(String, String)> {
        match &self.people {
            Some(people) => people.names().unwrap_or_default(),
            None => self.config.users.clone(),
        }
    }

    /// Answers a request.
    pub fn answer(&self, caller: &Caller, request: Request<'_>) -> Response {
        let uri = request.uri();
        if uri.path().len() + uri.query().map_or(0, str::len) > MAX_ADDRESS {
            return layout::bare(StatusCode::URI_TOO_LONG, "The address is too long");
        }
        let path = uri.path();
        let path = path.strip_prefix(&self.config.prefix).filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(path);
        let (book, place) = address::path(path);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let base = self.base(&request);
        let ask = Ask {
            site: self,
            caller,
            root: if book.is_some() { "../" } else { "" },
            place,
            query: Parameters::read(uri.query().unwrap_or_default()),
            base: base.clone(),
            session: csrf::cookie(request.headers(), session::COOKIE),
            by_browser: csrf::is_browser(request.headers()),
            coming: csrf::Coming::of(request.headers(), &base),
            stop: request.extensions().get::<Stop>().cloned().unwrap_or_default(),
            now: Time::from_unix(now.as_secs() as i64, now.subsec_nanos()),
        };
        let mut response = match book {
            None => ask.outside(request),
            Some(book) => ask.open(&book, request),
        };
        layout::harden(&mut response);
        response
    }

    /// Where the site is for the world: what is configured, else what a proxy says, else what the request was sent to.
    fn base(&self, request: &Request<'_>) -> String {
        if !self.config.url.is_empty() {
            return self.config.url.trim_end_matches('/').to_owned();
        }
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]/~".contains(&byte));
        let header = |name: &str| {
            let value = request.headers().get(name)?.to_str().ok()?;
            // Of several proxies the first is the one the browser spoke to.
            Some(value.split(',').next().unwrap_or_default().trim().to_owned()).filter(|value| !value.is_empty() && plain(value))
        };
        let scheme = header("x-forwarded-proto").filter(|scheme| scheme == "https").unwrap_or_else(|| "http".to_owned());
        let host = header("x-forwarded-host").or_else(|| header("host")).unwrap_or_else(|| "localhost".to_owned());
        let prefix = header("x-forwarded-prefix").unwrap_or_else(|| self.config.prefix.clone());
        format!("{scheme}://{}/{}", host.trim_matches('/'), prefix.trim_matches('/')).trim_end_matches('/').to_owned()
    }
}

impl<'a> Ask<'a> {
    /// What is not in a book.
    fn outside(self, request: Request<'_>) -> Response {
        if let Place::Style(name) = &self.place {
            return style::answer(self.site, name);
        }
        match *request.method() {
            Method::POST => post::outside(&self, request),
            Method::GET if self.logs_in() => {
                post::login::login(&self, None, &sent::Form::of_query(request.uri().query().unwrap_or_default()))
            }
            Method::GET | Method::HEAD => match self.command() {
                Some(Command::Login) => desk::login(&self, None),
                Some(Command::Logout) => desk::logout(&self),
                _ => desk::books(&self),
            },
            _ => layout::bare(StatusCode::METHOD_NOT_ALLOWED, "Only GET, HEAD and POST are understood"),
        }
    }

    /// The command it asks for.
    pub fn command(&self) -> Option<Command> {
        Command::named(self.query.get("cmd")?)
    }

    /// Whether a program logs in by an address. Of a browser that is not taken: any page can lead it there.
    fn logs_in(&self) -> bool {
        !self.by_browser && self.query.get("uname").is_some() && self.query.get("upassword").is_some()
    }

    /// Opens a book and answers there.
    fn open(self, name: &str, request: Request<'_>) -> Response {
        if let Place::Style(name) = &self.place {
            return style::answer(self.site, name);
        }
        if *request.method() == Method::GET && self.logs_in() {
            let book = self.site.store.book(name).ok();
            return post::login::login(&self, book.as_ref(), &sent::Form::of_query(request.uri().query().unwrap_or_default()));
        }
        let book = match self.site.store.book(name) {
            Ok(book) => book,
            Err(StoreError::NoBook(_)) if self.caller.login.is_empty() && self.reads_nothing() => {
                return desk::login(&self, None);
            }
            Err(StoreError::NoBook(_)) => return self.no_book(name),
            Err(error) => return self.failed(&error),
        };
        let settings = Settings::of(&book);
        let ask = BookAsk { ask: self, book, settings };
        if ask.place == Place::Bare {
            let address = format!("{}{}", ask.address(""), ask.query.written());
            return layout::redirect(&address);
        }
        match *request.method() {
            Method::POST => post::answer(&ask, request),
            Method::GET | Method::HEAD => ask.get(request),
            _ => layout::bare(StatusCode::METHOD_NOT_ALLOWED, "Only GET, HEAD and POST are understood"),
        }
    }

    fn reads_nothing(&self) -> bool {
        !self.caller.rights.0.values().any(|rights| rights.contains(&Right::Read))
    }

    fn no_book(&self, name: &str) -> Response {
        layout::error(self, StatusCode::NOT_FOUND, &format!("The logbook \"{name}\" is not defined here"))
    }

    /// Whether a book is shown to the caller among others.
    pub fn sees(&self, info: &BookInfo) -> bool {
        self.caller.rights.may(Right::Read, &info.book.name) && hosts::is_open(&info.book, self.caller.from)
    }

    /// Whether the caller may read a book.
    pub fn reads(&self, name: &str) -> bool {
        let may = |book: Book| access::check(self.caller, &book, &Settings::of(&book), Command::List).is_ok();
        self.caller.rights.may(Right::Read, name) && self.site.store.book(name).is_ok_and(may)
    }

    /// What failed below. A person is told what they can do something about; the rest is the hub's to log.
    pub fn failed(&self, error: &StoreError) -> Response {
        let (status, text) = match error {
            StoreError::NoBook(name) => return self.no_book(name),
            // ELOG answers 200 here, and its programs look for the text.
            StoreError::Gone(gone) if gone.moved_to.as_ref().is_some_and(|to| !self.reads(&to.book)) => {
                (StatusCode::OK, format!("This entry has been deleted: entry {} was moved", gone.at))
            }
            StoreError::NoEntry(_) | StoreError::Gone(_) => (StatusCode::OK, format!("This entry has been deleted: {error}")),
            StoreError::Query(_) => (StatusCode::NOT_FOUND, format!("Invalid search: {error}")),
            StoreError::Invalid(_) | StoreError::OtherSearch | StoreError::NoBlob(_) => {
                (StatusCode::BAD_REQUEST, error.to_string())
            }
            StoreError::Changed { .. } | StoreError::Answered(_) | StoreError::Locked { .. } => {
                (StatusCode::OK, error.to_string())
            }
            StoreError::Full(_) => (StatusCode::INSUFFICIENT_STORAGE, error.to_string()),
            full if full.is_disk_full() => {
                (StatusCode::INSUFFICIENT_STORAGE, "The disk of the logbook is full; nothing was changed".to_owned())
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "The logbook's store failed; the site's log says more".to_owned()),
        };
        let mut response = layout::error(self, status, &text);
        if status.is_server_error() {
            response.extensions_mut().insert(Failure(error.to_string()));
        }
        response
    }
}

/// What failed, for the log: an answer that is a server's error has it among its extensions.
#[derive(Debug, Clone)]
pub struct Failure(pub String);

impl BookAsk<'_> {
    /// The request, to go on with it later.
    pub fn held(&self) -> Held {
        Held {
            site: self.site.clone(),
            caller: self.caller.clone(),
            place: self.place.clone(),
            query: self.query.clone(),
            base: self.base.clone(),
            root: self.root,
            coming: self.coming,
            by_browser: self.by_browser,
            stop: self.stop.clone(),
            now: self.now,
            book: self.book.clone(),
            settings: self.settings.clone(),
        }
    }

    /// Where a place in this book is for the world.
    pub fn address(&self, rest: &str) -> String {
        format!("{}/{}/{rest}", self.base, address::escape(&self.book.name))
    }

    /// Whether the caller may use a command here.
    pub fn may(&self, command: Command) -> Result<(), Denied> {
        access::check(self.caller, &self.book, &self.settings, command)
    }

    /// The answer to somebody who may not.
    pub fn refuse(&self, denied: Denied) -> Response {
        match denied {
            Denied::Login => desk::login(self, Some(&self.book)),
            Denied::Forbidden(_) if self.coming.from_elsewhere => {
                let text = "Error: a page of another site led here, and may change nothing: come here from a page of the logbook, or write the address";
                layout::error(self, StatusCode::FORBIDDEN, text)
            }
            Denied::Forbidden(why) => layout::error(self, StatusCode::FORBIDDEN, &format!("Error: {why}")),
        }
    }

    /// The books the caller may read, of the same top group; all where there are no groups.
    pub fn group(&self) -> Result<Vec<String>, StoreError> {
        let books = self.site.books()?;
        let same = |info: &&BookInfo| match (&info.book.group, &self.book.group) {
            (Some(a), Some(b)) => same_name(a, b),
            (None, None) => true,
            _ => false,
        };
        let readable = books.iter().filter(|info| self.sees(info));
        Ok(readable.filter(same).map(|info| info.book.name.clone()).collect())
    }

    fn get(self, request: Request<'_>) -> Response {
        // An address with an unknown command is one of a later ELOG; the list is the best answer.
        let command = self.command();
        let needed = match command {
            Some(Command::Login) => return desk::login(&self, Some(&self.book)),
            Some(Command::Logout) => return desk::logout(&self),
            Some(command) if command.is_of_entry() && !matches!(self.place, Place::Entry(_)) => Command::List,
            Some(command) => command,
            None => Command::List,
        };
        if let Err(denied) = self.may(needed) {
            return self.refuse(denied);
        }
        // ELOG takes what is empty out of the address; a form sends every field it has.
        if self.query.0.iter().any(|(_, value)| value.is_empty()) {
            return self.without_empty(request.uri().path());
        }
        match (&self.place, command) {
            (_, Some(Command::Help)) => desk::help(&self),
            (_, Some(Command::Forgot | Command::ChangePassword)) => post::not_here(&self),
            (Place::Rss, _) => formats::rss(&self),
            (Place::Attachment(id, name), _) => formats::attachment(&self, *id, name, request.headers()),
            (_, Some(Command::Config)) => desk::config(&self),
            (_, Some(Command::New)) => form::new(&self),
            (_, Some(Command::Find)) => finder::answer(&self),
            (_, Some(Command::GetMd5)) => formats::md5(&self),
            (_, Some(Command::CsvImport | Command::XmlImport)) => post::import_form(&self),
            (Place::Entry(id), Some(Command::Edit)) => form::edit(&self, *id),
            (Place::Entry(id), Some(Command::Reply)) => form::reply(&self, *id),
            (Place::Entry(id), Some(Command::Duplicate)) => form::duplicate(&self, *id),
            (Place::Entry(id), Some(Command::Delete)) => post::delete(&self, *id),
            (Place::Entry(id), Some(Command::CopyTo)) => post::copy_to(&self, *id),
            (Place::Entry(id), Some(Command::MoveTo)) => post::move_to(&self, *id),
            (Place::Entry(id), Some(Command::Download)) => formats::entry(&self, *id),
            (Place::Entry(id), Some(Command::First | Command::Previous | Command::Next | Command::Last)) => {
                entry::step(&self, *id, command.unwrap_or(Command::Next))
            }
            (Place::Entry(_), Some(Command::List)) => layout::redirect(&self.address("")),
            (Place::Entry(id), _) => entry::answer(&self, *id),
            (Place::List(part), _) => match self.query.get("mode").and_then(formats::Format::named) {
                Some(format) => formats::list(&self, *part, format),
                None => list::answer(&self, *part),
            },
            (Place::Calendar, _) => desk::calendar(&self),
            (Place::Style(_) | Place::Books | Place::Bare, _) => layout::redirect(&self.address("")),
            (Place::Unknown(name), _) => {
                layout::error(&self, StatusCode::NOT_FOUND, &format!("The address \"{name}\" means nothing in this logbook"))
            }
        }
    }

    fn without_empty(&self, path: &str) -> Response {
        let kept = Parameters(self.query.0.iter().filter(|(_, value)| !value.is_empty()).cloned().collect());
        let path = path.strip_prefix(&self.site.config.prefix).unwrap_or(path);
        layout::redirect(&format!("{}{path}{}", self.base, kept.written()))
    }
}

/// An answer with these bytes.
pub fn response(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::Bytes(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
