//! The OpenAPI document, made from the catalogue of routes and the schemas in `schemas.json`.

use http::{HeaderValue, Method, header};
use serde_json::{Map, Value, json};

use super::{
    BASE, Content,
    Content::{Json, Nothing},
    Needs, Route, routes,
};
use crate::book::body::Told;

/// The routes.
pub const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/openapi.json",
    id: "openapi",
    what: "This document",
    query: &[],
    takes: Nothing,
    gives: (200, Json("OpenApi")),
    needs: Needs::Nobody,
    act: |_| {
        let mut answer = http::Response::new(Told::Whole(text().into()));
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(answer)
    },
}];

/// The document as a text, as it stands in `spec/book-api.json`.
pub fn text() -> String {
    // Maps of texts: this does not fail.
    serde_json::to_string_pretty(&document()).unwrap_or_default() + "\n"
}

/// The document.
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes() {
        let path = paths.entry(format!("{BASE}{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    // Checked by a test.
    let schemas: Value = serde_json::from_str(include_str!("schemas.json")).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tampu's logbook",
            "version": "1",
            "description": "Times are nanoseconds of UTC since 1970; `zone` is minutes east of UTC, only shown. An error is application/problem+json.",
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of `POST /api/v1/tokens`" },
                "password": { "type": "http", "scheme": "basic" },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": tampu_logbook::people::session::COOKIE,
                    "description": "Set by `POST /api/v1/login`; what changes something also carries the session's form token as X-Tampu-Form",
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = route
        .query
        .iter()
        .map(|(name, kind, what)| json!({ "name": name, "in": "query", "description": what, "schema": { "type": kind } }));
    let mut parameters: Vec<Value> = in_path.chain(in_query).collect();
    if matches!(route.id, "editEntry" | "attach" | "addLink" | "dropLink") {
        let what = "The ETag of the revision that is changed";
        parameters.push(json!({ "name": "If-Match", "in": "header", "required": route.id == "editEntry", "description": what, "schema": { "type": "string" } }));
    }
    let problem =
        json!({ "description": "A problem", "content": { "application/problem+json": { "schema": reference("Problem") } } });
    let mut good = json!({ "description": "Done" });
    if let Some(content) = content(route.gives.1) {
        good["content"] = content;
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.what,
        "parameters": parameters,
        "responses": { route.gives.0.to_string(): good, "default": problem },
    });
    if route.id == "putBook" {
        operation["responses"]["201"] = operation["responses"]["200"].clone();
    }
    if let Some(content) = content(route.takes) {
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation["security"] = match route.needs {
        Needs::Nobody => json!([{}, { "token": [] }, { "password": [] }, { "session": [] }]),
        Needs::Login | Needs::SiteAdmin => json!([{ "token": [] }, { "password": [] }, { "session": [] }]),
    };
    operation
}

fn content(of: Content) -> Option<Value> {
    Some(match of {
        Content::Nothing => return None,
        Content::Json(name) => json!({ "application/json": { "schema": reference(name) } }),
        Content::List(name) => json!({ "application/json": { "schema": { "type": "array", "items": reference(name) } } }),
        Content::Bytes(kind) => json!({ kind: {} }),
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
