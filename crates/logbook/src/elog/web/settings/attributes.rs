//! What a configuration says of attributes: conditions, presets, substitutions, how they are shown.

use super::{Occasion, Set, Settings, has, key, list};
use crate::book::{AttributeDef, AttributeKind};

impl Settings {
    /// The conditions that these values set.
    pub fn set_by<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> Set {
        let mut set = Set::new();
        for attribute in &self.attributes {
            let Some(value) = value_of(attribute) else { continue };
            for kind in ["Options", "MOptions", "ROptions"] {
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

    /// Whether choosing a value of this attribute can change what else a form has.
    pub fn sets_conditions(&self, attribute: &str) -> bool {
        let kinds = ["Options", "MOptions", "ROptions"];
        let options = kinds.iter().find_map(|kind| self.get(&format!("{kind} {attribute}")));
        options.is_some_and(|options| list(options).iter().any(|option| conditional(option).is_some()))
    }

    /// An attribute as it is under conditions: its kind, options, and whether it is required, locked or extendable.
    pub fn attribute(&self, def: &AttributeDef, set: &[String]) -> AttributeDef {
        let mut def = def.clone();
        let kinds =
            [("Options", AttributeKind::Options), ("MOptions", AttributeKind::Multiple), ("ROptions", AttributeKind::Radio)];
        for (option, kind) in kinds {
            let found = self.options.get(&key(&format!("{option} {}", def.name))).map_or(&[][..], Vec::as_slice);
            let Some(now) = self.under(&format!("{option} {}", def.name), set) else { continue };
            if !found.iter().any(|(condition, _)| !condition.is_empty()) {
                continue;
            }
            // Of a book's options those that people have added hold under every condition.
            let configured: Vec<String> = found.iter().flat_map(|(_, options)| plain_options(options)).collect();
            let added = def.options.iter().filter(|option| !configured.contains(option));
            def.options = plain_options(now).into_iter().chain(added.cloned()).collect();
            def.kind = kind;
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

    /// `Show Attributes Edit`: whether a form has this attribute.
    pub fn in_form(&self, attribute: &str, set: &[String]) -> bool {
        self.under("Show Attributes Edit", set).is_none_or(|shown| has(&list(shown), attribute))
    }

    /// `Fixed Attributes Edit`, `Fixed Attributes Reply`: whether a form shows it and does not let it be changed.
    pub fn is_fixed(&self, attribute: &str, occasion: Occasion) -> bool {
        let name = match occasion {
            Occasion::Edit => "Fixed Attributes Edit",
            Occasion::Reply | Occasion::FirstReply => "Fixed Attributes Reply",
            Occasion::New | Occasion::Duplicate => return false,
        };
        self.list(name).is_some_and(|fixed| has(&fixed, attribute))
    }

    /// `Preset <attribute>` and its kin: what a field has before somebody writes into it.
    pub fn preset(&self, attribute: &str, occasion: Occasion, set: &[String]) -> Option<&str> {
        let of = |pattern: &str| self.under(&format!("{pattern} {attribute}"), set);
        match occasion {
            Occasion::New => of("Preset"),
            Occasion::Reply => of("Preset on reply"),
            Occasion::FirstReply => of("Preset on first reply").or_else(|| of("Preset on reply")),
            Occasion::Edit => of("Preset on edit"),
            Occasion::Duplicate => of("Preset on duplicate"),
        }
    }

    /// `Subst <attribute>` and its kin: what a value becomes.
    pub fn subst(&self, attribute: &str, occasion: Occasion, set: &[String]) -> Option<&str> {
        let pattern = match occasion {
            Occasion::New | Occasion::Duplicate => "Subst",
            Occasion::Reply | Occasion::FirstReply => "Subst on reply",
            Occasion::Edit => "Subst on edit",
        };
        self.under(&format!("{pattern} {attribute}"), set)
    }

    /// `Remove on reply`: what an answer does not take over.
    pub fn is_removed_on_reply(&self, attribute: &str) -> bool {
        self.list("Remove on reply").is_some_and(|removed| has(&removed, attribute))
    }

    /// `Display <attribute>`: how a value is shown.
    pub fn display(&self, attribute: &str) -> Option<&str> {
        self.get(&format!("Display {attribute}"))
    }

    /// `Tooltip <attribute>`.
    pub fn tooltip(&self, attribute: &str, set: &[String]) -> &str {
        self.under(&format!("Tooltip {attribute}"), set).unwrap_or_default()
    }

    /// `Format <attribute>`: flags, a class for its cell, a class for its field, the field's width, rows.
    pub fn format(&self, attribute: &str) -> Format {
        let parts = self.list(&format!("Format {attribute}")).unwrap_or_default();
        let part = |at: usize| parts.get(at).map(String::as_str).unwrap_or_default();
        let class = |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        Format {
            flags: part(0).parse().unwrap_or(0),
            class: class(part(1)),
            field_class: class(part(2)),
            width: part(3).parse().ok().filter(|width| (1..=500).contains(width)),
            rows: part(4).parse().ok().filter(|rows| (1..=100).contains(rows)),
        }
    }
}

/// How an attribute is laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// 1: on the same line as the one before. 2: options in one line. 4 and more: see ELOG.
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

/// Options without the conditions they set.
fn plain_options(value: &str) -> Vec<String> {
    list(value).iter().map(|option| conditional(option).map_or(option.as_str(), |(plain, _)| plain).to_owned()).collect()
}

/// `Routine{a}` is an option and the conditions it sets.
fn conditional(option: &str) -> Option<(&str, &str)> {
    let (plain, conditions) = option.strip_suffix('}')?.split_once('{')?;
    Some((plain.trim(), conditions))
}
