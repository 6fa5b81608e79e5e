//! The words a regular expression speaks of: `/hlt0*7 is/` speaks of a word that ends in `hlt0*7`.
//!
//! Where the parts of an expression match letters and digits alone they lie in one word, and a separator beside them is the word's end. So
//! the vocabulary is asked which words fit, and the entries with those words are few where the literals alone, as `hlt`, are in half of all.

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::candidates::single;

/// Characters of a class that are looked at.
const MAX_CLASS: usize = 2000;

/// A piece of a word.
#[derive(Debug)]
pub struct Segment {
    /// A literal of it, to find the words it can be in; letters and digits, folded.
    pub literal: String,
    /// What such a word, folded, has to match.
    pub regex: Regex,
}

/// The pieces of words an expression cannot do without, that are more than a literal.
pub fn segments(hir: &Hir) -> Vec<Segment> {
    let mut parts = Vec::new();
    flatten(hir, &mut parts);
    let (mut found, mut run) = (Vec::new(), Run { hirs: Vec::new(), closed: false });
    for part in parts {
        match part {
            Part::Word(hir) => run.hirs.push(hir),
            Part::Separator => {
                found.extend(run.end(true));
                run.closed = true;
            }
            Part::Anything => {
                found.extend(run.end(false));
                run.closed = false;
            }
        }
    }
    found.extend(run.end(false));
    found
}

enum Part {
    /// Letters and digits alone.
    Word(Hir),
    /// A character that ends words.
    Separator,
    /// Who knows.
    Anything,
}

fn flatten(hir: &Hir, parts: &mut Vec<Part>) {
    match hir.kind() {
        HirKind::Concat(hirs) => hirs.iter().for_each(|hir| flatten(hir, parts)),
        HirKind::Capture(capture) => flatten(&capture.sub, parts),
        HirKind::Literal(literal) => parts.extend(literal.0.iter().map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => Part::Word(Hir::literal([*byte])),
            byte if byte.is_ascii() => Part::Separator,
            _ => Part::Anything,
        })),
        // `[Hh]`, as case that does not count is written.
        HirKind::Class(class) if letter(class).is_some() => {
            parts.extend(letter(class).map(|letter| Part::Word(Hir::literal([letter]))));
        }
        _ if is_word(hir) => parts.push(Part::Word(hir.clone())),
        _ => parts.push(Part::Anything),
    }
}

/// The one letter or digit a class stands for, folded.
fn letter(class: &Class) -> Option<u8> {
    let text = single(class)?;
    match text.as_bytes() {
        [byte] if byte.is_ascii_alphanumeric() => Some(*byte),
        _ => None,
    }
}

/// Whether it matches letters and digits alone, of which each is its own folded form but for case.
fn is_word(hir: &Hir) -> bool {
    let plain = |c: char| if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_numeric() && c.is_alphanumeric() };
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().all(u8::is_ascii_alphanumeric),
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| range.len()).sum::<usize>() <= MAX_CLASS
                && class.iter().flat_map(|range| range.start()..=range.end()).all(plain)
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().flat_map(|range| range.start()..=range.end()).all(|b| b.is_ascii_alphanumeric())
        }
        HirKind::Repetition(repetition) => is_word(&repetition.sub),
        HirKind::Capture(capture) => is_word(&capture.sub),
        HirKind::Concat(hirs) | HirKind::Alternation(hirs) => hirs.iter().all(is_word),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

/// Parts of one word, and whether a separator stands before them.
struct Run {
    hirs: Vec<Hir>,
    closed: bool,
}

impl Run {
    /// What they make, and whether a separator stands after them.
    fn end(&mut self, closed: bool) -> Option<Segment> {
        let hirs = std::mem::take(&mut self.hirs);
        if hirs.iter().all(|hir| matches!(hir.kind(), HirKind::Literal(_))) {
            return None;
        }
        let (mut longest, mut literal) = (String::new(), String::new());
        for hir in &hirs {
            match hir.kind() {
                HirKind::Literal(bytes) => literal.extend(bytes.0.iter().map(|byte| char::from(byte.to_ascii_lowercase()))),
                _ => literal.clear(),
            }
            if literal.len() > longest.len() {
                longest.clone_from(&literal);
            }
        }
        let (begin, end) = (if self.closed { "^" } else { "" }, if closed { "$" } else { "" });
        let regex = RegexBuilder::new(&format!("{begin}(?:{}){end}", Hir::concat(hirs)))
            .case_insensitive(true)
            .size_limit(1 << 20)
            .dfa_size_limit(1 << 20)
            .build()
            .ok()?;
        (longest.len() >= 2).then_some(Segment { literal: longest, regex })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> Vec<(String, String)> {
        let hir = regex_syntax::parse(pattern).unwrap();
        segments(&hir).into_iter().map(|segment| (segment.literal, segment.regex.as_str().to_owned())).collect()
    }

    #[test]
    fn pieces_of_words_are_found() {
        let fits = |pattern: &str, word: &str| {
            let hir = regex_syntax::parse(pattern).unwrap();
            segments(&hir)[0].regex.is_match(word)
        };
        assert!(fits("hlt0*7 is", "hlt0007") && fits("hlt0*7 is", "xhlt7") && !fits("hlt0*7 is", "hlt00071"));
        assert!(fits(" HLT\\d+", "hlt12b") && !fits(" HLT\\d+", "xhlt12"));
        assert!(fits("(?i)hlt[a-c]+,", "hltab"));
        for pattern in ["hlt", "hlt .*", "\\d+ x", "hlté+", "hl\\w+", "a\\d+"] {
            assert!(of(pattern).is_empty(), "{pattern}: {:?}", of(pattern));
        }
    }
}
