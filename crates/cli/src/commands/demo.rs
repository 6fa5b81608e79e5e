//! `tampu demo`.

use std::{sync::Arc, time::Duration};

use clap::Args;
use tampu_bus::engine::{Engine, zenoh::ZenohEngine};

use crate::{
    commands::Context,
    demo::{Loggers, Observatory, dumps::Dumps, instruments::Instruments},
    failure::{Failure, Outcome},
    time_expression::parse_duration,
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

/// How the observatory behaves.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The simulated observatory")]
pub struct DemoArgs {
    /// What happens is decided by this number
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// How many times faster than in life things happen
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = rate)]
    pub rate: f64,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "write a number".to_owned())?;
    if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err("must be more than 0".to_owned()) }
}

impl Demo {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let config = connect.config()?;
        let domain = config.domain.clone();
        let engine = ZenohEngine::open(config).map_err(|error| Failure::Unreachable(connect.advise(&error.to_string())))?;
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let loggers = Loggers::join(&engine, &domain).map_err(|failure| match failure {
            Failure::Unreachable(why) => Failure::Unreachable(connect.advise(&why)),
            other => other,
        })?;
        let _instruments = Instruments::start(&engine, &domain, self.observatory.seed)?;
        let _dumps = Dumps::start(&engine, &domain, self.observatory.seed, self.observatory.rate)?;
        eprintln!("tampu: the observatory logs to the domain '{domain}' (seed {}); Ctrl-C ends it", self.observatory.seed);
        Observatory::new(&loggers, self.observatory.seed).run(self.observatory.rate, self.length, &context.interrupt);
        Ok(())
    }
}
