//! The site's access rules: the list, changes, and the explanation of a decision.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_bus::access::{Basis, Decision, Defaults, Effect, Policy, Principal, Resource, Rule, Verb, Who};
use tampu_logbook::{
    people::{PeopleError, Right},
    store::StoreError,
};

use super::call::{Answer, Call, DELETE, GET, POST, Route, json, nothing, ok};
use crate::{
    http::{
        problem::Problem,
        route::{Content::Nothing, Login, json_of},
    },
    rules::file::PolicyError,
};

/// Routes of the access rules.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/access",
        id: "listRules",
        what: "Returns the access rules in force, with their files and lines, and the file for new rules",
        gives: (200, json_of::<PolicyView>()),
        login: Login::Admin,
        act: |call| ok(&PolicyView::of(&call.api.rules.policy())),
        ..GET
    },
    Route {
        path: "/access/explain",
        id: "explainAccess",
        what: "Decides about an action as the hub does, and returns the rule or default that decides",
        query: &[
            ("who", "string", "local, key, guest, host:NAME, user:LOGIN or token:LOGIN/ID"),
            ("verb", "string", "read, write, query, set, send, receive, backup or admin"),
            ("what", "string", "topic or service, event/ATTRIBUTE, bulk/STREAM, book/NAME, source/NAME, backup or config"),
        ],
        gives: (200, json_of::<Explanation>()),
        login: Login::Admin,
        act: explain,
        ..GET
    },
    Route {
        path: "/access/rules",
        id: "addRule",
        what: "Adds a rule to the policy file; it holds at once",
        takes: json_of::<NewRule>(),
        gives: (201, json_of::<RuleView>()),
        login: Login::Admin,
        act: add,
        ..POST
    },
    Route {
        path: "/access/rules/{line}",
        id: "dropRule",
        what: "Removes the rule that begins at a line of the policy file; it ends at once",
        gives: (204, Nothing),
        login: Login::Admin,
        act: remove,
        ..DELETE
    },
];

/// The rules in force.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// The file for new rules; it may not exist.
    pub file: String,
    /// Decisions without a rule: `usual`, `local` or `none`.
    pub defaults: String,
    /// The rules. A deny rule holds whatever else is written.
    pub rules: Vec<RuleView>,
}

/// A rule in force.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// `allow` or `deny`.
    pub effect: String,
    /// The principals of the rule.
    pub who: String,
    /// The verbs of the rule.
    pub may: Vec<String>,
    /// Pattern of the names of resources.
    pub what: String,
    /// The site's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The file; absent for an `[[allow]]` table of the hub's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// A rule to add.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRule {
    /// `allow` or `deny`.
    pub effect: String,
    /// anybody, local, key, guest, host:NAME, user:LOGIN or token:LOGIN/ID; names may hold wildcards.
    pub who: String,
    /// The verbs of the rule.
    pub may: Vec<String>,
    /// Pattern of the names of resources.
    pub what: String,
    /// The reason, which refusals repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A decision with its ground.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The asked principal.
    pub who: String,
    /// The asked verb.
    pub verb: String,
    /// The asked resource.
    pub what: String,
    /// True if the action is allowed.
    pub allowed: bool,
    /// The ground, in words.
    pub why: String,
    /// The deciding rule, if one decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleView>,
    /// The change that would turn the decision round.
    pub change: String,
}

impl RuleView {
    fn of(rule: &Rule) -> RuleView {
        RuleView {
            effect: rule.effect.name().to_owned(),
            who: rule.who.to_string(),
            may: rule.may.iter().map(|verb| verb.name().to_owned()).collect(),
            what: rule.what.clone(),
            why: rule.why.clone(),
            file: rule.place.as_ref().map(|place| place.file.display().to_string()),
            line: rule.place.as_ref().map(|place| place.line),
        }
    }
}

impl PolicyView {
    fn of(policy: &Policy) -> PolicyView {
        let defaults = match policy.defaults {
            Defaults::Usual => "usual",
            Defaults::Local => "local",
            Defaults::None => "none",
        };
        PolicyView {
            file: policy.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
            defaults: defaults.to_owned(),
            rules: policy.rules.iter().map(RuleView::of).collect(),
        }
    }
}

fn bad(at: &str, why: impl std::fmt::Display) -> Problem {
    Problem::bad(at, why.to_string())
}

fn explain(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let given = |name: &str| {
        let text = call.parameter(name).filter(|text| !text.is_empty());
        text.ok_or_else(|| Problem::bad(&format!("query {name}"), "missing"))
    };
    let (who, verb, what) = (given("who")?, given("verb")?, given("what")?);
    let principal = Principal::parse(who, call.api.rules.domain()).map_err(|error| bad("query who", error))?;
    let verbs = Verb::of_word(verb).ok_or_else(|| {
        let names: Vec<&str> = Verb::ALL.iter().map(|verb| verb.name()).collect();
        bad("query verb", format!("'{}' is no verb; use {}", verb.escape_debug(), names.join(", ")))
    })?;
    let resource: Resource = what.parse().map_err(|error| bad("query what", error))?;
    // A word for several verbs is allowed if all of them are.
    let mut all = verbs.into_iter().map(|verb| decided(call, &principal, verb, &resource));
    let mut last = all.next().unwrap_or_else(|| Err(bad("query verb", "no verb")))?;
    for next in all {
        if last.allowed {
            last = next?;
        }
    }
    ok(&Explanation { who: who.to_owned(), what: what.to_owned(), ..last })
}

/// Decides by the rules alone. A logbook is also denied by a rule about a former name of it, which is returned.
fn by_the_rules(
    call: &Call<'_>,
    principal: &Principal,
    verb: Verb,
    what: &Resource,
) -> Result<(Decision, Option<String>), Problem> {
    let decision = call.api.rules.explain(principal, verb, what);
    if let Resource::Book(book) = what
        && decision.allowed
    {
        for former in call.api.people.former_names(book)? {
            let of_former = call.api.rules.explain(principal, verb, &Resource::Book(former.clone()));
            if !of_former.allowed {
                return Ok((of_former, Some(former)));
            }
        }
    }
    Ok((decision, None))
}

fn decided(call: &Call<'_>, principal: &Principal, verb: Verb, resource: &Resource) -> Result<Explanation, Problem> {
    let rules = &call.api.rules;
    let (Decision { allowed, basis }, former) = by_the_rules(call, principal, verb, resource)?;
    let (who, file) = (principal.word(), rules.file().display());
    let table = |effect: Effect| {
        let what = resource.name();
        format!("[[{}]] who = \"{who}\", may = [\"{verb}\"], what = \"{what}\" in {file}", effect.name())
    };
    let mut explanation = Explanation {
        who: who.clone(),
        verb: verb.name().to_owned(),
        what: resource.name(),
        allowed,
        why: String::new(),
        rule: None,
        change: table(if allowed { Effect::Deny } else { Effect::Allow }),
    };
    match basis {
        Basis::Rule(rule) => {
            let place = match &rule.place {
                Some(place) => format!("the rule at {place}"),
                None => "an [[allow]] of the hub's configuration".to_owned(),
            };
            let why = rule.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            explanation.why = format!("{place} {} it: {rule}{why}", if allowed { "allows" } else { "denies" });
            if !allowed {
                explanation.change = format!("remove {place}");
            }
            if let Some(former) = former {
                explanation.why.push_str(&format!("; the logbook had the name '{former}'"));
            }
            explanation.rule = Some(RuleView::of(&rule));
        }
        Basis::Default(words) => explanation.why = words.to_owned(),
        Basis::NoMember(why) => {
            explanation.why = why;
            explanation.change = "open the network with --lan, a domain and a key".to_owned();
        }
    }
    match resource {
        Resource::Book(book) if allowed => by_the_logbook(call, principal, verb, book, explanation),
        _ => {
            if principal.is_of_the_logbook() && !matches!(resource, Resource::Book(_)) {
                explanation.change = "use the user of the hub's host, or a process with the domain's key".to_owned();
            }
            Ok(explanation)
        }
    }
}

/// Asks the logbook, whose own grants decide.
fn by_the_logbook(
    call: &Call<'_>,
    principal: &Principal,
    verb: Verb,
    book: &str,
    explanation: Explanation,
) -> Result<Explanation, Problem> {
    let people = &call.api.people;
    let wanted: &[Right] = match verb {
        Verb::Read | Verb::Query => &[Right::Read],
        Verb::Write => &[Right::Write],
        Verb::Set | Verb::Admin => &[Right::Admin],
        _ => &[],
    };
    let named = match call.api.store.book(book) {
        Ok(found) => found.name,
        Err(StoreError::NoBook(name)) => {
            let (why, change) = (format!("there is no logbook '{name}'"), format!("tampu book make {name}"));
            return Ok(Explanation { allowed: false, why, change, ..explanation });
        }
        Err(error) => return Err(error.into()),
    };
    let found = match principal {
        // The token of the owner stands in a file that only this user can read.
        Principal::User(_) => people.owner(),
        Principal::Guest => people.rights_of(None, None),
        Principal::Login(login) => people.rights_of(Some(login), None),
        Principal::Token(name) => match name.split_once('/') {
            Some((login, id)) => people.rights_of(Some(login), Some(id)),
            None => return Err(bad("query who", "write token:LOGIN/ID; 'tampu book users token list' shows the ids")),
        },
        Principal::KeyHolder(_) | Principal::Host(_) => {
            let why = "the domain's key opens no logbook".to_owned();
            return Ok(Explanation { allowed: false, why, change: "log in as a user, or use a token".to_owned(), ..explanation });
        }
    };
    let found = match found {
        Err(PeopleError::NoUser(name)) => {
            let (why, change) = (format!("there is no user '{name}'"), format!("tampu book users add {name}"));
            return Ok(Explanation { allowed: false, why, change, ..explanation });
        }
        found => found?,
    };
    let rights = found.rights.of(&named);
    let names = rights.iter().map(|right| right.name()).collect::<Vec<_>>().join(", ");
    let has = if names.is_empty() { "none".to_owned() } else { names };
    let allowed = !wanted.is_empty() && wanted.iter().all(|right| rights.contains(right));
    let subject = match principal {
        Principal::Guest => "guests".to_owned(),
        Principal::Token(name) | Principal::Login(name) => format!("user:{}", name.split('/').next().unwrap_or_default()),
        _ => "user:LOGIN".to_owned(),
    };
    let why = match wanted {
        [] => format!("logbooks know read, write and admin; the rights in '{named}' are: {has}"),
        _ => format!("the logbook's own grants decide; the rights in '{named}' are: {has}"),
    };
    let change = match (allowed, wanted.first()) {
        (true, _) => explanation.change.clone(),
        (false, Some(right)) => format!("tampu book users role '{named}' {subject} {}", right.name()),
        (false, None) => "nothing: a logbook has no such right".to_owned(),
    };
    Ok(Explanation { allowed, why, change, ..explanation })
}

fn add(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewRule { effect, who, may, what, why } = call.json()?;
    let effect = match effect.as_str() {
        "allow" => Effect::Allow,
        "deny" => Effect::Deny,
        _ => return Err(bad("body effect", "write allow or deny")),
    };
    let who = Who::try_from(who).map_err(|error| bad("body who", error))?;
    let rule = Rule::new(effect, who, &may, &what).map_err(|error| bad("body", error))?;
    if why.as_ref().is_some_and(|why| why.chars().count() > 200 || why.chars().any(char::is_control)) {
        return Err(bad("body why", "a reason has at most 200 characters, in one line"));
    }
    let rule = Rule { why, ..rule };
    let line = call.api.rules.add(&rule)?;
    let file = Some(call.api.rules.file().display().to_string());
    json(StatusCode::CREATED, &RuleView { file, line: Some(line), ..RuleView::of(&rule) })
}

fn remove(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let line = call.number(0, "line")?;
    call.api.rules.remove(line)?;
    nothing()
}

impl From<PolicyError> for Problem {
    fn from(error: PolicyError) -> Problem {
        let (status, kind) = match &error {
            PolicyError::NoRule { .. } => (StatusCode::NOT_FOUND, "no-rule"),
            PolicyError::Line { .. } | PolicyError::Setting(_) | PolicyError::Gone { .. } => (StatusCode::CONFLICT, "bad-policy"),
            PolicyError::Io { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        };
        Problem::new(status, kind, error.to_string())
    }
}
