//! `tampu log query`.

use std::{
    io::{IsTerminal, Write},
    str::FromStr,
};

use clap::Args;
use tampu_archive::Grouping;
use tampu_types::{LogRecord, RecordId};

use super::nothing;
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    filter::{FilterArgs, SpanArgs},
    keeper::Keeper,
    output::{
        Format, FormatArgs, RecordWriter,
        column::{Column, UnknownColumn},
    },
    paint::Paint,
    plural::counted,
    time_expression::now,
};

/// Find records the collector keeps
///
/// The newest come first. All words must stand in the message, as whole words; names of sources are not searched by words (--source).
/// --contains finds any text, --regex an expression.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log query --min-level Warning --since 10m\n  \
    tampu log query --source 'CONTROL/DV*' --level Error,Critical lock --json | jq .message\n  \
    tampu log query --stack chain-01f3 --oldest-first\n  tampu log query --id 0ff1ce00-00000a21-17f3a1b2c3d4e5f6.0.17 --json\n  \
    tampu log query --since 1h --exclude heartbeat --columns time,level,message --sort=-level\n  \
    tampu log query --count --mode operator --since today")]
pub struct Query {
    #[command(flatten)]
    filter: FilterArgs,
    /// The record with this id, as links have it (INCARNATION.RING.NUMBER); repeatable
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<RecordId>,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Show at most N records; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Show the oldest first
    #[arg(long, conflicts_with = "sort")]
    oldest_first: bool,
    /// Sort the results by a column; -COLUMN reverses the order. The limit still takes the newest
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    sort: Option<Sort>,
    /// Print only the number of results, without regard to --limit
    #[arg(long, conflicts_with_all = ["oldest_first", "sort"])]
    count: bool,
}

/// Column and direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort {
    column: Column,
    descending: bool,
}

impl FromStr for Sort {
    type Err = UnknownColumn;

    fn from_str(text: &str) -> Result<Sort, UnknownColumn> {
        let (name, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
        Ok(Sort { column: name.parse()?, descending })
    }
}

impl Sort {
    fn sort(self, records: &mut [LogRecord]) {
        // Equal records keep the order in which they were found, newest first.
        records.sort_by(|one, other| {
            let order = self.column.order(one, other);
            if self.descending { order.reverse() } else { order }
        });
    }
}

/// Records that can be sorted, because all of them must be here before the first is shown.
const MOST_SORTED: usize = 1_000_000;

impl Query {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        let by_time = self.sort.filter(|sort| sort.column == Column::Time);
        query.ids.clone_from(&self.ids);
        query.newest_first = by_time.map_or(!self.oldest_first, |sort| sort.descending);
        query.limit = (self.limit > 0).then_some(self.limit);

        let keeper = Keeper::find(&context.common.connect, "tampu-query")?;
        if self.count {
            return self.count(&keeper, &query);
        }
        let paint = Paint::for_stdout(context.common.color);
        let mut writer = RecordWriter::stdout(&self.format, paint, self.filter.highlight());
        let mut found = 0;
        let sort = self.sort.filter(|sort| sort.column != Column::Time);
        let mut sorted = Vec::new();
        keeper.search(&query, &context.interrupt, &mut |record| {
            found += 1;
            match sort {
                None => writer.record(&record),
                Some(_) if sorted.len() == MOST_SORTED => Err(Failure::Failed(format!(
                    "--sort: more than {MOST_SORTED} records; ask for fewer with --limit or --since"
                ))),
                Some(_) => {
                    sorted.push(record);
                    Ok(())
                }
            }
        })?;
        if let Some(sort) = sort {
            sort.sort(&mut sorted);
            sorted.iter().try_for_each(|record| writer.record(record))?;
        }
        writer.end()?;
        if found == 0 && !context.interrupt.asked() {
            eprintln!("tampu: 0 found");
            nothing::reasons(&keeper, &query).iter().for_each(|reason| eprintln!("tampu: {reason}"));
            return Ok(());
        }
        if std::io::stderr().is_terminal() {
            let more = if query.limit == Some(found) { "; there may be more (--limit)" } else { "" };
            eprintln!("{}{more}", counted(found, "record"));
        }
        Ok(())
    }

    fn count(&self, keeper: &Keeper, query: &tampu_archive::query::Query) -> Outcome {
        let counts = keeper.count(query, &Grouping::default())?;
        if !counts.complete {
            eprintln!("tampu: the count is not complete: it took too long; ask for less");
        }
        let mut out = std::io::stdout().lock();
        match self.format.format() {
            Format::Json => written(writeln!(out, "{}", serde_json::json!({"count": counts.total, "complete": counts.complete}))),
            _ => written(writeln!(out, "{}", counts.total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Level, Time};

    use super::*;

    #[test]
    fn sorting_keeps_what_is_equal_as_it_was_found() {
        let record = |level, text: &str, time| LogRecord { time: Time(time), ..LogRecord::new(level, text) };
        let mut records = vec![
            record(Level::Info, "c", 3),
            record(Level::Error, "b", 2),
            record(Level::Info, "a", 1),
            record(Level::Trace, "d", 0),
        ];
        "-level".parse::<Sort>().unwrap().sort(&mut records);
        let texts: Vec<&str> = records.iter().map(|record| record.message.as_str()).collect();
        assert_eq!(texts, ["b", "c", "a", "d"]);
        assert!("-colour".parse::<Sort>().is_err());
    }
}
