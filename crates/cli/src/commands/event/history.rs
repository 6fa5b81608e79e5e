//! `tampu event history`.

use std::{collections::VecDeque, io::Write};

use clap::Args;
use serde_json::{Value as Json, json};
use tampu_event::history::ask::HistoryQuery;
use tampu_types::event::{AttributeConfig, AttributeName, AttributePattern, DataType, EventKind, EventView, Format, KeptEvent};

use super::show;
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    filter::SpanArgs,
    keeper::Keeper,
    output::{csv, table::printable},
    plural::counted,
    time_expression::now,
    time_text,
};

/// Show archived events in the order of their times
///
/// Kept are events of kind archive, and what `[events] keep` in the hub's configuration names. What is missing stands there too: gaps, and word of
/// sources that died or fell silent. The last ones are shown; -n 0 shows all.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event history lab/cryostat/1/temperature --since 1h\n  tampu event history '*/mount/*' --kind alarm -n 0 --csv > mounts.csv\n  \
    tampu event history '*' --since today --count"
)]
pub struct History {
    /// Attributes: names, or patterns with * and ?
    #[arg(required = true, value_name = "PATTERN")]
    patterns: Vec<AttributePattern>,
    #[command(flatten)]
    span: SpanArgs,
    /// Only events of these kinds; gaps and the states of sources are always shown
    #[arg(short, long, value_delimiter = ',', value_name = "KIND,...")]
    kind: Vec<EventKind>,
    /// Show the last N events; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Write CSV with a heading
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write CSV whose cells are as they are; a spreadsheet may take some for formulas
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    raw_csv: bool,
    /// Print only the number of results, without regard to --limit
    #[arg(long, conflicts_with_all = ["csv", "raw_csv"])]
    count: bool,
}

impl History {
    pub fn run(self, context: &Context) -> Outcome {
        let (since, until) = self.span.resolve(now())?;
        let keeper = Keeper::find(&context.common.connect, "tampu-event-history")?;
        let last = self.limit > 0 && !self.count;
        let asked = HistoryQuery {
            attributes: self.patterns.clone(),
            since,
            until,
            kinds: self.kind.clone(),
            // The last events are found from the end, and shown in reverse.
            newest_first: last,
            limit: last.then_some(self.limit),
            count: self.count,
            ..HistoryQuery::default()
        };
        let mut out = std::io::stdout().lock();
        if self.csv || self.raw_csv {
            written(writeln!(out, "time,received,name,reason,from,number,kinds,quality,value,unit,source,incarnation,note"))?;
        }
        let (mut lines, mut outcome) = (VecDeque::new(), Ok(()));
        let swept = keeper.history(&asked, &mut |kept| {
            let line = self.line(kept);
            if last {
                lines.push_front(line);
            } else {
                outcome = written(writeln!(out, "{line}"));
            }
            outcome.is_ok() && !context.interrupt.asked()
        });
        outcome?;
        let swept = swept?;
        if swept.found == 0 && !self.count {
            eprintln!("tampu: 0 found; kept are archive events, and those that [events] keep in the hub's configuration names");
        }
        for line in lines {
            written(writeln!(out, "{line}"))?;
        }
        if self.count {
            let line = if self.json {
                json!({"count": swept.found, "complete": swept.complete}).to_string()
            } else {
                swept.found.to_string()
            };
            written(writeln!(out, "{line}"))?;
        }
        if swept.damaged > 0 {
            eprintln!(
                "tampu: {} of the archive cannot be read; tampu event archive check lists them",
                counted(swept.damaged, "part")
            );
        }
        match () {
            () if context.interrupt.asked() => Err(Failure::Failed("interrupted".to_owned())),
            () if swept.complete || last && swept.found == self.limit => Ok(()),
            () => Err(Failure::Failed(
                "the search reached its time limit and is incomplete; choose a shorter time range".to_owned(),
            )),
        }
    }

    fn line(&self, kept: &KeptEvent<'_>) -> String {
        let view = EventView::parse(kept.event).ok();
        if self.json {
            let mut object = object(kept, view.as_ref());
            time_text::in_json(&mut object);
            return object.to_string();
        }
        let value = view.as_ref().map(|view| reading(kept, view)).unwrap_or_default();
        let quality = view.as_ref().map_or("-", |view| view.quality.name());
        if self.csv || self.raw_csv {
            let quoted = |text: &str| format!("\"{}\"", csv::cell(text, self.raw_csv).replace('"', "\"\""));
            let kinds: Vec<&str> = view.iter().flat_map(|view| view.kinds.iter()).map(EventKind::name).collect();
            let (value, unit, note) = (quoted(&value), quoted(kept.unit), quoted(kept.note));
            let (time, received) = (kept.time.to_rfc3339(), kept.received.to_rfc3339());
            let KeptEvent { name, reason, from, number, source, incarnation, .. } = kept;
            let kinds = quoted(&kinds.join(","));
            return format!(
                "{time},{received},{name},{reason},{from},{number},{kinds},{quality},{value},{unit},{source},{incarnation},{note}"
            );
        }
        let (time, name, reason) = (time_text::local(kept.time), kept.name, kept.reason);
        if view.is_some() {
            let unit = if kept.unit.is_empty() { String::new() } else { format!(" {}", kept.unit.escape_debug()) };
            let line = format!("{time}  {name}  {quality:<8}  {value}{unit}  [{reason}]");
            return printable(&line).into_owned();
        }
        let missing = match kept.from {
            0 => String::new(),
            from => format!("{}, {from} to {}: ", counted(kept.number - from + 1, "event"), kept.number),
        };
        let line = format!("{time}  {name}  -         [{reason}]  {missing}{}  by {}", kept.note, kept.source);
        printable(&line).into_owned()
    }
}

/// Returns a reading without its unit; a label in its stored form.
fn reading(kept: &KeptEvent<'_>, view: &EventView<'_>) -> String {
    if view.value.is_some_and(|value| value.data_type() == DataType::Enum) && !kept.note.is_empty() {
        return kept.note.escape_debug().to_string();
    }
    // A kept name is always valid. A configuration shows only its unit and labels, which are in the row.
    match AttributeName::new(kept.name) {
        Ok(name) => show::reading(view, &AttributeConfig::new(name, DataType::Double, Format::Scalar)),
        Err(_) => String::new(),
    }
}

fn object(kept: &KeptEvent<'_>, view: Option<&EventView<'_>>) -> Json {
    let mut object = json!({
        "name": kept.name,
        "reason": kept.reason,
        "from": kept.from,
        "number": kept.number,
        "time": kept.time,
        "received": kept.received,
        "source": kept.source,
        "incarnation": kept.incarnation.to_string(),
    });
    if !kept.note.is_empty() {
        object["note"] = json!(kept.note);
    }
    if let Some(view) = view {
        object["kinds"] = json!(view.kinds.iter().collect::<Vec<_>>());
        object["quality"] = json!(view.quality);
        object["epoch"] = json!(view.epoch);
        object["value"] = show::value(view);
        object["unit"] = json!(kept.unit);
        if !view.errors.is_empty() {
            object["errors"] = json!(view.errors);
        }
    }
    object
}
