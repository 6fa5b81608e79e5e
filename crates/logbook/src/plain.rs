//! The plain text of an entry: its text without the marks of HTML or ELCode.
//!
//! Searches look at this text. So the query `RICH1 HV tripped` finds `RICH1 <b>HV</b> tripped`, and a search for
//! `table border` does not find markup. The text is made on demand, in about a microsecond per kilobyte, and not stored
//! a second time. It is not for display, which `render` does.

use std::borrow::Cow;

use pulldown_cmark::{Event, Options, Parser, TagEnd};

use crate::{elcode, entry::Encoding};

/// The text without its marks.
pub fn plain(encoding: Encoding, text: &str) -> Cow<'_, str> {
    match encoding {
        Encoding::Html => Cow::Owned(html(text)),
        Encoding::ElCode if text.contains('[') => Cow::Owned(elcode::without_tags(text)),
        _ => Cow::Borrowed(text),
    }
}

/// Longest Markdown that loses its marks, in bytes. Its parser takes a second and hundreds of megabytes for a few
/// megabytes of brackets, and a page shows many entries.
const MAX_READ: usize = 32 << 10;

/// Returns the visible text, for lists and for snippets around a match. Markdown loses its marks, too, unless it is very
/// long. Searches do not use this text, because they find words in the source of Markdown.
pub fn read(encoding: Encoding, text: &str) -> Cow<'_, str> {
    match encoding {
        Encoding::Markdown if text.len() <= MAX_READ => Cow::Owned(markdown(text)),
        _ => plain(encoding, text),
    }
}

fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES;
    let mut out = String::with_capacity(text.len());
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Text(text) | Event::Code(text) => out.push_str(&text),
            Event::Html(text) | Event::InlineHtml(text) => out.push_str(&html(&text)),
            Event::SoftBreak | Event::HardBreak | Event::Rule => out.push('\n'),
            Event::TaskListMarker(done) => out.push_str(if done { "[x] " } else { "[ ] " }),
            Event::End(TagEnd::TableCell) => out.push(' '),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::TableHead
                | TagEnd::TableRow
                | TagEnd::FootnoteDefinition,
            ) if !out.ends_with('\n') => out.push('\n'),
            _ => {}
        }
    }
    out
}

/// Elements that stand inside a word.
const INLINE: [&str; 22] = [
    "a", "abbr", "b", "big", "cite", "code", "em", "font", "i", "ins", "kbd", "mark", "s", "samp", "small", "span", "strike",
    "strong", "sub", "sup", "tt", "u",
];
/// Elements whose content is not text for readers.
const UNREAD: [&str; 2] = ["script", "style"];

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = if rest.starts_with('<') { tag(rest, &mut out) } else { entity(rest, &mut out) };
    }
    out.push_str(rest);
    out
}

/// Skips a tag or a comment; other text stays.
fn tag<'a>(text: &'a str, out: &mut String) -> &'a str {
    if let Some(comment) = text.strip_prefix("<!--") {
        return comment.find("-->").map_or("", |end| &comment[end + 3..]);
    }
    let inner = text[1..].strip_prefix(['/', '!', '?']).unwrap_or(&text[1..]);
    let name_end = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    if name_end == 0 {
        out.push('<');
        return &text[1..];
    }
    let name = inner[..name_end].to_ascii_lowercase();
    let Some(end) = tag_end(inner) else { return "" };
    let rest = &inner[end..];
    if UNREAD.contains(&name.as_str()) && !text.starts_with("</") {
        return after_end_tag(rest, &name);
    }
    if !INLINE.contains(&name.as_str()) && !out.ends_with('\n') {
        out.push('\n');
    }
    rest
}

/// After the `>` that ends a tag; one inside quotes does not.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

fn after_end_tag<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let after = &rest[at + 2..];
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after.find('>').map_or("", |end| &after[end + 1..]);
        }
        rest = after;
    }
    ""
}

/// Names of the characters from U+00A0 on.
const LATIN: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
    micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave \
    Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml \
    Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth \
    ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
/// Others that editors write.
const OTHERS: [(&str, char); 16] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("hellip", '…'),
    ("euro", '€'),
    ("mu", 'μ'),
    ("Omega", 'Ω'),
    ("bull", '•'),
];

/// Decodes `&name;` and `&#n;`; other text stays.
fn entity<'a>(text: &'a str, out: &mut String) -> &'a str {
    let found = text[1..].bytes().take(10).position(|byte| byte == b';').and_then(|end| {
        let name = text.get(1..=end)?;
        let number = name.strip_prefix('#').map(|digits| match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        });
        let character = match number {
            Some(number) => char::from_u32(number?)?,
            None => named(name)?,
        };
        Some((character, &text[end + 2..]))
    });
    let Some((character, rest)) = found else {
        out.push('&');
        return &text[1..];
    };
    out.push(if character == '\u{a0}' { ' ' } else { character });
    rest
}

fn named(name: &str) -> Option<char> {
    let other = OTHERS.iter().find(|(other, _)| *other == name).map(|&(_, character)| character);
    other.or_else(|| {
        let at = LATIN.split_whitespace().position(|known| known == name)?;
        char::from_u32(0xa0 + at as u32)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn html_is_read_as_a_browser_shows_it() {
        for (text, expected) in [
            ("<p>RICH1 <b>HV</b> trip<i>ped</i></p>", "\nRICH1 HV tripped\n"),
            ("a<br>b<br/>c", "a\nb\nc"),
            ("M&uuml;ller &amp; S&#246;hne &#x3c0;&nbsp;&hellip;", "Müller & Söhne π …"),
            ("a < b && c > d &unknown; &", "a < b && c > d &unknown; &"),
            ("<img src=\"data:>AAAA\" alt='>'>x", "\nx"),
            ("<script>var a = '<p>';</script>seen<STYLE>p{}</style >too", "seentoo"),
            ("<!-- <p>no</p> -->yes<!doctype html>", "yes\n"),
            ("cut <b", "cut "),
            ("cut <script>never ends", "cut "),
            ("&#xffffffff; &#0", "&#xffffffff; &#0"),
        ] {
            assert_eq!(plain(Encoding::Html, text), expected, "{text}");
        }
        assert_eq!(plain(Encoding::Plain, "<b>"), "<b>");
    }

    #[test]
    fn markdown_is_read_without_its_marks() {
        for (text, expected) in [
            (
                "# Run 7\n\n**HV** of `RICH1`\ntripped: [plot](http://a.b/c)\n\n1. one\n2. *two*\n",
                "Run 7\nHV of RICH1\ntripped: plot\none\ntwo\n",
            ),
            ("|a|b|\n|-|-|\n|1|2|", "a b \n1 2 \n"),
            ("- [x] done\n- [ ] not", "[x] done\n[ ] not\n"),
            ("a<br>b &amp; ![seen](x.png)\n\n---\n    code *as it is*", "a\nb & seen\n\ncode *as it is*\n"),
            ("hlt0123_DAQ_x 5 * 3 * 2", "hlt0123_DAQ_x 5 * 3 * 2\n"),
            ("", ""),
        ] {
            assert_eq!(read(Encoding::Markdown, text), expected, "{text}");
        }
        assert_eq!(read(Encoding::Plain, "**x**"), "**x**");
        let long = "**x** ".repeat(MAX_READ);
        assert_eq!(read(Encoding::Markdown, &long), long);
    }

    proptest! {
        #[test]
        fn any_text_has_a_plain_one(text in "[<>/&;#a-cB\"' !=-]{0,60}|\\PC{0,60}") {
            for encoding in Encoding::ALL {
                let _ = (plain(encoding, &text), read(encoding, &text));
            }
        }
    }
}
