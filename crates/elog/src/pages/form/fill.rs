//! The first values of a form: presets and substitutions.

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, EntryAttribute, elog_options::needs_shell, same_name},
    entry::Content,
    store::StoreError,
};

use crate::pages::{
    form::{fields::conditions, source::FormSource},
    numbering::numbered,
    settings::FormOccasion,
    subst::Substitutions,
};

/// Sets the value of an attribute from one line.
pub fn set(content: &mut Content, def: &AttributeDef, value: &str) {
    let line: String = value.chars().filter(|c| !matches!(c, '\r' | '\0') && (*c != '\n' || def.takes_lines())).collect();
    let values = match (line.trim().is_empty(), def.takes_several()) {
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
pub fn preset(
    source: &FormSource<'_>,
    occasion: FormOccasion,
    content: &mut Content,
    names: &Substitutions,
) -> Result<(), StoreError> {
    for _ in 0..2 {
        let conditions = conditions(source.settings, content);
        for def in &source.book.attributes {
            let preset = source.settings.preset(&def.name, occasion, &conditions);
            let Some(preset) = preset.filter(|preset| !needs_shell(preset)) else { continue };
            let mut value = names.expand(preset);
            if matches!(def.kind, AttributeKind::Date | AttributeKind::DateTime) && preset.trim().eq_ignore_ascii_case("$date") {
                value = source.now.0.div_euclid(1_000_000_000).to_string();
            }
            if occasion != FormOccasion::Edit && preset.contains('#') {
                value = numbered(source, &def.name, &value)?;
            }
            set(content, def, &value);
        }
    }
    Ok(())
}

/// Changes values by `Subst` and the related options. In them, `$name` is the value of that field.
pub fn substitute(source: &FormSource<'_>, content: &mut Content, occasion: FormOccasion, names: &Substitutions) {
    let conditions = conditions(source.settings, content);
    let mut names = names.clone();
    for said in &content.attributes {
        names.set(&said.name, &said.joined());
    }
    for def in &source.book.attributes {
        let subst = source.settings.subst(&def.name, occasion, &conditions);
        if let Some(subst) = subst.filter(|subst| !needs_shell(subst)) {
            let value = names.expand(subst);
            set(content, def, &value);
        }
    }
}
