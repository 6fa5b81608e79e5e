//! Checklists: the items `- [ ]` of a Markdown text, which people tick off.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser};

use crate::entry::{Content, Encoding};

/// An item of a checklist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// True if it is ticked.
    pub done: bool,
    /// Its text, without markup.
    pub text: String,
    /// The place of `[ ]` in the text.
    place: Range<usize>,
}

/// Longest text whose items are read, in bytes: each view of the entry reads them.
const MAX_TEXT: usize = 256 << 10;

/// Returns the items of a text, in order. Only Markdown has them, and a very long text has none.
pub fn items(content: &Content) -> Vec<Item> {
    let has_marks = ["[ ]", "[x]", "[X]"].iter().any(|mark| content.text.contains(mark));
    if content.encoding != Encoding::Markdown || content.text.len() > MAX_TEXT || !has_marks {
        return Vec::new();
    }
    let mut items: Vec<Item> = Vec::new();
    let mut is_open = false;
    for (event, place) in Parser::new_ext(&content.text, Options::ENABLE_TASKLISTS).into_offset_iter() {
        match event {
            Event::TaskListMarker(done) => {
                items.push(Item { done, text: String::new(), place });
                is_open = true;
            }
            Event::Text(text) | Event::Code(text) if is_open => {
                if let Some(item) = items.last_mut() {
                    item.text.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_) | Event::Start(_) if is_open => {
                let ends = matches!(event, Event::End(pulldown_cmark::TagEnd::Item | pulldown_cmark::TagEnd::Paragraph));
                is_open = !ends;
            }
            _ => {}
        }
    }
    items
}

/// Returns a text with these items ticked and all others not; `done` has one value for each item.
pub fn ticked(content: &Content, done: &[bool]) -> String {
    let mut text = content.text.clone();
    for (item, done) in items(content).into_iter().zip(done).filter(|(item, done)| item.done != **done) {
        // The mark is one character between brackets.
        let inner = item.place.start + 1..item.place.end.saturating_sub(1).max(item.place.start + 1);
        if text.get(inner.clone()).is_some_and(|mark| mark.len() == 1) {
            text.replace_range(inner, if *done { "x" } else { " " });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_and_ticked() {
        let text = "# Start\n\n- [ ] open *valve* 7\n- [x] check `HV`\n  - [ ] inner\n\n1. [ ] number\n\n```\n- [ ] code\n```\n- no item\n";
        let content = Content { text: text.to_owned(), encoding: Encoding::Markdown, ..Content::default() };
        let found: Vec<_> = items(&content).into_iter().map(|item| (item.done, item.text)).collect();
        let expected = [(false, "open valve 7"), (true, "check HV"), (false, "inner"), (false, "number")];
        assert_eq!(found, expected.map(|(done, text)| (done, text.to_owned())));
        let made = ticked(&content, &[true, false, true, false]);
        assert_eq!(
            made,
            text.replace("[ ] open", "[x] open").replace("[x] check", "[ ] check").replace("[ ] inner", "[x] inner")
        );
        assert_eq!(ticked(&content, &[false, true]), text, "items without a value stay");
        let long = Content { text: text.repeat(MAX_TEXT / text.len() + 1), ..content.clone() };
        assert!(items(&long).is_empty() && ticked(&long, &[]) == long.text);
        assert!(items(&Content { encoding: Encoding::Plain, ..content }).is_empty());
    }
}
