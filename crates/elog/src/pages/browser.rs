//! The headers that identify a browser and the page from which it came.

use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_LANGUAGE, COOKIE, HeaderName, ORIGIN, REFERER},
};

/// Returns true if a browser sent the request.
pub fn is_browser(headers: &HeaderMap) -> bool {
    let fetch = HeaderName::from_static("sec-fetch-site");
    [fetch, ORIGIN, REFERER, ACCEPT_LANGUAGE].iter().any(|name| headers.contains_key(name))
}

/// The origin of a browser's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserOrigin {
    /// True if the browser wants to show a page, and not an image or another part of a page.
    pub for_a_page: bool,
    /// True if a person certainly followed a link of this site or typed the address.
    pub own_navigation: bool,
    /// True if a page of another site led here: the request may only read.
    pub from_other_site: bool,
}

impl BrowserOrigin {
    /// Reads the headers of a request. A program counts as a browser that requests a page. Browsers send `Sec-Fetch`
    /// only over TLS. Without it, `Accept` distinguishes pages from images, and `Referer` names the page of the link.
    pub fn of(headers: &HeaderMap, base: &str) -> BrowserOrigin {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let from_other_site = is_foreign(headers, base);
        if let Some(destination) = text(HeaderName::from_static("sec-fetch-dest")) {
            let for_a_page = destination == "document";
            let site = text(HeaderName::from_static("sec-fetch-site"));
            let own_navigation = for_a_page && matches!(site, Some("same-origin" | "none"));
            return BrowserOrigin { for_a_page, own_navigation, from_other_site };
        }
        let accepts = text(ACCEPT);
        let for_a_page = !is_browser(headers) || accepts.is_none_or(|kinds| kinds.contains("text/html"));
        let own = text(REFERER).is_some_and(|referer| host(referer) == host(base));
        let own_navigation = !is_browser(headers) || accepts.is_some() && for_a_page && own;
        BrowserOrigin { for_a_page, own_navigation, from_other_site }
    }
}

/// The host and port of an address.
fn host(address: &str) -> String {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest).split('/').next().unwrap_or_default();
    host.to_ascii_lowercase()
}

/// Returns true if the browser says that a page of another site sent the request.
pub fn is_foreign(headers: &HeaderMap, base: &str) -> bool {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(&HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    text(&ORIGIN).is_some_and(|origin| host(origin) != host(base))
}

/// The value of a cookie.
pub fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut parts = lines.flat_map(|line| line.split(';'));
    parts.find_map(|part| part.trim().split_once('=').filter(|(found, _)| *found == name).map(|(_, value)| value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_and_where_they_come_from_are_known() {
        let headers = |all: &[(&'static str, &'static str)]| -> HeaderMap {
            all.iter().map(|&(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value))).collect()
        };
        let base = "https://site:8080/elog";
        for (all, browser, foreign) in [
            (&[("user-agent", "ELOG")][..], false, false),
            (&[("accept", "*/*"), ("accept-encoding", "gzip")], false, false),
            (&[("accept-language", "en")], true, false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://evil")], true, false),
            (&[("sec-fetch-site", "cross-site")], true, true),
            (&[("sec-fetch-site", "same-site")], true, true),
            (&[("origin", "https://SITE:8080")], true, false),
            (&[("origin", "http://evil")], true, true),
            (&[("origin", "null")], true, true),
            (&[("referer", "https://evil/")], true, false),
        ] {
            let headers = headers(all);
            assert_eq!((is_browser(&headers), is_foreign(&headers, base)), (browser, foreign), "{all:?}");
        }
        let cookies = headers(&[("cookie", "unm=zoe;upwd=x=y; sid=1")]);
        assert_eq!((cookie(&cookies, "upwd").as_deref(), cookie(&cookies, "si")), (Some("x=y"), None));
    }
}
