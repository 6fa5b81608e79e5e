//! Management of users, groups, access rules and tokens. The caller checks the right to do so.

use std::collections::BTreeMap;

use super::{
    super::{
        access::{self, Access, EVERY_BOOK, Subject},
        error::{PeopleError, Result},
        log_filter,
        password::Password,
        reset,
        session::{self, Session},
        token::{self, ApiToken, MAX_COMMENT, MAX_TOKENS, digest, secret},
        user::{self, User, check_name},
        visit,
    },
    People,
};
use crate::{
    notify::{pending, rule},
    store::{StoreError, now},
};

impl People {
    /// All users, by login.
    pub fn users(&self) -> Result<Vec<User>> {
        let users = self.store.records(user::KIND)?.into_iter();
        users.map(|(name, record)| PeopleError::read(user::KIND, &name, record.value)).collect()
    }

    /// Returns the logins and the names of all users, at most [`FRESH`] old.
    pub fn names(&self) -> Result<Vec<(String, String)>> {
        Ok(self.known()?.users.values().map(|user| (user.login.clone(), user.shown().to_owned())).collect())
    }

    /// Returns one user, by login.
    pub fn user(&self, login: &str) -> Result<User> {
        let record = self.store.record(user::KIND, login)?.ok_or_else(|| PeopleError::NoUser(login.to_owned()))?;
        PeopleError::read(user::KIND, login, record.value)
    }

    /// Makes a user.
    pub fn add_user(&self, user: User) -> Result<()> {
        user.check()?;
        match self.write(user::KIND, &user.login, &user, Some(0)) {
            Err(PeopleError::Store(StoreError::RecordChanged { .. })) => Err(PeopleError::IsThere(user.login)),
            done => done.map(|_| self.changed()),
        }
    }

    /// Changes a user and returns the new state. `change` is called again if another process changes the same user.
    /// Tokens of a generation that this ends are deleted.
    pub fn change_user(&self, login: &str, mut change: impl FnMut(&mut User)) -> Result<User> {
        loop {
            let record = self.store.record(user::KIND, login)?.ok_or_else(|| PeopleError::NoUser(login.to_owned()))?;
            let mut user: User = PeopleError::read(user::KIND, login, record.value)?;
            let was_inactive = user.inactive;
            let before = user.generation;
            change(&mut user);
            user.login = login.to_owned();
            if user.inactive && !was_inactive {
                user.generation = user.generation.wrapping_add(1);
            }
            user.check()?;
            match self.write(user::KIND, login, &user, Some(record.version)) {
                Err(PeopleError::Store(StoreError::RecordChanged { .. })) => {}
                done => {
                    done?;
                    self.forget();
                    if user.generation != before {
                        self.drop_tokens(login, |token| token.generation != Some(user.generation))?;
                    }
                    self.changed();
                    return Ok(user);
                }
            }
        }
    }

    /// Sets a new password and ends the user's sessions and tokens.
    pub fn set_password(&self, login: &str, password: &str) -> Result<()> {
        if let Some(outside) = self.user(login)?.outside {
            return Err(PeopleError::PasswordElsewhere { login: login.to_owned(), method: outside.method });
        }
        let new = Password::new(password)?;
        self.change_user(login, |user| {
            user.password = Some(new.clone());
            user.generation = user.generation.wrapping_add(1);
        })?;
        self.end_sessions(login)
    }

    /// Deletes the tokens of a user for which `such` returns true.
    fn drop_tokens(&self, login: &str, such: impl Fn(&ApiToken) -> bool) -> Result<()> {
        for (name, record) in self.store.records(token::KIND)? {
            let token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
            if token.login == login && such(&token) {
                self.store.drop_record(token::KIND, &name)?;
            }
        }
        self.changed();
        Ok(())
    }

    /// Ends all sessions of a user.
    pub fn end_sessions(&self, login: &str) -> Result<()> {
        for (name, record) in self.store.records(session::KIND)? {
            if PeopleError::read::<Session>(session::KIND, &name, record.value)?.login == login {
                self.store.drop_record(session::KIND, &name)?;
            }
        }
        self.changed();
        Ok(())
    }

    /// Removes a user, with everything that another user of the login would inherit: sessions, tokens, rights, rules of
    /// notifications, drafts, saved searches and filters. Their entries stay under their login, which keeps the login from strangers
    /// ([`People::check_free`]).
    pub fn drop_user(&self, login: &str) -> Result<()> {
        if !self.store.drop_record(user::KIND, login)? {
            return Err(PeopleError::NoUser(login.to_owned()));
        }
        self.changed();
        self.store.drop_record(reset::KIND, login)?;
        self.store.drop_record(visit::KIND, login)?;
        self.store.drop_record(log_filter::KIND, login)?;
        self.visits.lock().remove(login);
        self.end_sessions(login)?;
        self.drop_tokens(login, |_| true)?;
        self.drop_grants(login)?;
        self.store.drop_record(rule::KIND, login)?;
        self.store.drop_record(pending::KIND, login)?;
        for draft in self.store.drafts(login)? {
            self.store.drop_draft(login, draft.number)?;
        }
        for (name, _) in self.store.saved_searches(login)? {
            self.store.drop_search(login, &name)?;
        }
        self.changed();
        Ok(())
    }

    /// Removes the rights that name a user, in all logbooks and in the deleted ones.
    fn drop_grants(&self, login: &str) -> Result<()> {
        let to = Subject::User(login.to_owned());
        for (name, _) in self.store.records(access::KIND)? {
            loop {
                let Some(record) = self.store.record(access::KIND, &name)? else { break };
                let mut access: Access = PeopleError::read(access::KIND, &name, record.value)?;
                if access.grants.iter().all(|grant| grant.to != to) {
                    break;
                }
                access.grants.retain(|grant| grant.to != to);
                match self.write(access::KIND, &name, &access, Some(record.version)) {
                    Err(PeopleError::Store(StoreError::RecordChanged { .. })) => {}
                    done => {
                        done?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the groups with their members, by name.
    pub fn groups(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for user in self.users()? {
            user.groups.into_iter().for_each(|group| groups.entry(group).or_default().push(user.login.clone()));
        }
        Ok(groups)
    }

    /// Sets the members of a group. A group without members does not exist.
    pub fn set_group(&self, group: &str, members: &[String]) -> Result<()> {
        check_name(group)?;
        members.iter().try_for_each(|login| self.user(login).map(drop))?;
        for user in self.users()? {
            let (is, shall) = (user.groups.iter().any(|name| name == group), members.contains(&user.login));
            if is != shall {
                self.change_user(&user.login, |user| {
                    user.groups.retain(|name| name != group);
                    if shall {
                        user.groups.push(group.to_owned());
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Returns the access rules of a book, and whether it has rules of its own. `*` is the default for books without
    /// rules of their own.
    pub fn access(&self, book: &str) -> Result<(Access, bool)> {
        let said = self.store.record(access::KIND, &book.to_lowercase())?;
        match said {
            Some(record) => Ok((PeopleError::read(access::KIND, book, record.value)?, true)),
            None if book == EVERY_BOOK => Ok((Access::usual(), false)),
            None => Ok((self.access(EVERY_BOOK)?.0, false)),
        }
    }

    /// Returns the version of a book's own access rules; 0 without rules of its own.
    pub fn access_version(&self, book: &str) -> Result<u64> {
        Ok(self.store.record(access::KIND, &book.to_lowercase())?.map_or(0, |record| record.version))
    }

    /// Sets the access rules of a book, or with `*` the default for books without rules of their own.
    pub fn set_access(&self, book: &str, access: &Access) -> Result<()> {
        self.set_access_at(book, access, None)
    }

    /// Sets the access rules of a book as [`People::set_access`] does, if they are at version `expected`.
    pub fn set_access_at(&self, book: &str, access: &Access, expected: Option<u64>) -> Result<()> {
        if access.grants.len() > access::MAX_GRANTS {
            return Err(PeopleError::Invalid(format!("{} grants; at most {}", access.grants.len(), access::MAX_GRANTS)));
        }
        access.signing.check().map_err(|error| PeopleError::Invalid(error.to_string()))?;
        if book != EVERY_BOOK {
            self.store.book(book)?;
        }
        self.write(access::KIND, &book.to_lowercase(), access, expected)?;
        self.changed();
        Ok(())
    }

    /// Tokens, of one user or of all, each with its end.
    pub fn tokens(&self, of: Option<&str>) -> Result<Vec<ApiToken>> {
        let mut tokens = Vec::new();
        for (name, record) in self.store.records(token::KIND)? {
            let token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
            if of.is_none_or(|login| token.login == login) {
                tokens.push(ApiToken { expires: Some(token.end()), ..token });
            }
        }
        tokens.sort_by(|a, b| (&a.login, a.made).cmp(&(&b.login, b.made)));
        Ok(tokens)
    }

    /// Creates a token; its id and times are set here. Without an end it expires after [`token::LIFE`]. Returns the
    /// token and its secret, which is not kept.
    pub fn make_token(&self, token: ApiToken) -> Result<(ApiToken, String)> {
        let generation = self.user(&token.login)?.generation;
        if token.comment.chars().count() > MAX_COMMENT || token.comment.chars().any(char::is_control) {
            return Err(PeopleError::Invalid(format!("a token's remark has at most {MAX_COMMENT} characters, in one line")));
        }
        if token.books.len() > access::MAX_GRANTS {
            return Err(PeopleError::Invalid(format!("{} logbooks; at most {}", token.books.len(), access::MAX_GRANTS)));
        }
        token.books.iter().try_for_each(|book| self.store.book(book).map(drop))?;
        if self.tokens(Some(&token.login))?.len() >= MAX_TOKENS {
            return Err(PeopleError::Invalid(format!("'{}' has {MAX_TOKENS} tokens; delete some of them", token.login)));
        }
        let text = format!("{}{}", token::PREFIX, secret()?);
        let name = digest(&text);
        let mut token = ApiToken { id: name[..12].to_owned(), made: now(), used: None, generation: Some(generation), ..token };
        token.expires = Some(token.end());
        self.write(token::KIND, &name, &token, Some(0))?;
        Ok((token, text))
    }

    /// Ends a token of a user.
    pub fn drop_token(&self, login: &str, id: &str) -> Result<()> {
        for (name, record) in self.store.records(token::KIND)? {
            let token: ApiToken = PeopleError::read(token::KIND, &name, record.value)?;
            if token.id == id && token.login == login {
                self.store.drop_record(token::KIND, &name)?;
                self.changed();
                return Ok(());
            }
        }
        Err(PeopleError::NoToken(id.to_owned()))
    }
}
