//! The weather station.

use std::time::Duration;

use tampu_log::{Logger, info, warning};

use crate::demo::{actor::Actor, chance::Chance, sky::Sky};

pub struct Weather {
    logger: Logger,
    for_operators: Logger,
}

impl Weather {
    pub fn new(process: &Logger) -> Weather {
        let logger = process.named("weather").for_object("CONTROL/Weather/Station1");
        Weather { for_operators: logger.for_audiences(["Operator"]), logger }
    }
}

impl Actor for Weather {
    fn act(&mut self, sky: &mut Sky, chance: &mut Chance) -> Duration {
        sky.wind = (sky.wind + chance.between(-1.5, 1.5)).clamp(0.5, 18.0);
        let (wind, celsius, vapour) = (sky.wind, chance.between(-6.0, 2.0), chance.between(0.4, 1.8));
        info!(self.logger, "wind {wind:.1} m/s, {celsius:.1} C, water vapour {vapour:.2} mm"; wind = format_args!("{wind:.1}"), pwv = format_args!("{vapour:.2}"));
        if wind > 14.0 {
            warning!(self.for_operators, "wind {wind:.1} m/s: antennas stop at 20"; wind = format_args!("{wind:.1}"));
        }
        chance.seconds(4.0, 6.0)
    }
}
