//! The client. Entries, searches and pages go to and from Python as JSON of the API.

use std::{path::PathBuf, time::Duration};

use pyo3::prelude::*;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tampu_logbook::{
    client::{Client, Trust},
    entry::{Content, EntryRef, NewEntry},
    search::{Search, Sort, Start, Stop},
    store::{Attachments, Drafts, Entries, PagePart},
};

use crate::{
    book::{
        failure::{local, of_client, of_store},
        place::{Place, of_this_host},
        stream::{PythonReader, PythonWriter},
    },
    event::client::seconds,
};

/// Time that a search has beyond its own limit.
const MARGIN: Duration = Duration::from_secs(30);

/// Client of a hub's logbooks.
#[pyclass(frozen, module = "tampu._native")]
pub struct BookClient {
    client: Client,
    url: String,
}

/// Search, as Python gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    query: String,
    books: Vec<String>,
    sort: String,
    descending: bool,
    limit: usize,
    after: Option<String>,
    count_to: u64,
    time: f64,
}

impl Asked {
    fn search(self) -> PyResult<Search> {
        let sort = match self.sort.as_str() {
            "date" => Sort::Date,
            "id" => Sort::Id,
            "thread" => Sort::Thread,
            _ => Sort::Attribute(self.sort),
        };
        let start = match self.after {
            Some(cursor) => Start::After(cursor.parse().map_err(local)?),
            None => Start::First,
        };
        Ok(Search {
            books: self.books,
            query: self.query,
            sort,
            descending: self.descending,
            start,
            limit: self.limit,
            count_to: self.count_to,
            time: seconds(self.time),
            ..Search::default()
        })
    }
}

fn parse<T: DeserializeOwned>(what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| local(format_args!("invalid {what}: {error}")))
}

fn written(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(local)
}

#[pymethods]
impl BookClient {
    #[new]
    #[pyo3(signature = (url = None, token = None, *, by = "", certificates = None, domain = None))]
    fn open(
        url: Option<String>,
        token: Option<String>,
        by: &str,
        certificates: Option<PathBuf>,
        domain: Option<&str>,
    ) -> PyResult<BookClient> {
        let place = match url {
            Some(url) => Place { url, token, trust: Trust { certificates, address: None } },
            None => {
                let found = of_this_host(domain)?;
                Place { token: token.or(found.token), ..found }
            }
        };
        let client = Client::new(&place.url, place.token, by, &place.trust).map_err(|error| of_client(&error))?;
        Ok(BookClient { client, url: place.url })
    }

    /// Address of the hub.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// The logbooks that the caller may read.
    fn books(&self, py: Python<'_>) -> PyResult<String> {
        written(&py.detach(|| self.client.books()).map_err(of_store)?)
    }

    /// Posts an entry; returns its number.
    fn post(&self, py: Python<'_>, entry: &str) -> PyResult<u32> {
        let new: NewEntry = parse("entry", entry)?;
        Ok(py.detach(|| self.client.post(new, Vec::new(), "")).map_err(of_store)?.id)
    }

    /// Reads an entry.
    fn entry(&self, py: Python<'_>, book: &str, id: u32) -> PyResult<String> {
        let at = EntryRef::new(book, id);
        written(&py.detach(|| self.client.entry(&at)).map_err(of_store)?)
    }

    /// Changes an entry that is at revision `expected`, or at any; returns its revision.
    fn edit(&self, py: Python<'_>, book: &str, id: u32, content: &str, expected: Option<u32>) -> PyResult<u32> {
        let (at, content) = (EntryRef::new(book, id), parse::<Content>("entry", content)?);
        py.detach(|| self.client.edit(&at, content, Vec::new(), "", expected)).map_err(of_store)
    }

    /// Deletes an entry; returns the number of deleted ones.
    fn delete(&self, py: Python<'_>, book: &str, id: u32, replies: bool) -> PyResult<u64> {
        let at = EntryRef::new(book, id);
        py.detach(|| self.client.delete(&at, "", replies)).map_err(of_store)
    }

    /// Locks an entry for some time.
    fn lock(&self, py: Python<'_>, book: &str, id: u32, host: &str, time: f64) -> PyResult<String> {
        let at = EntryRef::new(book, id);
        written(&py.detach(|| self.client.lock(&at, "", host, seconds(time))).map_err(of_store)?)
    }

    /// Removes the caller's lock of an entry.
    fn unlock(&self, py: Python<'_>, book: &str, id: u32) -> PyResult<()> {
        let at = EntryRef::new(book, id);
        py.detach(|| self.client.unlock(&at, "")).map_err(of_store)
    }

    /// The lock of an entry, or null.
    fn locked(&self, py: Python<'_>, book: &str, id: u32) -> PyResult<String> {
        let at = EntryRef::new(book, id);
        written(&py.detach(|| self.client.locked(&at)).map_err(of_store)?)
    }

    /// A page of an entry's thread, and the place of the next one.
    fn thread(&self, py: Python<'_>, book: &str, id: u32, after: Option<i64>, limit: usize) -> PyResult<(String, Option<i64>)> {
        let (at, part) = (EntryRef::new(book, id), PagePart { after, limit });
        let page = py.detach(|| self.client.thread_page(&at, part, true)).map_err(of_store)?;
        Ok((written(&page.entries)?, page.next))
    }

    /// A page of an entry's history, and the place of the next one.
    fn history(&self, py: Python<'_>, book: &str, id: u32, after: Option<i64>, limit: usize) -> PyResult<(String, Option<i64>)> {
        let (at, part) = (EntryRef::new(book, id), PagePart { after, limit });
        let page = py.detach(|| self.client.history_page(&at, part)).map_err(of_store)?;
        Ok((written(&page.revisions)?, page.next))
    }

    /// A page of a search.
    fn search(&self, py: Python<'_>, asked: &str) -> PyResult<String> {
        let search = parse::<Asked>("search", asked)?.search()?;
        let stop = Stop::after(search.time + MARGIN);
        let page = py.detach(|| self.client.search(&search, &stop)).map_err(of_store)?;
        let next = page.next.map(|cursor| cursor.to_string());
        written(&json!({ "hits": page.hits, "count": page.count, "next": next, "stopped": page.stopped }))
    }

    /// Uploads what a file of Python has, from its present position; returns its SHA-256 and its length.
    fn upload(&self, py: Python<'_>, file: Py<PyAny>) -> PyResult<(String, u64)> {
        let mut reader = PythonReader::new(file);
        let uploaded = py.detach(|| self.client.upload(&mut reader, u64::MAX));
        match (uploaded, reader.raised.take()) {
            (_, Some(raised)) => Err(raised),
            (Ok(upload), None) => Ok((upload.sha().as_str().to_owned(), upload.size())),
            (Err(error), None) => Err(of_store(error)),
        }
    }

    /// Writes an attachment of an entry to a file of Python; returns its length.
    fn download(&self, py: Python<'_>, book: &str, id: u32, position: usize, file: Py<PyAny>) -> PyResult<u64> {
        let (at, mut writer) = (EntryRef::new(book, id), PythonWriter::new(file));
        let copied = py.detach(|| self.client.copy_attachment(&at, position, &mut writer));
        match (copied, writer.raised.take()) {
            (_, Some(raised)) => Err(raised),
            (Ok(length), None) => Ok(length),
            (Err(error), None) => Err(of_store(error)),
        }
    }
}
