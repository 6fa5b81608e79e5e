//! Login methods outside of the logbook: what a directory, a provider of identities or a proxy reports about a person.
//!
//! A person from outside is a user of the logbook with an [`Outside`]: the method, and the subject by which the method
//! knows the person for good. The login is a name that people read; it does not prove who somebody is. So a method never
//! takes over a user that exists here already. An administrator binds such a user to the method.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tampu_workers::{Running, RunningGuard};

use super::{
    Right,
    hashing::{HASHING, WAITING},
};
use crate::book::same_name;

/// Logins that wait for services outside at a time; fewer than requests with a password.
pub const MAX_ASKING: usize = 6;
/// Of these, requests to providers of identities. Guests cause them, so directories keep places.
pub const MAX_ASKING_PROVIDERS: usize = 3;
const _: () = assert!(MAX_ASKING_PROVIDERS < MAX_ASKING && MAX_ASKING < HASHING + WAITING);

/// Groups of a person that are stored, those with a rule first.
pub const MAX_GROUPS: usize = 256;
/// Bytes of a stored group's name, or of a subject.
pub const MAX_NAME: usize = 512;

tampu_types::named_enum! {
    /// The kind of a login method.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MethodKind("login method") {
        /// A directory that checks passwords.
        Ldap => "ldap",
        /// A provider of identities, to which browsers are redirected.
        Oidc => "oidc",
        /// Kerberos tickets, or passwords that a Kerberos realm checks.
        Kerberos => "kerberos",
        /// The login of this host's operating system.
        Pam => "pam",
        /// A proxy that has checked the person.
        Proxy => "proxy",
    }
}

/// The part of a user that a login method has set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Outside {
    /// The name of the login method.
    pub method: String,
    /// The identity of the person there. It is empty until the first login of a user that an administrator has bound.
    pub subject: String,
    /// The groups of the person there, as the method reported them at the last login.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// A person as a login method reports one, once the person is proved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutsideUser {
    /// The identity, which stays when the person's names change.
    pub subject: String,
    /// The name to log in with.
    pub login: String,
    /// The full name, or empty.
    pub full_name: String,
    /// The mail address, or empty.
    pub email: String,
    /// Groups, by their names there.
    pub groups: Vec<String>,
}

/// The meaning of a group from outside: a group of the logbook, rights in a logbook, or the administration of the site.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupRule {
    /// The group there: its distinguished name, or a plain name.
    pub from: String,
    /// The group of the logbook whose rights members have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// True if members administer the site.
    pub admin: bool,
    /// The logbook in which members have the rights of `may`; `*` is every logbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<String>,
    /// The rights of members in `book`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may: Vec<Right>,
}

impl GroupRule {
    /// Returns true if a group has this name. A name without `=` also means the first part of a distinguished name.
    pub fn means(&self, group: &str) -> bool {
        let plain = |name: &str| name.split(',').map(str::trim).collect::<Vec<_>>().join(",").to_lowercase();
        let (group, from) = (plain(group), plain(&self.from));
        let first = group.split_once('=').and_then(|(_, rest)| rest.split(',').next());
        group == from || !from.contains('=') && first == Some(from.as_str())
    }
}

/// The number of logins that wait for services outside, so that a silent service leaves places for users of the logbook
/// itself. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OutsideCalls {
    all: Running,
    providers: Running,
}

impl OutsideCalls {
    /// Takes a place of a password that a method checks. Returns `None` if there is none.
    pub fn password(&self) -> Option<RunningGuard> {
        self.all.try_enter(MAX_ASKING)
    }

    /// Takes a place of a request to a provider. Returns `None` if there is none.
    pub fn provider(&self) -> Option<(RunningGuard, RunningGuard)> {
        Some((self.providers.try_enter(MAX_ASKING_PROVIDERS)?, self.password()?))
    }
}

/// The reasons for which a method cannot check a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MethodFailure {
    /// The service cannot be reached, or answers with an error.
    #[error("{0}")]
    Away(String),
    /// Too many logins wait for the service.
    #[error("too many logins wait for it")]
    Busy,
}

/// A check of passwords outside of the logbook.
pub trait CheckPassword: Send + Sync {
    /// Returns the person if the password is right, and `None` if not or if nobody has this login. `from` is the address
    /// of the client.
    fn check(&self, login: &str, password: &str, from: IpAddr) -> Result<Option<OutsideUser>, MethodFailure>;
}

/// A login method of a site.
pub struct LoginMethod {
    /// The name, by which users are bound.
    pub name: String,
    pub kind: MethodKind,
    /// True if a person's first login makes a user.
    pub register: bool,
    /// The meanings of groups.
    pub groups: Vec<GroupRule>,
    /// The check of passwords, if the method has passwords.
    pub passwords: Option<Box<dyn CheckPassword>>,
}

/// The rights of a user that come from groups outside, each with the group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutsideRights {
    /// Groups of the logbook, and the group outside that each comes from.
    pub groups: Vec<(String, String)>,
    /// The group outside that makes the user an administrator of the site.
    pub admin: Option<String>,
    /// Logbooks or `*`, with rights there, and the group outside.
    pub books: Vec<(String, Vec<Right>, String)>,
}

impl LoginMethod {
    /// Returns the meaning of groups.
    pub fn rights_of(&self, groups: &[String]) -> OutsideRights {
        let mut rights = OutsideRights::default();
        for rule in &self.groups {
            let Some(group) = groups.iter().find(|group| rule.means(group)) else { continue };
            rights.groups.extend(rule.group.iter().map(|name| (name.clone(), group.clone())));
            rights.books.extend(rule.book.iter().map(|book| (book.clone(), rule.may.clone(), group.clone())));
            if rule.admin && rights.admin.is_none() {
                rights.admin = Some(group.clone());
            }
        }
        rights
    }

    /// Returns a person's groups in the form that is stored: those with a rule first, without repetition.
    pub fn kept_groups(&self, groups: &[String]) -> Vec<String> {
        let has_rule = |group: &String| self.groups.iter().any(|rule| rule.means(group));
        let mut kept: Vec<String> = groups.iter().filter(|group| is_plain(group)).cloned().collect();
        kept.sort_by_key(|group| (!has_rule(group), group.to_lowercase()));
        kept.dedup();
        kept.truncate(MAX_GROUPS);
        kept
    }
}

impl OutsideRights {
    /// Adds the rights in a logbook to these.
    pub fn add_to(&self, book: &str, rights: &mut Vec<Right>) {
        for (of, may, _) in &self.books {
            if of == "*" || same_name(of, book) {
                rights.extend(may.iter().filter(|right| !rights.contains(right)).copied().collect::<Vec<_>>());
            }
        }
    }
}

impl Outside {
    /// Returns true if a user is bound to this identity.
    pub fn is(&self, method: &str, subject: &str) -> bool {
        self.method == method && self.subject == subject && !subject.is_empty()
    }
}

/// Returns a login in the form in which users from outside have it: without blanks at the ends, in lower case.
pub fn normal_login(login: &str) -> String {
    login.trim().to_lowercase()
}

/// Returns true if a name of a group or a subject can be stored and shown.
pub fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// Returns the names of a user's groups: those of the logbook, and those that groups outside mean.
pub fn all_groups(own: &[String], outside: &OutsideRights) -> Vec<String> {
    let mut groups = own.to_vec();
    for (group, _) in &outside.groups {
        if !groups.contains(group) {
            groups.push(group.clone());
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_meant_by_its_whole_name_or_its_first_part() {
        let rule = |from: &str| GroupRule { from: from.to_owned(), ..GroupRule::default() };
        let dn = "CN=Operators,OU=Groups,DC=example,DC=org";
        for (from, group, means) in [
            ("operators", dn, true),
            ("Operators", "operators", true),
            ("cn=operators, ou=groups, dc=example, dc=org", dn, true),
            ("cn=operators", dn, false),
            ("groups", dn, false),
            ("operator", dn, false),
            ("operators", "cn=operators-of-nothing,dc=x", false),
            ("operators", "ou=operators,ou=other", true),
        ] {
            assert_eq!(rule(from).means(group), means, "{from} {group}");
        }
    }

    #[test]
    fn stored_groups_are_bounded_and_those_with_a_rule_stay() {
        let groups = vec![GroupRule { from: "zz".into(), ..GroupRule::default() }];
        let method = LoginMethod { name: "lab".into(), kind: MethodKind::Ldap, register: true, groups, passwords: None };
        let mut many: Vec<String> = (0..1000).map(|n| format!("cn=g{n},dc=x")).collect();
        many.push("cn=zz,dc=x".into());
        many.push("a\nb".into());
        many.push("x".repeat(MAX_NAME + 1));
        let kept = method.kept_groups(&many);
        assert_eq!((kept.len(), kept[0].as_str()), (MAX_GROUPS, "cn=zz,dc=x"));
    }
}
