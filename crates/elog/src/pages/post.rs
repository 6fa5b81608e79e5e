//! Changes of a book: forms of browsers, and requests of ELOG's programs.
//!
//! | requested by | module |
//! |-|-|
//! | `cmd=Submit`: a new entry, a reply, a change; a draft | [`submit`], [`content`] |
//! | `cmd=Delete`, `Copy to`, `Move to` | [`transfer`] |
//! | `cmd=Tick`: items of a checklist | `ticks` |
//! | `cmd=Sign`: a signature | `signing` |
//! | `cmd=Editing`: the script of an open form | `editing` |
//! | the same and `Edit` of several selected entries | [`many`] |
//! | `cmd=CSV Import`, `XML Import` | [`import`] |
//! | logging in and out | [`login`] |
//!
//! The caller is the user of the request's own `unm` and `upwd`, as ELOG's programs send them. Without these, the
//! caller is the user of the session or token. Changes by a browser or in a session need the hidden field of this
//! site's forms ([`super::csrf`]).

use std::sync::atomic::{AtomicI64, Ordering};

use http::{Method, StatusCode, header::CONTENT_LENGTH};
use tampu_logbook::{
    entry::EntryRef,
    people::{Caller, PeopleError, Right},
    store::MAX_ATTACHMENT,
};
use tampu_types::Time;

use crate::pages::{
    access::AccessDenied,
    account,
    address::Parameters,
    book_config, browser,
    command::PageCommand,
    csrf, form, hosts, layout,
    multipart::{BadBody, FormLimits},
    refusal,
    request::{BookRequest, HttpRequest, PageRequest},
    response::{self, LoggedFailure, Response},
    sent::{BadForm, ReceivedForm},
};

mod conflict;
pub mod content;
mod editing;
pub mod import;
pub mod login;
pub mod many;
mod propagate;
mod resubmit;
mod signing;
pub mod submit;
mod ticks;
pub mod transfer;

pub use import::import_form;
pub use transfer::{copy_to, delete, move_to};

/// Answers a form that was sent to the page of all books: the login form.
pub fn outside(request: &PageRequest<'_>, incoming: HttpRequest<'_>) -> Response {
    let limits = FormLimits { parts: 100, field: 64 << 10, fields: 256 << 10, file: 0, total: 1 << 20, ..FormLimits::default() };
    let form = match received(request, incoming, &limits, &mut |_| false) {
        Ok(form) => form,
        Err(answer) => return *answer,
    };
    if request.query.get(account::approval::TOKEN).is_some() {
        // The token is the proof, and another site does not have it.
        return account::approval::answer(request, &Method::POST, &form);
    }
    let command = form.get("cmd").and_then(PageCommand::named);
    let logs_out = command == Some(PageCommand::Logout);
    let is_own = || csrf::is_own_form(request, form.get(csrf::FIELD));
    match form.get("uname") {
        Some(_) => login::login(request, None, &form),
        None if logs_out && is_own() => login::logout(request, None, form.get(login::EVERYWHERE).is_some()),
        None if logs_out => form_not_ours(request),
        None if !is_own() => form_not_ours(request),
        None => command
            .and_then(|command| account::sent(request, None, command, &form))
            .unwrap_or_else(|| layout::error(request, StatusCode::NOT_FOUND, "Error: No logbook specified")),
    }
}

/// Answers a form that was posted to a book.
pub fn answer(request: &BookRequest<'_>, incoming: HttpRequest<'_>) -> Response {
    let total = request.settings.max_content().unwrap_or(MAX_ATTACHMENT);
    let limits = FormLimits { file: total, total, ..FormLimits::default() };
    // Programs name their user before they send files; from a user who may not write, no file is accepted.
    let mut refused = None;
    let mut welcome = |form: &ReceivedForm| match named(request, form) {
        Ok(Some(caller)) if may_write(request, &caller) => true,
        Ok(None) if may_write(request, request.caller) => true,
        Ok(Some(caller)) => {
            refused = Some(Box::new(not_allowed(&request.as_program(&caller))));
            false
        }
        Ok(None) => {
            refused = Some(Box::new(not_allowed(request)));
            false
        }
        Err(answer) => {
            refused = Some(answer);
            false
        }
    };
    let form = match received(request, incoming, &limits, &mut welcome) {
        Ok(form) => form,
        Err(answer) => return *refused.unwrap_or(answer),
    };
    if form.get("uname").is_some() {
        return login::login(request, Some(&request.book), &form);
    }
    match named(request, &form) {
        Ok(None) => perform(request, form),
        Ok(Some(caller)) => perform(&request.as_program(&caller), form),
        Err(answer) => *answer,
    }
}

/// Returns true if a caller may change something in the logbook.
fn may_write(request: &BookRequest<'_>, caller: &Caller) -> bool {
    [Right::Write, Right::EditOwn, Right::EditAny].iter().any(|right| caller.rights.may(*right, &request.book.name))
}

/// Rejects a caller who may not post.
fn not_allowed(request: &BookRequest<'_>) -> Response {
    let denied = request.may(PageCommand::New).err().unwrap_or(AccessDenied::Login);
    request.refuse(denied)
}

/// Reads a form, after the parameters of its address. The error response is boxed, because it is rare and large.
fn received(
    request: &PageRequest<'_>,
    incoming: HttpRequest<'_>,
    limits: &FormLimits,
    welcome: &mut dyn FnMut(&ReceivedForm) -> bool,
) -> Result<ReceivedForm, Box<Response>> {
    let (parts, body) = incoming.into_parts();
    if browser::is_foreign(&parts.headers, &request.base) {
        let text = "Error: this form was sent by a page of another site";
        return Err(Box::new(layout::error(request, StatusCode::FORBIDDEN, text)));
    }
    let mut form = ReceivedForm::of_query(parts.uri.query().unwrap_or_default());
    let empty = parts.headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() == b"0");
    if empty {
        return Ok(form);
    }
    match form.read(&parts.headers, body, request.site.store(), limits, welcome) {
        Ok(()) => Ok(form),
        Err(bad) => Err(Box::new(refused_form(request, &bad))),
    }
}

fn refused_form(request: &PageRequest<'_>, bad: &BadForm) -> Response {
    let status = match bad {
        BadForm::Store(error) => return request.failed(error),
        BadForm::Unwelcome => StatusCode::FORBIDDEN,
        BadForm::Body(bad) if bad.is_too_much() => StatusCode::PAYLOAD_TOO_LARGE,
        BadForm::Body(bad) if bad.is_disk_full() => {
            let text = "Error: The disk of the logbook is full; nothing was changed";
            return layout::error(request, StatusCode::INSUFFICIENT_STORAGE, text);
        }
        BadForm::Body(BadBody::NoForm(_)) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        BadForm::Body(_) => StatusCode::BAD_REQUEST,
    };
    layout::error(request, status, &format!("Error: {bad}"))
}

/// Returns the user that a program names. Returns `None` if it names no user, or if the site has no logins.
fn named(request: &BookRequest<'_>, form: &ReceivedForm) -> Result<Option<Caller>, Box<Response>> {
    let (Some(people), Some(name), Some(password)) = (&request.site.people, form.get("unm"), form.get("upwd")) else {
        return Ok(None);
    };
    match people.is_open() {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(error) => return Err(Box::new(refusal::people_failed(request, &error))),
    }
    match people.by_password(name, password, request.caller.from) {
        Ok(principal) => Ok(Some(principal.caller(request.caller.from))),
        Err(PeopleError::Wrong) => {
            // ELOG's programs look for this word.
            let mut answer = response::redirect(&request.address("?fail=1"));
            if is_digest(password) && !people.accepts_elog_digests() && is_due(request.now) {
                answer.extensions_mut().insert(LoggedFailure(format!(
                    "a program sent a digest of ELOG in place of the password of '{}'; [book] accept_elog_hashes = true accepts digests",
                    name.escape_debug()
                )));
            }
            Err(Box::new(answer))
        }
        Err(error) => Err(Box::new(refusal::people_failed(request, &error))),
    }
}

/// Returns true for a text of the form of ELOG's digests: 43 characters of the alphabet of crypt.
fn is_digest(password: &str) -> bool {
    password.len() == 43 && password.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'))
}

/// Returns true at most once a minute, so that no program fills the log.
fn is_due(now: Time) -> bool {
    static LAST: AtomicI64 = AtomicI64::new(i64::MIN);
    let minute = now.0.div_euclid(60_000_000_000);
    LAST.swap(minute, Ordering::Relaxed) != minute
}

impl<'a> BookRequest<'a> {
    /// Returns the same request of the user that a program has named in it.
    fn as_program(&self, caller: &'a Caller) -> BookRequest<'a> {
        let request = PageRequest {
            site: self.site,
            caller,
            target: self.target.clone(),
            query: self.query.clone(),
            base: self.base.clone(),
            root: self.root,
            session: None,
            by_browser: false,
            origin: self.origin,
            stop: self.stop.clone(),
            now: self.now,
            zone: self.zone.clone(),
            words: self.words.clone(),
        };
        BookRequest { request, book: self.book.clone(), settings: self.settings.clone() }
    }
}

/// Executes the command of a form.
fn perform(request: &BookRequest<'_>, form: ReceivedForm) -> Response {
    // ELOG's scripts name the pressed button in a field of its own.
    let pressed = form.get("jcmd").filter(|command| !command.is_empty()).or_else(|| form.get("cmd")).unwrap_or_default();
    let command = match PageCommand::named(pressed) {
        Some(command) => command,
        None if pressed.is_empty() && form.get("text").is_some() => PageCommand::Submit,
        None => return layout::error(request, StatusCode::NOT_FOUND, &format!("Error: the command \"{pressed}\" is not known")),
    };
    let id = match (&request.target, form.number("edit_id").or_else(|| form.number("id"))) {
        (crate::pages::address::AddressTarget::Entry(id), _) => Some(*id),
        (_, id) => id,
    };
    let changes = !matches!(
        command,
        PageCommand::Back
            | PageCommand::List
            | PageCommand::Search
            | PageCommand::Find
            | PageCommand::Update
            | PageCommand::Preview
    );
    if changes && !csrf::is_own_form(request, form.get(csrf::FIELD)) {
        return form_not_ours(request);
    }
    if many::is_of_many(&form) {
        return many::answer(request, &form, command);
    }
    if hosts::open_to(&request.settings, request.caller.from)
        && let Some(answer) = account::sent(request, Some(request), command, &form)
    {
        return answer;
    }
    match (command, id) {
        (PageCommand::Submit | PageCommand::Save, _) => submit::submit(request, form),
        (PageCommand::Update | PageCommand::Preview, _) => submit::again(request, &form),
        (PageCommand::DropDraft, _) => form::dropped(request, &form),
        (PageCommand::Tick, Some(id)) => ticks::ticked(request, &form, id),
        (PageCommand::Sign, Some(id)) => signing::signed(request, &form, id),
        (PageCommand::Editing, Some(id)) => editing::answer(request, &form, id),
        (PageCommand::Delete, Some(id)) => transfer::deleted(request, id, form.text("confirm")),
        (PageCommand::CopyTo, Some(id)) => transfer::copied(request, id, form.text("destc")),
        (PageCommand::MoveTo, Some(id)) => transfer::moved(request, id, form.text("destm")),
        (PageCommand::CsvImport | PageCommand::XmlImport, _) => import::import(request, &form, command),
        (PageCommand::Logout, _) => login::logout(request, Some(&request.book), form.get(login::EVERYWHERE).is_some()),
        (PageCommand::Admin, _) => book_config::act(request, &form),
        (PageCommand::Config | PageCommand::ChangePassword | PageCommand::Forgot, _) => not_here(request),
        (PageCommand::Back, Some(id)) if may_write(request, request.caller) => {
            match request.site.store().unlock(&EntryRef::new(&request.book.name, id), &conflict::holder(request, &form)) {
                Ok(()) => response::redirect(&request.address(&id.to_string())),
                Err(error) => request.failed(&error),
            }
        }
        (PageCommand::Search | PageCommand::Find, _) => {
            let kept =
                form.fields.into_iter().filter(|(name, value)| !value.is_empty() && !matches!(name.as_str(), "cmd" | "jcmd"));
            response::redirect(&request.address(&Parameters(kept.collect()).written()))
        }
        _ => match id {
            Some(id) => response::redirect(&request.address(&id.to_string())),
            None => response::redirect(&request.address("")),
        },
    }
}

/// Rejects a page of accounts that is not open to this caller.
pub fn not_here(request: &PageRequest<'_>) -> Response {
    let text = "Error: this page is not open here: ask the logbook's administrator";
    layout::error(request, StatusCode::FORBIDDEN, text)
}

/// Rejects a change that the caller may not have intended.
fn form_not_ours(request: &PageRequest<'_>) -> Response {
    let text = "Error: this form is from another site, or too old: go back, load the page again, and send it once more";
    layout::error(request, StatusCode::FORBIDDEN, text)
}
