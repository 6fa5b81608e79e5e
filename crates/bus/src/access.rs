//! Who may do what: the one hook, asked wherever something is changed or read from outside.
//!
//! An engine lets in or keeps out; who is in is a [`Principal`]. What a principal may do is for [`Authorise`] to say, so that
//! a site's rules have one home, whatever asks. The decision is `spec/decisions/0006-authorisation.md`.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use tampu_types::Domain;

/// Who asks, as far as the way it came tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// A user of this host, by number: only this user's processes can enter the run-time directory.
    User(u32),
    /// Somebody who has proved to have the key of this domain, from wherever.
    KeyHolder(Domain),
}

impl Principal {
    /// The user this process runs as.
    pub fn this_user() -> Principal {
        Principal::User(rustix::process::geteuid().as_raw())
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::User(number) => write!(f, "user {number}"),
            Principal::KeyHolder(domain) => write!(f, "whoever has the key of '{domain}'"),
        }
    }
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// See how something is.
    Read,
    /// Publish into a topic.
    Write,
    /// Search what is kept.
    Query,
    /// Set something.
    Change,
    /// Come in at an address.
    Enter,
}

impl Verb {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Query => "query",
            Verb::Change => "change",
            Verb::Enter => "enter",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// A topic.
    Topic(String),
    /// A service on the bus.
    Service(String),
    /// An address that is listened at.
    Address(String),
    /// A setting.
    Setting(String),
}

impl Resource {
    /// Its name, of whichever kind it is.
    pub fn name(&self) -> &str {
        match self {
            Resource::Topic(name) | Resource::Service(name) | Resource::Address(name) | Resource::Setting(name) => name,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Resource::Topic(_) => "topic",
            Resource::Service(_) => "service",
            Resource::Address(_) => "address",
            Resource::Setting(_) => "setting",
        };
        write!(f, "the {kind} {}", self.name())
    }
}

/// A refusal: who was refused what, and why. It travels as JSON to who asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{principal} may not {verb} {resource}: {why}")]
pub struct Denied {
    /// Who asked.
    pub principal: Principal,
    /// What it wanted.
    pub verb: Verb,
    /// About what.
    pub resource: Resource,
    /// Which rule says no.
    pub why: String,
}

/// The hook.
pub trait Authorise: Send + Sync {
    /// Whether this principal may do this to that.
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied>;
}

/// The rule without rules: who is let in may do everything. That is this process's own user, and whoever has the domain's key
/// where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    /// The domain whose key lets in; with none, only this user is a member.
    pub open_to: Option<Domain>,
}

impl Authorise for Members {
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        let why = match principal {
            Principal::User(_) if *principal == Principal::this_user() => return Ok(()),
            Principal::KeyHolder(domain) if self.open_to.as_ref() == Some(domain) => return Ok(()),
            Principal::User(_) => "on one host only the hub's own user may",
            Principal::KeyHolder(_) => "the network is open only to a domain with a name and a key",
        };
        Err(Denied { principal: principal.clone(), verb, resource: resource.clone(), why: why.to_owned() })
    }
}

/// The hook, and who is at the other end of what it is asked about.
#[derive(Clone)]
pub struct Access {
    hook: Arc<dyn Authorise>,
    others: Arc<dyn Fn() -> Principal + Send + Sync>,
}

impl Access {
    /// Asks this hook. `others` says who everybody on the bus is, at the moment: an engine tells who was let in, not which of
    /// them has sent this message.
    pub fn new(hook: Arc<dyn Authorise>, others: impl Fn() -> Principal + Send + Sync + 'static) -> Access {
        Access { hook, others: Arc::new(others) }
    }

    /// For a bus that only this user's processes can enter.
    pub fn same_user() -> Access {
        Access::new(Arc::new(Members::default()), Principal::this_user)
    }

    /// Whether those on the bus may do this to that.
    pub fn ask(&self, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        self.hook.authorise(&(self.others)(), verb, resource)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access of {}", (self.others)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_user_is_a_member_until_there_is_a_key() {
        let query = Resource::Service("log/query".to_owned());
        let (lab, other) = (Domain::new("lab").unwrap(), Domain::new("other").unwrap());
        let stranger = Principal::User(rustix::process::geteuid().as_raw() + 1);
        let may = |members: &Members, who: Principal| members.authorise(&who, Verb::Query, &query).is_ok();
        let (closed, open) = (Members::default(), Members { open_to: Some(lab.clone()) });
        for members in [&closed, &open] {
            assert!(may(members, Principal::this_user()));
            assert!(!may(members, stranger.clone()));
            assert!(!may(members, Principal::KeyHolder(other.clone())));
        }
        assert!(!may(&closed, Principal::KeyHolder(lab.clone())));
        assert!(may(&open, Principal::KeyHolder(lab)));
    }

    #[test]
    fn a_refusal_names_who_what_and_why() {
        let lab = Principal::KeyHolder(Domain::new("lab").unwrap());
        let denied = Members::default().authorise(&lab, Verb::Query, &Resource::Service("log/query".to_owned())).unwrap_err();
        assert_eq!(
            denied.to_string(),
            "whoever has the key of 'lab' may not query the service log/query: \
             the network is open only to a domain with a name and a key"
        );
        let json = serde_json::to_string(&denied).unwrap();
        assert!(
            json.starts_with(r#"{"principal":{"key_holder":"lab"},"verb":"query","resource":{"service":"log/query"},"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Denied>(&json).unwrap(), denied);
    }
}
