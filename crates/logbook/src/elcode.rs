//! ELCode: ELOG's tags in brackets. `[b]bold[/b]`, `[url=...]`, `[list]`, `[table]`, `[code]`, and links such as
//! `elog:12`.
//!
//! Unknown tags remain text. The HTML of this module is escaped but not yet sanitised, because an address may have any
//! scheme. `render` sanitises it.

use memchr::{memchr, memchr2};

/// Bytes of a tag.
const MAX_TAG: usize = 1024;

/// One piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Open { name: &'a str, value: &'a str, whole: &'a str },
    Close { name: &'a str, whole: &'a str },
}

const TAGS: [&str; 25] = [
    "b", "i", "u", "s", "center", "left", "right", "code", "color", "size", "font", "img", "url", "email", "quote", "list", "*",
    "table", "h1", "h2", "h3", "h4", "h5", "line", "anchor",
];

/// Splits a text into tags and the text between them.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let (mut at, mut ends) = (0, Ends { text, next: None });
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let begin = at;
        while let Some(open) = memchr(b'[', &text.as_bytes()[at..]).map(|open| open + at) {
            if let Some((piece, len)) = tag(&text[open..], ends.after(open)) {
                if open == begin {
                    at = begin + len;
                    return Some(piece);
                }
                at = open;
                return Some(Piece::Text(&text[begin..open]));
            }
            at = open + 1;
        }
        at = text.len();
        Some(Piece::Text(&text[begin..]))
    })
}

/// The possible ends of tags. Each `]` and each line end is searched once, for any number of `[` before it.
struct Ends<'a> {
    text: &'a str,
    next: Option<usize>,
}

impl Ends<'_> {
    /// Returns the first `]` or line end after a position. Positions must not decrease.
    fn after(&mut self, place: usize) -> usize {
        let bytes = self.text.as_bytes();
        let known = self.next.filter(|&next| next >= place);
        let next = known.unwrap_or_else(|| memchr2(b']', b'\n', &bytes[place..]).map_or(bytes.len(), |at| at + place));
        self.next = Some(next);
        next - place
    }
}

/// Returns the tag at the beginning of a text and its length, if `end` is where the tag ends.
fn tag(text: &str, end: usize) -> Option<(Piece<'_>, usize)> {
    if end >= MAX_TAG || text.as_bytes().get(end) != Some(&b']') {
        return None;
    }
    let (inner, whole) = (&text[1..end], &text[..=end]);
    let known = |name: &str| TAGS.iter().copied().find(|tag| tag.eq_ignore_ascii_case(name));
    let piece = if let Some(name) = inner.strip_prefix('/') {
        Piece::Close { name: known(name)?, whole }
    } else {
        let (name, value) = inner.split_once(['=', ' ']).unwrap_or((inner, ""));
        Piece::Open { name: known(name)?, value: value.trim_matches('"'), whole }
    };
    Some((piece, end + 1))
}

/// The text between the tags.
pub fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Open { name: "b" | "i" | "u" | "s" | "color" | "size" | "font" | "anchor", .. } => {}
            // The address of a link is part of the text, too.
            Piece::Open { name: "url" | "email", value, .. } if !value.is_empty() => {
                out.push_str(value);
                out.push(' ');
            }
            Piece::Close { name: "b" | "i" | "u" | "s" | "color" | "size" | "font" | "url" | "email", .. } => {}
            Piece::Open { .. } | Piece::Close { .. } if out.ends_with('\n') => {}
            Piece::Open { .. } | Piece::Close { .. } => out.push('\n'),
        }
    }
    out
}

/// Renders HTML. `entry` returns the address of an entry named `elog:12` or `elog:Book/12`.
pub fn to_html(text: &str, entry: &dyn Fn(&str) -> String) -> String {
    let mut writer = Writer { out: String::with_capacity(text.len() * 5 / 4), open: Vec::new(), verbatim: None, entry };
    pieces(text).for_each(|piece| writer.piece(piece));
    while let Some(name) = writer.open.pop() {
        writer.out.push_str(end_of(name));
    }
    writer.out
}

/// Tags that can be open inside one another.
const MAX_OPEN: usize = 64;

struct Writer<'a> {
    out: String,
    open: Vec<&'static str>,
    /// Inside `[code]`, `[img]` or an `[url]` without a value: the tag, and the text so far.
    verbatim: Option<(&'static str, String)>,
    entry: &'a dyn Fn(&str) -> String,
}

impl Writer<'_> {
    fn piece(&mut self, piece: Piece<'_>) {
        if let Some((waiting, mut text)) = self.verbatim.take() {
            match piece {
                Piece::Close { name, .. } if name == waiting => self.finish(waiting, &text),
                Piece::Text(whole) | Piece::Open { whole, .. } | Piece::Close { whole, .. } => {
                    text.push_str(whole);
                    self.verbatim = Some((waiting, text));
                }
            }
            return;
        }
        match piece {
            Piece::Text(text) => self.text(text),
            Piece::Open { name, value, whole } => self.open(static_name(name), value, whole),
            Piece::Close { name, .. } => self.close(name),
        }
    }

    fn text(&mut self, text: &str) {
        let table = self.open.contains(&"table");
        let mut rest = text;
        while let Some(at) = rest.find(['\n', '|', 'e', 'h']) {
            plain(&rest[..at], &mut self.out);
            rest = &rest[at..];
            // The text of a link has no links.
            let is_in_link = self.open.iter().any(|tag| matches!(*tag, "url" | "email"));
            if let Some(after) = rest.strip_prefix("|-").filter(|_| table) {
                self.out.push_str("</td></tr><tr><td>");
                rest = after.strip_prefix('\n').unwrap_or(after);
            } else if let Some(after) = rest.strip_prefix('|').filter(|_| table) {
                self.out.push_str("</td><td>");
                rest = after;
            } else if let Some(after) = rest.strip_prefix('\n') {
                self.out.push_str(if table { "\n" } else { "<br>\n" });
                rest = after;
            } else if let Some(len) = link_at(rest).filter(|_| !is_in_link) {
                write_link(&rest[..len], self.entry, &mut self.out);
                rest = &rest[len..];
            } else {
                plain(&rest[..1], &mut self.out);
                rest = &rest[1..];
            }
        }
        plain(rest, &mut self.out);
    }

    fn open(&mut self, name: &'static str, value: &str, whole: &str) {
        if self.open.len() >= MAX_OPEN {
            return plain(whole, &mut self.out);
        }
        let in_list = self.open.contains(&"list");
        let mut begin = |html: &str| {
            self.out.push_str(html);
            self.open.push(name);
        };
        match name {
            "b" | "i" | "u" | "s" | "center" | "h1" | "h2" | "h3" | "h4" | "h5" => begin(&format!("<{name}>")),
            "left" | "right" => begin(&format!("<div style=\"text-align:{name}\">")),
            "color" => begin(&format!("<span style=\"color:{}\">", word(value))),
            "font" => begin(&format!("<span style=\"font-family:{}\">", word(value))),
            "size" => {
                let step: i32 = value.trim_start_matches('+').parse().unwrap_or(3);
                let step = if value.starts_with(['+', '-']) { step } else { step - 3 };
                begin(&format!("<span style=\"font-size:{}%\">", 100 + 20 * step.clamp(-3, 8)));
            }
            "quote" => {
                begin("<blockquote>");
                if !value.is_empty() {
                    plain(value, &mut self.out);
                    self.out.push_str(":<br>");
                }
            }
            "list" => begin(if value.starts_with(['1', 'a', 'A', 'i', 'I']) { "<ol>" } else { "<ul>" }),
            "*" if in_list => self.out.push_str("<li>"),
            "table" => begin("<table><tr><td>"),
            "url" | "email" if !value.is_empty() => {
                self.out.push_str("<a href=\"");
                plain(if name == "email" { "mailto:" } else { "" }, &mut self.out);
                plain(value, &mut self.out);
                self.out.push_str("\">");
                self.open.push(name);
            }
            "code" | "img" | "url" | "email" => self.verbatim = Some((name, String::new())),
            "line" => self.out.push_str("<hr>"),
            "anchor" => {}
            _ => plain(whole, &mut self.out),
        }
    }

    /// Closes a tag, and with it those opened after it.
    fn close(&mut self, name: &str) {
        if let Some(at) = self.open.iter().rposition(|&open| open == name) {
            for name in self.open.drain(at..).rev() {
                self.out.push_str(end_of(name));
            }
        }
    }

    /// Ends a tag whose text is not ELCode.
    fn finish(&mut self, name: &str, text: &str) {
        let (before, between, after) = match name {
            "img" => ("<img src=\"", None, "\">"),
            "url" => ("<a href=\"", Some("\">"), "</a>"),
            "email" => ("<a href=\"mailto:", Some("\">"), "</a>"),
            _ => ("<pre><code>", None, "</code></pre>"),
        };
        self.out.push_str(before);
        plain(text, &mut self.out);
        if let Some(between) = between {
            self.out.push_str(between);
            plain(text, &mut self.out);
        }
        self.out.push_str(after);
    }
}

fn static_name(name: &str) -> &'static str {
    TAGS.iter().copied().find(|&tag| tag == name).unwrap_or("b")
}

fn end_of(name: &'static str) -> &'static str {
    match name {
        "b" => "</b>",
        "i" => "</i>",
        "u" => "</u>",
        "s" => "</s>",
        "center" => "</center>",
        "left" | "right" => "</div>",
        "color" | "font" | "size" => "</span>",
        "quote" => "</blockquote>",
        "list" => "</ul></ol>",
        "table" => "</td></tr></table>",
        "h1" => "</h1>",
        "h2" => "</h2>",
        "h3" => "</h3>",
        "h4" => "</h4>",
        "h5" => "</h5>",
        _ => "</a>",
    }
}

/// Keeps the characters that are safe in a style: letters, digits, `#` and `-`.
fn word(value: &str) -> String {
    value.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '#' | '-')).take(32).collect()
}

/// The length of `elog:12`, `elog:Book/12` or `elog:12/3` at the beginning of a text.
fn elog_link(text: &str) -> Option<usize> {
    let after = text.strip_prefix("elog:")?;
    let len = after.find(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '+'))).unwrap_or(after.len());
    after[..len].chars().any(|c| c.is_ascii_digit()).then_some(5 + len)
}

/// Returns the length of the web address at the beginning of a text.
pub fn web_address(text: &str) -> Option<usize> {
    if !["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        return None;
    }
    let end =
        text.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '|' | '[' | ']')).unwrap_or(text.len());
    // A mark after an address usually ends the sentence and not the address.
    Some(text[..end].trim_end_matches(['.', ',', ';', ':', ')', '!', '?']).len())
}

fn link_at(text: &str) -> Option<usize> {
    elog_link(text).or_else(|| web_address(text))
}

/// Appends a link that is written as text: `elog:12`, or an address of the web.
fn write_link(text: &str, entry: &dyn Fn(&str) -> String, out: &mut String) {
    let named = text.strip_prefix("elog:").map(entry);
    out.push_str("<a href=\"");
    plain(named.as_deref().unwrap_or(text), out);
    out.push_str(if named.is_some() { "\">" } else { "\" rel=\"noopener noreferrer nofollow\">" });
    plain(text, out);
    out.push_str("</a>");
}

/// Appends text, escaped for HTML, with its links: `elog:12`, and addresses of the web.
pub fn linked(text: &str, entry: &dyn Fn(&str) -> String, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['e', 'h']) {
        plain(&rest[..at], out);
        rest = &rest[at..];
        let len = link_at(rest);
        match len {
            Some(len) => write_link(&rest[..len], entry, out),
            None => plain(&rest[..1], out),
        }
        rest = &rest[len.unwrap_or(1)..];
    }
    plain(rest, out);
}

/// Appends text, escaped for HTML.
pub fn plain(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(text: &str) -> String {
        to_html(text, &|target| format!("/{target}"))
    }

    #[test]
    fn tags_become_html() {
        for (text, expected) in [
            ("[B]bold[/B] <x>", "<b>bold</b> &lt;x&gt;"),
            ("[b][i]x[/b]y", "<b><i>x</i></b>y"),
            ("[/b]x[foo]", "x[foo]"),
            ("[color=red]x[/color]", "<span style=\"color:red\">x</span>"),
            ("[color=red;background:url(x)]x", "<span style=\"color:redbackgroundurlx\">x</span>"),
            ("[code][b]raw[/b][/code]", "<pre><code>[b]raw[/b]</code></pre>"),
            ("[url=http://a/]b[/url]", "<a href=\"http://a/\">b</a>"),
            ("[url]http://a/\"x[/url]", "<a href=\"http://a/&quot;x\">http://a/&quot;x</a>"),
            (
                "at http://a/b. [url=http://c/]http://d/[/url]",
                "at <a href=\"http://a/b\" rel=\"noopener noreferrer nofollow\">http://a/b</a>. <a href=\"http://c/\">http://d/</a>",
            ),
            (
                "[table]http://a/|b[/table] [http://c/]",
                "<table><tr><td><a href=\"http://a/\" rel=\"noopener noreferrer nofollow\">http://a/</a></td><td>b</td></tr></table> \
                 [<a href=\"http://c/\" rel=\"noopener noreferrer nofollow\">http://c/</a>]",
            ),
            ("see elog:12 or elog:Shift/3", "see <a href=\"/12\">elog:12</a> or <a href=\"/Shift/3\">elog:Shift/3</a>"),
            ("a\nb", "a<br>\nb"),
            ("[table]a|b|-\nc|d[/table]", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"),
            ("[quote=\"Zoe\"]x[/quote]", "<blockquote>Zoe:<br>x</blockquote>"),
        ] {
            assert_eq!(html(text), expected, "{text}");
        }
    }

    #[test]
    fn a_reader_reads_no_tags() {
        assert_eq!(without_tags("[B]HV[/B] trip[color=red]ped[/color] at [url=http://a/]b[/url]"), "HV tripped at http://a/ b");
        assert_eq!(without_tags("a[0] is [not] a tag"), "a[0] is [not] a tag");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\[|\\]|/|[a-z*=|\n]|\\[b\\]|\\[code\\]|\\[table\\]|\\[/code\\]|elog:1){0,60}") {
            let out = html(&text);
            prop_assert!(!out.contains("<script"));
            let _ = without_tags(&text);
        }
    }
}
