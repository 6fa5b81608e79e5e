//! `tampu log tail`.

use std::{
    io::{IsTerminal, Write},
    time::{Duration, Instant},
};

use clap::Args;
use tampu_bus::{History, Participant, SourceState};
use tampu_types::LogRecord;

use crate::{
    commands::{Context, log::tail::recall::Recall},
    failure::Outcome,
    filter::FilterArgs,
    keeper::Keeper,
    live::{Live, News, Wanted},
    output::{FormatArgs, RecordWriter},
    paint::Paint,
    time_expression::parse_duration,
};

mod attached;
mod recall;

/// Follow the log as it is written
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Examples:\n  tampu log tail --min-level Warning --audience Operator\n  tampu log tail -n 20\n  \
    tampu log tail --min-level Debug --process CONTROL/DV01 --attach")]
pub struct Tail {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Begin with the last N records the collector keeps
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    last: u64,
    /// Begin with what the writers still hold
    #[arg(long, conflicts_with = "last")]
    history: bool,
    /// Skip what is missed instead of asking for it again
    #[arg(long)]
    lossy: bool,
    /// Have processes publish while this runs what their levels keep, from the least of the levels asked for on
    ///
    /// It holds for the processes and loggers that --process and --logger name, also for those that start later, and ends with this
    /// command, however that ends. A collector does not keep such records unless its settings say so (keep_attached).
    #[arg(long)]
    attach: bool,
    /// End after so many records, those of --last included
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
}

impl Tail {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let participant = connect.join("tampu-tail")?;
        if std::io::stderr().is_terminal() {
            eprintln!("following the domain '{}'; Ctrl-C ends it", participant.domain());
        }
        self.show(&participant, context)
    }

    /// Shows what comes until it is enough or somebody ends it.
    pub fn show(&self, participant: &Participant, context: &Context) -> Outcome {
        let interrupt = &context.interrupt;
        let query = self.filter.query()?;
        let wanted = Wanted {
            query: &query,
            levels: &self.filter.wanted_levels(),
            audiences: self.filter.audiences(),
            history: if self.history { History::All } else { History::None },
            reliable: !self.lossy,
            attached: self.attach,
        };
        let mut live = Live::follow(participant, &wanted)?;
        // Readers first, so that nothing is published for somebody who does not read yet.
        let _attachment = self.attach.then(|| attached::begin(participant, &self.filter)).transpose()?;
        let mut writer =
            RecordWriter::stdout(self.format.format(), Paint::for_stdout(context.common.color), self.filter.highlight());
        let end = self.length.map(|length| Instant::now() + length);
        let mut left = self.count.unwrap_or(u64::MAX);
        writer.begin()?;
        let mut recall = if self.last > 0 {
            let keeper = Keeper::over(participant.clone(), &context.common.connect);
            let show = &mut |record: &LogRecord| shown(&mut writer, record, &mut left);
            Some(Recall::begin(keeper, &query, self.last, interrupt, show)?)
        } else {
            None
        };
        writer.flush()?;
        let mut pending = false;
        while left > 0 && !interrupt.asked() && end.is_none_or(|end| Instant::now() < end) {
            if let Some(recall) = recall.take_if(|recall| recall.is_due()) {
                recall.end(interrupt, &mut |record| shown(&mut writer, record, &mut left))?;
                pending = true;
            }
            // What has gathered is shown together; as soon as nothing more is there, it is shown at once.
            let timeout = if pending { Duration::ZERO } else { Duration::from_millis(50) };
            match live.next(timeout) {
                Some(News::Records(records)) => {
                    for record in records {
                        if recall.as_mut().is_none_or(|recall| recall.is_new(&record)) {
                            shown(&mut writer, &record, &mut left)?;
                        }
                    }
                    pending = true;
                }
                Some(news) => {
                    writer.flush()?;
                    tell(&news);
                }
                None if pending => {
                    writer.flush()?;
                    pending = false;
                }
                None => {}
            }
        }
        writer.end()
    }
}

/// Writes a record if there are still some left to show.
fn shown<W: Write>(writer: &mut RecordWriter<W>, record: &LogRecord, left: &mut u64) -> Outcome {
    if *left > 0 {
        *left -= 1;
        writer.record(record)?;
    }
    Ok(())
}

/// Says on standard error what is no record.
fn tell(news: &News) {
    match news {
        News::Records(_) => {}
        News::Gap(gap) => {
            let to = gap.to.map_or_else(|| "an unknown end".to_owned(), |to| to.to_string());
            eprintln!("lost: {} of {}, packets {} up to {to}: {}", gap.stream.topic, gap.stream.source, gap.from, gap.why);
        }
        News::Source(change) => {
            let how = match change.state {
                SourceState::Died => "died",
                SourceState::Silent => "is silent: it hangs or cannot be reached",
                SourceState::Returned => "is back",
                SourceState::Appeared | SourceState::Left => return,
            };
            eprintln!("{} {how} (process {})", change.source, change.incarnation.pid);
        }
        News::Unreadable(why) => eprintln!("unreadable: {why}"),
    }
}
