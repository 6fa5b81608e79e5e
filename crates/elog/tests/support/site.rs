//! A site in a directory of its own, and people who ask it for pages.

use std::{
    io::Read,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use http::{Method, StatusCode, header};
use tampu_elog::{
    config,
    pages::{Body, Site, SiteConfig, Zone},
    site_record,
};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, Encoding, EntryRef, NewEntry},
    people::{Caller, Right, Rights},
    search::Stop,
    store::{Entries, sqlite::SqliteStore},
};
use tampu_types::Time;
use tempfile::TempDir;

use super::html::{self, Element};

pub const ALL: [Right; 5] = [Right::Read, Right::Write, Right::EditOwn, Right::EditAny, Right::Admin];
pub const WRITER: [Right; 3] = [Right::Read, Right::Write, Right::EditOwn];

pub struct TestSite {
    pub dir: TempDir,
    pub store: Arc<SqliteStore>,
    pub site: Site,
}

/// A response, with its page read.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub location: String,
    pub policy: String,
    pub body: String,
}

impl Answer {
    pub fn page(&self) -> Element {
        html::parse(&self.body)
    }

    /// The ids that a program reads from a list.
    pub fn ids(&self) -> Vec<u32> {
        let page = self.page();
        let first = |row: &&Element| {
            row.all("td").iter().find(|cell| matches!(cell.get("class"), "list1" | "list2")).map(|cell| (*cell).clone())
        };
        let rows = page.all("tr");
        let cells = rows.iter().filter_map(first);
        let last =
            |href: &str| href.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default().parse().unwrap();
        cells.map(|cell| last(cell.one("a").get("href"))).collect()
    }

    pub fn error(&self) -> String {
        self.page().texts("td.errormsg").join(" ")
    }
}

impl TestSite {
    /// A site with the books of a configuration.
    pub fn new(text: &str) -> TestSite {
        TestSite::with(text, |_| {})
    }

    pub fn with(text: &str, change: impl FnOnce(&mut SiteConfig)) -> TestSite {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&dir.path().join("book")).unwrap());
        let parsed = config::parse(text.as_bytes());
        for logbook in parsed.logbooks() {
            store.put_book(&logbook.book()).unwrap();
        }
        site_record::store(&*store, &parsed).unwrap();
        let mut config =
            SiteConfig { zone: Zone::named("UTC").unwrap(), themes: Some(dir.path().join("themes")), ..SiteConfig::default() };
        change(&mut config);
        let site = Site::new(store.clone(), config);
        TestSite { dir, store, site }
    }

    /// Posts an entry: its day and hour, `Name=value` for attributes, and its text.
    pub fn post(&self, book: &str, date: &str, said: &[&str], text: &str) -> u32 {
        self.post_as(book, date, said, text, None, "zoe")
    }

    pub fn post_as(&self, book: &str, date: &str, said: &[&str], text: &str, parent: Option<u32>, by: &str) -> u32 {
        let kinds = self.store.book(book).unwrap();
        let attribute = |said: &&str| {
            let (name, value) = said.split_once('=').unwrap();
            let values = match kinds.attribute(name) {
                Some(def) if def.kind.is_multiple() => value.split(" | ").map(str::to_owned).collect(),
                _ => vec![value.to_owned()],
            };
            EntryAttribute { name: name.to_owned(), values }
        };
        let content = Content {
            attributes: said.iter().map(attribute).collect(),
            encoding: Encoding::Plain,
            text: text.to_owned(),
            ..Content::default()
        };
        let date = Some(date.parse::<Time>().unwrap()).filter(|_| !date.is_empty());
        let new = NewEntry { book: book.to_owned(), content, date, parent, zone: 0 };
        self.store.post(new, vec![], by).unwrap().id
    }

    pub fn at(&self, book: &str, id: u32) -> EntryRef {
        EntryRef::new(book, id)
    }

    /// Requests a page as a person with all rights in all books.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(&self.person("zoe", &ALL), path, &[])
    }

    /// Somebody with these rights in all books.
    pub fn person(&self, login: &str, rights: &[Right]) -> Caller {
        let books = self.store.books().unwrap();
        let rights = Rights(books.into_iter().map(|info| (info.book.name, rights.to_vec())).collect());
        let full_name = if login == "zoe" { "Zoe Quartz".to_owned() } else { login.to_owned() };
        let email = if login.is_empty() { String::new() } else { format!("{login}@site.test") };
        Caller { login: login.to_owned(), full_name, email, from: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), rights }
    }

    pub fn ask(&self, caller: &Caller, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask_with(caller, path, headers, Stop::default())
    }

    /// A request that is over when it is stopped.
    pub fn ask_until(&self, caller: &Caller, path: &str, stop: &Stop) -> Answer {
        self.ask_with(caller, path, &[], stop.clone())
    }

    fn ask_with(&self, caller: &Caller, path: &str, headers: &[(&str, &str)], stop: Stop) -> Answer {
        let mut nothing: &[u8] = &[];
        let body: &mut (dyn Read + Send) = &mut nothing;
        let mut request = http::Request::builder().method(Method::GET).uri(path).header("Host", "site.test:8080");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(stop);
        let response = self.site.answer(caller, request);
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let (status, location) = (response.status(), header(header::LOCATION));
        let policy = header(header::CONTENT_SECURITY_POLICY);
        let bytes = match response.into_body() {
            Body::Bytes(bytes) => bytes,
            Body::Read(mut from, _) => {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).unwrap();
                bytes
            }
            Body::Pieces(pieces) => pieces.flat_map(|piece| piece.unwrap()).collect(),
        };
        Answer { status, location, policy, body: String::from_utf8_lossy(&bytes).into_owned() }
    }
}
