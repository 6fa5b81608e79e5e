//! `tampu event sub`.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::Write,
    time::{Duration, Instant},
};

use clap::Args;
use tampu_event::client::{Client, ClientSettings, Condition, EventStream, Filter, SubscribeOptions, Update};
use tampu_types::event::{AttributeName, AttributePattern, Band, EventKind, Kinds, Missed, Quality, Thresholds};
use tampu_types::units::parse_duration;

use super::show;
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    output::{
        csv,
        table::{print_line, printable},
    },
    time_text,
};

/// Bound of the queue of events for a slow terminal.
const QUEUE: usize = 100_000;
/// Time for servers to declare their attributes, before missing ones are reported.
const SERVER_PATIENCE: Duration = Duration::from_secs(1);
/// Time between two checks of interrupts.
const LOOK: Duration = Duration::from_millis(100);

/// Follow attributes: the current value, then every event, and the state of their servers
///
/// Subscribing never fails for want of a server: attributes that come later are followed from then on. Filters are judged at the server, for programs on
/// other hosts, and where this program reads; the first value, gaps and word of servers always come.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event sub '*/mount/*'\n  tampu event sub lab/cryostat/1/temperature --kind change,alarm --json\n  \
    tampu event sub '*' --rates --for 10s\n  tampu event sub '*/vacuum/*/pressure' --min-change 5 --quality alarm,warning\n  \
    tampu event sub '*' --every 1s\n  tampu event sub lab/cryostat/1/temperature --where 'value > 4.2'"
)]
pub struct Sub {
    /// Attributes: names, or patterns with * and ?
    #[arg(required = true)]
    patterns: Vec<AttributePattern>,
    /// Kinds of events: change, alarm, archive, periodic, user, data_ready, generic, or all
    #[arg(short, long, value_delimiter = ',', value_name = "KIND,...", default_value = "change", value_parser = kinds)]
    kind: Vec<Kinds>,
    /// Only readings of these qualities: valid, invalid, alarm, changing, warning
    #[arg(long, value_delimiter = ',', value_name = "QUALITY,...")]
    quality: Vec<Quality>,
    /// Only values that differ by at least this much from the one shown last, in its unit: X, or LOW,HIGH
    #[arg(long, value_name = "BAND", allow_hyphen_values = true)]
    min_delta: Option<Band>,
    /// Only values that differ by at least this much from the one shown last, in percent: X, or LOW,HIGH
    #[arg(long, value_name = "BAND", allow_hyphen_values = true)]
    min_change: Option<Band>,
    /// Only readings that fulfil a condition on the value, and the first that no longer does: 'value > 3 and value[0] < 7'
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Condition>,
    /// Show at most one event of each attribute in this time, the newest; another quality is shown at once
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["rates", "bandwidth"])]
    every: Option<Duration>,
    /// Skip the current value
    #[arg(long)]
    no_first: bool,
    /// Replace lost values by newer ones; the server never waits for this subscriber
    #[arg(long)]
    latest: bool,
    /// Write JSON objects, one a line
    #[arg(long, conflicts_with_all = ["csv", "raw_csv", "rates", "bandwidth"])]
    json: bool,
    /// Write CSV with a heading
    #[arg(long, conflicts_with_all = ["rates", "bandwidth"])]
    csv: bool,
    /// Write CSV whose cells are as they are; a spreadsheet may take some for formulas
    #[arg(long, conflicts_with_all = ["csv", "rates", "bandwidth"])]
    raw_csv: bool,
    /// Show events a second by attribute, instead of events
    #[arg(long)]
    rates: bool,
    /// Show events and bytes a second by attribute, instead of events
    #[arg(long)]
    bandwidth: bool,
    /// End after N events
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
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
        let mut wish = SubscribeOptions::of(self.patterns.iter().cloned())
            .kinds(self.kind.iter().fold(Kinds::NONE, |all, &kind| all | kind));
        wish.first = !self.no_first;
        wish.reliable = !self.latest;
        let moved = Thresholds { abs: self.min_delta, rel: self.min_change };
        wish.filter = Filter {
            qualities: self.quality.clone(),
            moved: (!moved.is_empty()).then_some(moved),
            condition: self.condition.clone(),
            every_ms: self.every.map(|every| u64::try_from(every.as_millis()).unwrap_or(u64::MAX)),
        };
        let watch = Watch { client: &client, begun: Instant::now(), looked: Cell::new(false) };
        let stream = client.stream(wish, QUEUE);
        let outcome = if self.rates || self.bandwidth {
            self.rates(&stream, &watch, context)
        } else {
            self.events(&stream, &watch, context)
        };
        let dropped = stream.stats().dropped;
        if dropped > 0 {
            eprintln!("tampu: {dropped} events arrived faster than they could be written, and were dropped");
        }
        outcome
    }

    fn ended(&self, watch: &Watch<'_>, count: u64, context: &Context) -> bool {
        watch.look(&self.patterns);
        context.interrupt.asked()
            || self.length.is_some_and(|length| watch.begun.elapsed() >= length)
            || self.limit.is_some_and(|most| count >= most)
    }

    fn events(&self, stream: &EventStream, watch: &Watch<'_>, context: &Context) -> Outcome {
        let mut out = std::io::stdout().lock();
        self.heading(&mut out)?;
        let mut count = 0;
        while !self.ended(watch, count, context) {
            let Some(update) = stream.next(LOOK) else { continue };
            count += 1;
            written(writeln!(out, "{}", self.line(&update)))?;
            written(out.flush())?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut impl Write) -> Outcome {
        if !self.csv && !self.raw_csv {
            return Ok(());
        }
        written(writeln!(out, "name,time,received,reason,number,quality,value,source,missed"))
    }

    fn line(&self, update: &Update) -> String {
        if self.json {
            let mut object = show::event(update);
            time_text::in_json(&mut object);
            return object.to_string();
        }
        let name = &update.attribute.config.name;
        let reading = update.reading();
        let time = reading.as_ref().map_or(update.received, |reading| reading.time);
        let quality = reading.as_ref().map_or("-", |reading| reading.quality.name());
        let text = reading.as_ref().map(|reading| show::reading(reading, &update.attribute.config)).unwrap_or_default();
        let source = &update.source.source;
        if self.csv || self.raw_csv {
            let quoted = format!("\"{}\"", csv::cell(&text, self.raw_csv).replace('"', "\"\""));
            let (time, received) = (time.to_rfc3339(), update.received.to_rfc3339());
            let (reason, number) = (update.reason, update.number);
            let missed = missed_column(update.missed);
            return format!("{name},{time},{received},{reason},{number},{quality},{quoted},{source},{missed}");
        }
        let missed = match update.missed {
            Missed::Nothing => String::new(),
            missed => format!("  missed: {missed}"),
        };
        let from = if reading.is_none() { format!("  by {source}") } else { String::new() };
        let line = format!("{}  {name}  {quality:<8}  {text}  [{}]{missed}{from}", time_text::local(time), update.reason);
        printable(&line).into_owned()
    }

    /// Prints a table of rates by attribute every second.
    fn rates(&self, stream: &EventStream, watch: &Watch<'_>, context: &Context) -> Outcome {
        let mut out = std::io::stdout().lock();
        let mut count = 0;
        let (mut since, mut seen) = (Instant::now(), BTreeMap::<AttributeName, (u64, u64)>::new());
        while !self.ended(watch, count, context) {
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
                    print_line(&mut out, &line)?;
                }
                written(writeln!(out))?;
                since = Instant::now();
                seen.clear();
            }
        }
        Ok(())
    }
}

/// A subscription's client, and its first second.
struct Watch<'a> {
    client: &'a Client,
    begun: Instant,
    /// True once the servers were checked.
    looked: Cell<bool>,
}

impl Watch<'_> {
    /// After [`SERVER_PATIENCE`] reports on standard error the patterns that no server has an attribute for.
    fn look(&self, patterns: &[AttributePattern]) {
        if self.looked.get() || self.begun.elapsed() < SERVER_PATIENCE {
            return;
        }
        self.looked.set(true);
        let known = self.client.attributes();
        let is_missing = |pattern: &&AttributePattern| known.iter().all(|attribute| !pattern.matches(&attribute.config.name));
        let missing: Vec<&str> = patterns.iter().filter(is_missing).map(AttributePattern::as_str).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            eprintln!("tampu: no server has {missing} yet; waiting; 'tampu event doctor NAME' finds the cause");
        }
    }
}

/// Returns the missing numbers, the first and the last; `unknown` if they are unknown.
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
