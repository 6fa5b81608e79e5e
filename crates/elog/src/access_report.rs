//! The people who may read and write an imported book, in words.

use std::fmt;

use serde::Serialize;
use tampu_logbook::{
    book::{
        Book,
        elog_options::{is_on, option},
    },
    people::{
        Access, LoginPolicy, PeopleError, Right,
        access::Subject,
        access_of, change_access,
        elog_rules::{ElogCommand, ElogRules},
        password_files::{PasswordFiles, password_file},
        set_first_access,
    },
    store::Records,
};

tampu_types::named_enum! {
    /// The rights that an import gives to guests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum GuestRights("choice of guests' rights") {
        /// Guests have no rights at all.
        None => "none",
        /// Guests read the books that elogd shows without a login.
        Read => "read",
        /// Guests have the rights that elogd gives without a login.
        AsElog => "as-elog",
    }
}

/// The access to a book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessReport {
    /// The rights of guests.
    pub guests: String,
    /// The rights of users who have logged in.
    pub users: String,
    /// The limit of clients' addresses, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<String>,
}

impl fmt::Display for AccessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guests: {}; users: {}", self.guests, self.users)?;
        self.hosts.iter().try_for_each(|hosts| write!(f, "; {hosts}"))
    }
}

fn names(rights: &[Right]) -> String {
    if rights.is_empty() {
        return "no rights".to_owned();
    }
    rights.iter().map(|right| right.name()).collect::<Vec<_>>().join(" ")
}

/// Returns the rights that elogd gives to everybody without a login: all of them in a book without a file of passwords, as
/// far as its menus and its lists of users leave them.
fn guests_of_elog(book: &Book) -> Vec<Right> {
    let rules = ElogRules::of(book);
    let lets = |commands: &[ElogCommand]| commands.iter().any(|command| rules.allow(*command, "").is_ok());
    let mut rights = vec![Right::Read];
    if lets(&[ElogCommand::New, ElogCommand::Reply]) {
        rights.push(Right::Write);
    }
    // Callers who may change entries see all attributes, so a book that hides some from guests lets them change nothing.
    let hides = rules.shown_to("", &[Right::Read]).is_some();
    if lets(&[ElogCommand::Edit, ElogCommand::Delete]) && !option(book, "Restrict edit").is_some_and(is_on) && !hides {
        rights.push(Right::EditAny);
    }
    LoginPolicy::of(book).leaves("", rights)
}

/// Gives guests of a book rights, and keeps the grants of others.
fn give_guests(access: &mut Access, book: &Book, guests: GuestRights) {
    match guests {
        GuestRights::None => access.give(Subject::Guests, vec![]),
        GuestRights::Read => access.give(Subject::Guests, LoginPolicy::of(book).leaves("", vec![Right::Read])),
        GuestRights::AsElog => match guests_of_elog(book) {
            // The site's own setting says whether guests read.
            reads if reads.iter().all(|right| *right == Right::Read) => {}
            rights => access.give(Subject::Guests, rights),
        },
    }
}

/// Gives the users and guests of a new book the rights that elogd gives them, or guests those of `guests`. Without `Restrict
/// edit`, everybody who may write may also change what others wrote. A book or a site with rules keeps them.
pub fn give_rights_of_elog(store: &dyn Records, book: &Book, guests: Option<GuestRights>) -> Result<(), PeopleError> {
    let mut access = Access::usual();
    if !option(book, "Restrict edit").is_some_and(is_on) {
        access.give(Subject::Everybody, vec![Right::Read, Right::Write, Right::EditOwn, Right::EditAny]);
    }
    give_guests(&mut access, book, guests.unwrap_or(GuestRights::AsElog));
    if access == Access::usual() {
        return Ok(());
    }
    set_first_access(store, &book.name, &access)
}

/// Gives the guests of a book that is in the store these rights.
pub fn change_guests(store: &dyn Records, book: &Book, guests: GuestRights) -> Result<(), PeopleError> {
    change_access(store, &book.name, |access| give_guests(access, book, guests))
}

/// Describes the access to a book: its configuration, and the rules that the store has. `files` are those of all logbooks.
pub fn access_report(store: &dyn Records, book: &Book, files: &PasswordFiles) -> Result<AccessReport, PeopleError> {
    let (policy, rules) = (LoginPolicy::of(book), access_of(store, &book.name)?);
    let granted = policy.leaves("", rules.rights("", &[], &[]));
    let guests = match policy.guests_closed_by() {
        Some(option) => format!("no rights, because of '{option}'"),
        None if rules.site_guests => "what [book] guests of the hub says, 'read' by default".to_owned(),
        None if granted.contains(&Right::Write) => format!("{}, without a login as in elogd", names(&granted)),
        None => names(&granted),
    };
    // Nobody has this name, so the rights are those of everybody.
    let everybody = names(&rules.rights("\n", &[], &[]));
    let users = match policy.users() {
        Some(users) => {
            // Administrators are listed a second time.
            let mut all: Vec<&str> = Vec::new();
            users.iter().for_each(|user| {
                if !all.contains(&user.as_str()) {
                    all.push(user);
                }
            });
            format!("{everybody}, only {}", all.join(", "))
        }
        None => everybody,
    };
    let users = match password_file(book).filter(|_| files.are_several()) {
        Some(file) => format!("{users}, only users of '{file}', who are the group '{}'", files.group(file)),
        None => users,
    };
    let names = policy.denied_names().join(", ");
    let hosts = policy.limits_hosts().then(|| match names.is_empty() {
        true => "'Hosts deny' limits the addresses of clients".to_owned(),
        false => format!(
            "open to this host and 'Hosts allow' alone, because 'Hosts deny' has names ({names}): write addresses in their place"
        ),
    });
    Ok(AccessReport { guests, users, hosts })
}
