//! Users, groups, access and tokens of a hub's logbook.

use serde::Deserialize;
use serde_json::json;

use super::{Client, Result, address::encoded, to_json};
use crate::people::{
    Right,
    access::Access,
    registration::Registration,
    registry::Explanation,
    token::ApiToken,
    user::{User, UserInfo},
};

/// The rights of a caller in a logbook.
#[derive(Deserialize)]
struct BookRights {
    name: String,
    may: Vec<Right>,
}

impl Client {
    /// All users, by login.
    pub fn users(&self) -> Result<Vec<UserInfo>> {
        self.get("/users")
    }

    /// Returns the logbooks in which this caller has a right; a client without a token is a guest.
    pub fn books_with(&self, right: Right) -> Result<Vec<String>> {
        let books: Vec<BookRights> = self.get("/books")?;
        Ok(books.into_iter().filter(|book| book.may.contains(&right)).map(|book| book.name).collect())
    }

    /// Adds a user; without a password they cannot log in with one.
    pub fn add_user(&self, user: &User, password: Option<&str>) -> Result<()> {
        let User { login, full_name, email, groups, admin, .. } = user;
        let mut body = json!({ "login": login, "full_name": full_name, "email": email, "groups": groups, "admin": admin });
        if let Some(password) = password {
            body["password"] = json!(password);
        }
        self.call("POST", "/users", Some(&body), &[]).map(drop)
    }

    /// Sets a user's password.
    pub fn set_password(&self, login: &str, password: &str) -> Result<()> {
        let body = json!({ "password": password });
        self.call("PUT", &format!("/users/{}/password", encoded(login)), Some(&body), &[]).map(drop)
    }

    /// Disables or enables a user. Disabling ends their sessions.
    pub fn set_inactive(&self, login: &str, inactive: bool) -> Result<()> {
        let body = json!({ "inactive": inactive });
        self.call("PATCH", &format!("/users/{}", encoded(login)), Some(&body), &[]).map(drop)
    }

    /// Binds a user to a login method; without a subject, the next person with this login is the user.
    pub fn bind_user(&self, login: &str, method: &str, subject: &str) -> Result<()> {
        let body = json!({ "method": method, "subject": subject });
        self.call("PUT", &format!("/users/{}/method", encoded(login)), Some(&body), &[]).map(drop)
    }

    /// Ends a user's binding to a login method.
    pub fn unbind_user(&self, login: &str) -> Result<()> {
        self.call("DELETE", &format!("/users/{}/method", encoded(login)), None, &[]).map(drop)
    }

    /// Explains the rights of the caller, or of a user.
    pub fn explain_user(&self, login: Option<&str>) -> Result<Explanation> {
        let of = login.map(|login| format!("?login={}", encoded(login))).unwrap_or_default();
        self.get(&format!("/whoami/explain{of}"))
    }

    /// Deletes a user; their entries stay.
    pub fn drop_user(&self, login: &str) -> Result<()> {
        self.call("DELETE", &format!("/users/{}", encoded(login)), None, &[]).map(drop)
    }

    /// The registrations that wait for approval, the oldest first.
    pub fn registrations(&self) -> Result<Vec<Registration>> {
        self.get("/registrations")
    }

    /// Makes the user of a registration.
    pub fn approve(&self, id: &str) -> Result<UserInfo> {
        let user = self.call("POST", &format!("/registrations/{}/approve", encoded(id)), None, &[])?;
        self.parse(user)
    }

    /// Drops a registration.
    pub fn refuse(&self, id: &str) -> Result<()> {
        self.call("DELETE", &format!("/registrations/{}", encoded(id)), None, &[]).map(drop)
    }

    /// All groups with their members.
    pub fn groups(&self) -> Result<Vec<(String, Vec<String>)>> {
        #[derive(serde::Deserialize)]
        struct Group {
            name: String,
            members: Vec<String>,
        }
        let groups: Vec<Group> = self.get("/groups")?;
        Ok(groups.into_iter().map(|Group { name, members }| (name, members)).collect())
    }

    /// Sets the members of a group.
    pub fn set_group(&self, name: &str, members: &[String]) -> Result<()> {
        let body = json!({ "members": members });
        self.call("PUT", &format!("/groups/{}", encoded(name)), Some(&body), &[]).map(drop)
    }

    /// The access rules of a book; of `*`, the default for books without rules of their own.
    pub fn access(&self, book: &str) -> Result<Access> {
        self.get(&format!("/books/{}/access", encoded(book)))
    }

    /// Sets the access rules of a book, or with `*` the default.
    pub fn set_access(&self, book: &str, access: &Access) -> Result<()> {
        let mut body = to_json(access)?;
        // Without this part, the present rules for signatures would stay.
        body["signing"] = to_json(&access.signing)?;
        self.call("PUT", &format!("/books/{}/access", encoded(book)), Some(&body), &[]).map(drop)
    }

    /// The tokens of a user.
    pub fn tokens(&self, login: &str) -> Result<Vec<ApiToken>> {
        self.get(&format!("/tokens?login={}", encoded(login)))
    }

    /// Creates a token and returns its secret, which the hub does not keep. A caller who is known by a token, and is not the owner, gives the
    /// password too.
    pub fn make_token(&self, token: &ApiToken, password: Option<&str>) -> Result<String> {
        let ApiToken { login, comment, may, books, expires, .. } = token;
        let expires = expires.map(|expires| expires.to_rfc3339());
        let body =
            json!({ "login": login, "comment": comment, "may": may, "books": books, "expires": expires, "password": password });
        let made = self.call("POST", "/tokens", Some(&body), &[])?;
        self.parse(made["secret"].clone())
    }

    /// Revokes a token of a user.
    pub fn drop_token(&self, login: &str, id: &str) -> Result<()> {
        self.call("DELETE", &format!("/tokens/{}?login={}", encoded(id), encoded(login)), None, &[]).map(drop)
    }
}
