//! The hook of one process: who the members of its bus are, and what they may do.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use tampu_types::Domain;

use super::{
    audit::{self, Act, Outcome},
    nouns::{Denied, Principal, Resource, Verb},
    proof::{LocalProof, UnsealedQuestion},
};

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
            // The engine checks certificates together with the key.
            Principal::Host(_) if self.open_to.is_some() => return Ok(()),
            Principal::User(_) => "on one host only the hub's own user may",
            Principal::KeyHolder(_) | Principal::Host(_) => "the network is open only to a domain with a name and a key",
            Principal::Login(_) | Principal::Token(_) | Principal::Guest => "it is no member of the bus",
        };
        Err(Denied { principal: principal.clone(), verb, resource: resource.clone(), why: why.to_owned() })
    }
}

/// Source of the access rules of a host.
pub trait HostRules {
    /// Returns the access rules of the host.
    fn access(&self) -> Access;
}

type Audit = Arc<dyn Fn(&Act<'_>) + Send + Sync>;

struct Bound {
    hook: Arc<dyn Authorise>,
    others: Arc<dyn Fn() -> Principal + Send + Sync>,
    proof: Option<LocalProof>,
    audit: Option<Audit>,
}

/// The hook, with the principal at the other end.
#[derive(Clone)]
pub struct Access {
    bound: Arc<Bound>,
    /// True if a participant replaces it with the rules of its host.
    of_host: bool,
}

impl Access {
    /// Uses this hook. `others` returns the principal of all processes on the bus at present. An engine knows the
    /// admitted principal, and not which process has sent a message.
    pub fn new(hook: Arc<dyn Authorise>, others: impl Fn() -> Principal + Send + Sync + 'static) -> Access {
        let bound = Bound { hook, others: Arc::new(others), proof: None, audit: None };
        Access { bound: Arc::new(bound), of_host: false }
    }

    /// Makes the access of a bus that only this user's processes can enter.
    pub fn same_user() -> Access {
        Access::new(Arc::new(Members::default()), Principal::this_user)
    }

    /// Makes the access by the rules of the host's node, which [`Access::bound_to`] finds. Without a run-time directory
    /// it is [`Access::same_user`].
    pub fn of_host() -> Access {
        Access { of_host: true, ..Access::same_user() }
    }

    /// Returns the access by the rules of the participant's host if this is [`Access::of_host`], else itself.
    pub fn bound_to(&self, host: &impl HostRules) -> Access {
        if !self.of_host {
            return self.clone();
        }
        let mut bound = host.access();
        if let Some(audit) = self.bound.audit.clone() {
            bound = bound.with_audit(move |act| audit(act));
        }
        bound
    }

    /// Adds the proof by which processes of this host's user are told from other members.
    pub fn with_proof(self, proof: LocalProof) -> Access {
        let bound = Bound { proof: Some(proof), ..self.parts() };
        Access { bound: Arc::new(bound), of_host: self.of_host }
    }

    /// Adds a receiver of refused and administrative actions. It must be quick: the engine's worker calls it.
    pub fn with_audit(self, audit: impl Fn(&Act<'_>) + Send + Sync + 'static) -> Access {
        let bound = Bound { audit: Some(Arc::new(audit)), ..self.parts() };
        Access { bound: Arc::new(bound), of_host: self.of_host }
    }

    /// Removes the receiver of actions, for a second logger of a process that audits already.
    pub fn without_audit(&self) -> Access {
        Access { bound: Arc::new(Bound { audit: None, ..self.parts() }), of_host: self.of_host }
    }

    fn parts(&self) -> Bound {
        let Bound { hook, others, proof, audit } = &*self.bound;
        Bound { hook: hook.clone(), others: others.clone(), proof: proof.clone(), audit: audit.clone() }
    }

    /// Returns the principal of all members of the bus without a proof of their own.
    pub fn others(&self) -> Principal {
        (self.bound.others)()
    }

    /// Returns true if the members of the bus may be on other hosts: the network is open to everybody with the domain's key.
    pub fn is_open(&self) -> bool {
        !matches!(self.others(), Principal::User(_))
    }

    /// Returns the principal that asks this question of a service. A process of this host's user proves it; else it is the
    /// asking host, if its name is proved.
    pub fn asker(&self, service: &str, question: &UnsealedQuestion, host: Option<&str>) -> Principal {
        let is_local = self.bound.proof.as_ref().is_some_and(|proof| proof.verify(service, question));
        match host {
            _ if is_local => Principal::this_user(),
            Some(host) => Principal::Host(host.to_owned()),
            None => self.others(),
        }
    }

    /// Reads a message of this host with an optional proof about `name`, and returns its principal and its content.
    pub fn unseal(&self, name: &str, message: &Bytes, host: Option<&str>) -> (Principal, Bytes) {
        let question = UnsealedQuestion::read(message);
        (self.asker(name, &question, host), question.content)
    }

    /// Asks the hook if the members of the bus may do this to the resource.
    pub fn ask(&self, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        self.ask_for(&self.others(), verb, resource)
    }

    /// Asks the hook if this principal may do this to the resource. A refusal is counted and audited.
    pub fn ask_for(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        let answer = self.bound.hook.authorise(principal, verb, resource);
        if let Err(denied) = &answer {
            audit::count(verb);
            self.tell(&Act { principal, verb, resource, outcome: Outcome::Refused(&denied.why) });
        }
        answer
    }

    /// Reports if the principal may do this, without an audit record.
    pub fn permits(&self, principal: &Principal, verb: Verb, resource: &Resource) -> bool {
        self.bound.hook.authorise(principal, verb, resource).is_ok()
    }

    /// Audits an administrative action that was carried out.
    pub fn carried_out(&self, principal: &Principal, verb: Verb, resource: &Resource, detail: &str) {
        self.tell(&Act { principal, verb, resource, outcome: Outcome::Done(detail) });
    }

    fn tell(&self, act: &Act<'_>) {
        if let Some(audit) = &self.bound.audit {
            audit(act);
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access of {}", self.others())
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
            assert!(!may(members, Principal::Guest));
        }
        assert!(!may(&closed, Principal::KeyHolder(lab.clone())));
        assert!(!may(&closed, Principal::Host("weather".to_owned())));
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
        // The word of earlier releases.
        let earlier = json.replace("\"query\",\"res", "\"change\",\"res");
        assert_eq!(serde_json::from_str::<Denied>(&earlier).unwrap().verb, Verb::Set);
    }
}
