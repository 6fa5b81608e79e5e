//! Topics that a host reads or writes over its links, as patterns of keys.
//!
//! The rules of a policy are about names. A link knows the keys of topics alone, so each rule becomes patterns of keys:
//! a part `*` or `**` stays, and part of a name with a wildcard becomes the engine's `$*`. A rule that a link cannot keep
//! exactly is kept more strictly:
//! - A rule that closes an attribute closes the streams of all event servers, which carry their attributes together.
//! - A rule that closes a topic of logs also closes the other topics that carry the same records.
//! - A wildcard within a part of an `[[allow]]` rule opens nothing on links.

use tampu_types::{TopicName, glob, name::escape};

use super::{
    nouns::{Principal, Resource, Verb},
    policy::Policy,
    rule::{Effect, Rule},
};
use crate::engine::memory::matches;

/// Topics whose streams carry the attributes of a server, and one attribute.
const EVENTS: [&str; 2] = ["event/**", "event-own/**"];
/// Topics that carry log records besides `log/LEVEL`.
const LOGS: [&str; 3] = ["log-attached/**", "log-spool/**", "log-import/**"];

/// Topics that a host may read or write over its links, as patterns of keys. A denied one is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRights {
    /// Patterns of the allowed topics.
    pub allowed: Vec<String>,
    /// Patterns of the denied topics.
    pub denied: Vec<String>,
}

impl Default for TopicRights {
    fn default() -> TopicRights {
        TopicRights { allowed: vec!["**".to_owned()], denied: Vec::new() }
    }
}

impl TopicRights {
    /// Returns the topics that the policy lets a host read or write.
    pub fn of(policy: &Policy, host: &Principal, verb: Verb) -> TopicRights {
        let rules = |effect| {
            let applies = move |rule: &&Rule| rule.effect == effect && rule.may.contains(&verb) && rule.concerns(host);
            policy.rules.iter().filter(applies)
        };
        // No rule has this name, so the defaults decide.
        let by_default = policy.without_rules().decide(host, verb, &Resource::Topic("topic".to_owned())).allowed;
        let mut rights = TopicRights { allowed: Vec::new(), denied: Vec::new() };
        if by_default {
            rights.allowed.push("**".to_owned());
        } else {
            rules(Effect::Allow).for_each(|rule| rights.allow(&rule.what));
        }
        rules(Effect::Deny).for_each(|rule| rights.deny(&rule.what, verb));
        for patterns in [&mut rights.allowed, &mut rights.denied] {
            patterns.sort();
            patterns.dedup();
        }
        rights
    }

    /// Returns true if the topic may be read or written.
    pub fn permits(&self, topic: &TopicName) -> bool {
        let key = topic.key();
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, &key));
        any(&self.allowed) && !any(&self.denied)
    }

    /// Returns true if every topic may be read or written.
    pub fn is_unrestricted(&self) -> bool {
        *self == TopicRights::default()
    }

    fn allow(&mut self, what: &str) {
        let parts: Option<Vec<String>> = what.split('/').map(whole_part).collect();
        let Some(parts) = parts else { return };
        let pattern = parts.join("/");
        if pattern == EVENTS[0] {
            self.allowed.extend([EVENTS[1].to_owned(), "event-names".to_owned()].map(own_key));
        }
        self.allowed.push(pattern);
    }

    fn deny(&mut self, what: &str, verb: Verb) {
        let pattern: Vec<String> = what.split('/').map(wider_part).collect();
        let first = what.split('/').next().unwrap_or_default();
        let may_be = |name: &str| first == "**" || glob::matches_ignoring_case(first, name);
        if verb == Verb::Read && may_be("event") {
            self.denied.extend(EVENTS.map(|topics| own_key(topics.to_owned())));
        }
        if verb == Verb::Read && may_be("log") {
            self.denied.extend(LOGS.map(|topics| own_key(topics.to_owned())));
        }
        if verb == Verb::Write && what == EVENTS[0] {
            self.denied.push(own_key(EVENTS[1].to_owned()));
        }
        self.denied.push(pattern.join("/"));
    }
}

/// Returns the pattern of keys for one of the patterns of topics above.
fn own_key(topics: String) -> String {
    topics.split('/').map(wider_part).collect::<Vec<_>>().join("/")
}

/// Returns the pattern of a part's key; `None` if it has a wildcard within.
fn whole_part(part: &str) -> Option<String> {
    match part {
        "*" | "**" => Some(part.to_owned()),
        part if glob::has_wildcard(part) => None,
        part => Some(escape(part)),
    }
}

/// Returns a pattern that holds the keys of a part, and perhaps more.
fn wider_part(part: &str) -> String {
    if let Some(whole) = whole_part(part) {
        return whole;
    }
    let mut pattern = String::new();
    let mut name = String::new();
    for character in part.chars() {
        if matches!(character, '*' | '?') {
            if !name.is_empty() {
                pattern.push_str(&escape(&std::mem::take(&mut name)));
            }
            if !pattern.ends_with("$*") {
                pattern.push_str("$*");
            }
        } else {
            name.push(character);
        }
    }
    if !name.is_empty() {
        pattern.push_str(&escape(&name));
    }
    if pattern == "$*" { "*".to_owned() } else { pattern }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::access::{Defaults, Who};

    fn rule(effect: Effect, what: &str) -> Rule {
        Rule::new(effect, Who::Host("pc*".to_owned()), &["read", "write"], what).unwrap()
    }

    fn rights(defaults: Defaults, rules: Vec<Rule>, verb: Verb) -> TopicRights {
        TopicRights::of(&Policy { defaults, rules, file: None }, &Principal::Host("pc7".to_owned()), verb)
    }

    fn permits(rights: &TopicRights, topic: &str) -> bool {
        rights.permits(&TopicName::new(topic).unwrap())
    }

    #[test]
    fn hosts_have_all_topics_until_a_rule_or_the_defaults_close_them() {
        assert!(rights(Defaults::Usual, Vec::new(), Verb::Read).is_unrestricted());
        let none = rights(Defaults::Local, Vec::new(), Verb::Read);
        assert!(!permits(&none, "log/info"));
        let some = rights(Defaults::Local, vec![rule(Effect::Allow, "log/*"), rule(Effect::Allow, "t/v?")], Verb::Read);
        assert!(permits(&some, "Log/Info") && !permits(&some, "log-attached/info") && !permits(&some, "t/v1"));
        let events = rights(Defaults::None, vec![rule(Effect::Allow, "event/**")], Verb::Read);
        assert!(["event/mount", "event-own/mount/3", "event-names"].iter().all(|topic| permits(&events, topic)));
        let other = TopicRights::of(
            &Policy { rules: vec![rule(Effect::Deny, "**")], ..Policy::default() },
            &Principal::Host("mast".to_owned()),
            Verb::Read,
        );
        assert!(other.is_unrestricted());
    }

    #[test]
    fn a_closed_topic_closes_what_carries_the_same() {
        let log = rights(Defaults::Usual, vec![rule(Effect::Deny, "log/debug")], Verb::Read);
        assert!(permits(&log, "log/info") && !permits(&log, "LOG/Debug") && !permits(&log, "log-attached/debug"));
        let attribute = rights(Defaults::Usual, vec![rule(Effect::Deny, "event/sr/vacuum/**")], Verb::Read);
        assert!(!permits(&attribute, "event/mount") && !permits(&attribute, "event-own/mount/1"));
        assert!(permits(&attribute, "event-names") && permits(&attribute, "log/info"));
        // Of the events that a host writes, each reader leaves out the closed attributes.
        let written = rights(Defaults::Usual, vec![rule(Effect::Deny, "event/sr/vacuum/**")], Verb::Write);
        assert!(permits(&written, "event/mount"));
        let all = rights(Defaults::Usual, vec![rule(Effect::Deny, "**")], Verb::Read);
        assert!(!permits(&all, "log/info") && !permits(&all, "event-names"));
    }

    proptest! {
        #[test]
        fn no_link_is_more_open_than_the_policy(
            what in "[ab*?]{1,3}(/[ab*?]{1,3}){0,2}", topic in "[abA]{1,3}(/[ab]{1,3}){0,2}", denies: bool
        ) {
            let (effect, defaults) = if denies { (Effect::Deny, Defaults::Usual) } else { (Effect::Allow, Defaults::None) };
            let policy = Policy { defaults, rules: vec![rule(effect, &what)], file: None };
            let host = Principal::Host("pc7".to_owned());
            let decided = policy.decide(&host, Verb::Read, &Resource::Topic(topic.clone())).allowed;
            let on_link = permits(&TopicRights::of(&policy, &host, Verb::Read), &topic);
            prop_assert!(decided || !on_link, "{} {}", what, topic);
        }
    }
}
