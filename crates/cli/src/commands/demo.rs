//! The command `tampu demo`.

use std::time::Duration;

use clap::Args;
use tampu_types::units::parse_duration;

use crate::{
    context::Context,
    demo::{Loggers, Observatory, dumps::Dumps, instruments::Instruments},
    failure::{Failure, Outcome},
    hubs,
};

/// Simulate an observatory that logs to this host's hub, publishes attributes and sends correlator dumps
#[derive(Debug, Args)]
#[command(after_help = "Watch it with: tampu log tail, tampu event sub '*/mount/*' and tampu bulk stat")]
pub struct Demo {
    #[command(flatten)]
    observatory: DemoArgs,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
}

/// Options of the simulated observatory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The simulated observatory")]
pub struct DemoArgs {
    /// Seed of the simulation: the same seed gives the same events
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Speed of the simulation: 1 is real time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "write a number".to_owned())?;
    if speed.is_finite() && speed > 0.0 { Ok(speed) } else { Err("must be more than 0".to_owned()) }
}

impl Demo {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let config = connect.config()?;
        let domain = config.domain.clone();
        if config.hub.is_none() && !hubs::has_one(&config) {
            eprintln!("tampu: {}; records wait for one", connect.nobody(&config));
        }
        let engine = config.open().map_err(|error| Failure::Unreachable(connect.advise(&error.to_string())))?;
        let loggers = Loggers::join(&engine, &domain).map_err(|failure| match failure {
            Failure::Unreachable(why) => Failure::Unreachable(connect.advise(&why)),
            other => other,
        })?;
        let _instruments = Instruments::start(&engine, &domain, self.observatory.seed)?;
        let _dumps = Dumps::start(&engine, &domain, self.observatory.seed, self.observatory.speed)?;
        eprintln!("tampu: the observatory runs in the domain '{domain}' (seed {}); Ctrl-C ends it", self.observatory.seed);
        Observatory::new(&loggers, self.observatory.seed).run(self.observatory.speed, self.length, &context.interrupt);
        Ok(())
    }
}
