//! `tampu book users ...`: who may log in, and who may do what.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tampu_hub::book::address::encoded;
use tampu_logbook::{
    people::{
        Access, EditPolicy, People, PeopleError, Right,
        access::{EVERY_BOOK, Subject},
        elog,
        registry::Settings,
        token::ApiToken,
        user::User,
    },
    store::Store,
};
use tampu_types::Time;

use super::{Place, failed, remote::Remote, shown};
use crate::{
    failure::{Failure, Outcome, written},
    terminal::Silent,
    time_expression::{now, parse_duration},
};

/// Users of the logbook: who may log in, and who may do what
///
/// While there is no user, the logbook is its owner's: whoever runs the hub. With the first one, people log in.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  tampu book users add zoe --name 'Zoë Müller' --group operators --admin\n  \
    tampu book users role Shift group:operators read write edit-own\n  tampu book users role '*' guests read\n  \
    tampu book users token make robot --may read --may write --book Shift\n  tampu book users import-elog /usr/local/elog/passwd")]
pub enum Users {
    List(List),
    Add(Add),
    Password(Password),
    Disable(Login),
    Enable(Login),
    Drop(Login),
    Group(Group),
    Role(Role),
    Policy(Policy),
    #[command(subcommand)]
    Token(Token),
    ImportElog(Import),
}

/// List users, their groups, and whether they may log in
#[derive(Debug, Args)]
pub struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Make a user; their password is read from standard input, or asked for
#[derive(Debug, Args)]
pub struct Add {
    /// What they log in with
    login: String,
    /// The name people know
    #[arg(long, default_value = "")]
    name: String,
    /// Where mail goes
    #[arg(long, default_value = "")]
    email: String,
    /// A group they are in; several, once for each
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// They look after the site: all books, all users
    #[arg(long)]
    admin: bool,
    /// They cannot log in with a password, only use tokens
    #[arg(long)]
    no_password: bool,
}

/// Give a user another password, from standard input or asked for; their sessions end
#[derive(Debug, Args)]
pub struct Password {
    /// Who
    login: String,
}

/// A user: 'disable' ends their sessions and lets them do nothing, 'enable' undoes that, 'drop' takes them away; what they wrote stays
#[derive(Debug, Args)]
pub struct Login {
    /// Who
    login: String,
}

/// Show who is in a group, or change it
#[derive(Debug, Args)]
pub struct Group {
    /// The group; all, if nothing is said
    name: Option<String>,
    /// Somebody who comes in
    #[arg(long, value_name = "LOGIN", requires = "name")]
    add: Vec<String>,
    /// Somebody who goes out
    #[arg(long, value_name = "LOGIN", requires = "name")]
    remove: Vec<String>,
}

/// Show who may do what in a logbook, or give somebody rights there
#[derive(Debug, Args)]
pub struct Role {
    /// The logbook; '*' is what holds where nothing is said of a logbook
    #[arg(default_value = EVERY_BOOK)]
    book: String,
    /// user:LOGIN, group:NAME, everybody (who has logged in) or guests
    to: Option<Subject>,
    /// read, write, edit-own, edit-any, admin; or none
    #[arg(requires = "to", value_name = "RIGHT")]
    may: Vec<String>,
}

/// Say how long entries of a logbook can be changed
#[derive(Debug, Args)]
pub struct Policy {
    /// The logbook; '*' is what holds where nothing is said of a logbook
    book: String,
    /// One's own, for so long after they were written; by who may edit everybody's, always
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with_all = ["locked_after", "append_only"])]
    own_within: Option<std::time::Duration>,
    /// Everybody's, for so long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "append_only")]
    locked_after: Option<std::time::Duration>,
    /// Never: what is wrong is put right by a reply
    #[arg(long)]
    append_only: bool,
}

/// Tokens, which programs log in with
#[derive(Debug, Subcommand)]
pub enum Token {
    /// List a user's tokens
    List {
        /// Whose
        login: String,
    },
    /// Make a token; prints it, this once
    Make(MakeToken),
    /// End a token
    Drop {
        /// Whose
        login: String,
        /// Its id
        id: String,
    },
}

/// What a token may.
#[derive(Debug, Args)]
pub struct MakeToken {
    /// Whose; it never may more than they
    login: String,
    /// What it is for
    #[arg(long, default_value = "")]
    comment: String,
    /// A right; all that its owner has, if nothing is said
    #[arg(long, value_name = "RIGHT")]
    may: Vec<String>,
    /// A logbook it can be used with; all, if nothing is said
    #[arg(long, value_name = "NAME")]
    book: Vec<String>,
    /// How long it is good for
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    good_for: Option<std::time::Duration>,
}

/// Take over the users of ELOG's password file, in any of its forms; their passwords go on working
#[derive(Debug, Args)]
pub struct Import {
    /// The file
    file: PathBuf,
    /// A user who looks after the site; several, once for each
    #[arg(long, value_name = "LOGIN")]
    admin: Vec<String>,
}

/// Where users are kept: in a directory, or behind a hub's API.
enum Keeper {
    Here(Box<People>),
    There(Remote),
}

fn wrong(error: PeopleError) -> Failure {
    match error {
        PeopleError::Store(error) => failed(error),
        error => Failure::Failed(error.to_string()),
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::failed("an answer as JSON", error))
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::failed("an answer of another release", error))
}

/// A user as the API shows them.
fn user_json(user: &User) -> Value {
    let User { login, full_name, email, groups, admin, inactive, password, .. } = user;
    json!({ "login": login, "full_name": full_name, "email": email, "groups": groups, "admin": admin, "inactive": inactive,
        "has_password": password.is_some() })
}

impl Keeper {
    fn open(place: &Place) -> Result<Keeper, Failure> {
        if let Some((url, token)) = &place.there {
            return Ok(Keeper::There(Remote::new(url, token.clone(), "")));
        }
        let store: Arc<dyn Store> = Arc::from(place.make()?);
        Ok(Keeper::Here(Box::new(People::new(store, Settings::default()).map_err(wrong)?)))
    }

    fn users(&self) -> Result<Vec<Value>, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.users().map_err(wrong)?.iter().map(user_json).collect()),
            Keeper::There(hub) => from_json(hub.ask("GET", "/users", None, &[]).map_err(failed)?),
        }
    }

    fn add(&self, user: User, password: Option<&str>) -> Outcome {
        match self {
            Keeper::Here(people) => {
                let password = password.map(tampu_logbook::people::password::Password::new).transpose();
                let password = password.map_err(|error| Failure::Failed(error.to_string()))?;
                people.add_user(User { password, ..user }).map_err(wrong)
            }
            Keeper::There(hub) => {
                let mut body = user_json(&user);
                for name in ["inactive", "has_password"] {
                    body.as_object_mut().map(|body| body.remove(name));
                }
                if let Some(password) = password {
                    body["password"] = json!(password);
                }
                hub.ask("POST", "/users", Some(&body), &[]).map(drop).map_err(failed)
            }
        }
    }

    fn set_password(&self, login: &str, password: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.set_password(login, password).map_err(wrong),
            Keeper::There(hub) => {
                let path = format!("/users/{}/password", encoded(login));
                hub.ask("PUT", &path, Some(&json!({ "password": password })), &[]).map(drop).map_err(failed)
            }
        }
    }

    fn set_inactive(&self, login: &str, inactive: bool) -> Outcome {
        match self {
            Keeper::Here(people) => {
                people.change_user(login, |user| user.inactive = inactive).map_err(wrong)?;
                if inactive { people.end_sessions(login).map_err(wrong) } else { Ok(()) }
            }
            Keeper::There(hub) => {
                let path = format!("/users/{}", encoded(login));
                hub.ask("PATCH", &path, Some(&json!({ "inactive": inactive })), &[]).map(drop).map_err(failed)
            }
        }
    }

    fn drop_user(&self, login: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.drop_user(login).map_err(wrong),
            Keeper::There(hub) => hub.ask("DELETE", &format!("/users/{}", encoded(login)), None, &[]).map(drop).map_err(failed),
        }
    }

    fn groups(&self) -> Result<Vec<(String, Vec<String>)>, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.groups().map_err(wrong)?.into_iter().collect()),
            Keeper::There(hub) => {
                #[derive(serde::Deserialize)]
                struct Group {
                    name: String,
                    members: Vec<String>,
                }
                let groups: Vec<Group> = from_json(hub.ask("GET", "/groups", None, &[]).map_err(failed)?)?;
                Ok(groups.into_iter().map(|Group { name, members }| (name, members)).collect())
            }
        }
    }

    fn set_group(&self, name: &str, members: &[String]) -> Outcome {
        match self {
            Keeper::Here(people) => people.set_group(name, members).map_err(wrong),
            Keeper::There(hub) => {
                let path = format!("/groups/{}", encoded(name));
                hub.ask("PUT", &path, Some(&json!({ "members": members })), &[]).map(drop).map_err(failed)
            }
        }
    }

    fn access(&self, book: &str) -> Result<Access, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.access(book).map_err(wrong)?.0),
            Keeper::There(hub) => {
                from_json(hub.ask("GET", &format!("/books/{}/access", encoded(book)), None, &[]).map_err(failed)?)
            }
        }
    }

    fn set_access(&self, book: &str, access: &Access) -> Outcome {
        match self {
            Keeper::Here(people) => people.set_access(book, access).map_err(wrong),
            Keeper::There(hub) => {
                let path = format!("/books/{}/access", encoded(book));
                hub.ask("PUT", &path, Some(&to_json(access)?), &[]).map(drop).map_err(failed)
            }
        }
    }

    fn tokens(&self, login: &str) -> Result<Vec<ApiToken>, Failure> {
        match self {
            Keeper::Here(people) => people.tokens(Some(login)).map_err(wrong),
            Keeper::There(hub) => {
                from_json(hub.ask("GET", &format!("/tokens?login={}", encoded(login)), None, &[]).map_err(failed)?)
            }
        }
    }

    fn make_token(&self, token: ApiToken) -> Result<String, Failure> {
        match self {
            Keeper::Here(people) => Ok(people.make_token(token).map_err(wrong)?.1),
            Keeper::There(hub) => {
                let ApiToken { login, comment, may, books, expires, .. } = token;
                let body = json!({ "login": login, "comment": comment, "may": may, "books": books, "expires": expires });
                let made = hub.ask("POST", "/tokens", Some(&body), &[]).map_err(failed)?;
                from_json(made["secret"].clone())
            }
        }
    }

    fn drop_token(&self, login: &str, id: &str) -> Outcome {
        match self {
            Keeper::Here(people) => people.drop_token(login, id).map_err(wrong),
            Keeper::There(hub) => {
                let path = format!("/tokens/{}?login={}", encoded(id), encoded(login));
                hub.ask("DELETE", &path, None, &[]).map(drop).map_err(failed)
            }
        }
    }
}

/// A password: a line of standard input, or asked for twice without showing it.
fn read_password() -> Result<String, Failure> {
    let line = || -> Result<String, Failure> {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(|error| Failure::failed("standard input", error))?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    };
    if !io::stdin().is_terminal() {
        return line();
    }
    let _silent = Silent::begin().map_err(|error| Failure::failed("the terminal", error))?;
    let ask = |what: &str| {
        eprint!("{what}: ");
        let said = line();
        eprintln!();
        said
    };
    let (password, again) = (ask("Password")?, ask("Once more")?);
    if password == again { Ok(password) } else { Err(Failure::Usage("the two passwords differ".to_owned())) }
}

fn rights(texts: &[String]) -> Result<Vec<Right>, Failure> {
    let named = texts.iter().filter(|text| *text != "none");
    named.map(|text| text.parse().map_err(|error: tampu_logbook::people::BadRight| Failure::Usage(error.to_string()))).collect()
}

fn names(rights: &[Right]) -> String {
    rights.iter().map(|right| right.name()).collect::<Vec<_>>().join(" ")
}

impl Users {
    pub fn run(self, place: &Place) -> Outcome {
        let keeper = Keeper::open(place)?;
        let mut out = io::stdout().lock();
        match self {
            Users::List(List { json }) => {
                for user in keeper.users()? {
                    let text = if json { user.to_string() } else { line(&user) };
                    written(writeln!(out, "{text}"))?;
                }
                Ok(())
            }
            Users::Add(add) => {
                let password = if add.no_password { None } else { Some(read_password()?) };
                let Add { login, name, email, groups, admin, .. } = add;
                let first = keeper.users()?.is_empty();
                let user = User { full_name: name, email, groups, admin, ..User::new(&login) };
                keeper.add(user, password.as_deref())?;
                if first && !admin {
                    eprintln!(
                        "tampu: from now on people log in, and nobody looks after the site; 'tampu book users add --admin' makes somebody who does"
                    );
                }
                Ok(())
            }
            Users::Password(Password { login }) => keeper.set_password(&login, &read_password()?),
            Users::Disable(Login { login }) => keeper.set_inactive(&login, true),
            Users::Enable(Login { login }) => keeper.set_inactive(&login, false),
            Users::Drop(Login { login }) => keeper.drop_user(&login),
            Users::Group(Group { name, add, remove }) => {
                let groups = keeper.groups()?;
                let Some(name) = name else {
                    let mut groups = groups.iter();
                    return groups.try_for_each(|(name, members)| written(writeln!(out, "{name}: {}", members.join(" "))));
                };
                let mut members =
                    groups.into_iter().find(|(known, _)| *known == name).map(|(_, members)| members).unwrap_or_default();
                if !add.is_empty() || !remove.is_empty() {
                    members.retain(|login| !remove.contains(login) && !add.contains(login));
                    members.extend(add);
                    keeper.set_group(&name, &members)?;
                }
                written(writeln!(out, "{name}: {}", members.join(" ")))
            }
            Users::Role(Role { book, to, may }) => {
                let mut access = keeper.access(&book)?;
                if let Some(to) = to {
                    access.give(to, rights(&may)?);
                    keeper.set_access(&book, &access)?;
                }
                for grant in &access.grants {
                    written(writeln!(out, "{}: {}", grant.to, names(&grant.may)))?;
                }
                written(writeln!(out, "entries can be changed {}", policy(access.policy)))
            }
            Users::Policy(said) => {
                let mut access = keeper.access(&said.book)?;
                access.policy = match (said.own_within, said.locked_after, said.append_only) {
                    (Some(time), ..) => {
                        EditPolicy::OwnWithin { minutes: u32::try_from(time.as_secs().div_ceil(60)).unwrap_or(u32::MAX) }
                    }
                    (_, Some(time), _) => {
                        EditPolicy::LockedAfter { hours: u32::try_from(time.as_secs().div_ceil(3600)).unwrap_or(u32::MAX) }
                    }
                    (.., true) => EditPolicy::AppendOnly,
                    _ => EditPolicy::Free,
                };
                keeper.set_access(&said.book, &access)?;
                written(writeln!(out, "entries can be changed {}", policy(access.policy)))
            }
            Users::Token(Token::List { login }) => {
                for token in keeper.tokens(&login)? {
                    written(writeln!(out, "{}", to_json(&token)?))?;
                }
                Ok(())
            }
            Users::Token(Token::Make(make)) => {
                let expires =
                    make.good_for.map(|time| Time(now().0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))));
                let (login, comment, may, books) = (make.login, make.comment, rights(&make.may)?, make.book);
                let token = ApiToken { id: String::new(), login, comment, may, books, made: Time(0), expires, used: None };
                written(writeln!(out, "{}", keeper.make_token(token)?))
            }
            Users::Token(Token::Drop { login, id }) => keeper.drop_token(&login, &id),
            Users::ImportElog(import) => import.run(&keeper, &mut out),
        }
    }
}

fn line(user: &Value) -> String {
    let text = |name: &str| shown(user[name].as_str().unwrap_or_default(), false);
    let groups: Vec<&str> = user["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut line = format!("{:<16}  {:<24}  {:<28}  {}", text("login"), text("full_name"), text("email"), groups.join(" "));
    for (name, word) in [("admin", "looks after the site"), ("inactive", "disabled")] {
        if user[name] == true {
            line.push_str(&format!("  [{word}]"));
        }
    }
    if user["has_password"] == false {
        line.push_str("  [no password]");
    }
    line.trim_end().to_owned()
}

fn policy(policy: EditPolicy) -> String {
    match policy {
        EditPolicy::Free => "at any time".to_owned(),
        EditPolicy::OwnWithin { minutes } => format!("for {minutes} minutes, if they are one's own"),
        EditPolicy::LockedAfter { hours } => format!("for {hours} hours"),
        EditPolicy::AppendOnly => "never".to_owned(),
    }
}

impl Import {
    fn run(self, keeper: &Keeper, out: &mut impl Write) -> Outcome {
        let Keeper::Here(people) = keeper else {
            return Err(Failure::Usage(
                "ELOG's users are taken over where the logbooks are kept and not over HTTP: without --hub, and with --data DIR or \
                 --data postgres://..., on a host that has them; a hub that runs there knows them at once"
                    .to_owned(),
            ));
        };
        let bytes = std::fs::read(&self.file).map_err(|error| Failure::failed(self.file.display(), error))?;
        let read = elog::read(&bytes);
        read.faults.iter().for_each(|fault| eprintln!("{}: {}", self.file.display(), shown(fault, false)));
        let (mut new, mut known) = (0, 0);
        for user in read.users {
            let user = User { admin: self.admin.contains(&user.login), ..user };
            match people.add_user(user) {
                Ok(()) => new += 1,
                // Who is here already has perhaps another password by now.
                Err(PeopleError::IsThere(_)) => known += 1,
                Err(error) => return Err(wrong(error)),
            }
        }
        eprintln!(
            "tampu: ELOG's own clients send a digest in place of a password: for them set accept_elog_hashes in [book] of the hub's configuration"
        );
        written(writeln!(out, "{new} users taken over, {known} were here, {} faults", read.faults.len()))
    }
}
