//! `tampu event conf`.

use std::io::Write;

use clap::Args;
use tampu_event::ask::{self, Change};
use tampu_types::event::{AttributePattern, Band, Criteria};

use super::list::{self, failed};
use crate::{
    commands::Context,
    connect::ANSWER_TIMEOUT,
    failure::{Failure, Outcome, written},
};

/// See and set when attributes send events
///
/// What is set holds until the server ends. Thresholds are one number, or a negative and a positive one; 'none' takes one away.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event conf 'lab/cryostat/*'\n  tampu event conf 'lab/cryostat/*/temperature' --abs 0.1\n  \
    tampu event conf lab/weather/1/wind --rel 5 --abs none --poll 200"
)]
pub struct Conf {
    /// The attributes: a name, or a pattern
    pattern: AttributePattern,
    /// Absolute change that is sent
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    abs: Option<Setting>,
    /// Relative change that is sent, percent
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    rel: Option<Setting>,
    /// The same for archive events
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    archive_abs: Option<Setting>,
    /// The same for archive events, percent
    #[arg(long, value_name = "BAND", allow_hyphen_values = true, value_parser = band)]
    archive_rel: Option<Setting>,
    /// An archive event after so long without one, ms
    #[arg(long, value_name = "MS")]
    archive_period: Option<u64>,
    /// How often periodic events are sent, ms
    #[arg(long, value_name = "MS")]
    period: Option<u64>,
    /// How often the server reads it, ms; only where it does
    #[arg(long, value_name = "MS")]
    poll: Option<u32>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
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
            return Err(Failure::Failed(format!("no server has an attribute {}; tampu event doctor says more", self.pattern)));
        }
        if self.sets_criteria() || self.poll.is_some() {
            // One by one: each keeps what is not set here.
            for config in all {
                let criteria = self.sets_criteria().then(|| self.changed(config.criteria));
                let set = Change { criteria, polled_ms: self.poll };
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
            let band = |band: Option<Band>| band.map_or_else(|| "none".to_owned(), |band| band.to_string());
            let or_none = |ms: Option<String>| ms.map_or_else(|| "none".to_owned(), |ms| format!("{ms} ms"));
            written(writeln!(
                out,
                "{}  change: abs {}, rel {}%; archive: abs {}, rel {}%, period {}; periodic: {period_ms} ms; polled: {}",
                attribute.config.name,
                band(change.abs),
                band(change.rel),
                band(archive.abs),
                band(archive.rel),
                or_none(archive_period_ms.map(|ms| ms.to_string())),
                or_none(attribute.config.polled_ms.map(|ms| ms.to_string())),
            ))?;
        }
        Ok(())
    }
}
