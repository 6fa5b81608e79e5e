//! The settings of attributes: conditions, presets, substitutions, and the way they are shown.

use tampu_logbook::book::{
    AttributeDef, AttributeKind,
    elog_options::{key, list},
    same_name,
};

use crate::pages::settings::{ActiveConditions, BookSettings, FormOccasion, has};

impl BookSettings {
    /// Returns the conditions that these values set.
    pub fn set_by<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> ActiveConditions {
        let mut set = ActiveConditions::new();
        for attribute in self.attributes.iter() {
            let Some(value) = value_of(attribute) else { continue };
            for kind in ["Options", "MOptions", "ROptions", "IOptions"] {
                let Some(options) = self.get(&format!("{kind} {attribute}")) else { continue };
                for (option, conditions) in list(options).iter().filter_map(|option| conditional(option)) {
                    if value.split(" | ").any(|value| value == option) {
                        set.extend(conditions.split(',').map(|one| one.trim().to_owned()));
                    }
                }
            }
        }
        set
    }

    /// Returns true if a value of this attribute can change other fields of a form.
    pub fn sets_conditions(&self, attribute: &str) -> bool {
        let kinds = ["Options", "MOptions", "ROptions"];
        let options = kinds.iter().find_map(|kind| self.get(&format!("{kind} {attribute}")));
        options.is_some_and(|options| list(options).iter().any(|option| conditional(option).is_some()))
    }

    /// Returns an attribute under conditions: its kind, options, and whether it is required, locked or extendable.
    pub fn attribute(&self, def: &AttributeDef, set: &[String]) -> AttributeDef {
        let mut def = def.clone();
        let kinds = [
            ("Options", AttributeKind::Options),
            ("MOptions", AttributeKind::Multiple),
            ("ROptions", AttributeKind::Radio),
            ("IOptions", AttributeKind::Radio),
        ];
        for (option, kind) in kinds {
            let found = self.options.get(&key(&format!("{option} {}", def.name))).map_or(&[][..], Vec::as_slice);
            let Some(now) = self.under(&format!("{option} {}", def.name), set) else { continue };
            if !found.iter().any(|(condition, _)| !condition.is_empty()) {
                continue;
            }
            // Options of a book that people have added hold under every condition.
            let configured: Vec<String> = found.iter().flat_map(|(_, options)| plain_options(options)).collect();
            let added = def.options.iter().filter(|option| !configured.contains(option));
            def.options = plain_options(now).into_iter().chain(added.cloned()).collect();
            def.kind = kind;
        }
        if self.is_on(&format!("Sort Attribute Options {}", def.name), false) {
            def.options.sort_by_key(|option| option.to_lowercase());
        }
        if set.is_empty() {
            return def;
        }
        let listed = |option: &str, otherwise: bool| match self.under(option, set) {
            Some(value) if self.get(option) != Some(value) => has(&list(value), &def.name),
            _ => otherwise,
        };
        (def.required, def.locked, def.extendable) = (
            listed("Required Attributes", def.required),
            listed("Locked Attributes", def.locked),
            listed("Extendable Options", def.extendable),
        );
        if let Some(comment) = self.under(&format!("Comment {}", def.name), set) {
            def.comment = comment.to_owned();
        }
        def
    }

    /// `Show Attributes Edit`: the place of an attribute in a form; attributes without one come last.
    pub fn place_in_form(&self, attribute: &str, set: &[String]) -> usize {
        let shown = self.under("Show Attributes Edit", set).map(list).unwrap_or_default();
        shown.iter().position(|name| same_name(name, attribute)).unwrap_or(usize::MAX)
    }

    /// `Show Attributes Edit`: true if a form has this attribute.
    pub fn in_form(&self, attribute: &str, set: &[String]) -> bool {
        self.under("Show Attributes Edit", set).is_none_or(|shown| has(&list(shown), attribute))
    }

    /// `Fixed Attributes Edit`, `Fixed Attributes Reply`: true if a form shows the attribute without a field.
    pub fn is_fixed(&self, attribute: &str, occasion: FormOccasion) -> bool {
        let name = match occasion {
            FormOccasion::Edit => "Fixed Attributes Edit",
            FormOccasion::Reply | FormOccasion::FirstReply => "Fixed Attributes Reply",
            FormOccasion::New | FormOccasion::Duplicate => return false,
        };
        self.list(name).is_some_and(|fixed| has(&fixed, attribute))
    }

    /// `Preset <attribute>` and its variants: the first value of a field. An empty one clears the field.
    pub fn preset(&self, attribute: &str, occasion: FormOccasion, set: &[String]) -> Option<&str> {
        let of = |pattern: &str| self.written(&format!("{pattern} {attribute}"), set);
        match occasion {
            FormOccasion::New => of("Preset"),
            FormOccasion::Reply => of("Preset on reply"),
            FormOccasion::FirstReply => of("Preset on first reply").or_else(|| of("Preset on reply")),
            FormOccasion::Edit => of("Preset on edit"),
            FormOccasion::Duplicate => of("Preset on duplicate"),
        }
    }

    /// `Subst <attribute>` and the related options: the replacement of a value.
    pub fn subst(&self, attribute: &str, occasion: FormOccasion, set: &[String]) -> Option<&str> {
        let pattern = match occasion {
            FormOccasion::New | FormOccasion::Duplicate => "Subst",
            FormOccasion::Reply | FormOccasion::FirstReply => "Subst on reply",
            FormOccasion::Edit => "Subst on edit",
        };
        self.under(&format!("{pattern} {attribute}"), set)
    }

    /// `Remove on reply`: true if a reply does not inherit the attribute.
    pub fn is_removed_on_reply(&self, attribute: &str) -> bool {
        self.list("Remove on reply").is_some_and(|removed| has(&removed, attribute))
    }

    /// `Display <attribute>`: the format of a displayed value. `Change <attribute>` is HTML always; in lists, `List Change
    /// <attribute>` takes its place.
    pub fn display(&self, attribute: &str, in_list: bool) -> Option<(&str, bool)> {
        let as_html = |name: String| self.get(&name).map(|format| (format, true));
        let of_list = if in_list { as_html(format!("List Change {attribute}")) } else { None };
        of_list
            .or_else(|| self.get(&format!("Display {attribute}")).map(|format| (format, self.allows_html())))
            .or_else(|| as_html(format!("Change {attribute}")))
    }

    pub fn tooltip(&self, attribute: &str, set: &[String]) -> &str {
        self.under(&format!("Tooltip {attribute}"), set).unwrap_or_default()
    }

    /// `Format <attribute>`: flags, a class for its cell, a class for its field, the field's width, rows.
    pub fn format(&self, attribute: &str) -> AttributeFormat {
        let parts = self.list(&format!("Format {attribute}")).unwrap_or_default();
        let part = |at: usize| parts.get(at).map(String::as_str).unwrap_or_default();
        let class = |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        AttributeFormat {
            flags: part(0).parse().unwrap_or(0),
            class: class(part(1)),
            field_class: class(part(2)),
            width: part(3).parse().ok().filter(|width| (1..=500).contains(width)),
            rows: part(4).parse().ok().filter(|rows| (1..=100).contains(rows)),
        }
    }
}

/// The layout of an attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttributeFormat {
    /// Flags. 1: on the same line as the previous attribute. 2: options in one line. 4 and more: see ELOG.
    pub flags: u32,
    /// The class of its cell.
    pub class: String,
    /// The class of its field.
    pub field_class: String,
    /// Characters of its field.
    pub width: Option<u32>,
    /// Rows of its field.
    pub rows: Option<u32>,
}

/// Returns options without the conditions they set.
fn plain_options(value: &str) -> Vec<String> {
    list(value).iter().map(|option| conditional(option).map_or(option.as_str(), |(plain, _)| plain).to_owned()).collect()
}

/// Splits `Routine{a}` into an option and the conditions it sets.
fn conditional(option: &str) -> Option<(&str, &str)> {
    let (plain, conditions) = option.strip_suffix('}')?.split_once('{')?;
    Some((plain.trim(), conditions))
}
