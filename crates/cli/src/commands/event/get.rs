//! `tampu event get`.

use std::io::Write;

use clap::Args;
use serde_json::json;
use tampu_bus::Participant;
use tampu_event::ask;
use tampu_types::event::{AttributeConfig, AttributeName, AttributePattern, DataType, EventView, Format};

use super::{list::failed, show};
use crate::{
    connect::ANSWER_TIMEOUT,
    context::Context,
    failure::{Failure, Outcome, written},
    output::table::print_line,
    time_text,
};

/// Print the current value of attributes, once
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event get lab/weather/1/temperature\n  tampu event get --json lab/mount/1/position lab/mount/2/position"
)]
pub struct Get {
    /// Names of the attributes
    #[arg(required = true)]
    names: Vec<AttributeName>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Get {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-get")?;
        let found = ask::get(&participant, &self.names, ANSWER_TIMEOUT).map_err(failed)?;
        let mut out = std::io::stdout().lock();
        let mut bytes = Vec::new();
        let configs = if self.json { Vec::new() } else { configs(&participant, &self.names) };
        for (name, incarnation, event) in &found {
            event.encode(&mut bytes).map_err(|error| Failure::failed(name, error))?;
            let Ok(view) = EventView::parse(&bytes) else { continue };
            if self.json {
                let mut object = json!({"name": name, "incarnation": incarnation.to_string(), "number": event.number, "time": event.time,
                    "quality": event.quality, "value": show::value(&view), "errors": event.errors});
                time_text::in_json(&mut object);
                written(writeln!(out, "{object}"))?;
            } else {
                let known = configs.iter().find(|config| config.name == *name).cloned();
                let plain = known.unwrap_or_else(|| AttributeConfig::new(name.clone(), DataType::Double, Format::Scalar));
                let line =
                    format!("{name}  {}  {}  {}", time_text::local(event.time), event.quality, show::reading(&view, &plain));
                print_line(&mut out, &line)?;
            }
        }
        let missing: Vec<&str> =
            self.names.iter().filter(|name| !found.iter().any(|(found, ..)| found == *name)).map(AttributeName::as_str).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("no server has {}; for details: tampu event doctor", missing.join(", "))))
    }
}

/// The configurations of these attributes, which have units and labels; those of servers that do not answer are missing.
fn configs(participant: &Participant, names: &[AttributeName]) -> Vec<AttributeConfig> {
    let described = |name| ask::list(participant, Some(&AttributePattern::from(name)), ANSWER_TIMEOUT).unwrap_or_default();
    let found = names.iter().flat_map(described).flat_map(|answer| answer.attributes);
    found.map(|described| described.config.clone()).collect()
}
