//! Queries to a store's index, made from a query.
//!
//! An index holds the words of texts and attributes, and, as [`tag`]s, the attribute of a word. A query becomes a
//! [`Want`] over those. A want selects every entry that matches the query. If it selects no other entry, it is exact,
//! and the entries need no check. Text inside words is looked up in the vocabulary first: the words that contain it, or
//! begin or end with it. So a regular expression costs as much as its rarest literal, and a literal of two characters
//! is enough.

use regex::Regex;

use super::{Node, Scope};
use crate::text::{MAX_WORD, word_list};

/// The largest number of words that a part of a word is expanded to; with more, the entries themselves are checked.
pub const MAX_EXPANSION: usize = 256;

/// Maximum number of vocabulary rows, words and their endings, that one entry may add. An entry whose new words need
/// more is tagged [`UNLEARNED`]; the index still has its words.
pub const MAX_ENDINGS: usize = 30_000;

/// Numbers of the scopes that are not attributes; attributes have the numbers after these.
pub const BY: u32 = 1;
/// Names of attachments.
pub const ATTACHMENTS: u32 = 2;
/// The targets of links.
pub const LINKS: u32 = 3;
/// The first number of an attribute.
pub const FIRST_ATTRIBUTE: u32 = 16;
/// The tag every entry has.
pub const EVERY: &str = "§e";
/// Tag of entries that have a word of more than [`MAX_WORD`] characters. The vocabulary does not hold the rest of such
/// a word.
pub const CUT: &str = "§l";
/// The tag of entries with words that the vocabulary does not have, because they were too many.
pub const UNLEARNED: &str = "§v";
/// The tag of replies.
pub const REPLY: &str = "§r";

/// Returns the tag of a word in the scope with this number.
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

/// The column of the index that a phrase is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The text, or the values of attributes.
    Both,
    /// The words of the text.
    Text,
    /// The words of attributes, and tags.
    Tags,
}

/// A query to an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// All entries match.
    All,
    /// No entry matches.
    Nothing,
    /// These words in sequence.
    Phrase(Column, Vec<String>),
    /// Each of these.
    And(Vec<Want>),
    /// Any of these.
    Or(Vec<Want>),
    /// Entries that this does not match.
    Not(Box<Want>),
}

impl Want {
    /// Returns a want that selects every entry of this one, also if the entries have some words less than the index says.
    pub fn without_nots(&self) -> Want {
        match self {
            Want::Not(_) => Want::All,
            Want::And(wants) => Want::And(wants.iter().map(Want::without_nots).collect()),
            Want::Or(wants) => Want::Or(wants.iter().map(Want::without_nots).collect()),
            want => want.clone(),
        }
    }
}

/// The vocabulary of an index. Its methods return `None` for more than [`MAX_EXPANSION`] words.
pub trait Vocabulary {
    /// An error of the database.
    type Error;
    /// Returns the words that begin with a text.
    fn beginning(&self, with: &str) -> Result<Option<Vec<String>>, Self::Error>;
    /// Returns the words that end with a text.
    fn ending(&self, with: &str) -> Result<Option<Vec<String>>, Self::Error>;
    /// Returns the words that contain a text.
    fn containing(&self, part: &str) -> Result<Option<Vec<String>>, Self::Error>;
    /// Returns the words that contain a text and match an expression. Words that are cut at [`MAX_WORD`] characters
    /// count as matching.
    fn matching(&self, part: &str, regex: &Regex) -> Result<Option<Vec<String>>, Self::Error>;
    /// The number of an attribute.
    fn attribute(&self, name: &str) -> Result<Option<u32>, Self::Error>;
    /// Returns whether the index selects only matching entries. An index without the order of words selects more
    /// entries than a phrase matches.
    fn is_exact(&self, _: &Want) -> bool {
        true
    }
    /// Returns whether an entry may have this tag, [`CUT`] or [`UNLEARNED`]. Such entries are checked themselves.
    fn has(&self, tag: &str) -> Result<bool, Self::Error>;
}

/// Adds the entries whose words the vocabulary does not have in full.
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

/// Returns the query for the index, and the parts of the user's query against which the found entries must be checked.
pub fn candidates<'a, V: Vocabulary>(node: &'a Node, vocabulary: &V) -> Result<(Want, Vec<&'a Node>), V::Error> {
    let (mut wants, mut open) = (Vec::new(), Vec::new());
    for part in node.conjuncts() {
        if matches!(part, Node::Date { .. }) {
            // The store asks only for rows between the dates.
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
            let Some(parts) = regex.parts() else { return Ok((Want::All, false)) };
            let mut wants = Vec::new();
            if !parts.literals.is_empty() {
                wants.push(demand(scope, &parts.literals, vocabulary)?);
            }
            for segment in &parts.segments {
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

/// The number of a scope; `Some(None)` for text, `None` for an attribute that no book has.
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

/// Returns the question with whether the index answers it exactly.
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

/// Like [`or_tagged`], for entries whose words the vocabulary has in full.
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
    // A word is complete at an end with a separator; at other ends it may go on.
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

fn demand<V: Vocabulary>(scope: &Scope, sets: &[Vec<String>], vocabulary: &V) -> Result<Want, V::Error> {
    let mut wants = Vec::new();
    for choice in sets {
        let parts = choice.iter().map(|literal| Ok(contained(scope, literal, vocabulary)?.0));
        wants.push(any(parts.collect::<Result<Vec<_>, V::Error>>()?));
    }
    Ok(all(wants))
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
