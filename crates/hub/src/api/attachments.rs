//! Files of entries: uploaded first, or straight into an entry; downloaded whole or in ranges; previews of pictures.

use std::{
    io::{Read, Seek, SeekFrom},
    ops::RangeInclusive,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use tampu_logbook::{
    attachment::{Attachment, Sha, plain_name},
    client::address::encoded,
    people::{Resource, Right, Verb},
    store::{
        StoreError,
        quota::{Quota, Used},
    },
};

use super::{
    call::{Answer, Call, DELETE, GET, POST, Route, json, nothing},
    entries,
    preview::NoPreview,
};
use crate::http::route::{
    Content::{self, Nothing},
    IfMatch, json_of,
};
use crate::{
    clock::now,
    http::{admission::WorkKind, body::ResponseBody, headers::set, problem::Problem, route::BodyLimit},
};

const ANY: Content = Content::Bytes("application/octet-stream");

/// Routes of files.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/uploads",
        id: "upload",
        what: "Uploads a file of any size. Within an hour, an entry of the same login can name its sha in 'attachments'",
        takes: ANY,
        gives: (201, json_of::<Uploaded<'static>>()),
        body: BodyLimit::File,
        act: upload,
        ..POST
    },
    Route {
        path: "/uploads/{sha}",
        id: "dropUpload",
        what: "Deletes an uploaded file that no entry has",
        gives: (204, Nothing),
        act: |call| {
            check_sender(call)?;
            let sha = Sha::try_from(call.var(0).to_owned()).map_err(|error| Problem::bad("path", error.to_string()))?;
            let gone = || Problem::new(StatusCode::NOT_FOUND, "not-there", "you have uploaded no such file");
            if !call.api.staging.has(&call.by(), &sha) {
                return Err(gone());
            }
            call.api.staging.done(&call.by(), &sha);
            nothing()
        },
        ..DELETE
    },
    Route {
        path: "/books/{book}/entries/{id}/attachments",
        id: "attach",
        what: "Adds a file to an entry, which is an edit",
        query: &[("name", "string", "the file's name")],
        takes: ANY,
        gives: (201, json_of::<entries::Revised>()),
        body: BodyLimit::File,
        if_match: IfMatch::Optional,
        act: attach,
        ..POST
    },
    Route {
        path: "/books/{book}/entries/{id}/attachments/{number}",
        id: "getAttachment",
        what: "Returns a file of an entry, by its place from 0; whole or, with Range, a part",
        query: &[("inline", "boolean", "shown in the browser and not saved, if it is a picture, plain text or PDF")],
        gives: (200, ANY),
        act: download,
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/attachments/{number}/preview",
        id: "getPreview",
        what: "Returns a preview of a file that is a JPEG, PNG, GIF or WebP",
        query: &[("size", "integer", "pixels of its longer side, 16 to 1024; 256, if missing")],
        gives: (200, Content::Bytes("image/png")),
        act: preview,
        ..GET
    },
];

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Upload")]
struct Uploaded<'a> {
    sha: &'a Sha,
    size: u64,
}

fn limit(call: &Call<'_>) -> u64 {
    call.api.setting_changes.longest_attachment()
}

/// Returns the length of the body that the request announces.
fn announced(call: &Call<'_>) -> u64 {
    let length = call.head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.unwrap_or_default()
}

/// Checks that a file of this size fits the quotas of the caller and of the site, beside the files that wait for an entry.
fn fits(call: &Call<'_>, size: u64) -> Result<(), Problem> {
    let (by, quota) = (call.by(), call.api.setting_changes.in_force().config.book.quota());
    if quota == Quota::default() {
        return Ok(());
    }
    let mut used = Used::of(&call.api.store.used_space()?, None, &by);
    used.user = used.user.saturating_add(call.api.staging.waiting(Some(&by)));
    used.site = used.site.saturating_add(call.api.staging.waiting(None));
    // The logbook is checked with the entry.
    let quota = Quota { book: 0, ..quota };
    Ok(quota.check(used, size, "", &by).map_err(|over| StoreError::OverQuota(Box::new(over)))?)
}

/// Rejects callers who may post nowhere: they have no use for uploads.
fn check_sender(call: &Call<'_>) -> Result<(), Problem> {
    if !call.who().rights.books(Right::Write).is_empty() {
        return Ok(());
    }
    let (status, kind) =
        if call.who().is_guest() { (StatusCode::UNAUTHORIZED, "log-in") } else { (StatusCode::FORBIDDEN, "no-right") };
    Err(Problem::new(status, kind, "you may post to no logbook").help("log in, or ask an administrator for the right"))
}

fn upload(call: &mut Call<'_>) -> Result<Answer, Problem> {
    check_sender(call)?;
    let limit = limit(call);
    // A long file is not received in vain.
    fits(call, announced(call))?;
    let upload = call.api.store.upload(&mut *call.body, limit)?;
    fits(call, upload.size())?;
    let (sha, size) = (upload.sha().clone(), upload.attachment("", now()).size);
    call.api.staging.keep(&call.by(), upload).map_err(|why| Problem::new(StatusCode::CONFLICT, "full", why))?;
    json(StatusCode::CREATED, &Uploaded { sha: &sha, size })
}

fn attach(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let name = call.parameter("name").filter(|name| !name.is_empty()).map(plain_name);
    let name = name.ok_or_else(|| Problem::bad("query name", "the file's name is missing"))?;
    let entry = entries::readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    // Reports an invalid header before the file is received.
    entries::expected(call, entry.revision)?;
    let limit = limit(call);
    fits(call, announced(call))?;
    let upload = call.api.store.upload(&mut *call.body, limit)?;
    // The upload may have taken long, so the file is added to the entry's current content.
    let entry = entries::readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    let mut content = entry.content;
    content.attachments.push(upload.attachment(&name, now()));
    let expected = entries::expected(call, entry.revision)?.or(Some(entry.revision));
    let revision = call.api.store.edit(&entry.at, content, vec![upload], &call.by(), expected)?;
    entries::revised(StatusCode::CREATED, entry.at, revision)
}

/// Returns the file that the path names, by its place in the newest revision.
fn file(call: &Call<'_>) -> Result<(Attachment, Sha), Problem> {
    let entry = entries::readable(call)?;
    let number: usize = call.number(2, "number of an attachment")?;
    let not_there = |what: &str| Problem::new(StatusCode::NOT_FOUND, "not-there", format!("entry {}: {what}", entry.at));
    let found = entry.content.attachments.get(number).ok_or_else(|| not_there(&format!("it has no attachment {number}")))?;
    let sha = found
        .sha
        .clone()
        .ok_or_else(|| not_there(&format!("the bytes of '{}' were not found when it was imported", found.name)))?;
    Ok((found.clone(), sha))
}

fn download(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let inline = call.flag("inline")?;
    let (attachment, sha) = file(call)?;
    let etag = format!("\"{}\"", sha.as_str());
    if call.head.headers.get(header::IF_NONE_MATCH).is_some_and(|said| said.as_bytes() == etag.as_bytes()) {
        let mut answer = http::Response::new(ResponseBody::Whole(Bytes::new()));
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        set(answer.headers_mut(), header::ETAG, &etag);
        return Ok(answer);
    }
    let mut file = call.api.store.attachment(&sha)?;
    let size = file.size();
    let range = range(&call.head.headers, &etag, size)?;
    let (status, from, length) = match &range {
        Some(range) => (StatusCode::PARTIAL_CONTENT, *range.start(), range.end() - range.start() + 1),
        None => (StatusCode::OK, 0, size),
    };
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut answer = http::Response::new(ResponseBody::of_reader(Box::new(file.take(length)), length));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    describe(headers, &attachment.name, inline);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    set(headers, header::ETAG, &etag);
    if let Some(range) = range {
        set(headers, header::CONTENT_RANGE, &format!("bytes {}-{}/{size}", range.start(), range.end()));
    }
    Ok(answer)
}

fn failed(error: std::io::Error) -> Problem {
    StoreError::Io { path: std::path::PathBuf::new(), error }.into()
}

/// Sets the headers of a file. A browser never treats it as a page of the hub, for every declared type.
fn describe(headers: &mut HeaderMap, name: &str, inline: bool) {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    let (kind, shown) = match extension.as_str() {
        "png" => ("image/png", true),
        "jpg" | "jpeg" => ("image/jpeg", true),
        "gif" => ("image/gif", true),
        "webp" => ("image/webp", true),
        "pdf" => ("application/pdf", true),
        "txt" | "log" | "csv" | "md" | "dat" => ("text/plain; charset=utf-8", true),
        _ => ("application/octet-stream", false),
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let plain: String =
        name.chars().map(|c| if c.is_ascii_graphic() && !['"', '\\', '%'].contains(&c) || c == ' ' { c } else { '_' }).collect();
    let how = if inline && shown { "inline" } else { "attachment" };
    set(headers, header::CONTENT_DISPOSITION, &format!("{how}; filename=\"{plain}\"; filename*=UTF-8''{}", encoded(name)));
    // The viewer of PDF in Chromium works in this sandbox (version 156, tried in November 2026).
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox; default-src 'none'; style-src 'unsafe-inline'"),
    );
}

/// Returns the requested range, as browsers and `curl -C` send it. A request for several ranges gets the whole file.
fn range(headers: &HeaderMap, etag: &str, size: u64) -> Result<Option<RangeInclusive<u64>>, Problem> {
    let Some(said) = headers.get(header::RANGE).and_then(|said| said.to_str().ok()) else { return Ok(None) };
    if headers.get(header::IF_RANGE).is_some_and(|said| said.as_bytes() != etag.as_bytes()) {
        return Ok(None);
    }
    let Some((first, last)) = said.trim().strip_prefix("bytes=").and_then(|range| range.trim().split_once('-')) else {
        return Ok(None);
    };
    let found = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if last < first => return Ok(None),
        (Ok(first), Ok(last)) => first..=last.min(size.saturating_sub(1)),
        (Ok(first), Err(_)) if last.trim().is_empty() => first..=size.saturating_sub(1),
        (Err(_), Ok(last)) if first.trim().is_empty() => size.saturating_sub(last)..=size.saturating_sub(1),
        _ => return Ok(None),
    };
    if *found.start() >= size || found.is_empty() {
        let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "no-range", format!("the file has {size} bytes"));
        return Err(problem.at("header Range"));
    }
    Ok(Some(found))
}

fn preview(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let size: u32 = call.parsed("size")?.unwrap_or(256);
    let (attachment, sha) = file(call)?;
    let (previews, store, name) = (call.api.previews.clone(), call.api.store.clone(), attachment.name);
    if let Some(made) = previews.kept(&sha, size) {
        return small(made, &name);
    }
    let make = move || {
        let open = || store.attachment(&sha).map_err(|error| NoPreview::File(error.to_string()));
        small(previews.of(&sha, size, open), &name).unwrap_or_else(|problem| problem.answer())
    };
    Ok(http::Response::new(ResponseBody::Later(WorkKind::Picture, Box::new(make))))
}

fn small(made: Result<Bytes, NoPreview>, name: &str) -> Result<Answer, Problem> {
    let made = made.map_err(|why| {
        let (status, kind) = match why {
            NoPreview::File(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
            NoPreview::Kind | NoPreview::Picture(_) => (StatusCode::UNPROCESSABLE_ENTITY, "no-preview"),
        };
        // Callers must not see paths on the hub's disk.
        let why = if let NoPreview::File(_) = why { "the file could not be read".to_owned() } else { why.to_string() };
        Problem::new(status, kind, format!("'{}': {why}", name.escape_debug()))
    })?;
    let mut answer = http::Response::new(ResponseBody::Whole(made));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/png"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_as_rfc_9110_does() {
        let asked = |said: &str, size| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, said.parse().unwrap());
            range(&headers, "\"x\"", size).map_err(|problem| problem.status)
        };
        for (said, part) in [
            ("bytes=0-9", Some(0..=9)),
            ("bytes=90-", Some(90..=99)),
            ("bytes=-10", Some(90..=99)),
            ("bytes=-1000", Some(0..=99)),
            ("bytes=50-1000", Some(50..=99)),
            ("bytes=5-4", None),
            ("bytes=0-1,5-6", None),
            ("lines=1-2", None),
            ("bytes=-", None),
            ("bytes=99999999999999999999-", None),
        ] {
            assert_eq!(asked(said, 100), Ok(part), "{said}");
        }
        for said in ["bytes=100-", "bytes=100-200"] {
            assert_eq!(asked(said, 100), Err(416), "{said}");
        }
        assert_eq!(asked("bytes=0-", 0), Err(416));
        assert_eq!(asked("bytes=-0", 100), Err(416));
    }

    #[test]
    fn names_cannot_write_headers() {
        let mut headers = HeaderMap::new();
        describe(&mut headers, "a\"b;\r\nX: y é.html", true);
        let told = headers[header::CONTENT_DISPOSITION].to_str().unwrap();
        assert!(told.starts_with("attachment; filename=\"a_b;__X: y _.html\"; filename*=UTF-8''a%22b"), "{told}");
        assert_eq!(headers[header::CONTENT_TYPE], "application/octet-stream");
    }
}
