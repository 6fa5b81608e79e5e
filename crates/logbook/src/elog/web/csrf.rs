//! Forms that only our own pages can send: a hidden field that other sites cannot know.
//!
//! What changes something needs the field if a browser sent it, or if it came with a session; programs have neither, and say who they are in
//! what they send. A browser is known by headers that every browser sends and no other site can take away.

use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_LANGUAGE, COOKIE, HeaderName, ORIGIN, REFERER},
};
use sha2::{Digest, Sha256};

use super::{Ask, Caller, Site};
use crate::attachment::hex;

/// The name of the hidden field.
pub const FIELD: &str = "tampu_form";

/// The value of the hidden field of forms that are made for this caller.
pub fn token(site: &Site, caller: &Caller) -> String {
    // Guests are told apart by where they are: what one of them reads in a form is no other's. No login has a line end.
    let who = if caller.login.is_empty() { format!("\n{}", caller.from) } else { caller.login.clone() };
    // The inner digest has a fixed length, so that no name can be lengthened into another one's token.
    let who = Sha256::digest(who.as_bytes());
    hex(&Sha256::new().chain_update(site.config.secret).chain_update(who).finalize()[..16])
}

/// Whether a value is that of this caller's forms.
pub fn is_token(site: &Site, caller: &Caller, value: &str) -> bool {
    let (given, expected) = (value.as_bytes(), token(site, caller));
    // As long for every wrong value of the right length.
    given.len() == expected.len() && given.iter().zip(expected.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Whether a change is asked for by who seems to: by a program, or by a form of ours.
pub fn is_meant(ask: &Ask<'_>, field: Option<&str>) -> bool {
    if !ask.by_browser && ask.session.is_none() {
        return true;
    }
    field.is_some_and(|value| is_token(ask.site, ask.caller, value))
}

/// Whether a browser sent a request.
pub fn is_browser(headers: &HeaderMap) -> bool {
    let fetch = HeaderName::from_static("sec-fetch-site");
    [fetch, ORIGIN, REFERER, ACCEPT_LANGUAGE].iter().any(|name| headers.contains_key(name))
}

/// How a browser came to ask for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coming {
    /// Whether a page is to be shown, and not a picture or the like that another page has.
    pub for_a_page: bool,
    /// Whether it is known that somebody followed a link of ours, or wrote the address.
    pub by_themselves: bool,
    /// Whether a page of another site led here: then nothing more is allowed than to read.
    pub from_elsewhere: bool,
}

impl Coming {
    /// What its headers say. A program asks for a page. Without `Sec-Fetch`, which browsers send over TLS alone, what is accepted tells pages
    /// from pictures, and `Referer` where a link was.
    pub fn of(headers: &HeaderMap, base: &str) -> Coming {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let from_elsewhere = is_foreign(headers, base);
        if let Some(destination) = text(HeaderName::from_static("sec-fetch-dest")) {
            let for_a_page = destination == "document";
            let site = text(HeaderName::from_static("sec-fetch-site"));
            let by_themselves = for_a_page && matches!(site, Some("same-origin" | "none"));
            return Coming { for_a_page, by_themselves, from_elsewhere };
        }
        let accepts = text(ACCEPT);
        let for_a_page = !is_browser(headers) || accepts.is_none_or(|kinds| kinds.contains("text/html"));
        let own = text(REFERER).is_some_and(|referer| host(referer) == host(base));
        let by_themselves = !is_browser(headers) || accepts.is_some() && for_a_page && own;
        Coming { for_a_page, by_themselves, from_elsewhere }
    }
}

/// The host and port of an address.
fn host(address: &str) -> String {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest).split('/').next().unwrap_or_default();
    host.to_ascii_lowercase()
}

/// Whether the browser says that the page which sent it is of another site than this one.
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
