//! `tampu log replay`.
//!
//! Records go out on a topic of their own, `log-replay/<name>` (`spec/log-replay.md`), under their own ids and times.
//! No collector keeps that topic and no ordinary tail reads it. It is one topic and one stream for all levels and
//! audiences, unlike live records. The purpose of a replay is the order in time, and separate streams have no common
//! order.

use std::{
    io::Write,
    str::FromStr,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    time::{Duration, Instant},
};

use clap::Args;
use tampu_archive::{
    Counts, Grouping,
    query::{Cursor, Query},
};
use tampu_bus::{Participant, Qos, ReaderState, Writer};
use tampu_log::logger::LOG_BATCH;
use tampu_types::{LogRecord, Partition, Time, TopicName, log_batch::LogBatchBuilder};

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    filter::{FilterArgs, SpanArgs},
    interrupt::Interrupt,
    keeper::Keeper,
    live::replay_topic,
    plural::counted,
    progress,
    time_expression::now,
    time_text,
};

/// Replay archived records on the bus at their original pace, for those who follow the replay
///
/// They keep their times and ids, go out in the order of their times on a topic of their own, are not kept again and not shown by
/// ordinary tails: 'tampu log tail --replayed NAME' and 'tampu log view --replayed NAME' show them. It begins when somebody
/// follows it, unless --now is said, and waits for followers that are slow.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log replay --since 03:00 --until 03:30 --speed 10 --as night\n  \
    tampu log replay --since 1h --min-level Warning --speed max")]
pub struct Replay {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    span: SpanArgs,
    /// The name of the replay
    #[arg(long = "as", value_name = "NAME", default_value = "replay", value_parser = replay_name)]
    name: String,
    /// Speed of the replay: 1 is real time, max is as fast as followers take it
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    speed: Speed,
    /// Begin at once, without waiting for a follower
    #[arg(long)]
    now: bool,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// A name a replay can have.
pub fn replay_name(text: &str) -> Result<String, String> {
    match replay_topic(text) {
        Ok(_) if !text.contains('/') && text != "*" && text != "**" => Ok(text.to_owned()),
        _ => Err(format!("invalid replay name '{text}': it must not be empty, nor hold a slash, nor be * or **")),
    }
}

/// Speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Speed {
    Times(f64),
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        if text.eq_ignore_ascii_case("max") {
            return Ok(Speed::Max);
        }
        let factor: Option<f64> = text.trim_end_matches(['x', 'X']).parse().ok();
        let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        factor.map(Speed::Times).ok_or_else(|| format!("invalid speed '{text}': write a number above 0, as 1, 10 or 0.5, or max"))
    }
}

impl Speed {
    /// Returns the time from the begin of a replay, at the record of `first`, to the record of `time`.
    fn due(self, first: Time, time: Time) -> Duration {
        match self {
            Speed::Max => Duration::ZERO,
            Speed::Times(factor) => {
                let passed = i128::from(time.0) - i128::from(first.0);
                Duration::try_from_secs_f64((passed.max(0) as f64 / 1e9) / factor).unwrap_or(Duration::MAX)
            }
        }
    }
}

/// Records asked for at a time; two such pages at most wait to be played.
const PAGE: u64 = 10_000;
/// Records that go out together.
const TOGETHER: usize = 500;
/// Bytes of a packet, below the limit of a batch.
const PACKET: usize = 48 << 10;
/// Records due within this time go out together.
const TICK: Duration = Duration::from_millis(10);
/// Time limit for a follower that does not keep up.
const PATIENCE: Duration = Duration::from_secs(60);

impl Replay {
    pub fn run(self, context: &Context) -> Outcome {
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        let connect = &context.common.connect;
        let participant = connect.join_hub(&format!("tampu-replay:{}", self.name))?;
        let keeper = Keeper::over(participant.clone(), connect);
        let counts = keeper.count(&query, &Grouping::default())?;
        if counts.total == 0 {
            return Err(Failure::Failed("nothing to replay: the archive holds no such records".to_owned()));
        }
        let twin = participant
            .sources()
            .into_iter()
            .any(|other| other.source == *participant.source() && other.incarnation != participant.incarnation());
        if twin {
            return Err(Failure::Failed(format!(
                "a replay '{0}' is running already: name this one otherwise with --as",
                self.name
            )));
        }
        let mut player = Player::open(&participant, &self)?;
        if !self.now && !player.wait_for_a_follower(&self.name, &context.interrupt) {
            return Err(Failure::Failed("interrupted before a follower connected".to_owned()));
        }
        let played = play(&keeper, &query, &counts, &mut player, &context.interrupt)?;
        self.tell(&played)?;
        match (played.lost, context.interrupt.asked()) {
            (0, false) => Ok(()),
            (0, true) => Err(Failure::Failed("interrupted: not all was replayed".to_owned())),
            (lost, _) => Err(Failure::Failed(format!("{lost} packets were lost to followers that did not keep up"))),
        }
    }

    fn tell(&self, played: &Played) -> Outcome {
        let Played { records, first, last, seconds, followers, lost } = played;
        let text = |time: &Option<Time>| time.map_or_else(|| "-".to_owned(), time_text::with_zone);
        if self.json {
            let line = serde_json::json!({"replay": self.name, "records": records, "first": first.map(Time::to_rfc3339),
                "last": last.map(Time::to_rfc3339), "seconds": seconds, "followers": followers, "lost": lost});
            return written(writeln!(std::io::stdout().lock(), "{line}"));
        }
        let (records, followers) = (counted(*records, "record"), counted(*followers as u64, "follower"));
        eprintln!("{records} replayed, {} to {}, in {seconds:.1} s, to {followers}", text(first), text(last));
        Ok(())
    }
}

/// Counts of a replay.
#[derive(Debug, Default)]
struct Played {
    records: u64,
    first: Option<Time>,
    last: Option<Time>,
    seconds: f64,
    followers: usize,
    lost: u64,
}

/// Asks for the records page by page on a thread of its own, so that the next page is here when this one has been played.
fn play(keeper: &Keeper, query: &Query, counts: &Counts, player: &mut Player, interrupt: &Interrupt) -> Result<Played, Failure> {
    let bar = progress::counted(counts.total, "replaying");
    let enough = Interrupt::default();
    let played = std::thread::scope(|scope| {
        let (tell, pages) = sync_channel(1);
        let asking = scope.spawn(|| ask(keeper, query, tell, &enough));
        let played = player.play(&pages, interrupt, &mut |records| bar.inc(records));
        // Ends the thread that waits to hand over a page.
        enough.ask();
        drop(pages);
        let asked = asking.join().unwrap_or_else(|_| Err(Failure::Failed("asking for records has failed".to_owned())));
        played.and_then(|played| asked.map(|()| played))
    });
    bar.finish_and_clear();
    played
}

fn ask(keeper: &Keeper, query: &Query, tell: SyncSender<Vec<LogRecord>>, enough: &Interrupt) -> Outcome {
    let mut page = Query { newest_first: false, limit: Some(PAGE), ..query.clone() };
    while !enough.asked() {
        let mut records = Vec::new();
        keeper.search_quietly(&page, enough, &mut |record| {
            records.push(record);
            Ok(())
        })?;
        let Some(last) = records.last() else { return Ok(()) };
        page.after = Some(Cursor::of(last));
        if tell.send(records).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Puts records on the bus when they are due.
struct Player {
    writer: Writer,
    speed: Speed,
    packet: LogBatchBuilder,
    /// The number after the last packet sent.
    next: u64,
    lost: u64,
    played: Played,
}

impl Player {
    fn open(participant: &Participant, replay: &Replay) -> Result<Player, Failure> {
        let topic: TopicName = replay_topic(&replay.name).map_err(|error| Failure::Usage(error.to_string()))?;
        let qos = Qos { max_wait: PATIENCE, wait_period: PATIENCE, credit: 4 << 20, ..participant.qos(&topic) };
        let writer = participant
            .writer(&topic, &Partition::everybody(), LOG_BATCH, qos)
            .map_err(|error| Failure::failed(format!("the topic {topic}"), error))?;
        let (packet, played) = (LogBatchBuilder::new(), Played::default());
        Ok(Player { writer, speed: replay.speed, packet, next: 0, lost: 0, played })
    }

    fn followers(&self) -> usize {
        self.writer.readers().iter().filter(|reader| reader.state != ReaderState::Gone).count()
    }

    /// Waits for a follower; false if interrupted.
    fn wait_for_a_follower(&self, name: &str, interrupt: &Interrupt) -> bool {
        if self.followers() == 0 {
            eprintln!("tampu: waiting for a follower: tampu log tail --replayed {name} (--now does not wait)");
        }
        while self.followers() == 0 {
            if interrupt.wait(Duration::from_millis(20)) {
                return false;
            }
        }
        true
    }

    fn play(
        &mut self,
        pages: &Receiver<Vec<LogRecord>>,
        interrupt: &Interrupt,
        done: &mut dyn FnMut(u64),
    ) -> Result<Played, Failure> {
        let begun = Instant::now();
        'pages: for page in pages {
            for record in &page {
                let first = *self.played.first.get_or_insert(record.time);
                let due = self.speed.due(first, record.time);
                if due > begun.elapsed() + TICK {
                    self.send()?;
                    if interrupt.wait(due.saturating_sub(begun.elapsed())) {
                        break 'pages;
                    }
                }
                self.packet.push_record(record).map_err(|error| Failure::failed("a record", error))?;
                self.played.records += 1;
                self.played.last = Some(record.time);
                if self.packet.count() >= TOGETHER || self.packet.len() >= PACKET {
                    self.send()?;
                }
                if interrupt.asked() {
                    break 'pages;
                }
            }
            done(page.len() as u64);
        }
        self.send()?;
        self.settle(interrupt);
        self.played.seconds = begun.elapsed().as_secs_f64();
        self.played.lost = self.lost;
        Ok(std::mem::take(&mut self.played))
    }

    fn send(&mut self) -> Outcome {
        if self.packet.is_empty() {
            return Ok(());
        }
        let sent = self.writer.write(self.packet.seal());
        // The largest number of followers: some may leave before the end.
        self.played.followers = self.played.followers.max(self.followers());
        self.packet.reset();
        self.next = sent.map_err(|error| Failure::failed("sending records", error))?.sequence + 1;
        Ok(())
    }

    /// Waits until all followers have received everything.
    fn settle(&mut self, interrupt: &Interrupt) {
        let until = Instant::now() + PATIENCE;
        loop {
            let receipt = self.writer.flush(Duration::from_millis(200));
            self.lost += receipt.lost.iter().map(|range| range.end - range.start).sum::<u64>();
            let readers = self.writer.readers();
            let all = readers.iter().filter(|reader| reader.state != ReaderState::Gone).all(|reader| reader.acked >= self.next);
            if all || interrupt.asked() || Instant::now() > until {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_distances_by_the_factor() {
        let at = |ms: i64| Time(1_795_248_000_000_000_000 + ms * 1_000_000);
        let speed = |text: &str| text.parse::<Speed>().unwrap();
        assert_eq!(speed("1").due(at(0), at(1500)), Duration::from_millis(1500));
        assert_eq!(speed("10x").due(at(0), at(1500)), Duration::from_millis(150));
        assert_eq!(speed("0.5").due(at(0), at(1500)), Duration::from_secs(3));
        assert_eq!(speed("MAX").due(at(0), at(1500)), Duration::ZERO);
        assert_eq!(speed("1").due(at(5), at(0)), Duration::ZERO);
        assert!(speed("1e-300").due(Time(i64::MIN), Time(i64::MAX)) > Duration::from_secs(1 << 40));
        for text in ["0", "-1", "fast", "inf", "NaN", ""] {
            assert!(text.parse::<Speed>().is_err_and(|why| why.contains(&format!("'{text}'"))), "{text}");
        }
        assert!(
            replay_name("night").is_ok() && replay_name("a/b").is_err() && replay_name("").is_err() && replay_name("*").is_err()
        );
    }
}
