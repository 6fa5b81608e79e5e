//! `tampu event sub`.

use std::{
    collections::BTreeMap,
    io::Write,
    time::{Duration, Instant},
};

use clap::Args;
use tampu_event::client::{Client, ClientSettings, EventStream, Filter, LatestValues, Update, Wish};
use tampu_types::event::{AttributeName, AttributePattern, Band, EventKind, Kinds, Missed, Quality, Thresholds};

use super::show;
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
    time_expression::parse_duration,
};

/// How many events wait for a slow terminal.
const QUEUE: usize = 100_000;
/// How often it is looked whether somebody asked to end.
const LOOK: Duration = Duration::from_millis(100);

/// Follow attributes: the current value, then every event, and word of their servers
///
/// Subscribing never fails for want of a server: attributes that come later are followed from then on. Filters are judged where this program reads a
/// server's stream, before anything is copied; the first value, gaps and word of servers always come.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event sub '*/mount/*'\n  tampu event sub lab/cryostat/1/temperature --kind change,alarm --json\n  \
    tampu event sub '*' --rate --for 10s\n  tampu event sub '*/vacuum/*/pressure' --min-change 5 --quality alarm,warning\n  \
    tampu event sub '*' --every 1s"
)]
pub struct Sub {
    /// Attributes: names, or patterns with * and ?
    #[arg(required = true)]
    patterns: Vec<AttributePattern>,
    /// Kinds of events: change, alarm, archive, periodic, user, data_ready, generic, or all
    #[arg(short, long, value_delimiter = ',', default_value = "change", value_parser = kinds)]
    kind: Vec<Kinds>,
    /// Only readings of these qualities: valid, invalid, alarm, changing, warning
    #[arg(long, value_delimiter = ',', value_name = "QUALITY")]
    quality: Vec<Quality>,
    /// Only when the value is so far from the one shown last, in its unit: X, or LOW,HIGH
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    min_delta: Option<Band>,
    /// The same in percent of it
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    min_change: Option<Band>,
    /// At most one event of each attribute in this time: the newest
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["rate", "bandwidth"])]
    every: Option<Duration>,
    /// Without the current value
    #[arg(long)]
    no_first: bool,
    /// Newer values replace what is lost on the way; nobody is ever waited for
    #[arg(long)]
    latest: bool,
    /// One JSON object a line
    #[arg(long, conflicts_with_all = ["csv", "rate", "bandwidth"])]
    json: bool,
    /// Comma-separated, with a heading
    #[arg(long, conflicts_with_all = ["rate", "bandwidth"])]
    csv: bool,
    /// Instead of events, how many come a second, by attribute
    #[arg(long)]
    rate: bool,
    /// The same, with bytes a second
    #[arg(long)]
    bandwidth: bool,
    /// End after so many events
    #[arg(short = 'n', long, value_name = "N")]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
}

fn kinds(text: &str) -> Result<Kinds, String> {
    if text == "all" {
        return Ok(Kinds(u32::MAX));
    }
    text.parse::<EventKind>().map(Kinds::from).map_err(|error| error.to_string())
}

impl Sub {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-event-sub")?;
        let client = Client::start(participant, ClientSettings::default()).map_err(|error| Failure::Failed(error.to_string()))?;
        let mut wish = Wish::of(self.patterns.iter().cloned()).kinds(self.kind.iter().fold(Kinds::NONE, |all, &kind| all | kind));
        wish.first = !self.no_first;
        wish.reliable = !self.latest;
        let moved = Thresholds { abs: self.min_delta, rel: self.min_change };
        wish.filter = Filter { qualities: self.quality.clone(), moved: (!moved.is_empty()).then_some(moved) };
        if let Some(period) = self.every {
            return self.now_and_then(&client.latest(wish), period, context);
        }
        let stream = client.stream(wish, QUEUE);
        let outcome = if self.rate || self.bandwidth { self.rates(&stream, context) } else { self.events(&stream, context) };
        let dropped = stream.stats().dropped;
        if dropped > 0 {
            eprintln!("tampu: {dropped} events came faster than they could be written, and were dropped");
        }
        outcome
    }

    fn ended(&self, begun: Instant, count: u64, context: &Context) -> bool {
        context.interrupt.asked()
            || self.length.is_some_and(|length| begun.elapsed() >= length)
            || self.count.is_some_and(|most| count >= most)
    }

    fn events(&self, stream: &EventStream, context: &Context) -> Outcome {
        let mut out = std::io::stdout().lock();
        self.heading(&mut out)?;
        let (begun, mut count) = (Instant::now(), 0);
        while !self.ended(begun, count, context) {
            let Some(update) = stream.next(LOOK) else { continue };
            count += 1;
            written(writeln!(out, "{}", self.line(&update)))?;
            written(out.flush())?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut impl Write) -> Outcome {
        if !self.csv {
            return Ok(());
        }
        written(writeln!(out, "name,time,received,reason,number,quality,value,source,missed"))
    }

    /// The newest of each attribute that has changed, once a period.
    fn now_and_then(&self, latest: &LatestValues, period: Duration, context: &Context) -> Outcome {
        let mut out = std::io::stdout().lock();
        self.heading(&mut out)?;
        let (begun, mut count, mut next) = (Instant::now(), 0, Instant::now());
        while !self.ended(begun, count, context) {
            let left = next.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                context.interrupt.wait(left.min(LOOK));
                continue;
            }
            let changed = latest.changed();
            // Until something has come it is looked for at once, so that the first value is not a period late.
            next = Instant::now() + if changed.is_empty() { LOOK.min(period) } else { period };
            for update in changed {
                if self.count.is_some_and(|most| count >= most) {
                    break;
                }
                count += 1;
                written(writeln!(out, "{}", self.line(&update)))?;
            }
            written(out.flush())?;
        }
        Ok(())
    }

    fn line(&self, update: &Update) -> String {
        if self.json {
            return show::event(update).to_string();
        }
        let name = &update.attribute.config.name;
        let reading = update.reading();
        let time = reading.as_ref().map_or(update.received, |reading| reading.time);
        let quality = reading.as_ref().map_or("-", |reading| reading.quality.name());
        let text = reading.as_ref().map(|reading| show::reading(reading, &update.attribute.config)).unwrap_or_default();
        let source = &update.source.source;
        if self.csv {
            let quoted = format!("\"{}\"", text.replace('"', "\"\""));
            let (received, reason, number) = (update.received, update.reason, update.number);
            let missed = missed_column(update.missed);
            return format!("{name},{time},{received},{reason},{number},{quality},{quoted},{source},{missed}");
        }
        let missed = match update.missed {
            Missed::Nothing => String::new(),
            missed => format!("  missed: {missed}"),
        };
        let from = if reading.is_none() { format!("  by {source}") } else { String::new() };
        format!("{}  {name}  {quality:<8}  {text}  [{}]{missed}{from}", time.to_acs(), update.reason)
    }

    /// What comes a second, by attribute; a table a second.
    fn rates(&self, stream: &EventStream, context: &Context) -> Outcome {
        let mut out = std::io::stdout().lock();
        let (begun, mut count) = (Instant::now(), 0);
        let (mut since, mut seen) = (Instant::now(), BTreeMap::<AttributeName, (u64, u64)>::new());
        while !self.ended(begun, count, context) {
            if let Some(update) = stream.next(LOOK) {
                count += 1;
                let (events, bytes) = seen.entry(update.attribute.config.name.clone()).or_default();
                *events += 1;
                *bytes += update.size() as u64;
            }
            let seconds = since.elapsed().as_secs_f64();
            if seconds >= 1.0 {
                for (name, (events, bytes)) in &seen {
                    let (events, bytes) = (*events as f64 / seconds, *bytes as f64 / seconds);
                    let line = if self.bandwidth {
                        format!("{events:>10.1}/s  {bytes:>14.0} B/s  {name}")
                    } else {
                        format!("{events:>10.1}/s  {name}")
                    };
                    written(writeln!(out, "{line}"))?;
                }
                written(writeln!(out))?;
                since = Instant::now();
                seen.clear();
            }
        }
        Ok(())
    }
}

/// The numbers that are missing, the first and the last; `unknown` where nobody can say.
fn missed_column(missed: Missed) -> String {
    match missed {
        Missed::Nothing => String::new(),
        Missed::Exactly(from, to) => format!("{from}-{}", to.saturating_sub(1)),
        Missed::Unknown => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_has_its_numbers_in_csv() {
        let columns = [Missed::Nothing, Missed::Exactly(5, 8), Missed::Unknown].map(missed_column);
        assert_eq!(columns, ["", "5-7", "unknown"]);
    }
}
