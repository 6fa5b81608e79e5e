//! The login of this host's operating system, by PAM: passwords that its modules check, and groups of its users.
//!
//! ```text
//! password -> authentication modules of the service -> account modules: expired, locked? -> user and groups of this host
//! ```
//!
//! Modules are C code of others that may wait for a network, so each check runs in a thread of its own ([`Calls`]).
//! They run in the process of the logbook: with its user's rights, and in its sandbox.

use std::{net::IpAddr, path::Path, time::Duration};

use tampu_log::{Logger, notice};
use tampu_logbook::people::outside::{CheckPassword, MethodFailure, OutsideUser};
use tampu_workers::host;

use super::{absence::Absence, calls::Calls, pam_settings::PamSettings, warnings::Warnings};
use library::Verdict;

mod library;

/// Directories with the files of services.
const SERVICES: [&str; 3] = ["/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d"];
/// Longest login, in bytes.
const MAX_LOGIN: usize = 256;

/// PAM as a login method.
pub struct Pam {
    name: String,
    settings: PamSettings,
    calls: Calls,
    absence: Absence,
    logger: Logger,
    warnings: Warnings,
}

impl Pam {
    /// Prepares the method of this name.
    pub fn new(name: &str, settings: &PamSettings, logger: Logger) -> Result<Pam, String> {
        let service = &settings.service;
        // Without its file, PAM would refuse everybody by the rules of the service 'other'.
        if !SERVICES.iter().any(|directory| Path::new(directory).join(service).exists()) {
            return Err(format!(
                "there is no file /etc/pam.d/{service}; write the rules of the service there, or name another one with 'service'"
            ));
        }
        let absence = Absence::of(format!("PAM of the login method '{name}'"), logger.clone());
        let (name, calls, warnings) = (name.to_owned(), Calls::new(settings.connections), Warnings::new(logger.clone()));
        Ok(Pam { name, settings: settings.clone(), calls, absence, logger, warnings })
    }
}

/// Returns a user of this host with the groups. Modules may know users that the host does not.
fn person(login: String) -> OutsideUser {
    let account = host::account(&login);
    let groups = account.as_ref().map(host::groups_of).unwrap_or_default();
    let (login, full_name) = account.map_or((login, String::new()), |account| (account.name, account.full_name));
    OutsideUser { subject: login.clone(), login, full_name, email: String::new(), groups }
}

impl CheckPassword for Pam {
    fn check(&self, login: &str, password: &str, from: IpAddr) -> Result<Option<OutsideUser>, MethodFailure> {
        let is_login = (1..=MAX_LOGIN).contains(&login.len()) && !login.chars().any(char::is_control);
        if !is_login || password.is_empty() || password.contains('\0') {
            return Ok(None);
        }
        self.absence.check()?;
        let service = self.settings.service.clone();
        let (of, secret) = (login.to_owned(), password.to_owned());
        let most = Duration::from_secs(self.settings.timeout_s);
        let checked = self.calls.run(most, move || {
            library::check(&service, &of, &secret, from).map(|verdict| match verdict {
                Verdict::Admitted(login) => Ok(Some(person(login))),
                Verdict::Wrong => Ok(None),
                Verdict::Refused(why) => Err(why),
            })
        });
        let found = match checked {
            Ok(Ok(Ok(found))) => Ok(found),
            // The caller is not told that the password was right.
            Ok(Ok(Err(why))) => {
                notice!(self.logger, "the login method '{}' refuses '{}': {why}", self.name, login.escape_debug());
                Ok(None)
            }
            // Modules answer so about one person, too, whom anybody can name. Only their silence counts as absence.
            Ok(Err(why)) => {
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
