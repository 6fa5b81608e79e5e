//! The fields in sanitised HTML: boxes, which task lists have, and others, which no text may show.

use std::{borrow::Cow, ops::Range};

/// The attribute that the sanitiser leaves to boxes alone.
const BOX: &str = " type=\"checkbox\"";

/// Returns the places of the elements `input` in sanitised HTML, in order. Texts and values escape `<` in it, so every
/// `<input` is an element.
pub fn inputs(html: &str) -> Vec<Range<usize>> {
    let end = |at: usize| {
        let mut is_quoted = false;
        let end = html[at..].bytes().position(|byte| {
            is_quoted ^= byte == b'"';
            byte == b'>' && !is_quoted
        });
        end.map(|more| at + more + 1)
    };
    html.match_indices("<input").filter_map(|(at, _)| Some(at..end(at)?)).collect()
}

/// Removes all fields but boxes from sanitised HTML: nothing in a text can be filled in, so another field would show a
/// place that has no use.
pub fn without_fields(html: String) -> String {
    let fields: Vec<Range<usize>> = inputs(&html).into_iter().filter(|place| !html[place.clone()].contains(BOX)).collect();
    if fields.is_empty() {
        return html;
    }
    let mut out = String::with_capacity(html.len());
    let mut at = 0;
    for field in fields {
        out.push_str(&html[at..field.start]);
        at = field.end;
    }
    out.push_str(&html[at..]);
    out
}

/// Returns the type of a field if it is that of a box.
pub fn box_type(kind: &str) -> Option<Cow<'_, str>> {
    kind.trim().eq_ignore_ascii_case("checkbox").then_some(Cow::Borrowed("checkbox"))
}
