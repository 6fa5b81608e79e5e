//! A directory that checks passwords, by LDAP.
//!
//! ```text
//! connect, TLS -> bind as the service account -> search the person -> bind as the person -> search groups
//!                                 or: bind as the person, by a name made of the login -> search the person, groups
//! ```
//!
//! A login has a connection of its own, because a bind changes the rights of the whole connection. Values of the login
//! are escaped in filters and names. An empty password is never sent: to a directory it means nobody, who may bind.
//! After a failed connection the directory is left alone for some seconds ([`Absence`]).

use std::{
    collections::BTreeSet,
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
};

/// Names of groups in one filter.
const NAMES_AT_ONCE: usize = 50;
/// Result codes of LDAP.
const SUCCESS: u32 = 0;
const SIZE_LIMIT: u32 = 4;
const NO_OBJECT: u32 = 32;
const WRONG_PASSWORD: u32 = 49;

/// An LDAP directory as a login method.
pub struct Directory {
    inner: Arc<Inner>,
    calls: Calls,
    absence: Absence,
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
        let absence = Absence::of(format!("the directory of the login method '{name}'"), logger);
        Ok(Directory { inner: Arc::new(Inner { settings: settings.clone(), password, tls }), calls, absence })
    }
}

impl CheckPassword for Directory {
    fn check(&self, login: &str, password: &str) -> Result<Option<OutsideUser>, MethodFailure> {
        if password.is_empty() || login.contains('\0') {
            return Ok(None);
        }
        self.absence.check()?;
        let (inner, login, password) = (self.inner.clone(), login.to_owned(), password.to_owned());
        let most = Duration::from_secs(self.inner.settings.timeout_s);
        let found = self.calls.run(most + most / 2, move || inner.check(&login, &password));
        let found = found.and_then(|found| found.map_err(MethodFailure::Away));
        self.absence.note(&found);
        found
    }
}

impl Inner {
    fn check(&self, login: &str, password: &str) -> Result<Option<OutsideUser>, String> {
        let until = Instant::now() + Duration::from_secs(self.settings.timeout_s);
        let mut session = Session::open(self, until)?;
        if let Some(pattern) = &self.settings.bind_as {
            let is_dn = pattern.contains('=');
            let name = filled(pattern, &if is_dn { dn_escape(login).into_owned() } else { login.to_owned() }, "");
            if !session.bind(&name, password)? {
                return Ok(None);
            }
            let Some(entry) = session.person(login)? else {
                return Err(format!(
                    "'{name}' may log in, but {} finds no such person below '{}'",
                    self.settings.filter, self.settings.base
                ));
            };
            return session.found(entry, login).map(Some);
        }
        session.bind_service()?;
        let Some(entry) = session.person(login)? else { return Ok(None) };
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
}

impl<'a> Session<'a> {
    fn open(of: &'a Inner, until: Instant) -> Result<Session<'a>, String> {
        let left = until.saturating_duration_since(Instant::now());
        let settings = LdapConnSettings::new().set_conn_timeout(left).set_starttls(of.settings.start_tls);
        let connection = LdapConn::with_settings(settings.set_config(of.tls.clone()), &of.settings.url);
        let connection = connection.map_err(|why| format!("{}: {why}", of.settings.url))?;
        Ok(Session { of, connection, until })
    }

    /// Prepares the next operation, which ends with the time of the login.
    fn next(&mut self) -> &mut LdapConn {
        let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.connection.with_timeout(left)
    }

    /// Binds with a password. Returns false if it is wrong, or if there is no such name.
    fn bind(&mut self, dn: &str, password: &str) -> Result<bool, String> {
        let result = self.next().simple_bind(dn, password).map_err(|why| failed("bind", &why))?;
        match result.rc {
            SUCCESS => Ok(true),
            WRONG_PASSWORD | NO_OBJECT => Ok(false),
            code => Err(format!("the bind of '{dn}' ended with code {code}: {}", result.text)),
        }
    }

    /// Binds as the service account, or as nobody.
    fn bind_service(&mut self) -> Result<(), String> {
        let of = self.of;
        let dn = &of.settings.bind_dn;
        match self.bind(dn, of.password.as_deref().unwrap_or_default())? {
            true => Ok(()),
            false => Err(format!("the directory does not accept the service account '{dn}': check bind_dn and password_file")),
        }
    }

    fn search(&mut self, base: &str, filter: &str, attributes: &[&str], most: i32) -> Result<Vec<SearchEntry>, String> {
        let seconds = i32::try_from(self.of.settings.timeout_s).unwrap_or(i32::MAX);
        let options = SearchOptions::new().sizelimit(most).timelimit(seconds);
        let result = self.next().with_search_options(options).search(base, Scope::Subtree, filter, attributes.to_vec());
        let (entries, result) = result.map(|found| (found.0, found.1)).map_err(|why| failed("search", &why))?;
        match result.rc {
            SUCCESS | SIZE_LIMIT => {}
            code => return Err(format!("the search below '{base}' ended with code {code}: {}", result.text)),
        }
        // References to other directories are not followed.
        Ok(entries.into_iter().filter(|entry| !entry.is_ref() && !entry.is_intermediate()).map(SearchEntry::construct).collect())
    }

    /// Finds the person of a login; `None` if there is none.
    fn person(&mut self, login: &str) -> Result<Option<SearchEntry>, String> {
        let of = &self.of.settings;
        let filter = filled(&of.filter, &ldap_escape(login), "");
        let attributes: [&str; 5] = [&of.subject, &of.login, &of.full_name, &of.email, "memberOf"];
        let mut found = self.search(&of.base, &filter, &attributes, 2)?;
        match found.len() {
            0 => Ok(None),
            1 => Ok(found.pop()),
            _ => Err(format!("the filter {filter} finds several persons below '{}'; a login belongs to one", of.base)),
        }
    }

    /// Returns a person with the groups.
    fn found(&mut self, entry: SearchEntry, login: &str) -> Result<OutsideUser, String> {
        let of = &self.of.settings;
        let first = |name: &str| values(&entry, name).into_iter().next();
        let subject = match of.subject.as_str() {
            "dn" => Some(entry.dn.to_lowercase()),
            name => first(name),
        };
        let subject = subject.ok_or_else(|| {
            format!("'{}' has no attribute '{}'; name another one with 'subject', or subject = \"dn\"", entry.dn, of.subject)
        })?;
        let [name, full_name, email] = [&of.login, &of.full_name, &of.email].map(|name| first(name));
        let (full_name, email) = (full_name.unwrap_or_default(), email.unwrap_or_default());
        let login = name.unwrap_or_else(|| login.to_owned());
        let groups = self.groups(&entry, &login)?;
        Ok(OutsideUser { subject, login, full_name, email, groups })
    }

    /// Returns the names of a person's groups, and of the groups that contain them.
    fn groups(&mut self, entry: &SearchEntry, login: &str) -> Result<Vec<String>, String> {
        let of = &self.of.settings;
        let mut known: BTreeSet<String> = values(entry, "memberOf").into_iter().collect();
        if let Some(base) = &of.group_base {
            let mut level = vec![entry.dn.clone()];
            if of.nested == Nested::Search {
                level.extend(known.iter().cloned());
            }
            for depth in 0..=of.nested_depth {
                let mut next = Vec::new();
                for names in level.chunks(NAMES_AT_ONCE) {
                    let filter = group_filter(of, names, if depth == 0 { login } else { "" });
                    for group in self.search(base, &filter, &["1.1"], (MAX_GROUPS * 4) as i32)? {
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

fn failed(what: &str, why: &LdapError) -> String {
    format!("the {what} failed: {why}")
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
