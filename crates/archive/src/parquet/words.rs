//! The words of a row group. A search for a word that does not occur reads nothing of the row group.
//!
//! Only words of ASCII letters and underscores are listed. The messages of a control system use a few hundred to a few
//! thousand words, for any number of records. So the list is exact and costs a fraction of a byte a record. Words
//! with digits are nearly all different. A filter for them would take more space than the columns that it skips. A scan
//! finds them instead, at the speed of the memory.

use std::collections::HashSet;

use super::{
    Corrupt,
    bits::{put_varint, take_varint},
    lists,
};

/// Most bytes of words that a row group lists. A row group with more has no list.
const MOST: usize = 64 << 10;
/// Longest listed word, in bytes. Longer words are assumed to occur.
const LONGEST: usize = 64;

/// Two letters that regular expressions equate with `k` and `s` without case: U+212A and U+017F.
const ODD: [&[u8]; 2] = ["\u{212a}".as_bytes(), "\u{17f}".as_bytes()];

/// Builder for the words of a row group.
#[derive(Debug, Default)]
pub(crate) struct WordsBuilder {
    words: HashSet<Box<[u8]>>,
    bytes: usize,
    beyond: bool,
    folded: Vec<u8>,
    /// Hashes of recent words. Most words repeat soon, and a lookup here is cheaper than one in the set.
    recent: Vec<u64>,
}

const RECENT: usize = 4096;

impl WordsBuilder {
    /// Adds the words of one text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        if self.beyond {
            return;
        }
        if !text.is_ascii() && ODD.iter().any(|odd| memchr::memmem::find(text, odd).is_some()) {
            self.beyond = true;
            return;
        }
        self.recent.resize(RECENT, 0);
        let mut at = 0;
        while at < text.len() {
            let start = at;
            let (mut hash, mut plain) = (0xcbf2_9ce4_8422_2325u64, true);
            while at < text.len() {
                let class = CLASS[usize::from(text[at])];
                if class == 0 {
                    break;
                }
                plain &= class != 1;
                hash = (hash ^ u64::from(class)).wrapping_mul(0x0000_0100_0000_01b3);
                at += 1;
            }
            if plain && at > start {
                let slot = &mut self.recent[(hash >> 32) as usize % RECENT];
                if *slot != hash {
                    *slot = hash;
                    self.insert(&text[start..at]);
                }
            }
            at += 1;
        }
    }

    /// Adds the words of named values, and of their names unless an escape could hide a word.
    pub(crate) fn add_data(&mut self, json: &[u8]) {
        if memchr::memchr(b'\\', json).is_none() {
            return self.add(json);
        }
        let values = std::str::from_utf8(json).map(|json| lists::each_datum(json, |_, value| self.add(value.as_bytes())));
        // Invalid JSON has no words to search; the reader of the record reports it.
        self.beyond |= !matches!(values, Ok(Ok(())));
    }

    fn insert(&mut self, word: &[u8]) {
        if word.len() > LONGEST {
            return;
        }
        self.folded.clear();
        self.folded.extend(word.iter().map(u8::to_ascii_lowercase));
        if !self.words.contains(self.folded.as_slice()) {
            self.bytes += word.len() + 1;
            self.beyond |= self.bytes > MOST;
            self.words.insert(self.folded.as_slice().into());
        }
    }

    /// Returns the sorted list, or no list if it would be too long, and starts again.
    pub(crate) fn finish(&mut self) -> Words {
        let mut words: Vec<Box<[u8]>> = std::mem::take(&mut self.words).into_iter().collect();
        words.sort_unstable();
        let listed = !std::mem::take(&mut self.beyond);
        self.bytes = 0;
        self.recent.clear();
        Words(listed.then_some(words))
    }
}

/// Class of each byte. 0 ends a word; 1 is a digit, whose word is not listed; else the letter without case.
const CLASS: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = (byte as u8).to_ascii_lowercase();
        classes[byte] = match letter {
            b'0'..=b'9' => 1,
            b'a'..=b'z' | b'_' => letter,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// Sorted words of a row group; `None` if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Words(Option<Vec<Box<[u8]>>>);

impl Words {
    /// Returns whether a text of the row group may hold this whole word, without case.
    pub(crate) fn may_hold(&self, word: &str) -> bool {
        let Some(words) = &self.0 else { return true };
        let plain = word.bytes().all(|byte| CLASS[usize::from(byte)] > 1);
        let folded = word.to_ascii_lowercase();
        !plain || word.len() > LONGEST || words.binary_search_by(|listed| (**listed).cmp(folded.as_bytes())).is_ok()
    }

    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.0.iter().flatten().map(|word| word.len() + 32).sum()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let words = self.0.as_deref();
        put_varint(words.map_or(0, |words| words.len() as u64 + 1), out);
        for word in words.unwrap_or_default() {
            put_varint(word.len() as u64, out);
            out.extend_from_slice(word);
        }
    }

    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Words, Corrupt> {
        let Some(count) = take_varint(bytes)?.checked_sub(1) else { return Ok(Words(None)) };
        let mut words: Vec<Box<[u8]>> = Vec::new();
        for _ in 0..count {
            let length = take_varint(bytes)?;
            let (word, rest) = usize::try_from(length)
                .ok()
                .and_then(|length| bytes.split_at_checked(length))
                .ok_or(Corrupt("a word is cut off"))?;
            *bytes = rest;
            words.push(word.into());
        }
        if words.is_sorted() { Ok(Words(Some(words))) } else { Err(Corrupt("words are not in order")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::bytes::RegexBuilder;

    use super::*;

    fn words(texts: &[&str]) -> Words {
        let mut builder = WordsBuilder::default();
        texts.iter().for_each(|text| builder.add(text.as_bytes()));
        builder.finish()
    }

    #[test]
    fn what_cannot_be_there_is_known_and_the_rest_may_be() {
        let words = words(&["Antenna DV01 reached_it", "°C lock—retry"]);
        for (word, expected) in [
            ("antenna", true),
            ("ANTENNA", true),
            ("reached_it", true),
            ("reached", false),
            ("lock", true),
            ("retry", true),
            ("interlock", false),
            ("dv02", true),
            ("-3", true),
            ("ärger", true),
        ] {
            assert_eq!(words.may_hold(word), expected, "{word}");
        }
        let mut bytes = Vec::new();
        words.encode(&mut bytes);
        assert_eq!(Words::decode(&mut bytes.as_slice()), Ok(words));
    }

    #[test]
    fn words_behind_an_escape_are_seen() {
        let mut json = Vec::new();
        lists::put_data([("note", "tab\\tfollows"), ("line", "one\ntwo")].into_iter(), &mut json);
        let mut builder = WordsBuilder::default();
        builder.add_data(&json);
        let words = builder.finish();
        assert!(words.may_hold("two") && words.may_hold("tfollows") && !words.may_hold("ntwo"));
    }

    proptest! {
        #[test]
        fn no_word_that_is_there_is_missed(text in "[abkK \\-_1\u{212a}\u{17f}sä—]{0,12}", word in "[abks_]{1,3}") {
            let expression = RegexBuilder::new(&format!(r"\b{word}\b")).case_insensitive(true).build().unwrap();
            let there = expression.is_match(text.as_bytes());
            prop_assert!(!there || words(&[&text]).may_hold(&word));
        }

        #[test]
        fn hostile_lists_end(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Words::decode(&mut bytes.as_slice());
        }
    }
}
