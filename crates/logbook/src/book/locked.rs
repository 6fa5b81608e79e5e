//! Locked attributes: people do not change them after the first revision.
//!
//! ELOG's configuration can set one on each edit (`Subst on edit`, `Preset on edit`). ELOG's pages do that, and nobody else
//! may.

use super::{AttributeDef, Book, EntryAttribute, Invalid, elog_options::is_set_on_edit, same_name};

/// The locked attributes that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedBy {
    /// Those that nothing changes.
    Everybody,
    /// Those that the configuration sets on an edit. They are checked where people edit without ELOG's pages.
    People,
}

/// Checks that an edit keeps locked attributes.
pub fn keeps_locked(book: &Book, was: &[EntryAttribute], is: &[EntryAttribute], which: LockedBy) -> Result<(), Invalid> {
    let values = |said: &[EntryAttribute], name: &str| {
        said.iter().find(|said| same_name(&said.name, name)).map_or_else(Vec::new, |said| said.values.clone())
    };
    let changes = |attribute: &&AttributeDef| {
        attribute.locked
            && is_set_on_edit(book, &attribute.name) == (which == LockedBy::People)
            && values(was, &attribute.name) != values(is, &attribute.name)
    };
    match book.attributes.iter().find(changes) {
        Some(attribute) => Err(Invalid::Locked(attribute.name.clone())),
        None => Ok(()),
    }
}
