//! The people who may read and write an imported book, in words.

use std::fmt;

use serde::Serialize;
use tampu_logbook::{
    book::{
        Book,
        elog_options::{is_on, option},
    },
    people::{Access, LoginPolicy, PeopleError, Right, access::Subject, access_of, set_first_access},
    store::Records,
};

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

/// Gives the users of a new book the rights that elogd gives them: without `Restrict edit`, everybody who may write may also
/// change what others wrote. A book or a site with rules keeps them.
pub fn give_rights_of_elog(store: &dyn Records, book: &Book) -> Result<(), PeopleError> {
    if option(book, "Restrict edit").is_some_and(is_on) {
        return Ok(());
    }
    let mut access = Access::usual();
    access.give(Subject::Everybody, vec![Right::Read, Right::Write, Right::EditOwn, Right::EditAny]);
    set_first_access(store, &book.name, &access)
}

/// Describes the access to a book: its configuration, and the rules that the store has.
pub fn access_report(store: &dyn Records, book: &Book) -> Result<AccessReport, PeopleError> {
    let (policy, rules) = (LoginPolicy::of(book), access_of(store, &book.name)?);
    let granted = policy.leaves("", rules.rights("", &[], &[]));
    let guests = match policy.guests_closed_by() {
        Some(option) => format!("no rights, because of '{option}'"),
        None if rules.site_guests => "what [book] guests of the hub says, 'read' by default".to_owned(),
        None => names(&granted),
    };
    // Nobody has this name, so the rights are those of everybody.
    let everybody = names(&rules.rights("\n", &[], &[]));
    let users = match policy.users() {
        Some(users) => format!("{everybody}, only {}", users.join(", ")),
        None => everybody,
    };
    let hosts = policy.limits_hosts().then(|| "'Hosts deny' limits the addresses of clients".to_owned());
    Ok(AccessReport { guests, users, hosts })
}
