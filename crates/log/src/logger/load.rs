//! The sources of a process's settings in their order: defaults, environment, file.

use std::{fmt, path::Path};

use tampu_bus::run_dir::RunDir;
use tampu_types::{Domain, Level, SourceName};

use crate::logger::{
    config::LogFile,
    settings::{BadSettings, LogSettings, Reread},
    threshold::Threshold,
};

impl LogSettings {
    /// The defaults, then ACS's two variables, then `TAMPU_LOG_LEVEL` (published from), `TAMPU_LOG_LOCAL` (printed from),
    /// `TAMPU_LOG_OUTPUT` (where) and `TAMPU_LOG_FORMAT`, then the file that `TAMPU_LOG_CONFIG` names; later ones beat earlier ones
    /// ([`crate::logger::config`] has the table). The domain is `TAMPU_DOMAIN`'s.
    pub fn from_env(source: SourceName) -> Result<LogSettings, BadSettings> {
        LogSettings::load(source, variable)
    }

    /// Loads the settings with variables from another source than the environment.
    pub fn load(source: SourceName, variable: Variables) -> Result<LogSettings, BadSettings> {
        let domain = match variable("TAMPU_DOMAIN")? {
            Some(name) => Domain::new(name).map_err(|error| BadSettings::new("TAMPU_DOMAIN", error))?,
            None => Domain::new("local").map_err(|error| BadSettings::new("the default domain", error))?,
        };
        let mut settings = LogSettings::isolated(domain, source);
        // The rings report a directory that cannot be used, and then work without one.
        settings.rings = RunDir::from_env().domain(&settings.domain).ok().map(|dir| dir.log_rings());
        settings.overridden_by(variable)
    }

    /// Uses these settings as a program's defaults: ACS's variables, Tampu's variables and the file override them, in
    /// this order.
    pub fn overridden_by(self, variable: Variables) -> Result<LogSettings, BadSettings> {
        let defaults = self.clone();
        let mut settings = self;
        settings.reread = Some(Reread::new(move || defaults.clone().overridden_by(variable)));
        for (name, threshold) in [("ACS_LOG_CENTRAL", &mut settings.central), ("ACS_LOG_STDOUT", &mut settings.local)] {
            if let Some(text) = variable(name)? {
                *threshold = acs_threshold(&text).map_err(|why| BadSettings::new(name, why))?;
            }
        }
        read(variable, "TAMPU_LOG_LEVEL", &mut settings.central)?;
        read(variable, "TAMPU_LOG_LOCAL", &mut settings.local)?;
        read(variable, "TAMPU_LOG_OUTPUT", &mut settings.output)?;
        read(variable, "TAMPU_LOG_FORMAT", &mut settings.format)?;
        if let Some(path) = variable("TAMPU_LOG_CONFIG")? {
            let file = LogFile::read(Path::new(&path)).map_err(|why| BadSettings::new("TAMPU_LOG_CONFIG", why))?;
            file.apply(&mut settings);
        }
        Ok(settings)
    }
}

/// Gives the value of a variable, if it has one.
pub type Variables = fn(&'static str) -> Result<Option<String>, BadSettings>;

/// Reads a setting from its variable, if that is set.
fn read<T: std::str::FromStr<Err: fmt::Display>>(
    variable: Variables,
    name: &'static str,
    setting: &mut T,
) -> Result<(), BadSettings> {
    if let Some(text) = variable(name)? {
        *setting = text.parse().map_err(|error| BadSettings::new(name, error))?;
    }
    Ok(())
}

/// Reads ACS's number of a level: 0 is everything, 7, which ACS never defined, is read as Error, 99 is nothing at all.
fn acs_threshold(text: &str) -> Result<Threshold, String> {
    let threshold = match text.trim().parse() {
        Ok(0) => Some(Threshold::From(Level::Trace)),
        Ok(99) => Some(Threshold::Off),
        Ok(number) => Level::from_acs(number).map(Threshold::From),
        Err(_) => None,
    };
    threshold.ok_or_else(|| format!("invalid ACS level '{text}' (0 to 11, or 99 for none; 0 is everything)"))
}

/// Reads an environment variable; an error if it is not UTF-8.
pub fn variable(name: &'static str) -> Result<Option<String>, BadSettings> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(BadSettings::new(name, "is not UTF-8")),
    }
}
