//! Encoding of texts in headers, and the headers that every response carries.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, AsHeaderName},
};

/// Returns a header's text without blanks around it; `None` if it is missing, empty, or not ASCII.
pub fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|text| !text.is_empty())
}

/// Joins all lines of a header that may occur several times. Bytes that are not UTF-8 become `\u{fffd}`.
pub fn all_lines(headers: &HeaderMap, name: impl AsHeaderName, separator: &str) -> String {
    let lines: Vec<_> = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    lines.join(separator)
}

/// Sets a header to a text; a text that no header can hold is left out.
pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Sets the headers that protect a browser, on every response.
pub fn secure(headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    headers.entry(header::X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("SAMEORIGIN"));
}
