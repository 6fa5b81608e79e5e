//! One rule of a policy.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};
use tampu_types::glob;

use super::nouns::{Principal, Resource, Verb};

/// Effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The rule permits.
    Allow,
    /// The rule refuses, whatever other rules permit.
    Deny,
}

impl Effect {
    /// The word for tables of a policy file.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Deny => "deny",
        }
    }
}

/// The principals that a rule applies to. Names may hold the wildcards `*` and `?`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Who {
    /// Every principal that can ask.
    #[default]
    Anybody,
    /// The user of the hub's host.
    Local,
    /// Holders of the domain's key.
    Key,
    /// Visitors of the logbook without a login.
    Guest,
    /// Hosts with a certificate of this name.
    Host(String),
    /// Users of the logbook with this login.
    Login(String),
    /// Tokens of the logbook: `LOGIN/NAME`.
    Token(String),
    /// The members of a group of the policy file.
    Group(String),
}

/// Error for an invalid part of a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// The principal is unknown.
    #[error("who = \"{0}\" names nobody; use anybody, local, key, guest, host:NAME, user:LOGIN, token:LOGIN/NAME or group:NAME")]
    Who(String),
    /// The group is not in the policy file.
    #[error(
        "who = \"group:{0}\" names no group of the policy file; list its members there under [groups], as {0} = [\"user:zoe\"]"
    )]
    Group(String),
    /// A group has another group as a member, or a member that is not named.
    #[error("the group {group} has the member \"{member}\"; members are host:NAME, user:LOGIN and token:LOGIN/NAME")]
    Member {
        /// Name of the group.
        group: String,
        /// The member as it is written.
        member: String,
    },
    /// The verb is unknown.
    #[error("may = [\"{0}\"] is no verb; use read, write, query, set, send, receive, bulk, backup, admin, change or enter")]
    Verb(String),
    /// The rule has no verb.
    #[error("may = [] permits nothing; name at least one verb")]
    NoVerb,
    /// The pattern is empty or has an empty part.
    #[error("what = \"{0}\" is no pattern of names, such as log/** or event/sr/vacuum/**")]
    Pattern(String),
    /// A rule allows something about a logbook.
    #[error("what = \"{0}\": logbooks keep their own grants; use 'tampu book users role', and [[deny]] here to narrow them")]
    Book(String),
}

impl TryFrom<String> for Who {
    type Error = BadRule;

    fn try_from(text: String) -> Result<Who, BadRule> {
        match text.split_once(':') {
            None => match text.as_str() {
                "anybody" => Ok(Who::Anybody),
                // `user` is the word of earlier releases.
                "local" | "user" => Ok(Who::Local),
                "key" => Ok(Who::Key),
                "guest" => Ok(Who::Guest),
                _ => Err(BadRule::Who(text)),
            },
            Some((_, "")) => Err(BadRule::Who(text)),
            Some(("host", name)) => Ok(Who::Host(name.to_owned())),
            Some(("user", name)) => Ok(Who::Login(name.to_owned())),
            Some(("token", name)) => Ok(Who::Token(name.to_owned())),
            Some(("group", name)) => Ok(Who::Group(name.to_owned())),
            Some(_) => Err(BadRule::Who(text)),
        }
    }
}

impl From<Who> for String {
    fn from(who: Who) -> String {
        who.to_string()
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Anybody => f.write_str("anybody"),
            Who::Local => f.write_str("local"),
            Who::Key => f.write_str("key"),
            Who::Guest => f.write_str("guest"),
            Who::Host(name) => write!(f, "host:{name}"),
            Who::Login(name) => write!(f, "user:{name}"),
            Who::Token(name) => write!(f, "token:{name}"),
            Who::Group(name) => write!(f, "group:{name}"),
        }
    }
}

impl Who {
    /// Reports if the rule applies to this principal. Hosts have the domain's key too, and tokens act for their user.
    pub fn applies_to(&self, principal: &Principal) -> bool {
        let same = glob::matches_ignoring_case;
        match (self, principal) {
            (Who::Anybody, _)
            | (Who::Local, Principal::User(_))
            | (Who::Key, Principal::KeyHolder(_) | Principal::Host(_))
            | (Who::Guest, Principal::Guest) => true,
            (Who::Host(pattern), Principal::Host(name))
            | (Who::Login(pattern), Principal::Login(name))
            | (Who::Token(pattern), Principal::Token(name)) => same(pattern, name),
            (Who::Login(pattern), Principal::Token(name)) => name.split_once('/').is_some_and(|(login, _)| same(pattern, login)),
            _ => false,
        }
    }
}

/// Line of a rule in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Path of the file.
    pub file: PathBuf,
    /// Number of the line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A rule: who may, or may not, do what to which resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The effect of the rule.
    pub effect: Effect,
    /// The principals that it applies to.
    pub who: Who,
    /// The members, if these are a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Who>,
    /// The verbs that it is about.
    pub may: Vec<Verb>,
    /// Pattern of the names of the resources.
    pub what: String,
    /// The site's own words about its reason.
    pub why: Option<String>,
    /// The place where it is written.
    pub place: Option<Place>,
}

impl Rule {
    /// Checks the parts of a rule. `words` are verbs as they stand in files ([`Verb::of_word`]).
    pub fn new(effect: Effect, who: Who, words: &[impl AsRef<str>], what: &str) -> Result<Rule, BadRule> {
        let mut may = Vec::new();
        for word in words {
            let word = word.as_ref();
            may.extend(Verb::of_word(word).ok_or_else(|| BadRule::Verb(word.to_owned()))?);
        }
        if may.is_empty() {
            return Err(BadRule::NoVerb);
        }
        may.sort();
        may.dedup();
        if what.is_empty() || what.chars().any(char::is_control) || what.split('/').any(str::is_empty) {
            return Err(BadRule::Pattern(what.to_owned()));
        }
        if effect == Effect::Allow && (what == "book" || what.starts_with("book/")) {
            return Err(BadRule::Book(what.to_owned()));
        }
        Ok(Rule { effect, who, members: Vec::new(), may, what: what.to_owned(), why: None, place: None })
    }

    /// Adds the members of the rule's group, if it is about one.
    pub fn with_groups(self, groups: &BTreeMap<String, Vec<Who>>) -> Result<Rule, BadRule> {
        let Who::Group(name) = &self.who else { return Ok(self) };
        let members = groups.get(name).ok_or_else(|| BadRule::Group(name.clone()))?;
        let is_named = |member: &&Who| matches!(member, Who::Host(_) | Who::Login(_) | Who::Token(_));
        if let Some(member) = members.iter().find(|member| !is_named(member)) {
            return Err(BadRule::Member { group: name.clone(), member: member.to_string() });
        }
        Ok(Rule { members: members.clone(), ..self })
    }

    /// Reports if the rule is about this principal.
    pub fn concerns(&self, principal: &Principal) -> bool {
        self.who.applies_to(principal) || self.members.iter().any(|member| member.applies_to(principal))
    }

    /// Reports if the rule applies to this action.
    pub fn applies(&self, principal: &Principal, verb: Verb, resource: &Resource) -> bool {
        self.may.contains(&verb) && self.concerns(principal) && self.covers(resource)
    }

    /// Reports if the rule's pattern covers the resource.
    fn covers(&self, resource: &Resource) -> bool {
        let matches = |name: &str| self.what == name || glob::matches_path(&self.what, name, glob::matches_ignoring_case);
        matches(&resource.name()) || resource.second_name().is_some_and(matches)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<&str> = self.may.iter().map(|verb| verb.name()).collect();
        write!(f, "{} {} {} {}", self.effect.name(), self.who, verbs.join(","), self.what)
    }
}
