//! Texts without what differs from call to call, and the conditions that the records of a pattern meet.

use std::{fmt::Write as _, sync::LazyLock};

use regex::Regex;
use tampu_types::Level;

/// Parts that differ from call to call: numbers, ids, quoted words.
const VARIES: &str = r#"0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{9,}|[-+]?[0-9][0-9.,:eE]*|'[^']*'|"[^"]*""#;
/// Characters of a message that decide about its pattern.
const LOOKED_AT: usize = 1000;
/// Longest regular expression of a message, in bytes.
const LONGEST: usize = 1500;
/// Longest condition in bytes, so that it fits beside others into an expression.
const LONGEST_CONDITION: usize = 3000;

static DIFFERENT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VARIES).ok());

/// Returns the part of a message that decides about its pattern.
pub(super) fn looked_at(message: &str) -> &str {
    message.char_indices().nth(LOOKED_AT).map_or(message, |(end, _)| &message[..end])
}

/// Returns the pieces of a text between what differs.
fn pieces(message: &str) -> Vec<&str> {
    let text = looked_at(message);
    DIFFERENT.as_ref().map_or_else(|| vec![text], |different| different.split(text).collect())
}

/// Writes a text without what differs from call to call.
pub(super) fn put_mask(message: &str, out: &mut String) {
    for (nth, piece) in pieces(message).into_iter().enumerate() {
        if nth > 0 {
            out.push('#');
        }
        for letter in piece.chars() {
            if letter == '#' {
                out.push('\\');
            }
            out.push(letter);
        }
    }
}

/// Returns the regular expression of the texts with the same mask; of a long text, of its beginning.
fn regex_of(message: &str) -> String {
    let pieces = pieces(message);
    let mut text = format!("^{}", regex::escape(pieces.first().copied().unwrap_or_default()));
    let mut nth = 1;
    while nth < pieces.len() && text.len() < LONGEST {
        let _ = write!(text, "({VARIES}){}", regex::escape(pieces[nth]));
        nth += 1;
    }
    if nth == pieces.len() && looked_at(message).len() == message.len() {
        text.push('$');
    }
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the condition that a field has this value. Wildcards and numbers mean more than themselves after `=`.
fn equals(name: &str, value: &str) -> String {
    let begin = value.trim_start().trim_start_matches(['-', '+']);
    let is_number = begin.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    match value {
        "" => format!("not {name}"),
        _ if is_number || value.contains(['*', '?']) => {
            format!("{name} ~ {}", quoted(&format!("^(?i:{})$", regex::escape(value))))
        }
        _ => format!("{name} = {}", quoted(value)),
    }
}

/// A place in a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) level: Level,
    /// File and line; empty and 0 for a pattern of texts.
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) routine: &'a str,
}

impl Site<'_> {
    /// Returns the condition that the records of a pattern meet, and no others; `None` if it would be too long.
    pub(super) fn condition(&self, message: &str) -> Option<String> {
        let place = match self.file {
            "" => format!("not (file and line > 0) and message ~ {}", quoted(&regex_of(message))),
            file => format!("{} and line = {}", equals("file", file), self.line),
        };
        let condition = format!("({place} and {} and level = {})", equals("routine", self.routine), self.level);
        (condition.len() <= LONGEST_CONDITION).then_some(condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(message: &str) -> String {
        let mut out = String::new();
        put_mask(message, &mut out);
        out
    }

    #[test]
    fn the_expression_of_a_text_holds_for_its_mask_alone() {
        assert_eq!(mask("at 4.5 mm, id 0x1f of 'DV01' -3"), "at # mm, id # of # #");
        assert_ne!(mask("a # b"), mask("a 4 b"));
        let messages = [
            "moved to 4 mm",
            "moved to left mm",
            "moved to # mm",
            "it moved to 9 mm",
            "a (b) [c] 'x' \"y\" 0x1F -1.5e3",
            "a (b) [c] 7 'z' 2 +3",
            "a (b) [c] 7 z 2 +3",
            "done",
            "done.",
            "",
        ];
        for one in messages {
            let expression = Regex::new(&regex_of(one)).unwrap();
            for other in messages {
                assert_eq!(expression.is_match(other), mask(one) == mask(other), "{one} | {other}");
            }
        }
    }

    #[test]
    fn a_condition_is_bounded_and_takes_signs_as_they_are() {
        let site = Site { level: Level::Info, file: "", line: 0, routine: "" };
        assert!(site.condition(&"7 'x' ".repeat(300)).unwrap().len() < LONGEST_CONDITION);
        let long = "f".repeat(4000);
        assert_eq!(Site { file: &long, line: 1, ..site }.condition("x"), None);
        assert_eq!(
            Site { file: "C:\\*.rs", line: 7, routine: "7", ..site }.condition("x").unwrap(),
            r#"(file ~ "^(?i:C:\\\\\\*\\.rs)$" and line = 7 and routine ~ "^(?i:7)$" and level = Info)"#
        );
        let plain = Site { file: "f.rs", line: 7, ..site }.condition("x").unwrap();
        assert_eq!(plain, r#"(file = "f.rs" and line = 7 and not routine and level = Info)"#);
    }
}
