//! Options of the ELOG configuration that a book was imported with: their names and lists.
//!
//! `tampu-elog` gives them their meaning. This crate reads only those that decide about access
//! ([`crate::people::login_policy`], [`crate::people::elog_rules`]) and about the ids of copies.

use super::Book;

/// Returns the value of an option that holds without a condition; `None` if it is missing or empty.
pub fn option<'a>(book: &'a Book, name: &str) -> Option<&'a str> {
    let name = key(name);
    let found = book.elog.iter().find(|(known, _)| key(known) == name);
    found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
}

/// Options of a logbook that decide about the users of the site. Only administrators of the site set them.
pub const OF_SITE: [&str; 4] = ["Self register", "Allow password change", "Forgot password link", "Password file"];

/// Returns the first option about the users of the site in which two configurations differ, also under a condition.
pub fn changed_of_site(before: &Book, after: &Book) -> Option<&'static str> {
    OF_SITE.into_iter().find(|option| {
        let of = |book: &Book| -> Vec<(String, String)> {
            book.elog
                .iter()
                .filter(|(name, _)| bare(name) == key(option))
                .map(|(name, value)| (key(name), value.clone()))
                .collect()
        };
        of(before) != of(after)
    })
}

/// `Preserve IDs`: returns true if copies of the book's entries keep their ids where they are free.
pub fn preserves_ids(book: &Book) -> bool {
    option(book, "Preserve IDs").is_some_and(is_on)
}

/// Returns true if the value of an option needs the output of a program, which is not run here.
pub fn needs_shell(pattern: &str) -> bool {
    pattern.contains("$shell(")
}

/// Returns true if the configuration sets an attribute when an entry is edited, under whatever condition.
pub fn is_set_on_edit(book: &Book, attribute: &str) -> bool {
    let options = ["Subst on edit", "Preset on edit"].map(|option| key(&format!("{option} {attribute}")));
    // A program is never run, so such an option sets nothing.
    book.elog.iter().any(|(name, value)| options.contains(&bare(name)) && !needs_shell(value))
}

/// Returns the name of an option without its condition, as names are compared.
fn bare(name: &str) -> String {
    key(name.split_once('}').filter(|_| name.starts_with('{')).map_or(name, |(_, bare)| bare))
}

/// Returns the form in which names of options are compared: lower case, with single blanks.
pub fn key(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&word.to_lowercase());
    }
    out
}

/// Splits a list at its commas. Commas between quotation marks stay, and `""` between them is a quotation mark.
pub fn list(value: &str) -> Vec<String> {
    let (mut items, mut item, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                item.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            c => item.push(c),
        }
    }
    items.push(item);
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Returns the number that a value begins with, as C reads it: `20 entries` is 20.
pub fn leading_number(value: &str) -> Option<&str> {
    let value = value.trim();
    let sign = usize::from(value.starts_with(['-', '+']));
    let digits = value[sign..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &value[..sign + digits])
}

/// Returns true if an option is on: like ELOG, reads a value that is not a number as 0.
pub fn is_on(value: &str) -> bool {
    leading_number(value).is_some_and(|number| !number.trim_matches(['0', '-', '+']).is_empty())
}
