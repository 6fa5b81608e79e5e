//! `tampu log stat`.

use std::io::Write;

use clap::Args;
use tampu_archive::{
    Grouping, PatternsWanted,
    query::{Field, Query},
};
use tampu_types::units::parse_duration;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    filter::{FilterArgs, SpanArgs},
    keeper::Keeper,
    time_expression::now,
};

mod counts;
mod loggers;
mod patterns;
pub mod sources;
mod targets;

/// Count records by level, by a field or over time; show the processes that send them and their loggers
///
/// Without any option also the sources are shown that have sent something since the collector started: records kept, records a
/// second, records that came by way of a node's spool, samples lost on their way (a sample is a packet of records; +? where a writer died and nobody knows), what came and
/// was not kept, when something last came; and, where the hub has routes, how many records went to each of their targets.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu log stat\n  tampu log stat --by process --since 1h\n  tampu log stat --every 5m --json\n  tampu log stat --by source,level --every 5min --csv\n  \
    tampu log stat --patterns 20 --since 1d\n  tampu log stat --processes\n  tampu log stat --loggers"
)]
pub struct Stat {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    span: SpanArgs,
    /// Group by level, by a field (process, source, host, logger, ...), or by both: level,host
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "level")]
    by: Vec<String>,
    /// Count separately for each span of this length
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    every: Option<std::time::Duration>,
    /// Group by the place in the program that logged: file, line, routine and level; without a place by the text, in which numbers, ids and
    /// quoted words may differ. Shows the N most frequent ones, each with its number of sources and its newest message
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "50", conflicts_with_all = ["by", "every"], value_parser = clap::value_parser!(u16).range(1..=1000))]
    patterns: Option<u16>,
    /// Show only the processes that send records, as the collector counts them since it started
    #[arg(long, conflicts_with_all = ["by", "every", "patterns"])]
    processes: bool,
    /// Show only the counters of each process's loggers since its start, as it reports them
    #[arg(long, conflicts_with_all = ["by", "every", "patterns", "processes"])]
    loggers: bool,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Write CSV with a heading
    #[arg(long, conflicts_with_all = ["json", "patterns", "processes", "loggers"])]
    csv: bool,
    /// Write CSV whose cells are as they are; a spreadsheet may take some for formulas
    #[arg(long, conflicts_with_all = ["json", "csv", "patterns", "processes", "loggers"])]
    raw_csv: bool,
}

impl Stat {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        if self.loggers {
            if query != Query::default() {
                return Err(Failure::Usage("--loggers counts whole processes: it takes no conditions on records".to_owned()));
            }
            return loggers::show(&context.common.connect, self.json, &mut std::io::stdout().lock());
        }
        let by = self.grouping()?;
        let keeper = Keeper::find(&context.common.connect, "tampu-stat")?;
        let mut out = std::io::stdout().lock();
        if self.processes {
            sources::show(&keeper.status()?, self.json, &mut out)?;
            return if self.json { Ok(()) } else { sources::show_spools(&keeper.spools(), &mut out) };
        }
        if let Some(limit) = self.patterns {
            let found = keeper.patterns(&query, PatternsWanted { limit: limit.into(), bins: 0 })?;
            return patterns::show(&found, self.json, &mut out);
        }
        let counts = keeper.count(&query, &by)?;
        let format = match (self.json, self.csv) {
            (true, _) => counts::Format::Json,
            (_, true) => counts::Format::Csv,
            _ if self.raw_csv => counts::Format::RawCsv,
            _ => counts::Format::Table,
        };
        counts::write(&counts, &by, format, &mut out)?;
        if !counts.complete {
            eprintln!("tampu: the counts are not complete: too many rows, ask for a shorter time or fewer groups");
        }
        if format == counts::Format::Table && query == Query::default() && by == (Grouping { level: true, ..Grouping::default() })
        {
            written(writeln!(out))?;
            let status = keeper.status()?;
            sources::show(&status, false, &mut out)?;
            sources::show_spools(&keeper.spools(), &mut out)?;
            targets::show(&status, &mut out)?;
        }
        Ok(())
    }

    fn grouping(&self) -> Result<Grouping, Failure> {
        let mut by = Grouping::default();
        for name in &self.by {
            let name = name.trim();
            let name = if name == "source" { "source_object" } else { name };
            if name == "level" {
                by.level = true;
                continue;
            }
            let field = Field::from_name(name).ok_or_else(|| {
                let names: Vec<&str> = Field::ALL.into_iter().map(Field::name).collect();
                Failure::Usage(format!("--by {name}: count by level or one of {}", names.join(", ")))
            })?;
            if by.field.replace(field).is_some() {
                return Err(Failure::Usage("--by takes one field, and level beside it".to_owned()));
            }
        }
        if let Some(every) = self.every {
            let seconds = u32::try_from(every.as_secs()).ok().filter(|seconds| *seconds > 0 && every.subsec_nanos() == 0);
            by.every_s =
                Some(seconds.ok_or_else(|| Failure::Usage("--every takes a whole number of seconds, at least 1".to_owned()))?);
        }
        Ok(by)
    }
}
