//! `tampu log tail`.

use std::{
    io::{BufWriter, IsTerminal, Stdout},
    time::{Duration, Instant},
};

use clap::Args;
use tampu_bus::{Participant, SourceState};
use tampu_types::LogRecord;

use crate::{
    commands::{
        Context,
        log::{
            replay::replay_name,
            tail::recall::{Before, Recall},
        },
    },
    failure::Outcome,
    filter::FilterArgs,
    keeper::Keeper,
    live::{Begin, Live, News, Wanted},
    output::{FormatArgs, RecordWriter},
    paint::Paint,
    pause::Pause,
    terminal::Keys,
    time_expression::{TimeExpression, now, parse_duration},
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
    tampu log tail --replay 10m\n  tampu log tail --replayed night\n  \
    tampu log tail --min-level Debug --process CONTROL/DV01 --attach")]
pub struct Tail {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Begin with the last N records the collector keeps
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0)]
    last: u64,
    /// Begin with what the collector keeps from this time on, then go on live, without a hole and nothing twice
    #[arg(long, value_name = "SINCE", conflicts_with_all = ["last", "history", "lossy", "replayed"], allow_hyphen_values = true)]
    replay: Option<TimeExpression>,
    /// Begin with what the writers still hold
    #[arg(long, conflicts_with = "last")]
    history: bool,
    /// Follow the replay of this name ('tampu log replay') instead of what is logged now
    #[arg(long, value_name = "NAME", conflicts_with = "last", value_parser = replay_name)]
    replayed: Option<String>,
    /// Skip what is missed instead of asking for it again
    #[arg(long, conflicts_with = "last")]
    lossy: bool,
    /// Make matches of this word or regular expression stand out, in any case; repeatable
    #[arg(long, value_name = "WORD|REGEX")]
    highlight: Vec<String>,
    /// How many records may wait while it is paused
    #[arg(long, value_name = "N", default_value_t = PAUSE_KEEP)]
    pause_keep: usize,
    /// Have processes publish while this runs what their levels keep, from the least of the levels asked for on
    ///
    /// It holds for the processes and loggers that --process and --logger name, also for those that start later, and ends with this
    /// command, however that ends. A collector does not keep such records unless its settings say so (keep_attached).
    #[arg(long, conflicts_with = "replayed")]
    attach: bool,
    /// End after so many records, those of --last and --replay included
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
}

/// Records that may wait while it is paused.
const PAUSE_KEEP: usize = 10_000;

impl Tail {
    /// Everything, as people read it.
    pub fn everything() -> Tail {
        Tail { pause_keep: PAUSE_KEEP, ..Tail::default() }
    }

    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        // What is wrong in the options is told before anybody is looked for.
        self.filter.query()?;
        let participant = connect.join("tampu-tail")?;
        if std::io::stderr().is_terminal() {
            let what = self.replayed.as_ref().map_or_else(String::new, |name| format!("the replay '{name}' in "));
            eprintln!("following {what}the domain '{}'; space pauses, q ends", participant.domain());
        }
        self.show(&participant, context)
    }

    /// Shows what comes until it is enough or somebody ends it.
    pub fn show(&self, participant: &Participant, context: &Context) -> Outcome {
        let query = self.filter.query()?;
        let before = match (self.replay, self.last) {
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
            // Of a replay, what it has sent already as far as it still has it.
            None if self.history || self.replayed.is_some() => Begin::Held,
            None => Begin::Now,
        };
        let wanted =
            Wanted { query: &query, replayed: self.replayed.as_deref(), from, reliable: !self.lossy, attached: self.attach };
        let mut live = Live::follow(participant, wanted)?;
        // Readers first, so that nothing is published for somebody who does not read yet.
        let _attachment = self.attach.then(|| attached::begin(participant, &self.filter)).transpose()?;
        let highlight = self.filter.highlight().and(&self.highlight)?;
        let mut screen = Screen {
            writer: RecordWriter::stdout(&self.format, Paint::for_stdout(context.common.color), highlight),
            left: self.count.unwrap_or(u64::MAX),
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
            // What has gathered is shown together; as soon as nothing more is there, it is shown at once.
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

/// Where records go.
struct Screen {
    writer: RecordWriter<BufWriter<Stdout>>,
    /// How many may still be shown.
    left: u64,
    pause: Pause,
    /// What stands in the status line, and since when.
    told: Option<(String, Instant)>,
}

/// How often the status line is written anew at most.
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

    /// Shows a record if there are still some left to show.
    fn show(&mut self, record: &LogRecord) -> Outcome {
        if self.left > 0 {
            self.left -= 1;
            self.writer.record(record)?;
        }
        Ok(())
    }

    /// Ends a pause, if there is one: shows what has waited and tells what had no room.
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

    /// Says something on standard error, below what was shown before.
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
            // What was shown before stands above it.
            let _ = self.writer.flush();
            eprint!("\r\x1b[K{status}");
            self.told = Some((status, Instant::now()));
        }
    }
}

/// What is said of news that are no records; nothing of what is of no interest to people.
pub fn told(news: &News) -> Option<String> {
    match news {
        News::Records(_) => None,
        News::Gap(gap) => {
            let to = gap.to.map_or_else(|| "an unknown end".to_owned(), |to| to.to_string());
            Some(format!("lost: {} of {}, packets {} up to {to}: {}", gap.stream.topic, gap.stream.source, gap.from, gap.why))
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
