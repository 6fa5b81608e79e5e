//! The fields of a form: the attributes of a book under the conditions that the values of the form set.

use tampu_logbook::{
    book::{AttributeDef, Book, same_name},
    entry::Content,
};

use crate::pages::settings::{ActiveConditions, BookSettings, FormOccasion};

/// The field of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormField {
    /// The place of the attribute in the book, from 0.
    pub index: usize,
    /// The attribute under the conditions.
    pub def: AttributeDef,
    /// True if the form shows the attribute.
    pub is_shown: bool,
    /// True if a person cannot write the value.
    pub is_fixed: bool,
    /// True if a value can change other fields.
    pub decides: bool,
    /// The text that appears beside the field on demand.
    pub tooltip: String,
}

/// Returns the conditions that an entry's values set.
pub fn conditions(settings: &BookSettings, content: &Content) -> ActiveConditions {
    let joined: Vec<(String, String)> = content.attributes.iter().map(|said| (said.name.clone(), said.joined())).collect();
    settings.set_by(|name| joined.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str()))
}

/// Returns the fields of a form with these values, in their order.
pub fn fields(book: &Book, settings: &BookSettings, occasion: FormOccasion, content: &Content) -> Vec<FormField> {
    let set = conditions(settings, content);
    let mut defs: Vec<_> = book.attributes.iter().enumerate().collect();
    defs.sort_by_key(|(_, def)| settings.place_in_form(&def.name, &set));
    // In elogd's configuration a locked attribute has its preset from the beginning.
    let stays = occasion == FormOccasion::Edit || !book.elog.is_empty();
    let field = |(index, def): (usize, &AttributeDef)| {
        let def = settings.attribute(def, &set);
        FormField {
            index,
            is_shown: settings.in_form(&def.name, &set),
            is_fixed: def.locked && stays || !def.computed.is_empty() || settings.is_fixed(&def.name, occasion),
            decides: settings.sets_conditions(&def.name),
            tooltip: settings.tooltip(&def.name, &set).to_owned(),
            def,
        }
    };
    defs.into_iter().map(field).collect()
}
