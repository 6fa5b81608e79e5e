//! `cmd=Sign`: a signature of an entry, at the revision that the page has shown.

use http::StatusCode;
use tampu_logbook::{
    people::{PeopleError, Principal, registry::signing::SigningProof},
    signature::NewSignature,
    store::StoreError,
};

use crate::pages::{
    command::PageCommand,
    layout,
    post::transfer::{RefusedResponse, allowed, failed},
    refusal,
    request::BookRequest,
    response::{self, Response},
    sent::ReceivedForm,
    signing::{MEANING, PASSWORD, REVISION},
};

/// Signs an entry.
pub fn signed(request: &BookRequest<'_>, form: &ReceivedForm, id: u32) -> Response {
    try_sign(request, form, id).unwrap_or_else(|refused| *refused)
}

fn try_sign(request: &BookRequest<'_>, form: &ReceivedForm, id: u32) -> Result<Response, RefusedResponse> {
    allowed(request, PageCommand::Sign)?;
    let entry = request.read_entry(id).map_err(|error| failed(request, &error))?;
    let Some(people) = &request.site.people else {
        return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, "Error: this site has no users who could sign")));
    };
    let wrong = |error: PeopleError| Box::new(refusal::people_failed(request, &error));
    // Without a number the form has shown no revision.
    let revision = form.text(REVISION).parse().unwrap_or(u32::MAX);
    if revision != entry.revision {
        return Err(failed(request, &StoreError::Changed { at: entry.at, expected: revision, is: entry.revision }));
    }
    let who: Principal = match &request.session {
        Some(secret) => people.by_session(secret).map_err(wrong)?,
        None => people.guest().map_err(wrong)?,
    };
    if let SigningProof::Nothing(method) = people.signing_proof(&request.caller.login).map_err(wrong)? {
        return Err(wrong(PeopleError::NoProof { login: request.caller.login.clone(), method }));
    }
    let password = form.get(PASSWORD).filter(|password| !password.is_empty());
    let (person, method) = people.signer(&who, Some(&request.caller.login), password, request.caller.from).map_err(wrong)?;
    let (book, meaning) = (&request.book.name, form.text(MEANING));
    if !people.sees_whole_entries(&person, book).map_err(wrong)? {
        let text = "Error: a signature covers all attributes of an entry, and some of them are hidden from you";
        return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
    }
    if !people.meanings(&person.login, book).map_err(wrong)?.iter().any(|mine| mine == meaning) {
        let text = format!("Error: you may not sign entries of this logbook as \"{meaning}\"");
        return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, &text)));
    }
    let locks = people.signing_policy(book).map_err(wrong)?.lock;
    let (by, name, meaning) = (person.login, person.full_name, meaning.to_owned());
    let new = NewSignature { at: entry.at, revision, by, name, meaning, method, locks };
    request.site.store().sign(&new).map_err(|error| failed(request, &error))?;
    Ok(response::redirect(&request.address(&id.to_string())))
}
