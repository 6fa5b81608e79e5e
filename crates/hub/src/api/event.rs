//! Attributes and their events: the directory, current values, the history, and facts about missing events.

use serde_json::Value;

use self::{
    directory::{AttributeList, AttributeTree},
    reading::{CurrentValues, KeptPage},
};
use super::{
    call::{GET, Route},
    when::{SINCE, UNTIL},
};
use crate::http::{
    admission::WorkKind,
    route::{Content, json_of},
};

pub(super) use self::{
    history::{AttributeHistory, read as read_history},
    reading::{ShownEvent, repeated},
};

mod directory;
mod export;
mod history;
mod reading;

/// Routes of attributes.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/event/attributes",
        id: "listAttributes",
        what: "Lists the attributes of running servers, by name; 'next' continues (for 'after')",
        query: &[
            ("pattern", "string", "a pattern of names (sr/vacuum/*); all, if missing"),
            ("contains", "string", "only names, labels and descriptions with this text, ignoring case"),
            ("limit", "integer", "attributes of the page, 1 to 5000; 1000, if missing"),
            ("after", "string", "'next' of the page before"),
        ],
        gives: (200, json_of::<AttributeList>()),
        work: WorkKind::Search,
        act: directory::list,
        ..GET
    },
    Route {
        path: "/event/tree",
        id: "attributeTree",
        what: "Lists the parts of names below a path, with the number of attributes below each",
        query: &[("path", "string", "beginning of names, as sr/vacuum; the top, if missing")],
        gives: (200, json_of::<AttributeTree>()),
        work: WorkKind::Search,
        act: directory::tree,
        ..GET
    },
    Route {
        path: "/event/values",
        id: "currentValues",
        what: "Returns the current values of attributes",
        query: &[("name", "string", "an attribute; may be repeated, at most 200")],
        gives: (200, json_of::<CurrentValues>()),
        work: WorkKind::Search,
        act: reading::current,
        ..GET
    },
    Route {
        path: "/event/history",
        id: "attributeHistory",
        what: "Returns the kept events of an attribute; where they are many, the least, largest and mean value of each interval",
        query: &[
            ("name", "string", "the attribute"),
            SINCE,
            UNTIL,
            ("points", "integer", "the largest number of events or intervals, 1 to 5000; 1000, if missing"),
        ],
        gives: (200, json_of::<AttributeHistory>()),
        work: WorkKind::Search,
        act: history::decimated,
        ..GET
    },
    Route {
        path: "/event/rows",
        id: "keptEvents",
        what: "Returns kept events one by one, with gaps and changes of sources; 'next' continues (for 'after')",
        query: &[
            ("name", "string", "an attribute or a pattern; may be repeated; all, if missing"),
            SINCE,
            UNTIL,
            ("order", "string", "newest (first) or oldest; newest, if missing"),
            ("limit", "integer", "events of the page, 1 to 1000; 100, if missing"),
            ("after", "string", "'next' of the page before"),
        ],
        gives: (200, json_of::<KeptPage>()),
        work: WorkKind::Search,
        act: reading::rows,
        ..GET
    },
    Route {
        path: "/event/export",
        id: "exportEvents",
        what: "Returns all kept events that a query finds as a file",
        query: &[
            ("name", "string", "an attribute or a pattern; may be repeated; all, if missing"),
            SINCE,
            UNTIL,
            ("order", "string", "newest (first) or oldest; newest, if missing"),
            ("limit", "integer", "the largest number of events; all, if missing or 0"),
            (
                "format",
                "string",
                "json (one event a line, as /event/rows), csv (safe for spreadsheets), raw-csv or parquet (spec/event-archive.md); json, if missing",
            ),
        ],
        gives: (200, Content::Bytes("application/x-ndjson")),
        work: WorkKind::Export,
        act: export::export,
        ..GET
    },
    Route {
        path: "/event/doctor",
        id: "explainEvents",
        what: "Returns the facts of servers about attributes, which explain present or missing events",
        query: &[("pattern", "string", "a pattern of names")],
        gives: (200, json_of::<Vec<Value>>()),
        work: WorkKind::Search,
        act: directory::doctor,
        ..GET
    },
];
