//! The absence of a service that proves persons. It is logged once, and the service is left alone for some seconds after
//! each failure, so that its absence delays no login.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tampu_log::{Logger, notice, warning};
#[cfg(any(feature = "ldap", feature = "pam"))]
use tampu_logbook::people::outside::{MethodFailure, OutsideUser};

/// Time for which a service without an answer is left alone.
const REST: Duration = Duration::from_secs(5);

/// The presence of one service.
pub struct Absence {
    /// The service, for the log, as `the directory of the login method 'lab'`.
    service: String,
    logger: Logger,
    /// The time until which the service is left alone, and the reason.
    away: Mutex<Option<(Instant, String)>>,
}

impl Absence {
    /// Assumes that the service is there.
    pub fn of(service: String, logger: Logger) -> Absence {
        Absence { service, logger, away: Mutex::default() }
    }

    /// Returns the reason for which the service is left alone now.
    pub fn reason(&self) -> Option<String> {
        self.away.lock().as_ref().filter(|(until, _)| *until > Instant::now()).map(|(_, why)| why.clone())
    }

    /// Remembers and logs that the service is away.
    pub fn begin(&self, why: &str) {
        let mut away = self.away.lock();
        if away.is_none() {
            warning!(self.logger, "{} does not respond: {why}", self.service);
        }
        *away = Some((Instant::now() + REST, why.to_owned()));
    }

    /// Remembers and logs that the service is there again.
    pub fn end(&self) {
        if self.away.lock().take().is_some() {
            notice!(self.logger, "{} responds again", self.service);
        }
    }
}

#[cfg(any(feature = "ldap", feature = "pam"))]
impl Absence {
    /// Fails while the service is left alone.
    pub fn check(&self) -> Result<(), MethodFailure> {
        self.reason().map_or(Ok(()), |why| Err(MethodFailure::Away(why)))
    }

    /// Remembers what a check of a password says about the service.
    pub fn note(&self, found: &Result<Option<OutsideUser>, MethodFailure>) {
        match found {
            Err(MethodFailure::Away(why)) => self.begin(why),
            Err(MethodFailure::Busy) => {}
            Ok(_) => self.end(),
        }
    }
}
