//! A policy: the site's rules, and the defaults.
//!
//! Precedence, whatever the order of the rules:
//! 1. A process that is no member of the domain is refused.
//! 2. A `[[deny]]` rule that applies refuses.
//! 3. An `[[allow]]` rule that applies permits.
//! 4. The defaults decide. With `defaults = "none"` they permit nothing.
//!
//! First match and most specific match were rejected: with both, a rule that is added in the wrong line or with the wrong
//! pattern opens what another one closes. Here, a deny rule holds whatever else is written.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tampu_types::Domain;

use super::{
    hook::{Authorise, Members},
    nouns::{Denied, Principal, Resource, Verb},
    rule::{Effect, Rule},
};

/// Decisions without a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Defaults {
    /// The user of the hub's host may do everything. Holders of the key may read, query, write, send and receive.
    #[default]
    Usual,
    /// The user of the hub's host may do everything, and nobody else anything.
    Local,
    /// Nobody may do anything.
    None,
}

/// The rules and defaults of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Policy {
    /// Decisions without a rule.
    pub defaults: Defaults,
    /// The rules, in the order of their files.
    pub rules: Vec<Rule>,
    /// The file for the site's rules, which may not exist yet.
    pub file: Option<PathBuf>,
}

/// Ground of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A rule decides.
    Rule(Rule),
    /// The defaults decide, in these words.
    Default(&'static str),
    /// The principal is no member of the domain.
    NoMember(String),
}

/// Decision about an action, with its ground.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// True if the action is permitted.
    pub allowed: bool,
    /// The ground of the decision.
    pub basis: Basis,
}

/// Verbs of key holders without a rule: they publish and read, and do not administer.
const OF_KEY_HOLDERS: [Verb; 6] = [Verb::Read, Verb::Write, Verb::Query, Verb::Send, Verb::Receive, Verb::Enter];

impl Policy {
    /// Returns true if a rule permits this principal anything. A rule that forbids it may stand beside.
    pub fn gives_anything(&self, principal: &Principal) -> bool {
        self.rules.iter().any(|rule| rule.effect == Effect::Allow && rule.concerns(principal))
    }

    /// Decides about an action of a member of the domain.
    pub fn decide(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Decision {
        let first = |effect| {
            let applies = |rule: &&Rule| rule.effect == effect && rule.applies(principal, verb, resource);
            self.rules.iter().find(applies).cloned()
        };
        if let Some(rule) = first(Effect::Deny) {
            return Decision { allowed: false, basis: Basis::Rule(rule) };
        }
        if let Some(rule) = first(Effect::Allow) {
            return Decision { allowed: true, basis: Basis::Rule(rule) };
        }
        let (allowed, words) = self.default_for(principal, verb, resource);
        Decision { allowed, basis: Basis::Default(words) }
    }

    /// Returns the policy with its defaults alone.
    pub(super) fn without_rules(&self) -> Policy {
        Policy { defaults: self.defaults, rules: Vec::new(), file: None }
    }

    fn default_for(&self, principal: &Principal, verb: Verb, resource: &Resource) -> (bool, &'static str) {
        if principal.is_of_the_logbook() {
            return match resource {
                Resource::Book(_) => (true, "a logbook's own grants decide"),
                _ => (false, "users, tokens and guests of the logbook have rights for logbooks only"),
            };
        }
        if matches!(resource, Resource::Book(_)) && !matches!(principal, Principal::User(_)) {
            return (false, "the domain's key opens no logbook");
        }
        if matches!(resource, Resource::Source(_)) {
            return (true, "a host may use any name of a source that no rule closes to it");
        }
        // Entering needs the key and no rule. Rules apply to principals that have entered.
        if verb == Verb::Enter {
            return (true, "a member of the domain may connect");
        }
        match (self.defaults, principal) {
            (Defaults::None, _) => (false, "no [[allow]] rule permits it, and the defaults permit nothing"),
            (Defaults::Usual | Defaults::Local, Principal::User(_)) => {
                (true, "by default the user of the hub's host may do everything")
            }
            (Defaults::Local, _) => (false, "no [[allow]] rule permits it, and the defaults permit the local user alone"),
            (Defaults::Usual, _) if OF_KEY_HOLDERS.contains(&verb) => {
                (true, "by default holders of the key may publish and read")
            }
            (Defaults::Usual, _) => (false, "by default holders of the key publish and read, and do not administer"),
        }
    }

    /// Returns the text of a rule that would permit the action.
    pub fn rule_that_permits(principal: &Principal, verb: Verb, resource: &Resource) -> String {
        let (who, what) = (principal.word(), resource.name());
        format!("[[allow]] who = \"{who}\", may = [\"{verb}\"], what = \"{what}\"")
    }

    /// Returns the reason for a refusal, with the way to permit the action; `None` if the action is permitted.
    pub fn refusal(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Option<String> {
        let Decision { allowed, basis } = self.decide(principal, verb, resource);
        if allowed {
            return None;
        }
        Some(match basis {
            Basis::Rule(rule) => {
                let why = rule.why.as_ref().map(|why| format!(" ({})", why.escape_debug())).unwrap_or_default();
                match &rule.place {
                    Some(place) => format!("the rule at {place} denies it{why}"),
                    None => format!("the rule '{rule}' denies it{why}"),
                }
            }
            Basis::NoMember(why) => why,
            // No rule of this file opens a logbook.
            Basis::Default(words) if principal.is_of_the_logbook() || matches!(resource, Resource::Book(_)) => words.to_owned(),
            Basis::Default(words) => {
                let rule = Policy::rule_that_permits(principal, verb, resource);
                let file = match &self.file {
                    Some(file) => format!("in {}", file.display()),
                    None => "in the policy file of this host's hub".to_owned(),
                };
                format!("{words}; to permit it, write {rule} {file}")
            }
        })
    }

    /// Decides like [`Policy::decide`], after the check that the principal is a member.
    pub fn explain(&self, open_to: Option<&Domain>, principal: &Principal, verb: Verb, resource: &Resource) -> Decision {
        let members = Members { open_to: open_to.cloned() };
        if !principal.is_of_the_logbook()
            && let Err(denied) = members.authorise(principal, verb, resource)
        {
            return Decision { allowed: false, basis: Basis::NoMember(denied.why) };
        }
        self.decide(principal, verb, resource)
    }

    /// Returns an error if the principal may not do this to the resource.
    pub fn authorise(
        &self,
        open_to: Option<&Domain>,
        principal: &Principal,
        verb: Verb,
        resource: &Resource,
    ) -> Result<(), Denied> {
        if !principal.is_of_the_logbook() {
            Members { open_to: open_to.cloned() }.authorise(principal, verb, resource)?;
        }
        match self.refusal(principal, verb, resource) {
            None => Ok(()),
            Some(why) => Err(Denied { principal: principal.clone(), verb, resource: resource.clone(), why }),
        }
    }
}

#[cfg(test)]
mod tests;
