//! The tree of cleaned HTML.

use std::cell::RefCell;

use html5ever::{
    tendril::StrTendril,
    tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts},
};

/// Elements that have no content and no end.
const VOID: [&str; 7] = ["area", "br", "col", "hr", "img", "input", "wbr"];

/// A node of the tree.
#[derive(Debug)]
pub enum Node {
    Element(Element),
    Text(String),
}

/// An element with its attributes and content.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
}

impl Element {
    /// Returns the value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Parses cleaned HTML.
pub fn parse(html: &str) -> Vec<Node> {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The sink never asks for a script, so the input is read to its end.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut open = tokenizer.sink.open.take();
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map(|root| root.children).unwrap_or_default()
}

/// Moves the innermost open element into the one around it.
fn close(open: &mut Vec<Element>) {
    if let Some(element) = open.pop() {
        match open.last_mut() {
            Some(parent) => parent.children.push(Node::Element(element)),
            None => open.push(element),
        }
    }
}

/// The open elements, from the root inwards.
struct Sink {
    open: RefCell<Vec<Element>>,
}

impl Default for Sink {
    fn default() -> Sink {
        Sink { open: RefCell::new(vec![Element::default()]) }
    }
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut open = self.open.borrow_mut();
        match token {
            Token::CharacterTokens(text) => {
                let Some(parent) = open.last_mut() else { return TokenSinkResult::Continue };
                match parent.children.last_mut() {
                    Some(Node::Text(before)) => before.push_str(&text),
                    _ => parent.children.push(Node::Text(text.to_string())),
                }
            }
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let attributes = tag.attrs.iter().map(|one| (one.name.local.to_string(), one.value.to_string())).collect();
                let name = tag.name.to_string();
                let is_void = VOID.contains(&name.as_str());
                open.push(Element { name, attributes, children: Vec::new() });
                if is_void {
                    close(&mut open);
                }
            }
            Token::TagToken(tag) => {
                // The root has no name, so it stays open.
                if let Some(at) = open.iter().rposition(|element| *element.name == *tag.name) {
                    while open.len() > at.max(1) {
                        close(&mut open);
                    }
                }
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}
