//! What a form has before somebody writes into it: presets and substitutions.

use super::{Form, conditions};
use crate::{
    book::{AttributeDef, AttributeKind, EntryAttribute, same_name},
    elog::web::{BookAsk, settings::Occasion, subst::Names},
    entry::Content,
};

/// Gives an attribute a value as it is written in one line.
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

/// Fills in what the book presets. A preset can set conditions under which there are others.
pub fn preset(ask: &BookAsk<'_>, form: &mut Form, names: &Names) {
    for _ in 0..2 {
        let conditions = conditions(ask, &form.content);
        for def in &ask.book.attributes {
            let Some(preset) = ask.settings.preset(&def.name, form.occasion, &conditions) else { continue };
            let mut value = names.expand(preset);
            if matches!(def.kind, AttributeKind::Date | AttributeKind::DateTime) && preset.trim().eq_ignore_ascii_case("$date") {
                value = ask.now.0.div_euclid(1_000_000_000).to_string();
            }
            set(&mut form.content, def, &value);
        }
    }
}

/// Changes values as `Subst` and its kin say. In them `$name` is what the field has.
pub fn substitute(ask: &BookAsk<'_>, content: &mut Content, occasion: Occasion, names: &Names) {
    let conditions = conditions(ask, content);
    let mut names = names.clone();
    for said in &content.attributes {
        names.set(&said.name, &said.joined());
    }
    for def in &ask.book.attributes {
        if let Some(subst) = ask.settings.subst(&def.name, occasion, &conditions) {
            let value = names.expand(subst);
            set(content, def, &value);
        }
    }
}
