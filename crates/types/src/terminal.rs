//! Characters that must not reach a terminal from outside.
//!
//! Control characters drive a terminal. Characters that turn the direction of writing, or that nobody sees, make a text look like
//! another one. Joiners (U+200C, U+200D) stay: Persian, Indic scripts and emoji need them.

/// Returns true for a character that a terminal must only show by its number.
///
/// ```
/// use tampu_types::terminal::is_harmful;
/// assert!("\u{1b}\u{202e}".chars().all(is_harmful));
/// assert!(!"é ü 한 👩\u{200d}🔬".chars().any(is_harmful));
/// ```
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text with its harmful characters escaped, as `\u{202e}`; line ends and tabs stay where `lines` is true.
pub fn harmless(text: &str, lines: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) && !(lines && matches!(character, '\n' | '\t')) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_turns_or_hides_is_escaped_and_all_else_stays() {
        assert_eq!(harmless("a\u{1b}[2J\n\tb\u{202e}c", false), r"a\u{1b}[2J\n\tb\u{202e}c");
        assert_eq!(harmless("a\n\tb\u{2066}\u{feff}", true), "a\n\tb".to_owned() + r"\u{2066}\u{feff}");
        let kept = "größer, 한국어, עברית, \u{200c} \u{200d} … –";
        assert_eq!(harmless(kept, false), kept);
    }
}
