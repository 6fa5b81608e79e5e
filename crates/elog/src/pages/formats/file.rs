//! Attachments under all addresses that ELOG has for them, with byte ranges.
//!
//! A file that a browser could execute is never executed. HTML and SVG are shown in a sandbox without scripts and
//! without the origin of the site. A type that is not known to be harmless is downloaded and not shown. As in ELOG, the
//! name decides about the type, not the bytes.

use std::io::{Read, Seek, SeekFrom};

use http::{
    HeaderMap, StatusCode,
    header::{
        ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue,
        IF_NONE_MATCH, IF_RANGE, RANGE,
    },
};
use tampu_logbook::{
    attachment::{Attachment, Sha, stored_name::is_named},
    entry::EntryRef,
    store::StoreError,
};

use crate::pages::{
    layout,
    request::BookRequest,
    response::{Body, Response},
};

/// Types by the ending of a name; a file with another ending is downloaded and not shown.
const TYPES: [(&str, &str); 25] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("bmp", "image/bmp"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("log", "text/plain; charset=utf-8"),
    ("asc", "text/plain; charset=utf-8"),
    ("csv", "text/plain; charset=utf-8"),
    ("dat", "text/plain; charset=utf-8"),
    ("py", "text/plain; charset=utf-8"),
    ("c", "text/plain; charset=utf-8"),
    ("h", "text/plain; charset=utf-8"),
    ("cpp", "text/plain; charset=utf-8"),
    ("xml", "text/plain; charset=utf-8"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("html", "text/html; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
];
/// The policy that forbids everything but viewing. The viewer of PDF in Chromium works with it (version 156, tried in
/// November 2026).
pub(in crate::pages) const BOX: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Answers with an attachment, by the name that ELOG gave it, and by the entry if the address names one.
pub fn attachment(request: &BookRequest<'_>, id: Option<u32>, name: &str, headers: &HeaderMap) -> Response {
    match find(request, id, name) {
        Ok(Some(Attachment { sha: Some(sha), name, .. })) => send(request, &sha, &name, headers),
        Ok(Some(_)) => layout::error(request, StatusCode::NOT_FOUND, "This file was missing when the logbook was imported"),
        Ok(None) => layout::error(request, StatusCode::NOT_FOUND, &format!("Cannot find attachment \"{name}\"")),
        Err(error) => request.failed(&error),
    }
}

/// Finds the attachment of this name: in the entry, else in any of the book, which costs one look-up in an index.
fn find(request: &BookRequest<'_>, id: Option<u32>, name: &str) -> Result<Option<Attachment>, StoreError> {
    if let Some(id) = id {
        match request.site.store().entry(&EntryRef::new(&request.book.name, id)) {
            Ok(entry) => {
                if let Some(found) = entry.content.attachments.into_iter().find(|one| is_named(one, name)) {
                    return Ok(Some(found));
                }
            }
            // The entry may have been moved, together with its attachments; then they are found by name.
            Err(StoreError::NoEntry(_) | StoreError::Gone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    request.site.store().attachment_named(&request.book.name, name)
}

fn send(request: &BookRequest<'_>, sha: &Sha, name: &str, headers: &HeaderMap) -> Response {
    let mut file = match request.site.store().attachment(sha) {
        Ok(file) => file,
        Err(error) => return request.failed(&error),
    };
    let size = file.size();
    let tag = format!("\"{}\"", sha.as_str());
    let mut answer = Response::new(Body::Bytes(Vec::new()));
    describe(answer.headers_mut(), name, &tag);
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if header(IF_NONE_MATCH).is_some_and(|known| known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag)) {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        return answer;
    }
    let wanted = header(RANGE).filter(|_| header(IF_RANGE).is_none_or(|known| known == tag));
    let (from, length) = match wanted.map_or(Wanted::All, |range| range_of(range, size)) {
        Wanted::All => (0, size),
        Wanted::ListPart(from, length) => {
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            insert(answer.headers_mut(), CONTENT_RANGE, &format!("bytes {from}-{}/{size}", from + length - 1));
            (from, length)
        }
        Wanted::Nothing => {
            *answer.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            insert(answer.headers_mut(), CONTENT_RANGE, &format!("bytes */{size}"));
            return answer;
        }
    };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return layout::error(request, StatusCode::INTERNAL_SERVER_ERROR, "The file cannot be read");
    }
    *answer.body_mut() = Body::Read(Box::new(file.take(length)), length);
    answer
}

fn insert(headers: &mut HeaderMap, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Sets the headers with the type of a file and the way a browser handles it.
fn describe(headers: &mut HeaderMap, name: &str, tag: &str) {
    let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    let known = TYPES.iter().find(|(known, _)| *known == end).map(|(_, kind)| *kind);
    let shown = if known.is_some() { "inline" } else { "attachment" };
    // A name beyond ASCII goes into the second form, which every browser prefers.
    let plain: String = name.chars().map(|c| if c.is_ascii() && !matches!(c, '"' | '\\') { c } else { '_' }).collect();
    let encoded: String = name
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() || b".-_".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    insert(headers, CONTENT_TYPE, known.unwrap_or("application/octet-stream"));
    insert(headers, CONTENT_DISPOSITION, &format!("{shown}; filename=\"{plain}\"; filename*=UTF-8''{encoded}"));
    insert(headers, CONTENT_SECURITY_POLICY, BOX);
    insert(headers, ACCEPT_RANGES, "bytes");
    insert(headers, ETAG, tag);
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// The whole file, also if the range is invalid or has several pieces.
    All,
    /// A range: first byte and length.
    ListPart(u64, u64),
    /// A range outside of the file.
    Nothing,
}

/// Parses `bytes=0-99`, `bytes=100-`, `bytes=-100`.
fn range_of(range: &str, size: u64) -> Wanted {
    let Some((from, to)) =
        range.strip_prefix("bytes=").filter(|range| !range.contains(',')).and_then(|range| range.split_once('-'))
    else {
        return Wanted::All;
    };
    match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), _) if from >= size => Wanted::Nothing,
        (Ok(from), Ok(to)) if to >= from => Wanted::ListPart(from, to.min(size - 1) - from + 1),
        (Ok(from), Err(_)) if to.trim().is_empty() => Wanted::ListPart(from, size - from),
        (Err(_), Ok(0)) if from.trim().is_empty() => Wanted::Nothing,
        (Err(_), Ok(_)) if from.trim().is_empty() && size == 0 => Wanted::Nothing,
        (Err(_), Ok(last)) if from.trim().is_empty() => Wanted::ListPart(size - last.min(size), last.min(size)),
        _ => Wanted::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_that_are_there() {
        for (range, size, wanted) in [
            ("bytes=0-99", 1000, Wanted::ListPart(0, 100)),
            ("bytes=900-2000", 1000, Wanted::ListPart(900, 100)),
            ("bytes=900-", 1000, Wanted::ListPart(900, 100)),
            ("bytes=-100", 1000, Wanted::ListPart(900, 100)),
            ("bytes=-2000", 1000, Wanted::ListPart(0, 1000)),
            ("bytes=1000-", 1000, Wanted::Nothing),
            ("bytes=-0", 1000, Wanted::Nothing),
            ("bytes=0-", 0, Wanted::Nothing),
            ("bytes=-1", 0, Wanted::Nothing),
            ("bytes=5-1", 1000, Wanted::All),
            ("bytes=0-1,5-6", 1000, Wanted::All),
            ("bytes=18446744073709551616-", 1000, Wanted::All),
            ("lines=1-2", 1000, Wanted::All),
            ("bytes=a-b", 1000, Wanted::All),
        ] {
            assert_eq!(range_of(range, size), wanted, "{range}");
        }
    }

    #[test]
    fn what_a_browser_could_run_is_boxed_or_saved() {
        for (name, kind, shown) in [
            ("a.PNG", "image/png", "inline"),
            ("a.html", "text/html; charset=utf-8", "inline"),
            ("a.exe", "application/octet-stream", "attachment"),
            ("html", "application/octet-stream", "attachment"),
            ("ä\"\r\nSet-Cookie: x.txt", "text/plain; charset=utf-8", "inline"),
        ] {
            let mut headers = HeaderMap::new();
            describe(&mut headers, name, "\"x\"");
            assert_eq!(headers[CONTENT_TYPE], kind, "{name}");
            assert_eq!(headers[CONTENT_SECURITY_POLICY], BOX);
            let disposition = headers.get(CONTENT_DISPOSITION).map(|value| value.to_str().unwrap().to_owned());
            assert!(disposition.is_none_or(|value| value.starts_with(shown)), "{name}");
        }
    }
}
