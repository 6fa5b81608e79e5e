//! The first values of a form: presets and substitutions.

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, EntryAttribute, same_name},
    entry::Content,
};

use crate::pages::{
    form::model::{EntryForm, conditions},
    request::BookRequest,
    settings::FormOccasion,
    subst::Substitutions,
};

/// Sets the value of an attribute from one line.
pub fn set(content: &mut Content, def: &AttributeDef, value: &str) {
    let line: String = value.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')).collect();
    let values = match (line.trim().is_empty(), def.kind.is_multiple()) {
        (true, _) => vec![],
        (false, true) => line.split('|').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect(),
        (false, false) => vec![line],
    };
    match content.attributes.iter_mut().find(|said| same_name(&said.name, &def.name)) {
        Some(said) => said.values = values,
        None => content.attributes.push(EntryAttribute { name: def.name.clone(), values }),
    }
}

/// Fills in the book's presets. A preset can set conditions for other presets.
pub fn preset(request: &BookRequest<'_>, form: &mut EntryForm, names: &Substitutions) {
    for _ in 0..2 {
        let conditions = conditions(request, &form.content);
        for def in &request.book.attributes {
            let Some(preset) = request.settings.preset(&def.name, form.occasion, &conditions) else { continue };
            let mut value = names.expand(preset);
            if matches!(def.kind, AttributeKind::Date | AttributeKind::DateTime) && preset.trim().eq_ignore_ascii_case("$date") {
                value = request.now.0.div_euclid(1_000_000_000).to_string();
            }
            set(&mut form.content, def, &value);
        }
    }
}

/// Changes values by `Subst` and the related options. In them, `$name` is the value of that field.
pub fn substitute(request: &BookRequest<'_>, content: &mut Content, occasion: FormOccasion, names: &Substitutions) {
    let conditions = conditions(request, content);
    let mut names = names.clone();
    for said in &content.attributes {
        names.set(&said.name, &said.joined());
    }
    for def in &request.book.attributes {
        if let Some(subst) = request.settings.subst(&def.name, occasion, &conditions) {
            let value = names.expand(subst);
            set(content, def, &value);
        }
    }
}
