//! One antenna: mount, cryostat and first local oscillator, which sometimes loses its lock.

use std::time::Duration;

use tampu_log::{Logger, alert, debug, delouse, error, info, notice, trace, warning};

use crate::demo::{actor::Actor, chance::Chance, sky::Sky};

/// Activity of the antenna.
enum Doing {
    Tracking,
    /// Searching the lock again: tries so far, and the number that is needed.
    Relocking {
        tries: u32,
        needed: u32,
        chain: String,
    },
}

pub struct Antenna {
    number: usize,
    mount: Logger,
    cryostat: Logger,
    oscillator: Logger,
    for_operators: Logger,
    doing: Doing,
    scan: u32,
    azimuth: f64,
    elevation: f64,
}

impl Antenna {
    pub fn new(process: &Logger, number: usize) -> Antenna {
        let name = format!("DV{number:02}");
        let antenna = process.for_antenna(&name, "Array001").in_context("Array001");
        let part = |logger: &str, part: &str| antenna.named(logger).for_object(&format!("CONTROL/{name}/{part}"));
        let oscillator = part("lo", "FrontEnd/LO1");
        Antenna {
            number,
            mount: part("mount", "Mount"),
            cryostat: part("cryostat", "FrontEnd/Cryostat").for_audiences(["Developer"]),
            for_operators: oscillator.for_audiences(["Operator"]),
            oscillator,
            doing: Doing::Tracking,
            scan: 0,
            azimuth: 180.0,
            elevation: 60.0,
        }
    }

    fn bit(&self) -> u32 {
        1 << self.number
    }

    fn slew(&mut self, sky: &Sky, chance: &mut Chance) -> Duration {
        self.scan = sky.scan;
        self.azimuth = chance.between(-270.0, 270.0);
        self.elevation = chance.between(15.0, 85.0);
        let (azimuth, elevation) = (self.azimuth, self.elevation);
        info!(self.mount, "slewing to {} at az {azimuth:.3} el {elevation:.3}", sky.target; scan = sky.scan);
        if azimuth.abs() > 260.0 {
            warning!(self.mount.for_audiences(["Operator"]), "cable wrap at {azimuth:.1} deg, limit 270"; axis = "az");
        }
        chance.seconds(0.8, 2.0)
    }

    fn track(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        match chance.below(200) {
            0..60 => {
                let (x, y) = (chance.between(-0.8, 0.8), chance.between(-0.8, 0.8));
                trace!(self.mount, "servo: az {:.5} el {:.5}, error {x:.3} {y:.3} arcsec", self.azimuth, self.elevation);
            }
            60..120 => {
                delouse!(self.mount, "metrology: tilt {:.2} {:.2} arcsec", chance.between(-2.0, 2.0), chance.between(-2.0, 2.0))
            }
            120..160 => {
                let kelvin = chance.between(3.9, 4.2);
                debug!(self.cryostat, "4 K stage at {kelvin:.3} K, 15 K stage at {:.2} K", chance.between(14.2, 15.6); kelvin = format_args!("{kelvin:.3}"));
            }
            160..185 => debug!(
                self.oscillator,
                "phase lock: IF {:.1} dBm, corrections {}",
                chance.between(-24.0, -18.0),
                chance.below(40)
            ),
            185..193 => info!(self.mount, "pointing model applied to {}: {:.2} arcsec", sky.target, chance.between(0.2, 3.0)),
            193..197 => warning!(self.cryostat, "4 K stage warms up"; kelvin = format_args!("{:.3}", chance.between(4.4, 5.2))),
            197 => return self.lose_lock(sky, chance),
            _ => {}
        }
        chance.seconds(0.15, 0.9)
    }

    fn lose_lock(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        sky.unlocked |= self.bit();
        let chain = format!("chain-{:08x}", chance.bits() as u32);
        let at = |level| self.oscillator.in_stack(&chain, level);
        error!(at(0), "observation continues without DV{:02}: local oscillator unusable", self.number; scan = sky.scan);
        error!(at(1), "LO1 lost its lock"; if_dbm = format_args!("{:.1}", chance.between(-60.0, -45.0)));
        error!(at(2), "photonic reference: no power at the beam splitter"; power_uw = 0);
        let needed = 20 + chance.below(60) as u32;
        self.doing = Doing::Relocking { tries: 0, needed, chain };
        Duration::from_millis(50)
    }

    fn relock(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        let (number, bit) = (self.number, self.bit());
        let Doing::Relocking { tries, needed, chain } = &mut self.doing else { return Duration::ZERO };
        *tries += 1;
        if *tries < *needed {
            debug!(self.oscillator, "relock: try {tries}, tuning word {:#06x}", chance.below(0xffff); stack = chain);
            if *tries == 60 {
                alert!(self.for_operators, "DV{number:02}: no lock after 60 tries, somebody has to look at the reference");
            }
            // A burst: the search is much faster than all other work of an antenna.
            return Duration::from_millis(20);
        }
        notice!(self.for_operators, "DV{number:02}: locked again after {tries} tries");
        sky.unlocked &= !bit;
        self.doing = Doing::Tracking;
        chance.seconds(0.5, 1.0)
    }
}

impl Actor for Antenna {
    fn act(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        match self.doing {
            Doing::Relocking { .. } => self.relock(sky, chance),
            Doing::Tracking if sky.integrating && sky.scan != self.scan => self.slew(sky, chance),
            Doing::Tracking => self.track(sky, chance),
        }
    }
}
