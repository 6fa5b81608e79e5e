//! Login methods of a site, beside the passwords that the logbook keeps.
//!
//! | method | module |
//! |-|-|
//! | settings, and their check | [`settings`] |
//! | a directory that checks passwords | `ldap`, [`ldap_settings`] |
//! | the login of this host | `pam`, [`pam_settings`] |
//! | tickets of Kerberos | [`kerberos`], [`kerberos_settings`] |
//! | a provider of identities | [`oidc`] |
//! | calls that may take long, and services that are away | [`calls`], `absence` |
//! | a proxy that has checked the person | [`proxy`] |
//! | files with secrets | [`secret`] |
//! | answers to browsers; warnings about strangers | `browsers`, `warnings` |
//!
//! A method reports a person, once the person is proved. `tampu_logbook::people` decides which user that is, and which
//! rights the person's groups mean.

use std::path::Path;

use tampu_log::Logger;
use tampu_logbook::people::outside::{CheckPassword, LoginMethod, MethodKind, OutsideCalls};

use kerberos::KerberosLogin;
use ldap_settings::LdapSettings;
use oidc::Provider;
use pam_settings::PamSettings;
use proxy::ProxyLogin;
use settings::LoginSettings;

mod absence;
mod browsers;
#[cfg(any(feature = "ldap", feature = "pam"))]
pub mod calls;
pub mod kerberos;
pub mod kerberos_settings;
#[cfg(feature = "ldap")]
pub mod ldap;
pub mod ldap_settings;
pub mod oidc;
#[cfg(feature = "pam")]
pub mod pam;
pub mod pam_settings;
pub mod proxy;
pub mod secret;
pub mod settings;
mod warnings;

/// Errors of the start of a login method.
#[derive(Debug, thiserror::Error)]
#[error("the login method '{method}': {why}")]
pub struct LoginError {
    /// The name of the method.
    pub method: String,
    pub why: String,
}

/// Prepares a directory.
#[cfg(feature = "ldap")]
fn directory(name: &str, settings: &LdapSettings, logger: &Logger) -> Result<Box<dyn CheckPassword>, String> {
    Ok(Box::new(ldap::Directory::new(name, settings, logger.clone())?))
}

/// Reports that this program has no LDAP.
#[cfg(not(feature = "ldap"))]
fn directory(_: &str, settings: &LdapSettings, _: &Logger) -> Result<Box<dyn CheckPassword>, String> {
    Err(settings.check().err().unwrap_or_default())
}

/// Prepares the login of this host.
#[cfg(feature = "pam")]
fn pam(name: &str, settings: &PamSettings, logger: &Logger) -> Result<Box<dyn CheckPassword>, String> {
    Ok(Box::new(pam::Pam::new(name, settings, logger.clone())?))
}

/// Reports that this program has no PAM.
#[cfg(not(feature = "pam"))]
fn pam(_: &str, settings: &PamSettings, _: &Logger) -> Result<Box<dyn CheckPassword>, String> {
    Err(settings.check().err().unwrap_or_default())
}

/// The login methods of a site.
#[derive(Default)]
pub struct Logins {
    /// Logins that wait for services outside.
    pub asking: OutsideCalls,
    /// All methods, in their order.
    pub methods: Vec<LoginMethod>,
    /// The method of a proxy, if there is one.
    pub proxy: Option<ProxyLogin>,
    /// The method of tickets, if there is one.
    pub kerberos: Option<KerberosLogin>,
    /// The providers of identities.
    pub providers: Vec<Provider>,
}

impl Logins {
    /// Prepares the methods of these settings. `run` is the run-time directory.
    pub fn start(settings: &[LoginSettings], run: &Path, logger: &Logger) -> Result<Logins, LoginError> {
        let mut logins = Logins::default();
        for one in settings {
            let error = |why: String| LoginError { method: one.name.clone(), why };
            let mut add = |kind: MethodKind, passwords: Option<Box<dyn CheckPassword>>| {
                let (name, register, groups) = (one.name.clone(), one.register, one.group.clone());
                logins.methods.push(LoginMethod { name, kind, register, groups, passwords });
            };
            if let Some(ldap) = &one.ldap {
                add(MethodKind::Ldap, Some(directory(&one.name, ldap, logger).map_err(error)?));
            } else if let Some(settings) = &one.pam {
                add(MethodKind::Pam, Some(pam(&one.name, settings, logger).map_err(error)?));
            } else if let Some(kerberos) = &one.kerberos {
                add(MethodKind::Kerberos, None);
                logins.kerberos = Some(KerberosLogin::new(&one.name, kerberos, run, logger.clone()).map_err(error)?);
            } else if let Some(oidc) = &one.oidc {
                add(MethodKind::Oidc, None);
                let asking = logins.asking.clone();
                logins.providers.push(Provider::new(&one.name, oidc, asking, logger.clone()).map_err(error)?);
            } else if let Some(proxy) = &one.proxy {
                add(MethodKind::Proxy, None);
                logins.proxy = Some(ProxyLogin::new(&one.name, proxy, logger.clone()).map_err(error)?);
            }
        }
        Ok(logins)
    }
}
