//! The entries that a rule means.

use tampu_types::Time;

use super::rule::{NotifyRule, RuleAbout};
use crate::{
    book::same_name,
    entry::Entry,
    plain::plain,
    query::{eval::Subject, parse},
    search::Stop,
};

/// A new entry, with the facts that rules need.
pub struct NewEntryFacts<'a> {
    /// The entry, as the user may see it.
    pub entry: &'a Entry,
    /// The author of the answered entry.
    pub answered: Option<&'a str>,
    /// The time of the post.
    pub posted: Time,
    /// The names of the attributes of all logbooks.
    pub attributes: &'a [String],
    /// The signal that ends long work.
    pub stop: &'a Stop,
}

/// Returns true if a rule of a user means an entry of somebody else.
pub fn means(rule: &NotifyRule, login: &str, new: &NewEntryFacts<'_>) -> bool {
    let entry = new.entry;
    if entry.by == login || new.posted.0 < rule.since {
        return false;
    }
    if rule.book.as_ref().is_some_and(|book| !same_name(book, &entry.at.book)) {
        return false;
    }
    let is_meant = match rule.about {
        RuleAbout::All => true,
        RuleAbout::Replies => new.answered == Some(login),
        RuleAbout::Mentions => mentions(entry, login),
    };
    is_meant && (rule.query.is_empty() || matches_query(rule, new))
}

fn matches_query(rule: &NotifyRule, new: &NewEntryFacts<'_>) -> bool {
    // A query that named an attribute which is gone matches nothing.
    let Ok(node) = parse(&rule.query, new.attributes, new.posted) else { return false };
    Subject::of(new.entry).until(new.stop).is_meant(&node) && !new.stop.is_stopped()
}

/// Returns true if an entry contains `@login`.
fn mentions(entry: &Entry, login: &str) -> bool {
    let values = entry.content.attributes.iter().flat_map(|said| &said.values);
    is_mentioned(&plain(entry.content.encoding, &entry.content.text), login)
        || values.into_iter().any(|value| is_mentioned(value, login))
}

/// Returns true if a text contains `@login` as a word of its own.
fn is_mentioned(text: &str, login: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices('@').any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let Some(rest) = text[at + 1..].strip_prefix(login) else { return false };
        let mut after = rest.chars();
        let (first, second) = (after.next(), after.next());
        // A full stop ends a sentence, unless a name goes on after it.
        let goes_on = first.is_some_and(part_of_word) || matches!(first, Some('.' | '@')) && second.is_some_and(part_of_word);
        !before.is_some_and(|c| part_of_word(c) || c == '.') && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_word_of_its_own() {
        for text in ["@zoe", "ask @zoe.", "(@zoe), please", "@zoe: look", "@max @zoe\n"] {
            assert!(is_mentioned(text, "zoe"), "{text}");
        }
        for text in ["zoe", "@zoey", "@zoe-b", "me@zoe", "@zoe.example", "@zoe@example.org", "@Zoe", ""] {
            assert!(!is_mentioned(text, "zoe"), "{text}");
        }
    }
}
