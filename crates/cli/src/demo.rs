//! A simulated observatory that logs like one: eight antennas, a correlator, a scheduler, a weather station. Its instruments
//! publish attributes besides ([`instruments`]), and its correlator sends dumps as bulk data ([`dumps`]).
//!
//! A seed determines everything in simulated time, so two runs with one seed log the same in the same order; only the
//! time stamps differ. Actors run in the order of the times that they request. A rate other than 1 makes the simulated
//! time pass faster or slower.

use std::{
    collections::BinaryHeap,
    sync::Arc,
    time::{Duration, Instant},
};

use tampu_bus::{BusError, Participant, QosTable, engine::Engine};
use tampu_log::{LogSettings, Logger, Threshold, logger::variable};
use tampu_types::{Domain, Level, SourceName};

use crate::{
    demo::{
        actor::Actor, antenna::Antenna, chance::Chance, correlator::Correlator, scheduler::Scheduler, sky::Sky, weather::Weather,
    },
    failure::Failure,
    interrupt::Interrupt,
};

mod actor;
mod antenna;
mod chance;
mod correlator;
pub mod dumps;
pub mod instruments;
mod scheduler;
pub mod shift_log;
mod sky;
mod weather;

/// Number of antennas.
const ANTENNAS: usize = 8;

/// The processes of the observatory, as loggers of their own sources.
pub struct Loggers {
    control: Logger,
    correlator: Logger,
    scheduler: Logger,
}

impl Loggers {
    /// Joins the bus once a process: on one engine, as sources of their own.
    pub fn join(engine: &Arc<dyn Engine>, domain: &Domain) -> Result<Loggers, Failure> {
        let bus = |error: BusError| Failure::Unreachable(error.to_string());
        let join = |name: &str| -> Result<Logger, Failure> {
            let source = SourceName::new(name).map_err(|error| bus(error.into()))?;
            let participant =
                Participant::on(engine.clone(), domain.clone(), source.clone(), QosTable::default()).map_err(bus)?;
            let mut settings = LogSettings::isolated(domain.clone(), source);
            settings.central = Threshold::From(Level::Trace);
            settings.rings = participant.log_rings();
            let settings = settings.overridden_by(variable).map_err(|error| Failure::Usage(error.to_string()))?;
            Logger::on(participant, settings).map_err(|error| Failure::failed("the demo's logger", error))
        };
        Ok(Loggers {
            control: join("CONTROL/cppContainer")?,
            correlator: join("CORR/cppContainer")?,
            scheduler: join("SCHEDULING/javaContainer")?,
        })
    }
}

/// The observatory at work.
pub struct Observatory {
    actors: Vec<Box<dyn Actor>>,
    /// Times of the next acts (simulated ns, soonest first), and their actors.
    due: BinaryHeap<std::cmp::Reverse<(u64, usize)>>,
    sky: Sky,
    chance: Chance,
}

impl Observatory {
    /// Makes an observatory whose decisions all follow from the seed.
    pub fn new(loggers: &Loggers, seed: u64) -> Observatory {
        let mut actors: Vec<Box<dyn Actor>> = vec![
            Box::new(Scheduler::new(&loggers.scheduler)),
            Box::new(Correlator::new(&loggers.correlator)),
            Box::new(Weather::new(&loggers.control)),
        ];
        actors.extend((1..=ANTENNAS).map(|number| Box::new(Antenna::new(&loggers.control, number)) as Box<dyn Actor>));
        let due = (0..actors.len()).map(|actor| std::cmp::Reverse((50_000_000 * actor as u64, actor))).collect();
        Observatory { actors, due, sky: Sky::default(), chance: Chance::new(seed) }
    }

    /// Returns the time of the next act, in simulated ns.
    pub fn next_at(&self) -> u64 {
        self.due.peek().map_or(u64::MAX, |std::cmp::Reverse((at, _))| *at)
    }

    /// Lets the next thing happen.
    pub fn step(&mut self) {
        let Some(std::cmp::Reverse((at, actor))) = self.due.pop() else { return };
        let pause = self.actors[actor].act(&mut self.sky, &mut self.chance);
        self.due.push(std::cmp::Reverse((at + pause.as_nanos().max(1) as u64, actor)));
    }

    /// Works until interrupted, or for this long.
    pub fn run(&mut self, rate: f64, length: Option<Duration>, interrupt: &Interrupt) {
        let begun = Instant::now();
        loop {
            let at = Duration::from_nanos((self.next_at() as f64 / rate) as u64);
            if length.is_some_and(|length| at > length) {
                return;
            }
            let wait = at.saturating_sub(begun.elapsed());
            if interrupt.asked() || !wait.is_zero() && interrupt.wait(wait) {
                return;
            }
            self.step();
        }
    }
}
