//! Access rules of a site, and the principals that this hub knows.
//!
//! Without a rule, every participant that may join may do everything ([`Members`]). With rules, such a participant may
//! do only what a rule allows. A rule is a part of the configuration, like all settings.

use std::sync::Arc;

use tampu_bus::{
    access::{Access, Authorise, Denied, Members, Principal, Resource, Verb},
    connect::{DEFAULT_DOMAIN, Settings},
    run_dir::RunDirError,
};
use tampu_types::{TopicFilter, TopicName};

use self::settings::{Allow, Who};
use crate::{
    config::{Config, Role},
    listen::ListenAddress,
};

pub mod settings;

impl Allow {
    fn allows(&self, principal: &Principal, verb: Verb, resource: &Resource) -> bool {
        let who = match principal {
            Principal::User(_) => self.who != Who::Key,
            Principal::KeyHolder(_) => self.who != Who::User,
        };
        who && self.may.contains(&verb) && covers(&self.what, resource)
    }
}

/// Returns true if a pattern covers a resource. Names other than topics are compared whole.
fn covers(pattern: &str, resource: &Resource) -> bool {
    let name = resource.name();
    pattern == "**"
        || pattern == name
        || TopicFilter::new(pattern).is_ok_and(|filter| TopicName::new(name).is_ok_and(|name| filter.matches(&name)))
}

/// The access rules of a site.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    members: Members,
    allow: Vec<Allow>,
}

impl Authorise for Rules {
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        self.members.authorise(principal, verb, resource)?;
        // Entering needs the key and no rule. Rules apply to principals that have entered.
        if verb == Verb::Enter || self.allow.is_empty() || self.allow.iter().any(|rule| rule.allows(principal, verb, resource)) {
            return Ok(());
        }
        let why = "no [[allow]] of the hub's configuration permits it".to_owned();
        Err(Denied { principal: principal.clone(), verb, resource: resource.clone(), why })
    }
}

impl Rules {
    pub(crate) fn of(config: &Config) -> Rules {
        // A collector without a node of its own is on another hub's node, which has checked the key.
        let has_key = config.network.key_file.is_some() || !config.roles.contains(&Role::Node);
        let is_named = config.domain.as_str() != DEFAULT_DOMAIN;
        let open_to = (has_key && is_named).then(|| config.domain.clone());
        Rules { members: Members { open_to }, allow: config.allow.clone() }
    }

    /// Checks that a holder of the domain's key may enter at each address of the hub.
    pub(crate) fn check_doors(&self, config: &Config) -> Result<(), Denied> {
        let stranger = Principal::KeyHolder(config.domain.clone());
        let has_book = config.roles.contains(&Role::Book);
        let book = [config.book.listen(), config.book.elog_listen]
            .into_iter()
            .filter(|_| has_book)
            .filter_map(ListenAddress::beyond_this_host);
        let addresses =
            config.network.listen.iter().chain(&config.network.connect).cloned().chain(book.map(|address| address.to_string()));
        addresses.into_iter().try_for_each(|address| self.authorise(&stranger, Verb::Enter, &Resource::Address(address)))
    }

    /// Returns these rules together with the one principal of all participants on this hub's bus.
    ///
    /// The engine does not report the sender of a message. So all participants on the bus get the rights of the least
    /// trusted one. Once the network is open, that is a holder of the key. The node's key file shows that the network
    /// may be open. A hub without a node reads it too, because its node may open the network later.
    pub(crate) fn access(self, config: &Config, process: &Settings) -> Result<Access, RunDirError> {
        let domain = config.domain.clone();
        let key = process.run_dir.domain(&domain)?.node_key();
        let others = move || if key.exists() { Principal::KeyHolder(domain.clone()) } else { Principal::this_user() };
        Ok(Access::new(Arc::new(self), others))
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Domain;

    use super::*;

    fn rules(text: &str) -> Rules {
        let config = Config::parse(&format!("domain = \"lab\"\n{text}"), std::path::Path::new("test.toml")).unwrap();
        Rules { members: Members { open_to: Some(config.domain.clone()) }, ..Rules::of(&config) }
    }

    fn key() -> Principal {
        Principal::KeyHolder(Domain::new("lab").unwrap())
    }

    #[test]
    fn with_rules_only_what_one_allows_is_allowed() {
        let query = Resource::Service("log/query".into());
        let import = Resource::Topic("log-import".into());
        let live = Resource::Topic("log/error".into());
        let free = rules("");
        let strict = rules(
            "[[allow]]\nwho = \"key\"\nmay = [\"query\", \"write\"]\nwhat = \"log/*\"\n\
             [[allow]]\nwho = \"user\"\nmay = [\"write\"]\nwhat = \"log-import\"\n",
        );
        for (who, verb, what, expected) in [
            (key(), Verb::Query, &query, true),
            (key(), Verb::Write, &live, true),
            (key(), Verb::Read, &query, false),
            (key(), Verb::Write, &import, false),
            (Principal::this_user(), Verb::Write, &import, true),
            (Principal::this_user(), Verb::Write, &live, false),
        ] {
            assert!(free.authorise(&who, verb, what).is_ok());
            assert_eq!(strict.authorise(&who, verb, what).is_ok(), expected, "{who} {verb} {what}");
        }
        let everything = rules("[[allow]]\nmay = [\"write\", \"read\"]\nwhat = \"**\"\n");
        assert!(everything.authorise(&key(), Verb::Write, &import).is_ok());
        assert!(everything.authorise(&key(), Verb::Query, &query).is_err());
        let denied = strict.authorise(&key(), Verb::Write, &import).unwrap_err().to_string();
        assert!(
            denied.starts_with("the holder of the key of 'lab' may not write the topic log-import: no [[allow]]"),
            "{denied}"
        );
        // No rule replaces the key.
        let other = Principal::KeyHolder(Domain::new("other").unwrap());
        assert!(everything.authorise(&other, Verb::Write, &import).is_err());
    }

    #[test]
    fn the_door_opens_only_for_a_domain_with_a_name_and_a_key() {
        let door = |domain: &str, key: bool| {
            let mut config = Config { domain: Domain::new(domain).unwrap(), ..Config::default() };
            config.network.listen.push("0.0.0.0:7447".into());
            config.network.key_file = key.then(|| "domain.key".into());
            Rules::of(&config).check_doors(&config)
        };
        assert_eq!(door("lab", true), Ok(()));
        assert!(door("lab", false).is_err());
        let denied = door("local", true).unwrap_err();
        assert_eq!((denied.verb, denied.resource.name()), (Verb::Enter, "0.0.0.0:7447"));
        assert_eq!(Rules::of(&Config::default()).check_doors(&Config::default()), Ok(()));
    }
}
