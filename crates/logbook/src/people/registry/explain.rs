//! The explanation of a caller's rights: how the caller is known, the caller's groups, and the origin of each right.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    super::{
        Right,
        access::{EVERY_BOOK, Subject},
        error::Result,
        outside::{MethodKind, OutsideRights, all_groups},
        principal::{Credentials, Principal},
        user::User,
    },
    People,
};

/// The origin of a caller's rights.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The login; empty for a guest.
    pub login: String,
    /// The proof of the request: guest, owner, session, token, password, ticket or proxy.
    pub by: String,
    /// The login method that proves the user, with its kind.
    pub method: String,
    /// The identity of the user at the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The user's groups here, each with its origin.
    pub groups: Vec<GroupOrigin>,
    /// The groups that the method reported at the last login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside_groups: Vec<String>,
    /// The reason for which the caller administers the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<String>,
    /// The logbooks in which something gives the caller a right.
    pub books: Vec<BookOrigin>,
}

/// A group and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupOrigin {
    pub group: String,
    /// The logbook itself, or the group outside.
    pub from: String,
}

/// The rights in one logbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BookOrigin {
    pub book: String,
    /// Rights that something gives.
    pub rights: Vec<RightOrigin>,
}

/// A right and its origins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RightOrigin {
    pub right: Right,
    /// Everything that gives the right.
    pub from: Vec<String>,
    /// The rule that takes the right away again; missing if the caller has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<String>,
}

impl Principal {
    /// The word for the proof of a request.
    pub fn proof(&self) -> &'static str {
        match &self.by {
            Credentials::Nothing => "guest",
            Credentials::Owner => "owner",
            Credentials::Session { .. } => "session",
            Credentials::Token(_) => "token",
            Credentials::Password { .. } => "password",
            Credentials::Proxy { kind: MethodKind::Kerberos, .. } => "ticket",
            Credentials::Proxy { .. } => "proxy",
        }
    }
}

impl People {
    /// Explains the rights of a caller.
    pub fn explain(&self, who: &Principal) -> Result<Explanation> {
        let is_owner = who.by == Credentials::Owner;
        let user = if is_owner || who.is_guest() { User::default() } else { self.user(&who.login)? };
        let outside = self.outside_rights(&user);
        let own = user.groups.iter().map(|group| GroupOrigin { group: group.clone(), from: "this logbook".to_owned() });
        let mapped = outside.groups.iter().map(|(group, from)| GroupOrigin { group: group.clone(), from: from.clone() });
        let admin = match (&who.by, user.admin) {
            (Credentials::Owner, _) => Some("the owner of the installation".to_owned()),
            (_, true) => Some("administrator of this logbook".to_owned()),
            _ => outside.admin.as_ref().map(|group| format!("member of {group}")),
        };
        let known = self.known()?;
        let mut books = Vec::new();
        // A token for some logbooks does not learn of the others.
        let names = |book: &str| match &who.by {
            Credentials::Token(token) => Right::ALL.into_iter().any(|right| token.leaves(book, right)),
            _ => true,
        };
        for (book, _) in known.books.iter().filter(|(book, _)| names(book)) {
            let mut rights = Vec::new();
            for right in Right::ALL {
                let from = match &admin {
                    Some(why) => vec![why.clone()],
                    None => self.origins(&user, &outside, book, right)?,
                };
                let has = who.rights.may(right, book);
                if has || !from.is_empty() {
                    let taken_by = (!has).then(|| self.taker(who, &user, book, right)).transpose()?;
                    rights.push(RightOrigin { right, from, taken_by });
                }
            }
            if !rights.is_empty() {
                books.push(BookOrigin { book: book.clone(), rights });
            }
        }
        Ok(Explanation {
            login: who.login.clone(),
            by: who.proof().to_owned(),
            method: if is_owner { "the token of the hub's own user".to_owned() } else { self.way_in(&user) },
            subject: user.outside.as_ref().map(|outside| outside.subject.clone()),
            groups: own.chain(mapped).collect(),
            outside_groups: user.outside.map(|outside| outside.groups).unwrap_or_default(),
            admin,
            books,
        })
    }

    /// Names the login method of a user, with its kind.
    fn way_in(&self, user: &User) -> String {
        match (&user.outside, &user.password) {
            (Some(outside), _) => match self.method(&outside.method) {
                Some(method) => format!("{} ({})", method.name, method.kind),
                None => format!("{} (no longer a login method of this site)", outside.method),
            },
            (None, _) if user.login.is_empty() => "none".to_owned(),
            (None, Some(_)) => "password of this logbook".to_owned(),
            (None, None) => "tokens only".to_owned(),
        }
    }

    /// Returns everything that gives a user a right in a book.
    fn origins(&self, user: &User, outside: &OutsideRights, book: &str, right: Right) -> Result<Vec<String>> {
        let access = self.access_in(&*self.known()?, book);
        let groups = all_groups(&user.groups, outside);
        let mut from = Vec::new();
        for grant in access.grants.iter().filter(|grant| grant.may.contains(&right)) {
            let holds = match &grant.to {
                Subject::User(login) => !user.login.is_empty() && *login == user.login,
                Subject::Group(group) => groups.contains(group),
                Subject::Everybody => !user.login.is_empty(),
                Subject::Guests => true,
            };
            if holds {
                from.push(grant.to.to_string());
            }
        }
        if access.site_guests && self.settings.guests.contains(&right) {
            from.push("[book] guests of the hub's configuration".to_owned());
        }
        for (of, may, group) in &outside.books {
            if (of == EVERY_BOOK || crate::book::same_name(of, book)) && may.contains(&right) {
                from.push(format!("{group}, by a rule of the login method"));
            }
        }
        Ok(from)
    }

    /// Names the rule that takes a given right from a caller.
    fn taker(&self, who: &Principal, user: &User, book: &str, right: Right) -> Result<String> {
        let known = self.known()?;
        let policy = known.books.iter().find(|(name, _)| name == book).map(|(_, policy)| policy);
        if user.inactive {
            return Ok("the user is disabled".to_owned());
        }
        if let Some(policy) = policy {
            let groups = all_groups(&user.groups, &self.outside_rights(user));
            if let Some(file) = policy.password_file().filter(|file| !user.login.is_empty() && !known.files.admit(file, &groups))
                && !self.access_in(&known, book).rights_by_name(&user.login, &groups).contains(&right)
            {
                let group = known.files.group(file);
                return Ok(format!("'Password file' of the logbook's ELOG configuration, which admits the group '{group}'"));
            }
            if !policy.leaves(&user.login, vec![right]).contains(&right) {
                let option = policy.guests_closed_by().filter(|_| user.login.is_empty()).unwrap_or("Login user");
                return Ok(format!("'{option}' of the logbook's ELOG configuration"));
            }
            if right == Right::Read && !policy.lists(&user.login) {
                return Ok("'Deny List' or 'Allow List' of the logbook's ELOG configuration".to_owned());
            }
        }
        if let Credentials::Token(token) = &who.by
            && !token.leaves(book, right)
        {
            return Ok("the token, which has fewer rights".to_owned());
        }
        Ok("the site's access rules, or 'Hosts deny' of the logbook; 'tampu access explain' says more".to_owned())
    }
}
