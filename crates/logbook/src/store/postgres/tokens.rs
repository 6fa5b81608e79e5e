//! The index of PostgreSQL: the numbers of an entry, and queries over them.
//!
//! A number stands for a word of the text or of an attribute's value, or for two neighbouring words. It may also stand
//! for a tag (`query/candidates.rs`), or for a span of time in a book. It is the first 63 bits of a SHA-256. So a post
//! needs no lookup of numbers, and two words never share a number. Numbers of spans are negative and are counted, not
//! hashed.
//!
//! Neighbouring words make phrases of two words exact and longer ones nearly exact; for the latter the entries are
//! checked. Rejected: positions, as in PostgreSQL's own text search. They end at 16 383 words, a text of 1 MiB is
//! rejected, and the order of words is then checked in each entry's row.
//!
//! PostgreSQL's index returns rows in no order. So each entry has a number for the span of time that it lies in, in
//! [`LEVELS`] widths. A search by date queries increasingly wide spans. The newest twenty of a million entries cost as
//! much as those of a thousand.

use sha2::{Digest, Sha256};

use crate::{
    entry::Entry,
    plain::plain,
    query::candidates::{ATTACHMENTS, BY, CUT, Column, EVERY, LINKS, REPLY, Want, id_tag, tag, thread_tag},
    store::book_row::SECOND_BIT,
    text::{MAX_WORD, words},
};

/// Number of widths of spans: 2^10 seconds, and each further one 8 times as wide.
pub const LEVELS: u32 = 9;
/// Maximum number of spans in one query.
const MAX_SPANS: i64 = 33;
/// The separator between two neighbouring words, and after the kind of a number.
const BETWEEN: &[u8] = b"\0";

fn number(kind: &str, parts: &[&str]) -> i64 {
    let mut hash = Sha256::new();
    hash.update(kind);
    for part in parts {
        hash.update(BETWEEN);
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first) & i64::MAX
}

/// The number of a tag.
pub fn of_tag(tag: &str) -> i64 {
    number(TAG, &[tag])
}

/// The numbers of a word in a text and in an attribute's value.
pub fn has_word(word: &str) -> [i64; 2] {
    [number(TEXT, &[word]), number(HEAD, &[word])]
}

/// Words of the text, of attributes' values, and tags.
const TEXT: &str = "t";
const HEAD: &str = "h";
const TAG: &str = "g";

const fn shift(level: u32) -> u32 {
    SECOND_BIT + 10 + 3 * level
}

/// The number of a span of time: negative, with its level in the low four bits.
fn span(level: u32, at: i64) -> i64 {
    -(at << 4 | level as i64) - 1
}

/// Returns the spans of one width that cover these rows. The width is the least that needs no more than [`MAX_SPANS`].
pub fn spans(first: i64, last: i64) -> Vec<i64> {
    let level = (0..LEVELS - 1).find(|&level| (last >> shift(level)) - (first >> shift(level)) < MAX_SPANS).unwrap_or(LEVELS - 1);
    (first >> shift(level)..=last >> shift(level)).map(|at| span(level, at)).collect()
}

/// Adds the words of one text or value, and those that follow each other.
struct Run<'a> {
    kind: &'a str,
    before: Option<String>,
}

impl Run<'_> {
    fn add(&mut self, word: String, numbers: &mut Vec<i64>) {
        numbers.push(number(self.kind, &[&word]));
        if let Some(before) = self.before.replace(word) {
            let word = self.before.as_deref().unwrap_or_default();
            numbers.push(number(self.kind, &[&before, word]));
        }
    }
}

/// The numbers of an entry at a row, and its words. `attributes` has the number of each of its attributes.
pub fn of(row: i64, entry: &Entry, attributes: &[u32]) -> (Vec<i64>, Vec<Box<str>>) {
    let content = &entry.content;
    let (mut numbers, mut known) = (Vec::new(), Vec::<Box<str>>::new());
    let mut text = Run { kind: TEXT, before: None };
    words(&plain(content.encoding, &content.text), |_, word| {
        text.add(word.to_owned(), &mut numbers);
        known.push(word.into());
    });
    let mut value = |scope: u32, value: &str, is_head: bool| {
        if value.is_empty() {
            return;
        }
        let mark = tag(scope, "");
        numbers.push(number(TAG, &[&mark]));
        let (mut head, mut tags) = (Run { kind: HEAD, before: None }, Run { kind: TAG, before: None });
        let mut whole = vec![mark.clone()];
        words(value, |_, word| {
            known.push(word.into());
            if is_head {
                head.add(word.to_owned(), &mut numbers);
            }
            let tagged = tag(scope, word);
            tags.add(tagged.clone(), &mut numbers);
            whole.push(tagged);
        });
        whole.push(mark);
        let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
        numbers.push(number(TAG, &whole));
    };
    for (attribute, &scope) in content.attributes.iter().zip(attributes) {
        attribute.values.iter().for_each(|one| value(scope, one, true));
    }
    content.attachments.iter().for_each(|attachment| value(ATTACHMENTS, &attachment.name, false));
    content.links.iter().for_each(|link| value(LINKS, &link.to_string(), false));
    value(BY, &entry.by, false);
    let mut tags = vec![EVERY.to_owned(), id_tag(entry.at.id), thread_tag(entry.thread)];
    tags.extend(entry.parent.map(|_| REPLY.to_owned()));
    if known.iter().any(|word| word.len() >= MAX_WORD && word.chars().nth(MAX_WORD - 1).is_some()) {
        tags.push(CUT.to_owned());
    }
    numbers.extend(tags.iter().map(|tag| number(TAG, &[tag])));
    numbers.extend((0..LEVELS).map(|level| span(level, row >> shift(level))));
    numbers.sort_unstable();
    numbers.dedup();
    known.sort_unstable();
    known.dedup();
    (numbers, known)
}

/// Returns whether the index lets only wanted entries through.
pub fn is_exact(want: &Want) -> bool {
    match want {
        Want::All | Want::Nothing => true,
        Want::Phrase(_, words) => is_one_set(words),
        Want::And(wants) | Want::Or(wants) => wants.iter().all(is_exact),
        Want::Not(want) => is_exact(want),
    }
}

/// Returns whether one set of numbers expresses a phrase.
pub fn is_one_set(words: &[String]) -> bool {
    words.len() <= 2 || is_whole(words)
}

/// Returns whether the words are a whole value, from mark to mark.
fn is_whole(words: &[String]) -> bool {
    words.len() > 2 && words.first() == words.last() && words[0].starts_with('§') && words[0].ends_with('§')
}

/// A query to the index: a condition on the table `word`, and its lists of numbers, as `$1`, `$2` and so on.
#[derive(Debug, Default)]
pub struct IndexQuery {
    pub condition: String,
    pub lists: Vec<Vec<i64>>,
}

/// Returns the query for the wanted rows in these spans.
pub fn question(want: &Want, spans: Vec<i64>) -> IndexQuery {
    let mut question = IndexQuery { condition: String::from("words && $1"), lists: vec![spans] };
    let condition = question.of(want);
    if !condition.is_empty() {
        question.condition = format!("words && $1 AND {condition}");
    }
    question
}

impl IndexQuery {
    fn list(&mut self, numbers: Vec<i64>) -> String {
        let at = self.lists.iter().position(|list| *list == numbers).unwrap_or_else(|| {
            self.lists.push(numbers);
            self.lists.len() - 1
        });
        format!("words && ${}", at + 1)
    }

    /// The condition; empty without one.
    fn of(&mut self, want: &Want) -> String {
        match want {
            Want::All => String::new(),
            Want::Nothing => "false".to_owned(),
            Want::Phrase(column, words) => {
                let sets: Vec<String> = sets(*column, words).into_iter().map(|set| self.list(set)).collect();
                sets.join(" AND ")
            }
            Want::And(wants) => {
                let parts: Vec<String> = wants.iter().map(|want| self.of(want)).filter(|part| !part.is_empty()).collect();
                parts.join(" AND ")
            }
            Want::Or(wants) => {
                // Combines the phrases that one list can express.
                let (mut together, mut parts) = (Vec::new(), Vec::new());
                for want in wants {
                    match want {
                        Want::Phrase(column, words) if is_one_set(words) => {
                            together.extend(sets(*column, words).into_iter().flatten());
                        }
                        want => {
                            let part = self.of(want);
                            parts.push(if part.is_empty() {
                                "words && $1".to_owned()
                            } else {
                                format!("words && $1 AND {part}")
                            });
                        }
                    }
                }
                if !together.is_empty() {
                    let part = self.list(together);
                    parts.push(if parts.is_empty() { part } else { format!("words && $1 AND {part}") });
                }
                if parts.len() == 1 { parts.remove(0) } else { format!("(({}))", parts.join(") OR (")) }
            }
            Want::Not(want) => {
                let part = self.of(want);
                let part = if part.is_empty() { part } else { format!(" AND {part}") };
                format!("row NOT IN (SELECT row FROM word WHERE words && $1{part})")
            }
        }
    }
}

/// Returns the sets of numbers of a phrase: an entry with the phrase has at least one number of each.
pub fn sets(column: Column, words: &[String]) -> Vec<Vec<i64>> {
    let kinds: &[&str] = match column {
        Column::Both => &[TEXT, HEAD],
        Column::Text => &[TEXT],
        Column::Tags => &[TAG],
    };
    let of = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        kinds.iter().map(|kind| number(kind, &words)).collect::<Vec<i64>>()
    };
    if is_one_set(words) { vec![of(words)] } else { words.windows(2).map(of).collect() }
}

#[cfg(test)]
mod tests {
    use tampu_types::Time;

    use super::*;
    use crate::{
        entry::{Content, EntryRef},
        store::book_row::first_row,
    };

    #[test]
    fn a_range_of_rows_is_covered_by_few_spans() {
        let day = |text: &str| first_row(3, text.parse::<Time>().unwrap());
        let at = day("2008-09-10");
        for (first, last) in [
            (at, at),
            (at, day("2008-09-11")),
            (day("1970-01-01"), day("2026-11-22")),
            (first_row(3, Time(i64::MIN)), first_row(3, Time(i64::MAX))),
        ] {
            let spans = spans(first, last);
            assert!((1..=MAX_SPANS).contains(&(spans.len() as i64)), "{}", spans.len());
            for row in [first, first + (last - first) / 3, last] {
                assert!((0..LEVELS).any(|level| spans.contains(&span(level, row >> shift(level)))), "{row}");
            }
        }
        // Another book has other spans.
        let other = first_row(4, Time(1_221_000_000_000_000_000));
        let own = first_row(3, Time(1_221_000_000_000_000_000));
        assert!((0..LEVELS - 1).all(|level| span(level, other >> shift(level)) != span(level, own >> shift(level))));
        assert!((0..LEVELS).all(|level| span(level, own >> shift(level)) < 0));
    }

    #[test]
    fn what_an_entry_says_is_asked_for_with_the_same_numbers() {
        let content = Content { text: "RICH1 HV tripped".to_owned(), ..Content::default() };
        let entry = Entry {
            at: EntryRef::new("A", 7),
            date: Time(0),
            zone: 0,
            by: "zoe quartz".to_owned(),
            revision: 0,
            changed: Time(0),
            parent: None,
            thread: 7,
            content,
            signatures: vec![],
        };
        let (numbers, known) = of(1 << 60, &entry, &[]);
        assert_eq!(known.iter().map(|word| &**word).collect::<Vec<_>>(), ["hv", "quartz", "rich1", "tripped", "zoe"]);
        let has = |column, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            sets(column, &words).iter().all(|set| set.iter().any(|number| numbers.contains(number)))
        };
        assert!(has(Column::Both, &["rich1"]) && has(Column::Text, &["rich1", "hv", "tripped"]));
        assert!(!has(Column::Both, &["hv", "rich1"]) && !has(Column::Text, &["zoe"]));
        let (mark, zoe, quartz) = (tag(BY, ""), tag(BY, "zoe"), tag(BY, "quartz"));
        assert!(has(Column::Tags, &[&mark, &zoe, &quartz, &mark]) && !has(Column::Tags, &[&mark, &zoe, &mark]));
    }

    #[test]
    fn a_question_says_what_is_wanted() {
        let phrase = |word: &str| Want::Phrase(Column::Text, vec![word.to_owned()]);
        let ask = |want| question(&want, vec![-1]).condition;
        assert_eq!(ask(Want::All), "words && $1");
        assert_eq!(ask(Want::And(vec![phrase("a"), phrase("b")])), "words && $1 AND words && $2 AND words && $3");
        assert_eq!(ask(Want::Or(vec![phrase("a"), phrase("b")])), "words && $1 AND words && $2");
        let not = Want::Not(Box::new(phrase("a")));
        assert_eq!(ask(not.clone()), "words && $1 AND row NOT IN (SELECT row FROM word WHERE words && $1 AND words && $2)");
        assert!(ask(Want::Or(vec![not, phrase("b")])).starts_with("words && $1 AND ((words && $1 AND row NOT IN ("));
    }
}
