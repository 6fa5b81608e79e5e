//! Substitutions of `$name` in presets, titles and displays: `$long_name`, `$date`, `$Subject`.
//!
//! ELOG's `$shell(...)` executes text of a configuration or an entry; here it is replaced by nothing. An option that needs it
//! is therefore not applied where that would remove what people wrote ([`needs_shell`](tampu_logbook::book::elog_options::needs_shell)).

use tampu_logbook::{
    book::{AttributeKind, Book},
    entry::Entry,
    people::Caller,
};
use tampu_types::Time;

use crate::pages::{clock::Zone, settings::BookSettings};

/// Names, and their replacements.
#[derive(Debug, Clone, Default)]
pub struct Substitutions(Vec<(String, String)>);

impl Substitutions {
    /// Returns the names that are always defined.
    pub fn new(caller: &Caller, book: &Book, settings: &BookSettings, zone: &Zone, now: Time) -> Substitutions {
        let mut names = Substitutions::default();
        let full_name = if caller.full_name.is_empty() { &caller.login } else { &caller.full_name };
        names.set("short_name", &caller.login);
        names.set("long_name", full_name);
        names.set("user_email", &caller.email);
        names.set("remote_host", &caller.from.to_string());
        names.set("host", settings.url().unwrap_or_default());
        names.set("logbook", &book.name);
        names.set("version", env!("CARGO_PKG_VERSION"));
        names.set("date", &zone.write(now, 0, settings.time_format(None)));
        names.set("utcdate", &Zone::OfEntry.write(now, 0, settings.time_format(None)));
        names.set("unixtime", &now.0.div_euclid(1_000_000_000).to_string());
        names
    }

    /// Adds the names of an entry.
    pub fn with_entry(mut self, entry: &Entry, book: &Book, settings: &BookSettings, zone: &Zone) -> Substitutions {
        self.set("message id", &entry.at.id.to_string());
        self.set("entry time", &zone.write(entry.date, entry.zone, settings.time_format(None)));
        self.set("entry date", &zone.write(entry.date, entry.zone, settings.time_format(None)));
        self.set("text", &entry.content.text);
        for attribute in &book.attributes {
            self.set(&attribute.name, "");
        }
        for said in &entry.content.attributes {
            let kind = book.attribute(&said.name).map(|def| def.kind).unwrap_or_default();
            self.set(&said.name, &shown_value(kind, &said.name, &said.joined(), settings, zone, entry.zone));
        }
        self
    }

    /// Sets the replacement of a name.
    pub fn set(&mut self, name: &str, value: &str) {
        let name = name.to_lowercase();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name, value.to_owned())),
        }
    }

    /// Replaces every `$name` of a text, the longest name first; unknown names stay.
    pub fn expand(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(inner) = after.strip_prefix("shell(") {
                rest = inner.split_once(')').map_or("", |(_, rest)| rest);
                continue;
            }
            let fits = |name: &String| {
                after.get(..name.len()).is_some_and(|found| found.to_lowercase() == *name || found.eq_ignore_ascii_case(name))
            };
            match self.0.iter().filter(|(name, _)| fits(name)).max_by_key(|(name, _)| name.len()) {
                Some((name, value)) => {
                    out.push_str(value);
                    rest = &after[name.len()..];
                }
                None => {
                    out.push('$');
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// Returns the displayed form of a value: times in the book's formats.
pub fn shown_value(kind: AttributeKind, name: &str, value: &str, settings: &BookSettings, zone: &Zone, own: i16) -> String {
    let format = match kind {
        AttributeKind::Date => settings.date_format(Some(name)),
        AttributeKind::DateTime => settings.time_format(Some(name)),
        _ => return value.to_owned(),
    };
    match value.trim().parse::<i64>() {
        Ok(seconds) => zone.write(Time::from_unix(seconds, 0), own, format),
        Err(_) => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_counts() {
        let mut names = Substitutions::default();
        for (name, value) in [("Run", "7"), ("Run number", "80123"), ("date", "today")] {
            names.set(name, value);
        }
        for (text, expected) in [
            ("$run number, $RUN, $Runs", "80123, 7, 7s"),
            ("costs 5$ $unknown $", "costs 5$ $unknown $"),
            ("a$shell(rm -rf /)b $date", "ab today"),
            ("$shell(never ends", ""),
            ("$dat€", "$dat€"),
        ] {
            assert_eq!(names.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_put_in_is_not_read_again() {
        let mut names = Substitutions::default();
        names.set("a", "$b $shell(x)");
        names.set("b", "never");
        assert_eq!(names.expand("$a"), "$b $shell(x)");
    }
}
