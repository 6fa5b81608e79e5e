//! The evaluator: decides whether an entry matches a query, by reading the entry itself.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
};

use serde::de::DeserializeOwned;
use tampu_types::Time;

use super::{Comparison, Node, Scope, phrase::has_phrase};
use crate::{
    attachment::Attachment,
    book::{EntryAttribute, number, same_name},
    entry::{Encoding, Entry, Link},
    plain::plain,
    search::{Stop, is_hidden},
    text::{fold, word_list, words},
};

/// An entry as a store reads it: lists are still JSON. Most queries are decided by the text alone.
#[derive(Debug, Clone, Copy)]
pub struct StoredEntry<'a> {
    pub id: u32,
    pub thread: u32,
    pub is_reply: bool,
    pub date: Time,
    pub by: &'a str,
    pub encoding: Encoding,
    /// The text; empty if it was not requested.
    pub text: &'a str,
    /// The attributes, attachments and links, as JSON.
    pub attributes: &'a str,
    pub attachments: &'a str,
    pub links: &'a str,
}

/// A list of an entry, decoded on demand.
enum List<'a, T> {
    Known(&'a [T]),
    Json(&'a str, OnceCell<Result<Vec<T>, serde_json::Error>>),
}

impl<'a, T: DeserializeOwned> List<'a, T> {
    fn json(text: &'a str) -> List<'a, T> {
        if text == "[]" { List::Known(&[]) } else { List::Json(text, OnceCell::new()) }
    }

    /// The list; empty if the JSON is damaged.
    fn get(&self) -> &[T] {
        match self {
            List::Known(list) => list,
            List::Json(text, list) => list.get_or_init(|| serde_json::from_str(text)).as_deref().unwrap_or_default(),
        }
    }

    fn damage(&self) -> Option<&serde_json::Error> {
        match self {
            List::Known(_) => None,
            List::Json(_, list) => list.get().and_then(|list| list.as_ref().err()),
        }
    }
}

/// An entry, prepared for queries. Expensive derived forms are made once, on demand.
pub struct Subject<'a> {
    id: u32,
    thread: u32,
    is_reply: bool,
    date: Time,
    by: &'a str,
    encoding: Encoding,
    text: &'a str,
    attributes: List<'a, EntryAttribute>,
    attachments: List<'a, Attachment>,
    links: List<'a, Link>,
    /// The attributes that the caller sees; `None` stands for all.
    shown: Option<&'a [String]>,
    plain: OnceCell<Cow<'a, str>>,
    folded: OnceCell<String>,
    /// The words, made when a second phrase is searched for.
    words: OnceCell<Words>,
    has_searched: Cell<bool>,
    stop: Stop,
}

/// The words of a text, in one piece of memory.
#[derive(Default)]
struct Words {
    letters: String,
    ends: Vec<usize>,
}

impl Words {
    fn of(text: &str) -> Words {
        let mut list = Words::default();
        list.add(text);
        list
    }

    fn add(&mut self, text: &str) {
        words(text, |_, word| {
            self.letters.push_str(word);
            self.ends.push(self.letters.len());
        });
    }

    fn get(&self, at: usize) -> &str {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.letters[begin..self.ends[at]]
    }

    fn contain(&self, phrase: &[String], prefix: bool) -> bool {
        let last = phrase.len() - 1;
        (0..(self.ends.len() + 1).saturating_sub(phrase.len())).any(|at| {
            phrase.iter().enumerate().all(|(nth, word)| {
                let found = self.get(at + nth);
                found == word || prefix && nth == last && found.starts_with(word.as_str())
            })
        })
    }
}

impl<'a> Subject<'a> {
    /// Prepares an entry for evaluation.
    pub fn of(entry: &'a Entry) -> Subject<'a> {
        Subject {
            id: entry.at.id,
            thread: entry.thread,
            is_reply: entry.parent.is_some(),
            date: entry.date,
            by: &entry.by,
            encoding: entry.content.encoding,
            text: &entry.content.text,
            attributes: List::Known(&entry.content.attributes),
            attachments: List::Known(&entry.content.attachments),
            links: List::Known(&entry.content.links),
            shown: None,
            plain: OnceCell::new(),
            folded: OnceCell::new(),
            words: OnceCell::new(),
            has_searched: Cell::new(false),
            stop: Stop::default(),
        }
    }

    /// Prepares an entry of a store for evaluation until `stop`, for a caller who sees these attributes; `None` stands
    /// for all.
    pub fn stored(entry: StoredEntry<'a>, shown: Option<&'a [String]>, stop: &Stop) -> Subject<'a> {
        Subject {
            id: entry.id,
            thread: entry.thread,
            is_reply: entry.is_reply,
            date: entry.date,
            by: entry.by,
            encoding: entry.encoding,
            text: entry.text,
            attributes: List::json(entry.attributes),
            attachments: List::json(entry.attachments),
            links: List::json(entry.links),
            shown,
            plain: OnceCell::new(),
            folded: OnceCell::new(),
            words: OnceCell::new(),
            has_searched: Cell::new(false),
            stop: stop.clone(),
        }
    }

    /// Returns the error of a list that was needed and could not be decoded.
    pub fn damage(&self) -> Option<&serde_json::Error> {
        self.attributes.damage().or(self.attachments.damage()).or(self.links.damage())
    }

    /// Evaluates only until `stop`. Results after that have no meaning.
    pub fn until(self, stop: &Stop) -> Subject<'a> {
        Subject { stop: stop.clone(), ..self }
    }

    /// Returns the plain text of the entry.
    pub fn plain(&self) -> &str {
        self.plain.get_or_init(|| plain(self.encoding, self.text))
    }

    /// Returns whether the query means the entry.
    pub fn is_meant(&self, node: &Node) -> bool {
        match node {
            Node::All => true,
            Node::And(nodes) => nodes.iter().all(|node| self.is_meant(node)),
            Node::Or(nodes) => nodes.iter().any(|node| self.is_meant(node)),
            Node::Not(node) => !self.is_meant(node),
            Node::Words { scope, words, prefix } => {
                let is_in_text = || match self.has_searched.replace(true) {
                    false => has_phrase(self.plain(), words, *prefix),
                    true => self.words.get_or_init(|| Words::of(self.plain())).contain(words, *prefix),
                };
                matches!(scope, Scope::Anywhere | Scope::Text) && is_in_text()
                    || self.any_value(scope, |value| has_phrase(value, words, *prefix))
            }
            Node::Contains { scope, text } => {
                let found = matches!(scope, Scope::Anywhere | Scope::Text)
                    && self.folded.get_or_init(|| fold(self.plain()).into_owned()).contains(text.as_str());
                found || self.any_value(scope, |value| fold(value).contains(text.as_str()))
            }
            Node::Matches { scope, regex } => {
                let found = matches!(scope, Scope::Anywhere | Scope::Text) && regex.is_match(self.plain(), &self.stop);
                found || self.any_value(scope, |value| regex.is_match(value, &self.stop))
            }
            Node::Is { name, words } => self.any_value(&Scope::Attribute(name.clone()), |value| word_list(value) == *words),
            Node::Number { name, comparison, to } => self.any_value(&Scope::Attribute(name.clone()), |value| {
                number(value).is_some_and(|value| match comparison {
                    Comparison::Less => value < *to,
                    Comparison::AtMost => value <= *to,
                    Comparison::More => value > *to,
                    Comparison::AtLeast => value >= *to,
                })
            }),
            Node::Date { from, to } => *from <= self.date && self.date < *to,
            Node::Has(scope) => self.any_value(scope, |value| !value.is_empty()),
            Node::IsReply => self.is_reply,
            Node::Id(id) => self.id == *id,
            Node::Thread(thread) => self.thread == *thread,
        }
    }

    /// Returns whether one of the values in the scope, except the text, is `such`.
    fn any_value(&self, scope: &Scope, such: impl Fn(&str) -> bool) -> bool {
        let is_seen = |attribute: &&EntryAttribute| !is_hidden(self.shown, &attribute.name);
        match scope {
            Scope::Text => false,
            Scope::Anywhere => {
                let mut seen = self.attributes.get().iter().filter(is_seen);
                seen.any(|attribute| attribute.values.iter().any(|value| such(value)))
            }
            Scope::Attribute(name) => {
                let mut said = self.attributes.get().iter().filter(|attribute| same_name(&attribute.name, name)).filter(is_seen);
                said.any(|attribute| attribute.values.iter().any(|value| such(value)))
            }
            Scope::Attachments => self.attachments.get().iter().any(|attachment| such(&attachment.name)),
            Scope::Links => self.links.get().iter().any(|link| such(&link.to_string())),
            Scope::By => such(self.by),
        }
    }
}
