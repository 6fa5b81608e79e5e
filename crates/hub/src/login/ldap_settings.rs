//! Settings of a directory: the table `[book.login.ldap]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A directory that is asked by LDAP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LdapSettings {
    /// The address, as `ldaps://ldap.example.org` or `ldap://ldap.example.org:389`.
    pub url: String,
    /// Encrypts a connection of `ldap://` before anything else is sent (StartTLS).
    pub start_tls: bool,
    /// Allows `ldap://` to another host without encryption: everybody on the way reads the passwords.
    pub plain: bool,
    /// The authorities (PEM) that are trusted for the directory's certificate; by default those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// The distinguished name of the service account that searches; empty for an anonymous search.
    pub bind_dn: String,
    /// The file with the password of `bind_dn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// The name with which persons bind themselves, in place of a search before: `uid={login},ou=people,dc=example,dc=org`
    /// or `{login}@example.org`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_as: Option<String>,
    /// The subtree of persons.
    pub base: String,
    /// The filter that finds the person of `{login}`.
    pub filter: String,
    /// The attribute with the identity that stays when names change; `dn` is the distinguished name.
    pub subject: String,
    /// The attribute with the login.
    pub login: String,
    /// The attribute with the full name.
    pub full_name: String,
    /// The attribute with the mail address.
    pub email: String,
    /// The subtree of groups; without it the person's attribute `memberOf` alone has the groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_base: Option<String>,
    /// The filter that finds the groups of a member `{dn}`, who may also be named `{login}`.
    pub group_filter: String,
    /// The search for groups of groups.
    pub nested: Nested,
    /// Levels of groups in groups.
    pub nested_depth: u32,
    /// Time limit of a login at the directory, in s.
    pub timeout_s: u64,
    /// Connections at a time.
    pub connections: usize,
}

/// Fills a filter or a name with values that are escaped already.
pub fn filled(pattern: &str, login: &str, dn: &str) -> String {
    // One pass, so that a value that looks like a place is not filled again.
    let mut out = String::with_capacity(pattern.len() + login.len() + dn.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (value, length) = match rest {
            _ if rest.starts_with("{login}") => (login, "{login}".len()),
            _ if rest.starts_with("{dn}") => (dn, "{dn}".len()),
            _ => ("{", 1),
        };
        out.push_str(value);
        rest = &rest[length..];
    }
    out + rest
}

/// Returns true: without LDAP no filter is used.
#[cfg(not(feature = "ldap"))]
fn is_filter(_: &str) -> bool {
    true
}

/// Returns true if a text is a filter.
#[cfg(feature = "ldap")]
fn is_filter(text: &str) -> bool {
    ldap3::parse_filter(text).is_ok()
}

/// The search for groups that contain groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nested {
    /// The person's own groups alone.
    Off,
    /// A search for each level.
    #[default]
    Search,
    /// The directory follows the groups itself, as Active Directory does.
    InChain,
}

impl Default for LdapSettings {
    fn default() -> LdapSettings {
        LdapSettings {
            url: String::new(),
            start_tls: false,
            plain: false,
            ca_file: None,
            bind_dn: String::new(),
            password_file: None,
            bind_as: None,
            base: String::new(),
            filter: "(&(objectClass=person)(uid={login}))".to_owned(),
            subject: "entryUUID".to_owned(),
            login: "uid".to_owned(),
            full_name: "cn".to_owned(),
            email: "mail".to_owned(),
            group_base: None,
            group_filter: "(|(member={dn})(uniqueMember={dn})(memberUid={login}))".to_owned(),
            nested: Nested::Search,
            nested_depth: 8,
            timeout_s: 5,
            connections: 4,
        }
    }
}

impl LdapSettings {
    /// Returns the files that the method reads.
    pub fn files(&self) -> Vec<PathBuf> {
        self.ca_file.iter().chain(&self.password_file).cloned().collect()
    }

    /// Checks the settings. An error has the name of the setting, and the reason.
    pub fn check(&self) -> Result<(), String> {
        if !cfg!(feature = "ldap") {
            return Err("this program was built without LDAP; build it with the feature 'ldap'".to_owned());
        }
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let host = rest.split('/').next().unwrap_or_default();
        let is_whole = !host.is_empty() && !host.starts_with(':') && !host.contains(['@', '?', '#', ' ']);
        if !["ldap", "ldaps"].contains(&scheme) || !is_whole || rest.contains('/') {
            return Err(format!("url: invalid address '{}'; write \"ldaps://ldap.example.org\"", self.url.escape_debug()));
        }
        if scheme == "ldaps" && self.start_tls {
            return Err("start_tls: ldaps:// is encrypted from its beginning; use ldap:// with it, or leave it out".to_owned());
        }
        let is_here = ["localhost", "127.0.0.1", "[::1]"].contains(&host.rsplit_once(':').map_or(host, |(name, _)| name));
        if scheme == "ldap" && !self.start_tls && !self.plain && !is_here {
            let why = "passwords would cross the network in clear text; use ldaps://, start_tls = true, or plain = true if \
                       the network is trusted";
            return Err(format!("url: {why}"));
        }
        if self.bind_dn.is_empty() != self.password_file.is_none() {
            return Err(
                "bind_dn: the service account and its password belong together: name both bind_dn and password_file".into()
            );
        }
        if self.bind_as.as_ref().is_some_and(|name| !name.contains("{login}")) {
            return Err("bind_as: it needs {login}, as in uid={login},ou=people,dc=example,dc=org".to_owned());
        }
        for (setting, filter, needed) in [("filter", &self.filter, "{login}"), ("group_filter", &self.group_filter, "{dn}")] {
            let is_there = filter.contains(needed) || setting == "group_filter" && filter.contains("{login}");
            if !is_there {
                return Err(format!("{setting}: it needs {needed}"));
            }
            if !is_filter(&filled(filter, "x", "cn=x")) {
                return Err(format!("{setting}: invalid filter '{}'", filter.escape_debug()));
            }
        }
        let is_name =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-;._".contains(&byte));
        for (setting, name) in
            [("subject", &self.subject), ("login", &self.login), ("full_name", &self.full_name), ("email", &self.email)]
        {
            if !is_name(name) {
                return Err(format!("{setting}: '{}' is no name of an attribute", name.escape_debug()));
            }
        }
        for (setting, value, most) in [
            ("nested_depth", u64::from(self.nested_depth), 64),
            ("timeout_s", self.timeout_s, 60),
            ("connections", self.connections as u64, 64),
        ] {
            if !(1..=most).contains(&value) {
                return Err(format!("{setting}: invalid value {value}; use 1 to {most}"));
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "ldap"))]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_checked_before_passwords_are_sent_to_it() {
        let check = |change: &dyn Fn(&mut LdapSettings)| {
            let mut settings = LdapSettings { url: "ldaps://ldap.example.org".into(), ..LdapSettings::default() };
            change(&mut settings);
            settings.check().err().map(|why| why.split(':').next().unwrap_or_default().to_owned()).unwrap_or_default()
        };
        let url = |url: &str| check(&|settings| settings.url = url.to_owned());
        for good in ["ldaps://ldap.example.org", "ldaps://10.0.0.1:6636", "ldap://localhost:389", "ldap://[::1]:389"] {
            assert_eq!(url(good), "", "{good}");
        }
        for bad in [
            "",
            "ldap.example.org",
            "ldap://ldap.example.org",
            "http://x",
            "ldaps://",
            "ldaps://:1",
            "ldaps://a/dc=x",
            "ldaps://u@h",
        ] {
            assert_eq!(url(bad), "url", "{bad}");
        }
        let plain = |change: &dyn Fn(&mut LdapSettings)| {
            check(&|settings| {
                settings.url = "ldap://ldap.example.org".into();
                change(settings);
            })
        };
        assert_eq!((plain(&|s| s.start_tls = true), plain(&|s| s.plain = true)), (String::new(), String::new()));
        assert_eq!(check(&|s| s.start_tls = true), "start_tls");
        assert_eq!(check(&|s| s.bind_dn = "cn=x".into()), "bind_dn");
        assert_eq!(check(&|s| s.bind_as = Some("uid=x".into())), "bind_as");
        assert_eq!(check(&|s| s.filter = "(uid=x)".into()), "filter");
        assert_eq!(check(&|s| s.filter = "(uid={login}".into()), "filter");
        assert_eq!(check(&|s| s.subject = "a b".into()), "subject");
        assert_eq!(check(&|s| s.connections = 0), "connections");
    }
}
