//! The traits of a logbook, implemented over the API: [`Entries`], [`Attachments`], [`Drafts`] and [`Templates`].

use std::{
    io::{self, BufRead, BufReader, Read, Seek},
    time::Duration,
};

use serde_json::{Value, json};
use tampu_types::Time;

use super::{
    Client, ClientError,
    address::{BASE, encoded, entry_path},
    to_json,
};
use crate::{
    attachment::{Bytes, Sha, Upload, unnamed_file},
    book::Book,
    entry::{Content, Draft, Entry, EntryRef, Lock, NewEntry, Revision},
    search::{Page, Search, Stop},
    store::{
        Attachments, BookInfo, Drafts, Entries, EntryEdit, HistoryPage, PagePart, Progress, Result, StoreError, Templates,
        ThreadPage,
        purge::{Purge, Purged},
        quota::{Quota, UsedSpace},
    },
    template::Template,
};

/// The path of an entry after [`BASE`].
pub(super) fn path(at: &EntryRef) -> String {
    entry_path(at).trim_start_matches(BASE).to_owned()
}

fn template_path(book: &str, name: &str) -> String {
    format!("/books/{}/templates/{}", encoded(book), encoded(name))
}

/// The parameters of a page.
fn of_part(part: PagePart) -> String {
    let after = part.after.map(|after| format!("&after={after}")).unwrap_or_default();
    format!("limit={}{after}", part.limit)
}

impl Client {
    /// Parses the place after which the next page begins.
    fn place(&self, next: Option<String>) -> Result<Option<i64>> {
        let bad =
            |next: &str| ClientError::OtherRelease { url: self.url.clone(), why: format!("invalid place '{next}' of a page") };
        Ok(next.map(|next| next.parse().map_err(|_| bad(&next))).transpose()?)
    }
}

impl Entries for Client {
    fn books(&self) -> Result<Vec<BookInfo>> {
        Ok(self.get("/books")?)
    }

    fn book(&self, name: &str) -> Result<Book> {
        Ok(self.get::<BookInfo>(&format!("/books/{}", encoded(name)))?.book)
    }

    fn put_book(&self, book: &Book) -> Result<()> {
        Ok(self.call("PUT", &format!("/books/{}", encoded(&book.name)), Some(&to_json(book)?), &[]).map(drop)?)
    }

    fn post(&self, new: NewEntry, _uploads: Vec<Upload>, _by: &str) -> Result<EntryRef> {
        let mut body = to_json(&new)?;
        if let Some(body) = body.as_object_mut() {
            body.remove("book");
        }
        Ok(self.parse(self.call("POST", &format!("/books/{}/entries", encoded(&new.book)), Some(&body), &[])?)?)
    }

    fn entry(&self, at: &EntryRef) -> Result<Entry> {
        let entry: Entry = self.get(&path(at))?;
        self.remember_attachments([&entry]);
        Ok(entry)
    }

    fn edit(&self, at: &EntryRef, content: Content, _uploads: Vec<Upload>, _by: &str, expected: Option<u32>) -> Result<u32> {
        let etag = expected.map_or("*".to_owned(), |revision| format!("\"{revision}\""));
        let done = self.call("PUT", &path(at), Some(&to_json(&content)?), &[("if-match", etag)])?;
        Ok(self.parse(done["revision"].clone())?)
    }

    fn edit_all(&self, changes: Vec<EntryEdit>, _by: &str) -> Result<Vec<u32>> {
        let Some(book) = changes.first().map(|one| one.at.book.clone()) else { return Ok(Vec::new()) };
        let mut body = Vec::with_capacity(changes.len());
        for one in changes {
            let mut object = to_json(&one.content)?;
            object["id"] = one.at.id.into();
            object["revision"] = one.expected.into();
            body.push(object);
        }
        let done = self.call("PUT", &format!("/books/{}/entries", encoded(&book)), Some(&to_json(&body)?), &[])?;
        let revisions = done.as_array().into_iter().flatten().map(|one| self.parse(one["revision"].clone()));
        Ok(revisions.collect::<std::result::Result<_, _>>()?)
    }

    fn delete(&self, at: &EntryRef, _by: &str, replies: bool) -> Result<u64> {
        let done = self.call("DELETE", &format!("{}?replies={replies}", path(at)), None, &[])?;
        Ok(self.parse(done["deleted"].clone())?)
    }

    fn copy(&self, at: &EntryRef, to: &str, _by: &str, replies: bool) -> Result<EntryRef> {
        Ok(self.parse(self.call(
            "POST",
            &format!("{}/copy", path(at)),
            Some(&json!({ "to": to, "replies": replies })),
            &[],
        )?)?)
    }

    fn move_to(&self, at: &EntryRef, to: &str, _by: &str, replies: bool) -> Result<EntryRef> {
        Ok(self.parse(self.call(
            "POST",
            &format!("{}/move", path(at)),
            Some(&json!({ "to": to, "replies": replies })),
            &[],
        )?)?)
    }

    fn history_page(&self, at: &EntryRef, part: PagePart) -> Result<HistoryPage> {
        #[derive(serde::Deserialize)]
        struct Body {
            revisions: Vec<Revision>,
            next: Option<String>,
        }
        let Body { revisions, next } = self.get(&format!("{}/history?{}", path(at), of_part(part)))?;
        Ok(HistoryPage { revisions, next: self.place(next)? })
    }

    fn first_revision(&self, at: &EntryRef) -> Result<Option<Time>> {
        let first = self.history_page(at, PagePart { after: None, limit: 1 })?;
        Ok(first.revisions.first().map(|revision| revision.at))
    }

    fn thread_page(&self, at: &EntryRef, part: PagePart, text: bool) -> Result<ThreadPage> {
        #[derive(serde::Deserialize)]
        struct Body {
            entries: Vec<Entry>,
            next: Option<String>,
        }
        let Body { entries, next } = self.get(&format!("{}/thread?text={text}&{}", path(at), of_part(part)))?;
        self.remember_attachments(&entries);
        Ok(ThreadPage { entries, next: self.place(next)? })
    }

    fn search(&self, search: &Search, stop: &Stop) -> Result<Page> {
        Ok(self.find_page(search, stop)?)
    }
}

impl Attachments for Client {
    fn upload(&self, from: &mut dyn Read, _limit: u64) -> Result<Upload> {
        #[derive(serde::Deserialize)]
        struct Uploaded {
            sha: Sha,
            size: u64,
        }
        let mut from = Sized(from);
        let request = self.request("POST", &format!("{BASE}/uploads")).body(ureq::SendBody::from_reader(&mut from));
        let mut response = self.accept(self.agent.run(request.map_err(ClientError::from)?))?;
        let text = response.body_mut().read_to_string().map_err(|error| self.unreachable(&error))?;
        let uploaded = serde_json::from_str(&text);
        let Uploaded { sha, size } = uploaded.map_err(|error| ClientError::NotJson { url: self.url.clone(), error })?;
        Ok(Upload::elsewhere(sha, size))
    }

    fn attachment(&self, sha: &Sha) -> Result<Bytes> {
        let seen = self.seen.lock().get(sha).cloned();
        let (at, position) = seen.ok_or_else(|| StoreError::NoBlob(sha.as_str().to_owned()))?;
        let mut response = self.open("GET", &format!("{}/attachments/{position}", entry_path(&at)))?;
        let path = std::env::temp_dir();
        let io = |error| StoreError::Io { path: path.clone(), error };
        let mut file = unnamed_file(&path).map_err(io)?;
        let size = io::copy(&mut response.body_mut().with_config().limit(u64::MAX).reader(), &mut file).map_err(io)?;
        file.rewind().map_err(io)?;
        Ok(Bytes::new(size, file))
    }
}

impl Drafts for Client {
    fn lock(&self, at: &EntryRef, _by: &str, host: &str, time: Duration) -> Result<Lock> {
        let body = json!({ "seconds": time.as_secs(), "host": host });
        Ok(self.parse(self.call("PUT", &format!("{}/lock", path(at)), Some(&body), &[])?)?)
    }

    fn unlock(&self, at: &EntryRef, _by: &str) -> Result<()> {
        Ok(self.call("DELETE", &format!("{}/lock", path(at)), None, &[]).map(drop)?)
    }

    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>> {
        Ok(self.get(&format!("{}/lock", path(at)))?)
    }

    fn save_draft(&self, draft: &Draft) -> Result<i64> {
        #[derive(serde::Deserialize)]
        struct Saved {
            #[serde(with = "tampu_types::id_text::stored")]
            number: i64,
            #[serde(default)]
            missing: Vec<String>,
        }
        let mut body = to_json(draft)?;
        if let Some(body) = body.as_object_mut() {
            ["number", "owner", "saved"].iter().for_each(|name| drop(body.remove(*name)));
        }
        let done = match draft.number {
            0 => self.call("POST", "/drafts", Some(&body), &[])?,
            number => self.call("PUT", &format!("/drafts/{number}"), Some(&body), &[])?,
        };
        let Saved { number, missing } = self.parse(done)?;
        if missing.is_empty() { Ok(number) } else { Err(ClientError::DraftWithoutFiles { number, files: missing }.into()) }
    }

    fn drafts(&self, _owner: &str) -> Result<Vec<Draft>> {
        Ok(self.get("/drafts")?)
    }

    fn drop_draft(&self, _owner: &str, number: i64) -> Result<bool> {
        Ok(self.call("DELETE", &format!("/drafts/{number}"), None, &[]).map(|_| true)?)
    }

    fn save_search(&self, _owner: &str, name: &str, query: &str) -> Result<()> {
        Ok(self.call("PUT", &format!("/searches/{}", encoded(name)), Some(&json!({ "q": query })), &[]).map(drop)?)
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
        Ok(self.call("DELETE", &format!("/searches/{}", encoded(name)), None, &[]).map(|_| true)?)
    }
}

impl Templates for Client {
    fn template(&self, book: &str, name: &str) -> Result<Template> {
        Ok(self.get(&template_path(book, name))?)
    }

    fn save_template(&self, book: &str, name: &str, template: &Template) -> Result<()> {
        self.call("PUT", &template_path(book, name), Some(&to_json(template)?), &[])?;
        Ok(())
    }

    fn templates(&self, book: &str) -> Result<Vec<String>> {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        let named: Vec<Named> = self.get(&format!("/books/{}/templates", encoded(book)))?;
        Ok(named.into_iter().map(|named| named.name).collect())
    }

    fn drop_template(&self, book: &str, name: &str) -> Result<()> {
        self.call("DELETE", &template_path(book, name), None, &[])?;
        Ok(())
    }
}

impl Client {
    /// Remembers the entries of attachments.
    pub(super) fn remember_attachments<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) {
        let mut seen = self.seen.lock();
        for entry in entries {
            for (position, file) in entry.content.attachments.iter().enumerate() {
                if let Some(sha) = &file.sha {
                    seen.insert(sha.clone(), (entry.at.clone(), position));
                }
            }
        }
    }

    /// Copies the bytes of an entry's attachment as they arrive. Returns their number. An error of `into` is passed on.
    pub fn copy_attachment(&self, at: &EntryRef, position: usize, into: &mut dyn io::Write) -> Result<u64> {
        let mut response = self.open("GET", &format!("{}/attachments/{position}", entry_path(at)))?;
        let copied = io::copy(&mut response.body_mut().with_config().limit(u64::MAX).reader(), into);
        Ok(copied.map_err(|error| self.unreachable(&error))?)
    }

    /// Requests the purge of an entry or of a part of it.
    pub fn purge(&self, at: &EntryRef, purge: &Purge) -> Result<Purged> {
        Ok(self.parse(self.call("POST", &format!("{}/purge", path(at)), Some(&to_json(purge)?), &[])?)?)
    }

    /// Returns the space of files by logbook and user, and the quotas.
    pub fn used_space(&self) -> Result<(Quota, Vec<UsedSpace>)> {
        #[derive(serde::Deserialize)]
        struct Usage {
            quota: Quota,
            used: Vec<UsedSpace>,
        }
        let Usage { quota, used } = self.get("/usage")?;
        Ok((quota, used))
    }

    /// Requests the hub's check of its logbooks. Returns one line for each fault.
    pub fn check(&self, progress: Progress<'_>) -> Result<Vec<String>> {
        let mut response = self.open("POST", &format!("{BASE}/check"))?;
        let mut faults = Vec::new();
        for line in BufReader::new(response.body_mut().with_config().limit(u64::MAX).reader()).lines() {
            let line: Value = serde_json::from_str(&line.map_err(|error| self.unreachable(&error))?).unwrap_or_default();
            match (&line["done"], &line["fault"], &line["faults"], &line["failed"]) {
                (Value::Number(done), ..) => {
                    if !progress(done.as_u64().unwrap_or_default(), line["total"].as_u64().unwrap_or_default()) {
                        return Ok(faults);
                    }
                }
                (_, Value::String(fault), ..) => faults.push(fault.clone()),
                (.., Value::Number(count), _) if count.as_u64() == Some(faults.len() as u64) => return Ok(faults),
                (.., Value::String(why)) => {
                    return Err(
                        ClientError::Refused { status: 500, kind: String::new(), detail: why.clone(), way_out: None }.into()
                    );
                }
                _ => return Err(ClientError::OtherRelease { url: self.url.clone(), why: line.to_string() }.into()),
            }
        }
        Err(self.unreachable(&"the hub ended before the check did").into())
    }
}

/// A reader of a type with a known size, which ureq's bodies need.
struct Sized<'a>(&'a mut dyn Read);

impl Read for Sized<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}
