//! The content of a form, before it is shown and after it was sent.

use tampu_logbook::entry::Content;

use crate::pages::{request::BookRequest, settings::FormOccasion};

/// The field of [`EntryForm::lock_key`].
pub const LOCK_KEY: &str = "lock_key";

/// The content of a form.
#[derive(Debug, Clone)]
pub struct EntryForm {
    /// The purpose of the form.
    pub occasion: FormOccasion,
    /// The entry that is changed, answered or duplicated.
    pub of: Option<u32>,
    /// The revision that is changed.
    pub revision: Option<u32>,
    /// Values, text, encoding, attachments.
    pub content: Content,
    /// The error to show above the form.
    pub error: Option<String>,
    /// A note to show above the form.
    pub note: Option<String>,
    /// True to show the text as the entry will show it.
    pub preview: bool,
    /// The number of its draft.
    pub draft: Option<i64>,
    /// True to send no mail.
    pub suppress: bool,
    /// True to post the change as a new entry.
    pub resubmit: bool,
    /// The key that distinguishes the locks of guests' forms.
    pub lock_key: Option<String>,
}

/// Makes an empty form.
pub fn empty(request: &BookRequest<'_>, occasion: FormOccasion) -> EntryForm {
    EntryForm {
        occasion,
        of: None,
        revision: None,
        content: Content { encoding: request.settings.encoding(), ..Content::default() },
        error: None,
        note: None,
        preview: false,
        draft: None,
        suppress: matches!(request.settings.suppress(occasion), 1 | 3),
        resubmit: request.settings.resubmit() == 1,
        lock_key: None,
    }
}
