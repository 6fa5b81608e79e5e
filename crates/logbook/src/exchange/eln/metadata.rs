//! The graph of an RO-Crate: nodes that refer to each other by their ids.
//!
//! Programs differ in the details that RO-Crate leaves open: one value or a list, a reference or the node itself, `./`
//! or not before a path. All these are read.

use std::{borrow::Cow, collections::HashMap};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// The nodes of a graph.
const MAX_NODES: usize = 4_000_000;

/// A node of the graph.
pub type Node = Map<String, Value>;

/// An error: the metadata is no graph of an RO-Crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMetadata {
    /// The file is no JSON.
    #[error("ro-crate-metadata.json: {0}")]
    Json(String),
    /// A part is missing or of the wrong type.
    #[error("ro-crate-metadata.json {place}: {why}")]
    Graph {
        /// A JSON pointer.
        place: String,
        /// The reason, in words.
        why: String,
    },
}

/// The metadata of an archive.
#[derive(Debug, Default)]
pub struct Crate {
    nodes: Vec<Node>,
    /// The position of each node, by its id as [`local`] writes it.
    places: HashMap<String, usize>,
    /// Nodes whose id another node has, too.
    pub doubled: Vec<String>,
}

/// Returns an id without `./` before it and `/` behind it, and without percent-coding.
pub fn local(id: &str) -> String {
    let decoded = percent_decode_str(id).decode_utf8().unwrap_or(Cow::Borrowed(id));
    decoded.trim_start_matches("./").trim_end_matches('/').to_owned()
}

/// Returns true for the id of something that is in no archive.
pub fn is_remote(id: &str) -> bool {
    id.contains("://") || id.starts_with("mailto:")
}

/// Returns a node's text; of a list its first, and a number as its digits.
pub fn text(node: &Node, name: &str) -> Option<String> {
    fn one(value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Array(all) => all.first().and_then(one),
            Value::Object(object) => object.get("@value").or_else(|| object.get("value")).and_then(one),
            Value::Null => None,
        }
    }
    one(node.get(name)?).filter(|text| !text.is_empty())
}

/// Returns all texts of a member. Some programs write a list as one text with commas, which `commas` splits.
pub fn texts(node: &Node, name: &str, commas: bool) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    match node.get(name) {
        Some(Value::String(text)) if commas => out.extend(text.split(',').map(|part| part.trim().to_owned())),
        Some(Value::String(text)) => out.push(text.clone()),
        Some(Value::Array(all)) => out.extend(all.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    }
    out.retain(|text| !text.is_empty());
    out
}

/// Returns true if a node has a type.
pub fn is_a(node: &Node, kind: &str) -> bool {
    match node.get("@type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(kind)),
        _ => false,
    }
}

/// Returns the id of a node, as the metadata writes it.
pub fn id(node: &Node) -> &str {
    node.get("@id").and_then(Value::as_str).unwrap_or_default()
}

impl Crate {
    /// Reads the graph.
    pub fn parse(bytes: &[u8]) -> Result<Crate, BadMetadata> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut top: Value = serde_json::from_slice(bytes).map_err(|error| BadMetadata::Json(error.to_string()))?;
        let graph = |place: String, why: &str| BadMetadata::Graph { place, why: why.to_owned() };
        let Some(Value::Array(nodes)) = top.get_mut("@graph").map(Value::take) else {
            return Err(graph("/@graph".to_owned(), "it is no array; an RO-Crate has one"));
        };
        if nodes.len() > MAX_NODES {
            return Err(graph("/@graph".to_owned(), &format!("it has more than {MAX_NODES} nodes")));
        }
        let mut out = Crate::default();
        for (at, node) in nodes.into_iter().enumerate() {
            let Value::Object(node) = node else {
                return Err(graph(format!("/@graph/{at}"), "it is no object"));
            };
            if id(&node).is_empty() {
                return Err(graph(format!("/@graph/{at}"), "its '@id' is missing"));
            }
            let known = local(id(&node));
            if out.places.contains_key(&known) {
                out.doubled.push(known);
                continue;
            }
            out.places.insert(known, out.nodes.len());
            out.nodes.push(node);
        }
        if out.places.contains_key("") || out.places.contains_key(".") {
            return Ok(out);
        }
        Err(graph("/@graph".to_owned(), "it has no node './', the root of an RO-Crate"))
    }

    /// Returns all nodes, in the order of the graph.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the node of an id.
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.places.get(&local(id)).map(|place| &self.nodes[*place])
    }

    /// Returns the nodes that a member of a node names or holds.
    pub fn linked<'a>(&'a self, node: &'a Node, name: &str) -> Vec<&'a Node> {
        let one = |value: &'a Value| match value {
            Value::String(id) => self.node(id),
            Value::Object(object) => object.get("@id").and_then(Value::as_str).and_then(|id| self.node(id)).or(Some(object)),
            _ => None,
        };
        match node.get(name) {
            Some(Value::Array(all)) => all.iter().filter_map(one).collect(),
            Some(value) => one(value).into_iter().collect(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_write_the_same_in_several_ways() {
        let json = br##"{"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": [
            {"@id": "./", "@type": ["Dataset"], "hasPart": [{"@id": "./a%20b/"}, "./c"]},
            {"@id": "./a b/", "@type": "Dataset", "keywords": "x, y", "author": {"@type": "Person", "name": "Zoe"}},
            {"@id": "c", "@type": "File", "contentSize": 12},
            {"@id": "./c/", "@type": "Dataset"}
        ]}"##;
        let found = Crate::parse(json).unwrap();
        let root = found.node("./").unwrap();
        let parts: Vec<String> = found.linked(root, "hasPart").into_iter().map(|part| local(id(part))).collect();
        assert_eq!((parts, found.doubled.clone()), (vec!["a b".to_owned(), "c".to_owned()], vec!["c".to_owned()]));
        let data = found.node("a b").unwrap();
        assert_eq!(texts(data, "keywords", true), ["x", "y"]);
        assert_eq!(text(found.linked(data, "author")[0], "name").as_deref(), Some("Zoe"));
        assert_eq!(text(found.node("./c").unwrap(), "contentSize").as_deref(), Some("12"));
        assert!(is_a(data, "Dataset") && is_remote("https://x/") && !is_remote("./x"));
    }

    #[test]
    fn a_graph_without_a_root_is_refused_with_its_place() {
        for (json, place) in [
            ("{", "line 1"),
            ("{}", "/@graph:"),
            ("{\"@graph\": [1]}", "/@graph/0:"),
            ("{\"@graph\": [{\"@id\": 7}]}", "/@graph/0:"),
            ("{\"@graph\": [{\"@id\": \"./a\"}]}", "no node './'"),
        ] {
            let error = Crate::parse(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
        }
    }
}
