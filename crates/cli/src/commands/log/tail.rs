//! `tampu log tail`.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use clap::Args;
use tampu_bus::{History, SourceState};

use crate::{
    commands::Context,
    failure::Outcome,
    filter::FilterArgs,
    interrupt::Interrupt,
    live::{Live, News, Wanted},
    output::{FormatArgs, RecordWriter},
    paint::{Paint, When},
    time_expression::parse_duration,
};

/// Follow the log as it is written
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Example: tampu log tail --min-level Warning --audience Operator")]
pub struct Tail {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Begin with what the writers still hold
    #[arg(long)]
    history: bool,
    /// Skip what is missed instead of asking for it again
    #[arg(long)]
    lossy: bool,
    /// End after so many records
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
        self.show(&participant, context.common.color, &context.interrupt)
    }

    /// Shows what comes until it is enough or somebody ends it.
    pub fn show(&self, participant: &tampu_bus::Participant, color: When, interrupt: &Interrupt) -> Outcome {
        let query = self.filter.query()?;
        let wanted = Wanted {
            query: &query,
            levels: &self.filter.wanted_levels(),
            audiences: self.filter.audiences(),
            history: if self.history { History::All } else { History::None },
            reliable: !self.lossy,
        };
        let mut live = Live::follow(participant, &wanted)?;
        let mut writer = RecordWriter::stdout(self.format.format(), Paint::for_stdout(color), self.filter.highlight());
        let end = self.length.map(|length| Instant::now() + length);
        let mut left = self.count.unwrap_or(u64::MAX);
        writer.begin()?;
        writer.flush()?;
        let mut pending = false;
        while left > 0 && !interrupt.asked() && end.is_none_or(|end| Instant::now() < end) {
            // What has gathered is shown together; as soon as nothing more is there, it is shown at once.
            let timeout = if pending { Duration::ZERO } else { Duration::from_millis(50) };
            match live.next(timeout) {
                Some(News::Records(records)) => {
                    for record in records.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
                        writer.record(record)?;
                        left -= 1;
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
