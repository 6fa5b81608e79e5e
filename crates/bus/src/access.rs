//! Authorisation: one hook, which is called for every change and every read from outside.
//!
//! An engine admits or rejects a process; an admitted one is a [`Principal`]. [`Authorise`] decides about the
//! principal's rights, so a site's rules have one home for all callers. The decision is
//! `spec/decisions/0006-authorisation.md`.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use tampu_types::Domain;

/// Principal that asks, as far as the transport identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// A user of this host, by number: only this user's processes can enter the run-time directory.
    User(u32),
    /// Process that has proved to have the key of this domain, from any host.
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
            Principal::KeyHolder(domain) => write!(f, "the holder of the key of '{domain}'"),
        }
    }
}

/// The kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Read a state.
    Read,
    /// Publish into a topic.
    Write,
    /// Search stored data.
    Query,
    /// Change a setting or a state.
    Change,
    /// Connect at an address.
    Enter,
}

impl Verb {
    /// The verb as a lower-case word.
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

/// The object of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// A topic of the bus.
    Topic(String),
    /// A service on the bus.
    Service(String),
    /// Address that a process listens at.
    Address(String),
    /// A setting of a process.
    Setting(String),
}

impl Resource {
    /// Returns its name, of any kind.
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

/// Refusal of an action, with its principal and its reason. It travels as JSON to the asking process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{principal} may not {verb} {resource}: {why}")]
pub struct Denied {
    /// The asking principal.
    pub principal: Principal,
    /// The denied action.
    pub verb: Verb,
    /// The object of the denied action.
    pub resource: Resource,
    /// The rule that denies it.
    pub why: String,
}

/// The hook that decides about actions.
pub trait Authorise: Send + Sync {
    /// Returns an error if the principal may not do this to the resource.
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied>;
}

/// Rule without restrictions: every member may do everything. Members are this process's own user and, if there is a
/// domain key, every process that has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    /// Domain whose key makes a member; with `None`, only this user is a member.
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

/// The hook, with the principal at the other end.
#[derive(Clone)]
pub struct Access {
    hook: Arc<dyn Authorise>,
    others: Arc<dyn Fn() -> Principal + Send + Sync>,
}

impl Access {
    /// Uses this hook. `others` returns the principal of all processes on the bus at present. An engine knows the
    /// admitted principal, and not which process has sent a message.
    pub fn new(hook: Arc<dyn Authorise>, others: impl Fn() -> Principal + Send + Sync + 'static) -> Access {
        Access { hook, others: Arc::new(others) }
    }

    /// Makes the access of a bus that only this user's processes can enter.
    pub fn same_user() -> Access {
        Access::new(Arc::new(Members::default()), Principal::this_user)
    }

    /// Returns true if the members of the bus may be on other hosts: the network is open to everybody with the domain's key.
    pub fn is_open(&self) -> bool {
        matches!((self.others)(), Principal::KeyHolder(_))
    }

    /// Asks the hook if the members of the bus may do this to the resource.
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
            "the holder of the key of 'lab' may not query the service log/query: \
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
