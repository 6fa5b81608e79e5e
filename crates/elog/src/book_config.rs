//! A logbook's configuration as text: the options of its section in `elogd.cfg`.
//!
//! The text has what defines the attributes, and the options that the logbook has from ELOG. What `elogd.cfg` cannot say
//! (tags, computed and multi-line attributes, the group) stays when the text is changed. Passwords are not in the text,
//! and stay as well.

use similar::{ChangeTag, TextDiff};
use tampu_logbook::book::{
    AttributeKind, Book, Invalid,
    change::{BookChange, ConfigChange},
    elog_options::key,
};

use crate::{
    config,
    export::defined,
    options::{OptionVerdict, check},
};

/// The value that stands for a password.
pub const LEFT_OUT: &str = "(left out)";
/// Bytes of a text.
pub const MAX_TEXT: usize = 1 << 20;
/// Lists of attributes that a logbook without such attributes does not have.
const LISTS: [&str; 3] = ["required attributes", "locked attributes", "extendable options"];

/// A reason to reject a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The line; 0 stands for the whole text.
    pub line: usize,
    pub why: String,
}

impl std::fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

/// A line of the difference between two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLine<'a> {
    /// `+` for a new line, `-` for one that is gone, a blank for one of both texts.
    pub mark: char,
    pub text: &'a str,
}

/// Returns true if the value of an option is a password.
fn is_secret(name: &str) -> bool {
    let name = key(name);
    name.contains("password") && !matches!(name.as_str(), "password file" | "forgot password link" | "allow password change")
        || name.contains("passphrase")
        || name.contains("mirror user")
}

/// Returns the configuration of a book as text, without passwords.
pub fn text(book: &Book) -> String {
    let mut own = defined(book);
    let mut lines = Vec::new();
    for (name, value) in &book.elog {
        let lower = key(name);
        match own.iter().position(|(known, _)| key(known) == lower) {
            Some(at) => lines.push(own.remove(at)),
            None if LISTS.contains(&lower.as_str()) || is_replaced(book, &lower) => {}
            None => lines.push((name.clone(), value.clone())),
        }
    }
    own.append(&mut lines);
    let mut out = String::new();
    for (name, value) in own {
        let value = if is_secret(&name) { LEFT_OUT } else { value.as_str() };
        let line = format!("{name} = {value}");
        out.extend(line.trim_end().chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }));
        out.push('\n');
    }
    out
}

/// Returns true for an option that gave an attribute other values than the attribute has.
fn is_replaced(book: &Book, name: &str) -> bool {
    let of = |kind: &str| name.strip_prefix(kind).is_some_and(|attribute| book.attribute(attribute).is_some());
    ["options ", "moptions ", "roptions "].into_iter().any(of)
}

/// Reads a text as the new configuration of a book. Every fault of the text is reported with its line. An option that
/// ELOG does not have is a fault, unless the book has it already.
pub fn read(text: &str, current: &Book) -> Result<Book, Vec<ConfigFault>> {
    if text.len() > MAX_TEXT {
        return Err(vec![ConfigFault { line: 0, why: format!("the text has more than {MAX_TEXT} bytes") }]);
    }
    let mut faults = Vec::new();
    let mut headed = false;
    let mut lines = String::from("[logbook]\n");
    for (at, line) in text.lines().enumerate() {
        let mut kept = line;
        if let Some(rest) = line.strip_prefix('[') {
            let own = rest.split_once(']').is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case(&current.name));
            if headed || !own || text.lines().take(at).any(|line| line.contains('=')) {
                let why = format!("a section begins here; the text is the options of '{}' alone", current.name);
                faults.push(ConfigFault { line: at + 1, why });
            }
            headed = true;
            kept = "";
        }
        lines.push_str(kept);
        lines.push('\n');
    }
    let checked = check(lines.as_bytes());
    faults.extend(checked.faults.into_iter().map(|(line, why)| ConfigFault { line: line - 1, why }));
    let parsed = config::parse(lines.as_bytes());
    let is_known = |name: &str| current.elog.iter().any(|(known, _)| key(known) == key(name));
    for (found, statement) in checked.options.iter().zip(&parsed.statements) {
        let line = found.line - 1;
        if statement.again {
            faults.push(ConfigFault { line, why: format!("'{}' stands in an earlier line, too", found.option) });
        } else if found.verdict == OptionVerdict::Unknown && !is_known(&found.option) {
            let remark = if found.remark.is_empty() { String::new() } else { format!("; {}", found.remark) };
            faults.push(ConfigFault { line, why: format!("ELOG has no option '{}'{remark}", found.option) });
        }
    }
    let Some(mut book) = parsed.logbooks().first().map(config::ConfiguredLogbook::book) else {
        faults.push(ConfigFault { line: 0, why: "the text has no options".to_owned() });
        return Err(faults);
    };
    book.name.clone_from(&current.name);
    book.group.clone_from(&current.group);
    for (name, value) in book.elog.iter_mut().filter(|(name, value)| value == LEFT_OUT && is_secret(name)) {
        let own = current.elog.iter().find(|(known, _)| key(known) == key(name));
        *value = own.map(|(_, value)| value.clone()).unwrap_or_default();
    }
    for attribute in &mut book.attributes {
        let Some(own) = current.attribute(&attribute.name) else { continue };
        attribute.computed.clone_from(&own.computed);
        attribute.multi_line = own.multi_line;
        if own.kind == AttributeKind::Tags && attribute.kind == AttributeKind::Multiple {
            attribute.kind = AttributeKind::Tags;
        }
    }
    if let Err(why) = book.check() {
        faults.push(ConfigFault { line: line_of(&parsed, &why), why: why.to_string() });
    }
    faults.sort_by_key(|fault| fault.line);
    faults.dedup();
    if faults.is_empty() { Ok(book) } else { Err(faults) }
}

/// Returns the line of the attributes, where their names are at fault.
fn line_of(parsed: &config::ElogConfig, why: &Invalid) -> usize {
    let of_attributes = !matches!(why, Invalid::BookName(_));
    let found = parsed.statements.iter().find(|statement| of_attributes && key(&statement.name) == "attributes");
    found.map_or(0, |statement| statement.line - 1)
}

/// Returns the difference between two texts, line by line.
pub fn difference<'a>(before: &'a str, after: &'a str) -> Vec<DiffLine<'a>> {
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(200)).diff_lines(before, after);
    let mark = |tag| match tag {
        ChangeTag::Insert => '+',
        ChangeTag::Delete => '-',
        ChangeTag::Equal => ' ',
    };
    diff.iter_all_changes()
        .map(|change| DiffLine { mark: mark(change.tag()), text: change.value().trim_end_matches('\n') })
        .collect()
}

/// Returns a change as text; with the whole texts, or with the numbers of lines alone.
pub fn change_as_text(change: &BookChange, whole: bool) -> ConfigChange {
    let (before, after) = (change.before.as_ref().map(text).unwrap_or_default(), text(&change.after));
    let lines = difference(&before, &after);
    let count = |mark: char| lines.iter().filter(|line| line.mark == mark).count() as u64;
    let (added, removed) = (count('+'), count('-'));
    let [before, after] = [before, after].map(|text| whole.then_some(text));
    let BookChange { number, at, by, what, .. } = change.clone();
    ConfigChange { number, at, by, what, added, removed, before, after }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CFG: &str = "[Shift]\nAttributes = Author, Type, Sys\nOptions Type = Routine{a}, Problem\n{a}MOptions Sys = A, B\n\
        Required Attributes = Author\nSMTP password = secret\nNo such option = 1\nTheme = dark\n";

    fn book() -> Book {
        config::parse(CFG.as_bytes()).logbooks()[0].book()
    }

    #[test]
    fn a_text_leads_back() {
        let book = book();
        let text = text(&book);
        assert!(text.contains("SMTP password = (left out)") && text.contains("Options Type = Routine{a}, Problem"), "{text}");
        assert_eq!(read(&text, &book).unwrap(), book);
        assert_eq!(read(&format!("[Shift]\n{text}"), &book).unwrap(), book);
        // What the text cannot say stays.
        let mut own = book.clone();
        own.group = Some("Detectors".to_owned());
        own.attributes[0].multi_line = true;
        own.attributes.push(tampu_logbook::book::AttributeDef::new("Tag", AttributeKind::Tags));
        let again = read(&super::text(&own), &own).unwrap();
        assert_eq!(
            (&again.group, again.attributes[0].multi_line, again.attributes[3].kind),
            (&own.group, true, AttributeKind::Tags)
        );
        // A list that the book does not have any longer is not in the text.
        own.attributes[0].required = false;
        assert!(!super::text(&own).contains("Required"));
    }

    #[test]
    fn faults_have_their_lines() {
        let book = book();
        let faults = |text: &str| read(text, &book).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>();
        let found = faults("Attributes = Author\nThem = dark\nno equals\nTheme = a\ntheme = b\n[Other]\n");
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("line 2: ELOG has no option 'Them'; did you mean"), "{found:?}");
        assert!(
            found[1].starts_with("line 3:")
                && found[2].starts_with("line 5: 'theme'")
                && found[3].starts_with("line 6: a section")
        );
        assert!(faults("Theme = a\nAttributes = a:b\n")[0].starts_with("line 2: invalid attribute name"));
        assert!(faults(&"x".repeat(MAX_TEXT + 1))[0].contains("more than"));
    }

    #[test]
    fn differences_are_by_line() {
        let marks: Vec<_> = difference("a\nb\nc\n", "a\nB\nc\n").iter().map(|line| (line.mark, line.text)).collect();
        assert_eq!(marks, [(' ', "a"), ('-', "b"), ('+', "B"), (' ', "c")]);
    }
}
