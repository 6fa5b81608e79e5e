//! Links from a list to itself.

use crate::pages::address::Parameters;

/// Parameters that select a position in the list. All others define the content of the list.
pub const PLACE: [&str; 3] = ["id", "cmd", "select"];

/// Returns the address of the same list with these parameters.
pub fn here(query: &Parameters) -> String {
    let written = query.written();
    if written.is_empty() { "./".to_owned() } else { format!("./{written}") }
}
