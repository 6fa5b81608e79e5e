//! The OpenAPI document: that it is the one written down, and whole.

use serde_json::Value;
use tampu_hub::{
    api::catalogue::{document, find, is_of_console, routes, text},
    http::route::Login,
};

fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(name)) = map.get("$ref") {
                found.push(name.trim_start_matches("#/components/schemas/").to_owned());
            }
            map.values().for_each(|value| names(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

/// `TAMPU_WRITE_SPEC=1` writes the document anew.
#[test]
fn the_document_is_the_one_that_is_written_down() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/book-api.json");
    if std::env::var_os("TAMPU_WRITE_SPEC").is_some() {
        std::fs::write(path, text()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == text(), "spec/book-api.json is not what the routes say; TAMPU_WRITE_SPEC=1 writes it anew");
}

#[test]
fn every_schema_is_there_and_used() {
    let document = document();
    let schemas: Vec<&String> = document["components"]["schemas"].as_object().unwrap().keys().collect();
    let mut used = Vec::new();
    names(&document, &mut used);
    for name in &used {
        assert!(schemas.contains(&name), "{name} is missing");
    }
    for name in schemas {
        assert!(used.contains(name), "{name} is not used");
    }
}

/// Every route has its line in a page for people. `TAMPU_WRITE_SPEC=1` writes the lines anew.
#[test]
fn the_pages_for_people_have_every_route() {
    for (name, of_console) in [("book-api.md", false), ("console-api.md", true)] {
        let path = format!("{}/../../spec/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut page = std::fs::read_to_string(&path).unwrap();
        for route in routes().filter(|route| is_of_console(route.path) == of_console) {
            let start = format!("| `{} {}` |", route.method, route.path);
            let login = match route.login {
                Login::Optional => "all callers, by their rights",
                Login::Required => "users",
                Login::Admin => "administrators of the site",
            };
            let line = format!("{start} {} | {login} |", route.what);
            let old = page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("spec/{name} lacks {line}"));
            page = page.replace(old, &line);
        }
        if std::env::var_os("TAMPU_WRITE_SPEC").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let is_same = std::fs::read_to_string(&path).unwrap() == page;
        assert!(is_same, "spec/{name} is not what the routes say; TAMPU_WRITE_SPEC=1 writes it anew");
    }
}

#[test]
fn every_route_has_its_own_place_and_name() {
    let (mut places, mut ids) = (std::collections::HashSet::new(), std::collections::HashSet::new());
    for route in routes() {
        assert!(places.insert((route.method.as_str(), route.path)), "{} {}", route.method, route.path);
        assert!(ids.insert(route.id), "{}", route.id);
        // No path is hidden by another one before it.
        let path = route.path.replace(['{', '}'], "x");
        let found = find(route.method, &path).map(|(found, _)| found.id);
        assert_eq!(found, Ok(route.id), "{path}");
    }
}
