//! Answers to browsers that log in at an address of their own: the way back, and errors for a person.

use bytes::Bytes;
use http::{StatusCode, header};

use crate::http::{body::ResponseBody, headers::set, problem::Problem};

/// Longest address to return to.
const MAX_TARGET: usize = 2048;

/// A response of the hub.
pub type Answer = http::Response<ResponseBody>;

/// Returns a path of this site to return to, or the home.
pub fn target<'t>(said: &'t str, home: &'t str) -> &'t str {
    let is_path = said.starts_with('/') && !said.starts_with("//") && said.len() <= MAX_TARGET;
    let harmless = said.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'"' && byte != b';');
    if is_path && harmless { said } else { home }
}

/// Returns a redirect to an address.
pub fn redirect(to: &str) -> Answer {
    let mut answer = http::Response::new(ResponseBody::Whole(Bytes::new()));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    set(answer.headers_mut(), header::LOCATION, to);
    set(answer.headers_mut(), header::CACHE_CONTROL, "no-store");
    answer
}

/// Returns a problem as plain text, for a person at a browser.
pub fn refused(problem: &Problem) -> Answer {
    let mut answer = problem.answer();
    let help = problem.way_out.as_deref().map(|help| format!("\n{help}")).unwrap_or_default();
    *answer.body_mut() = ResponseBody::Whole(Bytes::from(format!("{}{help}\n", problem.detail)));
    set(answer.headers_mut(), header::CONTENT_TYPE, "text/plain; charset=utf-8");
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_returns_to_a_page_of_this_site() {
        for good in ["/elog/", "/elog/Shift/12?a=b:c", "/"] {
            assert_eq!(target(good, "/home"), good);
        }
        for bad in ["", "//evil", "https://evil", "/\\evil", "/a b", "/a\r\nx: y", "/ö", "elog", "/a\";b"] {
            assert_eq!(target(bad, "/home"), "/home", "{bad}");
        }
    }
}
