//! The page of a book's configuration, for its administrators: the options as text, their check, their history.

use http::StatusCode;
use tampu_logbook::{
    book::{
        Book,
        change::{BookChange, BookEdit},
        elog_options::changed_of_site,
    },
    store::StoreError,
};

use crate::{
    book_config::{ConfigFault, change_as_text, difference, read, text},
    pages::{
        account::{
            dialog::{Told, begin_form, tell},
            session_user::SessionUser,
        },
        clock::TIME_FORMAT,
        command::PageCommand,
        html::put,
        layout::{self, BookPage},
        request::BookRequest,
        response::{self, Response},
        sent::ReceivedForm,
    },
};

/// Changes that the page lists.
const LISTED: usize = 50;
/// Faults that the page lists.
const MAX_FAULTS: usize = 50;

/// Answers with the page, or with one change (`change=NUMBER`). The caller has checked the right.
pub fn page(request: &BookRequest<'_>) -> Response {
    let number = request.query.get("change").map(str::parse);
    match number {
        Some(Ok(number)) => match request.site.store.book_change(&request.book.name, number) {
            Ok(change) => one(request, &change),
            Err(error) => request.failed(&error),
        },
        Some(Err(_)) => layout::error(request, StatusCode::NOT_FOUND, "Error: there is no such change"),
        None => {
            let told =
                if request.query.get("saved").is_some() { Told::Done("The configuration was saved") } else { Told::Nothing };
            form(request, &text(&request.book), &request.book.version(), told, &[], StatusCode::OK)
        }
    }
}

fn form(
    request: &BookRequest<'_>,
    content: &str,
    version: &str,
    told: Told<'_>,
    faults: &[ConfigFault],
    status: StatusCode,
) -> Response {
    let mut body = layout::menu(request, None);
    put!(&mut body, "<div class=\"accounts\">\n<h1>Configuration of {}</h1>\n", request.book.name);
    tell(&mut body, told);
    if !faults.is_empty() {
        body.push_str("<ul class=\"faults\">\n");
        for fault in faults.iter().take(MAX_FAULTS) {
            put!(&mut body, "<li>{}</li>\n", fault.to_string());
        }
        body.push_str("</ul>\n");
    }
    let (columns, rows) = request.settings.admin_textarea();
    begin_form(request, &mut body, &[("cmd", "Admin"), ("version", version)]);
    put!(
        &mut body,
        "<p><label for=\"options\">Options of this logbook, as in its section of elogd.cfg</label></p>\n\
         <textarea id=\"options\" class=\"config\" name=\"options\" cols=\"{}\" rows=\"{}\" spellcheck=\"false\">\n{}</textarea>\n\
         <p><button name=\"act\" value=\"save\">Save</button> <button name=\"act\" value=\"check\">Check</button>\n\
         <span class=\"note\">(left out) stands for a password, and keeps it.</span></p></form>\n",
        columns,
        rows,
        content
    );
    match request.site.store.book_changes(&request.book.name, None, LISTED) {
        Ok(changes) => history(request, &changes, &mut body),
        Err(error) => return request.failed(&error),
    }
    body.push_str("</div>\n");
    BookPage::new(request, "Configuration", body).answer(status)
}

fn history(request: &BookRequest<'_>, changes: &[BookChange], body: &mut String) {
    body.push_str(
        "<h2>Changes</h2>\n<table class=\"selection\"><tr><th>Change</th><th>Time</th><th>User</th><th></th><th>Lines</th></tr>\n",
    );
    for change in changes {
        let told = change_as_text(change, false);
        put!(
            body,
            "<tr><td><a href=\"?cmd=Admin&amp;change={}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td>+{} -{}</td></tr>\n",
            told.number,
            told.number,
            request.zone.write(told.at, 0, TIME_FORMAT),
            told.by,
            told.what,
            told.added,
            told.removed
        );
    }
    body.push_str("</table>\n");
}

/// Shows a change: its difference, and the ways back.
fn one(request: &BookRequest<'_>, change: &BookChange) -> Response {
    let mut body = layout::menu(request, None);
    put!(
        &mut body,
        "<div class=\"accounts\">\n<h1>Configuration of {}: change {}</h1>\n<p>{} by {}, {}</p>\n<pre class=\"config diff\">",
        request.book.name,
        change.number,
        request.zone.write(change.at, 0, TIME_FORMAT),
        change.by,
        change.what
    );
    let (before, after) = (change.before.as_ref().map(text).unwrap_or_default(), text(&change.after));
    for line in difference(&before, &after) {
        match line.mark {
            '+' => put!(&mut body, "<ins>+ {}</ins>\n", line.text),
            '-' => put!(&mut body, "<del>- {}</del>\n", line.text),
            _ => put!(&mut body, "  {}\n", line.text),
        }
    }
    body.push_str("</pre>\n");
    let number = change.number.to_string();
    let version = request.book.version();
    let ways = [
        (true, "undo", "Undo this change: restore the configuration before it"),
        (false, "restore", "Restore the configuration after it"),
    ];
    for (before, act, label) in ways {
        if change.restored(before, &request.book).is_none_or(|book| book == request.book) {
            continue;
        }
        begin_form(request, &mut body, &[("cmd", "Admin"), ("version", &version), ("change", &number)]);
        put!(&mut body, "<p><button name=\"act\" value=\"{}\">{}</button></p></form>\n", act, label);
    }
    body.push_str("<p class=\"steps\"><a href=\"?cmd=Admin\">Configuration</a></p></div>\n");
    BookPage::new(request, "Configuration", body).answer(StatusCode::OK)
}

/// Carries out what a form of this page asks for.
pub fn act(request: &BookRequest<'_>, sent: &ReceivedForm) -> Response {
    if let Err(denied) = request.may(PageCommand::Admin) {
        return request.refuse(denied);
    }
    let done = match sent.text("act") {
        act @ ("save" | "check") => save(request, sent, act == "check"),
        act @ ("undo" | "restore") => restore(request, sent, act == "undo"),
        _ => Err(Box::new(layout::error(request, StatusCode::BAD_REQUEST, "Error: the form asks for nothing"))),
    };
    done.unwrap_or_else(|answer: Box<Response>| *answer)
}

fn save(request: &BookRequest<'_>, sent: &ReceivedForm, only_check: bool) -> Result<Response, Box<Response>> {
    // Browsers send lines with CR LF.
    let (content, version) = (sent.get("options").unwrap_or_default().replace('\r', ""), sent.text("version"));
    let again = |told: Told<'_>, faults: &[ConfigFault], status| form(request, &content, version, told, faults, status);
    let new = read(&content, &request.book)
        .map_err(|faults| Box::new(again(Told::Wrong("Nothing was saved"), &faults, StatusCode::UNPROCESSABLE_ENTITY)))?;
    if only_check {
        return Ok(again(Told::Done("The configuration has no fault; it is not saved yet"), &[], StatusCode::OK));
    }
    let by_other = "Another user has changed the configuration meanwhile: copy your text, and load the page again";
    store(request, &new, "", version)
        .map_err(|error| error.unwrap_or_else(|| Box::new(again(Told::Wrong(by_other), &[], StatusCode::CONFLICT))))
}

fn restore(request: &BookRequest<'_>, sent: &ReceivedForm, before: bool) -> Result<Response, Box<Response>> {
    let number = sent.number("change").unwrap_or_default();
    let change = request.site.store.book_change(&request.book.name, number).map_err(|error| Box::new(request.failed(&error)))?;
    let Some(book) = change.restored(before, &request.book) else {
        let text = "Error: this change made the logbook: there is nothing before it";
        return Err(Box::new(layout::error(request, StatusCode::BAD_REQUEST, text)));
    };
    let what = format!("restored {}{number}", if before { "before " } else { "" });
    store(request, &book, &what, sent.text("version")).map_err(|error| {
        let changed = || Box::new(request.failed(&StoreError::BookChanged(request.book.name.clone())));
        error.unwrap_or_else(changed)
    })
}

/// Stores a configuration. An error without a response means that another user has changed it meanwhile.
fn store(request: &BookRequest<'_>, new: &Book, what: &str, version: &str) -> Result<Response, Option<Box<Response>>> {
    if let Some(option) = changed_of_site(&request.book, new)
        && !administers_site(request)
    {
        let text =
            format!("Error: '{option}' decides about the users of all logbooks: only an administrator of the site changes it");
        return Err(Some(Box::new(layout::error(request, StatusCode::FORBIDDEN, &text))));
    }
    let by = match request.caller.login.as_str() {
        "" => format!("guest@{}", request.caller.from),
        login => login.to_owned(),
    };
    match request.site.store.change_book(BookEdit { book: new, by: &by, what, expected: Some(version) }) {
        Ok(_) => {
            if let Some(people) = &request.site.people {
                people.forget();
            }
            let name = &request.book.name;
            let what = if what.is_empty() { "changed" } else { what };
            Ok(response::done(response::redirect("?cmd=Admin&saved=1"), format!("configuration of '{name}': {what}")))
        }
        Err(StoreError::BookChanged(_)) => Err(None),
        Err(error) => Err(Some(Box::new(request.failed(&error)))),
    }
}

/// Returns true for an administrator of the site, and for everybody where the site has no users.
fn administers_site(request: &BookRequest<'_>) -> bool {
    request.site.people.is_none() || request.site.is_open() || SessionUser::of(request).is_ok_and(|user| user.principal.admin)
}
