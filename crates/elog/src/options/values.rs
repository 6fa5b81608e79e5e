//! Values of options: those that Tampu cannot use, and the settings that take over others.

use tampu_logbook::{
    book::elog_options::{list, needs_shell},
    people::host_list::names,
};

use crate::{
    option_values::{days, leading_number, quoted},
    options::fits,
};

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
        let effect = match fits("Hosts deny", &words) {
            true => "shuts out all hosts but this one and the addresses of 'Hosts allow', until addresses replace it",
            false => "admits no host",
        };
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

/// Returns the setting of `[mail]` that takes over the value of an option, as a line of TOML. A password is not repeated.
pub fn mail_setting(name: &str, value: &str) -> Option<String> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let value = value.trim();
    match () {
        () if value.is_empty() => None,
        () if fits("SMTP host", &words) => Some(format!("write host = {}", quoted(value))),
        () if fits("SMTP port", &words) => value.parse::<u16>().ok().map(|port| format!("write port = {port}")),
        () if fits("SMTP username", &words) => Some(format!("write user = {}", quoted(value))),
        () if fits("SMTP password", &words) => {
            Some("write the password into a file of your own, and the path of the file there".to_owned())
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_mail_have_their_values() {
        for (name, value, expected) in [
            ("SMTP host", "mail.example.org", "write host = \"mail.example.org\""),
            ("smtp  port", "587", "write port = 587"),
            ("SMTP port", "many", ""),
            ("SMTP username", "a\"b", "write user = \"a\\\"b\""),
            ("SMTP host", "", ""),
            ("Theme", "dark", ""),
        ] {
            assert_eq!(mail_setting(name, value).unwrap_or_default(), expected, "{name} = {value}");
        }
        assert!(mail_setting("SMTP password", "secret1").is_some_and(|text| !text.contains("secret1")));
    }

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
            ("hosts deny", "10., .evil.test", "(.evil.test), which are not looked up: a name shuts out all hosts but this one"),
        ] {
            let found = unreadable(name, value).unwrap_or_default();
            assert!(found.contains(fault) && found.is_empty() == fault.is_empty(), "{name} = {value}: {found}");
        }
    }
}
