//! Settings of a provider of identities: the table `[book.login.oidc]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A provider of identities that speaks OpenID Connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OidcSettings {
    /// The provider's issuer, as `https://sso.example.org/realms/lab`.
    pub issuer: String,
    /// The name of this site at the provider.
    pub client_id: String,
    /// The file with the secret of `client_id`; without it the site is a public client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    /// The address to which the provider returns browsers; by default `/login/oidc/NAME/back` at the address of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    /// The text of the link on the form to log in; by default the name of the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Leads a logout on ELOG's pages to the provider, which asks whether its own session ends, too.
    pub logout: bool,
    /// The scopes that are asked for.
    pub scopes: Vec<String>,
    /// The claim with the login.
    pub login: String,
    /// The claim with the full name.
    pub full_name: String,
    /// The claim with the mail address.
    pub email: String,
    /// The claim with the groups; `realm_access.roles` is a claim inside of another one.
    pub groups: String,
    /// Authorities (PEM) that are trusted for the provider's certificate, beside those of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Time limit of a request to the provider, in s.
    pub timeout_s: u64,
}

impl Default for OidcSettings {
    fn default() -> OidcSettings {
        OidcSettings {
            issuer: String::new(),
            client_id: String::new(),
            client_secret_file: None,
            redirect_url: None,
            label: None,
            logout: false,
            scopes: ["openid", "profile", "email"].map(str::to_owned).to_vec(),
            login: "preferred_username".to_owned(),
            full_name: "name".to_owned(),
            email: "email".to_owned(),
            groups: "groups".to_owned(),
            ca_file: None,
            timeout_s: 5,
        }
    }
}

/// Returns true if secrets may be sent to an address: by https, or to a program of this host.
pub fn is_safe(url: &str) -> bool {
    let here = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
    let plain = url.is_ascii() && !url.contains(|c: char| c.is_control() || c == ' ' || c == '#');
    plain
        && (url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty()) || here.iter().any(|start| url.starts_with(start)))
}

impl OidcSettings {
    /// Returns the files that the method reads.
    pub fn files(&self) -> Vec<PathBuf> {
        self.ca_file.iter().chain(&self.client_secret_file).cloned().collect()
    }

    /// Checks the settings. An error has the name of the setting, and the reason.
    pub fn check(&self) -> Result<(), String> {
        for (setting, url) in [("issuer", Some(&self.issuer)), ("redirect_url", self.redirect_url.as_ref())] {
            if url.is_some_and(|url| !is_safe(url) || url.contains('?')) {
                let url = url.map(|url| url.escape_debug().to_string()).unwrap_or_default();
                return Err(format!("{setting}: '{url}' is no address of https"));
            }
        }
        if self.redirect_url.as_ref().is_some_and(|url| !url.ends_with("/back")) {
            return Err("redirect_url: it ends with /login/oidc/NAME/back".to_owned());
        }
        if self.client_id.is_empty() {
            return Err("client_id: it is missing; write the name that the provider gave to this site".to_owned());
        }
        if !self.scopes.iter().any(|scope| scope == "openid") || self.scopes.iter().any(|scope| scope.contains([' ', '"'])) {
            return Err("scopes: write a list of words with \"openid\"".to_owned());
        }
        for (setting, claim) in
            [("login", &self.login), ("full_name", &self.full_name), ("email", &self.email), ("groups", &self.groups)]
        {
            if claim.is_empty() {
                return Err(format!("{setting}: the name of a claim is missing"));
            }
        }
        if !(1..=60).contains(&self.timeout_s) {
            return Err(format!("timeout_s: invalid value {}; use 1 to 60", self.timeout_s));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_to_https_alone() {
        let check = |issuer: &str| {
            let settings = OidcSettings { issuer: issuer.into(), client_id: "tampu".into(), ..OidcSettings::default() };
            settings.check().is_ok()
        };
        for good in ["https://sso.example.org/realms/lab", "http://127.0.0.1:8080", "http://localhost:1/x"] {
            assert!(check(good), "{good}");
        }
        for bad in [
            "",
            "http://sso.example.org",
            "https://",
            "sso.example.org",
            "http://localhost.evil.example",
            "https://a b",
            "https://a?b",
        ] {
            assert!(!check(bad), "{bad}");
        }
    }
}
