//! A parsed request: the caller, the site, the address, and within a book its settings.

use std::{io::Read, ops::Deref, sync::Arc};

use tampu_logbook::{
    book::{Book, same_name},
    entry::{Entry, EntryRef},
    people::{Caller, ElogRules, Right},
    search::Stop,
    store::{BookInfo, StoreError},
};
use tampu_types::Time;

use crate::pages::{
    access::{self, AccessDenied},
    address::{self, AddressTarget, Parameters, escape},
    browser,
    clock::Zone,
    command::PageCommand,
    form::source::FormSource,
    hosts,
    settings::BookSettings,
    site::Site,
    words::Words,
};

/// A request whose head was read; its handler reads the body. A [`Stop`] among its extensions ends its search.
pub type HttpRequest<'a> = http::Request<&'a mut (dyn Read + Send)>;

/// A parsed request with its caller.
pub struct PageRequest<'a> {
    pub site: &'a Site,
    pub caller: &'a Caller,
    /// The target of the path, in the book.
    pub target: AddressTarget,
    /// The parameters after the `?`.
    pub query: Parameters,
    /// The public address of the site, without a slash at the end.
    pub base: String,
    /// The path from a page back to the page of all books.
    pub root: &'static str,
    /// The secret of its session.
    pub session: Option<String>,
    /// True if a browser sent it, perhaps because of a page of another site.
    pub by_browser: bool,
    /// The origin of the request, if a browser sent it.
    pub origin: browser::BrowserOrigin,
    /// The signal that ends long work.
    pub stop: Stop,
    /// The time of its arrival.
    pub now: Time,
    /// The site's local time.
    pub zone: Zone,
    /// The texts of the language.
    pub(super) words: Arc<Words>,
}

/// A request in a book that the caller may read.
pub struct BookRequest<'a> {
    pub request: PageRequest<'a>,
    pub book: Book,
    /// The settings of the book.
    pub settings: BookSettings,
}

/// A request that outlives its handler, because its response is sent in pieces.
pub struct OwnedBookRequest {
    site: Site,
    caller: Caller,
    target: AddressTarget,
    query: Parameters,
    base: String,
    root: &'static str,
    session: Option<String>,
    origin: browser::BrowserOrigin,
    by_browser: bool,
    stop: Stop,
    now: Time,
    zone: Zone,
    words: Arc<Words>,
    book: Book,
    settings: BookSettings,
}

impl OwnedBookRequest {
    /// Calls `act` with the request.
    pub fn with<T>(&self, act: impl FnOnce(&BookRequest<'_>) -> T) -> T {
        let request = PageRequest {
            site: &self.site,
            caller: &self.caller,
            target: self.target.clone(),
            query: self.query.clone(),
            base: self.base.clone(),
            root: self.root,
            session: self.session.clone(),
            by_browser: self.by_browser,
            origin: self.origin,
            stop: self.stop.clone(),
            now: self.now,
            zone: self.zone.clone(),
            words: self.words.clone(),
        };
        act(&BookRequest { request, book: self.book.clone(), settings: self.settings.clone() })
    }
}

impl<'a> Deref for BookRequest<'a> {
    type Target = PageRequest<'a>;

    fn deref(&self) -> &PageRequest<'a> {
        &self.request
    }
}

impl<'a> PageRequest<'a> {
    /// Returns the command of the address.
    pub fn command(&self) -> Option<PageCommand> {
        let name = self.query.get("cmd")?;
        // The hub knows commands that change something by their English names.
        let of_language = || PageCommand::named(&self.words.english(name)).filter(|command| command.right() == Right::Read);
        PageCommand::named(name).or_else(of_language)
    }

    /// Returns a text of elogd in the language of the page.
    pub fn word<'w>(&'w self, english: &'w str) -> &'w str {
        self.words.said(english, english)
    }

    /// Returns a text of elogd in the language of the page, or `own` in English.
    pub fn said<'w>(&'w self, elog: &str, own: &'w str) -> &'w str {
        self.words.said(elog, own)
    }

    /// Returns true if a program logs in by its address. A browser's request cannot log in this way, because any page
    /// can cause it.
    pub(super) fn logs_in(&self) -> bool {
        !self.by_browser && self.query.get("uname").is_some() && self.query.get("upassword").is_some()
    }

    /// Writes a time on a page of the site, in the site's zone and `Time format`.
    pub(super) fn site_time(&self, at: Time) -> String {
        let global = self.site.record().map(|record| BookSettings::of_options(&record.global)).unwrap_or_default();
        self.zone.write(at, 0, global.time_format(None))
    }

    /// Returns the path of the site's pages, without scheme and host.
    pub(super) fn base_path(&self) -> &str {
        self.base.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or_default()
    }

    pub(super) fn reads_nothing(&self) -> bool {
        !self.caller.rights.0.values().any(|rights| rights.contains(&Right::Read))
    }

    /// Returns true if the caller sees a book among others.
    pub fn sees(&self, info: &BookInfo) -> bool {
        self.caller.rights.may(Right::Read, &info.book.name) && hosts::is_open(&info.book, self.caller.from)
    }

    /// Returns true if the caller may read a book.
    pub fn reads(&self, name: &str) -> bool {
        let may = |book: Book| access::check(self.caller, &book, &BookSettings::of(&book), PageCommand::List).is_ok();
        self.caller.rights.may(Right::Read, name) && self.site.store.book(name).is_ok_and(may)
    }
}

impl BookRequest<'_> {
    /// Returns an owned copy of the request for later use.
    pub fn to_owned_request(&self) -> OwnedBookRequest {
        OwnedBookRequest {
            site: self.site.clone(),
            caller: self.caller.clone(),
            target: self.target.clone(),
            query: self.query.clone(),
            base: self.base.clone(),
            root: self.root,
            session: self.session.clone(),
            origin: self.origin,
            by_browser: self.by_browser,
            stop: self.stop.clone(),
            now: self.now,
            zone: self.zone.clone(),
            words: self.words.clone(),
            book: self.book.clone(),
            settings: self.settings.clone(),
        }
    }

    /// Returns an entry of this book, without the attributes that are hidden from the caller.
    pub fn read_entry(&self, id: u32) -> Result<Entry, StoreError> {
        let mut entry = self.site.store.entry(&EntryRef::new(&self.book.name, id))?;
        entry.keep_shown(self.shown().as_deref());
        Ok(entry)
    }

    /// Returns the facts from which a form of this book is filled in.
    pub fn form_source(&self) -> FormSource<'_> {
        FormSource {
            store: self.site.store(),
            caller: self.caller,
            book: &self.book,
            settings: &self.settings,
            zone: &self.zone,
            now: self.now,
            stop: &self.stop,
        }
    }

    /// Returns the attributes of this book that the caller sees; `None` stands for all.
    pub fn shown(&self) -> Option<Vec<String>> {
        self.shown_in(&self.book)
    }

    fn shown_in(&self, book: &Book) -> Option<Vec<String>> {
        ElogRules::of(book).shown_to(&self.caller.login, self.caller.rights.of(&book.name))
    }

    /// Returns the books of which the caller sees some attributes only, with these attributes.
    pub fn shown_in_all(&self) -> Result<Vec<(String, Vec<String>)>, StoreError> {
        let shown = |book: &Book| Some((book.name.clone(), self.shown_in(book)?));
        // The book of the request was read for it; the others may be a second old.
        let books = self.site.books()?;
        let others = books.iter().map(|info| &info.book).filter(|book| book.name != self.book.name);
        Ok(std::iter::once(&self.book).chain(others).filter_map(shown).collect())
    }

    /// Returns the public address of a place in this book.
    pub fn address(&self, rest: &str) -> String {
        format!("{}/{}/{rest}", self.base, address::escape(&self.book.name))
    }

    /// Checks that the caller may use a command here.
    pub fn may(&self, command: PageCommand) -> Result<(), AccessDenied> {
        access::check(self.caller, &self.book, &self.settings, command)
    }

    /// Returns the readable books of the same top group; all books of a site without groups.
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

    /// Returns the address of a target in a book, relative to a page.
    pub fn link(&self, book: &str, rest: &str) -> String {
        format!("{}{}/{rest}", self.root, escape(book))
    }
}
