//! Settings of PAM: the table `[book.login.pam]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Files that modules of PAM read, beside those that every role may read.
const FILES: [&str; 9] = [
    "/etc/pam.conf",
    "/etc/pam.d",
    "/usr/etc/pam.d",
    "/etc/security",
    "/etc/login.defs",
    "/etc/krb5.conf",
    "/etc/krb5.conf.d",
    // The state of sssd, which answers from memory that it shares.
    "/var/lib/sss/mc",
    "/var/lib/sss/pubconf",
];

/// The login of this host's operating system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PamSettings {
    /// The service, whose rules are in `/etc/pam.d`.
    pub service: String,
    /// Further files and directories that the modules read, for the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Files and directories that the modules write, for the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Time limit of a login, in s.
    pub timeout_s: u64,
    /// Logins at a time; 1 for modules that several threads must not use.
    pub connections: usize,
}

impl Default for PamSettings {
    fn default() -> PamSettings {
        PamSettings { service: "tampu".to_owned(), read: Vec::new(), write: Vec::new(), timeout_s: 10, connections: 4 }
    }
}

impl PamSettings {
    /// Returns the files that the modules read.
    pub fn files(&self) -> Vec<PathBuf> {
        FILES.iter().map(PathBuf::from).chain(self.read.iter().cloned()).collect()
    }

    /// Checks the settings. An error has the name of the setting, and the reason.
    pub fn check(&self) -> Result<(), String> {
        if !cfg!(feature = "pam") {
            return Err("this program was built without PAM; build it with the feature 'pam'".to_owned());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = !self.service.starts_with('.') && !self.service.is_empty() && self.service.chars().all(is_plain);
        if !is_name {
            return Err(format!("service: invalid name '{}'; write that of a file in /etc/pam.d", self.service.escape_debug()));
        }
        // Without rules of its own, a service has those of 'other', which admit nobody.
        if self.service == "other" {
            return Err("service: 'other' has the rules of services without a file; write a file of its own".to_owned());
        }
        for (setting, paths) in [("read", &self.read), ("write", &self.write)] {
            if let Some(path) = paths.iter().find(|path| !path.is_absolute()) {
                return Err(format!("{setting}: '{}' is no absolute path", path.display()));
            }
        }
        for (setting, value, most) in [("timeout_s", self.timeout_s, 60), ("connections", self.connections as u64, 64)] {
            if !(1..=most).contains(&value) {
                return Err(format!("{setting}: invalid value {value}; use 1 to {most}"));
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "pam"))]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_file_of_pam_and_nothing_else() {
        let check = |change: &dyn Fn(&mut PamSettings)| {
            let mut settings = PamSettings::default();
            change(&mut settings);
            settings.check().err().map(|why| why.split(':').next().unwrap_or_default().to_owned()).unwrap_or_default()
        };
        assert_eq!(check(&|_| {}), "");
        for bad in ["", "..", "a/b", ".hidden", "a b", "other"] {
            assert_eq!(check(&|settings| settings.service = bad.into()), "service", "{bad}");
        }
        assert_eq!(check(&|settings| settings.read = vec!["x".into()]), "read");
        assert_eq!(check(&|settings| settings.write = vec!["x".into()]), "write");
        assert_eq!(check(&|settings| settings.timeout_s = 0), "timeout_s");
        assert_eq!(check(&|settings| settings.connections = 65), "connections");
    }
}
