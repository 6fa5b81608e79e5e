//! `tampu event list`.

use std::io::Write;

use clap::Args;
use serde_json::json;
use tampu_bus::service::CallError;
use tampu_event::ask::{self, Answer, Described};
use tampu_types::event::AttributePattern;

use crate::{
    connect::ANSWER_TIMEOUT,
    context::Context,
    failure::{Failure, Outcome, written},
    time_text,
};

/// List the attributes of all servers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu event list\n  tampu event list '*/mount/*'\n  tampu event list 'sr/vacuum/*' --json")]
pub struct List {
    /// Attributes that match: domain/family/member/attribute with * and ?, a last * for all that follows
    pattern: Option<AttributePattern>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-list")?;
        let found = ask::list(&participant, self.pattern.as_ref(), ANSWER_TIMEOUT).map_err(failed)?;
        show(&found, self.json)
    }
}

/// Converts the error of an unanswered call.
pub fn failed(error: CallError) -> Failure {
    Failure::Failed(error.to_string())
}

/// Writes attributes, by name.
pub fn show(found: &[Answer<Described>], json: bool) -> Outcome {
    let mut rows: Vec<(&Answer<Described>, &Described)> =
        found.iter().flat_map(|answer| answer.attributes.iter().map(move |attribute| (answer, attribute))).collect();
    rows.sort_by(|a, b| (&a.1.config.name, &a.0.source).cmp(&(&b.1.config.name, &b.0.source)));
    let mut out = std::io::stdout().lock();
    if json {
        return rows.into_iter().try_for_each(|(answer, attribute)| {
            let mut object = json!(attribute);
            object["source"] = json!(answer.source);
            object["incarnation"] = json!(answer.incarnation.to_string());
            time_text::in_json(&mut object);
            written(writeln!(out, "{object}"))
        });
    }
    let width = rows.iter().map(|(_, attribute)| attribute.config.name.as_str().chars().count()).max().unwrap_or(0).clamp(4, 60);
    if !rows.is_empty() {
        written(writeln!(
            out,
            "{:<width$}  {:<10}  {:<8}  {:<8}  {:>10}  {:<8}  source",
            "name", "type", "format", "unit", "events", "quality"
        ))?;
    }
    rows.into_iter().try_for_each(|(answer, attribute)| {
        let config = &attribute.config;
        let quality = attribute.quality.map_or("-", |quality| quality.name());
        let taken = attribute.taken_by.as_ref().map(|by| format!(" (silent: belongs to {by})")).unwrap_or_default();
        let unit: String = config.unit.escape_debug().collect();
        written(writeln!(
            out,
            "{:<width$}  {:<10}  {:<8}  {unit:<8}  {:>10}  {quality:<8}  {}{taken}",
            config.name, config.data_type, config.format, attribute.number, answer.source
        ))
    })
}
