//! A page as a browser reads it, and elements of it found by simple selectors.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;

use html5ever::{ParseOpts, driver::parse_document, tendril::TendrilSink};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// An element with what is in it.
#[derive(Debug, Clone, Default)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    pub children: Vec<Child>,
}

#[derive(Debug, Clone)]
pub enum Child {
    Element(Element),
    Text(String),
}

/// Reads a page; invalid HTML fails the test.
pub fn parse(text: &str) -> Element {
    let dom = parse_document(RcDom::default(), ParseOpts::default()).one(text);
    let errors = dom.errors.borrow();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    element(&dom.document)
}

fn element(node: &Handle) -> Element {
    let mut out = Element::default();
    if let NodeData::Element { name, attrs, .. } = &node.data {
        out.name = name.local.to_string();
        out.attributes = attrs.borrow().iter().map(|a| (a.name.local.to_string(), a.value.to_string())).collect();
    }
    for child in node.children.borrow().iter() {
        match &child.data {
            NodeData::Text { contents } => out.children.push(Child::Text(contents.borrow().to_string())),
            NodeData::Element { .. } => out.children.push(Child::Element(element(child))),
            _ => {}
        }
    }
    out
}

impl Element {
    /// The text in it, blanks as one.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.collect(&mut out);
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn collect(&self, out: &mut String) {
        for child in &self.children {
            match child {
                Child::Text(text) => out.push_str(text),
                Child::Element(inner) => inner.collect(out),
            }
        }
    }

    /// An attribute, empty if it is not there.
    pub fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// Everything in it and itself.
    pub fn everything(&self) -> Vec<&Element> {
        let mut found = vec![self];
        for child in &self.children {
            if let Child::Element(inner) = child {
                found.extend(inner.everything());
            }
        }
        found
    }

    /// All that fit `td.list1`, `input[name=cmd]`, `[data-decides]`; parts inside parts after blanks.
    pub fn all(&self, selector: &str) -> Vec<&Element> {
        let mut here = vec![self];
        for part in selector.split(' ') {
            let mut next: Vec<&Element> = Vec::new();
            for element in here {
                for found in element.everything().into_iter().skip(1).filter(|found| found.fits(part)) {
                    if !next.iter().any(|known| std::ptr::eq(*known, found)) {
                        next.push(found);
                    }
                }
            }
            here = next;
        }
        here
    }

    /// The first of them.
    pub fn one(&self, selector: &str) -> &Element {
        self.all(selector).first().unwrap_or_else(|| panic!("no {selector} in {self:?}"))
    }

    /// The texts of all of them.
    pub fn texts(&self, selector: &str) -> Vec<String> {
        self.all(selector).iter().map(|found| found.text()).collect()
    }

    fn fits(&self, part: &str) -> bool {
        let (plain, attribute) = match part.split_once('[') {
            Some((plain, rest)) => (plain, Some(rest.trim_end_matches(']'))),
            None => (part, None),
        };
        let (name, class) = plain.split_once('.').unwrap_or((plain, ""));
        let classes: Vec<&str> = self.get("class").split_whitespace().collect();
        (name.is_empty() || self.name == name)
            && (class.is_empty() || classes.contains(&class))
            && attribute.is_none_or(|attribute| match attribute.split_once('=') {
                Some((name, value)) => self.attributes.get(name).is_some_and(|found| found == value),
                None => self.attributes.contains_key(attribute),
            })
    }
}
