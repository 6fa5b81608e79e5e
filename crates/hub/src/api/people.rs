//! Users, groups, tokens, and the caller.

use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    people::{
        Principal, Right,
        principal::Credentials,
        registry::Explanation,
        session::{cookie, no_cookie},
        token::ApiToken,
        user::User,
    },
    schema::TimeText,
};
use tampu_types::Time;

use super::call::{Answer, Call, DELETE, GET, LOGIN, PATCH, POST, PUT, Route, json, nothing, ok};
use crate::http::route::{Content::Nothing, Login, json_of};
use crate::{
    clock::now,
    http::{admission::WorkKind, headers::set, problem::Problem},
};

/// Routes of users, groups, tokens and sessions.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/login",
        id: "login",
        work: WorkKind::Login,
        what: "Begins a session: sets its cookie, and returns the form token that requests with the cookie carry as X-Tampu-Form when they change something",
        takes: json_of::<LoginRequest>(),
        gives: (200, json_of::<Whoami<'static>>()),
        body: LOGIN,
        act: log_in,
        ..POST
    },
    Route {
        path: "/owner",
        id: "beginOwner",
        work: WorkKind::Login,
        what: "Begins a session of the owner with the code that 'tampu up' prints while there are no users, and leads to the console",
        query: &[("code", "string", "the code")],
        gives: (303, Nothing),
        act: begin_owner,
        ..GET
    },
    Route { path: "/logout", id: "logout", what: "Ends the session of the cookie", gives: (204, Nothing), act: log_out, ..POST },
    Route {
        path: "/sessions",
        id: "endSessions",
        what: "Ends all sessions of the caller, on every computer; an administrator of the site may end another user's. Tokens stay",
        query: &[("login", "string", "the user; the caller, if missing")],
        gives: (204, Nothing),
        login: Login::Required,
        act: end_sessions,
        ..DELETE
    },
    Route {
        path: "/whoami",
        id: "whoami",
        what: "Returns the caller, how the caller is known, and the caller's rights by logbook",
        gives: (200, json_of::<Whoami<'static>>()),
        act: |call| ok(&Whoami::of(call.who())),
        ..GET
    },
    Route {
        path: "/whoami/explain",
        id: "explainRights",
        what: "Returns the login method of the caller, the groups, and the origin of each right; an administrator of the site may ask about another user",
        query: &[("login", "string", "the user; the caller, if missing")],
        gives: (200, json_of::<Explanation>()),
        act: explain,
        ..GET
    },
    Route {
        path: "/password",
        id: "changePassword",
        work: WorkKind::Login,
        what: "Changes the caller's password; all sessions and tokens of the caller end",
        takes: json_of::<PasswordChange>(),
        gives: (204, Nothing),
        login: Login::Required,
        act: change_password,
        ..PUT
    },
    Route {
        path: "/users",
        id: "listUsers",
        what: "Lists all users",
        gives: (200, json_of::<Vec<UserView<'static>>>()),
        login: Login::Admin,
        act: |call| ok(&call.api.people.users()?.iter().map(UserView::of).collect::<Vec<_>>()),
        ..GET
    },
    Route {
        path: "/users",
        id: "addUser",
        what: "Makes a user",
        takes: json_of::<NewUser>(),
        gives: (201, json_of::<UserView<'static>>()),
        login: Login::Admin,
        act: add_user,
        ..POST
    },
    Route {
        path: "/users/{login}",
        id: "getUser",
        what: "Returns a user",
        gives: (200, json_of::<UserView<'static>>()),
        login: Login::Admin,
        act: |call| ok(&UserView::of(&call.api.people.user(call.var(0))?)),
        ..GET
    },
    Route {
        path: "/users/{login}",
        id: "changeUser",
        what: "Changes a user; missing fields stay as they are. The sessions and tokens of a user who becomes inactive end",
        takes: json_of::<UserChange>(),
        gives: (200, json_of::<UserView<'static>>()),
        login: Login::Admin,
        act: change_user,
        ..PATCH
    },
    Route {
        path: "/users/{login}",
        id: "dropUser",
        what: "Deletes a user; the user's entries stay",
        gives: (204, Nothing),
        login: Login::Admin,
        act: |call| {
            call.api.people.drop_user(call.var(0))?;
            nothing()
        },
        ..DELETE
    },
    Route {
        path: "/users/{login}/password",
        id: "setPassword",
        what: "Sets a user's password; the user's sessions and tokens end",
        takes: json_of::<NewPassword>(),
        gives: (204, Nothing),
        login: Login::Admin,
        act: |call| {
            let NewPassword { password } = call.json()?;
            call.api.people.set_password(call.var(0), &password)?;
            nothing()
        },
        ..PUT
    },
    Route {
        path: "/users/{login}/method",
        id: "bindUser",
        what: "Binds a user to a login method; the user's password here, sessions and tokens end. Without 'subject' the next person whom the method proves with this login is the user; a provider of identities needs it",
        takes: json_of::<Binding>(),
        gives: (200, json_of::<UserView<'static>>()),
        login: Login::Admin,
        act: |call| {
            let Binding { method, subject } = call.json()?;
            if call.api.people.method(&method).is_none() {
                let names: Vec<&str> = call.api.people.methods().iter().map(|method| &*method.name).collect();
                let detail = format!("there is no login method '{}'; the site has: {}", method.escape_debug(), names.join(", "));
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).at("body method"));
            }
            ok(&UserView::of(&call.api.people.bind_user(call.var(0), &method, &subject)?))
        },
        ..PUT
    },
    Route {
        path: "/users/{login}/method",
        id: "unbindUser",
        what: "Ends a user's binding to a login method; sessions and tokens end, and a password can be set here",
        gives: (200, json_of::<UserView<'static>>()),
        login: Login::Admin,
        act: |call| ok(&UserView::of(&call.api.people.unbind_user(call.var(0))?)),
        ..DELETE
    },
    Route {
        path: "/groups",
        id: "listGroups",
        what: "Lists all groups with their members",
        gives: (200, json_of::<Vec<Group>>()),
        login: Login::Admin,
        act: |call| {
            let groups = call.api.people.groups()?.into_iter().map(|(name, members)| Group { name, members });
            ok(&groups.collect::<Vec<_>>())
        },
        ..GET
    },
    Route {
        path: "/groups/{group}",
        id: "setGroup",
        what: "Sets the members of a group; a group without members does not exist",
        takes: json_of::<Members>(),
        gives: (200, json_of::<Group>()),
        login: Login::Admin,
        act: |call| {
            let Members { members } = call.json()?;
            call.api.people.set_group(call.var(0), &members)?;
            ok(&Group { name: call.var(0).to_owned(), members })
        },
        ..PUT
    },
    Route {
        path: "/tokens",
        id: "listTokens",
        what: "Lists the caller's tokens; an administrator of the site may list another user's",
        query: &[("login", "string", "the user; the caller, if missing")],
        gives: (200, json_of::<Vec<ApiToken>>()),
        login: Login::Required,
        act: |call| {
            let login = user_meant(call, call.parameter("login"))?;
            ok(&call.api.people.tokens(Some(&login))?)
        },
        ..GET
    },
    Route {
        path: "/tokens",
        id: "makeToken",
        work: WorkKind::Login,
        what: "Makes a token; its secret is returned only once. It needs the caller's password. A token that is made with a token ends no later than that one",
        takes: json_of::<NewToken>(),
        gives: (201, json_of::<MadeToken>()),
        login: Login::Required,
        act: make_token,
        ..POST
    },
    Route {
        path: "/tokens/{id}",
        id: "dropToken",
        what: "Ends a token",
        query: &[("login", "string", "the user; the caller, if missing")],
        gives: (204, Nothing),
        login: Login::Required,
        act: |call| {
            let login = user_meant(call, call.parameter("login"))?;
            call.api.people.drop_token(&login, call.var(0))?;
            nothing()
        },
        ..DELETE
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Login")]
struct LoginRequest {
    login: String,
    password: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasswordChange {
    old: String,
    new: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    password: String,
}

/// The caller of a request.
#[derive(Serialize, JsonSchema)]
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
        let form = if let Credentials::Session { form, .. } = &who.by { Some(form.as_str()) } else { None };
        Whoami {
            login: &who.login,
            full_name: &who.full_name,
            email: &who.email,
            admin: who.admin,
            by: who.proof(),
            form,
            rights: &who.rights.0,
        }
    }
}

/// A user without the password.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "User")]
struct UserView<'a> {
    login: &'a str,
    full_name: &'a str,
    email: &'a str,
    groups: &'a [String],
    admin: bool,
    inactive: bool,
    has_password: bool,
    /// The login method that proves the user, if it is not a password here.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    /// The identity of the user at the login method.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
}

impl UserView<'_> {
    fn of(user: &User) -> UserView<'_> {
        let User { login, full_name, email, groups, admin, inactive, password, outside, .. } = user;
        let (method, subject) = outside.as_ref().map(|outside| (&*outside.method, &*outside.subject)).unzip();
        let has_password = password.is_some();
        UserView { login, full_name, email, groups, admin: *admin, inactive: *inactive, has_password, method, subject }
    }
}

#[derive(Deserialize, JsonSchema)]
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserChange {
    full_name: Option<String>,
    email: Option<String>,
    groups: Option<Vec<String>>,
    admin: Option<bool>,
    inactive: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Binding {
    /// The name of the login method.
    method: String,
    /// The identity of the person at the method.
    #[serde(default)]
    subject: String,
}

#[derive(Serialize, JsonSchema)]
struct Group {
    name: String,
    members: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Members {
    members: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewToken {
    #[serde(default)]
    login: Option<String>,
    comment: String,
    #[serde(default)]
    may: Vec<Right>,
    #[serde(default)]
    books: Vec<String>,
    /// Without it the token expires after a year.
    #[serde(default, with = "tampu_types::time::rfc3339::option")]
    #[schemars(with = "Option<TimeText>")]
    expires: Option<Time>,
    /// The caller's password. A request that is itself sent with the password, or with the owner's token, needs none.
    #[serde(default)]
    password: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct MadeToken {
    #[serde(flatten)]
    token: ApiToken,
    secret: String,
}

fn log_in(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let LoginRequest { login, password } = call.json()?;
    let (who, secret) = call.api.people.log_in(&login, &password, call.auth.from)?;
    let mut answer = ok(&Whoami::of(&who))?;
    set(answer.headers_mut(), header::SET_COOKIE, &cookie(&secret, call.api.people.settings().longest, call.auth.secure));
    Ok(answer)
}

fn explain(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let people = &call.api.people;
    match call.parameter("login") {
        Some(login) if login != call.who().login => {
            call.need_admin()?;
            ok(&people.explain(&people.rights_of(Some(login), None)?)?)
        }
        _ => ok(&people.explain(call.who())?),
    }
}

fn begin_owner(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let secret = call.api.people.use_owner_code(call.parameter("code").unwrap_or_default())?;
    let mut answer = nothing()?;
    *answer.status_mut() = StatusCode::SEE_OTHER;
    set(answer.headers_mut(), header::SET_COOKIE, &cookie(&secret, call.api.people.settings().longest, call.auth.secure));
    // The console, also below a path of a proxy.
    set(answer.headers_mut(), header::LOCATION, "../../");
    Ok(answer)
}

fn log_out(call: &mut Call<'_>) -> Result<Answer, Problem> {
    if let Some(secret) = &call.auth.secret {
        call.api.people.log_out(secret)?;
    }
    let mut answer = nothing()?;
    set(answer.headers_mut(), header::SET_COOKIE, &no_cookie());
    Ok(answer)
}

fn end_sessions(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let login = user_meant(call, call.parameter("login"))?;
    // A misspelt login must not look like sessions that have ended.
    call.api.people.user(&login)?;
    call.api.people.end_sessions(&login)?;
    nothing()
}

fn change_password(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let PasswordChange { old, new } = call.json()?;
    let login = call.who().login.clone();
    // A person at another user's open session has to know the password, too.
    call.api.people.by_password(&login, &old, call.auth.from)?;
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
    json(StatusCode::CREATED, &UserView::of(&user))
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
    ok(&UserView::of(&user))
}

/// Returns the user whose tokens or sessions are meant: the caller, or for an administrator of the site any user.
fn user_meant(call: &Call<'_>, said: Option<&str>) -> Result<String, Problem> {
    let own = call.who().login.clone();
    match said {
        Some(login) if login != own => call.need_admin().map(|()| login.to_owned()),
        _ => Ok(own),
    }
}

/// Checks the password of a caller who makes a token. A session or a token that was stolen must not become a lasting access.
fn check_maker(call: &Call<'_>, password: Option<&str>) -> Result<(), Problem> {
    if matches!(call.who().by, Credentials::Owner | Credentials::Password { .. } | Credentials::Proxy { .. }) {
        return Ok(());
    }
    let Some(password) = password else {
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-password", "to make a token you have to give your password");
        return Err(problem.at("body password").help("add 'password', or send the request with 'Authorization: Basic ...'"));
    };
    call.api.people.by_password(&call.who().login, password, call.auth.from)?;
    Ok(())
}

fn make_token(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewToken { login, comment, may, books, expires, password } = call.json()?;
    let login = user_meant(call, login.as_deref())?;
    if expires.is_some_and(|expires| expires <= now()) {
        return Err(Problem::bad("body expires", "the time is in the past"));
    }
    // A token that was made with a token ends with it, or sooner.
    let own = if let Credentials::Token(token) = &call.who().by { token.expires } else { None };
    if let (Some(own), Some(new)) = (own, expires)
        && new > own
    {
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", "a token cannot make a token that ends later than itself");
        return Err(problem.at("body expires").help("log in with the password"));
    }
    let expires = expires.or(own);
    check_maker(call, password.as_deref())?;
    let (token, secret) = call.api.people.make_token(ApiToken { comment, may, books, expires, ..ApiToken::of(&login) })?;
    json(StatusCode::CREATED, &MadeToken { token, secret })
}
