//! A site of ELOG's dialect without sockets, and requests to it.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{io::Read, net::Ipv4Addr, sync::Arc};

use http::{HeaderMap, Method, StatusCode, header};
use tampu_elog::{
    config,
    pages::{Body, Site, SiteConfig},
};
use tampu_logbook::{
    people::{Caller, Right, Rights},
    store::{Entries, sqlite::SqliteStore},
};

/// The beginning of the `elog` command's boundaries.
pub const B: &str = "---------------------------5E8A1B2C3D4E";

/// A site, and somebody who asks it.
pub struct Desk {
    pub dir: tempfile::TempDir,
    pub store: Arc<SqliteStore>,
    pub site: Site,
    pub caller: Caller,
    /// Headers of every request.
    pub headers: Vec<(&'static str, String)>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }

    pub fn location(&self) -> &str {
        self.headers.get(header::LOCATION).map_or("", |value| value.to_str().unwrap())
    }

    /// The number at the end of where it leads.
    pub fn id(&self) -> u32 {
        assert_eq!(self.status, StatusCode::FOUND, "{}", self.text());
        self.location().rsplit('/').next().unwrap().parse().unwrap_or_else(|_| panic!("{}", self.location()))
    }

    /// Returns the error from the place where ELOG's programs look for it.
    pub fn error(&self) -> String {
        let text = self.text();
        let (_, rest) = text.split_once("class=\"errormsg\">").unwrap_or_else(|| panic!("no error: {} {text}", self.status));
        rest.split("</td>").next().unwrap().to_owned()
    }
}

pub const ALL: [Right; 5] = [Right::Read, Right::Write, Right::EditOwn, Right::EditAny, Right::Admin];

/// Somebody with these rights in these books.
pub fn caller(login: &str, rights: &[Right], books: &[&str]) -> Caller {
    let rights = Rights(books.iter().map(|book| ((*book).to_owned(), rights.to_vec())).collect());
    let full_name = if login.is_empty() { String::new() } else { format!("{login} Quartz") };
    Caller { login: login.to_owned(), full_name, email: String::new(), from: Ipv4Addr::LOCALHOST.into(), rights }
}

impl Desk {
    /// A site with the books of an `elogd.cfg`; zoe asks, and may do everything.
    pub fn new(cfg: &str) -> Desk {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
        let config = config::parse(cfg.as_bytes());
        let books: Vec<_> = config.logbooks().iter().map(|logbook| logbook.book()).collect();
        books.iter().for_each(|book| store.put_book(book).unwrap());
        let names: Vec<&str> = books.iter().map(|book| book.name.as_str()).collect();
        let site = Site::new(store.clone(), SiteConfig::default());
        Desk { dir, store, site, caller: caller("zoe", &ALL, &names), headers: Vec::new() }
    }

    pub fn ask(&self, method: Method, uri: &str, headers: &[(&str, &str)], mut body: &[u8]) -> Answer {
        let mut request = http::Request::builder().method(method).uri(uri).header("host", "elog.site:8080");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body: &mut (dyn Read + Send) = &mut body;
        let (parts, body) = self.site.answer(&self.caller, request.body(body).unwrap()).into_parts();
        let bytes = match body {
            Body::Bytes(bytes) => bytes,
            Body::Read(mut from, length) => {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes.len() as u64, length);
                bytes
            }
            Body::Pieces(pieces) => pieces.collect::<Result<Vec<_>, _>>().unwrap().concat(),
        };
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    pub fn get(&self, uri: &str) -> Answer {
        self.ask(Method::GET, uri, &[], b"")
    }

    /// Posts parts as a browser or py_elog writes them.
    pub fn post(&self, uri: &str, parts: &[(&str, Option<&str>, &[u8])]) -> Answer {
        let mut body = Vec::new();
        for (name, filename, value) in parts {
            let filename = filename.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
            body.extend_from_slice(
                format!("--{B}\r\nContent-Disposition: form-data; name=\"{name}\"{filename}\r\n\r\n").as_bytes(),
            );
            body.extend_from_slice(value);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{B}--\r\n").as_bytes());
        self.ask(Method::POST, uri, &[("content-type", &format!("multipart/form-data; boundary={B}"))], &body)
    }

    /// Posts plain fields.
    pub fn fields(&self, uri: &str, fields: &[(&str, &str)]) -> Answer {
        self.post(uri, &fields.iter().map(|(name, value)| (*name, None, value.as_bytes())).collect::<Vec<_>>())
    }

    /// Posts as the `elog` command does, with its broken form.
    pub fn elog(&self, book: &str, fields: &[(&str, &str)], text: &str, files: &[(&str, &[u8])]) -> Answer {
        let mut body = Vec::new();
        for (name, value) in fields {
            body.extend_from_slice(
                format!("{B}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").as_bytes(),
            );
        }
        if !text.is_empty() {
            let part = format!("{B}\r\nContent-Disposition: form-data; name=\"Text\"\r\n\r\n{text}\r\n{B}\r\n");
            body.extend_from_slice(part.as_bytes());
        }
        for (at, (name, bytes)) in files.iter().enumerate() {
            let head = format!("Content-Disposition: form-data; name=\"attfile{}\"; filename=\"{name}\"\r\n\r\n", at + 1);
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(format!("{B}\r\n").as_bytes());
        }
        let kind = format!("multipart/form-data; boundary={B}");
        self.ask(Method::POST, &format!("/{book}/"), &[("content-type", &kind), ("user-agent", "ELOG")], &body)
    }
}
