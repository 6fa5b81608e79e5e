//! Settings of login methods: the tables `[[book.login]]`.

use std::{net::IpAddr, path::PathBuf};

use http::HeaderName;
use serde::{Deserialize, Serialize};
use tampu_logbook::people::{outside::GroupRule, user::check_name};

use super::{
    kerberos_settings::KerberosSettings, ldap_settings::LdapSettings, oidc::settings::OidcSettings, pam_settings::PamSettings,
};

/// A login method. It has exactly one table of its kind, such as `proxy`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginSettings {
    /// The name, by which users are bound to the method.
    pub name: String,
    /// Makes a user at a person's first login.
    pub register: bool,
    /// The meanings of groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<GroupRule>,
    /// A directory that checks passwords.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ldap: Option<LdapSettings>,
    /// The login of this host's operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pam: Option<PamSettings>,
    /// Tickets of a Kerberos realm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kerberos: Option<KerberosSettings>,
    /// A provider of identities, to which browsers are redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcSettings>,
    /// A proxy that has checked the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySettings>,
}

/// The headers in which a trusted proxy names the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxySettings {
    /// The header with the login.
    pub header: String,
    /// The header with the full name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_name_header: Option<String>,
    /// The header with the mail address, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_header: Option<String>,
    /// The header with groups, separated by commas or semicolons, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_header: Option<String>,
    /// A realm that is removed from logins: `EXAMPLE.ORG` makes `zoe` of `zoe@EXAMPLE.ORG`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// The file with the secret that the proxy sends in `X-Tampu-Proxy-Secret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
}

impl Default for ProxySettings {
    fn default() -> ProxySettings {
        ProxySettings {
            header: "X-Forwarded-User".to_owned(),
            full_name_header: None,
            email_header: None,
            groups_header: None,
            realm: None,
            secret_file: None,
        }
    }
}

/// An invalid setting: its name below `book`, and the reason.
type Invalid = (&'static str, String);

/// Checks the login methods of a site with these trusted proxies.
pub fn check(logins: &[LoginSettings], proxies: &[IpAddr]) -> Result<(), Invalid> {
    for (at, login) in logins.iter().enumerate() {
        let wrong = |why: String| Err(("login", format!("method {}: {why}", at + 1)));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if check_name(&login.name).is_err() || !login.name.chars().all(is_plain) {
            return wrong(format!(
                "invalid name '{}'; write a name of letters, digits, '-', '_' and '.'",
                login.name.escape_debug()
            ));
        }
        if logins[..at].iter().any(|other| other.name == login.name) {
            return wrong(format!("there are two methods '{}'; users are bound to a method by its name", login.name));
        }
        if login.kinds() != 1 {
            let why = format!("'{}' needs exactly one table of its kind: {KINDS}", login.name);
            return wrong(why);
        }
        login.check_groups()?;
        login.check_proxy(proxies)?;
        if let Some(Err(why)) = login.ldap.as_ref().map(LdapSettings::check) {
            return Err(("login.ldap", format!("'{}': {why}", login.name)));
        }
        if let Some(Err(why)) = login.pam.as_ref().map(PamSettings::check) {
            return Err(("login.pam", format!("'{}': {why}", login.name)));
        }
        if let Some(Err(why)) = login.kerberos.as_ref().map(KerberosSettings::check) {
            return Err(("login.kerberos", format!("'{}': {why}", login.name)));
        }
        if let Some(Err(why)) = login.oidc.as_ref().map(OidcSettings::check) {
            return Err(("login.oidc", format!("'{}': {why}", login.name)));
        }
    }
    if logins.iter().filter(|login| login.proxy.is_some()).count() > 1 {
        return Err(("login.proxy", "several methods of proxies; one method serves all 'proxies'".to_owned()));
    }
    // A request with a ticket does not name the method.
    if logins.iter().filter(|login| login.kerberos.is_some()).count() > 1 {
        return Err(("login.kerberos", "several methods of Kerberos; one keytab can have the keys of several hosts".to_owned()));
    }
    Ok(())
}

/// The tables of which a method has one.
const KINDS: &str = "[book.login.ldap], [book.login.pam], [book.login.kerberos], [book.login.oidc] or [book.login.proxy]";

impl LoginSettings {
    /// Returns the text and the address of the link with which a login begins, if browsers go to an address for it.
    pub fn link(&self) -> Option<(String, String)> {
        if let Some(kerberos) = &self.kerberos {
            let begin = format!("/login/kerberos/{}", self.name);
            return Some((kerberos.label.clone().unwrap_or_else(|| self.name.clone()), begin));
        }
        let oidc = self.oidc.as_ref()?;
        let back = oidc.redirect_url.as_deref().and_then(|url| url.strip_suffix("/back").map(str::to_owned));
        let begin = back.unwrap_or_else(|| format!("/login/oidc/{}", self.name));
        Some((oidc.label.clone().unwrap_or_else(|| self.name.clone()), begin))
    }

    /// Returns the name of the method, and the address to which a logout leads.
    pub fn logout(&self) -> Option<(String, String)> {
        self.oidc.as_ref().filter(|oidc| oidc.logout)?;
        self.link().map(|(_, begin)| (self.name.clone(), format!("{begin}/out")))
    }

    /// Returns the name of the method, and the address at which a provider asks for the password again.
    pub fn repeat(&self) -> Option<(String, String)> {
        self.oidc.as_ref()?;
        self.link().map(|(_, begin)| (self.name.clone(), format!("{begin}?again=1")))
    }

    /// Returns the files that the method reads.
    pub fn files(&self) -> Vec<PathBuf> {
        let of_proxy = self.proxy.iter().filter_map(|proxy| proxy.secret_file.clone());
        let of_oidc = self.oidc.iter().flat_map(OidcSettings::files);
        let of_kerberos = self.kerberos.iter().flat_map(KerberosSettings::files);
        let of_pam = self.pam.iter().flat_map(PamSettings::files);
        self.ldap.iter().flat_map(LdapSettings::files).chain(of_pam).chain(of_kerberos).chain(of_oidc).chain(of_proxy).collect()
    }

    /// Returns the files that the method writes.
    pub fn written(&self) -> Vec<PathBuf> {
        self.pam.iter().flat_map(|pam| pam.write.clone()).collect()
    }

    fn kinds(&self) -> usize {
        let all = [self.ldap.is_some(), self.pam.is_some(), self.kerberos.is_some(), self.oidc.is_some(), self.proxy.is_some()];
        all.into_iter().filter(|is| *is).count()
    }

    fn check_groups(&self) -> Result<(), Invalid> {
        for rule in &self.group {
            let wrong = |why: &str| Err(("login.group", format!("'{}' of '{}': {why}", rule.from.escape_debug(), self.name)));
            if rule.from.trim().is_empty() {
                return wrong("'from' is missing; write the group of the directory");
            }
            if let Some(group) = &rule.group
                && let Err(why) = check_name(group)
            {
                return wrong(&why.to_string());
            }
            if rule.book.is_some() == rule.may.is_empty() {
                return wrong("'book' and 'may' belong together, as book = \"Shift\" and may = [\"read\", \"write\"]");
            }
            if rule.group.is_none() && rule.book.is_none() && !rule.admin {
                return wrong("it means nothing; add group = \"NAME\", book and may, or admin = true");
            }
        }
        Ok(())
    }

    fn check_proxy(&self, proxies: &[IpAddr]) -> Result<(), Invalid> {
        let Some(proxy) = &self.proxy else { return Ok(()) };
        let wrong = |why: String| Err(("login.proxy", format!("'{}': {why}", self.name)));
        let named = [&proxy.full_name_header, &proxy.email_header, &proxy.groups_header];
        for header in named.into_iter().flatten().chain([&proxy.header]) {
            let Ok(name) = header.parse::<HeaderName>() else {
                return wrong(format!("'{}' is no name of a header; write one such as X-Forwarded-User", header.escape_debug()));
            };
            if [http::header::AUTHORIZATION, http::header::COOKIE, http::header::HOST].contains(&name) {
                return wrong(format!("the header '{header}' has another meaning; write one such as X-Forwarded-User"));
            }
        }
        if proxies.is_empty() {
            return wrong("nobody is trusted; name the proxy's address in 'proxies' of [book]".to_owned());
        }
        if proxy.secret_file.is_none() && proxies.iter().any(|proxy| proxy.to_canonical().is_loopback()) {
            let why = "every program of this host can connect from a loopback address, as the proxy does; name a file with \
                       secret_file, and let the proxy send its content in the header X-Tampu-Proxy-Secret";
            return wrong(why.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(text: &str, proxies: &[&str]) -> Result<(), Invalid> {
        let logins: Vec<LoginSettings> = toml::from_str::<Tables>(text).unwrap().login;
        check(&logins, &proxies.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<_>>())
    }

    #[derive(Deserialize)]
    struct Tables {
        login: Vec<LoginSettings>,
    }

    #[test]
    #[cfg(not(any(feature = "pam", feature = "kerberos")))]
    fn a_program_without_a_method_says_so() {
        for (kind, feature) in [("pam", "'pam'"), ("kerberos", "'kerberos'")] {
            let (setting, why) = proxied(&format!("[[login]]\nname = \"a\"\n[login.{kind}]\n"), &[]).unwrap_err();
            assert!(setting == format!("login.{kind}") && why.contains(feature), "{setting}: {why}");
        }
    }

    #[test]
    fn a_method_is_checked_before_it_admits_anybody() {
        let proxy = "[[login]]\nname = \"sso\"\n[login.proxy]\n";
        for (text, proxies, error) in [
            (proxy.to_owned(), &["192.0.2.1"][..], None),
            (proxy.to_owned(), &[], Some("name the proxy's address")),
            (proxy.to_owned(), &["::ffff:127.0.0.1"], Some("secret_file")),
            (format!("{proxy}secret_file = \"/x\"\n"), &["127.0.0.1"], None),
            (format!("{proxy}header = \"Cookie\"\n"), &["192.0.2.1"], Some("another meaning")),
            (format!("{proxy}email_header = \"a b\"\n"), &["192.0.2.1"], Some("no name of a header")),
            (format!("{proxy}{proxy}"), &["192.0.2.1"], Some("two methods 'sso'")),
            (format!("{proxy}{}", proxy.replace("sso", "other")), &["192.0.2.1"], Some("several methods of proxies")),
            ("[[login]]\nname = \"a b\"\n".into(), &[], Some("invalid name")),
            ("[[login]]\nname = \"a\"\n".into(), &[], Some("exactly one table")),
            (format!("{proxy}[[login.group]]\nfrom = \"ops\"\ngroup = \"a:b\"\n"), &["192.0.2.1"], Some("invalid name")),
            (format!("{proxy}[[login.group]]\nfrom = \"ops\"\n"), &["192.0.2.1"], Some("means nothing")),
            (format!("{proxy}[[login.group]]\nfrom = \"ops\"\nbook = \"Shift\"\n"), &["192.0.2.1"], Some("belong together")),
        ] {
            let result = proxied(&text, proxies);
            match error {
                None => assert_eq!(result, Ok(()), "{text}"),
                Some(error) => assert!(result.as_ref().is_err_and(|(_, why)| why.contains(error)), "{text}: {result:?}"),
            }
        }
        assert!(toml::from_str::<Tables>("[[login]]\nname = \"a\"\nregistre = true\n").is_err());
    }
}
