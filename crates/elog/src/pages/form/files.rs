//! The fields for files: those that the entry has, and new ones.

use crate::pages::{
    address::escape,
    form::model::EntryForm,
    html::{SafeHtml, put},
    request::BookRequest,
    settings::FormOccasion,
    values,
};

/// Number of fields for new files. Each takes several; with the script one is enough.
const FIELDS: usize = 3;

/// Writes the fields.
pub fn write(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    for (nth, attachment) in form.content.attachments.iter().enumerate() {
        let name = values::address_name(attachment);
        put!(out, "<tr><th class=\"attribname\">{} {}:</th><td>{} ", request.word("Attachment"), nth + 1, attachment.name);
        put!(out, "<input type=\"hidden\" name=\"attachment{}\" value=\"{}\">", nth, name);
        put!(out, "<label><input type=\"checkbox\" name=\"delatt{}\" value=\"Delete\"> {}</label>", nth, request.word("Delete"));
        // The file belongs to the entry that the form is about.
        let shown = form.of.filter(|_| form.occasion == FormOccasion::Edit && request.settings.preview_attachments());
        if let Some(id) = shown.filter(|_| values::is_image(&attachment.name)) {
            let size = request.settings.thumbnail().max(1);
            put!(
                out,
                "<br><img class=\"preview\" src=\"{}/{}\" alt=\"\" loading=\"lazy\" style=\"max-width:{}px;max-height:{}px\">",
                id,
                escape(&name),
                size,
                size
            );
        }
        out.push_str("</td></tr>\n");
    }
    let begun = form.content.attachments.len();
    for nth in 1..=FIELDS {
        put!(out, "<tr class=\"newfile\"><th class=\"attribname\">{} {}:</th><td>", request.word("Attachment"), begun + nth);
        let label = SafeHtml(if nth == 1 { "Files" } else { "More files" });
        put!(out, "<input type=\"file\" name=\"attfile{}\" aria-label=\"{}\" multiple>", nth, label);
        if nth == 1 && !request.settings.attachment_comment().is_empty() {
            put!(out, " <span class=\"comment\">{}</span>", request.settings.attachment_comment());
        }
        out.push_str("</td></tr>\n");
    }
}
