//! The catalogue of the API's routes, and the OpenAPI document that is made from it.

use http::{HeaderValue, Method, header};
use serde_json::Value;
use tampu_logbook::{client::address::BASE, people::session::COOKIE};

use super::{
    access, attachments, book_config, books, bulk,
    call::{GET, Route},
    capabilities, check, drafts, entries, event, feeds, forms, gateway, links, log, mail, naming, notify, pdf, people, purge,
    registrations, searches, settings, signatures, site, templates, timeline,
};
use crate::http::{
    body::ResponseBody,
    openapi::{self, Info},
    route::{self, json_of},
};

/// The route of the document itself.
const DOCUMENT: &[Route] = &[Route {
    path: "/openapi.json",
    id: "openapi",
    what: "Returns this document",
    gives: (200, json_of::<Value>()),
    act: |_| {
        let mut answer = http::Response::new(ResponseBody::Whole(text().into()));
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(answer)
    },
    ..GET
}];

/// Returns all routes.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    let of = [
        people::ROUTES,
        registrations::ROUTES,
        books::ROUTES,
        naming::ROUTES,
        book_config::ROUTES,
        entries::ROUTES,
        pdf::ROUTES,
        purge::ROUTES,
        signatures::ROUTES,
        attachments::ROUTES,
        searches::ROUTES,
        feeds::ROUTES,
        drafts::ROUTES,
        forms::ROUTES,
        templates::ROUTES,
        check::ROUTES,
        access::ROUTES,
        settings::ROUTES,
        mail::ROUTES,
        notify::ROUTES,
        gateway::ROUTES,
        capabilities::ROUTES,
        log::ROUTES,
        event::ROUTES,
        bulk::ROUTES,
        site::ROUTES,
        links::ROUTES,
        timeline::ROUTES,
        DOCUMENT,
    ];
    of.into_iter().flatten()
}

/// Returns true for a path of the console, whose routes `spec/console-api.md` describes. The others are the logbook's.
pub fn is_of_console(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    ["log", "event", "bulk", "site", "timeline", "mentions", "capabilities", "settings"].contains(&first)
}

/// Looks a route up by its method and its path below [`BASE`].
pub fn find(method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), Vec<&'static Method>> {
    route::find(routes(), method, path)
}

/// The result of looking a request up.
pub(super) type Found = Result<(&'static Route, Vec<String>), Vec<&'static Method>>;

/// Returns the document as text, in the form of `spec/book-api.json`.
pub fn text() -> String {
    // Maps of texts: this does not fail.
    serde_json::to_string_pretty(&document()).unwrap_or_default() + "\n"
}

/// Makes the OpenAPI document.
pub fn document() -> Value {
    let info = Info {
        title: "Tampu's logbook",
        description: "Times are RFC 3339 texts with nine decimals, in UTC; `zone` is minutes east of UTC, only shown. Ids of 64 bits and cursors are \
            texts. An error is application/problem+json.",
        base: BASE,
        cookie: COOKIE,
    };
    openapi::document(info, routes())
}
