//! Signatures of entries: the meanings that a caller may use, a new signature, and the check of all.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_log::notice;
use tampu_logbook::{
    people::{Resource, Right, Verb},
    signature::{
        NewSignature, Signature,
        policy::SigningPolicy,
        verify::{Verification, verify},
    },
};

use super::call::{Answer, Call, GET, LOGIN, POST, Route, json, ok};
use crate::http::{admission::WorkKind, problem::Problem, route::json_of};

/// The routes of signatures.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/signing",
        id: "getSigning",
        what: "Returns the rules of a logbook for signatures: the meanings, who may sign with each, the lock; and the meanings that the caller may use",
        gives: (200, json_of::<ShownPolicy>()),
        act: policy,
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/signatures",
        id: "signEntry",
        what: "Signs the current revision of an entry with a meaning. Needs the password of the person again; a user of a login provider sends none \
               within 5 minutes after a login at /login/oidc/NAME?again=1, and a user of a proxy or of tickets cannot sign. \
               409 if the person has signed this revision with this meaning; 412 if the entry has another revision",
        takes: json_of::<SignatureIn>(),
        gives: (201, json_of::<Signature>()),
        body: LOGIN,
        act: sign,
        ..POST
    },
    Route {
        path: "/books/{book}/verify",
        id: "verifySignatures",
        what: "Verifies all signatures of a logbook against its entries and the bytes of their files. Needs the right 'admin'. One check runs at a time",
        gives: (200, json_of::<Verification>()),
        work: WorkKind::Search,
        act: verified,
        ..POST
    },
];

#[derive(Serialize, JsonSchema)]
struct ShownPolicy {
    #[serde(flatten)]
    policy: SigningPolicy,
    /// The meanings with which the caller may sign.
    mine: Vec<String>,
    /// True if the caller may sign without a password now.
    fresh_login: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignatureIn {
    /// One of the meanings of the logbook.
    meaning: String,
    /// The revision that the person has read.
    revision: u32,
    /// The login of the person; that of the caller if it is missing.
    #[serde(default)]
    login: Option<String>,
    /// The password of the person.
    #[serde(default)]
    password: Option<String>,
}

fn policy(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let book = call.api.store.book(call.var(0))?.name;
    let policy = call.api.people.signing_policy(&book)?;
    let mine = call.api.people.meanings(&call.who().login, &book)?;
    let fresh_login = !mine.is_empty() && call.api.people.has_fresh_login(call.who())?;
    ok(&ShownPolicy { policy, mine, fresh_login })
}

fn sign(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let SignatureIn { meaning, revision, login, password } = call.json()?;
    let (api, from) = (call.api, call.auth.from);
    let at = call.entry_ref()?;
    let book = api.store.book(&at.book)?.name;
    let (person, method) = api.people.signer(call.who(), login.as_deref(), password.as_deref(), from)?;
    if !person.rights.may(Right::Read, &book) {
        let detail = format!("'{}' may not read the logbook '{book}'", person.login);
        return Err(Problem::new(StatusCode::FORBIDDEN, "no-right", detail));
    }
    if !api.people.sees_whole_entries(&person, &book)? {
        let detail =
            format!("'{}' does not see all attributes of the logbook '{book}', and a signature covers all", person.login);
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail);
        return Err(problem.help("people who may change entries see all attributes"));
    }
    let mine = api.people.meanings(&person.login, &book)?;
    if !mine.contains(&meaning) {
        let detail = format!("'{}' may not sign entries of '{book}' as '{}'", person.login, meaning.escape_debug());
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("body meaning");
        return Err(match &mine[..] {
            [] => problem.help("an administrator of the site sets who signs: tampu book users signing"),
            mine => problem.help(format!("possible meanings: {}", mine.join(", "))),
        });
    }
    let locks = api.people.signing_policy(&book)?.lock;
    let new = NewSignature { at, revision, by: person.login, name: person.full_name, meaning, method, locks };
    let signature = api.store.sign(&new)?;
    notice!(
        api.audit,
        "{} from {from}: signed revision {} of entry {} as {}",
        signature.by,
        revision,
        signature.entry,
        signature.meaning
    );
    json(StatusCode::CREATED, &signature)
}

fn verified(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Administer, Resource::Book(call.var(0)))?;
    let busy = || Problem::new(StatusCode::CONFLICT, "busy", "a check is running already").help("retry when it has ended");
    let _turn = call.api.checking.begin().ok_or_else(busy)?;
    let stop = call.stop;
    ok(&verify(&*call.api.store, Some(call.var(0)), &[], &mut |_, _| !stop.is_stopped())?)
}
