//! Translates POSIX extended regular expressions, as users of ELOG type them, for the regex engine of Tampu.
//!
//! The two differ where POSIX is simpler. A backslash has no meaning inside brackets, and outside them only makes the
//! next character literal. A `]` that is first in brackets stands for itself, and so does a `{` without a count. There
//! is no `(?...)`. The result has no `/` and no unbalanced bracket, so it can stand between slashes in the query
//! language. Of several matches POSIX returns the longest and the regex engine the first. A search does not depend on
//! that.

use std::fmt::Write;

use regex::RegexBuilder;

/// The reason for an invalid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadExpression(pub &'static str);

/// The largest count in `{...}`, by the GNU library. The engine bounds the size of the whole expression.
const MAX_COUNT: u32 = 32_767;

/// Bounds of an expression that is checked against the empty text: its length, its compiled size in bytes, its nesting. A
/// longer one finds no entries without a value.
const EMPTY_LENGTH: usize = 256;
const EMPTY_SIZE: usize = 1 << 16;
const EMPTY_NEST: u32 = 50;

/// Returns true if an expression matches the empty text.
pub fn fits_nothing(text: &str) -> bool {
    let compiled = || RegexBuilder::new(&translate(text).ok()?).size_limit(EMPTY_SIZE).nest_limit(EMPTY_NEST).build().ok();
    !is_plain(text) && text.len() <= EMPTY_LENGTH && compiled().is_some_and(|expression| expression.is_match(""))
}

/// Translates a POSIX expression.
pub fn translate(text: &str) -> Result<String, BadExpression> {
    // As in regexec, `.` matches a line end, and `^` and `$` are the ends of the text.
    let mut out = String::from("(?s-m)");
    let (mut chars, mut depth) = (text.chars().peekable(), 0_usize);
    // True after an item that can be repeated.
    let mut item = false;
    let mut counts_before = false;
    while let Some(c) = chars.next() {
        let counted = std::mem::take(&mut counts_before);
        match c {
            '\\' => {
                match chars.next() {
                    None => return Err(BadExpression("Trailing backslash")),
                    // Extensions of the GNU library's regexec that people use.
                    Some(c @ ('w' | 'W' | 's' | 'S' | 'b' | 'B')) => {
                        out.push('\\');
                        out.push(c);
                    }
                    Some('<' | '>') => out.push_str("\\b"),
                    Some('1'..='9') => return Err(BadExpression("Back references are not supported")),
                    Some(c) => literal(c, &mut out),
                }
                item = true;
            }
            '[' => {
                brackets(&mut chars, &mut out)?;
                item = true;
            }
            '(' => {
                depth += 1;
                out.push_str("(?:");
                item = false;
            }
            ')' if depth > 0 => {
                depth -= 1;
                out.push(')');
                item = true;
            }
            ')' => return Err(BadExpression("Unmatched ( or )")),
            '*' | '+' | '?' if !item => {
                // At the beginning of an expression, GNU takes it literally.
                literal(c, &mut out);
                item = true;
            }
            // Our engine would read it as another kind of count.
            '?' if counted => return Err(BadExpression("Invalid preceding regular expression")),
            '*' | '+' | '?' => repeat(&mut out, c),
            '{' if item => {
                let counts: String = chars.clone().take_while(|c| *c != '}').collect();
                match count(&counts)? {
                    Some(counted) if chars.clone().any(|c| c == '}') => {
                        out.push_str(&counted);
                        chars.by_ref().find(|c| *c == '}');
                        counts_before = true;
                    }
                    _ => literal('{', &mut out),
                }
            }
            '|' => {
                out.push('|');
                item = false;
            }
            '^' | '$' => {
                out.push(c);
                item = false;
            }
            '.' => {
                out.push('.');
                item = true;
            }
            c => {
                literal(c, &mut out);
                item = true;
            }
        }
    }
    if depth > 0 { Err(BadExpression("Unmatched ( or )")) } else { Ok(out) }
}

/// Reduces `a**` to `a*`, as in POSIX; in the regex engine `a+?` would mean the shortest match.
fn repeat(out: &mut String, sign: char) {
    if out.ends_with(['*', '+', '?']) && !out.ends_with("\\*") && !out.ends_with("\\+") && !out.ends_with("\\?") {
        let before = out.pop();
        out.push(if before == Some(sign) { sign } else { '*' });
    } else {
        out.push(sign);
    }
}

/// Reads a count: `3`, `3,` or `3,5`.
fn count(text: &str) -> Result<Option<String>, BadExpression> {
    let number = |part: &str| part.parse::<u32>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()));
    let (from, to) = match text.split_once(',') {
        None => (number(text), number(text)),
        Some((from, "")) => (number(from), None),
        Some((from, to)) if number(to).is_some() => (number(from), number(to)),
        Some(_) => return Ok(None),
    };
    let Some(from) = from else { return Ok(None) };
    if from > MAX_COUNT || to.is_some_and(|to| to > MAX_COUNT || to < from) {
        return Err(BadExpression("Invalid content of \\{\\}"));
    }
    Ok(Some(if to == Some(from) { format!("{{{from}}}") } else { format!("{{{text}}}") }))
}

/// Parses a set of characters, after its `[`.
fn brackets(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Result<(), BadExpression> {
    const OPEN: BadExpression = BadExpression("Unmatched [, [^, [:, [., or [=");
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let (mut first, mut range) = (true, false);
    loop {
        let c = chars.next().ok_or(OPEN)?;
        match c {
            ']' if !first => {
                out.push(']');
                return Ok(());
            }
            '[' if matches!(chars.peek(), Some(':' | '=' | '.')) => {
                let kind = chars.next().ok_or(OPEN)?;
                let mut name = String::new();
                loop {
                    match chars.next().ok_or(OPEN)? {
                        end if end == kind && chars.next_if_eq(&']').is_some() => break,
                        c => name.push(c),
                    }
                }
                class(kind, &name, out)?;
            }
            // A range, unless the hyphen is first or last; the other end of the range may be a hyphen too.
            '-' if !first && !range && !matches!(chars.peek(), Some(']') | None) => {
                out.push('-');
                range = true;
                continue;
            }
            c => literal(c, out),
        }
        (first, range) = (false, false);
    }
}

fn class(kind: char, name: &str, out: &mut String) -> Result<(), BadExpression> {
    const CLASSES: [&str; 12] =
        ["alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph", "cntrl", "xdigit"];
    let mut letters = name.chars();
    match (kind, letters.next(), letters.next()) {
        // Letters of Unicode, as in a local language.
        (':', ..) if name == "alpha" => out.push_str("\\p{Alphabetic}"),
        (':', ..) if name == "alnum" => out.push_str("\\p{Alphabetic}\\p{Nd}"),
        (':', ..) if CLASSES.contains(&name) => {
            let _ = write!(out, "[:{name}:]");
        }
        ('.' | '=', Some(c), None) => literal(c, out),
        _ => return Err(BadExpression("Invalid character class name")),
    }
    Ok(())
}

/// Writes a literal character. `/` would end the expression, and a line end the query.
fn literal(c: char, out: &mut String) {
    match c {
        c if c.is_alphanumeric() => out.push(c),
        // Readable where possible, because the page shows the expression.
        ' ' | '_' | ':' | ',' | ';' | '=' | '@' | '%' | '!' | '\'' => out.push(c),
        '-' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' | '\\' => {
            out.push('\\');
            out.push(c);
        }
        c => {
            let _ = write!(out, "\\x{{{:X}}}", u32::from(c));
        }
    }
}

/// Returns the expression that matches exactly this text, as a person would type it.
pub fn exactly(text: &str) -> String {
    format!("^{}$", part(text))
}

/// Returns the expression that matches every value with this text in it.
pub fn part(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in text.chars() {
        if ".[]()*+?{}|^$\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns true if an expression matches only itself, apart from case, and can stand in quotation marks.
pub fn is_plain(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
        && text.trim() == text
        && !text.contains(|c: char| ".[]()*+?{}|^$\\\"".contains(c) || c.is_control())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn is_match(expression: &str, text: &str) -> bool {
        Regex::new(&translate(expression).unwrap()).unwrap().is_match(text)
    }

    #[test]
    fn expressions_mean_what_regexec_means() {
        for (expression, text, expected) in [
            ("HV tripped.*uA", "HV tripped\nat 5 uA", true),
            ("^b", "a\nb", false),
            ("a|b$", "xb", true),
            ("[]x]", "]", true),
            ("[^]x]", "]", false),
            ("[\\d]", "7", false),
            ("[\\d]", "\\", true),
            ("[a-]", "-", true),
            ("[-a]", "-", true),
            ("[a-c]", "-", false),
            ("[[:digit:]_]+x", "7_x", true),
            ("[[:alpha:]]", "ü", true),
            ("[[.-.]]", "-", true),
            ("a{2}", "aa", true),
            ("a{2,3}b", "aab", true),
            ("a{,3}", "a{,3}", true),
            ("{", "{", true),
            ("*a", "*a", true),
            ("a**b", "b", true),
            ("a+?b", "b", true),
            ("\\.", "x", false),
            ("\\d", "d", true),
            ("\\<HV\\>", "the HV is", true),
            ("\\<HV\\>", "HVs", false),
            ("LHC:MAG-01/cur", "LHC:MAG-01/cur", true),
            ("(a|b)c", "bc", true),
            ("()", "", true),
            ("[&&~~+--a]", "&", true),
            ("[&&~~+--a]", ",", true),
            ("[a[b]", "[", true),
            ("80%", "80%", true),
            ("#5", "x #5", true),
        ] {
            assert_eq!(is_match(expression, text), expected, "{expression} on {text:?}: {:?}", translate(expression));
        }
    }

    #[test]
    fn what_is_none_is_told() {
        for text in ["(", ")", "a)", "[a", "[[:alpha:", "[[:letter:]]", "a\\", "a{40000}", "a{3,2}", "(a)\\1", "[[.ab.]]"] {
            assert!(translate(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_translated_can_stand_between_slashes(text in "[a-c/\\\\\\[\\](){}|^$*+?.:,0-9&~ \n-]{0,24}|\\PC{0,20}") {
            if let Ok(translated) = translate(&text) {
                prop_assert!(!translated.contains(['/', '\n', '\0']), "{text:?} {translated:?}");
                if Regex::new(&translated).is_err() {
                    // Only a reversed range, a repeated position, or a too large expression is left for the engine to reject.
                    prop_assert!(text.contains(['-', '{', '*', '+', '?', '[']), "{text:?} {translated:?}");
                }
            }
        }

        #[test]
        fn a_text_matches_itself_exactly(text in "\\PC{0,30}|[.\\\\\\[\\](){}|^$*+?a-c/-]{0,20}") {
            prop_assert!(is_match(&exactly(&text), &text));
            let longer = text.clone() + "x";
            prop_assert!(!is_match(&exactly(&text), &longer));
        }
    }
}
