//! Audit: refused and administrative actions.

use std::sync::atomic::{AtomicU64, Ordering};

use super::nouns::{Principal, Resource, Verb};

/// An action for the audit.
#[derive(Debug)]
pub struct Act<'a> {
    /// The acting principal.
    pub principal: &'a Principal,
    /// The kind of the action.
    pub verb: Verb,
    /// The object of the action.
    pub resource: &'a Resource,
    /// The outcome of the action.
    pub outcome: Outcome<'a>,
}

/// Outcome of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Carried out, with details.
    Done(&'a str),
    /// Refused, with the reason.
    Refused(&'a str),
}

/// Refused actions of this process, by verb.
static REFUSED: [AtomicU64; Verb::ALL.len()] = [const { AtomicU64::new(0) }; Verb::ALL.len()];

/// Counts a refused action.
pub(crate) fn count(verb: Verb) {
    // The order of `Verb::ALL` is that of the variants.
    REFUSED[verb as usize].fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of actions that this process refused, by verb.
pub fn refusals() -> impl Iterator<Item = (Verb, u64)> {
    Verb::ALL.into_iter().map(|verb| (verb, REFUSED[verb as usize].load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_stand_in_the_order_of_their_numbers() {
        assert!(Verb::ALL.into_iter().enumerate().all(|(index, verb)| verb as usize == index));
    }
}
