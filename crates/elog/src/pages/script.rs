//! The script of forms: a file whose name has the digest of its content, so that browsers keep it for good.
//!
//! Forms work without it. With it, choices change the form without a new page, pictures can be pasted and files dropped,
//! and what was written is saved as a draft. The security policy of pages allows this file and no other script.

use std::sync::LazyLock;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    StatusCode,
    header::{self, HeaderValue},
};
use sha2::{Digest, Sha256};
use tampu_logbook::attachment::hex;

use crate::pages::{
    html::put,
    response::{self, Response},
};

/// The text of the script.
const SCRIPT: &str = include_str!("form.js");

/// The name of the file.
pub static NAME: LazyLock<String> = LazyLock::new(|| format!("elog-form-{}.js", hex(&Sha256::digest(SCRIPT)[..8])));

/// The digest for browsers, as `sha256-...`.
static DIGEST: LazyLock<String> = LazyLock::new(|| format!("sha256-{}", STANDARD.encode(Sha256::digest(SCRIPT))));

/// Returns the allowed sources of scripts, for the site with this public address. Some browsers do not compare digests
/// of files, so the address of the file is allowed as well.
pub fn sources(base: &str) -> String {
    format!("'{}' {base}/{}", *DIGEST, *NAME)
}

/// Writes the element that loads the script. `root` is the path from the page to the page of all books.
pub fn element(root: &str, out: &mut String) {
    put!(out, "<script src=\"{}{}\" integrity=\"{}\" defer></script>\n", root, *NAME, *DIGEST);
}

/// Answers with the script.
pub fn answer() -> Response {
    let mut response = response::with_bytes(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.as_bytes().to_vec());
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, forever);
    response
}
