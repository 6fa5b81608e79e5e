//! The attributes of running servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tampu_bus::access::Verb;
use tampu_event::ask::{self, Answer as OfServer, Described};
use tampu_types::event::AttributePattern;

use super::super::{
    call::{Answer, Call, ok},
    on_bus::{OF_PROCESSES, bounded, service},
};
use crate::http::problem::Problem;

/// Attributes of a page.
const MOST: u64 = 5000;

/// An attribute of a running server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::api) struct ShownAttribute {
    name: String,
    /// Name of the server.
    source: String,
    incarnation: String,
    /// DevDouble, DevString, ...
    r#type: String,
    /// scalar, spectrum or image.
    format: String,
    unit: String,
    label: String,
    description: String,
    /// Quality of the last reading; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<&'static str>,
    /// Number of its last event.
    sequence: String,
    /// Number of its configurations so far.
    epoch: u32,
    /// The whole configuration: labels, limits, criteria, period of polls.
    config: Value,
    /// Another process with an attribute of this name, which makes this one silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_by: Option<String>,
}

/// A page of attributes.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct AttributeList {
    /// The attributes, by name.
    attributes: Vec<ShownAttribute>,
    /// For `after`; null if nothing follows.
    next: Option<String>,
    /// Number of attributes on all pages.
    total: usize,
}

/// The parts of names below a path.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct AttributeTree {
    path: String,
    children: Vec<TreePart>,
}

/// A part of names.
#[derive(Debug, Serialize, JsonSchema)]
struct TreePart {
    /// The part, in the spelling of its first attribute.
    name: String,
    /// The path that ends with it.
    path: String,
    /// Number of attributes with this path.
    attributes: usize,
    /// The attribute of this name; null for a part of longer names.
    attribute: Option<ShownAttribute>,
}

impl ShownAttribute {
    fn of(server: &OfServer<Described>, attribute: &Described) -> ShownAttribute {
        let config = &attribute.config;
        ShownAttribute {
            name: config.name.to_string(),
            source: server.source.clone(),
            incarnation: server.incarnation.to_string(),
            r#type: config.data_type.name().to_owned(),
            format: config.format.name().to_owned(),
            unit: config.unit.clone(),
            label: config.label.clone(),
            description: config.description.clone(),
            quality: attribute.quality.map(|quality| quality.name()),
            sequence: attribute.number.to_string(),
            epoch: attribute.epoch,
            config: json!(config),
            taken_by: attribute.taken_by.clone(),
        }
    }
}

/// Asks all servers; the attributes by name, then source.
fn ask(call: &Call<'_>, pattern: Option<&AttributePattern>) -> Result<Vec<ShownAttribute>, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service("event/list"))?;
    let servers = ask::list(participant, pattern, OF_PROCESSES)?;
    let of_server = |server: &OfServer<Described>| -> Vec<ShownAttribute> {
        server.attributes.iter().map(|attribute| ShownAttribute::of(server, attribute)).collect()
    };
    let mut all: Vec<ShownAttribute> = servers.iter().flat_map(of_server).collect();
    all.sort_by_cached_key(|attribute| (attribute.name.to_lowercase(), attribute.source.clone(), attribute.incarnation.clone()));
    Ok(all)
}

pub(super) fn list(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let pattern = call.parsed::<AttributePattern>("pattern")?;
    let limit = bounded(call, "limit", 1000, 1, MOST)? as usize;
    let mut all = ask(call, pattern.as_ref())?;
    if let Some(text) = call.parameter("contains").filter(|text| !text.is_empty()) {
        let text = text.to_lowercase();
        let has = |value: &str| value.to_lowercase().contains(&text);
        all.retain(|attribute| has(&attribute.name) || has(&attribute.label) || has(&attribute.description));
    }
    let total = all.len();
    // Servers of one name are on one page: the page ends behind the last of them.
    let begin = call.parameter("after").filter(|after| !after.is_empty()).map_or(0, |after| {
        let after = after.to_lowercase();
        all.partition_point(|attribute| attribute.name.to_lowercase() <= after)
    });
    let mut page: Vec<ShownAttribute> = all.drain(begin..).collect();
    let mut end = limit.min(page.len());
    while end < page.len() && page[end].name.eq_ignore_ascii_case(&page[end - 1].name) {
        end += 1;
    }
    let next = (end < page.len()).then(|| page[end - 1].name.clone());
    page.truncate(end);
    ok(&AttributeList { attributes: page, next, total })
}

pub(super) fn tree(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let path = call.parameter("path").unwrap_or_default().trim_matches('/').to_owned();
    let folded: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(str::to_lowercase).collect();
    let depth = folded.len();
    let mut children: BTreeMap<String, TreePart> = BTreeMap::new();
    for attribute in ask(call, None)? {
        let parts: Vec<&str> = attribute.name.split('/').collect();
        let is_below = parts.len() > depth && parts.iter().zip(&folded).all(|(part, wanted)| part.to_lowercase() == *wanted);
        if !is_below {
            continue;
        }
        let child = children.entry(parts[depth].to_lowercase()).or_insert_with(|| TreePart {
            name: parts[depth].to_owned(),
            path: parts[..=depth].join("/"),
            attributes: 0,
            attribute: None,
        });
        child.attributes += 1;
        if parts.len() == depth + 1 && child.attribute.is_none() {
            child.attribute = Some(attribute);
        }
    }
    ok(&AttributeTree { path, children: children.into_values().collect() })
}

pub(super) fn doctor(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service("event/doctor"))?;
    let pattern = call.parsed::<AttributePattern>("pattern")?;
    let pattern = pattern.ok_or_else(|| Problem::bad("query pattern", "missing; send an attribute or a pattern"))?;
    let servers = ask::doctor(participant, &pattern, OF_PROCESSES)?;
    let facts = servers.into_iter().flat_map(|server| {
        let (source, incarnation) = (server.source, server.incarnation.to_string());
        server.attributes.into_iter().map(move |facts| {
            let mut facts = json!(facts);
            facts["source"] = json!(source);
            facts["incarnation"] = json!(incarnation);
            facts
        })
    });
    ok(&facts.collect::<Vec<Value>>())
}
