//! `tampu log tail`.

use std::{
    io::{BufWriter, IsTerminal, Stdout},
    time::{Duration, Instant},
};

use clap::Args;
use tampu_bus::{Participant, SourceState};
use tampu_types::units::parse_duration;
use tampu_types::{Level, LogRecord};

use crate::{
    commands::log::{
        replay::replay_name,
        tail::recall::{Before, Recall},
    },
    context::Context,
    failure::{Failure, Outcome},
    filter::FilterArgs,
    hubs,
    keeper::Keeper,
    live::{Begin, Live, News, Wanted},
    output::{FormatArgs, RecordWriter},
    paint::Paint,
    pause::Pause,
    terminal::Keys,
    time_expression::{TimeExpression, now},
};

mod attached;
pub mod recall;

/// Follow the log as it is written
///
/// On a terminal space pauses and goes on, q ends. While it is paused records wait, are counted, and beyond --pause-keep the
/// oldest are dropped and counted.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Examples:\n  tampu log tail --min-level Warning --audience Operator\n  \
    tampu log tail --mode operator --not process='CORR/*' --highlight 'DV0[12]' --highlight lock\n  \
    tampu log tail --since 10m\n  tampu log tail --replayed night\n  \
    tampu log tail --min-level Debug --process CONTROL/DV01 --attach")]
pub struct Tail {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Begin with the last N records of the archive
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    last: u64,
    /// Begin with the archive from this time on, then go on live, without gaps or duplicates
    #[arg(long, value_name = "TIME", conflicts_with_all = ["last", "held", "lossy", "replayed"], allow_hyphen_values = true)]
    since: Option<TimeExpression>,
    /// Begin with the records that writers still hold
    #[arg(long, conflicts_with = "last")]
    held: bool,
    /// Follow the replay of this name ('tampu log replay') instead of the live log
    #[arg(long, value_name = "NAME", conflicts_with = "last", value_parser = replay_name)]
    replayed: Option<String>,
    /// Skip missed records instead of fetching them again
    #[arg(long, conflicts_with = "last")]
    lossy: bool,
    /// Highlight matches of this regular expression, ignoring case; repeatable
    #[arg(long, value_name = "REGEX")]
    highlight: Vec<String>,
    /// Number of records that are kept while paused
    #[arg(long, value_name = "N", default_value_t = PAUSE_KEEP)]
    pause_keep: usize,
    /// Have processes publish the records that their own levels hold back, while this command runs
    ///
    /// It holds for the processes and loggers that --process and --logger name, also for those that start later, and ends with this
    /// command, however that ends. A collector does not keep such records unless its settings say so (keep_attached).
    #[arg(long, conflicts_with = "replayed")]
    attach: bool,
    /// End after N records, those of --last and --since included
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
}

/// Records that may wait while it is paused.
const PAUSE_KEEP: usize = 10_000;

impl Tail {
    /// The records from this level on, or all, as people read them.
    pub fn from_level(least: Option<Level>) -> Tail {
        Tail { pause_keep: PAUSE_KEEP, filter: FilterArgs::from_level(least), ..Tail::default() }
    }

    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        // Invalid options are reported before the search for a hub.
        self.filter.query()?;
        let config = connect.config()?;
        let alone = config.hub.is_none() && !hubs::has_one(&config);
        if alone {
            eprintln!("tampu: {}; waiting for one", connect.nobody(&config));
        }
        let participant = connect.join_at(config.clone(), "tampu-tail")?;
        if std::io::stderr().is_terminal() {
            let what = self.replayed.as_ref().map_or_else(String::new, |name| format!("the replay '{name}' in "));
            eprintln!("following {what}the domain '{}'; space pauses, q ends", participant.domain());
        }
        self.show(&participant, context)?;
        if alone && !hubs::has_another(&config) {
            return Err(Failure::Unreachable(format!("no hub of the domain '{}' has come", config.domain)));
        }
        Ok(())
    }

    /// Shows records until a limit is reached or the user ends it.
    pub fn show(&self, participant: &Participant, context: &Context) -> Outcome {
        let query = self.filter.query()?;
        let before = match (self.since, self.last) {
            (Some(since), _) => Some(Before::Since(since.resolve(now()))),
            (None, 0) => None,
            (None, last) => Some(Before::Last(last)),
        };
        let recalled = match before {
            Some(before) => {
                let keeper = Keeper::over(participant.clone(), &context.common.connect);
                let kept = keeper.kept()?;
                Some((keeper, before, kept))
            }
            None => None,
        };
        let from = match &recalled {
            Some((.., kept)) => Begin::Kept(kept.clone()),
            // A replay begins with the sent records that it still holds.
            None if self.held || self.replayed.is_some() => Begin::Held,
            None => Begin::Now,
        };
        let wanted =
            Wanted { query: &query, replayed: self.replayed.as_deref(), from, reliable: !self.lossy, attached: self.attach };
        let mut live = Live::follow(participant, wanted)?;
        // The readers start first, so that no record is published before they read.
        let _attachment = self.attach.then(|| attached::begin(participant, &self.filter)).transpose()?;
        let highlight = self.filter.highlight().and(&self.highlight)?;
        let mut screen = Screen {
            writer: RecordWriter::stdout(&self.format, Paint::for_stdout(context.common.color), highlight),
            left: self.limit.unwrap_or(u64::MAX),
            pause: Pause::new(self.pause_keep),
            told: None,
        };
        screen.writer.begin()?;
        let mut recall = None;
        if let Some((keeper, before, kept)) = recalled {
            let mut begun = Recall::new(&kept);
            let all = begun.show(&keeper, &query, before, &mut live, &context.interrupt, &mut |record| screen.show(record))?;
            if !all {
                screen.tell("tampu: not all of the archive was shown: the search took too long; ask for less")?;
            }
            recall = Some(begun);
        }
        screen.writer.flush()?;
        self.follow(&mut live, &mut screen, recall, context)?;
        screen.go_on()?;
        screen.writer.end()
    }

    fn follow(&self, live: &mut Live, screen: &mut Screen, mut recall: Option<Recall>, context: &Context) -> Outcome {
        let keys = Keys::listen();
        let end = self.length.map(|length| Instant::now() + length);
        let mut pending = false;
        while screen.left > 0 && !context.interrupt.asked() && end.is_none_or(|end| Instant::now() < end) {
            match keys.as_ref().and_then(Keys::pressed) {
                Some(b' ') if screen.pause.is_on() => screen.go_on()?,
                Some(b' ') => screen.pause.begin(),
                Some(b'q' | b'Q') => return Ok(()),
                _ => {}
            }
            screen.tell_pause();
            // Waiting records are shown together; when no more are waiting, the screen is updated at once.
            let timeout = if pending { Duration::ZERO } else { Duration::from_millis(50) };
            match recall.as_mut().and_then(Recall::waiting).or_else(|| live.next(timeout)) {
                Some(News::Records(records)) => {
                    for record in records {
                        if recall.as_mut().is_none_or(|recall| recall.is_new(&record)) {
                            screen.take(record)?;
                        }
                    }
                    pending = true;
                }
                Some(news) => {
                    if let Some(line) = told(&news) {
                        screen.tell(&line)?;
                    }
                }
                None if pending => {
                    screen.writer.flush()?;
                    pending = false;
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// Output of records, with the state of a pause.
struct Screen {
    writer: RecordWriter<BufWriter<Stdout>>,
    /// Number of records that may still be shown.
    left: u64,
    pause: Pause,
    /// Text of the status line, and the time of its last change.
    told: Option<(String, Instant)>,
}

/// Shortest time between two updates of the status line.
const TELL_EVERY: Duration = Duration::from_millis(100);

impl Screen {
    /// Shows a record, or keeps it while there is a pause.
    fn take(&mut self, record: LogRecord) -> Outcome {
        if self.pause.is_on() {
            self.pause.keep(record);
            return Ok(());
        }
        self.show(&record)
    }

    /// Shows a record, unless the limit is reached.
    fn show(&mut self, record: &LogRecord) -> Outcome {
        if self.left > 0 {
            self.left -= 1;
            self.writer.record(record)?;
        }
        Ok(())
    }

    /// Ends a pause, if there is one: shows the waiting records and reports the dropped ones.
    fn go_on(&mut self) -> Outcome {
        if !self.pause.is_on() {
            return Ok(());
        }
        let (waiting, dropped) = self.pause.end();
        if self.told.take().is_some() {
            eprint!("\r\x1b[K");
        }
        if dropped > 0 {
            eprintln!("{dropped} records had no room while paused (--pause-keep); 'tampu log query' finds them");
        }
        waiting.iter().try_for_each(|record| self.show(record))?;
        self.writer.flush()
    }

    /// Prints a line on standard error, below the shown records.
    fn tell(&mut self, line: &str) -> Outcome {
        self.writer.flush()?;
        let over = if self.told.take().is_some() { "\r\x1b[K" } else { "" };
        eprintln!("{over}{line}");
        Ok(())
    }

    /// Keeps the status line true while there is a pause.
    fn tell_pause(&mut self) {
        if !self.pause.is_on() {
            return;
        }
        let status = format!("{}; space goes on, q ends", self.pause.status());
        if self.told.as_ref().is_none_or(|(told, when)| *told != status && when.elapsed() >= TELL_EVERY) {
            // Earlier records stand above the status line.
            let _ = self.writer.flush();
            eprint!("\r\x1b[K{status}");
            self.told = Some((status, Instant::now()));
        }
    }
}

/// Describes news other than records; `None` for news without interest to people.
pub fn told(news: &News) -> Option<String> {
    match news {
        News::Records(_) => None,
        News::Gap(gap) => {
            let to = gap.to.map_or_else(|| "an unknown end".to_owned(), |to| to.to_string());
            Some(format!(
                "{} of {}: packets from {} to {to} were not received live ({}); the archive may have them: tampu log query",
                gap.stream.topic, gap.stream.source, gap.from, gap.why
            ))
        }
        News::Source(change) => {
            let how = match change.state {
                SourceState::Died => "died",
                SourceState::Silent => "is silent: it hangs or cannot be reached",
                SourceState::Returned => "is back",
                SourceState::Appeared | SourceState::Left => return None,
            };
            Some(format!("{} {how} (process {})", change.source, change.incarnation.pid))
        }
        News::Unreadable(why) => Some(format!("unreadable: {why}")),
    }
}
