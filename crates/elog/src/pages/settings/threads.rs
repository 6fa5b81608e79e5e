//! Options of threads.

use super::BookSettings;

impl BookSettings {
    /// `Collapse to last`: true if a collapsed thread shows its last entry, else its first.
    pub fn collapses_to_last(&self) -> bool {
        // Books that do not come from ELOG show the first entry.
        self.is_on("Collapse to last", !self.options.is_empty())
    }

    /// `Propagate attributes`: the attributes that all entries of a thread have in common.
    pub fn propagated(&self) -> Vec<String> {
        self.list("Propagate attributes").unwrap_or_default()
    }

    /// `Resubmit replies`: true if the replies to a resubmitted entry are resubmitted with it.
    pub fn resubmits_replies(&self) -> bool {
        self.is_on("Resubmit replies", false)
    }
}
