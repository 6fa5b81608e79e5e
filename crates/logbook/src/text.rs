//! Words: the splitting of texts, and the comparison of words.
//!
//! A word is a run of letters and digits, folded: lower case, and Latin and Greek letters without their marks. So
//! `Muller` finds `Müller`. All other characters separate words. So `LHC:MAG-01/cur` is the phrase `lhc mag 01 cur`,
//! found as a whole and by its parts.
//!
//! The index and the evaluator of queries use this one function, so they never disagree. Rejected: the tokenizers of
//! SQLite and PostgreSQL, which define letters differently.

use std::{borrow::Cow, ops::Range};

/// Number of significant characters of a word. The index truncates longer words.
pub const MAX_WORD: usize = 64;

/// Calls `found` with each word: its place, and its folded and shortened form.
pub fn words(text: &str, mut found: impl FnMut(Range<usize>, &str)) {
    words_while(text, |range, word| {
        found(range, word);
        true
    });
}

/// Does the same until `found` returns false.
pub fn words_while(text: &str, mut found: impl FnMut(Range<usize>, &str) -> bool) {
    let bytes = text.as_bytes();
    let (mut word, mut at) = (String::new(), 0);
    while at < bytes.len() {
        // Most text is ASCII, and this loop is most of the work of an import.
        if bytes[at].is_ascii_alphanumeric() {
            let (begin, mut is_folded) = (at, true);
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                is_folded &= !bytes[at].is_ascii_uppercase();
                at += 1;
            }
            let goes_on = at < bytes.len() && !bytes[at].is_ascii();
            if is_folded && !goes_on {
                if !found(begin..at, cut(&text[begin..at])) {
                    return;
                }
                continue;
            }
            word.push_str(&text[begin..at]);
            word.make_ascii_lowercase();
            if goes_on {
                at = rest(text, at, &mut word);
            }
            if !found(begin..at, cut(&word)) {
                return;
            }
            word.clear();
        } else if bytes[at].is_ascii() {
            at += 1;
        } else {
            let begin = at;
            at = rest(text, at, &mut word);
            if at == begin {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            } else {
                if !word.is_empty() && !found(begin..at, cut(&word)) {
                    return;
                }
                word.clear();
            }
        }
    }
}

/// Reads on to the end of a word of any characters, and returns that end.
fn rest(text: &str, mut at: usize, word: &mut String) -> usize {
    for c in text[at..].chars().take_while(|&c| c.is_alphanumeric() || is_mark(c)) {
        fold_char(c, word);
        at += c.len_utf8();
    }
    at
}

fn cut(word: &str) -> &str {
    if word.len() <= MAX_WORD {
        return word;
    }
    word.char_indices().nth(MAX_WORD).map_or(word, |(end, _)| &word[..end])
}

/// The words of a text.
pub fn word_list(text: &str) -> Vec<String> {
    let mut list = Vec::new();
    words(text, |_, word| list.push(word.to_owned()));
    list
}

/// Returns a text folded like words, with all characters between the words.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    let mut folded = String::with_capacity(text.len());
    text.chars().for_each(|c| fold_char(c, &mut folded));
    Cow::Owned(folded)
}

/// Returns a folded text, and for each of its bytes (and its end) the position in the original.
pub fn fold_with_places(text: &str) -> (String, Vec<usize>) {
    let (mut folded, mut places) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    for (at, c) in text.char_indices() {
        fold_char(c, &mut folded);
        places.resize(folded.len(), at);
    }
    places.push(text.len());
    (folded, places)
}

/// Returns whether a character is a mark over the letter before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns whether the script writes words without blanks between them. Such words are searched inside longer runs.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn fold_char(c: char, into: &mut String) {
    if c.is_ascii() {
        into.push(c.to_ascii_lowercase());
        return;
    }
    if is_mark(c) {
        return;
    }
    for c in c.to_lowercase() {
        let folded = match c {
            'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
            'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
            'ď' | 'đ' | 'ð' => 'd',
            'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
            'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
            'ĥ' | 'ħ' => 'h',
            'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => 'i',
            'ĵ' => 'j',
            'ķ' => 'k',
            'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => 'l',
            'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
            'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => 'o',
            'ŕ' | 'ŗ' | 'ř' => 'r',
            'ś' | 'ŝ' | 'ş' | 'š' | 'ș' | 'ſ' => 's',
            'ţ' | 'ť' | 'ț' => 't',
            'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => 'u',
            'ŵ' => 'w',
            'ý' | 'ÿ' | 'ŷ' => 'y',
            'ź' | 'ż' | 'ž' => 'z',
            // Greek: a sigma at a word's end, letters used as symbols, and letters with an accent, which capitals lose.
            'ς' => 'σ',
            'µ' => 'μ',
            'ϐ' => 'β',
            'ϑ' => 'θ',
            'ϕ' => 'φ',
            'ϖ' => 'π',
            'ϰ' => 'κ',
            'ϱ' => 'ρ',
            'ϵ' => 'ε',
            'ά' => 'α',
            'έ' => 'ε',
            'ή' => 'η',
            'ί' | 'ϊ' | 'ΐ' => 'ι',
            'ό' => 'ο',
            'ύ' | 'ϋ' | 'ΰ' => 'υ',
            'ώ' => 'ω',
            'ß' => {
                into.push('s');
                's'
            }
            'æ' => {
                into.push('a');
                'e'
            }
            'œ' => {
                into.push('o');
                'e'
            }
            c if is_mark(c) => continue,
            c => c,
        };
        into.push(folded);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_folded_runs_of_letters_and_digits() {
        for (text, expected) in [
            ("LHC:MAG-01/cur is 5.3A", &["lhc", "mag", "01", "cur", "is", "5", "3a"][..]),
            ("Müller, Lefèvre; Straße ŁÓDŹ", &["muller", "lefevre", "strasse", "lodz"]),
            ("Mu\u{308}ller a\u{301}", &["muller", "a"]),
            ("hlt0123_DAQ", &["hlt0123", "daq"]),
            ("abcé déf", &["abce", "def"]),
            ("装置停止 stop", &["装置停止", "stop"]),
            ("ΟΔΟΣ οδός ΟΔΌΣ μ µ Ω Ω ϕ", &["οδοσ", "οδοσ", "οδοσ", "μ", "μ", "ω", "ω", "φ"]),
            ("\u{301} … —", &[]),
        ] {
            assert_eq!(word_list(text), expected, "{text}");
        }
        let long = "x".repeat(100);
        assert_eq!(word_list(&long), [&long[..MAX_WORD]]);
        assert_eq!(word_list(&"é".repeat(100)), ["e".repeat(MAX_WORD)]);
    }

    proptest! {
        #[test]
        fn words_stand_where_they_are_said_to_and_folding_agrees(text in "[a-zA-Z0-9éßÆ装\u{308} .:/-]{0,60}|\\PC{0,40}") {
            let mut last = 0;
            words(&text, |range, word| {
                assert!(last <= range.start && range.end <= text.len());
                last = range.end;
                assert_eq!(cut(&fold(&text[range])), word);
            });
            let (folded, places) = fold_with_places(&text);
            prop_assert_eq!(fold(&text), folded.as_str());
            prop_assert_eq!(places.len(), folded.len() + 1);
            prop_assert!(places.iter().all(|&place| text.is_char_boundary(place)));
            // Folding twice changes nothing, so that a query may be folded or not.
            prop_assert_eq!(fold(&folded), folded.as_str());
        }
    }
}
