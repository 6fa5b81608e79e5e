//! `tampu log query`.

use std::io::IsTerminal;

use clap::Args;

use crate::{
    commands::Context,
    failure::Outcome,
    filter::{FilterArgs, SpanArgs},
    keeper::Keeper,
    output::{FormatArgs, RecordWriter},
    paint::Paint,
    time_expression::now,
};

/// Find records the collector keeps
///
/// The newest first. Words are ANDed and found whole; --contains finds any text, --regex what matches.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log query --min-level Warning --since 10m\n  \
    tampu log query --source 'CONTROL/DV*' --level Error,Critical lock --json | jq .message\n  \
    tampu log query --stack chain-01f3 --oldest-first")]
pub struct Query {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// At most so many records; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// The oldest first
    #[arg(long)]
    oldest_first: bool,
}

impl Query {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        query.newest_first = !self.oldest_first;
        query.limit = (self.limit > 0).then_some(self.limit);

        let keeper = Keeper::find(&context.common.connect, "tampu-query")?;
        let paint = Paint::for_stdout(context.common.color);
        let mut writer = RecordWriter::stdout(self.format.format(), paint, self.filter.highlight());
        let mut found = 0;
        keeper.search(&query, &context.interrupt, &mut |record| {
            found += 1;
            writer.record(&record)
        })?;
        writer.end()?;
        if std::io::stderr().is_terminal() {
            let more = if query.limit == Some(found) { "; there may be more (--limit)" } else { "" };
            eprintln!("{found} records{more}");
        }
        Ok(())
    }
}
