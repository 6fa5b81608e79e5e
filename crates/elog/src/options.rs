//! The effect of ELOG's options. An option without an effect is kept with its book, and the import reports it. The
//! export writes it, and programs can read it.

use tampu_logbook::{
    book::elog_options::{list, needs_shell},
    people::host_list::names,
};

use crate::option_values::{days, leading_number};

/// The effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionEffect {
    /// It affects the book, the place of its files, or the content and permissions of ELOG's pages.
    Honoured,
    /// It is an option of ELOG, and is kept without effect.
    Kept,
    /// ELOG does not have this option.
    Unknown,
}

/// Options that define a book or its files; `*` is an attribute, a group, a command or a value.
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

/// Options of ELOG's pages and permissions ([`crate::pages::settings`]).
const PAGES: [&str; 103] = [
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
    "charset",
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
    "Last default",
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
    "Mode commands",
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
    "Sort Attribute Options *",
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

/// Options that decide who may log in and read ([`tampu_logbook::people::login_policy`]), beside those of the pages. ELOG before 2.6 had the last four.
const ACCESS: [&str; 6] =
    ["Authentication", "Password file", "Admin password", "Delete password", "Read password", "Write password"];

/// Those options of pages that can have a condition: `{a}Preset Subject`.
const CONDITIONAL: [&str; 18] = [
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
    "Preset text",
    "Show Attributes Edit",
    "Subst *",
    "Subst on edit *",
    "Subst on reply *",
    "Tooltip *",
];

/// Options of ELOG 3.1.5 with complete names.
const PLAIN: &str = include_str!("options.txt");

/// Options whose names continue with an attribute, a command or a value.
const PATTERNS: [&str; 28] = [
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
    "Sort Attribute Options",
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

/// Returns the effect of an option. An option with a condition is honoured only where conditions are.
pub fn effect(name: &str) -> OptionEffect {
    let condition = name.starts_with('{');
    let bare = name.split_once('}').filter(|_| condition).map_or(name, |(_, name)| name);
    let words: Vec<&str> = bare.split_whitespace().collect();
    // An option with its own name, such as `Allow branching`, does not match the pattern `Allow *`.
    let own = |list: &[&str]| list.iter().any(|known| fits(known, &words) && !known.ends_with('*'));
    if PLAIN.lines().any(|known| fits(known, &words)) && !own(&BOOK) && !own(&PAGES) && !own(&ACCESS) {
        return OptionEffect::Kept;
    }
    let mut honoured: Box<dyn Iterator<Item = &&str>> =
        if condition { Box::new(CONDITIONAL.iter()) } else { Box::new(BOOK.iter().chain(&PAGES).chain(&ACCESS)) };
    if honoured.any(|pattern| fits(pattern, &words)) {
        return OptionEffect::Honoured;
    }
    let kept = PLAIN.lines().any(|pattern| fits(pattern, &words))
        || PATTERNS.iter().any(|pattern| fits(&format!("{pattern} *"), &words))
        || BOOK.iter().chain(&PAGES).any(|pattern| fits(pattern, &words));
    if kept { OptionEffect::Kept } else { OptionEffect::Unknown }
}

/// Options whose value is a number; of `Last default` and `Show last default` it can also be a name.
const NUMBERS: [&str; 19] = [
    "Admin restrict edit time",
    "All display limit",
    "Allowed encoding",
    "Default encoding",
    "Entries per page",
    "Expand default",
    "Last default",
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
const FLAGS: [&str; 15] = [
    "Allow HTML",
    "Case sensitive search",
    "Enable attachments",
    "Hidden",
    "List after submit",
    "Logbook Tabs",
    "Mode commands",
    "Quote on reply",
    "Restrict edit",
    "Reverse sort",
    "Search slave",
    "Show attachments",
    "Show text",
    "Show top groups",
    "Use Lock",
];

/// Returns the fault of an option's value, if it has to be a number and is not.
pub fn unreadable(name: &str, value: &str) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_of = |list: &[&str]| list.iter().any(|known| fits(known, &words));
    if fits("Hosts allow", &words) || fits("Hosts deny", &words) {
        let list = list(value);
        let names = names(&list);
        let effect = if fits("Hosts deny", &words) { "excludes no host" } else { "admits no host" };
        let fault = || format!("'{name}' has names of hosts ({}), which are not looked up: a name {effect}", names.join(", "));
        return (!names.is_empty()).then(fault);
    }
    if needs_shell(value)
        && ["Subst", "Preset"].iter().any(|option| words.first().is_some_and(|word| word.eq_ignore_ascii_case(option)))
    {
        return Some(format!("'{name}' has $shell(...), which is not run: the option is without effect, and typed values stay"));
    }
    let last = fits("Show last default", &words) || fits("Last default", &words);
    if value.is_empty() || leading_number(value).is_some() || last && days(value).is_some() {
        return None;
    }
    match (is_of(&FLAGS), is_of(&NUMBERS)) {
        (true, _) => Some(format!("'{name} = {value}' is not 0 or 1: read as 0, as ELOG does")),
        (_, true) if last => {
            Some(format!("'{name} = {value}' is not a number of days, nor Day, Week, Month, Year or All: without effect"))
        }
        (_, true) => Some(format!("'{name} = {value}' is not a number: without effect")),
        _ => None,
    }
}

/// Returns true if these words match a pattern, whose `*` stands for one or more words.
fn fits(pattern: &str, name: &[&str]) -> bool {
    let pattern: Vec<&str> = pattern.split_whitespace().collect();
    let open = pattern.last() == Some(&"*");
    let fixed = pattern.len() - usize::from(open);
    let fits = if open { name.len() > fixed } else { name.len() == fixed };
    fits && name.iter().zip(&pattern[..fixed]).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// Returns the options of ELOG that have no effect here, sorted by name.
pub fn without_effect() -> Vec<String> {
    let plain = PLAIN.lines().map(str::to_owned).filter(|name| effect(name) == OptionEffect::Kept);
    let patterns = PATTERNS.iter().map(|pattern| format!("{pattern} *")).filter(|name| effect(name) == OptionEffect::Kept);
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
        for (name, value, fault) in [
            ("Entries per page", "20 entries", ""),
            ("entries  per page", "many", "without effect"),
            ("Reverse sort", "yes", "read as 0"),
            ("Reverse sort", "1", ""),
            ("Show last default", "Month", ""),
            ("Show last default", "-- all --", ""),
            ("Show last default", "last month", "number of days"),
            ("Show last default", "31", ""),
            ("Theme", "dark", ""),
            ("Hosts allow", "10., localhost, ALL", ""),
            ("hosts deny", "10., .evil.test", "(.evil.test), which are not looked up: a name excludes no host"),
        ] {
            let found = unreadable(name, value).unwrap_or_default();
            assert!(found.contains(fault) && found.is_empty() == fault.is_empty(), "{name} = {value}: {found}");
        }
    }

    #[test]
    fn options_are_known_by_name_and_pattern() {
        for (name, expected) in [
            ("attributes", OptionEffect::Honoured),
            ("Options  Run number", OptionEffect::Honoured),
            ("Options", OptionEffect::Unknown),
            ("{a}Options Type", OptionEffect::Honoured),
            ("{a,b&c} preset on reply Subject", OptionEffect::Honoured),
            ("{a}Entries per page", OptionEffect::Kept),
            ("Show last default", OptionEffect::Honoured),
            ("Preset on first reply Subject", OptionEffect::Honoured),
            ("Cell Style Type Problem", OptionEffect::Honoured),
            ("Quick filter", OptionEffect::Honoured),
            ("Search slave", OptionEffect::Honoured),
            ("Port", OptionEffect::Kept),
            ("password file", OptionEffect::Honoured),
            ("Read password", OptionEffect::Honoured),
            ("Allow clone", OptionEffect::Kept),
            ("Allow Copy to", OptionEffect::Honoured),
            ("Email Type Problem", OptionEffect::Kept),
            ("Coffee", OptionEffect::Unknown),
        ] {
            assert_eq!(effect(name), expected, "{name}");
        }
    }

    /// Returns the code that reads options, without its tests.
    fn sources() -> String {
        let code = include_str!("pages/settings.rs").split("#[cfg(test)]").next().unwrap();
        code.to_owned() + include_str!("pages/settings/attributes.rs") + include_str!("pages/settings/forms.rs")
    }

    /// Returns the names that the code reads, with `*` for a part added at run time.
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
        let read = asked_for();
        let source = sources().to_lowercase();
        for name in PAGES {
            assert!(
                source.contains(&format!("\"{}", name.trim_end_matches(" *").to_lowercase())),
                "{name} is honoured by nothing"
            );
        }
        for name in read {
            // These words are no options: columns of a list, and beginnings of names that an attribute completes.
            let known = ["ID", "Date"].contains(&name.as_str())
                || !matches!(effect(&name), OptionEffect::Kept)
                || effect(&format!("{name} *")) == OptionEffect::Honoured;
            assert!(known, "{name} is asked for and said to be without effect");
        }
        for name in CONDITIONAL {
            assert!(BOOK.contains(&name) || PAGES.contains(&name), "{name}");
        }
    }

    #[test]
    fn the_page_about_elog_lists_what_has_no_effect_and_names_the_rest() {
        let page = include_str!("../../../spec/book-elog.md");
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
