//! Contents of a string literal.

/// Returns the text of a literal in the source, or nothing if it is no string.
pub fn text_of(source: &str) -> Option<String> {
    if let Some(raw) = source.strip_prefix('r') {
        let inner = raw.trim_matches('#');
        return Some(inner.strip_prefix('"')?.strip_suffix('"')?.replace("\r\n", "\n"));
    }
    unescape(&source.strip_prefix('"')?.strip_suffix('"')?.replace("\r\n", "\n"))
}

fn unescape(source: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = source;
    while let Some(backslash) = rest.find('\\') {
        text.push_str(&rest[..backslash]);
        let escape = rest[backslash + 1..].chars().next()?;
        rest = &rest[backslash + 1 + escape.len_utf8()..];
        match escape {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            '0' => text.push('\0'),
            '\\' | '\'' | '"' => text.push(escape),
            'x' => {
                text.push(char::from(u8::from_str_radix(rest.get(..2)?, 16).ok()?));
                rest = &rest[2..];
            }
            'u' => {
                let (digits, behind) = rest.strip_prefix('{')?.split_once('}')?;
                text.push(char::from_u32(u32::from_str_radix(&digits.replace('_', ""), 16).ok()?)?);
                rest = behind;
            }
            // A continued line: its end and the indentation of the next line are no part of the text.
            '\n' => rest = rest.trim_start_matches([' ', '\n', '\r', '\t']),
            _ => return None,
        }
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_say_what_the_compiler_reads() {
        let cases = [
            (r#""plain é""#, Some("plain é")),
            (r#""a\tb\n\\\"\'\0""#, Some("a\tb\n\\\"'\0")),
            (r#""\x41\u{e9}\u{1_F600}""#, Some("Aé\u{1f600}")),
            ("\"one \\\n     line\"", Some("one line")),
            (r##"r"raw\n""##, Some("raw\\n")),
            (r###"r#"raw "quoted""#"###, Some("raw \"quoted\"")),
            (r#"b"bytes""#, None),
            ("12", None),
            ("'c'", None),
        ];
        for (source, text) in cases {
            assert_eq!(text_of(source).as_deref(), text, "{source}");
        }
    }
}
