//! What an index can say about a query beforehand.
//!
//! A store's index knows words, in the text, in attributes, and (as [`tag`]s) in which attribute. A query becomes a [`Want`] over
//! those that leaves out nothing the query means; where it also lets nothing else through it is exact, and nobody looks at the
//! entries. What is looked for inside words is asked of the vocabulary first: the words that contain it, begin or end so. So a regular
//! expression costs what its rarest literal costs, and a literal of two characters is enough.

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::{Node, Scope, segments::segments};
use crate::text::{MAX_WORD, fold, word_list};

/// Words that a part of a word may stand for; with more of them the entries themselves are looked at.
pub const MAX_EXPANSION: usize = 256;

/// Rows of the vocabulary, words and their endings, that one entry may add. One whose new words need more is tagged [`UNLEARNED`]; its
/// words are in the index all the same.
pub const MAX_ENDINGS: usize = 200_000;

/// Numbers of the scopes that are no attributes; attributes have the numbers after these.
pub const BY: u32 = 1;
/// Names of attachments.
pub const ATTACHMENTS: u32 = 2;
/// Links.
pub const LINKS: u32 = 3;
/// The first number of an attribute.
pub const FIRST_ATTRIBUTE: u32 = 16;
/// The tag every entry has.
pub const EVERY: &str = "§e";
/// The tag of entries with words of more than [`MAX_WORD`] characters: what is inside those, behind the characters that count, the
/// vocabulary does not know.
pub const CUT: &str = "§l";
/// The tag of entries with words that the vocabulary does not have, because they were too many.
pub const UNLEARNED: &str = "§v";
/// The tag of answers.
pub const REPLY: &str = "§r";

/// A word in something that has a number.
pub fn tag(number: u32, word: &str) -> String {
    format!("§{number}§{word}")
}

/// The tag of an entry's id.
pub fn id_tag(id: u32) -> String {
    format!("§i{id}")
}

/// The tag of an entry's thread.
pub fn thread_tag(thread: u32) -> String {
    format!("§t{thread}")
}

/// Where a phrase stands in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The text, or the values of attributes.
    Both,
    /// The text.
    Text,
    /// The tags.
    Tags,
}

/// What is wanted of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Everything.
    All,
    /// Nothing.
    Nothing,
    /// These words after each other.
    Phrase(Column, Vec<String>),
    /// Each of these.
    And(Vec<Want>),
    /// Any of these.
    Or(Vec<Want>),
    /// Not this.
    Not(Box<Want>),
}

/// What the index knows of its words. `None` where there are more than [`MAX_EXPANSION`].
pub trait Vocabulary {
    /// Why it cannot be asked.
    type Error;
    /// The words that begin so.
    fn beginning(&self, with: &str) -> Result<Option<Vec<String>>, Self::Error>;
    /// The words that end so.
    fn ending(&self, with: &str) -> Result<Option<Vec<String>>, Self::Error>;
    /// The words that contain it.
    fn containing(&self, part: &str) -> Result<Option<Vec<String>>, Self::Error>;
    /// The words that contain it and match. Words that are cut at [`MAX_WORD`] characters count as matching.
    fn matching(&self, part: &str, regex: &Regex) -> Result<Option<Vec<String>>, Self::Error>;
    /// The number of an attribute.
    fn attribute(&self, name: &str) -> Result<Option<u32>, Self::Error>;
    /// Whether the index lets nothing through that is not wanted; one that does not know what follows what lets more through than a phrase.
    fn is_exact(&self, _: &Want) -> bool {
        true
    }
    /// Whether any entry has this tag, [`CUT`] or [`UNLEARNED`]. Where it may, such entries are looked at themselves.
    fn has(&self, tag: &str) -> Result<bool, Self::Error>;
}

/// What is wanted, or entries whose words the vocabulary does not know whole.
fn or_tagged<V: Vocabulary>((want, exact): (Want, bool), tags: &[&str], vocabulary: &V) -> Result<(Want, bool), V::Error> {
    let (mut wants, mut exact) = (vec![want], exact);
    for tag in tags {
        if wants[0] != Want::All && vocabulary.has(tag)? {
            wants.push(Want::Phrase(Column::Tags, vec![(*tag).to_owned()]));
            exact = false;
        }
    }
    Ok((any(wants), exact))
}

/// What to ask the index for, and the parts of the query that the entries found have to be held against.
pub fn candidates<'a, V: Vocabulary>(node: &'a Node, vocabulary: &V) -> Result<(Want, Vec<&'a Node>), V::Error> {
    let (mut wants, mut open) = (Vec::new(), Vec::new());
    for part in node.conjuncts() {
        if matches!(part, Node::Date { .. }) {
            // The store asks only for what lies between the dates.
            continue;
        }
        let (want, exact) = one(part, vocabulary)?;
        wants.push(want);
        if !exact {
            open.push(part);
        }
    }
    Ok((all(wants), open))
}

fn one<V: Vocabulary>(node: &Node, vocabulary: &V) -> Result<(Want, bool), V::Error> {
    Ok(match node {
        Node::All => (Want::All, true),
        Node::And(nodes) => {
            let parts = nodes.iter().map(|node| one(node, vocabulary)).collect::<Result<Vec<_>, _>>()?;
            let exact = parts.iter().all(|(_, exact)| *exact);
            (all(parts.into_iter().map(|(want, _)| want).collect()), exact)
        }
        Node::Or(nodes) => {
            let parts = nodes.iter().map(|node| one(node, vocabulary)).collect::<Result<Vec<_>, _>>()?;
            let exact = parts.iter().all(|(_, exact)| *exact);
            (any(parts.into_iter().map(|(want, _)| want).collect()), exact)
        }
        Node::Not(node) => match one(node, vocabulary)? {
            (want, true) => (not(want), true),
            (_, false) => (Want::All, false),
        },
        Node::Words { scope, words, prefix } => in_words(scope, words, *prefix, vocabulary)?,
        Node::Contains { scope, text } => contained(scope, text, vocabulary)?,
        Node::Matches { scope, regex } => {
            let Ok(hir) = regex_syntax::parse(regex.as_str()) else { return Ok((Want::All, false)) };
            let mut wants = Vec::new();
            if let Required::Literals(literals) = required(&hir) {
                wants.push(demand(scope, &literals, vocabulary)?);
            }
            for segment in segments(&hir) {
                if let Some(words) = vocabulary.matching(&segment.literal, &segment.regex)? {
                    let want = any_of(scope, words, vocabulary)?;
                    wants.push(or_tagged((want, false), &[CUT, UNLEARNED], vocabulary)?.0);
                }
            }
            (all(wants), false)
        }
        Node::Is { name, words } => match vocabulary.attribute(name)? {
            None => (Want::Nothing, true),
            Some(number) if words.is_empty() => (Want::Phrase(Column::Tags, vec![tag(number, "")]), false),
            Some(number) => {
                let mark = tag(number, "");
                let inner = words.iter().map(|word| tag(number, word));
                let phrase = std::iter::once(mark.clone()).chain(inner).chain([mark.clone()]).collect();
                exactly(Want::Phrase(Column::Tags, phrase), vocabulary)?
            }
        },
        Node::Number { name, .. } => match vocabulary.attribute(name)? {
            None => (Want::Nothing, true),
            Some(number) => (Want::Phrase(Column::Tags, vec![tag(number, "")]), false),
        },
        Node::Date { .. } => (Want::All, false),
        Node::Has(scope) => match place(scope, vocabulary)? {
            Some(Some(number)) => (Want::Phrase(Column::Tags, vec![tag(number, "")]), true),
            Some(None) => (Want::All, false),
            None => (Want::Nothing, true),
        },
        Node::IsReply => (Want::Phrase(Column::Tags, vec![REPLY.to_owned()]), true),
        Node::Id(id) => (Want::Phrase(Column::Tags, vec![id_tag(*id)]), true),
        Node::Thread(thread) => (Want::Phrase(Column::Tags, vec![thread_tag(*thread)]), true),
    })
}

/// The number of a scope; `Some(None)` for text, `None` for an attribute nobody has.
fn place<V: Vocabulary>(scope: &Scope, vocabulary: &V) -> Result<Option<Option<u32>>, V::Error> {
    Ok(match scope {
        Scope::Anywhere | Scope::Text => Some(None),
        Scope::Attribute(name) => vocabulary.attribute(name)?.map(Some),
        Scope::Attachments => Some(Some(ATTACHMENTS)),
        Scope::Links => Some(Some(LINKS)),
        Scope::By => Some(Some(BY)),
    })
}

fn phrase<V: Vocabulary>(scope: &Scope, words: Vec<String>, vocabulary: &V) -> Result<Want, V::Error> {
    Ok(match place(scope, vocabulary)? {
        None => Want::Nothing,
        Some(Some(number)) => Want::Phrase(Column::Tags, words.iter().map(|word| tag(number, word)).collect()),
        Some(None) if *scope == Scope::Text => Want::Phrase(Column::Text, words),
        Some(None) => Want::Phrase(Column::Both, words),
    })
}

/// What is wanted, and whether the index lets nothing else through.
fn exactly<V: Vocabulary>(want: Want, vocabulary: &V) -> Result<(Want, bool), V::Error> {
    let exact = vocabulary.is_exact(&want);
    Ok((want, exact))
}

fn any_of<V: Vocabulary>(scope: &Scope, words: Vec<String>, vocabulary: &V) -> Result<Want, V::Error> {
    let phrases = words.into_iter().map(|word| phrase(scope, vec![word], vocabulary)).collect::<Result<Vec<_>, _>>()?;
    Ok(any(phrases))
}

fn in_words<V: Vocabulary>(scope: &Scope, words: &[String], prefix: bool, vocabulary: &V) -> Result<(Want, bool), V::Error> {
    let Some((last, before)) = words.split_last().filter(|_| prefix) else {
        return exactly(phrase(scope, words.to_vec(), vocabulary)?, vocabulary);
    };
    if let Some(lasts) = vocabulary.beginning(last)? {
        let phrases = lasts.into_iter().map(|last| {
            let words = before.iter().cloned().chain([last]).collect();
            phrase(scope, words, vocabulary)
        });
        let want = any(phrases.collect::<Result<Vec<_>, _>>()?);
        let exact = vocabulary.is_exact(&want);
        return or_tagged((want, exact), &[UNLEARNED], vocabulary);
    }
    let want = if before.is_empty() { Want::All } else { phrase(scope, before.to_vec(), vocabulary)? };
    Ok((want, false))
}

/// Entries that contain a folded text.
fn contained<V: Vocabulary>(scope: &Scope, text: &str, vocabulary: &V) -> Result<(Want, bool), V::Error> {
    or_tagged(of_known_words(scope, text, vocabulary)?, &[CUT, UNLEARNED], vocabulary)
}

/// The same, of entries whose words the vocabulary knows whole.
fn of_known_words<V: Vocabulary>(scope: &Scope, text: &str, vocabulary: &V) -> Result<(Want, bool), V::Error> {
    let pieces = word_list(text);
    let is_short = |piece: &str| piece.chars().nth(1).is_none();
    // The index knows the beginning of a very long word only.
    let is_cut = |piece: &String| piece.chars().nth(MAX_WORD - 1).is_some();
    let Some((first, rest)) = pieces.split_first().filter(|_| !pieces.iter().any(is_cut)) else { return Ok((Want::All, false)) };
    if rest.is_empty() && first == text {
        let words = if is_short(first) { None } else { vocabulary.containing(first)? };
        return Ok(match words {
            Some(words) => (any_of(scope, words, vocabulary)?, true),
            None => (Want::All, false),
        });
    }
    // At an end where a separator stands a word is whole; else it may go on there.
    let open_begin = text.starts_with(|c: char| c.is_alphanumeric());
    let open_end = text.ends_with(|c: char| c.is_alphanumeric());
    let mut wants = Vec::new();
    let (mut whole, last) = (pieces.as_slice(), pieces.len() - 1);
    let mut partial = |piece: &String, words: Option<Vec<String>>| -> Result<(), V::Error> {
        if let Some(words) = words.filter(|_| !is_short(piece)) {
            wants.push(any_of(scope, words, vocabulary)?);
        }
        Ok(())
    };
    if open_end && !(last == 0 && open_begin) {
        partial(&pieces[last], if is_short(&pieces[last]) { None } else { vocabulary.beginning(&pieces[last])? })?;
        whole = &whole[..last];
    }
    if open_begin && !whole.is_empty() {
        partial(first, if is_short(first) { None } else { vocabulary.ending(first)? })?;
        whole = &whole[1..];
    }
    if !whole.is_empty() {
        wants.push(phrase(scope, whole.to_vec(), vocabulary)?);
    }
    Ok((all(wants), false))
}

/// What a regular expression cannot do without: some of these sets, each a choice of literals.
#[derive(Debug)]
enum Required {
    Nothing,
    Literals(Vec<Vec<String>>),
}

fn demand<V: Vocabulary>(scope: &Scope, sets: &[Vec<String>], vocabulary: &V) -> Result<Want, V::Error> {
    let mut wants = Vec::new();
    for choice in sets {
        let parts = choice.iter().map(|literal| Ok(contained(scope, literal, vocabulary)?.0));
        wants.push(any(parts.collect::<Result<Vec<_>, V::Error>>()?));
    }
    Ok(all(wants))
}

fn required(hir: &Hir) -> Required {
    let mut sets = Vec::new();
    let mut run = String::new();
    gather(hir, &mut run, &mut sets);
    close(&mut run, &mut sets);
    if sets.is_empty() { Required::Nothing } else { Required::Literals(sets) }
}

/// Ends a run of characters that follow each other; it is required.
fn close(run: &mut String, sets: &mut Vec<Vec<String>>) {
    let text = fold(run).into_owned();
    run.clear();
    if text.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some() {
        sets.push(vec![text]);
    }
}

fn gather(hir: &Hir, run: &mut String, sets: &mut Vec<Vec<String>>) {
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => run.push_str(text),
            Err(_) => close(run, sets),
        },
        HirKind::Class(class) => match single(class) {
            Some(text) => run.push_str(&text),
            None => close(run, sets),
        },
        // What looks around takes no characters.
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Capture(capture) => gather(&capture.sub, run, sets),
        HirKind::Concat(parts) => parts.iter().for_each(|part| gather(part, run, sets)),
        HirKind::Repetition(repetition) => {
            close(run, sets);
            if repetition.min > 0 {
                gather(&repetition.sub, run, sets);
                close(run, sets);
            }
        }
        HirKind::Alternation(parts) => {
            close(run, sets);
            let choices: Option<Vec<String>> = parts
                .iter()
                .map(|part| match required(part) {
                    // The longest of each is taken.
                    Required::Literals(sets) => sets.into_iter().filter(|set| set.len() == 1).flatten().max_by_key(String::len),
                    Required::Nothing => None,
                })
                .collect();
            sets.extend(choices);
        }
    }
}

/// What all characters of a class are when folded, if that is the same: `[Hh]`.
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

fn all(wants: Vec<Want>) -> Want {
    let mut kept: Vec<Want> = Vec::new();
    for want in wants {
        match want {
            Want::All => {}
            Want::Nothing => return Want::Nothing,
            Want::And(inner) => kept.extend(inner),
            want if kept.contains(&want) => {}
            want => kept.push(want),
        }
    }
    match kept.len() {
        0 => Want::All,
        1 => kept.remove(0),
        _ => Want::And(kept),
    }
}

fn any(wants: Vec<Want>) -> Want {
    let mut kept: Vec<Want> = Vec::new();
    for want in wants {
        match want {
            Want::All => return Want::All,
            Want::Nothing => {}
            Want::Or(inner) => kept.extend(inner),
            want => kept.push(want),
        }
    }
    match kept.len() {
        0 => Want::Nothing,
        1 => kept.remove(0),
        _ => Want::Or(kept),
    }
}

fn not(want: Want) -> Want {
    match want {
        Want::All => Want::Nothing,
        Want::Nothing => Want::All,
        Want::Not(want) => *want,
        want => Want::Not(Box::new(want)),
    }
}
