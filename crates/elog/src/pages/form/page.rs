//! The page with a form.

use http::StatusCode;
use tampu_logbook::{book::AttributeDef, entry::Content};

use crate::pages::{
    csrf, editors,
    form::{
        drafts,
        field::{AttributeField, field_name},
        fields::{FormField, conditions, fields},
        files,
        model::{EntryForm, LOCK_KEY},
    },
    html::{SafeHtml, put},
    layout::BookPage,
    mails,
    request::BookRequest,
    response::Response,
    settings::{ActiveConditions, FormOccasion},
    values,
};

/// Shows a form; `post` shows it again with the received values, for Update and after an error.
pub fn show(request: &BookRequest<'_>, form: &EntryForm, status: StatusCode) -> Response {
    let conditions = conditions(&request.settings, &form.content);
    let mut body = String::with_capacity(form.content.text.len() + 8192);
    let out = &mut body;
    if let Some(error) = &form.error {
        put!(out, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", error);
    }
    if let Some(note) = &form.note {
        put!(out, "<div class=\"drafts\">{}</div>\n", note);
    }
    if form.draft.is_none() {
        drafts::offer(request, form, out);
    }
    open(request, form, out);
    hidden(request, form, out);
    out.push_str("<table class=\"listframe\">\n<tbody id=\"attributes\">\n");
    let mut hidden_fields = String::new();
    let decides = attributes(request, form, &mut hidden_fields, out);
    out.push_str("</tbody>\n");
    if request.settings.show_text() {
        text(request, form, &conditions, out);
    }
    if request.settings.attachments() {
        files::write(request, form, out);
    }
    put!(out, "</table>\n<div id=\"unshown\">{}</div>\n<p class=\"buttons\">", SafeHtml(&hidden_fields));
    boxes(request, form, out);
    put!(out, "<button type=\"submit\" name=\"cmd\" value=\"Submit\">{}</button> ", request.word("Submit"));
    if !request.caller.login.is_empty() {
        let text = request.said("Save", "Save as draft");
        put!(out, "<button type=\"submit\" name=\"cmd\" value=\"Save\" formnovalidate>{}</button> ", text);
    }
    if request.settings.show_text() {
        let text = request.word("Preview");
        put!(out, "<button type=\"submit\" name=\"cmd\" value=\"Preview\" formnovalidate>{}</button> ", text);
    }
    if decides {
        let text = request.word("Update");
        put!(out, "<button type=\"submit\" name=\"cmd\" value=\"Update\" id=\"update\" formnovalidate>{}</button> ", text);
    }
    let back = form.of.map_or_else(|| "./".to_owned(), |id| id.to_string());
    match form.occasion {
        // Leaving the form releases the lock.
        FormOccasion::Edit if request.settings.use_lock() => {
            let text = request.word("Back");
            put!(out, "<button type=\"submit\" name=\"cmd\" value=\"Back\" formnovalidate>{}</button></p>\n</form>\n", text);
        }
        _ => put!(out, "<a href=\"{}\">{}</a></p>\n</form>\n", back, request.word("Back")),
    }
    preview(request, form, out);
    let title = match form.occasion {
        FormOccasion::New | FormOccasion::Duplicate => "New entry",
        FormOccasion::Edit => "Edit",
        FormOccasion::Reply | FormOccasion::FirstReply => "Reply",
    };
    let mut page = BookPage::new(request, title, body);
    (page.kind, page.has_script) = ("edit", true);
    page.answer(status)
}

/// Writes the beginning of the form, with the facts that its script needs.
fn open(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    out.push_str("<form class=\"entry\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\"");
    if !request.caller.login.is_empty() && request.settings.save_drafts() {
        out.push_str(" data-saves");
    }
    if form.occasion == FormOccasion::Edit {
        put!(out, " data-watch=\"{}\"", editors::LOOK.as_secs());
    }
    if let Some(most) = request.settings.max_content() {
        put!(out, " data-most=\"{}\"", most);
    }
    out.push_str(">\n");
}

/// Writes the text as the entry will show it, or an empty place for it.
fn preview(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    out.push_str("<div id=\"preview\"");
    if form.preview {
        let html = values::rendered(request, form.content.encoding, &form.content.text);
        put!(out, " class=\"messageframe\">{}</div>\n", html);
    } else {
        out.push_str("></div>\n");
    }
}

fn hidden(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    let mut field = |name: &str, value: &str| put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    field(csrf::FIELD, &csrf::token(request.site, request.caller, request.session.as_deref()));
    let of = form.of.map(|id| id.to_string()).unwrap_or_default();
    match form.occasion {
        FormOccasion::Edit => {
            field("edit_id", &of);
            if request.query.is_on("skiplock") {
                field("skiplock", "1");
            }
            if let Some(key) = &form.lock_key {
                field(LOCK_KEY, key);
            }
        }
        FormOccasion::Reply | FormOccasion::FirstReply => field("reply_to", &of),
        FormOccasion::Duplicate => field("orig_id", &of),
        FormOccasion::New => {}
    }
    if let Some(revision) = form.revision {
        field("entry_revision", &revision.to_string());
    }
    if let Some(draft) = form.draft {
        field("draft_id", &draft.to_string());
    }
}

/// Writes the fields of attributes; returns true if one of them decides about others. Hidden attributes go into `hidden_fields`.
fn attributes(request: &BookRequest<'_>, form: &EntryForm, hidden_fields: &mut String, out: &mut String) -> bool {
    let (mut open, mut any) = (false, false);
    for field in fields(&request.book, &request.settings, form.occasion, &form.content) {
        let FormField { index, def, is_shown, is_fixed: fixed, decides, tooltip } = field;
        if !is_shown {
            // A field that a form does not show keeps its value.
            let value = value_of(&form.content, &def.name);
            if !value.is_empty() {
                put!(hidden_fields, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", field_name(&def.name), value);
            }
            continue;
        }
        any |= decides;
        let format = request.settings.format(&def.name);
        if open && format.flags & 1 == 0 {
            out.push_str("</tr>\n");
            open = false;
        }
        if !open {
            out.push_str("<tr>");
            open = true;
        }
        let is_group = !fixed && AttributeField::is_group(def.kind);
        match (fixed, is_group) {
            (true, _) => put!(out, "<th class=\"attribname\" title=\"{}\">{}", tooltip, def.name),
            (_, true) => put!(out, "<th class=\"attribname\" id=\"f{}\" title=\"{}\">{}", index, tooltip, def.name),
            _ => {
                put!(out, "<th class=\"attribname\" title=\"{}\"><label for=\"f{}\">{}</label>", tooltip, index, def.name);
            }
        }
        if def.required {
            out.push_str("<span class=\"required\" title=\"required\">*</span>");
        }
        put!(
            out,
            ":</th><td class=\"attribvalue {}{}\"{}>",
            SafeHtml(if format.flags & 2 != 0 { "separate " } else { "" }),
            format.class,
            SafeHtml(if is_group { format!(" role=\"group\" aria-labelledby=\"f{index}\"") } else { String::new() })
        );
        if fixed {
            locked_field(request, form, &def, out);
        } else {
            AttributeField {
                request,
                def: &def,
                index,
                decides,
                said: said(&form.content, &def.name),
                width: format.width,
                class: &format.field_class,
            }
            .write(out);
        }
        if !def.comment.is_empty() {
            put!(out, " <span class=\"comment\">{}</span>", def.comment);
        }
        out.push_str("</td>");
    }
    if open {
        out.push_str("</tr>\n");
    }
    any
}

fn said(content: &Content, name: &str) -> Vec<String> {
    content.attribute(name).map(|said| said.values.clone()).unwrap_or_default()
}

fn value_of(content: &Content, name: &str) -> String {
    content.attribute(name).map(|said| said.joined()).unwrap_or_default()
}

/// Writes an attribute that is shown and sent back unchanged.
fn locked_field(request: &BookRequest<'_>, form: &EntryForm, def: &AttributeDef, out: &mut String) {
    let value = value_of(&form.content, &def.name);
    let shown = crate::pages::subst::shown_value(def.kind, &def.name, &value, &request.settings, &request.zone, 0);
    put!(out, "<span class=\"fixed\">{}</span>", shown);
    put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">", field_name(&def.name), value);
}

fn text(request: &BookRequest<'_>, form: &EntryForm, set: &ActiveConditions, out: &mut String) {
    let (width, height) = request.settings.message_size();
    out.push_str("<tr><td colspan=\"20\" class=\"messageedit\">");
    let answers = matches!(form.occasion, FormOccasion::Reply | FormOccasion::FirstReply);
    let comment = if answers && !request.settings.reply_comment(set).is_empty() {
        request.settings.reply_comment(set)
    } else {
        request.settings.message_comment(set)
    };
    if !comment.is_empty() {
        put!(out, "<div class=\"comment\">{}</div>", comment);
    }
    // Browsers drop the first line end of a text area.
    put!(
        out,
        "<textarea name=\"Text\" cols=\"{}\" rows=\"{}\" aria-label=\"Text\"{}>\n{}</textarea>",
        width,
        height,
        SafeHtml(match (request.settings.fix_text() && form.occasion == FormOccasion::Edit, request.settings.hard_wrap()) {
            (true, _) => " readonly",
            (false, true) => " wrap=\"hard\"",
            (false, false) => "",
        }),
        form.content.text
    );
    put!(out, "<div class=\"encodings\">{}: ", request.word("Encoding"));
    let mut encodings = request.settings.encodings();
    if !encodings.contains(&form.content.encoding) {
        encodings.push(form.content.encoding);
    }
    for encoding in encodings {
        let checked = SafeHtml(if encoding == form.content.encoding { " checked" } else { "" });
        put!(
            out,
            "<label><input type=\"radio\" name=\"encoding\" value=\"{}\"{}> {}</label> ",
            encoding.name(),
            checked,
            encoding.name()
        );
    }
    out.push_str("</div></td></tr>\n");
}

fn boxes(request: &BookRequest<'_>, form: &EntryForm, out: &mut String) {
    match request.settings.suppress(form.occasion) {
        // A choice without an effect is not shown.
        _ if !mails::has_effect(request) => {}
        0 | 1 => {
            let checked = SafeHtml(if form.suppress { " checked" } else { "" });
            put!(
                out,
                "<label><input type=\"checkbox\" name=\"suppress\" value=\"1\"{}> {}</label> ",
                checked,
                request.word("Suppress Email notification")
            );
        }
        3 => out.push_str("<input type=\"hidden\" name=\"suppress\" value=\"1\">"),
        _ => {}
    }
    if form.occasion == FormOccasion::Edit && request.settings.resubmit() < 2 {
        let checked = SafeHtml(if form.resubmit { " checked" } else { "" });
        let text = request.word("Resubmit as new entry");
        put!(out, "<label><input type=\"checkbox\" name=\"resubmit\" value=\"1\"{}> {}</label> ", checked, text);
    }
}
