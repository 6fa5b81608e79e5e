//! What changes a book: forms of browsers, and what ELOG's programs send.
//!
//! | asked for | module |
//! |-|-|
//! | `cmd=Submit`: a new entry, an answer, a change; a draft | [`submit`], [`content`] |
//! | `cmd=Delete`, `Copy to`, `Move to` | [`transfer`] |
//! | the same and `Edit` of several entries that were selected | [`many`] |
//! | `cmd=CSV Import`, `XML Import` | [`import`] |
//! | logging in and out | [`login`] |
//!
//! Who asks is who the request's own `unm` and `upwd` say, as ELOG's programs send them; else whom the hub knows by session or token. Changes that come
//! from a browser or with a session need the field of our own forms ([`super::csrf`]).

use http::{
    StatusCode,
    header::{CONTENT_LENGTH, HeaderValue},
};

use super::{
    Ask, BookAsk, Caller, Request, Response,
    access::Denied,
    address::Parameters,
    command::Command,
    csrf,
    html::{Raw, put},
    layout,
    multipart::{BadBody, Limits},
    sent::{BadForm, Form},
};
use crate::{
    entry::EntryRef,
    people::{PeopleError, Right},
    store::MAX_ATTACHMENT,
};

pub mod content;
pub mod import;
pub mod login;
pub mod many;
pub mod submit;
pub mod transfer;

pub use import::import_form;
pub use login::logout;
pub use transfer::{copy_to, delete, move_to};

/// Who has posted what a guest posts; no login can be called so.
pub const GUEST: &str = "(guest)";

/// By whom a lock is that a guest's form has, by its key.
pub fn guest_with(key: &str) -> String {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
    format!("{GUEST} {key}")
}

/// A form that was sent to the page of all books: to log in.
pub fn outside(ask: &Ask<'_>, request: Request<'_>) -> Response {
    let limits = Limits { parts: 100, field: 64 << 10, fields: 256 << 10, file: 0, total: 1 << 20, ..Limits::default() };
    let form = match received(ask, request, &limits, &mut |_| false) {
        Ok(form) => form,
        Err(answer) => return *answer,
    };
    let logs_out = form.get("cmd").and_then(Command::named) == Some(Command::Logout);
    match form.get("uname") {
        Some(_) => login::login(ask, None, &form),
        None if logs_out && csrf::is_meant(ask, form.get(csrf::FIELD)) => login::logout(ask),
        None if logs_out => unmeant(ask),
        None => layout::error(ask, StatusCode::NOT_FOUND, "Error: No logbook specified"),
    }
}

/// Whatever is posted to a book.
pub fn answer(ask: &BookAsk<'_>, request: Request<'_>) -> Response {
    let total = ask.settings.max_content().unwrap_or(MAX_ATTACHMENT);
    let limits = Limits { file: total, total, ..Limits::default() };
    // Programs say who they are before they send files; from whom may write nothing, no file is taken.
    let mut refused = None;
    let mut welcome = |form: &Form| {
        let may_write = |caller: &Caller| {
            [Right::Write, Right::EditOwn, Right::EditAny].iter().any(|right| caller.rights.may(*right, &ask.book.name))
        };
        match named(ask, form) {
            Ok(Some(caller)) if may_write(&caller) => true,
            Ok(None) if may_write(ask.caller) => true,
            Ok(Some(caller)) => {
                refused = Some(Box::new(not_allowed(&ask.as_program(&caller))));
                false
            }
            Ok(None) => {
                refused = Some(Box::new(not_allowed(ask)));
                false
            }
            Err(answer) => {
                refused = Some(answer);
                false
            }
        }
    };
    let form = match received(ask, request, &limits, &mut welcome) {
        Ok(form) => form,
        Err(answer) => return *refused.unwrap_or(answer),
    };
    if form.get("uname").is_some() {
        return login::login(ask, Some(&ask.book), &form);
    }
    match named(ask, &form) {
        Ok(None) => perform(ask, form),
        Ok(Some(caller)) => perform(&ask.as_program(&caller), form),
        Err(answer) => *answer,
    }
}

/// The answer to who may not post.
fn not_allowed(ask: &BookAsk<'_>) -> Response {
    let denied = ask.may(Command::New).err().unwrap_or(Denied::Login);
    ask.refuse(denied)
}

/// Reads a form, after its address. The answer to what cannot be read is boxed, because it is seldom and large.
fn received(
    ask: &Ask<'_>,
    request: Request<'_>,
    limits: &Limits,
    welcome: &mut dyn FnMut(&Form) -> bool,
) -> Result<Form, Box<Response>> {
    let (parts, body) = request.into_parts();
    if csrf::is_foreign(&parts.headers, &ask.base) {
        let text = "Error: this form was sent by a page of another site";
        return Err(Box::new(layout::error(ask, StatusCode::FORBIDDEN, text)));
    }
    let mut form = Form::of_query(parts.uri.query().unwrap_or_default());
    let empty = parts.headers.get(CONTENT_LENGTH).is_some_and(|length| length.as_bytes() == b"0");
    if empty {
        return Ok(form);
    }
    match form.read(&parts.headers, body, ask.site.store(), limits, welcome) {
        Ok(()) => Ok(form),
        Err(bad) => Err(Box::new(refused_form(ask, &bad))),
    }
}

fn refused_form(ask: &Ask<'_>, bad: &BadForm) -> Response {
    let status = match bad {
        BadForm::Store(error) => return ask.failed(error),
        BadForm::Unwelcome => StatusCode::FORBIDDEN,
        BadForm::Body(bad) if bad.is_too_much() => StatusCode::PAYLOAD_TOO_LARGE,
        BadForm::Body(BadBody::NoForm(_)) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        BadForm::Body(_) => StatusCode::BAD_REQUEST,
    };
    layout::error(ask, status, &format!("Error: {bad}"))
}

/// Who a program says it is; none if it says nothing, or if nobody can log in here.
fn named(ask: &BookAsk<'_>, form: &Form) -> Result<Option<Caller>, Box<Response>> {
    let (Some(people), Some(name), Some(password)) = (&ask.site.people, form.get("unm"), form.get("upwd")) else {
        return Ok(None);
    };
    match people.is_open() {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(error) => return Err(Box::new(login::failed(ask, &error))),
    }
    match people.by_password(name, password, ask.caller.from) {
        Ok(principal) => Ok(Some(principal.caller(ask.caller.from))),
        // ELOG's programs look for this word.
        Err(PeopleError::Wrong) => Err(Box::new(layout::redirect(&ask.address("?fail=1")))),
        Err(error) => Err(Box::new(login::failed(ask, &error))),
    }
}

impl<'a> BookAsk<'a> {
    /// The same request of somebody who said in it who they are.
    fn as_program(&self, caller: &'a Caller) -> BookAsk<'a> {
        let ask = Ask {
            site: self.site,
            caller,
            place: self.place.clone(),
            query: self.query.clone(),
            base: self.base.clone(),
            root: self.root,
            session: None,
            by_browser: false,
            coming: self.coming,
            stop: self.stop.clone(),
            now: self.now,
        };
        BookAsk { ask, book: self.book.clone(), settings: self.settings.clone() }
    }

    /// Who has posted, deleted or changed what this request posts, deletes or changes.
    pub(super) fn by(&self) -> &str {
        if self.caller.login.is_empty() { GUEST } else { &self.caller.login }
    }
}

/// What a form asks for.
fn perform(ask: &BookAsk<'_>, form: Form) -> Response {
    // ELOG's scripts say in a field of their own what was pressed.
    let asked = form.get("jcmd").filter(|command| !command.is_empty()).or_else(|| form.get("cmd")).unwrap_or_default();
    let command = match Command::named(asked) {
        Some(command) => command,
        None if asked.is_empty() && form.get("text").is_some() => Command::Submit,
        None => return layout::error(ask, StatusCode::NOT_FOUND, &format!("Error: the command \"{asked}\" is not known")),
    };
    let id = match (&ask.place, form.number("edit_id").or_else(|| form.number("id"))) {
        (super::Place::Entry(id), _) => Some(*id),
        (_, id) => id,
    };
    let changes = !matches!(command, Command::Back | Command::List | Command::Search | Command::Find | Command::Update);
    if changes && !csrf::is_meant(ask, form.get(csrf::FIELD)) {
        return unmeant(ask);
    }
    if many::is_of_many(&form) {
        return many::answer(ask, &form, command);
    }
    match (command, id) {
        (Command::Submit | Command::Save, _) => submit::submit(ask, form),
        (Command::Update, _) => submit::again(ask, &form),
        (Command::Delete, Some(id)) => transfer::deleted(ask, id, form.text("confirm")),
        (Command::CopyTo, Some(id)) => transfer::copied(ask, id, form.text("destc")),
        (Command::MoveTo, Some(id)) => transfer::moved(ask, id, form.text("destm")),
        (Command::CsvImport | Command::XmlImport, _) => import::import(ask, &form, command),
        (Command::Logout, _) => login::logout(ask),
        (Command::Config | Command::ChangePassword | Command::Forgot, _) => not_here(ask),
        (Command::Back, Some(id)) => {
            match ask.site.store().unlock(&EntryRef::new(&ask.book.name, id), &submit::holder(ask, &form)) {
                Ok(()) => layout::redirect(&ask.address(&id.to_string())),
                Err(error) => ask.failed(&error),
            }
        }
        (Command::Search | Command::Find, _) => {
            let kept =
                form.fields.into_iter().filter(|(name, value)| !value.is_empty() && !matches!(name.as_str(), "cmd" | "jcmd"));
            layout::redirect(&ask.address(&Parameters(kept.collect()).written()))
        }
        _ => match id {
            Some(id) => layout::redirect(&ask.address(&id.to_string())),
            None => layout::redirect(&ask.address("")),
        },
    }
}

/// What is done by who administers the site, not on a page.
pub fn not_here(ask: &Ask<'_>) -> Response {
    let text = "Error: configuration and passwords are not changed here: ask who administers the logbook (tampu book users, tampu book make)";
    layout::error(ask, StatusCode::FORBIDDEN, text)
}

/// A change that nobody here may have meant.
fn unmeant(ask: &Ask<'_>) -> Response {
    let text = "Error: this form is not of this site, or too old: go back, load the page again, and send it once more";
    layout::error(ask, StatusCode::FORBIDDEN, text)
}

/// A page that says in HTML what is wrong, where ELOG's programs look for it.
fn refusal(ask: &Ask<'_>, status: StatusCode, html: &str) -> Response {
    let mut body = String::new();
    put!(&mut body, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr></table>\n", Raw(html));
    layout::plain(ask, status, "ELOG error", &body)
}

/// How long somebody has to wait, as a header.
fn retry_after(answer: &mut Response, seconds: u64) {
    answer.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
}
