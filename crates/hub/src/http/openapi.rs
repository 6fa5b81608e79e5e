//! The OpenAPI 3.1 document of a service, made from its catalogue of routes and the schemas of their types.

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    problem::Problem,
    route::{Content, IfMatch, Login, Route},
};

/// The parts of a document that do not come from routes.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// The document's title.
    pub title: &'static str,
    /// The conventions of all routes.
    pub description: &'static str,
    /// The path prefix of every route.
    pub base: &'static str,
    /// The name of the session's cookie.
    pub cookie: &'static str,
}

/// Makes the document of these routes.
pub fn document<'a, H: 'static>(info: Info, routes: impl IntoIterator<Item = &'a Route<H>>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(format!("{}{}", info.base, route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": info.title,
            "version": "1",
            "description": info.description,
            "license": { "name": "Apache-2.0 OR MIT" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of `POST /api/v1/tokens`" },
                "password": { "type": "http", "scheme": "basic" },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": info.cookie,
                    "description": "The cookie of `POST /api/v1/login`; a request that changes something also carries the session's form token as X-Tampu-Form",
                },
            },
        },
    })
}

fn operation<H>(route: &Route<H>, schemas: &mut SchemaGenerator) -> Value {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = route
        .query
        .iter()
        .map(|(name, kind, what)| json!({ "name": name, "in": "query", "description": what, "schema": { "type": kind } }));
    let mut parameters: Vec<Value> = in_path.chain(in_query).collect();
    if route.if_match != IfMatch::Unused {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "required": route.if_match == IfMatch::Required,
            "description": "The ETag of the revision that is changed", "schema": { "type": "string" },
        }));
    }
    let problem = schemas.subschema_for::<Problem>();
    let mut success = json!({ "description": "Done" });
    if let Some(content) = content(route.gives.1, schemas) {
        success["content"] = content;
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.what,
        "parameters": parameters,
        "responses": {
            route.gives.0.to_string(): success,
            "default": { "description": "A problem", "content": { "application/problem+json": { "schema": problem } } },
        },
    });
    if route.may_create {
        operation["responses"]["201"] = operation["responses"][route.gives.0.to_string()].clone();
    }
    if let Some(content) = content(route.takes, schemas) {
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation["security"] = match route.login {
        Login::Optional => json!([{}, { "token": [] }, { "password": [] }, { "session": [] }]),
        Login::Required | Login::Admin => json!([{ "token": [] }, { "password": [] }, { "session": [] }]),
    };
    operation
}

fn content(of: Content, schemas: &mut SchemaGenerator) -> Option<Value> {
    Some(match of {
        Content::Nothing => return None,
        Content::Json(schema) => json!({ "application/json": { "schema": schema(schemas) } }),
        Content::Bytes(kind) => json!({ kind: {} }),
    })
}
