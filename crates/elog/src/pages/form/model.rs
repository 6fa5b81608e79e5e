//! The content of a form, before it is shown and after it was sent.

use tampu_logbook::{
    book::same_name,
    entry::{Content, Entry},
};

use crate::pages::{
    request::BookRequest,
    settings::{ActiveConditions, FormOccasion},
    subst::Substitutions,
};

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

/// Returns the substitutions of a form; `of` is the entry that is changed or answered.
pub fn names(request: &BookRequest<'_>, of: Option<&Entry>) -> Substitutions {
    let zone = &request.zone;
    let names = Substitutions::new(request.caller, &request.book, &request.settings, zone, request.now);
    match of {
        Some(entry) => names.with_entry(entry, &request.book, &request.settings, zone),
        None => names,
    }
}

/// Returns the conditions that an entry's values set.
pub fn conditions(request: &BookRequest<'_>, content: &Content) -> ActiveConditions {
    let joined: Vec<(String, String)> = content.attributes.iter().map(|said| (said.name.clone(), said.joined())).collect();
    request.settings.set_by(|name| joined.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str()))
}
