//! Links of entries: the records, events, transfers and entries that they point to, and the entries that mention one.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tampu_bulk::asking;
use tampu_bus::access::Verb;
use tampu_event::history::ask::{HistoryQuery, history};
use tampu_logbook::{
    book::same_name,
    entry::{BadEntryRef, Entry, EntryRef, Link, LinkKind},
    people::{Resource as OfBook, Right, Verb as BookVerb},
    plain::plain,
    search::{Search, Sort},
};
use tampu_types::{RecordId, Time, event::AttributePattern};

use super::{
    bulk::{self, ShownTransfer},
    call::{Answer, Call, GET, Route, ok},
    entries::readable_at,
    event::{ShownEvent, repeated},
    log::{Clip, ShownRecord, by_id},
    on_bus::{PATIENCE, bounded, service},
};
use crate::http::{admission::WorkKind, problem::Problem, route::json_of};

/// Links of an entry that are followed.
const MOST_LINKS: usize = 50;
/// Links whose mentions are counted at once, and those of one search.
const MOST_COUNTED: usize = 200;
const COUNTED_TOGETHER: usize = 20;
/// Entries that are looked at for these.
const MOST_MENTIONS: usize = 1000;
/// Bytes of a record's texts beside an entry.
const CLIP: usize = 4096;
/// Characters of the text that stand for a missing subject.
const TITLE: usize = 200;

/// Routes of links.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/entries/{id}/links/resolved",
        id: "resolveLinks",
        what: "Returns what the links of an entry point to, as far as the caller may see it and it is still kept; of at most 50 links",
        gives: (200, json_of::<Vec<ResolvedLink>>()),
        work: WorkKind::Search,
        act: resolved,
        ..GET
    },
    Route {
        path: "/mentions",
        id: "mentions",
        what: "Lists the entries that have a link to a record, an event, a transfer, a run or an entry, the newest first",
        query: &[
            ("to", "string", "the link: record:ID, event:NAME or event:NAME@TIME, transfer:ID, run:NAME, entry:BOOK/NUMBER"),
            ("limit", "integer", "entries, 1 to 1000; 100, if missing"),
        ],
        gives: (200, json_of::<Vec<EntrySummary>>()),
        work: WorkKind::Search,
        act: mentions,
        ..GET
    },
    Route {
        path: "/mentions/counts",
        id: "countMentions",
        what: "Counts the entries that have a link to each of these, for marks in a list",
        query: &[("to", "string", "a link, as for /mentions; repeated, at most 200")],
        gives: (200, json_of::<Vec<MentionCount>>()),
        work: WorkKind::Search,
        act: counts,
        ..GET
    },
];

/// The number of entries that mention something.
#[derive(Debug, Serialize, JsonSchema)]
struct MentionCount {
    /// The link as it was asked.
    to: String,
    /// Entries that the caller may read, as far as they are among the newest 1000 of about 20 links.
    entries: usize,
}

/// A link and its target.
#[derive(Debug, Serialize, JsonSchema)]
struct ResolvedLink {
    kind: LinkKind,
    target: String,
    /// True if the target is shown here.
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<ShownRecord>,
    /// The last event at the time of the link, or of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<ShownEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<ShownTransfer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<EntrySummary>,
    /// The reason why the target is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl ResolvedLink {
    /// A link whose target is still to be set.
    fn of(link: &Link) -> ResolvedLink {
        let (kind, target) = (link.kind, link.target.clone());
        ResolvedLink { kind, target, found: true, record: None, event: None, transfer: None, entry: None, why: None }
    }
}

/// An entry in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct EntrySummary {
    book: String,
    id: u32,
    date: String,
    /// Name of the poster.
    by: String,
    /// The subject, or the beginning of the text.
    title: String,
    links: Vec<String>,
}

impl EntrySummary {
    /// Returns an entry in a list, with the line that a search shows of it.
    pub(in crate::api) fn of(entry: &Entry, snippet: &str) -> EntrySummary {
        let subject = entry.content.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case("subject"));
        let subject = subject.map(|attribute| attribute.values.join(", ")).filter(|subject| !subject.is_empty());
        EntrySummary {
            book: entry.at.book.clone(),
            id: entry.at.id,
            date: entry.date.to_rfc3339(),
            by: entry.by.clone(),
            title: subject.unwrap_or_else(|| snippet.to_owned()),
            links: entry.content.links.iter().map(Link::to_string).collect(),
        }
    }
}

/// Searches the logbooks that the caller may read.
pub(in crate::api) fn entries(call: &Call<'_>, query: String, limit: usize) -> Result<Vec<(Entry, String)>, Problem> {
    let books = call.who().rights.books(Right::Read);
    if books.is_empty() {
        return Ok(Vec::new());
    }
    let shown = call.api.people.shown(call.who())?;
    let time = Duration::from_millis(call.api.settings.search_ms);
    let search =
        Search { books, query, sort: Sort::Date, descending: true, limit, count_to: 0, time, shown, ..Search::default() };
    let page = call.api.store.search(&search, call.stop)?;
    Ok(page.hits.into_iter().map(|hit| (hit.entry, hit.snippet.text)).collect())
}

/// Returns the query for entries with this link. It compares words, so that links are compared whole afterwards.
fn linked(to: &str) -> String {
    format!("link:\"{}\"", to.replace('"', " "))
}

/// Returns true if an entry has this link. A link to one of an attribute's events mentions the attribute; names of logbooks are
/// the same in any case.
fn mention(entry: &Entry, to: &str) -> bool {
    entry.content.links.iter().map(Link::to_string).any(|link| {
        link == to
            || to.starts_with("event:") && link.strip_prefix(to).is_some_and(|rest| rest.starts_with('@'))
            || to.starts_with("entry:") && same_name(&link, to)
    })
}

fn counts(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let links: Vec<Link> = repeated(call, "to")?;
    if links.is_empty() || links.len() > MOST_COUNTED {
        return Err(Problem::bad("query to", format!("1 to {MOST_COUNTED} links")));
    }
    let links: Vec<String> = links.iter().map(Link::to_string).collect();
    let mut counts = Vec::new();
    for some in links.chunks(COUNTED_TOGETHER) {
        let query = some.iter().map(|link| linked(link)).collect::<Vec<_>>().join(" OR ");
        let found = entries(call, query, MOST_MENTIONS)?;
        counts.extend(
            some.iter()
                .map(|to| MentionCount { to: to.clone(), entries: found.iter().filter(|(entry, _)| mention(entry, to)).count() }),
        );
    }
    ok(&counts)
}

fn mentions(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let to: Option<Link> = call.parsed("to")?;
    let to = to.ok_or_else(|| Problem::bad("query to", "missing; send a link, as record:ID"))?.to_string();
    let limit = bounded(call, "limit", 100, 1, 1000)? as usize;
    let found = entries(call, linked(&to), limit)?;
    let all = found.iter().filter(|(entry, _)| mention(entry, &to));
    ok(&all.map(|(entry, snippet)| EntrySummary::of(entry, snippet)).collect::<Vec<_>>())
}

/// The target of a link.
enum Target {
    Record(Box<ShownRecord>),
    Event(Box<ShownEvent>),
    Transfer(Box<ShownTransfer>),
    Entry(EntrySummary),
}

/// Returns the target of a link, or the reason why it is not shown.
fn resolve(call: &Call<'_>, link: &Link) -> Result<Target, String> {
    let told = |problem: Problem| problem.detail;
    let participant = &call.api.bus.participant;
    let may = |verb, name: &str| {
        let allowed = call.may_on_bus(verb, &service(name));
        if allowed { Ok(()) } else { Err(format!("you may not {verb} {name}")) }
    };
    let target = link.target.as_str();
    match link.kind {
        LinkKind::Record => {
            may(Verb::Query, "log/query")?;
            let id: RecordId = target.parse().map_err(|why: tampu_types::identity::BadRecordId| why.to_string())?;
            let found = by_id(participant, id, None, call.stop).map_err(told)?;
            let record = found.ok_or("the archive does not have it")?;
            Ok(Target::Record(Box::new(Clip::to(CLIP).one(record))))
        }
        LinkKind::Event => {
            may(Verb::Query, "event/history")?;
            let (name, time) = target.split_once('@').map_or((target, None), |(name, time)| (name, Some(time)));
            let attribute: AttributePattern = name.parse().map_err(|why: tampu_types::event::BadPattern| why.to_string())?;
            let time = time.map(str::parse::<super::when::When>).transpose().map_err(|why| why.to_string())?;
            let until = time.map(|time| Time(time.resolve(crate::clock::now()).0.saturating_add(1)));
            let attributes = vec![attribute];
            let asked = HistoryQuery { attributes, until, newest_first: true, limit: Some(1), ..HistoryQuery::default() };
            let mut event = None;
            let swept = history(participant, &asked, PATIENCE, &mut |kept| {
                event = Some(ShownEvent::of_kept(kept));
                false
            });
            swept.map_err(|why| why.to_string())?;
            Ok(Target::Event(Box::new(event.ok_or("the history has no event of it then")?)))
        }
        LinkKind::Transfer => {
            may(Verb::Read, asking::TRANSFERS)?;
            let transfer = bulk::by_id(participant, target).map_err(told)?.ok_or("the archive does not have it")?;
            Ok(Target::Transfer(Box::new(transfer)))
        }
        LinkKind::Entry => {
            let at: EntryRef = target.parse().map_err(|why: BadEntryRef| why.to_string())?;
            let entry = readable_at(call, &at).map_err(told)?;
            let begin: String = plain(entry.content.encoding, &entry.content.text).chars().take(TITLE).collect();
            Ok(Target::Entry(EntrySummary::of(&entry, &begin)))
        }
        LinkKind::Run => Err("a run has no page of its own; records with its run_id are found with field=run_id=...".to_owned()),
    }
}

fn resolved(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(BookVerb::Read, OfBook::Book(call.var(0)))?;
    let links = call.api.store.entry(&call.entry_ref()?)?.content.links;
    let one = |link: &Link| {
        let mut shown = ResolvedLink::of(link);
        match resolve(call, link) {
            Ok(Target::Record(record)) => shown.record = Some(*record),
            Ok(Target::Event(event)) => shown.event = Some(*event),
            Ok(Target::Transfer(transfer)) => shown.transfer = Some(*transfer),
            Ok(Target::Entry(entry)) => shown.entry = Some(entry),
            Err(why) => (shown.found, shown.why) = (false, Some(why)),
        }
        shown
    };
    ok(&links.iter().take(MOST_LINKS).map(one).collect::<Vec<_>>())
}
