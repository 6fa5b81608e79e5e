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
    output::table::{print_line, printable},
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
    write(&rows, json, &mut std::io::stdout().lock())
}

/// Writes rows. Units and sources are chosen by other processes.
fn write(rows: &[(&Answer<Described>, &Described)], json: bool, out: &mut impl Write) -> Outcome {
    if json {
        return rows.iter().try_for_each(|(answer, attribute)| {
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
    rows.iter().try_for_each(|(answer, attribute)| {
        let config = &attribute.config;
        let quality = attribute.quality.map_or("-", |quality| quality.name());
        let taken = attribute.taken_by.as_ref().map(|by| format!(" (silent: belongs to {by})")).unwrap_or_default();
        let unit = printable(&config.unit);
        let line = format!(
            "{:<width$}  {:<10}  {:<8}  {unit:<8}  {:>10}  {quality:<8}  {}{taken}",
            config.name, config.data_type, config.format, attribute.number, answer.source
        );
        print_line(out, &line)
    })
}

#[cfg(test)]
mod tests {
    use tampu_types::{
        Incarnation,
        event::{AttributeConfig, AttributeName, DataType, Format},
    };

    use super::*;

    #[test]
    fn units_and_sources_cannot_drive_the_terminal() {
        let evil = "a\x1b[2J\u{202e}b\nc";
        let mut config = AttributeConfig::new(AttributeName::new("lab/cryostat/1/t").unwrap(), DataType::Double, Format::Scalar);
        config.unit = evil.to_owned();
        let described = Described { config, epoch: 1, number: 2, quality: None, taken_by: Some(evil.to_owned()) };
        let answer = Answer { source: evil.to_owned(), incarnation: Incarnation::default(), attributes: vec![described] };
        let rows: Vec<_> = answer.attributes.iter().map(|attribute| (&answer, attribute)).collect();
        let mut out = Vec::new();
        write(&rows, false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(text.matches("a\\x1b[2J\\u{202e}b⏎c").count(), 3, "{text}");
    }
}
