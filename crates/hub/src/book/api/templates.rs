//! Templates of a logbook: what an entry of a kind begins as.

use http::{Method, StatusCode};
use serde::Serialize;
use tampu_logbook::{
    people::{Resource, Verb},
    template::{self, Template, Values},
};

use super::{
    Answer, Call,
    Content::{Json, List, Nothing},
    Needs, Route, nothing, ok,
};
use crate::book::{now, problem::Problem};

/// The routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/books/{book}/templates",
        id: "listTemplates",
        what: "The templates of a logbook, by name",
        query: &[],
        takes: Nothing,
        gives: (200, List("TemplateName")),
        needs: Needs::Nobody,
        act: |call| {
            call.ask(Verb::Read, Resource::Book(call.var(0)))?;
            let names = template::names(&*call.api.store, call.var(0))?;
            ok(&names.into_iter().map(|name| Name { name }).collect::<Vec<_>>())
        },
    },
    Route {
        method: Method::GET,
        path: "/books/{book}/templates/{name}",
        id: "getTemplate",
        what: "A template; with 'filled' as an entry of who asks would begin now",
        query: &[("filled", "boolean", "with the date, the author and the like in place of their names")],
        takes: Nothing,
        gives: (200, Json("Template")),
        needs: Needs::Nobody,
        act: get,
    },
    Route {
        method: Method::PUT,
        path: "/books/{book}/templates/{name}",
        id: "putTemplate",
        what: "Makes or changes a template, for who administers the logbook",
        query: &[],
        takes: Json("Template"),
        gives: (200, Json("Template")),
        needs: Needs::Nobody,
        act: |call| {
            call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
            let said: Template = call.json()?;
            template::save(&*call.api.store, call.var(0), call.var(1), &said)?;
            ok(&said)
        },
    },
    Route {
        method: Method::DELETE,
        path: "/books/{book}/templates/{name}",
        id: "dropTemplate",
        what: "Forgets a template, for who administers the logbook",
        query: &[],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::Nobody,
        act: |call| {
            call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
            template::forget(&*call.api.store, call.var(0), call.var(1))?.then_some(()).ok_or_else(|| gone(call))?;
            nothing()
        },
    },
];

#[derive(Serialize)]
struct Name {
    name: String,
}

fn gone(call: &Call<'_>) -> Problem {
    let detail = format!("'{}' has no template '{}'", call.var(0).escape_debug(), call.var(1).escape_debug());
    Problem::new(StatusCode::NOT_FOUND, "not-there", detail)
}

fn get(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let filled = call.flag("filled")?;
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let found = template::load(&*call.api.store, call.var(0), call.var(1))?.ok_or_else(|| gone(call))?;
    if filled {
        let content = found.content(&Values::at(now(), &call.who().full_name, call.var(0)));
        let (attributes, encoding, text) = (content.attributes, content.encoding, content.text);
        return ok(&Template { attributes, encoding, text });
    }
    ok(&found)
}
