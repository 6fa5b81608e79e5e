//! A process whose host's clock is off: zenoh as ever, and a clock that is a constant away from this host's.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tampu_bus::{
    Participant, QosTable,
    clock::{Clock, Gate, discipline::Discipline},
    connect::Settings,
    engine::{Answerer, Answers, CaughtUp, Class, Deliver, Engine, EngineError, Guard, Limits, Outlet, Seen, Tick},
};
use tampu_types::{SourceName, Time};

use crate::site::Site;

struct SkewedClock {
    host: Arc<dyn Clock>,
    ahead: Duration,
}

impl Clock for SkewedClock {
    fn monotonic(&self) -> u64 {
        self.host.monotonic()
    }

    fn utc(&self) -> Time {
        Time(self.host.utc().0 + self.ahead.as_nanos() as i64)
    }

    fn discipline(&self) -> Discipline {
        self.host.discipline()
    }

    fn wait(&self, gate: &Gate, seen: u64, until: u64) {
        self.host.wait(gate, seen, until);
    }
}

struct Skewed {
    inner: Arc<dyn Engine>,
    ahead: Duration,
}

impl Engine for Skewed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SkewedClock { host: self.inner.clock(), ahead: self.ahead })
    }

    fn shared_dir(&self) -> Option<PathBuf> {
        self.inner.shared_dir()
    }

    fn outlet(&self, key: &str, class: Class) -> Result<Box<dyn Outlet>, EngineError> {
        self.inner.outlet(key, class)
    }

    fn host(&self) -> Option<Arc<str>> {
        self.inner.host()
    }

    fn subscribe(&self, pattern: &str, deliver: Deliver) -> Result<Guard, EngineError> {
        self.inner.subscribe(pattern, deliver)
    }

    fn answer(&self, pattern: &str, answerer: Answerer) -> Result<Guard, EngineError> {
        self.inner.answer(pattern, answerer)
    }

    fn ask(&self, key: &str, question: Bytes, timeout: Duration, answers: Answers) -> Result<(), EngineError> {
        self.inner.ask(key, question, timeout, answers)
    }

    fn announce(&self, key: &str) -> Result<Guard, EngineError> {
        self.inner.announce(key)
    }

    fn watch(&self, pattern: &str, seen: Seen, caught_up: Option<CaughtUp>) -> Result<Guard, EngineError> {
        self.inner.watch(pattern, seen, caught_up)
    }

    fn drive(&self, work: Arc<dyn Tick>, wake: Arc<Gate>) -> Result<Guard, EngineError> {
        self.inner.drive(work, wake)
    }
}

/// Joins a site's bus with a clock that is so far ahead.
pub fn join(site: &Site, source: &str, ahead: Duration) -> Participant {
    let config = Settings::isolated(site.path("run"));
    let domain = config.domain.clone();
    let engine = Arc::new(Skewed { inner: config.open().unwrap(), ahead });
    Participant::on(engine, domain, SourceName::new(source).unwrap(), QosTable::default()).unwrap()
}
