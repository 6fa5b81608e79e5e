//! Who one is; users, groups, tokens.

use http::{Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use tampu_logbook::people::{
    Principal, Right,
    registry::By,
    session::{cookie, no_cookie},
    token::ApiToken,
    user::User,
};
use tampu_types::Time;

use super::{
    Answer, Call,
    Content::{Json, List, Nothing},
    Needs, Route, json, nothing, ok, set,
};
use crate::book::{now, problem::Problem};

/// The routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/login",
        id: "login",
        what: "Begins a session: sets its cookie, and tells the form token that changes by the cookie have to carry as X-Tampu-Form",
        query: &[],
        takes: Json("Login"),
        gives: (200, Json("Whoami")),
        needs: Needs::Nobody,
        act: log_in,
    },
    Route {
        method: Method::POST,
        path: "/logout",
        id: "logout",
        what: "Ends the session of the cookie",
        query: &[],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::Nobody,
        act: log_out,
    },
    Route {
        method: Method::GET,
        path: "/whoami",
        id: "whoami",
        what: "Who asks, how that is known, and what they may in which logbook",
        query: &[],
        takes: Nothing,
        gives: (200, Json("Whoami")),
        needs: Needs::Nobody,
        act: |call| ok(&Whoami::of(call.who())),
    },
    Route {
        method: Method::PUT,
        path: "/password",
        id: "changePassword",
        what: "Changes one's own password; all one's sessions end",
        query: &[],
        takes: Json("PasswordChange"),
        gives: (204, Nothing),
        needs: Needs::Login,
        act: change_password,
    },
    Route {
        method: Method::GET,
        path: "/users",
        id: "listUsers",
        what: "All users",
        query: &[],
        takes: Nothing,
        gives: (200, List("User")),
        needs: Needs::SiteAdmin,
        act: |call| ok(&call.api.people.users()?.iter().map(Shown::of).collect::<Vec<_>>()),
    },
    Route {
        method: Method::POST,
        path: "/users",
        id: "addUser",
        what: "Makes a user",
        query: &[],
        takes: Json("NewUser"),
        gives: (201, Json("User")),
        needs: Needs::SiteAdmin,
        act: add_user,
    },
    Route {
        method: Method::GET,
        path: "/users/{login}",
        id: "getUser",
        what: "One user",
        query: &[],
        takes: Nothing,
        gives: (200, Json("User")),
        needs: Needs::SiteAdmin,
        act: |call| ok(&Shown::of(&call.api.people.user(call.var(0))?)),
    },
    Route {
        method: Method::PATCH,
        path: "/users/{login}",
        id: "changeUser",
        what: "Changes a user; what is not said stays. Who is made inactive is logged out",
        query: &[],
        takes: Json("UserChange"),
        gives: (200, Json("User")),
        needs: Needs::SiteAdmin,
        act: change_user,
    },
    Route {
        method: Method::DELETE,
        path: "/users/{login}",
        id: "dropUser",
        what: "Takes a user away; what they have written stays",
        query: &[],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::SiteAdmin,
        act: |call| {
            call.api.people.drop_user(call.var(0))?;
            nothing()
        },
    },
    Route {
        method: Method::PUT,
        path: "/users/{login}/password",
        id: "setPassword",
        what: "Gives a user another password; their sessions end",
        query: &[],
        takes: Json("NewPassword"),
        gives: (204, Nothing),
        needs: Needs::SiteAdmin,
        act: |call| {
            let NewPassword { password } = call.json()?;
            call.api.people.set_password(call.var(0), &password)?;
            nothing()
        },
    },
    Route {
        method: Method::GET,
        path: "/groups",
        id: "listGroups",
        what: "All groups, with who is in them",
        query: &[],
        takes: Nothing,
        gives: (200, List("Group")),
        needs: Needs::SiteAdmin,
        act: |call| {
            let groups = call.api.people.groups()?.into_iter().map(|(name, members)| Group { name, members });
            ok(&groups.collect::<Vec<_>>())
        },
    },
    Route {
        method: Method::PUT,
        path: "/groups/{group}",
        id: "setGroup",
        what: "Says who is in a group; with nobody in it there is no group",
        query: &[],
        takes: Json("Members"),
        gives: (200, Json("Group")),
        needs: Needs::SiteAdmin,
        act: |call| {
            let Members { members } = call.json()?;
            call.api.people.set_group(call.var(0), &members)?;
            ok(&Group { name: call.var(0).to_owned(), members })
        },
    },
    Route {
        method: Method::GET,
        path: "/tokens",
        id: "listTokens",
        what: "One's own tokens; who looks after the site may ask for another user's",
        query: &[("login", "string", "whose; one's own, if nothing is said")],
        takes: Nothing,
        gives: (200, List("Token")),
        needs: Needs::Login,
        act: |call| {
            let login = token_owner(call, call.parameter("login"))?;
            ok(&call.api.people.tokens(Some(&login))?)
        },
    },
    Route {
        method: Method::POST,
        path: "/tokens",
        id: "makeToken",
        what: "Makes a token; its secret is told this once. One that is made with a token ends with that, or sooner",
        query: &[],
        takes: Json("NewToken"),
        gives: (201, Json("MadeToken")),
        needs: Needs::Login,
        act: make_token,
    },
    Route {
        method: Method::DELETE,
        path: "/tokens/{id}",
        id: "dropToken",
        what: "Ends a token",
        query: &[("login", "string", "whose; one's own, if nothing is said")],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::Login,
        act: |call| {
            let login = token_owner(call, call.parameter("login"))?;
            call.api.people.drop_token(&login, call.var(0))?;
            nothing()
        },
    },
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    login: String,
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PasswordChange {
    old: String,
    new: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    password: String,
}

/// Who asks.
#[derive(Serialize)]
struct Whoami<'a> {
    login: &'a str,
    full_name: &'a str,
    email: &'a str,
    admin: bool,
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'a str>,
    rights: &'a std::collections::BTreeMap<String, Vec<Right>>,
}

impl Whoami<'_> {
    fn of(who: &Principal) -> Whoami<'_> {
        let (by, form) = match &who.by {
            By::Nothing => ("guest", None),
            By::Owner => ("owner", None),
            By::Session { form, .. } => ("session", Some(form.as_str())),
            By::Token(_) => ("token", None),
            By::Password { .. } => ("password", None),
        };
        Whoami {
            login: &who.login,
            full_name: &who.full_name,
            email: &who.email,
            admin: who.admin,
            by,
            form,
            rights: &who.rights.0,
        }
    }
}

/// A user, as it is shown: nothing of the password.
#[derive(Serialize)]
struct Shown<'a> {
    login: &'a str,
    full_name: &'a str,
    email: &'a str,
    groups: &'a [String],
    admin: bool,
    inactive: bool,
    has_password: bool,
}

impl Shown<'_> {
    fn of(user: &User) -> Shown<'_> {
        let User { login, full_name, email, groups, admin, inactive, password, .. } = user;
        Shown { login, full_name, email, groups, admin: *admin, inactive: *inactive, has_password: password.is_some() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    login: String,
    #[serde(default)]
    full_name: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    admin: bool,
    #[serde(default)]
    password: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserChange {
    full_name: Option<String>,
    email: Option<String>,
    groups: Option<Vec<String>>,
    admin: Option<bool>,
    inactive: Option<bool>,
}

#[derive(Serialize)]
struct Group {
    name: String,
    members: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    members: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    #[serde(default)]
    login: Option<String>,
    comment: String,
    #[serde(default)]
    may: Vec<Right>,
    #[serde(default)]
    books: Vec<String>,
    #[serde(default)]
    expires: Option<Time>,
}

#[derive(Serialize)]
struct MadeToken {
    #[serde(flatten)]
    token: ApiToken,
    secret: String,
}

fn log_in(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let Login { login, password } = call.json()?;
    let (who, secret) = call.api.people.log_in(&login, &password, call.met.from)?;
    let mut answer = ok(&Whoami::of(&who))?;
    set(answer.headers_mut(), header::SET_COOKIE, &cookie(&secret, call.api.people.settings().longest, call.met.secure));
    Ok(answer)
}

fn log_out(call: &mut Call<'_>) -> Result<Answer, Problem> {
    if let Some(secret) = &call.met.secret {
        call.api.people.log_out(secret)?;
    }
    let mut answer = nothing()?;
    set(answer.headers_mut(), header::SET_COOKIE, &no_cookie());
    Ok(answer)
}

fn change_password(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let PasswordChange { old, new } = call.json()?;
    let login = call.who().login.clone();
    // Also who sits down at somebody's open session has to know it.
    call.api.people.by_password(&login, &old, call.met.from)?;
    call.api.people.set_password(&login, &new)?;
    nothing()
}

fn add_user(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewUser { login, full_name, email, groups, admin, password } = call.json()?;
    let people = &call.api.people;
    let password = password
        .as_deref()
        .map(tampu_logbook::people::password::Password::new)
        .transpose()
        .map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", error.to_string()).at("body password"))?;
    let user = User { full_name, email, groups, admin, password, ..User::new(&login) };
    people.add_user(user.clone())?;
    json(StatusCode::CREATED, &Shown::of(&user))
}

fn change_user(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let UserChange { full_name, email, groups, admin, inactive } = call.json()?;
    let user = call.api.people.change_user(call.var(0), |user| {
        user.full_name = full_name.clone().unwrap_or_else(|| user.full_name.clone());
        user.email = email.clone().unwrap_or_else(|| user.email.clone());
        user.groups = groups.clone().unwrap_or_else(|| user.groups.clone());
        user.admin = admin.unwrap_or(user.admin);
        user.inactive = inactive.unwrap_or(user.inactive);
    })?;
    if inactive == Some(true) {
        call.api.people.end_sessions(&user.login)?;
    }
    ok(&Shown::of(&user))
}

/// Whose tokens are meant: one's own, or for who looks after the site anybody's.
fn token_owner(call: &Call<'_>, said: Option<&str>) -> Result<String, Problem> {
    let own = call.who().login.clone();
    match said {
        Some(login) if login != own => call.need_admin().map(|()| login.to_owned()),
        _ => Ok(own),
    }
}

fn make_token(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewToken { login, comment, may, books, expires } = call.json()?;
    let login = token_owner(call, login.as_deref())?;
    if expires.is_some_and(|expires| expires <= now()) {
        return Err(Problem::bad("body expires", "that is over already"));
    }
    // What a token makes ends with it, or sooner.
    let own = if let By::Token(token) = &call.who().by { token.expires } else { None };
    if let (Some(own), Some(new)) = (own, expires)
        && new > own
    {
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", "a token makes none that ends later than itself");
        return Err(problem.at("body expires").help("log in with the password"));
    }
    let expires = expires.or(own);
    let (id, made, used) = (String::new(), Time(0), None);
    let (token, secret) = call.api.people.make_token(ApiToken { id, login, comment, may, books, made, expires, used })?;
    json(StatusCode::CREATED, &MadeToken { token, secret })
}
