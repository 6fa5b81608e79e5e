//! The search for a phrase in the words of a text. Words are taken one after the other and not kept, because most texts are
//! searched once.

use std::ops::Range;

use crate::text::words_while;

/// A sequence of words, the last of which may be the beginning of one.
pub struct Phrase<'a> {
    words: &'a [String],
    prefix: bool,
    /// The begin of each place where the words before the present one match, with their number.
    begun: Vec<(usize, usize)>,
}

impl<'a> Phrase<'a> {
    /// Begins the search for at least one word.
    pub fn new(words: &'a [String], prefix: bool) -> Phrase<'a> {
        Phrase { words, prefix, begun: Vec::new() }
    }

    /// Takes the next word of a text; returns the place of the phrase if it ends there.
    pub fn next(&mut self, place: &Range<usize>, word: &str) -> Option<Range<usize>> {
        let (words, last) = (self.words, self.words.len().checked_sub(1)?);
        let matches = |nth: usize| word == words[nth] || self.prefix && nth == last && word.starts_with(words[nth].as_str());
        if last == 0 {
            return matches(0).then(|| place.clone());
        }
        let mut found = None;
        self.begun.retain_mut(|(begin, nth)| {
            let goes_on = matches(*nth);
            if goes_on && *nth == last {
                found = Some(*begin..place.end);
            }
            *nth += 1;
            goes_on && *nth <= last
        });
        if matches(0) {
            self.begun.push((place.start, 1));
        }
        found
    }

    /// Returns true if a place that begins before `end` is not complete.
    pub fn has_begun_before(&self, end: usize) -> bool {
        self.begun.iter().any(|(begin, _)| *begin < end)
    }
}

/// Returns whether a text contains these words in sequence; the last one may be the beginning of a word.
pub fn has_phrase(text: &str, words: &[String], prefix: bool) -> bool {
    let (mut phrase, mut is_found) = (Phrase::new(words, prefix), false);
    words_while(text, |place, word| {
        is_found = phrase.next(&place, word).is_some();
        !is_found
    });
    is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_where_its_words_follow_each_other() {
        let is_in = |phrase: &str, prefix, text: &str| {
            let words: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
            has_phrase(text, &words, prefix)
        };
        assert!(is_in("hv", false, "RICH1 HV tripped") && !is_in("hv", false, "RICH1 HVs"));
        assert!(is_in("hv", true, "RICH1 HVs") && !is_in("h v", true, "HV"));
        // A place that begins within another one.
        assert!(is_in("a a b", false, "a a a b") && !is_in("a a b", false, "a b a b"));
        assert!(is_in("hv trip", true, "hv, TRIPPED") && !is_in("hv trip", false, "hv, TRIPPED"));
        assert!(!is_in("h t", true, "hv tr"), "only the last word is a beginning");
    }
}
