//! Editors of entries: the fields of a form, its first content, and a text as its entry will show it.
//!
//! Both routes store nothing. They need the rights of the post or the change that is being written.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_elog::{
    pages::{
        form::{fields::fields, first, source::FormSource},
        settings::{BookSettings, FormOccasion},
    },
    site_zone,
};
use tampu_logbook::{
    book::{AttributeDef, EntryAttribute},
    entry::{Content, Encoding, Entry},
    people::{ElogCommand, Resource, Verb},
    render::{self, NOT_RENDERED, Unfinished},
    store::StoreError,
};

use super::{
    call::{Answer, Call, POST, Route, TEXT, ok},
    entries,
    input::AttributesIn,
};
use crate::{
    clock::now,
    http::{admission::WorkKind, problem::Problem, route::json_of},
};

/// Routes of editors.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/form",
        id: "getForm",
        what: "Returns the fields of a form under the values of its attributes. Without 'attributes' also the content with which the form begins: \
               presets, and what a reply takes from the answered entry",
        takes: json_of::<FormIn>(),
        gives: (200, json_of::<FormView>()),
        work: WorkKind::Search,
        act: form,
        ..POST
    },
    Route {
        path: "/books/{book}/preview",
        id: "previewText",
        what: "Returns a text as safe HTML, exactly as its entry will show it; 'attachment:NAME' stands for files that are not stored yet",
        takes: json_of::<TextIn>(),
        body: TEXT,
        gives: (200, json_of::<Rendered>()),
        work: WorkKind::Page,
        act: preview,
        ..POST
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewForm")]
struct FormIn {
    /// The entry that is changed.
    #[serde(default)]
    edits: Option<u32>,
    /// The entry that is answered.
    #[serde(default)]
    parent: Option<u32>,
    /// The values in the form. Without them, the form begins.
    #[serde(default)]
    attributes: Option<AttributesIn>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Form")]
struct FormView {
    /// The fields in their order.
    fields: Vec<FieldView>,
    /// The possible encodings of the text.
    encodings: Vec<Encoding>,
    /// True if a change leaves the text as it is.
    text_fixed: bool,
    /// The content with which the form begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<FirstContent>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FormField")]
struct FieldView {
    /// The attribute under the conditions that the values set.
    #[serde(flatten)]
    def: AttributeDef,
    /// True if the form shows the attribute; another one keeps its value.
    shown: bool,
    /// True if nobody can write the value.
    fixed: bool,
    /// True if a value can change other fields.
    decides: bool,
    /// A text that appears beside the field on demand.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tooltip: String,
}

#[derive(Serialize, JsonSchema)]
struct FirstContent {
    attributes: Vec<EntryAttribute>,
    encoding: Encoding,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewText")]
struct TextIn {
    /// The entry that is changed.
    #[serde(default)]
    edits: Option<u32>,
    /// The entry that is answered.
    #[serde(default)]
    parent: Option<u32>,
    #[serde(default)]
    encoding: Encoding,
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Rendered {
    html: String,
}

/// Checks that the caller may write what a form is for. Returns its purpose, and the entry that it changes or answers.
fn purpose(call: &Call<'_>, edits: Option<u32>, parent: Option<u32>) -> Result<(FormOccasion, Option<Entry>), Problem> {
    let book = call.var(0);
    if let Some(id) = edits {
        let entry = entries::readable_entry(call, id)?;
        call.ask(Verb::Edit, Resource::Entry(&entry))?;
        return Ok((FormOccasion::Edit, Some(entry)));
    }
    let Some(id) = parent else {
        call.ask(Verb::Post, Resource::Book(book))?;
        return Ok((FormOccasion::New, None));
    };
    call.ask_as(Some(ElogCommand::Reply), Verb::Post, Resource::Book(book))?;
    let entry = entries::readable_entry(call, id)?;
    let is_first = call.api.store.answers(book, &[id])?.is_empty();
    Ok((if is_first { FormOccasion::FirstReply } else { FormOccasion::Reply }, Some(entry)))
}

fn form(call: &mut Call<'_>) -> Result<Answer, Problem> {
    // A long body is not received from a caller who may not read.
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let FormIn { edits, parent, attributes } = call.json()?;
    let (occasion, of) = purpose(call, edits, parent)?;
    let book = call.api.store.book(call.var(0))?;
    let settings = BookSettings::of(&book);
    let begins = attributes.is_none();
    let content = match attributes {
        Some(said) => {
            let content = Content { attributes: said.list(), ..Content::default() };
            content.check().map_err(StoreError::from)?;
            content
        }
        None => {
            let zone = site_zone::of_site(&*call.api.store, call.api.settings.zone().unwrap_or_default())?;
            let caller = call.who().caller(call.auth.from);
            let stop = call.stop.within(Duration::from_millis(call.api.settings.search_ms));
            let source = FormSource {
                store: &*call.api.store,
                caller: &caller,
                book: &book,
                settings: &settings,
                zone: &zone,
                now: now(),
                stop: &stop,
            };
            let mut content = first::values(&source, occasion, of.as_ref())?;
            // Without elogd's configuration nobody asked for a quotation.
            if !book.elog.is_empty() || occasion == FormOccasion::Edit {
                content.text = first::text(&source, occasion, of.as_ref(), &content);
            }
            content
        }
    };
    let fields = fields(&book, &settings, occasion, &content).into_iter().map(|field| FieldView {
        def: field.def,
        shown: field.is_shown,
        fixed: field.is_fixed,
        decides: field.decides,
        tooltip: field.tooltip,
    });
    let mut encodings = settings.encodings();
    if let Some(of) = of.filter(|of| occasion == FormOccasion::Edit && !encodings.contains(&of.content.encoding)) {
        encodings.push(of.content.encoding);
    }
    ok(&FormView {
        fields: fields.collect(),
        encodings,
        text_fixed: occasion == FormOccasion::Edit && settings.fix_text(),
        first: begins.then_some(FirstContent { attributes: content.attributes, encoding: content.encoding, text: content.text }),
    })
}

fn preview(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let TextIn { edits, parent, encoding, text } = call.json()?;
    purpose(call, edits, parent)?;
    let content = Content { encoding, text, ..Content::default() };
    content.check().map_err(StoreError::from)?;
    call.api.rendered.hold(&content.text, call.stop).map_err(|Unfinished| entries::no_room())?;
    let stop = call.stop.within(Duration::from_millis(call.api.settings.search_ms));
    let html = render::html_until(encoding, &content.text, &entries::link_in(call.var(0)), &stop);
    ok(&Rendered { html: html.unwrap_or_else(|Unfinished| NOT_RENDERED.to_owned()) })
}
