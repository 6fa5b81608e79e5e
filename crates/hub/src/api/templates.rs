//! Templates of a logbook: the initial content of an entry of some kind.

use schemars::JsonSchema;
use serde::Serialize;
use tampu_logbook::{
    people::{Resource, Verb},
    template::{Template, Values},
};

use super::call::{Answer, Call, DELETE, GET, PUT, Route, TEXT, nothing, ok};
use crate::http::route::{Content::Nothing, json_of};
use crate::{clock::now, http::problem::Problem};

/// Routes of templates.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/templates",
        id: "listTemplates",
        what: "Lists the templates of a logbook, by name",
        gives: (200, json_of::<Vec<TemplateName>>()),
        act: |call| {
            call.ask(Verb::Read, Resource::Book(call.var(0)))?;
            let names = call.api.store.templates(call.var(0))?;
            ok(&names.into_iter().map(|name| TemplateName { name }).collect::<Vec<_>>())
        },
        ..GET
    },
    Route {
        path: "/books/{book}/templates/{name}",
        id: "getTemplate",
        what: "Returns a template; with 'filled' its placeholders are filled in for the caller and the current time",
        query: &[("filled", "boolean", "with the date, the author and other placeholders filled in")],
        gives: (200, json_of::<Template>()),
        act: get,
        ..GET
    },
    Route {
        path: "/books/{book}/templates/{name}",
        id: "putTemplate",
        what: "Makes or changes a template; needs the right 'admin'",
        takes: json_of::<Template>(),
        body: TEXT,
        gives: (200, json_of::<Template>()),
        act: |call| {
            call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
            let said: Template = call.json()?;
            call.api.store.save_template(call.var(0), call.var(1), &said)?;
            ok(&said)
        },
        ..PUT
    },
    Route {
        path: "/books/{book}/templates/{name}",
        id: "dropTemplate",
        what: "Deletes a template; needs the right 'admin'",
        gives: (204, Nothing),
        act: |call| {
            call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
            call.api.store.drop_template(call.var(0), call.var(1))?;
            nothing()
        },
        ..DELETE
    },
];

#[derive(Serialize, JsonSchema)]
struct TemplateName {
    name: String,
}

fn get(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let filled = call.flag("filled")?;
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let found = call.api.store.template(call.var(0), call.var(1))?;
    if filled {
        let content = found.content(&Values::at(now(), &call.who().full_name, call.var(0)));
        let (attributes, encoding, text) = (content.attributes, content.encoding, content.text);
        return ok(&Template { attributes, encoding, text });
    }
    ok(&found)
}
