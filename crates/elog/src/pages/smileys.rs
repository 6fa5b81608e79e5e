//! Smileys of ELCode: characters of Unicode in place of `:-)` and the like.

/// The smileys, long ones before those that they begin with.
const SMILEYS: [(&str, &str); 14] = [
    (":-))", "\u{1f603}"),
    (":-)", "\u{1f642}"),
    (":-(", "\u{1f641}"),
    (";-)", "\u{1f609}"),
    (":-D", "\u{1f600}"),
    (":-P", "\u{1f61b}"),
    (":-O", "\u{1f62e}"),
    (":-/", "\u{1f615}"),
    (":-|", "\u{1f610}"),
    ("8-)", "\u{1f60e}"),
    ("X-(", "\u{1f620}"),
    (":)", "\u{1f642}"),
    (":(", "\u{1f641}"),
    (";)", "\u{1f609}"),
];
/// Elements whose text stays as it was written.
const KEPT: [&str; 2] = ["pre", "code"];

/// Returns rendered HTML with its smileys shown. They are words of their own, in texts outside of code.
pub fn shown(html: &str) -> String {
    if !SMILEYS.iter().any(|(typed, _)| html.contains(typed)) {
        return html.to_owned();
    }
    let mut out = String::with_capacity(html.len());
    let (mut rest, mut inside) = (html, 0usize);
    while !rest.is_empty() {
        let (text, after) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        if inside == 0 {
            words(text, &mut out)
        } else {
            out.push_str(text)
        }
        let (tag, next) = after.split_at(after.find('>').map_or(after.len(), |end| end + 1));
        let name = tag.trim_start_matches(['<', '/']).split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        if KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name)) {
            inside = if tag.starts_with("</") { inside.saturating_sub(1) } else { inside + 1 };
        }
        out.push_str(tag);
        rest = next;
    }
    out
}

/// Writes a text, each of its words that is a smiley as a character.
fn words(text: &str, out: &mut String) {
    for word in text.split_inclusive([' ', '\n', '\t']) {
        let bare = word.trim_end_matches([' ', '\n', '\t', '.', ',', '!', '?']);
        match SMILEYS.iter().find(|(typed, _)| *typed == bare) {
            Some((typed, shown)) => {
                out.push_str("<span class=\"smiley\" title=\"");
                out.push_str(typed);
                out.push_str("\">");
                out.push_str(shown);
                out.push_str("</span>");
                out.push_str(&word[bare.len()..]);
            }
            None => out.push_str(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smileys_are_words_outside_of_code() {
        let smile = "<span class=\"smiley\" title=\":-)\">\u{1f642}</span>";
        for (html, expected) in [
            ("well done :-)!", format!("well done {smile}!")),
            ("<b>:-)</b> a:-)b", format!("<b>{smile}</b> a:-)b")),
            ("<pre>:-)</pre> :-)", format!("<pre>:-)</pre> {smile}")),
            ("<a href=\"x:-)\">y</a>", "<a href=\"x:-)\">y</a>".to_owned()),
            ("8) x", "8) x".to_owned()),
        ] {
            assert_eq!(shown(html), expected);
        }
    }
}
