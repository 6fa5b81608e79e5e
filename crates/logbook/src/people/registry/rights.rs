//! The rights of callers: users, guests, and the owner of the installation.

use std::net::IpAddr;

use super::{
    super::{
        Right, Rights,
        access::{Access, EVERY_BOOK},
        elog_rules::ElogRules,
        error::{PeopleError, Result},
        login_policy::LoginPolicy,
        outside::all_groups,
        password_files::PasswordFiles,
        principal::{Credentials, Principal},
        user::User,
    },
    Cache, People,
};
use crate::book::{Book, same_name};

/// Returns the rights that grants give to a user. In a book whose password file does not have the user, those are the rights
/// of a guest, and those of grants by name.
fn given(files: &PasswordFiles, policy: &LoginPolicy, access: &Access, user: (&str, &[String]), guests: &[Right]) -> Vec<Right> {
    let (login, groups) = user;
    if policy.password_file().is_none_or(|file| files.admit(file, groups)) {
        return access.rights(login, groups, guests);
    }
    let mut may = policy.leaves("", access.rights("", &[], guests));
    may.extend(access.rights_by_name(login, groups));
    Right::ALL.into_iter().filter(|right| may.contains(right)).collect()
}

impl Cache {
    fn former_names(&self, book: &str) -> impl Iterator<Item = &str> {
        self.former.iter().filter(move |(_, now)| same_name(now, book)).map(|(former, _)| former.as_str())
    }
}

impl People {
    pub(super) fn principal(&self, user: &User, by: Credentials) -> Result<Principal> {
        let known = self.known()?;
        let mut rights = Rights::default();
        let outside = self.outside_rights(user);
        let (groups, is_admin) = (all_groups(&user.groups, &outside), user.admin || outside.admin.is_some());
        for (book, policy) in &known.books {
            let guests = &self.settings.guests;
            let mut may = match is_admin {
                true => Right::ALL.to_vec(),
                false => {
                    let mut may = given(&known.files, policy, &self.access_in(&known, book), (&user.login, &groups), guests);
                    outside.add_to(book, &mut may);
                    policy.leaves(&user.login, may)
                }
            };
            if by != Credentials::Owner && !policy.lists(&user.login) {
                may.retain(|right| *right != Right::Read);
            }
            if !may.is_empty() {
                rights.0.insert(book.clone(), may);
            }
        }
        let mut admin = is_admin;
        if let Credentials::Token(token) = &by {
            rights = rights.only(|book, right| token.leaves(book, right));
            admin &= token.is_whole();
        }
        let User { login, email, .. } = user.clone();
        let mut principal = Principal { login, full_name: user.shown().to_owned(), email, admin, rights, by };
        if let Some(permits) = self.permits.as_ref().filter(|_| principal.by != Credentials::Owner) {
            let rights = std::mem::take(&mut principal.rights);
            // A rule about a former name still means the logbook, or a new name would open it.
            let of_former = |book: &str, right| known.former_names(book).all(|former| permits(&principal, former, right));
            principal.rights = rights.only(|book, right| permits(&principal, book, right) && of_former(book, right));
        }
        Ok(principal)
    }

    /// Returns the rights of a user, of one of the user's tokens, or of guests, without any credentials. The result
    /// explains rights and admits nobody.
    pub fn rights_of(&self, login: Option<&str>, token: Option<&str>) -> Result<Principal> {
        let Some(login) = login else { return self.guest() };
        let user = self.user(login)?;
        let by = match token {
            None => Credentials::Password { generation: user.generation },
            Some(id) => {
                let found = self.tokens(Some(login))?.into_iter().find(|token| token.id == id);
                let missing = || PeopleError::Invalid(format!("'{login}' has no token '{}'", id.escape_debug()));
                Credentials::Token(found.ok_or_else(missing)?)
            }
        };
        if user.inactive {
            return Ok(Principal { rights: Rights::default(), admin: false, ..self.principal(&user, by)? });
        }
        self.principal(&user, by)
    }

    /// Returns the former names of a book, in lower case.
    pub fn former_names(&self, book: &str) -> Result<Vec<String>> {
        Ok(self.known()?.former_names(book).map(str::to_owned).collect())
    }

    /// Narrows the rights of all callers but the owner of the installation: a right stays only if `permits` returns true.
    pub fn narrowed_by(mut self, permits: impl Fn(&Principal, &str, Right) -> bool + Send + Sync + 'static) -> People {
        self.permits = Some(Box::new(permits));
        self
    }

    /// Keeps logins that the site's rules name from people who choose theirs.
    pub fn with_names_in_rules(mut self, names: impl Fn(&str) -> bool + Send + Sync + 'static) -> People {
        self.names_in_rules = Some(Box::new(names));
        self
    }

    pub(super) fn access_in(&self, known: &Cache, book: &str) -> Access {
        let found = known.access.get(&book.to_lowercase()).or_else(|| known.access.get(EVERY_BOOK));
        found.cloned().unwrap_or_else(Access::usual)
    }

    /// Returns the password files that the logbooks name.
    pub fn password_files(&self) -> Result<PasswordFiles> {
        Ok(self.known()?.files.clone())
    }

    /// Returns whether the configuration of a book opens it to clients at an address; a book that does not exist is closed to nobody.
    pub fn is_open_to(&self, book: &str, from: IpAddr) -> Result<bool> {
        let known = self.known()?;
        let found = known.books.iter().find(|(name, _)| same_name(name, book));
        Ok(found.is_none_or(|(_, policy)| policy.admits_host(from)))
    }

    /// Returns the books of which a caller sees some attributes only, with these attributes. The owner of the installation
    /// sees all.
    pub fn shown(&self, principal: &Principal) -> Result<Vec<(String, Vec<String>)>> {
        if principal.by == Credentials::Owner {
            return Ok(Vec::new());
        }
        let known = self.known()?;
        let shown = |book: &Book| {
            let shown = ElogRules::of(book).shown_to(&principal.login, principal.rights.of(&book.name));
            shown.map(|shown| (book.name.clone(), shown))
        };
        Ok(known.veiled.iter().filter_map(shown).collect())
    }

    /// Returns true if there are logbooks that a caller may not read, or attributes that are hidden from the caller.
    pub fn sees_a_part(&self, principal: &Principal) -> Result<bool> {
        let known = self.known()?;
        let reads_all = known.books.iter().all(|(name, _)| principal.rights.may(Right::Read, name));
        Ok(!reads_all || !self.shown(principal)?.is_empty())
    }

    /// Takes the rights away in books whose configuration closes them to clients at this address. The owner of the installation keeps them.
    pub fn seen_from(&self, mut principal: Principal, from: IpAddr) -> Result<Principal> {
        if principal.by == Credentials::Owner {
            return Ok(principal);
        }
        let known = self.known()?;
        let closed = |book: &str| known.books.iter().any(|(name, policy)| same_name(name, book) && !policy.admits_host(from));
        if known.books.iter().any(|(_, policy)| !policy.admits_host(from)) {
            principal.rights = principal.rights.only(|book, _| !closed(book));
        }
        Ok(principal)
    }

    /// A caller without credentials.
    pub fn guest(&self) -> Result<Principal> {
        self.principal(&User::default(), Credentials::Nothing)
    }

    /// The owner of the installation.
    pub fn owner(&self) -> Result<Principal> {
        self.principal(&User { admin: true, ..User::new(&self.settings.owner) }, Credentials::Owner)
    }
}
