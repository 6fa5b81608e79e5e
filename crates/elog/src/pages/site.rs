//! A site: books, people and configuration, in the form that ELOG's pages show.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderMap;
use parking_lot::Mutex;
use tampu_logbook::{
    entry::Encoding,
    export::pdf::typeset::Typesetter,
    mail::Outbox,
    people::People,
    render::{self, cache::RenderCache},
    store::{BookInfo, Store, StoreError},
};

use crate::{
    decode,
    pages::{clock::Zone, editors::Editors, html::SafeHtml, page_cursors::PageCursors, words::Words},
    site_files,
    site_record::{self, SiteRecord},
    site_zone,
};

/// The time for which a list of books is cached.
const BOOKS_FRESH: Duration = Duration::from_secs(1);

/// The configuration of a site, in addition to that of its books.
#[derive(Debug, Clone)]
pub struct SiteConfig {
    /// The path prefix of the site, such as `/elog`; may be empty. A request without it is accepted too, because a
    /// proxy may have removed it.
    pub prefix: String,
    /// The public address, such as `https://site/elog`. If it is empty, `URL`, the proxy's headers or the request
    /// define it.
    pub url: String,
    /// Its local time. [`Zone::OfEntry`] stands for the zone that an import has stored, if it has.
    pub zone: Zone,
    /// The directory with its themes and files of styles.
    pub themes: Option<PathBuf>,
    /// The key that signs forms; the same in all hubs of a site.
    pub secret: [u8; 32],
    /// Time limit of a search. A search that reaches it returns a partial result.
    pub search_time: Duration,
    /// Maximum number of counted results of a search.
    pub count_to: u64,
    /// Hosts from which pages may load images, as `https://plots.example.org`, besides the site itself.
    pub image_hosts: Vec<String>,
    /// True if programs may log in with a password in the address (`?uname=...&upassword=...`). Addresses stand in the logs
    /// of proxies.
    pub password_in_address: bool,
    /// True if tables (CSV) have the cells as they are, like elogd's. A spreadsheet runs those that begin like a formula.
    pub raw_csv: bool,
    /// Texts and addresses of links with which a login at a provider begins.
    pub logins: Vec<(String, String)>,
    /// Login methods with a logout of their own, and the addresses to which a logout leads.
    pub logouts: Vec<(String, String)>,
    /// Login methods that ask for the password again, and the addresses at which they do.
    pub repeats: Vec<(String, String)>,
    /// Logins and full names, for attributes whose values are users, on a site without logins.
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
            image_hosts: Vec::new(),
            password_in_address: false,
            raw_csv: false,
            logins: Vec::new(),
            logouts: Vec::new(),
            repeats: Vec::new(),
            users: Vec::new(),
        }
    }
}

/// Number of images whose existence is remembered.
const IMAGES: usize = 1000;

/// The names of images, whether the import has stored them, and the time of this knowledge.
type KnownImages = HashMap<String, (Instant, bool)>;

/// The texts of each language, and the time at which they were read.
type KnownWords = HashMap<String, (Instant, Arc<Words>)>;

/// A site: its books, with ELOG's pages. A clone is the same site.
#[derive(Clone)]
pub struct Site {
    pub(super) store: Arc<dyn Store>,
    pub(super) people: Option<Arc<People>>,
    pub(super) mail: Option<Arc<Outbox>>,
    /// The maker of PDF, if the program has one.
    pub(super) pdf: Option<Arc<Typesetter>>,
    pub(super) config: Arc<SiteConfig>,
    books: Arc<Mutex<Option<KnownBooks>>>,
    pub(super) marks: Arc<PageCursors>,
    /// The open forms of entries.
    pub(super) editors: Arc<Editors>,
    /// The texts of entries as HTML.
    pub(super) rendered: Arc<RenderCache>,
    /// The texts of languages, with the times at which they were read.
    words: Arc<Mutex<KnownWords>>,
    images: Arc<Mutex<KnownImages>>,
}

/// The books of a site, and what an import has stored beside them, as they were at a time.
#[derive(Clone)]
struct KnownBooks {
    read: Instant,
    books: Arc<Vec<BookInfo>>,
    zone: Zone,
    record: Arc<SiteRecord>,
}

impl Site {
    /// Creates a site on these books.
    pub fn new(store: Arc<dyn Store>, config: SiteConfig) -> Site {
        let prefix = format!("/{}", config.prefix.trim_matches('/'));
        let config = SiteConfig { prefix: if prefix == "/" { String::new() } else { prefix }, ..config };
        Site {
            store,
            people: None,
            mail: None,
            pdf: None,
            config: Arc::new(config),
            books: Arc::default(),
            marks: Arc::default(),
            editors: Arc::default(),
            rendered: Arc::default(),
            words: Arc::default(),
            images: Arc::default(),
        }
    }

    /// Returns the site with logins.
    pub fn with_people(self, people: Arc<People>) -> Site {
        Site { people: Some(people), ..self }
    }

    /// Returns the site with a sender of mail.
    pub fn with_mail(self, mail: Option<Arc<Outbox>>) -> Site {
        Site { mail, ..self }
    }

    /// Returns the site with a maker of PDF.
    pub fn with_pdf(self, pdf: Option<Arc<Typesetter>>) -> Site {
        Site { pdf, ..self }
    }

    /// Returns the site with a cache of rendered texts that others share.
    pub fn with_rendered(self, rendered: Arc<RenderCache>) -> Site {
        Site { rendered, ..self }
    }

    /// Returns the store of its books.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub fn config(&self) -> &SiteConfig {
        &self.config
    }

    /// Returns true if the site has no users. Every caller is then its owner.
    pub fn is_open(&self) -> bool {
        self.people.as_ref().is_some_and(|people| people.is_open().unwrap_or(false))
    }

    /// Returns the part of the imported configuration that belongs to no book, at most a second old.
    pub fn record(&self) -> Result<Arc<SiteRecord>, StoreError> {
        Ok(self.known()?.record)
    }

    /// Returns a file that the imported configuration names.
    pub fn file(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        site_files::stored(&*self.store, name)
    }

    /// Returns true if the import has stored an image of this name. The result is at most a second old.
    pub(super) fn has_image(&self, name: &str) -> bool {
        if !site_files::is_image(name) {
            return false;
        }
        let mut known = self.images.lock();
        if let Some((_, is_there)) = known.get(name).filter(|(read, _)| read.elapsed() < BOOKS_FRESH) {
            return *is_there;
        }
        // A page without its images is still complete.
        let is_there = site_files::is_stored(&*self.store, name).unwrap_or(false);
        if known.len() >= IMAGES {
            known.clear();
        }
        known.insert(name.to_owned(), (Instant::now(), is_there));
        is_there
    }

    /// Returns the texts of a language, or of that of `[global]`; English if the import has not found its file.
    pub(super) fn words(&self, language: Option<&str>) -> Arc<Words> {
        let global = || {
            let record = self.record().ok()?;
            record.global.iter().find(|(name, _)| name.eq_ignore_ascii_case("language")).map(|(_, value)| value.clone())
        };
        let Some(language) = language.map(str::to_owned).or_else(global).filter(|name| !name.is_empty()) else {
            return Arc::default();
        };
        let mut known = self.words.lock();
        if let Some((_, words)) = known.get(&language).filter(|(read, _)| read.elapsed() < BOOKS_FRESH) {
            return words.clone();
        }
        let file = self.file(&site_files::language_file(&language)).ok().flatten();
        let words = Arc::new(file.map(|bytes| Words::read(&language, &bytes)).unwrap_or_default());
        known.insert(language, (Instant::now(), words.clone()));
        words
    }

    /// Returns a page that the imported configuration names, as safe HTML; `None` if the import has not found it.
    pub fn page_file(&self, name: &str) -> Option<SafeHtml> {
        let bytes = self.file(name).ok().flatten()?;
        Some(SafeHtml(render::html(Encoding::Html, &decode(&bytes), &|_| String::new())))
    }

    /// Returns all books in the order of the imported configuration, at most a second old.
    pub fn books(&self) -> Result<Arc<Vec<BookInfo>>, StoreError> {
        Ok(self.known()?.books)
    }

    fn known(&self) -> Result<KnownBooks, StoreError> {
        let mut known = self.books.lock();
        if let Some(fresh) = known.as_ref().filter(|known| known.read.elapsed() < BOOKS_FRESH) {
            return Ok(fresh.clone());
        }
        let zone = site_zone::of_site(&*self.store, self.config.zone.clone())?;
        let record = site_record::stored(&*self.store)?;
        let mut books = self.store.books()?;
        record.sort(&mut books);
        let read = KnownBooks { read: Instant::now(), books: Arc::new(books), zone, record: Arc::new(record) };
        *known = Some(read.clone());
        Ok(read)
    }

    /// Returns the local time: the configured one, else the one that an import has stored.
    pub fn zone(&self) -> Zone {
        self.known().map_or_else(|_| self.config.zone.clone(), |known| known.zone)
    }

    /// Returns logins and full names for attributes that are users; none if they cannot be read.
    pub fn users(&self) -> Vec<(String, String)> {
        match &self.people {
            Some(people) => people.names().unwrap_or_default(),
            None => self.config.users.clone(),
        }
    }

    /// Returns the public address of the site: the configured one, else the one of the proxy's headers, else the one of
    /// the request.
    pub(super) fn base(&self, headers: &HeaderMap) -> String {
        if !self.config.url.is_empty() {
            return self.config.url.trim_end_matches('/').to_owned();
        }
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]/~".contains(&byte));
        let header = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            // The first of several proxies is the one that the browser spoke to.
            Some(value.split(',').next().unwrap_or_default().trim().to_owned()).filter(|value| !value.is_empty() && plain(value))
        };
        let scheme = header("x-forwarded-proto").filter(|scheme| scheme == "https").unwrap_or_else(|| "http".to_owned());
        let host = header("x-forwarded-host").or_else(|| header("host")).unwrap_or_else(|| "localhost".to_owned());
        let prefix = header("x-forwarded-prefix").unwrap_or_else(|| self.config.prefix.clone());
        format!("{scheme}://{}/{}", host.trim_matches('/'), prefix.trim_matches('/')).trim_end_matches('/').to_owned()
    }
}
