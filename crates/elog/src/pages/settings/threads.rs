//! Options of threads and of lines of lists.

use std::borrow::Cow;

use tampu_logbook::{book::same_name, entry::Entry};

use super::BookSettings;

impl BookSettings {
    /// `List conditions`: the settings for the line of an entry, under the conditions that its values set.
    pub fn of_line(&self, entry: &Entry) -> Cow<'_, BookSettings> {
        if !self.is_on("List conditions", false) {
            return Cow::Borrowed(self);
        }
        let values: Vec<(&str, String)> =
            entry.content.attributes.iter().map(|said| (said.name.as_str(), said.joined())).collect();
        let value = |name: &str| values.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str());
        Cow::Owned(BookSettings { active: self.set_by(value), ..self.clone() })
    }

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
