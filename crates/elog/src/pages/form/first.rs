//! The content with which a form begins: presets, the values of an answered entry, quotations.

use tampu_logbook::{
    entry::{Content, Encoding, Entry},
    store::StoreError,
};

use crate::pages::{
    form::{
        fields::conditions,
        fill::{preset, substitute},
        source::FormSource,
    },
    settings::FormOccasion,
};

/// Returns the content of a form without its first text; `of` is the entry that is changed, answered or duplicated.
pub fn values(source: &FormSource<'_>, occasion: FormOccasion, of: Option<&Entry>) -> Result<Content, StoreError> {
    let mut content = Content { encoding: source.settings.encoding(), ..Content::default() };
    let is_reply = matches!(occasion, FormOccasion::Reply | FormOccasion::FirstReply);
    if let Some(of) = of.filter(|_| is_reply) {
        content.attributes.clone_from(&of.content.attributes);
        content.attributes.retain(|said| !source.settings.is_removed_on_reply(&said.name));
        // A reply has the encoding of the answered entry, if the book allows it.
        if source.settings.encodings().contains(&of.content.encoding) {
            content.encoding = of.content.encoding;
        }
    } else if let Some(of) = of {
        content = of.content.clone();
    }
    let names = source.names(of);
    preset(source, occasion, &mut content, &names)?;
    if is_reply {
        substitute(source, &mut content, occasion, &names);
    }
    Ok(content)
}

/// Returns the text of a form that begins with `content`.
pub fn text(source: &FormSource<'_>, occasion: FormOccasion, of: Option<&Entry>, content: &Content) -> String {
    let names = source.names(of);
    let expanded = |text: &str| names.expand(&text.replace("\\n", "\n"));
    let (before, after) = source.settings.around(occasion);
    match (occasion, of) {
        (FormOccasion::New, _) => expanded(source.settings.preset_text(&conditions(source.settings, content))),
        (FormOccasion::Edit, _) if before.is_empty() && after.is_empty() => content.text.clone(),
        (FormOccasion::Edit, _) => format!("{}{}{}", expanded(before), content.text, expanded(after)),
        (FormOccasion::Reply | FormOccasion::FirstReply, Some(of)) => {
            let quoted = source.settings.quote().map(|mark| quote(of, content.encoding, mark)).unwrap_or_default();
            format!("{}{quoted}{}", expanded(before), expanded(after))
        }
        _ => content.text.clone(),
    }
}

/// Returns the quotation for a reply, in the encoding of the reply.
fn quote(of: &Entry, encoding: Encoding, mark: &str) -> String {
    let text = &of.content.text;
    let author = of.content.attribute("Author").map(|said| said.joined()).unwrap_or_default();
    match encoding {
        Encoding::ElCode => format!("[quote=\"{}\"]{text}[/quote]\n\n", author.replace(['"', ']'], "")),
        Encoding::Html => format!("<blockquote>{text}</blockquote>\n<p></p>\n"),
        Encoding::Plain | Encoding::Markdown => {
            let mark = if encoding == Encoding::Markdown { "> " } else { mark };
            let quoted: Vec<String> = text.lines().map(|line| format!("{mark}{line}\n")).collect();
            format!("{}\n", quoted.concat())
        }
    }
}
