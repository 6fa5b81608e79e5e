//! `tampu event conf`.

use std::time::Duration;

use clap::Args;
use tampu_event::ask::{self, Change};
use tampu_types::event::{AttributePattern, Band, Criteria};
use tampu_types::units::{duration_text, parse_duration};

use super::list::{self, failed};
use crate::{
    connect::ANSWER_TIMEOUT,
    context::Context,
    failure::{Failure, Outcome},
    output::table::print_line,
};

/// Show and set the criteria for events of attributes
///
/// Settings hold until the server ends. Thresholds are one number, or a negative and a positive one; 'none' takes one away.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event conf 'lab/cryostat/*'\n  tampu event conf 'lab/cryostat/*/temperature' --abs 0.1\n  \
    tampu event conf lab/weather/1/wind --rel 5 --abs none --poll 200ms"
)]
pub struct Conf {
    /// The attributes: a name, or a pattern
    pattern: AttributePattern,
    /// Send a change of at least this much, in the unit of the attribute: 0.5, or -1,2; 'none' for no threshold
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    abs: Option<Setting>,
    /// Send a change of at least this much, in percent of the value sent last; 'none' for no threshold
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    rel: Option<Setting>,
    /// Absolute threshold of archive events, as --abs
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    archive_abs: Option<Setting>,
    /// Relative threshold of archive events, as --rel
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    archive_rel: Option<Setting>,
    /// Send an archive event after this time without one
    #[arg(long, value_name = "DURATION", value_parser = milliseconds)]
    archive_period: Option<u64>,
    /// Time between periodic events
    #[arg(long, value_name = "DURATION", value_parser = milliseconds)]
    period: Option<u64>,
    /// Time between two readings by the server, for attributes that it polls
    #[arg(long, value_name = "DURATION", value_parser = milliseconds)]
    poll: Option<u64>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Reads a duration in whole milliseconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    match u64::try_from(duration.as_millis()) {
        Ok(ms) if ms > 0 => Ok(ms),
        _ => Err(format!("'{text}' is less than 1 ms, or too long")),
    }
}

/// A threshold, or none.
#[derive(Debug, Clone, Copy)]
struct Setting(Option<Band>);

fn band(text: &str) -> Result<Setting, String> {
    if text == "none" {
        return Ok(Setting(None));
    }
    text.parse().map(|band| Setting(Some(band))).map_err(|error: tampu_types::event::config::BadBand| error.to_string())
}

impl Conf {
    fn sets_criteria(&self) -> bool {
        let thresholds = [self.abs, self.rel, self.archive_abs, self.archive_rel];
        thresholds.iter().any(Option::is_some) || self.archive_period.is_some() || self.period.is_some()
    }

    fn changed(&self, mut criteria: Criteria) -> Criteria {
        let put = |into: &mut Option<Band>, setting: Option<Setting>| {
            if let Some(Setting(band)) = setting {
                *into = band;
            }
        };
        put(&mut criteria.change.abs, self.abs);
        put(&mut criteria.change.rel, self.rel);
        put(&mut criteria.archive.abs, self.archive_abs);
        put(&mut criteria.archive.rel, self.archive_rel);
        criteria.archive_period_ms = self.archive_period.or(criteria.archive_period_ms);
        criteria.period_ms = self.period.unwrap_or(criteria.period_ms);
        criteria
    }

    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-conf")?;
        let mut found = ask::configure(&participant, &self.pattern, None, ANSWER_TIMEOUT).map_err(failed)?;
        let all: Vec<_> = found.iter().flat_map(|answer| &answer.attributes).map(|attribute| attribute.config.clone()).collect();
        if all.is_empty() {
            return Err(Failure::Failed(format!("no server has an attribute {}; for details: tampu event doctor", self.pattern)));
        }
        if self.sets_criteria() || self.poll.is_some() {
            // Attributes are set one by one: each keeps its other settings.
            for config in all {
                let criteria = self.sets_criteria().then(|| self.changed(config.criteria));
                let set = Change { criteria, polled_ms: self.poll.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)) };
                ask::configure(&participant, &AttributePattern::from(&config.name), Some(set), ANSWER_TIMEOUT).map_err(failed)?;
            }
            found = ask::configure(&participant, &self.pattern, None, ANSWER_TIMEOUT).map_err(failed)?;
        }
        if self.json {
            return list::show(&found, true);
        }
        let mut out = std::io::stdout().lock();
        for attribute in found.iter().flat_map(|answer| &answer.attributes) {
            let Criteria { change, archive, archive_period_ms, period_ms } = attribute.config.criteria;
            let band = |band: Option<Band>, unit: &str| band.map_or_else(|| "none".to_owned(), |band| format!("{band}{unit}"));
            let duration = |ms: u64| duration_text(Duration::from_millis(ms));
            let or_none = |ms: Option<u64>| ms.map_or_else(|| "none".to_owned(), duration);
            let line = format!(
                "{}  change: abs {}, rel {}; archive: abs {}, rel {}, period {}; periodic: {}; polled: {}",
                attribute.config.name,
                band(change.abs, ""),
                band(change.rel, "%"),
                band(archive.abs, ""),
                band(archive.rel, "%"),
                or_none(archive_period_ms),
                duration(period_ms),
                or_none(attribute.config.polled_ms.map(u64::from)),
            );
            print_line(&mut out, &line)?;
        }
        Ok(())
    }
}
