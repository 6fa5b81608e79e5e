//! Attachments, under all addresses that ELOG has for them, in pieces where somebody asks for a piece.
//!
//! What a browser may run is never run: HTML and SVG are shown in a box without scripts and without our origin, and a type that is not
//! known to be harmless is saved and not shown. What a file is called says what it is, as with ELOG; its bytes are not looked at.

use std::io::{Read, Seek, SeekFrom};

use http::{
    HeaderMap, StatusCode,
    header::{
        ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue,
        IF_NONE_MATCH, IF_RANGE, RANGE,
    },
};

use crate::{
    attachment::{Attachment, Sha},
    elog::{
        date,
        web::{Body, BookAsk, Response, layout},
        written::stored_name,
    },
    entry::EntryRef,
    search::{Search, Start, Stopped},
    store::StoreError,
};
use tampu_types::Time;

/// Types by the end of a name; what has none here is saved and not shown.
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
/// Everything but looking at it is forbidden.
const BOX: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Answers with an attachment, by the name ELOG gave it; where the address says so, of this entry.
pub fn attachment(ask: &BookAsk<'_>, id: Option<u32>, name: &str, headers: &HeaderMap) -> Response {
    match find(ask, id, name) {
        Ok(Some(Attachment { sha: Some(sha), name, .. })) => send(ask, &sha, &name, headers),
        Ok(Some(_)) => layout::error(ask, StatusCode::NOT_FOUND, "This file was not there when the logbook was taken over"),
        Ok(None) => layout::error(ask, StatusCode::NOT_FOUND, &format!("Cannot find attachment \"{name}\"")),
        Err(error) => ask.failed(&error),
    }
}

/// The attachment of this name: of the entry; else of one of about its time; else of any in the book.
fn find(ask: &BookAsk<'_>, id: Option<u32>, name: &str) -> Result<Option<Attachment>, StoreError> {
    let such = |attachment: &Attachment| stored_name(attachment) == name || attachment.elog.as_deref() == Some(name);
    if let Some(id) = id {
        match ask.site.store().entry(&EntryRef::new(&ask.book.name, id)) {
            Ok(entry) => {
                if let Some(found) = entry.content.attachments.into_iter().find(such) {
                    return Ok(Some(found));
                }
            }
            // It may have been moved, and its attachments with it to where they are found by name.
            Err(StoreError::NoEntry(_) | StoreError::Gone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let plain = name.get(14..).unwrap_or(name);
    let words: Vec<&str> = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let named = if words.is_empty() { "has:attachment".to_owned() } else { format!("attachment:\"{}\"", words.join(" ")) };
    let day = |time: Time| time.to_acs()[..10].to_owned();
    let about = date::of_stamp(name).map(|at| {
        const DAY: i64 = 86_400_000_000_000;
        format!("{named} since:{} until:{}", day(Time(at.0.saturating_sub(2 * DAY))), day(Time(at.0.saturating_add(2 * DAY))))
    });
    for query in about.into_iter().chain([named]) {
        if let Some(found) = search(ask, query, &such)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn search(ask: &BookAsk<'_>, query: String, such: &dyn Fn(&Attachment) -> bool) -> Result<Option<Attachment>, StoreError> {
    let mut search = Search { books: vec![ask.book.name.clone()], query, limit: 200, count_to: 0, ..Search::default() };
    let stop = ask.stop.within(ask.site.config.search_time);
    loop {
        let page = ask.site.store().search(&search, &stop)?;
        let mut all = page.hits.into_iter().flat_map(|hit| hit.entry.content.attachments);
        if let Some(found) = all.find(such) {
            return Ok(Some(found));
        }
        match (page.next, page.stopped) {
            (_, Some(Stopped::TimeLimit | Stopped::Abandoned)) | (None, _) => return Ok(None),
            (Some(next), None) => search.start = Start::After(next),
        }
    }
}

fn send(ask: &BookAsk<'_>, sha: &Sha, name: &str, headers: &HeaderMap) -> Response {
    let mut file = match ask.site.store().attachment(sha) {
        Ok(file) => file,
        Err(error) => return ask.failed(&error),
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
        Wanted::Part(from, length) => {
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
        return layout::error(ask, StatusCode::INTERNAL_SERVER_ERROR, "The file cannot be read");
    }
    *answer.body_mut() = Body::Read(Box::new(file.take(length)), length);
    answer
}

fn insert(headers: &mut HeaderMap, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// What a file is, and how a browser is to take it.
fn describe(headers: &mut HeaderMap, name: &str, tag: &str) {
    let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    let known = TYPES.iter().find(|(known, _)| *known == end).map(|(_, kind)| *kind);
    let shown = if known.is_some() { "inline" } else { "attachment" };
    // A name that is more than ASCII goes in the second form, which every browser prefers.
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
    /// All of it, also where the request cannot be read or wants several pieces.
    All,
    /// From where, how many bytes.
    Part(u64, u64),
    /// Nothing that is there.
    Nothing,
}

/// `bytes=0-99`, `bytes=100-`, `bytes=-100`.
fn range_of(range: &str, size: u64) -> Wanted {
    let Some((from, to)) =
        range.strip_prefix("bytes=").filter(|range| !range.contains(',')).and_then(|range| range.split_once('-'))
    else {
        return Wanted::All;
    };
    match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), _) if from >= size => Wanted::Nothing,
        (Ok(from), Ok(to)) if to >= from => Wanted::Part(from, to.min(size - 1) - from + 1),
        (Ok(from), Err(_)) if to.trim().is_empty() => Wanted::Part(from, size - from),
        (Err(_), Ok(0)) if from.trim().is_empty() => Wanted::Nothing,
        (Err(_), Ok(_)) if from.trim().is_empty() && size == 0 => Wanted::Nothing,
        (Err(_), Ok(last)) if from.trim().is_empty() => Wanted::Part(size - last.min(size), last.min(size)),
        _ => Wanted::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_those_that_are_there() {
        for (range, size, wanted) in [
            ("bytes=0-99", 1000, Wanted::Part(0, 100)),
            ("bytes=900-2000", 1000, Wanted::Part(900, 100)),
            ("bytes=900-", 1000, Wanted::Part(900, 100)),
            ("bytes=-100", 1000, Wanted::Part(900, 100)),
            ("bytes=-2000", 1000, Wanted::Part(0, 1000)),
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
