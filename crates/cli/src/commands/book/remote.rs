//! A logbook that another process serves: the store, as far as the API has it.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, channel},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tampu_hub::book::{
    address::encoded,
    api::{BASE, entry_path},
};
use tampu_logbook::{
    attachment::{Bytes, Sha, Upload},
    book::Book,
    entry::{Content, Draft, Entry, EntryRef, Lock, NewEntry, Revision},
    export::Format,
    search::{Count, Hit, Page, Search, Sort, Start, Stop, Stopped},
    store::{BookInfo, EntryChange, ImportOutcome, Imported, Progress, Record, Result, Store, StoreError},
};
use ureq::Agent;

/// How long a hub may take to begin its answer, uploads aside.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of an answer that is no file.
const MAX_ANSWER: u64 = 1 << 30;
/// How often who waits for a search looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// A logbook behind an address.
#[derive(Clone)]
pub struct Remote {
    agent: Agent,
    url: String,
    token: Option<String>,
    by: String,
    /// Where attachments are that were heard of: their entry and place.
    seen: Arc<Mutex<HashMap<Sha, (EntryRef, usize)>>>,
}

/// An answer that says no.
fn refused(text: String) -> StoreError {
    StoreError::Elsewhere { why: text, unreachable: false }
}

fn unreachable(url: &str, error: &ureq::Error) -> StoreError {
    StoreError::Elsewhere { why: format!("{url}: {error}"), unreachable: true }
}

impl Remote {
    /// A logbook at this address; nobody is asked yet.
    pub fn new(url: &str, token: Option<String>, by: &str) -> Remote {
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).timeout_recv_response(Some(PATIENCE));
        let url = url.trim_end_matches('/').to_owned();
        Remote { agent: config.build().into(), url, token, by: by.to_owned(), seen: Arc::default() }
    }

    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let mut request =
            http::Request::builder().method(method).uri(format!("{}{path}", self.url)).header("x-tampu-by", &self.by);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request
    }

    /// The answer, if it is good.
    fn good(&self, answer: std::result::Result<http::Response<ureq::Body>, ureq::Error>) -> Result<http::Response<ureq::Body>> {
        let mut answer = answer.map_err(|error| unreachable(&self.url, &error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let detail = problem["detail"].as_str().map_or_else(|| format!("{}: {status}", self.url), str::to_owned);
        let help = problem["way_out"].as_str().filter(|_| status != 412).map(|help| format!(" ({help})")).unwrap_or_default();
        Err(refused(format!("{detail}{help}")))
    }

    fn bad_request(error: &http::Error) -> StoreError {
        refused(format!("the request cannot be written: {error}"))
    }

    /// Asks with a JSON body, or with none.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>, more: &[(&str, String)]) -> Result<Value> {
        let mut request = self.request(method, &format!("{BASE}{path}"));
        for (name, value) in more {
            request = request.header(*name, value);
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body.to_string());
                self.agent.run(request.map_err(|error| Remote::bad_request(&error))?)
            }
            None => self.agent.run(request.body(()).map_err(|error| Remote::bad_request(&error))?),
        };
        let mut answer = self.good(answer)?;
        let text =
            answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string().map_err(|error| unreachable(&self.url, &error))?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|error| refused(format!("{}: an answer that is no JSON: {error}", self.url)))
    }

    fn read<T: DeserializeOwned>(&self, value: Value) -> Result<T> {
        serde_json::from_value(value).map_err(|error| refused(format!("{}: an answer of another release: {error}", self.url)))
    }

    /// Asks for what is at a path.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.read(self.ask("GET", path, None, &[])?)
    }

    fn json<T: serde::Serialize>(value: &T) -> Result<Value> {
        serde_json::to_value(value).map_err(|error| refused(error.to_string()))
    }

    /// Remembers where files are.
    fn see<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            for (at, file) in entry.content.attachments.iter().enumerate() {
                if let Some(sha) = &file.sha {
                    seen.insert(sha.clone(), (entry.at.clone(), at));
                }
            }
        }
    }

    fn away(&self, what: &str) -> StoreError {
        refused(format!("{what} is for who has the data directory: give it with --data, on the hub's host"))
    }

    fn cut(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Elsewhere { why: format!("{}: {why}", self.url), unreachable: true }
    }

    /// Asks, and waits for the answer as long as it is wanted; none if it no longer is. The connection ends with this process, and with it what the
    /// hub does for it.
    fn while_wanted<T: Send + 'static>(
        &self,
        stop: &Stop,
        ask: impl FnOnce(&Remote) -> Result<T> + Send + 'static,
    ) -> Option<Result<T>> {
        let (tell, told) = channel();
        let own = self.clone();
        let asking = std::thread::Builder::new().name("asking".to_owned()).spawn(move || drop(tell.send(ask(&own))));
        if let Err(error) = asking {
            return Some(Err(refused(error.to_string())));
        }
        loop {
            match told.recv_timeout(LOOK) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if stop.why().is_some() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Some(Err(refused("the search was not answered".to_owned()))),
            }
        }
    }

    /// All that a search finds, as a file that comes while it is read.
    pub fn export(&self, search: &Search, format: Format, stop: &Stop) -> Result<Box<dyn Read + Send>> {
        let path = format!("{BASE}/search/export?{}&format={}", looked_for(search), format.name());
        let answer = self.while_wanted(stop, move |remote| {
            let request = remote.request("GET", &path).body(());
            remote.good(remote.agent.run(request.map_err(|error| Remote::bad_request(&error))?))
        });
        match answer {
            Some(answer) => Ok(Box::new(answer?.into_body().into_with_config().limit(u64::MAX).reader())),
            None => Err(refused("interrupted".to_owned())),
        }
    }

    fn path(at: &EntryRef) -> String {
        entry_path(at).trim_start_matches(BASE).to_owned()
    }
}

/// What is looked for, and its order, as the API has them.
fn looked_for(search: &Search) -> String {
    let sort = match &search.sort {
        Sort::Date => "date",
        Sort::Id => "id",
        Sort::Attribute(name) => name,
    };
    let sort = format!("{}{sort}", if search.descending { "-" } else { "" });
    let mut said = format!("q={}&sort={}", encoded(&search.query), encoded(&sort));
    search.books.iter().for_each(|book| said.push_str(&format!("&book={}", encoded(book))));
    said
}

impl Store for Remote {
    fn books(&self) -> Result<Vec<BookInfo>> {
        self.get("/books")
    }

    fn book(&self, name: &str) -> Result<Book> {
        Ok(self.get::<BookInfo>(&format!("/books/{}", encoded(name)))?.book)
    }

    fn put_book(&self, book: &Book) -> Result<()> {
        self.ask("PUT", &format!("/books/{}", encoded(&book.name)), Some(&Remote::json(book)?), &[]).map(drop)
    }

    fn upload(&self, from: &mut dyn Read, _limit: u64) -> Result<Upload> {
        #[derive(serde::Deserialize)]
        struct Uploaded {
            sha: Sha,
            size: u64,
        }
        let mut from = Reading(from);
        let request = self.request("POST", &format!("{BASE}/uploads")).body(ureq::SendBody::from_reader(&mut from));
        let answer = self.agent.run(request.map_err(|error| Remote::bad_request(&error))?);
        let text = self.good(answer)?.body_mut().read_to_string().map_err(|error| unreachable(&self.url, &error))?;
        let Uploaded { sha, size } = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        Ok(Upload::elsewhere(sha, size))
    }

    fn attachment(&self, sha: &Sha) -> Result<Bytes> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(sha).cloned();
        let (at, nth) = seen.ok_or_else(|| StoreError::NoBlob(sha.as_str().to_owned()))?;
        let request = self.request("GET", &format!("{}/attachments/{nth}", entry_path(&at))).body(());
        let mut answer = self.good(self.agent.run(request.map_err(|error| Remote::bad_request(&error))?))?;
        let path = std::env::temp_dir().join(format!("tampu-{}-{}", std::process::id(), sha.as_str()));
        let io = |error| StoreError::Io { path: path.clone(), error };
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).map_err(io)?;
        // It has no name from here on, and goes with whoever reads it.
        fs::remove_file(&path).map_err(io)?;
        let size = io::copy(&mut answer.body_mut().with_config().limit(u64::MAX).reader(), &mut file).map_err(io)?;
        file.rewind().map_err(io)?;
        Ok(Bytes::new(size, file))
    }

    fn post(&self, new: NewEntry, _uploads: Vec<Upload>, _by: &str) -> Result<EntryRef> {
        let mut body = Remote::json(&new)?;
        if let Some(body) = body.as_object_mut() {
            body.remove("book");
        }
        self.read(self.ask("POST", &format!("/books/{}/entries", encoded(&new.book)), Some(&body), &[])?)
    }

    fn post_all(&self, _new: Vec<(NewEntry, Option<usize>)>, _by: &str) -> Result<Vec<EntryRef>> {
        Err(self.away("posting several entries at once"))
    }

    fn entry(&self, at: &EntryRef) -> Result<Entry> {
        let entry: Entry = self.get(&Remote::path(at))?;
        self.see([&entry]);
        Ok(entry)
    }

    fn edit(&self, at: &EntryRef, content: Content, _uploads: Vec<Upload>, _by: &str, expected: Option<u32>) -> Result<u32> {
        let etag = expected.map_or("*".to_owned(), |revision| format!("\"{revision}\""));
        let done = self.ask("PUT", &Remote::path(at), Some(&Remote::json(&content)?), &[("if-match", etag)])?;
        self.read(done["revision"].clone())
    }

    fn delete(&self, at: &EntryRef, _by: &str, replies: bool) -> Result<u64> {
        let done = self.ask("DELETE", &format!("{}?replies={replies}", Remote::path(at)), None, &[])?;
        self.read(done["deleted"].clone())
    }

    fn copy(&self, at: &EntryRef, to: &str, _by: &str, replies: bool) -> Result<EntryRef> {
        self.read(self.ask("POST", &format!("{}/copy", Remote::path(at)), Some(&json!({ "to": to, "replies": replies })), &[])?)
    }

    fn move_to(&self, at: &EntryRef, to: &str, _by: &str, replies: bool) -> Result<EntryRef> {
        self.read(self.ask("POST", &format!("{}/move", Remote::path(at)), Some(&json!({ "to": to, "replies": replies })), &[])?)
    }

    fn history(&self, at: &EntryRef) -> Result<Vec<Revision>> {
        self.get(&format!("{}/history", Remote::path(at)))
    }

    fn thread(&self, at: &EntryRef) -> Result<Vec<Entry>> {
        let thread: Vec<Entry> = self.get(&format!("{}/thread", Remote::path(at)))?;
        self.see(&thread);
        Ok(thread)
    }

    fn lock(&self, at: &EntryRef, _by: &str, host: &str, time: Duration) -> Result<Lock> {
        let body = json!({ "seconds": time.as_secs(), "host": host });
        self.read(self.ask("PUT", &format!("{}/lock", Remote::path(at)), Some(&body), &[])?)
    }

    fn unlock(&self, at: &EntryRef, _by: &str) -> Result<()> {
        self.ask("DELETE", &format!("{}/lock", Remote::path(at)), None, &[]).map(drop)
    }

    fn hand_lock(&self, _at: &EntryRef, _from: &str, _to: (&str, &str), _time: Duration) -> Result<bool> {
        Err(self.away("handing a lock on"))
    }

    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>> {
        self.get(&format!("{}/lock", Remote::path(at)))
    }

    fn save_draft(&self, draft: &Draft) -> Result<i64> {
        let mut body = Remote::json(draft)?;
        if let Some(body) = body.as_object_mut() {
            ["number", "owner", "saved"].iter().for_each(|name| drop(body.remove(*name)));
        }
        let done = match draft.number {
            0 => self.ask("POST", "/drafts", Some(&body), &[])?,
            number => self.ask("PUT", &format!("/drafts/{number}"), Some(&body), &[])?,
        };
        self.read(done["number"].clone())
    }

    fn drafts(&self, _owner: &str) -> Result<Vec<Draft>> {
        self.get("/drafts")
    }

    fn drop_draft(&self, _owner: &str, number: i64) -> Result<bool> {
        self.ask("DELETE", &format!("/drafts/{number}"), None, &[]).map(|_| true)
    }

    fn search(&self, search: &Search, stop: &Stop) -> Result<Page> {
        #[derive(serde::Deserialize)]
        struct Told {
            hits: Vec<Hit>,
            count: Option<Count>,
            next: Option<String>,
            stopped: Option<Stopped>,
        }
        let mut path = format!(
            "/search?{}&limit={}&count={}&time_ms={}&text=true",
            looked_for(search),
            search.limit,
            search.count_to,
            search.time.as_millis()
        );
        match &search.start {
            Start::First => {}
            Start::After(cursor) => path.push_str(&format!("&after={cursor}")),
            Start::Skip(skip) => path.push_str(&format!("&skip={skip}")),
        }
        let Some(told) = self.while_wanted(stop, move |remote| remote.get::<Told>(&path)) else {
            return Ok(Page { stopped: stop.why(), ..Page::default() });
        };
        let Told { hits, count, next, stopped } = told?;
        let next = next
            .map(|next| next.parse())
            .transpose()
            .map_err(|error: tampu_logbook::search::BadCursor| refused(error.to_string()))?;
        self.see(hits.iter().map(|hit| &hit.entry));
        Ok(Page { hits, count, next, stopped })
    }

    fn save_search(&self, _owner: &str, name: &str, query: &str) -> Result<()> {
        self.ask("PUT", &format!("/searches/{}", encoded(name)), Some(&json!({ "q": query })), &[]).map(drop)
    }

    fn saved_searches(&self, _owner: &str) -> Result<Vec<(String, String)>> {
        #[derive(serde::Deserialize)]
        struct Saved {
            name: String,
            q: String,
        }
        Ok(self.get::<Vec<Saved>>("/searches")?.into_iter().map(|Saved { name, q }| (name, q)).collect())
    }

    fn drop_search(&self, _owner: &str, name: &str) -> Result<bool> {
        self.ask("DELETE", &format!("/searches/{}", encoded(name)), None, &[]).map(|_| true)
    }

    fn record(&self, _kind: &str, _name: &str) -> Result<Option<Record>> {
        Err(self.away("this"))
    }

    fn records(&self, _kind: &str) -> Result<Vec<(String, Record)>> {
        Err(self.away("this"))
    }

    fn put_record(&self, _kind: &str, _name: &str, _value: &Value, _expected: Option<u64>) -> Result<u64> {
        Err(self.away("this"))
    }

    fn drop_record(&self, _kind: &str, _name: &str) -> Result<bool> {
        Err(self.away("this"))
    }

    fn last_change(&self) -> Result<u64> {
        Err(self.away("following changes"))
    }

    fn changes(&self, _after: u64, _most: usize) -> Result<Vec<EntryChange>> {
        Err(self.away("following changes"))
    }

    fn wait_for_change(&self, _after: u64, _time: Duration) -> Result<u64> {
        Err(self.away("following changes"))
    }

    fn import(&self, _book: &str, _entries: Vec<Imported>, _uploads: Vec<Upload>, _by: &str) -> Result<Vec<ImportOutcome>> {
        Err(self.away("an import"))
    }

    fn imported(&self) -> Result<()> {
        Err(self.away("an import"))
    }

    fn digests(&self, _book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        Err(self.away("an import"))
    }

    fn check(&self, progress: Progress<'_>) -> Result<Vec<String>> {
        let request = self.request("POST", &format!("{BASE}/check")).body(());
        let mut answer = self.good(self.agent.run(request.map_err(|error| Remote::bad_request(&error))?))?;
        let mut faults = Vec::new();
        for line in BufReader::new(answer.body_mut().with_config().limit(u64::MAX).reader()).lines() {
            let line: Value = serde_json::from_str(&line.map_err(|error| self.cut(&error))?).unwrap_or_default();
            match (&line["done"], &line["fault"], &line["faults"], &line["failed"]) {
                (Value::Number(done), ..) => {
                    if !progress(done.as_u64().unwrap_or_default(), line["total"].as_u64().unwrap_or_default()) {
                        return Ok(faults);
                    }
                }
                (_, Value::String(fault), ..) => faults.push(fault.clone()),
                (.., Value::Number(count), _) if count.as_u64() == Some(faults.len() as u64) => return Ok(faults),
                (.., Value::String(why)) => return Err(refused(why.clone())),
                _ => return Err(refused(format!("{}: an answer of another release: {line}", self.url))),
            }
        }
        Err(self.cut(&"the hub ended before the check did"))
    }

    fn backup(&self, _to: &Path, _progress: Progress<'_>) -> Result<()> {
        Err(self.away("a backup"))
    }
}

/// What is read for a body, for a library that wants a type of known size.
struct Reading<'a>(&'a mut dyn Read);

impl Read for Reading<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}
