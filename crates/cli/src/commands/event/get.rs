//! `tampu event get`.

use std::io::Write;

use clap::Args;
use serde_json::json;
use tampu_event::ask;
use tampu_types::event::{AttributeConfig, AttributeName, DataType, EventView, Format};

use super::{list::failed, show};
use crate::{
    commands::Context,
    connect::ANSWER_TIMEOUT,
    failure::{Failure, Outcome, written},
};

/// Print the current value of attributes, once
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event get lab/weather/1/temperature\n  tampu event get --json lab/mount/1/position lab/mount/2/position"
)]
pub struct Get {
    /// The attributes
    #[arg(required = true)]
    names: Vec<AttributeName>,
    /// One JSON object a line, an attribute each
    #[arg(long)]
    json: bool,
}

impl Get {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-get")?;
        let found = ask::get(&participant, &self.names, ANSWER_TIMEOUT).map_err(failed)?;
        let mut out = std::io::stdout().lock();
        let mut bytes = Vec::new();
        for (name, incarnation, event) in &found {
            event.encode(&mut bytes).map_err(|error| Failure::failed(name, error))?;
            let Ok(view) = EventView::parse(&bytes) else { continue };
            if self.json {
                let object = json!({"name": name, "incarnation": incarnation.to_string(), "number": event.number, "time": event.time,
                    "quality": event.quality, "value": show::value(&view), "errors": event.errors});
                written(writeln!(out, "{object}"))?;
            } else {
                let plain = AttributeConfig::new(name.clone(), DataType::Double, Format::Scalar);
                written(writeln!(out, "{name}  {}  {}  {}", event.time.to_acs(), event.quality, show::reading(&view, &plain)))?;
            }
        }
        let missing: Vec<&str> =
            self.names.iter().filter(|name| !found.iter().any(|(found, ..)| found == *name)).map(AttributeName::as_str).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("no server has {}; tampu event doctor says more", missing.join(", "))))
    }
}
