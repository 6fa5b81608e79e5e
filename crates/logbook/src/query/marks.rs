//! The places of matches in an entry, for display.

use std::{cell::OnceCell, ops::Range};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Node, Scope, phrase::Phrase};
use crate::{
    book::same_name,
    text::{fold, fold_with_places, words_while},
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
    joined(found(node, looked_at(text), attribute, |_| usize::MAX))
}

/// Returns the part of a text around the first mark, in one line.
pub fn snippet(node: &Node, text: &str) -> Marked {
    let window = |first: usize| {
        let begin = text[..first].char_indices().rev().take(BEFORE).last().map_or(first, |(at, _)| at);
        let end = text[begin..].char_indices().nth(SNIPPET).map_or(text.len(), |(at, _)| begin + at);
        begin..end
    };
    // A mark that begins after the snippet changes nothing in it.
    let all = joined(found(node, looked_at(text), None, |first| window(first).end));
    let Range { start: begin, end } = window(all.first().map_or(0, |mark| mark.start));
    let marks = all.into_iter().filter(|mark| mark.start >= begin && mark.end <= end);
    let marks = marks.map(|mark| mark.start - begin..mark.end - begin).collect();
    // One byte for one byte, so that the marks stay where they are.
    let line: String = text[begin..end].chars().map(|c| if c.is_ascii_control() { ' ' } else { c }).collect();
    Marked { text: line, marks }
}

/// Returns the beginning of a text that is searched for marks.
fn looked_at(text: &str) -> &str {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

/// Sorts ranges and joins those that overlap.
fn joined(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
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

/// Returns the places of matches in a text, in no order. `enough` says from the begin of the first one up to where they are
/// needed; some after that are left out.
fn found(node: &Node, text: &str, attribute: Option<&str>, enough: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut parts = Parts { text, attribute, folded: OnceCell::new(), phrases: Vec::new(), found: Vec::new() };
    parts.collect(node);
    parts.find_phrases(enough);
    parts.found
}

/// The search for the parts of a query in one text. A page of hits has thousands of words, so they are looked at once and
/// not kept.
struct Parts<'a> {
    text: &'a str,
    attribute: Option<&'a str>,
    folded: OnceCell<(String, Vec<usize>)>,
    /// The phrases, each with the number of places that may still be found.
    phrases: Vec<(Phrase<'a>, usize)>,
    found: Vec<Range<usize>>,
}

impl<'a> Parts<'a> {
    fn is_here(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Anywhere => true,
            Scope::Text => self.attribute.is_none(),
            Scope::Attribute(name) => self.is_attribute(name),
            _ => false,
        }
    }

    fn is_attribute(&self, name: &str) -> bool {
        self.attribute.is_some_and(|attribute| same_name(attribute, name))
    }

    /// Finds the parts that are no words, and collects the phrases.
    fn collect(&mut self, node: &'a Node) {
        match node {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|node| self.collect(node)),
            Node::Words { scope, words, prefix } if self.is_here(scope) => self.add(words, *prefix),
            Node::Is { name, words } if self.is_attribute(name) => self.add(words, false),
            Node::Contains { scope, text: part } if self.is_here(scope) => {
                if self.text.is_ascii() {
                    // Such a text has no letter whose folded form is of another length.
                    let (folded, part) = (fold(self.text), part.as_str());
                    let ranges = folded.match_indices(part).map(|(at, part)| at..at + part.len());
                    self.found.extend(ranges.filter(|range| !range.is_empty()).take(MAX_MARKS));
                    return;
                }
                let (folded, places) = self.folded.get_or_init(|| fold_with_places(self.text));
                let ranges = folded.match_indices(part.as_str()).map(|(at, part)| places[at]..places[at + part.len()]);
                self.found.extend(ranges.filter(|range| !range.is_empty()).take(MAX_MARKS));
            }
            Node::Matches { scope, regex } if self.is_here(scope) => self.found.extend(regex.marks(self.text, MAX_MARKS)),
            _ => {}
        }
    }

    fn add(&mut self, words: &'a [String], prefix: bool) {
        if !words.is_empty() {
            self.phrases.push((Phrase::new(words, prefix), MAX_MARKS));
        }
    }

    /// Finds the phrases.
    fn find_phrases(&mut self, enough: impl Fn(usize) -> usize) {
        let Parts { text, phrases, found, .. } = self;
        if phrases.is_empty() {
            return;
        }
        let mut first = found.iter().map(|range| range.start).min();
        let mut end = first.map_or(usize::MAX, &enough);
        words_while(text, |place, word| {
            for (phrase, left) in phrases.iter_mut().filter(|(_, left)| *left > 0) {
                let Some(range) = phrase.next(&place, word) else { continue };
                *left -= 1;
                if first.is_none_or(|first| range.start < first) {
                    first = Some(range.start);
                    end = enough(range.start);
                }
                found.push(range);
            }
            // A phrase that has begun before the end may end after it, and is then joined with others.
            place.start < end || phrases.iter().any(|(phrase, _)| phrase.has_begun_before(end))
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::parse;

    /// The snippet by all marks of the text, of which most lie after it.
    fn by_all_marks(node: &Node, text: &str) -> Vec<Range<usize>> {
        let all = marks(node, text, None);
        let first = all.first().map_or(0, |mark| mark.start);
        let begin = text[..first].char_indices().rev().take(BEFORE).last().map_or(first, |(at, _)| at);
        let end = text[begin..].char_indices().nth(SNIPPET).map_or(text.len(), |(at, _)| begin + at);
        let seen = all.into_iter().filter(|mark| mark.start >= begin && mark.end <= end);
        seen.map(|mark| mark.start - begin..mark.end - begin).collect()
    }

    proptest! {
        #[test]
        fn a_snippet_has_the_marks_that_lie_in_it(
            text in "([abé]{1,3}[ .]{1,3}|[xyz]{1,20}[ .]{1,2}){0,120}",
            query in prop_oneof![
                "[abé]{1,2}", "\"[abé]{1,2} [abé]{1,2}\"", "\"a b a\" \"b a\"", "a[a-b]{0,1}\\*", "~[abx]{1,2}", "/[ab]{2}/ \"a b\"",
                "\"x y\" OR \"b a b a\" OR b", "\"a b\" é",
            ],
        ) {
            let node = parse(&query, &[], tampu_types::Time(0)).unwrap();
            prop_assert_eq!(snippet(&node, &text).marks, by_all_marks(&node, &text));
        }
    }

    #[test]
    fn a_part_of_a_word_is_marked_in_any_text() {
        let node = parse("~bc", &[], tampu_types::Time(0)).unwrap();
        let marked = |text: &str| marks(&node, text, None).into_iter().map(|mark| text[mark].to_owned()).collect::<Vec<_>>();
        for (text, expected) in [("ABCd bc", &["BC", "bc"][..]), ("éABCd", &["BC"]), ("b c", &[])] {
            assert_eq!(marked(text), expected, "{text}");
        }
    }
}
