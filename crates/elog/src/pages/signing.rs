//! Signatures on the page of an entry, and the form that signs it.

use tampu_logbook::{
    entry::Entry,
    people::{People, registry::signing::SigningProof},
    signature::{RecordKind, WITHHELD},
};

use crate::pages::{
    address::escape,
    command::PageCommand,
    csrf,
    html::{SafeHtml, put},
    request::BookRequest,
};

/// The field with the meaning of a signature.
pub const MEANING: &str = "meaning";
/// The field with the revision that the page has shown.
pub const REVISION: &str = "entry_revision";
/// The field with the password of the person who signs.
pub const PASSWORD: &str = "password";

/// Writes the signatures of an entry, and the form with which the caller signs it.
pub fn write(request: &BookRequest<'_>, entry: &Entry, out: &mut String) {
    if !entry.signatures.is_empty() {
        out.push_str("<ul class=\"signatures\">\n");
        for signature in &entry.signatures {
            let when = request.zone.write(signature.at, entry.zone, request.settings.time_format(None));
            let name = if signature.name.is_empty() { &signature.by } else { &signature.name };
            match signature.kind {
                RecordKind::Signature => {
                    put!(out, "<li>Signed as <b>{}</b> by <b>{}</b> ({}), {}", signature.meaning, name, signature.by, when);
                }
                RecordKind::Purge => put!(out, "<li>Signed text changed by {}, {}: {}", name, when, signature.meaning),
            }
            if signature.revision != entry.revision {
                put!(out, " <span class=\"note\">of the earlier revision {}</span>", signature.revision);
            }
            if signature.withheld {
                put!(out, " <span class=\"note\">({})</span>", WITHHELD);
            }
            out.push_str("</li>\n");
        }
        out.push_str("</ul>\n");
    }
    if request.query.is_on("printable") {
        return;
    }
    // A signature covers all attributes.
    if request.shown().is_some() {
        return;
    }
    // Without a list of meanings, the page is as useful as before.
    if let Some(people) = &request.site.people
        && let Ok(meanings) = people.meanings(&request.caller.login, &request.book.name)
    {
        let signed = |meaning: &String| {
            entry.signatures.iter().any(|known| {
                known.kind == RecordKind::Signature
                    && known.revision == entry.revision
                    && known.by == request.caller.login
                    && known.meaning == *meaning
            })
        };
        let open: Vec<String> = meanings.into_iter().filter(|meaning| !signed(meaning)).collect();
        if !open.is_empty() {
            form(request, people, entry, &open, out);
        }
    }
}

fn form(request: &BookRequest<'_>, people: &People, entry: &Entry, meanings: &[String], out: &mut String) {
    let token = csrf::token(request.site, request.caller, request.session.as_deref());
    let session = request.session.as_deref().and_then(|secret| people.by_session(secret).ok());
    let is_fresh = session.is_some_and(|who| people.has_fresh_login(&who).unwrap_or(false));
    // Without the user the form asks for a password, and its answer names the error.
    match people.signing_proof(&request.caller.login).unwrap_or(SigningProof::Password) {
        _ if is_fresh => {}
        SigningProof::Password => {}
        SigningProof::LogInAgain(method) => {
            let repeats = &request.site.config().repeats;
            if let Some((_, address)) = repeats.iter().find(|(name, _)| *name == method) {
                let entry = format!("{}/{}/{}", request.base_path(), escape(&request.book.name), entry.at.id);
                put!(
                    out,
                    "<p class=\"signing\"><a href=\"{}&amp;to={}\">Log in again to sign</a></p>\n",
                    address,
                    escape(&entry)
                );
            }
            return;
        }
        SigningProof::Nothing(method) => {
            put!(out, "<p class=\"signing note\">You cannot sign: the login method {} asks nobody for a password.</p>\n", method);
            return;
        }
    }
    put!(out, "<form class=\"signing\" method=\"post\" action=\"{}\">\n", entry.at.id);
    for (name, value) in [(csrf::FIELD, token.as_str()), (REVISION, entry.revision.to_string().as_str())] {
        put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
    }
    put!(out, "<label>Sign as <select name=\"{}\">", MEANING);
    for meaning in meanings {
        put!(out, "<option>{}</option>", meaning);
    }
    out.push_str("</select></label> ");
    if !is_fresh {
        put!(
            out,
            "<label>Password of {} <input type=\"password\" name=\"{}\" size=\"16\" autocomplete=\"current-password\" required></label> ",
            request.caller.login,
            PASSWORD
        );
    }
    let locks = people.signing_policy(&request.book.name).is_ok_and(|policy| policy.lock);
    let note = SafeHtml(if locks { " <span class=\"note\">A signed entry cannot be changed</span>" } else { "" });
    put!(out, "<button type=\"submit\" name=\"cmd\" value=\"{}\">Sign</button>{}</form>\n", PageCommand::Sign.name(), note);
}
