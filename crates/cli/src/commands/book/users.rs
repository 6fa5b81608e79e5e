//! `tampu book users ...`: users, and their rights.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tampu_logbook::{
    book::{Book, same_name},
    people::{
        Access, EditPolicy, ElogRules, LoginPolicy, Right,
        access::{EVERY_BOOK, Grant, Subject},
        token::ApiToken,
        user::{User, UserInfo},
    },
};
use tampu_types::Time;
use tampu_types::units::parse_duration;

use super::{
    place::{Place, failed},
    text::shown,
};
use crate::{
    failure::{Failure, Outcome, written},
    plural::counted,
    time_expression::now,
    time_text,
};

mod import;
mod keeper;
mod passwords;
pub mod registrations;
mod signing;
mod whoami;

use import::Import;
use keeper::{Keeper, to_json};
use passwords::read_password;

use registrations::{Registered, report};

pub use passwords::password;

/// Manage users of the logbook, their groups, rights and tokens
///
/// A logbook without users belongs to the person who runs the hub. With the first user, everybody has to log in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book users add zoe --full-name 'Zoë Müller' --group operators --admin\n  \
    tampu book users role Shift group:operators read write edit-own\n  tampu book users role '*' guests read\n  \
    tampu book users token make robot --may read --may write --book Shift\n  tampu book users import-elog /usr/local/elog/passwd")]
pub struct Users {
    #[command(subcommand)]
    verb: Verb,
    /// Write JSON objects, one a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List users, their groups, and whether they may log in
    List,
    Add(Add),
    Password(Password),
    /// Disable a user: sessions and tokens end, and nothing is allowed any longer; what they wrote stays
    Disable(Login),
    /// Enable a user who was disabled
    Enable(Login),
    /// Remove a user with their rights, drafts, rules and tokens; entries stay
    Drop(Login),
    Bind(Bind),
    /// Make a user one of the logbook alone: no login method proves the user, and a password can be set
    Unbind(Login),
    Whoami(Whoami),
    /// List the registrations that wait for approval
    Pending,
    /// Approve a registration: its user can log in
    Approve(Registered),
    /// Refuse a registration
    Refuse(Registered),
    Group(Group),
    Role(Role),
    Policy(Policy),
    Signing(signing::Signing),
    #[command(subcommand)]
    Token(Token),
    ImportElog(Import),
}

/// Add a user; the password is read from standard input or from the terminal
#[derive(Debug, Args)]
pub struct Add {
    /// The name to log in with
    login: String,
    /// The user's full name
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    full_name: String,
    /// E-mail address of the user
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    email: String,
    /// A group of the user; repeatable
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Make the user an administrator: all logbooks, all users
    #[arg(long)]
    admin: bool,
    /// Allow tokens only, no password
    #[arg(long)]
    no_password: bool,
}

/// Set a new password, from standard input or from the terminal; running sessions and tokens end
#[derive(Debug, Args)]
pub struct Password {
    /// Name of the user
    login: String,
}

/// A user by login.
#[derive(Debug, Args)]
pub struct Login {
    /// Name of the user
    login: String,
}

/// Bind a user to a login method of the site, which proves the user from then on; the password here ends
#[derive(Debug, Args)]
pub struct Bind {
    /// Name of the user
    login: String,
    /// Name of the login method: 'name' of [[book.login]]
    method: String,
    /// Identity of the person at the method [default: that of the next person with this login; needed at a provider]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    subject: String,
}

/// Show who you are for the logbook, or who another user is
#[derive(Debug, Args)]
pub struct Whoami {
    /// The user to show [default: yourself]
    login: Option<String>,
    /// Show the login method, the groups, and the origin of each right
    #[arg(long)]
    explain: bool,
}

/// Show or change the members of a group
#[derive(Debug, Args)]
pub struct Group {
    /// The group [default: all groups]
    name: Option<String>,
    /// Add this user to the group; repeatable
    #[arg(long, value_name = "LOGIN", requires = "name")]
    add: Vec<String>,
    /// Remove this user from the group; repeatable
    #[arg(long, value_name = "LOGIN", requires = "name")]
    remove: Vec<String>,
}

/// Show or grant rights in a logbook
#[derive(Debug, Args)]
pub struct Role {
    /// The logbook; '*' sets the default for all logbooks
    #[arg(default_value = EVERY_BOOK)]
    book: String,
    /// user:LOGIN, group:NAME, everybody (all who have logged in) or guests
    to: Option<Subject>,
    /// read, write, edit-own, edit-any, admin; or none
    #[arg(requires = "to", value_name = "RIGHT")]
    may: Vec<String>,
}

/// Set the time during which entries of a logbook can be changed
#[derive(Debug, Args)]
pub struct Policy {
    /// The logbook; '*' sets the default for all logbooks
    book: String,
    /// Allow authors to change their own entries for this time; users with the right edit-any always can
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["locked_after", "append_only"])]
    own_within: Option<std::time::Duration>,
    /// Allow changes of all entries for this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "append_only")]
    locked_after: Option<std::time::Duration>,
    /// Never allow changes: a mistake is corrected by a reply
    #[arg(long)]
    append_only: bool,
}

/// Manage tokens, with which programs log in
#[derive(Debug, Subcommand)]
pub enum Token {
    /// List a user's tokens
    List {
        /// Name of the user
        login: String,
    },
    /// Make a token and print it; it is shown only once, and ends with the user's password
    Make(MakeToken),
    /// Revoke a token
    Drop {
        /// Name of the user
        login: String,
        /// The id of the token
        id: String,
    },
}

/// Options of a new token.
#[derive(Debug, Args)]
pub struct MakeToken {
    /// The user; a token never has more rights than its user
    login: String,
    /// A comment on the purpose of the token
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    comment: String,
    /// A right of the token; repeatable [default: all rights of its owner]
    #[arg(long, value_name = "RIGHT")]
    may: Vec<String>,
    /// Limit the token to this logbook; repeatable [default: all logbooks]
    #[arg(long, value_name = "NAME")]
    book: Vec<String>,
    /// Lifetime of the token [default: a year]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    good_for: Option<std::time::Duration>,
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
        let json = self.json;
        let mut out = io::stdout().lock();
        // A line for people, or an object for programs.
        let mut say =
            |text: String, object: Value| written(if json { writeln!(out, "{object}") } else { writeln!(out, "{text}") });
        // Actions without a line for people still report to programs.
        let done = |what: &str, login: &str| if json { say_json(report(what, login)) } else { Ok(()) };
        match self.verb {
            Verb::List => keeper.users()?.into_iter().try_for_each(|user| say(line(&user), to_json(&user)?)),
            Verb::Add(add) => {
                let password = if add.no_password { None } else { Some(read_password()?) };
                let Add { login, full_name, email, groups, admin, .. } = add;
                let first = keeper.users()?.is_empty();
                let user = User { full_name, email, groups, admin, ..User::new(&login) };
                keeper.add(user, password.as_deref())?;
                if first && !admin {
                    eprintln!(
                        "tampu: every user has to log in from this moment, but no user is an administrator; 'tampu book users add --admin' adds one"
                    );
                }
                done("added", &login)
            }
            Verb::Password(Password { login }) => {
                keeper.set_password(&login, &read_password()?)?;
                done("password_set", &login)
            }
            Verb::Disable(Login { login }) => {
                keeper.set_inactive(&login, true)?;
                done("disabled", &login)
            }
            Verb::Enable(Login { login }) => {
                keeper.set_inactive(&login, false)?;
                done("enabled", &login)
            }
            Verb::Drop(Login { login }) => {
                keeper.drop_user(&login)?;
                done("dropped", &login)
            }
            Verb::Bind(bind) => {
                keeper.bind(&bind.login, &bind.method, &bind.subject)?;
                done("bound", &bind.login)
            }
            Verb::Unbind(Login { login }) => {
                keeper.unbind(&login)?;
                done("unbound", &login)
            }
            Verb::Whoami(Whoami { login, explain }) => whoami::show(&keeper.explain(login.as_deref())?, explain, &mut say),
            Verb::Pending => keeper.show_registrations(&mut say),
            Verb::Approve(Registered { registration }) => done("approved", &keeper.approve(&registration)?),
            Verb::Refuse(Registered { registration }) => done("refused", &keeper.refuse(&registration)?),
            Verb::Group(Group { name, add, remove }) => {
                let mut show = |name: &str, members: &[String]| {
                    say(format!("{name}: {}", members.join(" ")), json!({ "group": name, "members": members }))
                };
                let groups = keeper.groups()?;
                let Some(name) = name else { return groups.iter().try_for_each(|(name, members)| show(name, members)) };
                let mut members =
                    groups.into_iter().find(|(known, _)| *known == name).map(|(_, members)| members).unwrap_or_default();
                if !add.is_empty() || !remove.is_empty() {
                    members.retain(|login| !remove.contains(login) && !add.contains(login));
                    members.extend(add);
                    keeper.set_group(&name, &members)?;
                }
                show(&name, &members)
            }
            Verb::Role(Role { book, to, may }) => {
                let mut access = keeper.access(&book)?;
                if let Some(to) = to {
                    let given = rights(&may)?;
                    warn_of_more(&access, &to, &given);
                    access.give(to, given);
                    keeper.set_access(&book, &access)?;
                }
                let found = book_named(place, &book)?;
                closed_to_guests(found.as_ref(), &book);
                show_access(&book, &access, found.as_ref(), &mut say)
            }
            Verb::Policy(said) => {
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
                let found = book_named(place, &said.book)?;
                let shown = Access { grants: Vec::new(), site_guests: false, ..access };
                show_access(&said.book, &shown, found.as_ref(), &mut say)
            }
            Verb::Signing(signing) => signing.run(&keeper, &mut say),
            Verb::Token(Token::List { login }) => keeper.tokens(&login)?.into_iter().try_for_each(|token| {
                let mut object = to_json(&token)?;
                time_text::in_json(&mut object);
                say(token_line(&token), object)
            }),
            Verb::Token(Token::Make(make)) => {
                let expires =
                    make.good_for.map(|time| Time(now().0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))));
                let (login, comment, may, books) = (make.login, make.comment, rights(&make.may)?, make.book);
                let token = ApiToken { comment, may, books, expires, ..ApiToken::of(&login) };
                let token = keeper.make_token(token)?;
                let object = json!({ "token": token });
                say(token, object)
            }
            Verb::Token(Token::Drop { login, id }) => {
                keeper.drop_token(&login, &id)?;
                done("token_dropped", &id)
            }
            Verb::ImportElog(import) => import.run(&keeper, &mut say),
        }
    }
}

fn say_json(object: Value) -> Outcome {
    written(writeln!(io::stdout().lock(), "{object}"))
}

/// Returns the logbook of a name; `None` for all logbooks.
fn book_named(place: &Place, name: &str) -> Result<Option<Book>, Failure> {
    let books = if name == EVERY_BOOK { Vec::new() } else { place.store("")?.books().map_err(failed)? };
    Ok(books.into_iter().map(|info| info.book).find(|book| same_name(&book.name, name)))
}

/// Reports a logbook that its ELOG configuration closes to guests, whatever is granted to them.
fn closed_to_guests(book: Option<&Book>, name: &str) {
    if let Some(option) = book.and_then(|book| LoginPolicy::of(book).guests_closed_by()) {
        eprintln!(
            "tampu: '{option}' of its ELOG configuration closes '{}' to guests, whatever is granted to them; 'Guest menu commands' opens it",
            shown(name, false)
        );
    }
}

/// Shows the rights in a logbook, a line each, then how long entries can be changed.
fn show_access(book: &str, access: &Access, found: Option<&Book>, say: &mut dyn FnMut(String, Value) -> Outcome) -> Outcome {
    for grant in &access.grants {
        say(format!("{}: {}", grant.to, names(&grant.may)), json!({ "book": book, "to": grant.to, "may": grant.may }))?;
    }
    if access.site_guests {
        let text = "guests: what [book] guests of the hub's configuration says".to_owned();
        say(text, json!({ "book": book, "to": "guests", "site_guests": true }))?;
    }
    let mut object = json!({ "book": book, "policy": access.policy });
    let hours = found.map_or([None; 2], |book| ElogRules::of(book).edit_hours());
    for (name, hours) in ["restrict_edit_hours", "admin_restrict_edit_hours"].iter().zip(hours) {
        if let Some(hours) = hours {
            object[name] = json!(hours);
        }
    }
    say(format!("entries can be changed {}", policy(access.policy, hours)), object)?;
    if access.signing.is_empty() { Ok(()) } else { signing::show(book, access, say) }
}

/// A token without its secret, on a line.
fn token_line(token: &ApiToken) -> String {
    let until = token.expires.map_or_else(|| "no end".to_owned(), |time| format!("until {}", time_text::minute_with_zone(time)));
    let may = if token.may.is_empty() { "all rights".to_owned() } else { names(&token.may) };
    let books = if token.books.is_empty() { "all logbooks".to_owned() } else { token.books.join(", ") };
    let text = format!("{}  {until}  {may}  {books}  {}", token.id, token.comment);
    shown(text.trim_end(), false)
}

fn line(user: &UserInfo) -> String {
    let [login, full_name, email] = [&user.login, &user.full_name, &user.email].map(|text| shown(text, false));
    let mut line = format!("{login:<16}  {full_name:<24}  {email:<28}  {}", user.groups.join(" "));
    if let Some(method) = &user.method {
        line.push_str(&format!("  [login by {}]", shown(method, false)));
    }
    let has_none = !user.has_password && user.method.is_none();
    for (is, word) in [(user.admin, "administrator"), (user.inactive, "disabled"), (has_none, "no password")] {
        if is {
            line.push_str(&format!("  [{word}]"));
        }
    }
    line.trim_end().to_owned()
}

/// Describes how long entries can be changed: the policy, and the hours of the logbook's ELOG configuration.
fn policy(policy: EditPolicy, elog_hours: [Option<f64>; 2]) -> String {
    let own = match policy {
        EditPolicy::Free => "at any time".to_owned(),
        EditPolicy::OwnWithin { minutes } => format!("by their authors, for {}", counted(u64::from(minutes), "minute")),
        EditPolicy::LockedAfter { hours } => format!("for {}", counted(u64::from(hours), "hour")),
        EditPolicy::AppendOnly => "never".to_owned(),
    };
    if elog_hours == [None; 2] || policy == EditPolicy::AppendOnly {
        return own;
    }
    let time = |hours: Option<f64>, option: &str| match hours {
        Some(hours) => format!("for {hours} hour{} ('{option}')", if hours == 1.0 { "" } else { "s" }),
        None => "at any time".to_owned(),
    };
    let [users, admins] = elog_hours;
    let of_elog = format!(
        "{}, by administrators of the logbook {}",
        time(users, "Restrict edit time"),
        time(admins, "Admin restrict edit time")
    );
    match policy {
        EditPolicy::Free => of_elog,
        _ => format!("{own}, and no longer than its ELOG configuration says: {of_elog}"),
    }
}

/// Warns if a user or group has rights beyond the given ones, because everybody or guests have them.
fn warn_of_more(access: &Access, to: &Subject, given: &[Right]) {
    let whose = |grant: &&Grant| match to {
        Subject::User(_) | Subject::Group(_) => matches!(grant.to, Subject::Everybody | Subject::Guests),
        Subject::Everybody => grant.to == Subject::Guests,
        Subject::Guests => false,
    };
    for grant in access.grants.iter().filter(whose) {
        let more: Vec<&str> = grant.may.iter().filter(|right| !given.contains(right)).map(|right| right.name()).collect();
        if !more.is_empty() {
            eprintln!("tampu: {to} also has the rights of '{}': {}; rights add up", grant.to, more.join(" "));
        }
    }
}
