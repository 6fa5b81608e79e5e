//! The absence of a service that checks passwords. It is logged once, and the service is left alone for some seconds
//! after each failure, so that its absence delays no login.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tampu_log::{Logger, notice, warning};
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

    /// Fails while the service is left alone.
    pub fn check(&self) -> Result<(), MethodFailure> {
        match &*self.away.lock() {
            Some((until, why)) if *until > Instant::now() => Err(MethodFailure::Away(why.clone())),
            _ => Ok(()),
        }
    }

    /// Remembers and logs that the service is away, or is there again.
    pub fn note(&self, found: &Result<Option<OutsideUser>, MethodFailure>) {
        let mut away = self.away.lock();
        match found {
            Err(MethodFailure::Away(why)) => {
                if away.is_none() {
                    warning!(self.logger, "{} does not respond: {why}", self.service);
                }
                *away = Some((Instant::now() + REST, why.clone()));
            }
            Err(MethodFailure::Busy) => {}
            Ok(_) => {
                if away.take().is_some() {
                    notice!(self.logger, "{} responds again", self.service);
                }
            }
        }
    }
}
