//! The places of matches in an entry, for display.

use std::{cell::OnceCell, ops::Range};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Node, Scope};
use crate::{
    book::same_name,
    text::{fold_with_places, words},
};

/// Marks of one text.
const MAX_MARKS: usize = 1000;
/// Number of bytes of a text that are searched for marks. An entry whose match lies after them has no mark.
const LOOKED_AT: usize = 1 << 20;
/// Characters of a snippet before the first mark, and in all.
const BEFORE: usize = 40;
const SNIPPET: usize = 200;

/// A piece of text with the places of its matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Marked {
    /// The plain text of the snippet.
    pub text: String,
    /// Bytes of it that were looked for, in order, none over another.
    pub marks: Vec<Range<usize>>,
}

/// Returns the places of matches in a text, which is the entry's text or the value of an attribute.
pub fn marks(node: &Node, text: &str, attribute: Option<&str>) -> Vec<Range<usize>> {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let mut found = Vec::new();
    collect(node, &Looked::at(&text[..end]), attribute, &mut found);
    found.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in found {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// A text with the derived forms that many parts of a query need, made once.
struct Looked<'a> {
    text: &'a str,
    words: OnceCell<PlacedWords>,
    folded: OnceCell<(String, Vec<usize>)>,
}

/// The words of a text with their places, in two pieces of memory: a page of hits has thousands of words.
#[derive(Default)]
struct PlacedWords {
    letters: String,
    /// The place of each word in the text, and its end in `letters`.
    places: Vec<(Range<usize>, usize)>,
}

impl PlacedWords {
    fn get(&self, at: usize) -> &str {
        let begin = if at == 0 { 0 } else { self.places[at - 1].1 };
        &self.letters[begin..self.places[at].1]
    }
}

impl<'a> Looked<'a> {
    fn at(text: &'a str) -> Looked<'a> {
        Looked { text, words: OnceCell::new(), folded: OnceCell::new() }
    }

    fn words(&self) -> &PlacedWords {
        self.words.get_or_init(|| {
            let mut list = PlacedWords::default();
            words(self.text, |range, word| {
                list.letters.push_str(word);
                list.places.push((range, list.letters.len()));
            });
            list
        })
    }
}

fn collect(node: &Node, looked: &Looked<'_>, attribute: Option<&str>, found: &mut Vec<Range<usize>>) {
    let here = |scope: &Scope| match scope {
        Scope::Anywhere => true,
        Scope::Text => attribute.is_none(),
        Scope::Attribute(name) => attribute.is_some_and(|attribute| same_name(attribute, name)),
        _ => false,
    };
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|node| collect(node, looked, attribute, found)),
        Node::Words { scope, words, prefix } if here(scope) => phrase(looked, words, *prefix, found),
        Node::Is { name, words } if here(&Scope::Attribute(name.clone())) && !words.is_empty() => {
            phrase(looked, words, false, found)
        }
        Node::Contains { scope, text: part } if here(scope) => {
            let (folded, places) = looked.folded.get_or_init(|| fold_with_places(looked.text));
            let ranges = folded.match_indices(part.as_str()).map(|(at, part)| places[at]..places[at + part.len()]);
            found.extend(ranges.filter(|range| !range.is_empty()).take(MAX_MARKS));
        }
        Node::Matches { scope, regex } if here(scope) => {
            found.extend(regex.marks(looked.text, MAX_MARKS));
        }
        _ => {}
    }
}

fn phrase(looked: &Looked<'_>, phrase: &[String], prefix: bool, found: &mut Vec<Range<usize>>) {
    let (last, words) = (phrase.len() - 1, looked.words());
    let is_here = |at: &usize| {
        phrase.iter().enumerate().all(|(nth, wanted)| {
            let word = words.get(at + nth);
            word == wanted || prefix && nth == last && word.starts_with(wanted.as_str())
        })
    };
    let hits = (0..(words.places.len() + 1).saturating_sub(phrase.len())).filter(is_here);
    found.extend(hits.map(|at| words.places[at].0.start..words.places[at + last].0.end).take(MAX_MARKS));
}

/// Returns the part of a text around the first mark, in one line.
pub fn snippet(node: &Node, text: &str) -> Marked {
    let all = marks(node, text, None);
    let first = all.first().map_or(0, |mark| mark.start);
    let begin = text[..first].char_indices().rev().take(BEFORE).last().map_or(first, |(at, _)| at);
    let end = text[begin..].char_indices().nth(SNIPPET).map_or(text.len(), |(at, _)| begin + at);
    let marks = all.into_iter().filter(|mark| mark.start >= begin && mark.end <= end);
    let marks = marks.map(|mark| mark.start - begin..mark.end - begin).collect();
    // One byte for one byte, so that the marks stay where they are.
    let line: String = text[begin..end].chars().map(|c| if c.is_ascii_control() { ' ' } else { c }).collect();
    Marked { text: line, marks }
}
