//! `tampu event history`.

use std::{collections::VecDeque, io::Write};

use clap::Args;
use serde_json::{Value as Json, json};
use tampu_hub::history::ask::Asked;
use tampu_types::event::{AttributeConfig, AttributeName, AttributePattern, DataType, EventKind, EventView, Format, KeptEvent};

use super::show;
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
    filter::SpanArgs,
    keeper::Keeper,
    time_expression::now,
};

/// Find events the hub has kept, in the order of their times
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
    #[arg(required = true, value_name = "NAME|PATTERN")]
    patterns: Vec<AttributePattern>,
    #[command(flatten)]
    span: SpanArgs,
    /// Only events of these kinds; gaps and word of sources come all the same
    #[arg(short, long, value_delimiter = ',')]
    kind: Vec<EventKind>,
    /// The last so many; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Comma-separated, with a heading
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Only how many there are, whatever the limit
    #[arg(long, conflicts_with = "csv")]
    count: bool,
}

impl History {
    pub fn run(self, context: &Context) -> Outcome {
        let (since, until) = self.span.resolve(now())?;
        let keeper = Keeper::find(&context.common.connect, "tampu-event-history")?;
        let last = self.limit > 0 && !self.count;
        let asked = Asked {
            attributes: self.patterns.clone(),
            since,
            until,
            kinds: self.kind.clone(),
            // The last ones are found from the end, and shown the other way round.
            newest_first: last,
            limit: last.then_some(self.limit),
            count: self.count,
            ..Asked::default()
        };
        let mut out = std::io::stdout().lock();
        if self.csv {
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
            eprintln!("tampu: {} parts of the archive cannot be read: tampu event archive check says which", swept.damaged);
        }
        match () {
            () if context.interrupt.asked() => Err(Failure::Failed("interrupted".to_owned())),
            () if swept.complete || last && swept.found == self.limit => Ok(()),
            () => Err(Failure::Failed("the search was ended before its end: it took too long; ask for less".to_owned())),
        }
    }

    fn line(&self, kept: &KeptEvent<'_>) -> String {
        let view = EventView::parse(kept.event).ok();
        if self.json {
            return object(kept, view.as_ref()).to_string();
        }
        let value = view.as_ref().map(|view| reading(kept, view)).unwrap_or_default();
        let quality = view.as_ref().map_or("-", |view| view.quality.name());
        if self.csv {
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            let kinds: Vec<&str> = view.iter().flat_map(|view| view.kinds.iter()).map(EventKind::name).collect();
            let (value, unit, note) = (quoted(&value), quoted(kept.unit), quoted(kept.note));
            let KeptEvent { time, received, name, reason, from, number, source, incarnation, .. } = kept;
            let kinds = quoted(&kinds.join(","));
            return format!(
                "{time},{received},{name},{reason},{from},{number},{kinds},{quality},{value},{unit},{source},{incarnation},{note}"
            );
        }
        let (time, name, reason) = (kept.time.to_acs(), kept.name, kept.reason);
        if view.is_some() {
            let unit = if kept.unit.is_empty() { String::new() } else { format!(" {}", kept.unit.escape_debug()) };
            return format!("{time}  {name}  {quality:<8}  {value}{unit}  [{reason}]");
        }
        let missing = match kept.from {
            0 => String::new(),
            from => format!("{} events, {from} to {}: ", kept.number - from + 1, kept.number),
        };
        format!("{time}  {name}  -         [{reason}]  {missing}{}  by {}", kept.note.escape_debug(), kept.source)
    }
}

/// A reading without its unit; a label as it was.
fn reading(kept: &KeptEvent<'_>, view: &EventView<'_>) -> String {
    if view.value.is_some_and(|value| value.data_type() == DataType::Enum) && !kept.note.is_empty() {
        return kept.note.escape_debug().to_string();
    }
    // A name that the server had is one; of a configuration only unit and labels are shown, and they are in the row.
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
