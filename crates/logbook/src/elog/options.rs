//! Which of ELOG's options mean something here. The rest is kept with the book, for export and for what speaks ELOG's dialect, and is
//! told as kept without effect.

use super::{
    config::list,
    web::{hosts::names, settings::days},
};

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It decides what the book is, where its files are, or what ELOG's pages show and allow.
    Honoured,
    /// It is one of ELOG's, and is kept without effect.
    Kept,
    /// ELOG does not have it either.
    Unknown,
}

/// Options that decide what a book is, or where its files are; `*` stands for an attribute, a group, a command or a value.
const BOOK: [&str; 14] = [
    "Attributes",
    "Options *",
    "MOptions *",
    "ROptions *",
    "Type *",
    "Extendable Options",
    "Required Attributes",
    "Locked Attributes",
    "Comment",
    "Comment *",
    "Top group *",
    "Subdir",
    "Data dir",
    "Logbook dir",
];

/// Options that decide how ELOG's pages are, and who may what there ([`super::web::settings`]).
const PAGES: [&str; 99] = [
    "Admin restrict edit time",
    "Admin user",
    "All display limit",
    "Allow *",
    "Allow HTML",
    "Allowed encoding",
    "Append on edit",
    "Append on reply",
    "Attachment comment",
    "Bottom text",
    "Case sensitive search",
    "Cell Style *",
    "CSS",
    "Date format",
    "Date format *",
    "Default encoding",
    "Deny *",
    "Display *",
    "Display mode",
    "Edit Page Title",
    "Enable attachments",
    "Entries per page",
    "Expand default",
    "Fixed Attributes Edit",
    "Fixed Attributes Reply",
    "Format *",
    "Guest display",
    "Guest list display",
    "Guest List Menu commands",
    "Guest Menu commands",
    "Help URL",
    "Hidden",
    "Hosts allow",
    "Hosts deny",
    "ID display",
    "Link display",
    "List after submit",
    "List display",
    "List Menu commands",
    "List Page Title",
    "Logbook Tabs",
    "Login user",
    "Main Tab",
    "Main Tab URL",
    "Max content length",
    "Menu commands",
    "Message comment",
    "Message height",
    "Message width",
    "Page Title",
    "Prepend on edit",
    "Prepend on reply",
    "Preset *",
    "Preset on duplicate *",
    "Preset on edit *",
    "Preset on first reply *",
    "Preset on reply *",
    "Preset text",
    "Quick filter",
    "Quote on reply",
    "Refresh",
    "Remove on reply",
    "Reply comment",
    "Reply string",
    "Restrict edit",
    "Restrict edit time",
    "Resubmit default",
    "Reverse sort",
    "RSS Entries",
    "RSS Title",
    "Search all logbooks",
    "Search slave",
    "Self register",
    "Show attachments",
    "Show attributes",
    "Show Attributes Edit",
    "Show last default",
    "Show text",
    "Show top groups",
    "Sort Attributes",
    "Start page",
    "Subst *",
    "Subst on edit *",
    "Subst on reply *",
    "Summary line length",
    "Summary lines",
    "Suppress default",
    "Theme",
    "Thread display",
    "Thumbnail size",
    "Time format",
    "Time format *",
    "Title image",
    "Title image URL",
    "Tooltip *",
    "Top text",
    "URL",
    "Use Lock",
    "Welcome Title",
];

/// Of those, the ones that can have a condition: `{a}Preset Subject`.
const CONDITIONAL: [&str; 17] = [
    "Options *",
    "MOptions *",
    "ROptions *",
    "Extendable Options",
    "Required Attributes",
    "Locked Attributes",
    "Comment *",
    "Preset *",
    "Preset on duplicate *",
    "Preset on edit *",
    "Preset on first reply *",
    "Preset on reply *",
    "Show Attributes Edit",
    "Subst *",
    "Subst on edit *",
    "Subst on reply *",
    "Tooltip *",
];

/// Options of ELOG 3.1.5 whose names stand for themselves.
const PLAIN: &str = include_str!("options.txt");

/// Beginnings of options whose names go on with an attribute, a command or a value.
const PATTERNS: [&str; 27] = [
    "Allow",
    "Change",
    "Date format",
    "Deny",
    "ELOG",
    "Format",
    "Icon comment",
    "List Change",
    "Preset",
    "Preset on duplicate",
    "Preset on edit",
    "Preset on first reply",
    "Preset on reply",
    "Subst",
    "Subst on edit",
    "Subst on reply",
    "Time format",
    "Tooltip",
    "Display",
    "Email",
    "Cell Style",
    "Group",
    "Style",
    "Icon",
    "Theme",
    "Thumbnail",
    "Use Email",
];

/// What becomes of this option. One with a condition is honoured where conditions are.
pub fn effect(name: &str) -> Effect {
    let condition = name.starts_with('{');
    let bare = name.split_once('}').filter(|_| condition).map_or(name, |(_, name)| name);
    let words: Vec<&str> = bare.split_whitespace().collect();
    // An option of its own, as `Allow branching`, is not what the pattern `Allow *` stands for.
    let own = |list: &[&str]| list.iter().any(|known| fits(known, &words) && !known.ends_with('*'));
    if PLAIN.lines().any(|known| fits(known, &words)) && !own(&BOOK) && !own(&PAGES) {
        return Effect::Kept;
    }
    let mut honoured: Box<dyn Iterator<Item = &&str>> =
        if condition { Box::new(CONDITIONAL.iter()) } else { Box::new(BOOK.iter().chain(&PAGES)) };
    if honoured.any(|pattern| fits(pattern, &words)) {
        return Effect::Honoured;
    }
    let kept = PLAIN.lines().any(|pattern| fits(pattern, &words))
        || PATTERNS.iter().any(|pattern| fits(&format!("{pattern} *"), &words))
        || BOOK.iter().chain(&PAGES).any(|pattern| fits(pattern, &words));
    if kept { Effect::Kept } else { Effect::Unknown }
}

/// Options whose value is a number, and `Show last default`, which can be a name too.
const NUMBERS: [&str; 18] = [
    "Admin restrict edit time",
    "All display limit",
    "Allowed encoding",
    "Default encoding",
    "Entries per page",
    "Expand default",
    "Max content length",
    "Message height",
    "Message width",
    "Refresh",
    "Resubmit default",
    "Restrict edit time",
    "RSS Entries",
    "Search all logbooks",
    "Show last default",
    "Summary line length",
    "Summary lines",
    "Suppress default",
];
/// Options that are on or off.
const FLAGS: [&str; 14] = [
    "Allow HTML",
    "Case sensitive search",
    "Enable attachments",
    "Hidden",
    "List after submit",
    "Logbook Tabs",
    "Quote on reply",
    "Restrict edit",
    "Reverse sort",
    "Search slave",
    "Show attachments",
    "Show text",
    "Show top groups",
    "Use Lock",
];

/// What is odd about an option's value, if it is one that has to be a number and is none.
pub fn unreadable(name: &str, value: &str) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_of = |list: &[&str]| list.iter().any(|known| fits(known, &words));
    if fits("Hosts allow", &words) || fits("Hosts deny", &words) {
        let list = list(value);
        let names = names(&list);
        let effect = if fits("Hosts deny", &words) { "keeps nobody out" } else { "lets nobody in" };
        let told = || format!("'{name}' has names of hosts ({}), which are not looked up: a name {effect}", names.join(", "));
        return (!names.is_empty()).then(told);
    }
    let last = fits("Show last default", &words);
    if value.is_empty() || leading_number(value).is_some() || last && days(value).is_some() {
        return None;
    }
    match (is_of(&FLAGS), is_of(&NUMBERS)) {
        (true, _) => Some(format!("'{name} = {value}' is not 0 or 1: taken as 0, as ELOG does")),
        (_, true) if last => {
            Some(format!("'{name} = {value}' is not a number of days, nor Day, Week, Month, Year or All: without effect"))
        }
        (_, true) => Some(format!("'{name} = {value}' is not a number: without effect")),
        _ => None,
    }
}

/// The number that a value begins with, as C reads it: `20 entries` is 20.
pub fn leading_number(value: &str) -> Option<&str> {
    let value = value.trim();
    let sign = usize::from(value.starts_with(['-', '+']));
    let digits = value[sign..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &value[..sign + digits])
}

/// Whether these words are a name of this pattern, whose `*` stands for one or more.
fn fits(pattern: &str, name: &[&str]) -> bool {
    let pattern: Vec<&str> = pattern.split_whitespace().collect();
    let open = pattern.last() == Some(&"*");
    let fixed = pattern.len() - usize::from(open);
    let fits = if open { name.len() > fixed } else { name.len() == fixed };
    fits && name.iter().zip(&pattern[..fixed]).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// The options that ELOG has and that mean nothing here, in the order of their names.
pub fn without_effect() -> Vec<String> {
    let plain = PLAIN.lines().map(str::to_owned).filter(|name| effect(name) == Effect::Kept);
    let patterns = PATTERNS.iter().map(|pattern| format!("{pattern} *")).filter(|name| effect(name) == Effect::Kept);
    let mut names: Vec<String> = plain.chain(patterns).collect();
    names.sort_by_key(|name| name.to_lowercase());
    names
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn values_that_are_no_numbers_are_told() {
        for (name, value, told) in [
            ("Entries per page", "20 entries", ""),
            ("entries  per page", "many", "without effect"),
            ("Reverse sort", "yes", "taken as 0"),
            ("Reverse sort", "1", ""),
            ("Show last default", "Month", ""),
            ("Show last default", "-- all --", ""),
            ("Show last default", "last month", "number of days"),
            ("Show last default", "31", ""),
            ("Theme", "dark", ""),
            ("Hosts allow", "10., localhost, ALL", ""),
            ("hosts deny", "10., .evil.test", "(.evil.test), which are not looked up: a name keeps nobody out"),
        ] {
            let said = unreadable(name, value).unwrap_or_default();
            assert!(said.contains(told) && said.is_empty() == told.is_empty(), "{name} = {value}: {said}");
        }
    }

    #[test]
    fn options_are_known_by_name_and_pattern() {
        for (name, expected) in [
            ("attributes", Effect::Honoured),
            ("Options  Run number", Effect::Honoured),
            ("Options", Effect::Unknown),
            ("{a}Options Type", Effect::Honoured),
            ("{a,b&c} preset on reply Subject", Effect::Honoured),
            ("{a}Entries per page", Effect::Kept),
            ("Show last default", Effect::Honoured),
            ("Preset on first reply Subject", Effect::Honoured),
            ("Cell Style Type Problem", Effect::Honoured),
            ("Quick filter", Effect::Honoured),
            ("Search slave", Effect::Honoured),
            ("Port", Effect::Kept),
            ("Allow clone", Effect::Kept),
            ("Allow Copy to", Effect::Honoured),
            ("Email Type Problem", Effect::Kept),
            ("Coffee", Effect::Unknown),
        ] {
            assert_eq!(effect(name), expected, "{name}");
        }
    }

    /// The code that asks for options, without its tests.
    fn sources() -> String {
        let code = include_str!("web/settings.rs").split("#[cfg(test)]").next().unwrap();
        // The names of spans of time are values.
        let code = code
            .split_once("pub const SPANS")
            .map_or(code.to_owned(), |(before, rest)| before.to_owned() + rest.split_once(";\n").unwrap_or_default().1);
        code + include_str!("web/settings/attributes.rs") + include_str!("web/settings/forms.rs")
    }

    /// The names that the code asks for, with `*` for what comes in at run time.
    fn asked_for() -> Vec<String> {
        let code = &sources();
        let call = Regex::new(r#"(?:"|\()([A-Z][A-Za-z ]+?)(?: \{[^"]*)?""#).unwrap();
        let patterned = Regex::new(r#""([A-Z][A-Za-z ]+?) \{"#).unwrap();
        let mut names: Vec<String> = call.captures_iter(code).map(|found| found[1].to_owned()).collect();
        names.extend(patterned.captures_iter(code).map(|found| format!("{} *", &found[1])));
        names
    }

    #[test]
    fn what_is_honoured_is_asked_for_and_the_other_way_round() {
        let asked = asked_for();
        let source = sources().to_lowercase();
        for name in PAGES {
            assert!(
                source.contains(&format!("\"{}", name.trim_end_matches(" *").to_lowercase())),
                "{name} is honoured by nothing"
            );
        }
        for name in asked {
            // Words that are no options: the columns of a list, and what goes on with an attribute.
            let known = ["ID", "Date"].contains(&name.as_str())
                || !matches!(effect(&name), Effect::Kept)
                || effect(&format!("{name} *")) == Effect::Honoured;
            assert!(known, "{name} is asked for and said to be without effect");
        }
        for name in CONDITIONAL {
            assert!(BOOK.contains(&name) || PAGES.contains(&name), "{name}");
        }
    }

    #[test]
    fn the_page_about_elog_lists_what_has_no_effect_and_names_the_rest() {
        let page = include_str!("../../../../spec/book-elog.md");
        let (_, after) = page.split_once("Kept without effect: ").expect("the page has the list");
        let (list, _) = after.split_once(".\n").expect("the list ends");
        let listed: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('`')).collect();
        assert_eq!(
            listed,
            without_effect(),
            "{}",
            without_effect().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        );
        let lower = page.to_lowercase();
        for name in BOOK.iter().chain(&PAGES) {
            assert!(lower.contains(&format!("`{}", name.trim_end_matches(" *").to_lowercase())), "{name} is not on the page");
        }
    }
}
