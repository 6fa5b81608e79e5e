//! Other names of logbooks, their deletion and their return.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_log::notice;
use tampu_logbook::{
    book::Book,
    mail::purged::PurgedText,
    store::naming::{DeletedBook, deleted_books},
};

use super::call::{Answer, Call, DELETE, GET, POST, Route, ok};
use crate::http::{problem::Problem, route::json_of};

/// Routes of names and of deleted logbooks.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/rename",
        id: "renameBook",
        what: "Gives a logbook another name; rights, rules, drafts and searches follow, and the former name leads to it. Needs an administrator of the site",
        takes: json_of::<NewName>(),
        gives: (200, json_of::<Book>()),
        act: rename,
        ..POST
    },
    Route {
        path: "/books/{book}",
        id: "deleteBook",
        what: "Deletes a logbook with its entries, until it is restored or purged. Needs an administrator of the site",
        gives: (200, json_of::<DeletedBook>()),
        act: delete,
        ..DELETE
    },
    Route {
        path: "/deleted-books",
        id: "listDeletedBooks",
        what: "Lists the deleted logbooks. Needs an administrator of the site",
        gives: (200, json_of::<Vec<DeletedBook>>()),
        act: |call| {
            call.need_admin()?;
            ok(&deleted_books(&*call.api.store)?)
        },
        ..GET
    },
    Route {
        path: "/deleted-books/{number}/restore",
        id: "undeleteBook",
        what: "Restores a deleted logbook, under its name or another one. Needs an administrator of the site",
        takes: json_of::<RestoredName>(),
        gives: (200, json_of::<Book>()),
        act: undelete,
        ..POST
    },
    Route {
        path: "/deleted-books/{number}/purge",
        id: "purgeBook",
        what: "Removes the texts and files of a deleted logbook for good. Its name, and who purged it and why, stay. Needs an administrator of the site",
        takes: json_of::<PurgeReason>(),
        gives: (200, json_of::<DeletedBook>()),
        act: purge,
        ..POST
    },
];

/// The new name of a logbook.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewName {
    name: String,
}

/// The name of a restored logbook.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestoredName {
    /// The name; by default the one that it had.
    #[serde(default)]
    name: Option<String>,
}

/// The reason for a purge.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PurgeReason {
    /// One line of at most 1000 characters.
    reason: String,
}

/// Forgets what the hub knows about logbooks by their names, and writes the audit record.
fn done(call: &Call<'_>, what: &str) {
    call.api.people.forget();
    call.api.rendered.forget_all();
    call.api.previews.forget_all();
    let (by, from) = (call.by(), call.auth.from);
    notice!(call.api.audit, "{by} from {from}: {what}");
}

fn rename(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.need_admin()?;
    let NewName { name } = call.json()?;
    let was = call.api.store.book(call.var(0))?.name;
    let book = call.api.store.rename_book(&was, &name, &call.by())?;
    done(call, &format!("logbook '{was}' renamed to '{}'", book.name));
    ok(&book)
}

fn delete(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.need_admin()?;
    let deleted = call.api.store.delete_book(call.var(0), &call.by())?;
    done(call, &format!("logbook '{}' deleted; its number is {}", deleted.name, deleted.number));
    ok(&deleted)
}

fn undelete(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.need_admin()?;
    let RestoredName { name } = call.json()?;
    let number = call.number(0, "number of a deleted logbook")?;
    let book = call.api.store.undelete_book(number, name.as_deref(), &call.by())?;
    done(call, &format!("deleted logbook {number} restored as '{}'", book.name));
    ok(&book)
}

fn purge(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.need_admin()?;
    let PurgeReason { reason } = call.json()?;
    let purged = call.api.store.purge_book(call.number(0, "number of a deleted logbook")?, &reason, &call.by());
    done(call, &format!("purge of the deleted logbook {}: {}", call.var(0), reason.trim().escape_debug()));
    let purged = purged?;
    super::purge::forget_mails(call, PurgedText::Book(&purged))?;
    ok(&purged)
}
