//! A directory that checks passwords, by LDAP.
//!
//! ```text
//! connect, TLS -> bind as the service account -> search the person -> bind as the person -> search groups
//!                                 or: bind as the person, by a name made of the login -> search the person, groups
//! ```
//!
//! A login has a connection of its own, because a bind changes the rights of the whole connection. Values of the login
//! are escaped in filters and names. An empty password is never sent: to a directory it means nobody, who may bind.
//! After a failed connection the directory is left alone for some seconds ([`Absence`]). Nothing that the directory says
//! about one person counts as its absence, since anybody can ask for that person's login again and again.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ldap3::{LdapConn, LdapConnSettings, LdapError, Scope, SearchEntry, SearchOptions, dn_escape, ldap_escape};
use tampu_log::Logger;
use tampu_logbook::people::outside::{CheckPassword, MAX_GROUPS, MethodFailure, OutsideUser};

use super::{
    absence::Absence,
    calls::Calls,
    ldap_settings::{LdapSettings, Nested, filled},
    secret::read_secret,
    warnings::Warnings,
};

/// Names of groups in one filter.
const NAMES_AT_ONCE: usize = 50;
/// Longest login, in bytes.
const MAX_LOGIN: usize = 256;
/// Result codes of LDAP.
const SUCCESS: u32 = 0;
const SIZE_LIMIT: u32 = 4;
const NO_OBJECT: u32 = 32;
const WRONG_PASSWORD: u32 = 49;
const BUSY: u32 = 51;
const UNAVAILABLE: u32 = 52;

/// The reasons for which a login at the directory proves nobody.
enum Trouble {
    /// The directory cannot be reached, or serves nobody now.
    Away(String),
    /// This login could not be checked. Others may succeed.
    Unclear(String),
    /// The directory does not admit this person, or reports a person whom the logbook cannot take. To the caller it is a
    /// wrong password.
    Refused(String),
}

impl Trouble {
    /// The trouble that a result code means, if it is no success.
    fn of(code: u32, otherwise: fn(String) -> Trouble, why: String) -> Trouble {
        if matches!(code, BUSY | UNAVAILABLE) { Trouble::Away(why) } else { otherwise(why) }
    }
}

/// An LDAP directory as a login method.
pub struct Directory {
    name: String,
    inner: Arc<Inner>,
    calls: Calls,
    absence: Absence,
    warnings: Warnings,
}

struct Inner {
    settings: LdapSettings,
    password: Option<String>,
    tls: Arc<rustls::ClientConfig>,
}

impl Directory {
    /// Prepares the directory of a method. No connection is made yet.
    pub fn new(name: &str, settings: &LdapSettings, logger: Logger) -> Result<Directory, String> {
        let password = settings.password_file.as_deref().map(read_secret).transpose()?;
        let roots = match &settings.ca_file {
            Some(path) => tampu_tls::client::certificates(path).map_err(|why| why.to_string())?,
            None => tampu_tls::client::system_roots(),
        };
        let tls = Arc::new(tampu_tls::client::client_config(roots).map_err(|why| why.to_string())?);
        let calls = Calls::new(settings.connections);
        let absence = Absence::of(format!("the directory of the login method '{name}'"), logger.clone());
        let inner = Arc::new(Inner { settings: settings.clone(), password, tls });
        Ok(Directory { name: name.to_owned(), inner, calls, absence, warnings: Warnings::new(logger) })
    }
}

impl CheckPassword for Directory {
    fn check(&self, login: &str, password: &str, _: IpAddr) -> Result<Option<OutsideUser>, MethodFailure> {
        // A longer one would make the directory end the connection, which looks like its absence.
        if password.is_empty() || login.contains('\0') || login.len() > MAX_LOGIN {
            return Ok(None);
        }
        self.absence.check()?;
        let (inner, of, secret) = (self.inner.clone(), login.to_owned(), password.to_owned());
        let most = Duration::from_secs(self.inner.settings.timeout_s);
        let found = match self.calls.run(most + most / 2, move || inner.check(&of, &secret)) {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(Trouble::Away(why))) => Err(MethodFailure::Away(why)),
            Ok(Err(Trouble::Refused(why))) => {
                self.warnings.warn(&format!("the login method '{}' refuses '{}': {why}", self.name, login.escape_debug()));
                Ok(None)
            }
            Ok(Err(Trouble::Unclear(why))) => {
                let login = login.escape_debug();
                self.warnings.warn(&format!("the login method '{}' could not check '{login}': {why}", self.name));
                return Err(MethodFailure::Away(why));
            }
            Err(failure) => Err(failure),
        };
        self.absence.note(&found);
        found
    }
}

impl Inner {
    fn check(&self, login: &str, password: &str) -> Result<Option<OutsideUser>, Trouble> {
        let until = Instant::now() + Duration::from_secs(self.settings.timeout_s);
        let mut session = Session::open(self, until)?;
        if let Some(pattern) = &self.settings.bind_as {
            let is_dn = pattern.contains('=');
            let name = filled(pattern, &if is_dn { dn_escape(login).into_owned() } else { login.to_owned() }, "");
            if !session.bind(&name, password)? {
                return Ok(None);
            }
            let Some(entry) = session.person(login, Trouble::Refused)? else {
                return Err(Trouble::Refused(format!(
                    "'{name}' may log in, but {} finds no such person below '{}'",
                    self.settings.filter, self.settings.base
                )));
            };
            return session.found(entry, login).map(Some);
        }
        session.bind_service()?;
        let Some(entry) = session.person(login, Trouble::Unclear)? else { return Ok(None) };
        if !session.bind(&entry.dn, password)? {
            return Ok(None);
        }
        // Persons may not be allowed to read groups.
        session.bind_service()?;
        session.found(entry, login).map(Some)
    }
}

/// A connection to the directory, for one login.
struct Session<'a> {
    of: &'a Inner,
    connection: LdapConn,
    until: Instant,
    /// True once the directory has answered on this connection: then it is there, whatever follows.
    answered: bool,
}

impl<'a> Session<'a> {
    fn open(of: &'a Inner, until: Instant) -> Result<Session<'a>, Trouble> {
        let left = until.saturating_duration_since(Instant::now());
        let settings = LdapConnSettings::new().set_conn_timeout(left).set_starttls(of.settings.start_tls);
        let connection = LdapConn::with_settings(settings.set_config(of.tls.clone()), &of.settings.url);
        let connection = connection.map_err(|why| Trouble::Away(format!("{}: {why}", of.settings.url)))?;
        Ok(Session { of, connection, until, answered: false })
    }

    /// Prepares the next operation, which ends with the time of the login.
    fn next(&mut self) -> &mut LdapConn {
        let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.connection.with_timeout(left)
    }

    /// Returns the trouble of an operation without an answer: the directory may take long for one person alone.
    fn silent(&self, what: &str, why: &LdapError) -> Trouble {
        let kind = if self.answered { Trouble::Unclear } else { Trouble::Away };
        kind(format!("the {what} failed: {why}"))
    }

    /// Binds as a person. Returns false if the password is wrong, or if there is no such name.
    fn bind(&mut self, dn: &str, password: &str) -> Result<bool, Trouble> {
        let result = self.next().simple_bind(dn, password).map_err(|why| self.silent("bind", &why))?;
        self.answered = true;
        match result.rc {
            SUCCESS => Ok(true),
            WRONG_PASSWORD | NO_OBJECT => Ok(false),
            // Directories have many codes for accounts that are locked, have expired or need a new password.
            code => {
                Err(Trouble::of(code, Trouble::Refused, format!("the bind of '{dn}' ended with code {code}: {}", result.text)))
            }
        }
    }

    /// Binds as the service account, or as nobody.
    fn bind_service(&mut self) -> Result<(), Trouble> {
        let of = self.of;
        let dn = &of.settings.bind_dn;
        match self.bind(dn, of.password.as_deref().unwrap_or_default()) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = format!("the directory does not accept the service account '{dn}': check bind_dn and password_file");
                Err(Trouble::Away(why))
            }
            Err(Trouble::Refused(why)) => Err(Trouble::Away(why)),
            Err(other) => Err(other),
        }
    }

    /// Searches entries. `otherwise` is the trouble of a search that the directory refuses.
    fn search(
        &mut self,
        (base, filter): (&str, &str),
        attributes: &[&str],
        most: i32,
        otherwise: fn(String) -> Trouble,
    ) -> Result<Vec<SearchEntry>, Trouble> {
        let seconds = i32::try_from(self.of.settings.timeout_s).unwrap_or(i32::MAX);
        let options = SearchOptions::new().sizelimit(most).timelimit(seconds);
        let result = self.next().with_search_options(options).search(base, Scope::Subtree, filter, attributes.to_vec());
        let (entries, result) = result.map(|found| (found.0, found.1)).map_err(|why| self.silent("search", &why))?;
        self.answered = true;
        match result.rc {
            SUCCESS | SIZE_LIMIT => {}
            code => {
                let why = format!("the search below '{base}' ended with code {code}: {}", result.text);
                return Err(Trouble::of(code, otherwise, why));
            }
        }
        // References to other directories are not followed.
        Ok(entries.into_iter().filter(|entry| !entry.is_ref() && !entry.is_intermediate()).map(SearchEntry::construct).collect())
    }

    /// Finds the person of a login; `None` if there is none.
    fn person(&mut self, login: &str, otherwise: fn(String) -> Trouble) -> Result<Option<SearchEntry>, Trouble> {
        let of = &self.of.settings;
        let filter = filled(&of.filter, &ldap_escape(login), "");
        let attributes: [&str; 5] = [&of.subject, &of.login, &of.full_name, &of.email, "memberOf"];
        let mut found = self.search((&of.base, &filter), &attributes, 2, otherwise)?;
        match found.len() {
            0 => Ok(None),
            1 => Ok(found.pop()),
            _ => {
                let why = format!("the filter {filter} finds several persons below '{}'; a login belongs to one", of.base);
                Err(Trouble::Refused(why))
            }
        }
    }

    /// Returns a person with the groups.
    fn found(&mut self, entry: SearchEntry, login: &str) -> Result<OutsideUser, Trouble> {
        let of = &self.of.settings;
        let first = |name: &str| values(&entry, name).into_iter().next();
        let subject = match of.subject.as_str() {
            "dn" => Some(entry.dn.to_lowercase()),
            name => first(name),
        };
        let subject = subject.ok_or_else(|| {
            let why = "name another one with 'subject', or subject = \"dn\"";
            Trouble::Refused(format!("'{}' has no attribute '{}'; {why}", entry.dn, of.subject))
        })?;
        let [name, full_name, email] = [&of.login, &of.full_name, &of.email].map(|name| first(name));
        let (full_name, email) = (full_name.unwrap_or_default(), email.unwrap_or_default());
        let login = name.unwrap_or_else(|| login.to_owned());
        let groups = self.groups(&entry, &login)?;
        Ok(OutsideUser { subject, login, full_name, email, groups })
    }

    /// Returns the names of a person's groups, and of the groups that contain them.
    fn groups(&mut self, entry: &SearchEntry, login: &str) -> Result<Vec<String>, Trouble> {
        let of = &self.of.settings;
        // People may make groups elsewhere, with any first name.
        let is_below = |group: &String| of.group_base.as_ref().is_none_or(|base| is_below(group, base));
        let mut known: BTreeSet<String> = values(entry, "memberOf").into_iter().filter(is_below).collect();
        if let Some(base) = &of.group_base {
            let mut level = vec![entry.dn.clone()];
            if of.nested == Nested::Search {
                level.extend(known.iter().cloned());
            }
            for depth in 0..=of.nested_depth {
                let mut next = Vec::new();
                for names in level.chunks(NAMES_AT_ONCE) {
                    let filter = group_filter(of, names, if depth == 0 { login } else { "" });
                    for group in self.search((base, &filter), &["1.1"], (MAX_GROUPS * 4) as i32, Trouble::Unclear)? {
                        if known.insert(group.dn.clone()) {
                            next.push(group.dn);
                        }
                    }
                }
                if of.nested != Nested::Search || next.is_empty() || known.len() > MAX_GROUPS * 4 {
                    break;
                }
                level = next;
            }
        }
        Ok(known.into_iter().collect())
    }
}

/// Returns true if an entry is the base, or below it.
fn is_below(dn: &str, base: &str) -> bool {
    let plain = |name: &str| name.split(',').map(str::trim).collect::<Vec<_>>().join(",").to_lowercase();
    let (dn, base) = (plain(dn), plain(base));
    if base.is_empty() {
        return true;
    }
    let Some(above) = dn.strip_suffix(&base) else { return false };
    // A comma after a backslash is a part of a value.
    let above = above.strip_suffix(',').unwrap_or(if above.is_empty() { "" } else { "\\" });
    above.chars().rev().take_while(|c| *c == '\\').count() % 2 == 0
}

/// Makes the filter that finds the groups of these members. A group has no login.
fn group_filter(of: &LdapSettings, members: &[String], login: &str) -> String {
    let one = |dn: &String| {
        let dn = ldap_escape(dn.as_str());
        match of.nested {
            Nested::InChain => format!("(member:1.2.840.113556.1.4.1941:={dn})"),
            // Without a login, a group of that name must not be found.
            _ if login.is_empty() => filled(&of.group_filter, "\\00", &dn),
            _ => filled(&of.group_filter, &ldap_escape(login), &dn),
        }
    };
    format!("(|{})", members.iter().map(one).collect::<String>())
}

/// Returns the values of an attribute, whose name is compared without case. Bytes that are no text become hexadecimal.
fn values(entry: &SearchEntry, name: &str) -> Vec<String> {
    let text = entry.attrs.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, values)| values.clone());
    let bytes = entry.bin_attrs.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, values)| values);
    let hex = |value: &Vec<u8>| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match (text, bytes) {
        (_, Some(bytes)) => bytes.iter().map(hex).collect(),
        (text, None) => text.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_stays_a_value_in_filters_and_names() {
        let filter = "(&(objectClass=person)(uid={login}))";
        for (login, expected) in [
            ("zoe", "(&(objectClass=person)(uid=zoe))"),
            ("*", "(&(objectClass=person)(uid=\\2a))"),
            ("zoe)(uid=*", "(&(objectClass=person)(uid=zoe\\29\\28uid=\\2a))"),
            ("a\\b", "(&(objectClass=person)(uid=a\\5cb))"),
            ("{dn}", "(&(objectClass=person)(uid={dn}))"),
        ] {
            let made = filled(filter, &ldap_escape(login), "cn=x");
            assert_eq!(made, expected, "{login}");
            assert!(ldap3::parse_filter(&made).is_ok());
        }
        assert_eq!(filled("uid={login},ou=p", &dn_escape("zoe,ou=admins"), ""), "uid=zoe\\2cou\\3dadmins,ou=p");
        assert_eq!(filled("{x}{", "a", "b"), "{x}{");
    }

    #[test]
    fn groups_outside_of_the_base_are_none() {
        for (dn, base, below) in [
            ("cn=operators,ou=groups,dc=lab", "ou=groups,dc=lab", true),
            ("CN=operators, OU=Groups,DC=lab", "ou=groups, dc=lab", true),
            ("cn=a,ou=b,ou=groups,dc=lab", "ou=groups,dc=lab", true),
            ("ou=groups,dc=lab", "ou=groups,dc=lab", true),
            ("cn=x\\\\,ou=groups,dc=lab", "ou=groups,dc=lab", true),
            ("cn=admins,ou=lists,dc=lab", "ou=groups,dc=lab", false),
            ("cn=admins\\,ou=groups,dc=lab", "ou=groups,dc=lab", false),
            ("cn=admins,ou=my-ou=groups,dc=lab", "ou=groups,dc=lab", false),
            ("dc=lab", "ou=groups,dc=lab", false),
            ("cn=operators", "", true),
        ] {
            assert_eq!(is_below(dn, base), below, "{dn} {base}");
        }
    }

    #[test]
    fn groups_of_groups_are_asked_for_without_a_login() {
        let of = LdapSettings::default();
        let names = ["cn=a*,dc=x".to_owned(), "cn=b,dc=x".to_owned()];
        let made = group_filter(&of, &names, "zoe");
        assert!(made.starts_with("(|(|(member=cn=a\\2a,dc=x)") && made.contains("(memberUid=zoe)"), "{made}");
        let made = group_filter(&of, &names, "");
        assert!(made.contains("(memberUid=\\00)") && ldap3::parse_filter(&made).is_ok(), "{made}");
        let of = LdapSettings { nested: Nested::InChain, ..of };
        assert_eq!(group_filter(&of, &names[1..], "zoe"), "(|(member:1.2.840.113556.1.4.1941:=cn=b,dc=x))");
    }
}
