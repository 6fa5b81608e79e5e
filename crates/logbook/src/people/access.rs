//! Access rules of a book: rights, and the time in which entries can be changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Right;
use crate::signature::policy::SigningPolicy;

pub use super::subject::{BadSubject, Subject};

/// The kind of the store's records, which are named by the book's name in lower case.
pub const KIND: &str = "access";
/// The name under which the default rules are kept, for books without rules of their own.
pub const EVERY_BOOK: &str = "*";
/// Grants of a book.
pub const MAX_GRANTS: usize = 1000;

/// Rights of one receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The receiver of the rights.
    pub to: Subject,
    /// The granted rights.
    pub may: Vec<Right>,
}

/// The time in which users with the right to do so can change and delete entries. Earlier revisions always stay in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EditPolicy {
    /// At any time.
    #[default]
    Free,
    /// Own entries can be changed for some minutes after they were posted. Users who may edit all entries can do so at any time.
    OwnWithin {
        /// The time since posting, in minutes.
        minutes: u32,
    },
    /// Entries can be changed for some hours after they were posted, and later only by administrators of the book.
    LockedAfter {
        /// The time since posting, in hours.
        hours: u32,
    },
    /// Entries cannot be changed: a reply corrects a mistake.
    AppendOnly,
}

/// The access rules of a book.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// The grants; the rights of several grants add up.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// True if guests also have the rights that the site's setting gives them. The setting itself is not kept here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub site_guests: bool,
    /// The rule for changes of entries.
    #[serde(default)]
    pub policy: EditPolicy,
    /// The rules for signatures of entries.
    #[serde(default, skip_serializing_if = "SigningPolicy::is_empty")]
    pub signing: SigningPolicy,
}

impl Access {
    /// Returns the default rules: logged-in users may read, write and edit their own entries, and guests have the
    /// rights that the site gives them.
    pub fn usual() -> Access {
        let everybody = Grant { to: Subject::Everybody, may: vec![Right::Read, Right::Write, Right::EditOwn] };
        Access { grants: vec![everybody], site_guests: true, ..Access::default() }
    }

    /// Returns the rights of a user; an empty login is a guest. `of_guests` are the rights that the site's setting gives
    /// to guests.
    pub fn rights(&self, login: &str, groups: &[String], of_guests: &[Right]) -> Vec<Right> {
        let holds = |to: &Subject| match to {
            Subject::User(name) => !login.is_empty() && name == login,
            Subject::Group(name) => groups.contains(name),
            Subject::Everybody => !login.is_empty(),
            Subject::Guests => true,
        };
        let by_site = |right: &Right| self.site_guests && of_guests.contains(right);
        let given =
            |right: &Right| by_site(right) || self.grants.iter().any(|grant| holds(&grant.to) && grant.may.contains(right));
        Right::ALL.into_iter().filter(given).collect()
    }

    /// Returns the rights of grants that name a user, or a group of the user.
    pub fn rights_by_name(&self, login: &str, groups: &[String]) -> Vec<Right> {
        let named = |grant: &&Grant| matches!(grant.to, Subject::User(_) | Subject::Group(_));
        let grants = self.grants.iter().filter(named).cloned().collect();
        Access { grants, ..Access::default() }.rights(login, groups, &[])
    }

    /// Replaces the rights of a receiver; no rights remove the grant. Rights of guests replace those of the site's setting.
    pub fn give(&mut self, to: Subject, may: Vec<Right>) {
        self.site_guests &= to != Subject::Guests;
        self.grants.retain(|grant| grant.to != to);
        if !may.is_empty() {
            self.grants.push(Grant { to, may });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_add_up() {
        let access: Access = serde_json::from_str(
            r#"{"grants": [{"to": "guests", "may": ["read"]}, {"to": "group:ops", "may": ["write", "edit-own"]},
                {"to": "user:zoe", "may": ["admin"]}], "policy": {"kind": "own-within", "minutes": 30}}"#,
        )
        .unwrap();
        let ops = ["ops".to_owned()];
        assert_eq!(access.rights("", &[], &[Right::Write]), [Right::Read], "the site's setting is not asked");
        assert_eq!(access.rights("max", &ops, &[]), [Right::Read, Right::Write, Right::EditOwn]);
        assert_eq!(access.rights("zoe", &[], &[]), [Right::Read, Right::Admin]);
        assert_eq!(access.policy, EditPolicy::OwnWithin { minutes: 30 });
        assert_eq!(serde_json::from_str::<Access>(&serde_json::to_string(&access).unwrap()).unwrap(), access);
        let usual = Access::usual();
        assert!(usual.rights("", &[], &[]).is_empty() && usual.rights("max", &[], &[]).contains(&Right::EditOwn));
        assert_eq!(usual.rights("", &[], &[Right::Read]), [Right::Read]);
    }

    #[test]
    fn the_sites_default_for_guests_stays_out_of_the_record() {
        let mut access = Access::usual();
        access.give("user:zoe".parse().unwrap(), vec![Right::Admin]);
        let kept = serde_json::to_string(&access).unwrap();
        assert!(!kept.contains("guests\",") && kept.contains("\"site_guests\":true"), "{kept}");
        let access: Access = serde_json::from_str(&kept).unwrap();
        assert!(access.rights("", &[], &[]).is_empty(), "a site without guests stays one");
        assert_eq!(access.rights("", &[], &[Right::Read]), [Right::Read], "and a site with guests keeps them");
        let mut own = access;
        own.give(Subject::Guests, vec![]);
        assert!(own.rights("", &[], &[Right::Read]).is_empty(), "what is said of a logbook's guests replaces the default");
    }

    #[test]
    fn nobody_is_given_nothing() {
        for text in ["", "zoe", "user:", "user: zoe", "group:a:b", "Guests", "everyone"] {
            assert!(text.parse::<Subject>().is_err(), "{text:?}");
        }
        for text in
            [r#"{"grants": [{"to": "guests", "may": ["fly"]}]}"#, r#"{"policy": {"kind": "sometimes"}}"#, r#"{"polici": {}}"#]
        {
            assert!(serde_json::from_str::<Access>(text).is_err(), "{text}");
        }
        let mut access = Access::default();
        access.give(Subject::Guests, vec![Right::Read]);
        access.give(Subject::Guests, vec![]);
        assert!(access.grants.is_empty());
    }
}
