//! Settings of Kerberos: the table `[book.login.kerberos]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The error of a program without Kerberos.
pub const WITHOUT: &str = "this program was built without Kerberos; build it with the feature 'kerberos'";
/// Files that the library of Kerberos reads, beside those that every role may read.
const FILES: [&str; 4] = ["/etc/krb5.conf", "/etc/krb5.conf.d", "/etc/gss", "/var/lib/sss/pubconf"];

/// Tickets of a Kerberos realm.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KerberosSettings {
    /// The keytab with the key of `HTTP/host.example.org@REALM`.
    pub keytab: PathBuf,
    /// The realm of the site. `EXAMPLE.ORG` makes the login `zoe` of the principal `zoe@EXAMPLE.ORG`; principals of
    /// other realms keep theirs.
    pub realm: String,
    /// Reads groups and the full name of the host's user with the same login.
    pub groups: bool,
    /// Allows tickets over plain HTTP from other hosts: everybody on the way reads and changes requests.
    pub plain: bool,
    /// The text of the link on the form to log in; by default the name of the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl KerberosSettings {
    /// Returns the files that the method reads.
    pub fn files(&self) -> Vec<PathBuf> {
        let named = std::env::var("KRB5_CONFIG").unwrap_or_default();
        let named: Vec<PathBuf> = named.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
        FILES.iter().map(PathBuf::from).chain(named).collect()
    }

    /// Checks the settings. An error has the name of the setting, and the reason.
    pub fn check(&self) -> Result<(), String> {
        if !cfg!(feature = "kerberos") {
            return Err(WITHOUT.to_owned());
        }
        if !self.keytab.is_absolute() {
            return Err("keytab: write the absolute path of the keytab, such as \"/etc/tampu/http.keytab\"".to_owned());
        }
        let bad = |c: char| c.is_control() || c.is_whitespace() || "@/\\".contains(c);
        if self.realm.is_empty() || self.realm.contains(bad) {
            return Err(format!("realm: invalid realm '{}'; write one such as \"EXAMPLE.ORG\"", self.realm.escape_debug()));
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "kerberos"))]
mod tests {
    use super::*;

    #[test]
    fn a_keytab_and_a_realm_are_named() {
        let good = KerberosSettings { keytab: "/etc/http.keytab".into(), realm: "LAB.ORG".into(), ..KerberosSettings::default() };
        assert_eq!(good.check(), Ok(()));
        let check = |settings: KerberosSettings| settings.check().unwrap_err().split(':').next().unwrap().to_owned();
        assert_eq!(check(KerberosSettings { keytab: "http.keytab".into(), ..good.clone() }), "keytab");
        for realm in ["", "A B", "zoe@LAB.ORG", "a/b"] {
            assert_eq!(check(KerberosSettings { realm: realm.into(), ..good.clone() }), "realm", "{realm}");
        }
    }
}
