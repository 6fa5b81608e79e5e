//! The archive of log records: pages, single records, context, chains, counts, files; the loggers of processes.
//!
//! All searches are questions to the collector, whose query engine is that of `tampu log query`.

use serde_json::Value;
use tampu_bus::access::Verb;

use self::{
    counts::FieldCounts,
    loggers::{LevelChange, ProcessLevels},
    patterns::MessagePatterns,
    saved::{FilterToSave, SavedFilter},
    shown::{ErrorChain, FoundRecord, LogContext, RecordPage},
};
use super::{
    call::{DELETE, GET, POST, PUT, Route, ok},
    on_bus::{PATIENCE, service},
    when::{SINCE, UNTIL},
};
use crate::http::{
    admission::WorkKind,
    route::{Content, Login, Parameter, json_of},
};

pub(super) use self::{
    context::by_id,
    counts::{LogHistogram, histogram_of, round_width},
    filter::query as conditions,
    shown::{Clip, RecordCursor, ShownRecord},
};

mod context;
mod counts;
mod export;
mod filter;
mod loggers;
mod page;
mod patterns;
mod saved;
mod shown;
mod subject;

const ORDER: Parameter = ("order", "string", "newest (first) or oldest; newest, if missing");
const CLIP: Parameter =
    ("clip", "integer", "texts longer than this many bytes are cut, and named in 'clipped'; 0 or missing: whole");

/// Parameters of a filter, and others after them.
macro_rules! with_filter {
    ($($more:expr),* $(,)?) => {
        &[
            ("min_level", "string", "this level and more severe ones"),
            ("level", "string", "these levels, with commas; may be repeated, as all that follow but mode, contains, regex and where"),
            ("audience", "string", "for these audiences, or for everybody"),
            ("mode", "string", "ACS's audience mode: engineer, operator or scilog"),
            ("host", "string", "names or patterns of hosts, with commas"),
            ("process", "string", "names or patterns of processes, with commas"),
            ("source", "string", "names or patterns of sources, with commas"),
            ("logger", "string", "names or patterns of loggers, with commas"),
            ("stack", "string", "id of an error chain"),
            ("field", "string", "NAME=PATTERN of another field"),
            ("word", "string", "words that all occur, each whole"),
            ("contains", "string", "text that occurs, ignoring case"),
            ("regex", "string", "regular expression that matches"),
            ("where", "string", "condition on named data and fields, as 'scan = 7 or elevation > 60'"),
            ("exclude", "string", "text that does not occur"),
            ("exclude_regex", "string", "regular expression that does not match"),
            ("not", "string", "NAME=PATTERN that does not match; also level, audience and source"),
            ("id", "string", "id of a record"),
            SINCE,
            UNTIL,
            $($more),*
        ]
    };
}

pub(super) use with_filter;

/// Routes of log records.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/log/query",
        id: "queryLog",
        what: "Finds records, as 'tampu log query'. 'next' continues in the order (for 'after'), 'previous' goes back (for 'before')",
        query: with_filter![
            ORDER,
            ("limit", "integer", "records of the page, 1 to 1000; 100, if missing"),
            ("after", "string", "'next' of another page"),
            ("before", "string", "'previous' of another page"),
            CLIP,
        ],
        gives: (200, json_of::<RecordPage>()),
        work: WorkKind::Search,
        act: page::page,
        ..GET
    },
    Route {
        path: "/log/records/{id}",
        id: "showRecord",
        what: "Returns a record by its id, as links have it",
        query: &[("time", "string", "the record's time, with which it is found at once"), CLIP],
        gives: (200, json_of::<FoundRecord>()),
        work: WorkKind::Search,
        act: context::record,
        ..GET
    },
    Route {
        path: "/log/context",
        id: "logContext",
        what: "Returns the records around one, oldest first, also those that share its time",
        query: with_filter![
            ("at", "string", "the cursor of the record; or its 'id'"),
            ("older", "integer", "records before it, at most 500; 20, if missing"),
            ("newer", "integer", "records after it, at most 500; 20, if missing"),
            ("same", "string", "only records with its host, process, thread, logger, source, stack or run; may be repeated"),
            CLIP,
        ],
        gives: (200, json_of::<LogContext>()),
        work: WorkKind::Search,
        act: context::around,
        ..GET
    },
    Route {
        path: "/log/chain",
        id: "logChain",
        what: "Returns the records of an error chain, the outermost first",
        query: &[("stack", "string", "the id of the chain"), SINCE, UNTIL, CLIP],
        gives: (200, json_of::<ErrorChain>()),
        work: WorkKind::Search,
        act: context::chain,
        ..GET
    },
    Route {
        path: "/log/filters",
        id: "listLogFilters",
        what: "Lists the caller's saved filters, and those that other users share",
        gives: (200, json_of::<Vec<SavedFilter>>()),
        login: Login::Required,
        act: saved::list,
        ..GET
    },
    Route {
        path: "/log/filters/{name}",
        id: "saveLogFilter",
        what: "Saves a filter of the caller under a name, in place of another of that name",
        takes: json_of::<FilterToSave>(),
        gives: (200, json_of::<SavedFilter>()),
        login: Login::Required,
        act: saved::save,
        ..PUT
    },
    Route {
        path: "/log/filters/{name}",
        id: "dropLogFilter",
        what: "Deletes a saved filter of the caller",
        gives: (204, Content::Nothing),
        login: Login::Required,
        act: saved::remove,
        ..DELETE
    },
    Route {
        path: "/log/histogram",
        id: "logHistogram",
        what: "Counts records by time and level. Without a range, over the whole archive",
        query: with_filter![
            ("bins", "integer", "the largest number of bins, 1 to 2000; 200, if missing"),
            ("every_ns", "string", "the width of a bin in ns; the next round width for 'bins', if missing"),
        ],
        gives: (200, json_of::<LogHistogram>()),
        work: WorkKind::Search,
        act: counts::histogram,
        ..GET
    },
    Route {
        path: "/log/stat",
        id: "logStat",
        what: "Counts records by the values of a field, the most frequent first; also the values that a field has",
        query: with_filter![
            ("by", "string", "level, source, logger, host, process or another field; level, if missing"),
            ("limit", "integer", "values, 1 to 10000; 100, if missing"),
        ],
        gives: (200, json_of::<FieldCounts>()),
        work: WorkKind::Search,
        act: counts::stat,
        ..GET
    },
    Route {
        path: "/log/patterns",
        id: "logPatterns",
        what: "Counts records by the place in the program that logged them, the most frequent first; without a place by their texts, in which numbers, ids and quoted words may differ",
        query: with_filter![
            ("limit", "integer", "patterns, 1 to 1000; 200, if missing"),
            ("bins", "integer", "intervals of the range in which each pattern is counted, 0 to 200; 0, if missing"),
        ],
        gives: (200, json_of::<MessagePatterns>()),
        work: WorkKind::Search,
        act: patterns::patterns,
        ..GET
    },
    Route {
        path: "/log/export",
        id: "exportLog",
        what: "Returns all records that a query finds as a file",
        query: with_filter![
            ORDER,
            ("limit", "integer", "the largest number of records; all, if missing or 0"),
            (
                "format",
                "string",
                "json (one record a line, spec/wire/json-lines.md), csv (safe for spreadsheets), raw-csv, text, xml or parquet (spec/log-archive.md); json, if missing"
            ),
            ("columns", "string", "for csv and raw-csv: names of fields, with commas; all, if missing"),
        ],
        gives: (200, Content::Bytes("application/x-ndjson")),
        work: WorkKind::Export,
        act: export::export,
        ..GET
    },
    Route {
        path: "/log/loggers",
        id: "listLoggers",
        what: "Asks all processes for their loggers and levels",
        query: &[("source", "string", "pattern of processes"), ("name", "string", "pattern of loggers")],
        gives: (200, json_of::<ProcessLevels>()),
        work: WorkKind::Search,
        act: loggers::list,
        ..GET
    },
    Route {
        path: "/log/levels",
        id: "setLevels",
        what: "Sets the levels of loggers in running processes",
        takes: json_of::<LevelChange>(),
        gives: (200, json_of::<ProcessLevels>()),
        act: loggers::set,
        ..POST
    },
    Route {
        path: "/log/status",
        id: "logStatus",
        what: "Returns the state of the collector and its counters by source (spec/log-services.md)",
        gives: (200, json_of::<Value>()),
        act: |call| {
            let participant = call.need_on_bus(Verb::Read, &service("log/status"))?;
            ok(&tampu_log::collector::ask::status(participant, PATIENCE)?)
        },
        ..GET
    },
];
