//! Requests whose answers are held against the document.

use std::{cell::RefCell, collections::BTreeSet};

use serde_json::Value;
use tampu_hub::api::catalogue::find;

use crate::{
    schema::check,
    site::{Client, Said},
};

/// Asks, and holds what is answered against the document.
pub struct Checked {
    pub document: Value,
    pub used: RefCell<BTreeSet<&'static str>>,
}

impl Checked {
    /// Gets the document of a site.
    pub fn of(client: &Client) -> Checked {
        Checked { document: client.get("/openapi.json").is(200).json(), used: RefCell::default() }
    }

    #[track_caller]
    pub fn ask(&self, client: &Client, method: &str, path: &str, body: Option<Value>) -> Said {
        let (route, _) = find(&method.parse().unwrap(), path.split('?').next().unwrap()).unwrap();
        let operation = &self.document["paths"][format!("/api/v1{}", route.path)][method.to_lowercase()];
        assert_eq!(operation["operationId"], route.id);
        if let Some(body) = &body {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            check(&self.document, schema, body, "body").unwrap_or_else(|why| panic!("{method} {path}: {why}"));
        }
        let said = match body {
            Some(body) => client.with_json(method, path, body),
            None => client.send(method, path, b""),
        };
        self.answered(route.id, operation, &said, &format!("{method} {path}"));
        said
    }

    /// Asks for what the site refuses, and holds the problem against the document.
    #[track_caller]
    pub fn refused(&self, client: &Client, method: &str, path: &str, body: Option<Value>, status: u16) {
        let (route, _) = find(&method.parse().unwrap(), path).unwrap();
        self.used.borrow_mut().insert(route.id);
        let said = match body {
            Some(body) => client.with_json(method, path, body),
            None => client.send(method, path, b""),
        };
        let problem = said.is(status).json();
        let operation = &self.document["paths"][format!("/api/v1{}", route.path)][method.to_lowercase()];
        let schema = &operation["responses"]["default"]["content"]["application/problem+json"]["schema"];
        check(&self.document, schema, &problem, "problem").unwrap_or_else(|why| panic!("{method} {path}: {why}"));
    }

    #[track_caller]
    pub fn answered(&self, id: &'static str, operation: &Value, said: &Said, what: &str) {
        self.used.borrow_mut().insert(id);
        let described = &operation["responses"][said.status.to_string()];
        assert!(described.is_object(), "{what}: {} is not described: {}", said.status, String::from_utf8_lossy(&said.bytes));
        let Some(content) = described["content"].as_object() else {
            assert!(said.bytes.is_empty(), "{what}");
            return;
        };
        let kind = said.header("content-type").split(';').next().unwrap().to_owned();
        let Some(described) = content.get(&kind) else {
            // A file has a media type of its own.
            return assert!(content.keys().all(|kind| kind != "application/json"), "{what}: {kind}");
        };
        if kind == "application/json" {
            check(&self.document, &described["schema"], &said.json(), "answer").unwrap_or_else(|why| panic!("{what}: {why}"));
        }
    }
}
