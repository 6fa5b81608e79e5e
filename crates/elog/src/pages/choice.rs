//! Fields of forms that offer a choice.

use tampu_logbook::book::AttributeKind;

use crate::{
    option_values::ALL,
    pages::{
        ere,
        html::{SafeHtml, WriteHtml, put},
        request::BookRequest,
    },
};

/// Writes one choice of a list, selected or not.
pub fn option(out: &mut String, value: &(impl WriteHtml + ?Sized), text: &(impl WriteHtml + ?Sized), chosen: bool) {
    put!(out, "<option value=\"{}\"{}>{}</option>", value, SafeHtml(if chosen { " selected" } else { "" }), text);
}

/// Writes a field for a value of an attribute: a choice, or a text. `id` is for the label; it is empty within a label.
pub fn field(request: &BookRequest<'_>, def: &tampu_logbook::book::AttributeDef, value: &str, id: &str, out: &mut String) {
    let value = if value == ALL { "" } else { value };
    let mut own = String::new();
    if !id.is_empty() {
        put!(&mut own, " id=\"{}\"", id);
    }
    let options: Vec<(String, String)> = match def.kind {
        AttributeKind::Boolean => vec![("1".to_owned(), "yes".to_owned()), ("0".to_owned(), "no".to_owned())],
        AttributeKind::Options | AttributeKind::Radio => {
            def.options.iter().map(|option| (ere::exactly(option), option.clone())).collect()
        }
        // One of several values: a part of the joined text.
        AttributeKind::Multiple | AttributeKind::Tags => {
            def.options.iter().map(|option| (ere::part(option), option.clone())).collect()
        }
        AttributeKind::UserList | AttributeKind::UserLists => {
            // Guests do not see the logins.
            let users = if request.caller.login.is_empty() { vec![] } else { request.site.users() };
            users.into_iter().map(|(login, full_name)| (ere::exactly(&login), full_name)).collect()
        }
        _ => vec![],
    };
    if options.is_empty() {
        put!(out, "<input type=\"text\" name=\"{}\" value=\"{}\" size=\"20\"{}>", def.name, value, SafeHtml(&own));
        return;
    }
    put!(out, "<select name=\"{}\"{}>", def.name, SafeHtml(&own));
    option(out, "", "-- all --", value.is_empty());
    let mut known = value.is_empty();
    for (expression, text) in options {
        let chosen = expression == value || text == value;
        known |= chosen;
        option(out, &expression, &text, chosen);
    }
    if !known {
        // A value of the address that is not an option.
        option(out, value, value, true);
    }
    out.push_str("</select>");
}
