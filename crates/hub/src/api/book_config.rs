//! The configuration of logbooks as text, and its history.

use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;
use tampu_elog::book_config::{change_as_text, read, text};
use tampu_logbook::{
    book::{
        Book,
        change::{BookEdit, ConfigChange, ConfigText},
        elog_options::changed_of_site,
    },
    people::{Resource, Verb},
};

use super::call::{Answer, Call, GET, POST, PUT, Route, TEXT, ok};
use crate::http::{
    headers::set,
    problem::Problem,
    route::{IfMatch, json_of},
};

/// Changes of one response at most.
const MAX_LIST: usize = 50;
/// Faults of a text that a problem names.
const MAX_FAULTS: usize = 20;

/// Routes of configurations.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/config",
        id: "getConfig",
        what: "Returns the configuration of a logbook as the options of elogd.cfg, without passwords; needs the right 'admin'",
        gives: (200, json_of::<ConfigText>()),
        act: |call| {
            let book = administered(call)?;
            answer(&book)
        },
        ..GET
    },
    Route {
        path: "/books/{book}/config",
        id: "putConfig",
        what: "Changes the configuration of a logbook, after a check of the text; needs the right 'admin'",
        takes: json_of::<NewConfig>(),
        gives: (200, json_of::<ConfigText>()),
        body: TEXT,
        if_match: IfMatch::Required,
        act: |call| {
            let book = administered(call)?;
            let new: NewConfig = call.json()?;
            let new = read(&new.text, &book).map_err(|faults| {
                let shown: Vec<String> = faults.iter().take(MAX_FAULTS).map(ToString::to_string).collect();
                let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", shown.join("; ")).at("body text");
                problem.help("docs/reference/elog-options.md lists the options")
            })?;
            store(call, &book, &new, "")?;
            answer(&new)
        },
        ..PUT
    },
    Route {
        path: "/books/{book}/config/history",
        id: "listConfigChanges",
        what: "Lists changes of the configuration of a logbook, the last one first; needs the right 'admin'",
        query: &[("before", "integer", "changes with smaller numbers only"), ("limit", "integer", "at most this many, up to 50")],
        gives: (200, json_of::<Vec<ConfigChange>>()),
        act: |call| {
            let book = administered(call)?;
            let most = call.parsed::<usize>("limit")?.unwrap_or(MAX_LIST).min(MAX_LIST);
            let found = call.api.store.book_changes(&book.name, call.parsed("before")?, most)?;
            ok(&found.into_iter().map(|change| change_as_text(&change, false)).collect::<Vec<_>>())
        },
        ..GET
    },
    Route {
        path: "/books/{book}/config/history/{number}",
        id: "getConfigChange",
        what: "Returns a change of the configuration of a logbook, with the texts before and after; needs the right 'admin'",
        gives: (200, json_of::<ConfigChange>()),
        act: |call| {
            let book = administered(call)?;
            let found = call.api.store.book_change(&book.name, call.number(1, "number of a change")?)?;
            ok(&change_as_text(&found, true))
        },
        ..GET
    },
    Route {
        path: "/books/{book}/config/history/{number}/restore",
        id: "restoreConfig",
        what: "Restores the configuration after a change, or with 'before' the one before it; needs the right 'admin'",
        query: &[("before", "boolean", "the configuration before the change")],
        gives: (200, json_of::<ConfigText>()),
        act: |call| {
            let book = administered(call)?;
            let number = call.number(1, "number of a change")?;
            let found = call.api.store.book_change(&book.name, number)?;
            let before = call.flag("before")?;
            let restored = found.restored(before, &book).ok_or_else(|| {
                Problem::bad("query before", format!("the logbook was made by change {number}: there is nothing before it"))
            })?;
            let what = format!("restored {}{number}", if before { "before " } else { "" });
            store(call, &book, &restored, &what)?;
            answer(&restored)
        },
        ..POST
    },
];

/// A new text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewConfig {
    /// Lines `Name = value`.
    text: String,
}

/// Returns the logbook of the path, if the caller administers it.
fn administered(call: &Call<'_>) -> Result<Book, Problem> {
    call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
    Ok(call.api.store.book(call.var(0))?)
}

fn answer(book: &Book) -> Result<Answer, Problem> {
    let mut answer = ok(&ConfigText { text: text(book), version: book.version() })?;
    set(answer.headers_mut(), header::ETAG, &format!("\"{}\"", book.version()));
    Ok(answer)
}

/// Stores a changed configuration. `before` is the one that it was made of. Only administrators of the site change options
/// of the whole site.
pub fn store(call: &Call<'_>, before: &Book, after: &Book, what: &str) -> Result<(), Problem> {
    if let Some(option) = changed_of_site(before, after)
        && !call.who().admin
    {
        let text = format!("'{option}' decides about the users of all logbooks: only an administrator of the site changes it");
        return Err(Problem::new(StatusCode::FORBIDDEN, "no-right", text)
            .help(format!("leave '{option}' as it is, or log in as an administrator of the site")));
    }
    let expected = expected(call, before)?;
    let by = call.by();
    call.api.store.change_book(BookEdit { book: after, by: &by, what, expected: Some(&expected) })?;
    call.api.people.forget();
    Ok(())
}

/// Returns the version that the caller has read.
fn expected(call: &Call<'_>, present: &Book) -> Result<String, Problem> {
    let said = call.head.headers.get(header::IF_MATCH).map(|said| said.to_str().unwrap_or_default().trim());
    match said {
        None if call.route.if_match == IfMatch::Required => {
            let problem = Problem::new(StatusCode::PRECONDITION_REQUIRED, "no-revision", "the version to change is missing");
            Err(problem
                .at("header If-Match")
                .help("send the ETag the configuration was read with as If-Match; '*' changes any version"))
        }
        None | Some("*") => Ok(present.version()),
        Some(said) => Ok(said.trim_matches('"').to_owned()),
    }
}
