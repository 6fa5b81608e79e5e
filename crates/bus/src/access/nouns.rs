//! The nouns of authorisation: principals, verbs, resources, refusals.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tampu_types::{Domain, TopicName};

/// Principal that asks, as far as it has proved its identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// A user of this host, by number: only this user's processes can enter the run-time directory.
    User(u32),
    /// Process that has proved to have the key of this domain, from any host.
    KeyHolder(Domain),
    /// Host whose certificate the link has proved.
    Host(String),
    /// User of the logbook, by login.
    Login(String),
    /// Program with a token of the logbook: `LOGIN/NAME` of the token.
    Token(String),
    /// Visitor of the logbook without a login.
    Guest,
}

/// Error for a text that names no principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no principal; write local, key, guest, host:NAME, user:LOGIN or token:LOGIN/NAME, such as key or user:zoe")]
pub struct BadPrincipal(pub String);

impl Principal {
    /// The user this process runs as.
    pub fn this_user() -> Principal {
        Principal::User(rustix::process::geteuid().as_raw())
    }

    /// Reads a principal of this host and domain: `local`, `key`, `guest`, `host:NAME`, `user:LOGIN`, `token:LOGIN/NAME`.
    pub fn parse(text: &str, domain: &Domain) -> Result<Principal, BadPrincipal> {
        let bad = || BadPrincipal(text.to_owned());
        match text.split_once(':') {
            None if text == "local" => Ok(Principal::this_user()),
            None if text == "key" => Ok(Principal::KeyHolder(domain.clone())),
            None if text == "guest" => Ok(Principal::Guest),
            Some((_, "")) | None => Err(bad()),
            Some(("host", name)) => Ok(Principal::Host(name.to_owned())),
            Some(("user", name)) => Ok(Principal::Login(name.to_owned())),
            Some(("token", name)) => Ok(Principal::Token(name.to_owned())),
            Some(_) => Err(bad()),
        }
    }

    /// Returns the word for this principal in a rule, such as `key` or `user:zoe`.
    pub fn word(&self) -> String {
        match self {
            Principal::User(_) => "local".to_owned(),
            Principal::KeyHolder(_) => "key".to_owned(),
            Principal::Host(name) => format!("host:{name}"),
            Principal::Login(name) => format!("user:{name}"),
            Principal::Token(name) => format!("token:{name}"),
            Principal::Guest => "guest".to_owned(),
        }
    }

    /// Reports if the logbook knows this principal; the bus does not.
    pub fn is_of_the_logbook(&self) -> bool {
        matches!(self, Principal::Login(_) | Principal::Token(_) | Principal::Guest)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::User(number) => write!(f, "user {number}"),
            Principal::KeyHolder(domain) => write!(f, "the holder of the key of '{domain}'"),
            Principal::Host(name) => write!(f, "the host '{}'", name.escape_debug()),
            Principal::Login(name) => write!(f, "the logbook's user '{}'", name.escape_debug()),
            Principal::Token(name) => write!(f, "the token '{}'", name.escape_debug()),
            Principal::Guest => f.write_str("a guest"),
        }
    }
}

/// The kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Read a state, or data as they come.
    Read,
    /// Publish: log records, events, entries.
    Write,
    /// Search stored data.
    Query,
    /// Change criteria of events or levels of loggers. Its name in earlier releases was `change`.
    #[serde(alias = "change")]
    Set,
    /// Send bulk data.
    Send,
    /// Receive bulk data.
    Receive,
    /// Back up and maintain an archive.
    Backup,
    /// Change the configuration or the policy.
    Admin,
    /// Connect at an address.
    Enter,
}

impl Verb {
    /// All verbs, in the order of their numbers.
    pub const ALL: [Verb; 9] =
        [Verb::Read, Verb::Write, Verb::Query, Verb::Set, Verb::Send, Verb::Receive, Verb::Backup, Verb::Admin, Verb::Enter];

    /// The verb as a lower-case word.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Query => "query",
            Verb::Set => "set",
            Verb::Send => "send",
            Verb::Receive => "receive",
            Verb::Backup => "backup",
            Verb::Admin => "admin",
            Verb::Enter => "enter",
        }
    }

    /// Returns the verbs that a word in a rule stands for: a verb's name, `history` for `query`, `bulk` for both
    /// directions of bulk data, and `change` for `set`, `backup` and `admin`.
    pub fn of_word(word: &str) -> Option<Vec<Verb>> {
        Some(match word {
            "history" => vec![Verb::Query],
            "bulk" => vec![Verb::Send, Verb::Receive],
            "change" => vec![Verb::Set, Verb::Backup, Verb::Admin],
            "configure" => vec![Verb::Admin],
            _ => vec![Verb::ALL.into_iter().find(|verb| verb.name() == word)?],
        })
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
    /// An attribute, whose events are read or written.
    Attribute(String),
    /// A stream of bulk data.
    Bulk(String),
    /// A logbook, by name.
    Book(String),
    /// A source: the name of processes, in whose name records and events are written.
    Source(String),
}

/// Error for a text that names no resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no resource; write a topic or a service (log/query), event/ATTRIBUTE, bulk/STREAM, book/NAME, source/NAME, backup, or config"
)]
pub struct BadResource(pub String);

/// Services of the bus that share a prefix with attributes and bulk streams.
const SERVICES: [&str; 11] = [
    "event/list",
    "event/conf",
    "event/doctor",
    "event/get",
    "event/history",
    "event/archive",
    "event/refresh",
    "bulk/control",
    "bulk/state",
    "bulk/transfers",
    "bulk/archive",
];

impl Resource {
    /// Returns the name that patterns of rules are compared with. Attributes, streams and books have a prefix.
    pub fn name(&self) -> String {
        match self {
            Resource::Topic(name) | Resource::Service(name) | Resource::Address(name) | Resource::Setting(name) => name.clone(),
            Resource::Attribute(name) => format!("event/{name}"),
            Resource::Bulk(name) => format!("bulk/{name}"),
            Resource::Book(name) => format!("book/{name}"),
            Resource::Source(name) => format!("source/{name}"),
        }
    }

    /// Returns the second name of archives: rules may call their services `backup`.
    pub(super) fn second_name(&self) -> Option<&'static str> {
        matches!(self, Resource::Service(name) if name == "log/archive" || name == "event/archive").then_some("backup")
    }
}

impl FromStr for Resource {
    type Err = BadResource;

    fn from_str(text: &str) -> Result<Resource, BadResource> {
        let named = |name: &str, make: fn(String) -> Resource| {
            if name.is_empty() { Err(BadResource(text.to_owned())) } else { Ok(make(name.to_owned())) }
        };
        if text == "backup" {
            return Ok(Resource::Service("log/archive".to_owned()));
        }
        if text == "config" {
            return Ok(Resource::Setting("config".to_owned()));
        }
        if SERVICES.contains(&text) {
            return Ok(Resource::Service(text.to_owned()));
        }
        if let Some(name) = text.strip_prefix("event/") {
            return named(name, Resource::Attribute);
        }
        // The control of a sender or a receiver has its own rights.
        if text.strip_prefix("bulk/control/").is_some_and(|name| !name.is_empty()) {
            return Ok(Resource::Service(text.to_owned()));
        }
        if let Some(name) = text.strip_prefix("bulk/") {
            return named(name, Resource::Bulk);
        }
        if let Some(name) = text.strip_prefix("source/") {
            return named(name, Resource::Source);
        }
        if let Some(name) = text.strip_prefix("book/") {
            return named(name, Resource::Book);
        }
        if [
            "log/query",
            "log/stat",
            "log/status",
            "log/offsets",
            "log/keeps",
            "log/archive",
            "log/levels",
            "log/spool",
            "bus/state",
            "site/host",
        ]
        .contains(&text)
        {
            return Ok(Resource::Service(text.to_owned()));
        }
        TopicName::new(text).map_err(|_| BadResource(text.to_owned()))?;
        Ok(Resource::Topic(text.to_owned()))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Resource::Topic(name) => ("topic", name),
            Resource::Service(name) => ("service", name),
            Resource::Address(name) => ("address", name),
            Resource::Setting(name) => ("setting", name),
            Resource::Attribute(name) => ("attribute", name),
            Resource::Bulk(name) => ("bulk stream", name),
            Resource::Book(name) => ("logbook", name),
            Resource::Source(name) => ("source", name),
        };
        write!(f, "the {kind} {name}")
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
    /// The rule or the default that denies it.
    pub why: String,
}
