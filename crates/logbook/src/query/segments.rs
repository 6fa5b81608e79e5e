//! Word patterns of a regular expression: `/hlt0*7 is/` contains a word that ends in `hlt0*7`.
//!
//! Parts of an expression that match only letters and digits lie in one word. A separator beside them is the end of
//! that word. So the vocabulary returns the words that fit a pattern, and few entries have those words. The literals
//! alone, such as `hlt`, may occur in half of all entries.

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::text::fold;

/// The largest class, in characters, that is examined.
const MAX_CLASS: usize = 2000;

/// A piece of a word.
#[derive(Debug)]
pub struct Segment {
    /// A literal of it, by which words that contain it are found; letters and digits, folded.
    pub literal: String,
    /// The expression for such a word, folded.
    pub regex: Regex,
}

/// Returns the pieces of words that every match of an expression contains, except plain literals.
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

/// Returns the folded form of all characters of a class, if they have the same one: `[Hh]`.
pub(super) fn single(class: &Class) -> Option<String> {
    let mut folded: Option<String> = None;
    let mut check = |c: char| {
        let one = fold(c.encode_utf8(&mut [0; 4])).into_owned();
        let same = folded.as_ref().is_none_or(|folded| *folded == one);
        folded = Some(one);
        same
    };
    let small = match class {
        Class::Unicode(class) => {
            class.iter().map(|range| range.len()).sum::<usize>() <= 8
                && class.iter().flat_map(|range| range.start()..=range.end()).all(&mut check)
        }
        Class::Bytes(class) => {
            class.is_ascii()
                && class.iter().map(|range| range.len()).sum::<usize>() <= 8
                && class.iter().flat_map(|range| range.start()..=range.end()).all(|byte| check(char::from(byte)))
        }
    };
    folded.filter(|_| small)
}

enum Part {
    /// Letters and digits alone.
    Word(Hir),
    /// A character that ends words.
    Separator,
    /// A part that can match any characters.
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
        // `[Hh]`: the form of a letter whose case does not count.
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

/// Returns whether the expression matches only letters and digits whose folded forms differ from them at most in case.
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

/// Parts of one word, and whether a separator precedes them.
struct Run {
    hirs: Vec<Hir>,
    closed: bool,
}

impl Run {
    /// Ends the run and returns its segment; `closed` is true if a separator follows.
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
