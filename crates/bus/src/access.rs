//! Authorisation: one hook, which is called for every change and every read from outside.
//!
//! An engine admits or rejects a process; an admitted one is a [`Principal`]. [`Authorise`] decides about the
//! principal's rights, so a site's rules have one home for all callers. A [`Policy`] holds these rules. The decision is
//! `spec/decisions/0019-policy.md`.
//!
//! | part | content |
//! |-|-|
//! | [`Principal`], [`Verb`], [`Resource`], [`Denied`] | the nouns of a question and of its refusal |
//! | [`Policy`], [`Rule`], [`Decision`] | rules, defaults, their precedence, and the explanation of a decision |
//! | [`Access`] | the hook of one process, with the principal of the bus's members and the audit |
//! | `proof` | the proof of a process that it belongs to the user of this host |

mod audit;
mod hook;
mod host;
mod nouns;
mod period_limit;
mod policy;
mod proof;
mod rule;
mod topic_rights;

pub(crate) use audit::count as count_refusal;
pub use audit::{Act, Outcome, refusals};
pub use hook::{Access, Authorise, HostRules, Members};
pub use host::publish_policy;
pub(crate) use host::{HostTopics, access_of_host, proof_in, rule_for_hosts};
pub use nouns::{BadPrincipal, BadResource, Denied, Principal, Resource, Verb};
pub use period_limit::PeriodLimit;
pub use policy::{Basis, Decision, Defaults, Policy};
pub(crate) use proof::SECRET_LENGTH;
pub use proof::{LocalProof, UnsealedQuestion};
pub use rule::{BadRule, Effect, Place, Rule, Who};
pub use topic_rights::TopicRights;
