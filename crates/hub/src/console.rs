//! The console: pages for browsers, at `/` of the hub's HTTP address.
//!
//! The files are built by `make ui`, stand in `ui/dist`, and are part of this program, so that nothing is installed
//! beside it. The pages hold no data: they ask the API and the gateway with the credentials of the browser. All of
//! their addresses are relative, because a proxy may show the hub below any path.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts};
use tampu_workers::Stop;

use crate::{
    api::BASE,
    http::{
        admission::WorkKind,
        body::{HttpRequest, ResponseBody},
        headers::{all_lines, secure, set},
        problem::Problem,
        route::{HttpService, Matched},
        server::plain_rejection,
    },
};

/// A file of the console, also in its compressed forms.
struct ConsoleFile {
    path: &'static str,
    kind: &'static str,
    tag: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    brotli: &'static [u8],
}

const FILES: &[ConsoleFile] = &include!("../../../ui/dist/files.rs");

/// The page, whose script shows all views.
const PAGE: &str = "index.html";
/// The views, each with a path of its own.
const VIEWS: &[&str] = &include!("../../../ui/dist/views.rs");
/// Files below this path have the hash of their content in their name.
const HASHED: &str = "assets/";

/// The content security policy of the page. The scripts make elements of templates by one named policy.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri 'none'; \
    form-action 'self'; frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// The name by which the console leads to ELOG's pages, whatever their prefix is.
const ELOG: &str = "elog-pages";

/// The console as a service: everything that no other service has.
pub struct Console {
    /// The path of ELOG's pages, such as `/elog`.
    pub elog_prefix: String,
}

impl Console {
    fn answer(&self, path: &str, query: Option<&str>, headers: &HeaderMap) -> http::Response<ResponseBody> {
        let Some(name) = path.strip_prefix('/') else { return missing(path, &self.elog_prefix) };
        // A browser gets the console's own view. Bookmarks and programs of ELOG ask with a query.
        if name == "logbook" && query.is_none() && path != self.elog_prefix {
            return redirect("./book");
        }
        if path == self.elog_prefix || name == "logbook" || name == ELOG {
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            return redirect(&format!(".{}/{query}", self.elog_prefix));
        }
        let name = if name.is_empty() || VIEWS.contains(&name) { PAGE } else { name };
        match FILES.iter().find(|file| file.path == name) {
            Some(file) => file.answer(headers),
            None => missing(path, &self.elog_prefix),
        }
    }
}

/// Leads to another page, by its address relative to a path directly below the hub's own.
fn redirect(to: &str) -> http::Response<ResponseBody> {
    let mut answer = http::Response::new(ResponseBody::Whole(Bytes::new()));
    *answer.status_mut() = StatusCode::FOUND;
    set(answer.headers_mut(), header::LOCATION, to);
    answer
}

fn missing(path: &str, prefix: &str) -> http::Response<ResponseBody> {
    let detail = format!("there is nothing at '{}'", path.escape_debug());
    let help = format!("the console is at /, the logbook at {prefix}/, the API at {BASE}");
    crate::book::elog::plain(&Problem::new(StatusCode::NOT_FOUND, "not-there", detail).help(help))
}

impl ConsoleFile {
    fn answer(&self, headers: &HeaderMap) -> http::Response<ResponseBody> {
        let (bytes, encoding) = self.encoded(&all_lines(headers, header::ACCEPT_ENCODING, ","));
        // A form of a file has a tag of its own.
        let tag = format!("\"{}{}\"", self.tag, encoding.map(|name| format!("-{name}")).unwrap_or_default());
        let known = all_lines(headers, header::IF_NONE_MATCH, ",");
        let is_known = known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag);
        let mut answer =
            http::Response::new(ResponseBody::Whole(if is_known { Bytes::new() } else { Bytes::from_static(bytes) }));
        if is_known {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let to = answer.headers_mut();
        to.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        to.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        set(to, header::ETAG, &tag);
        if let Some(encoding) = encoding.filter(|_| !is_known) {
            to.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        let is_hashed = self.path.starts_with(HASHED);
        let cache = if is_hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
        to.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        answer
    }

    /// Returns the smallest form that a client takes, with its name.
    fn encoded(&self, accepted: &str) -> (&'static [u8], Option<&'static str>) {
        let takes = |name: &str| {
            accepted.split(',').any(|one| {
                let (coding, weight) = one.split_once(';').unwrap_or((one, ""));
                let weight = weight.trim().strip_prefix("q=").unwrap_or("1").trim();
                coding.trim().eq_ignore_ascii_case(name) && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
            })
        };
        match (takes("br"), takes("gzip")) {
            (true, _) => (self.brotli, Some("br")),
            (false, true) => (self.gzip, Some("gzip")),
            (false, false) => (self.plain, None),
        }
    }
}

impl HttpService for Console {
    fn find(self: Arc<Self>, head: &Parts) -> Matched {
        let uri = head.uri.clone();
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        let handler = move |request: HttpRequest<'_>, _: &Stop| {
            let mut answer = if is_read {
                self.answer(uri.path(), uri.query(), &request.head.headers)
            } else {
                let mut answer = plain_rejection(StatusCode::METHOD_NOT_ALLOWED);
                answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                answer
            };
            secure(answer.headers_mut());
            answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
            answer
        };
        Matched::for_all(WorkKind::Quick, 64 << 10, plain_rejection, Box::new(handler))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, headers: &[(header::HeaderName, &str)]) -> http::Response<ResponseBody> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect();
        Console { elog_prefix: "/elog".to_owned() }.answer(path, None, &headers)
    }

    fn header_of<'a>(answer: &'a http::Response<ResponseBody>, name: &header::HeaderName) -> &'a str {
        answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn the_page_is_at_the_root_and_at_each_view() {
        let views = VIEWS.iter().map(|view| format!("/{view}"));
        for path in ["/", "/log", "/index.html"].map(str::to_owned).into_iter().chain(views) {
            let answer = get(&path, &[]);
            assert_eq!((answer.status(), header_of(&answer, &header::CACHE_CONTROL)), (StatusCode::OK, "no-cache"), "{path}");
            assert!(header_of(&answer, &header::CONTENT_TYPE).starts_with("text/html"), "{path}");
        }
        for path in ["/log/", "/assets/", "/assets/other.js", "/../Cargo.toml", "/files.rs", "/index.html.br"] {
            assert_eq!(get(path, &[]).status(), StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(header_of(&get("/logbook", &[]), &header::LOCATION), "./book");
        for path in ["/elog", "/elog-pages"] {
            assert_eq!(header_of(&get(path, &[]), &header::LOCATION), "./elog/", "{path}");
        }
        let elog = Console { elog_prefix: "/logbook".to_owned() };
        for path in ["/logbook", "/elog-pages"] {
            let answer = elog.answer(path, None, &HeaderMap::new());
            assert_eq!(header_of(&answer, &header::LOCATION), "./logbook/", "{path}");
        }
    }

    #[test]
    fn files_with_a_hash_are_kept_for_a_year_and_others_are_asked_for() {
        let hashed = FILES.iter().filter(|file| file.path.starts_with(HASHED)).collect::<Vec<_>>();
        assert!(hashed.len() >= 2, "a script and a style");
        for file in hashed {
            let answer = get(&format!("/{}", file.path), &[]);
            assert!(header_of(&answer, &header::CACHE_CONTROL).ends_with("immutable"), "{}", file.path);
        }
        let tag = header_of(&get("/", &[]), &header::ETAG).to_owned();
        let again = get("/", &[(header::IF_NONE_MATCH, &tag)]);
        assert_eq!((again.status(), again.body().length()), (StatusCode::NOT_MODIFIED, Some(0)));
        assert_eq!(get("/", &[(header::IF_NONE_MATCH, "\"other\"")]).status(), StatusCode::OK);
    }

    #[test]
    fn a_client_gets_the_smallest_form_that_it_takes() {
        for (accepted, wanted) in [
            ("gzip, deflate, br, zstd", "br"),
            ("gzip, deflate", "gzip"),
            ("br;q=0, gzip;q=0.5", "gzip"),
            ("identity", ""),
            ("brotli", ""),
        ] {
            let answer = get("/", &[(header::ACCEPT_ENCODING, accepted)]);
            assert_eq!(header_of(&answer, &header::CONTENT_ENCODING), wanted, "{accepted}");
            assert_eq!(header_of(&answer, &header::VARY), "Accept-Encoding");
        }
    }

    #[test]
    fn the_first_view_is_small() {
        let bytes: usize = FILES.iter().filter(|file| file.path != "licences.txt").map(|file| file.gzip.len()).sum();
        assert!(bytes <= 300_000, "{bytes} bytes");
    }

    #[test]
    fn the_page_has_nothing_that_its_policy_refuses() {
        let page = FILES.iter().find(|file| file.path == PAGE).map(|file| std::str::from_utf8(file.plain).unwrap()).unwrap();
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains("<base"), "{page}");
        assert_eq!(page.matches("<script").count(), page.matches(" src=\"./assets/").count(), "{page}");
        assert!(!page.contains("//"), "every address is relative: {page}");
    }
}
