//! The response to a request, and the short responses without a page.

use std::io::{self, Read};

use http::{
    StatusCode,
    header::{self, HeaderValue},
};

use tampu_logbook::entry::EntryRef;

use crate::pages::html::put;

/// The response to a request.
pub type Response = http::Response<Body>;

/// The body of a response.
pub enum Body {
    /// The whole body.
    Bytes(Vec<u8>),
    /// This many bytes, read while they are sent.
    Read(Box<dyn Read + Send>, u64),
    /// Pieces that are made while they are sent. The end is the end of the connection or of the last chunk.
    Pieces(Box<dyn Iterator<Item = io::Result<Vec<u8>>> + Send>),
}

/// The cause of a server error, for the log; an extension of the response.
#[derive(Debug, Clone)]
pub struct LoggedFailure(pub String);

/// An administrative action that a page has carried out, for the audit; an extension of the response.
#[derive(Debug, Clone)]
pub struct CarriedOut(pub String);

/// The entry that a page shows, for the count of looks; an extension of the response.
#[derive(Debug, Clone)]
pub struct EntryShown(pub EntryRef);

/// Returns the response with a note for the audit.
pub fn done(mut response: Response, what: String) -> Response {
    response.extensions_mut().insert(CarriedOut(what));
    response
}

/// A mark of a request that would change something, of a user who has made too many changes; an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct TooManyChanges {
    /// Whole seconds until the next change is possible.
    pub seconds: u32,
}

/// Returns a response with these bytes.
pub fn with_bytes(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::Bytes(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Redirects to another address.
pub fn redirect(address: &str) -> Response {
    let mut answer = with_bytes(StatusCode::FOUND, "text/html; charset=utf-8", Vec::new());
    let to = HeaderValue::from_str(address).unwrap_or_else(|_| HeaderValue::from_static("/"));
    answer.headers_mut().insert(header::LOCATION, to);
    answer
}

/// A response without the site's layout, for requests that do not come from a browser.
pub fn bare(status: StatusCode, text: &str) -> Response {
    let mut out = String::new();
    put!(&mut out, "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title></head><body>", text);
    put!(&mut out, "<table><tr><td class=\"errormsg\">{}</td></tr></table></body></html>\n", text);
    with_bytes(status, "text/html; charset=utf-8", out.into_bytes())
}
