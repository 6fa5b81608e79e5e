//! `tampu book summary`.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use tampu_archive::{Grouping, query::Query};
use tampu_bulk::{
    asking,
    transfers::{PAGE, Transfer, TransferQuery},
};
use tampu_event::history::ask::HistoryQuery;
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, Entry, NewEntry},
    search::{Count, Page, Search, Stopped},
};
use tampu_types::{
    Level, Time,
    event::{DataType, EventKind, EventView, Quality, Reason},
};

use super::{
    abandon::Abandoned,
    place::{Place, failed},
    text::shown,
    writing::attribute,
};
use crate::{
    author::author,
    connect::{Connect, HubAddress},
    context::Context,
    failure::{Failure, Outcome, written},
    keeper::Keeper,
    plural::counted,
    time_expression::{TimeExpression, now},
    time_text,
};

/// Entries, and lines of each list, that are named.
const ENTRIES: usize = 200;
const LINES: usize = 15;
/// Limit of records for the count of messages, and of events that are searched.
const RECORDS: u64 = 20_000;
const EVENTS: u64 = 5000;
/// Time limit for the hub's list of transfers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Draft the summary of a shift, in Markdown: entries, logs, alarms and changes of state, transfers
///
/// Entries are from the logbooks, wherever they are; the rest is asked of this host's hub, or with --hub http://... of that of --bus. What does not
/// answer is named in the draft.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book summary --since 8h > shift.md\n  \
    tampu book summary --since 8h --book Shift --post -a Author=Zoe -a Type='Shift summary'")]
pub struct Summary {
    /// Begin at this time: 8h (ago), 08:15, yesterday, 2026-11-21T08:15
    #[arg(long, value_name = "TIME", default_value = "8h", allow_hyphen_values = true)]
    since: TimeExpression,
    /// End at this time [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<TimeExpression>,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Group entries by this attribute
    #[arg(long, value_name = "NAME", default_value = "Type")]
    by: String,
    /// Post the summary in the logbook of --book and print the place of the entry
    #[arg(long, requires = "book")]
    post: bool,
    /// An attribute of the entry; repeatable, also for several values of one attribute
    #[arg(short, long = "attribute", value_name = "NAME=VALUE", value_parser = attribute, requires = "post")]
    attributes: Vec<(String, String)>,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// With --hub http://...: the same hub's address on the bus, for logs, events and transfers
    #[arg(long, value_name = "ADDRESS")]
    bus: Option<HubAddress>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Summary {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        if self.post && self.book.len() != 1 {
            return Err(Failure::Usage("--post needs one --book, to post in".to_owned()));
        }
        let present = now();
        let until = self.until.map_or(present, |until| until.resolve(present));
        let since = self.since.resolve(present);
        if since >= until {
            return Err(Failure::Usage("--since is not before --until".to_owned()));
        }
        let author = author(self.author.as_deref());
        let store = place.store(&author)?;
        let mut draft = format!("# Summary of {} to {}\n", minutes(since), time_text::minute_with_zone(until));
        let keeper = self.keeper(place, context);
        let page = {
            let abandoned = Abandoned::watch(&context.interrupt);
            let text = |time: Time| time.to_acs().get(..19).unwrap_or_default().to_owned();
            let end = self.until.map(|_| format!(" until:{}", text(until))).unwrap_or_default();
            let query = format!("since:{}{end}", text(since));
            let search = Search { books: self.book.clone(), query, descending: false, limit: ENTRIES, ..Search::default() };
            store.search(&search, &abandoned.stop).map_err(failed)?
        };
        entries(&page, &self.by, &mut draft);
        match keeper {
            Ok(keeper) => {
                let parts: [(&str, Part); 3] = [("Logs", logs), ("Alarms and states", events), ("Transfers", transfers)];
                for (name, part) in parts {
                    let mut text = String::new();
                    if let Err(error) = part(&keeper, (since, until), context, &mut text) {
                        text = not_known(&error);
                    }
                    let _ = write!(draft, "\n## {name}\n{text}");
                }
            }
            Err(error) => {
                let _ = write!(draft, "\n## Logs, alarms and states, transfers\n{}", not_known(&error));
            }
        }
        if context.interrupt.asked() {
            return Err(Failure::Failed("interrupted".to_owned()));
        }
        let mut out = io::stdout().lock();
        if !self.post {
            return written(if self.json {
                writeln!(
                    out,
                    "{}",
                    serde_json::json!({ "since": since.to_rfc3339(), "until": until.to_rfc3339(), "text": draft })
                )
            } else {
                out.write_all(draft.as_bytes())
            });
        }
        let mut content = Content { text: draft, ..Content::default() };
        for (name, value) in &self.attributes {
            match content.attributes.iter_mut().find(|known| tampu_logbook::book::same_name(&known.name, name)) {
                Some(known) => known.values.push(value.clone()),
                None => content.attributes.push(EntryAttribute::new(name, value)),
            }
        }
        let book = self.book.into_iter().next().unwrap_or_default();
        let at = store.post(NewEntry { book, content, ..NewEntry::default() }, vec![], &author).map_err(failed)?;
        written(if self.json { writeln!(out, "{}", serde_json::json!(at)) } else { writeln!(out, "{at}") })
    }
}

impl Summary {
    /// Connects to the hub that knows logs, events and transfers. This host's hub knows those of an address only if it
    /// serves that address.
    fn keeper(&self, place: &Place, context: &Context) -> Result<Keeper, Failure> {
        let connect = &context.common.connect;
        let hub = match (&self.bus, &connect.hub) {
            (Some(bus), _) => Some(bus.clone()),
            (None, Some(HubAddress::Web(url))) if !place.is_of_this_host(url, context)? => {
                return Err(Failure::Usage(format!("--hub {url} is a logbook's address; --bus names its hub's on the bus")));
            }
            _ => None,
        };
        let connect = Connect { hub, ..connect.clone() };
        Keeper::find(&connect, "tampu-book-summary")
    }
}

/// A function that writes one part of the draft from a hub's answers.
type Part = fn(&Keeper, (Time, Time), &Context, &mut String) -> Outcome;

/// Returns the text in place of a part without an answer.
fn not_known(why: &Failure) -> String {
    let why = why.text().unwrap_or("no reason is known");
    format!("*Not known: {}*\n", line(why))
}

fn minutes(time: Time) -> String {
    time_text::minute(time)
}

/// Returns a user's text as a literal line of Markdown.
fn line(text: &str) -> String {
    let mut out = String::new();
    for c in shown(text, false).chars().take(200) {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Entries by kind.
fn entries(page: &Page, by: &str, draft: &mut String) {
    let mut kinds: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
    for hit in &page.hits {
        let kind = hit.entry.content.attribute(by).map(EntryAttribute::joined).filter(|kind| !kind.is_empty());
        kinds.entry(kind.unwrap_or_else(|| "others".to_owned())).or_default().push(&hit.entry);
    }
    let count = match page.count {
        Some(Count::Exactly(count)) => count.to_string(),
        Some(Count::AtLeast(count)) => format!("at least {count}"),
        None => page.hits.len().to_string(),
    };
    let _ = write!(draft, "\n## Entries: {count}\n");
    for (kind, entries) in kinds {
        let _ = writeln!(draft, "**{}** ({})\n", line(&kind), entries.len());
        for entry in entries {
            let said = entry.content.attribute("Subject").map(EntryAttribute::joined).filter(|said| !said.is_empty());
            let said = said.unwrap_or_else(|| {
                let plain = tampu_logbook::plain::plain(entry.content.encoding, &entry.content.text);
                plain.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
            });
            let _ = writeln!(draft, "- {} {}: {}", minutes(entry.date), line(&entry.at.to_string()), line(&said));
        }
        draft.push('\n');
    }
    if page.next.is_some() {
        let _ = writeln!(draft, "*Only the first {} are named.*", page.hits.len());
    }
    if page.stopped == Some(Stopped::TimeLimit) {
        draft.push_str("*The search took too long: these are not all.*\n");
    }
}

/// Returns counts of records by level, and the most frequent messages from Warning on.
fn logs(keeper: &Keeper, (since, until): (Time, Time), context: &Context, draft: &mut String) -> Outcome {
    let query = Query { since: Some(since), until: Some(until), ..Query::default() };
    let counts = keeper.count(&query, &Grouping { level: true, ..Grouping::default() })?;
    let levels: Vec<String> = counts.rows.iter().filter_map(|row| Some(format!("{} {}", row.count, row.level?.name()))).collect();
    let _ = writeln!(
        draft,
        "{} records: {}.{}",
        counts.total,
        levels.join(", "),
        if counts.complete { "" } else { " *Not all were counted.*" }
    );
    // The newest message of each kind represents it.
    let mut messages: HashMap<(Level, String), (u64, String)> = HashMap::new();
    let query = Query { min_level: Some(Level::Warning), newest_first: true, limit: Some(RECORDS), ..query };
    let whole = keeper.search_quietly(&query, &context.interrupt, &mut |record| {
        // Messages of one kind differ only in their numbers.
        let kind: String = record.message.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        messages.entry((record.level, kind)).or_insert_with(|| (0, record.message.clone())).0 += 1;
        Ok(())
    })?;
    let mut messages: Vec<(Level, u64, String)> =
        messages.into_iter().map(|((level, _), (count, example))| (level, count, example)).collect();
    messages.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.2.cmp(&b.2)));
    if !messages.is_empty() {
        draft.push_str("\nMost frequent from Warning on, with the newest example of each:\n\n");
    }
    for (level, count, example) in messages.iter().take(LINES) {
        let like = if *count > 1 { ", as" } else { "" };
        let _ = writeln!(draft, "- {count} x {}{like}: {}", level.name(), line(example));
    }
    if messages.len() > LINES {
        let _ = writeln!(draft, "- and {} others", messages.len() - LINES);
    }
    if !whole {
        draft.push_str("\n*The search of the logs was ended before its end.*\n");
    }
    Ok(())
}

/// Alarms, and changes of attributes that are states, of the events the hub keeps.
fn events(keeper: &Keeper, (since, until): (Time, Time), context: &Context, draft: &mut String) -> Outcome {
    let asked = HistoryQuery {
        since: Some(since),
        until: Some(until),
        kinds: vec![EventKind::Alarm, EventKind::Change],
        limit: Some(EVENTS),
        ..HistoryQuery::default()
    };
    let (mut alarms, mut states) = (BTreeMap::<String, (u64, String)>::new(), BTreeMap::<String, (u64, String)>::new());
    let mut gaps = 0u64;
    let swept = keeper.history(&asked, &mut |kept| {
        match EventView::parse(kept.event).ok() {
            None => gaps += 1,
            Some(view) => {
                let at = format!("{} {}", minutes(kept.time), view.quality.name());
                let note = if kept.note.is_empty() { at } else { format!("{at}, {}", kept.note) };
                let troubled = !matches!(view.quality, Quality::Valid | Quality::Changing);
                let is_state = view.value.is_some_and(|value| value.data_type() == DataType::State);
                let list = match () {
                    // The first value of an attribute is an alarm only if its quality is bad.
                    () if view.kinds.iter().any(|kind| kind == EventKind::Alarm)
                        && (kept.reason != Reason::First || troubled) =>
                    {
                        Some(&mut alarms)
                    }
                    () if is_state => Some(&mut states),
                    () => None,
                };
                if let Some(list) = list {
                    let one = list.entry(kept.name.to_owned()).or_default();
                    *one = (one.0 + 1, note);
                }
            }
        }
        !context.interrupt.asked()
    })?;
    let states_changed = |count| format!("{} of state", counted(count, "change"));
    let parts: [(&dyn Fn(u64) -> String, _); 2] = [(&|count| counted(count, "alarm"), alarms), (&states_changed, states)];
    for (what, list) in parts {
        let sum = list.values().map(|(count, _)| count).sum::<u64>();
        let _ = writeln!(draft, "{} of {}.\n", what(sum), counted(list.len() as u64, "attribute"));
        let mut list: Vec<_> = list.into_iter().collect();
        list.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
        for (name, (count, last)) in list.iter().take(LINES) {
            let _ = writeln!(draft, "- {}: {count}, the last at {}", line(name), line(last));
        }
        if list.len() > LINES {
            let _ = writeln!(draft, "- and {} others", list.len() - LINES);
        }
        draft.push('\n');
    }
    if gaps > 0 {
        let _ = writeln!(draft, "*{}: events are missing, or a source did not answer.*", counted(gaps, "time"));
    }
    if !swept.complete {
        draft.push_str("*Not all kept events were looked at.*\n");
    }
    Ok(())
}

/// Returns the transfers that the hub knows, with their results.
fn transfers(keeper: &Keeper, (since, _): (Time, Time), context: &Context, draft: &mut String) -> Outcome {
    let mut query = TransferQuery { since: Some(since), limit: Some(PAGE), ..TransferQuery::default() };
    let mut of_now: Vec<Transfer> = Vec::new();
    loop {
        let page = asking::page(keeper.participant(), &query, PATIENCE).map_err(|error| Failure::Failed(error.to_string()))?;
        of_now.extend(page.transfers.into_iter().filter(|one| one.began >= since));
        query.after = page.cursor;
        if query.after.is_none() || context.interrupt.asked() {
            break;
        }
    }
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    for one in &of_now {
        *outcomes.entry(one.outcome.name()).or_default() += 1;
    }
    let outcomes: Vec<String> = outcomes.into_iter().map(|(outcome, count)| format!("{count} {}", line(outcome))).collect();
    let _ = writeln!(
        draft,
        "{}{}{}.\n",
        counted(of_now.len() as u64, "transfer"),
        if outcomes.is_empty() { "" } else { ": " },
        outcomes.join(", ")
    );
    // The newest first.
    for one in of_now.iter().take(LINES) {
        let (began, outcome) = (one.began, one.outcome.name());
        let bytes = indicatif::DecimalBytes(one.bytes);
        let _ =
            writeln!(draft, "- {} {}: {bytes}, {}", minutes(began), line(&format!("{}#{}", one.stream, one.flow)), line(outcome));
    }
    if of_now.len() > LINES {
        let _ = writeln!(draft, "- and {} before those", of_now.len() - LINES);
    }
    Ok(())
}
