//! Names of a collector's services, with their requests and replies.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tampu_archive::{
    Grouping, PatternsWanted, Scanned,
    query::{BadQuery, Query},
};
use tampu_types::{Incarnation, Time};

/// The service that finds records: asked with a [`Query`].
pub(super) const QUERY: &str = "log/query";
/// The service that counts records: asked with a [`StatQuestion`].
pub(super) const STAT: &str = "log/stat";
/// The service that reports the state of the collector; the question is empty.
pub(super) const STATUS: &str = "log/status";
/// The service that reports up to where streams are committed: asked with an [`OffsetsQuestion`], or nothing.
pub(super) const OFFSETS: &str = "log/offsets";

/// The service that maintains the archive: asked with an [`Upkeep`](tampu_archive::upkeep::Upkeep).
pub(super) const ARCHIVE: &str = "log/archive";

/// The service that reports whether the collector can keep records; the question is empty.
pub(super) const KEEPS: &str = "log/keeps";

/// Question to `log/query`: a query, and the member `columns` if the answer is to be in columns.
pub(super) struct RecordsQuestion {
    pub(super) query: Query,
    /// Names of the columns, all if there are none.
    pub(super) columns: Option<Vec<String>>,
}

impl RecordsQuestion {
    pub(super) fn from_json(json: &[u8]) -> Result<RecordsQuestion, BadQuery> {
        let bad = |why: serde_json::Error| BadQuery::Json(why.to_string());
        if let Ok(mut members) = serde_json::from_slice::<Map<String, Value>>(json)
            && let Some(columns) = members.remove("columns")
        {
            let query = serde_json::from_value(Value::Object(members)).map_err(bad)?;
            return Ok(RecordsQuestion { query, columns: Some(serde_json::from_value(columns).map_err(bad)?) });
        }
        Ok(RecordsQuestion { query: Query::from_json(json)?, columns: None })
    }

    pub(super) fn in_columns(query: &Query, columns: &[String]) -> serde_json::Result<Value> {
        let mut question = serde_json::to_value(query)?;
        question["columns"] = columns.into();
        Ok(question)
    }
}

/// Question to `log/offsets`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OffsetsQuestion {
    /// Lives whose streams are in the answer even if they have ended.
    pub(super) of: Vec<Incarnation>,
    /// True to have everything that was received committed before the answer.
    pub(super) commit: bool,
}

/// Question to `log/stat`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatQuestion {
    /// Selection of records.
    pub query: Query,
    /// Dimensions to count by.
    pub by: Grouping,
    /// Patterns to count, in place of `by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patterns: Option<PatternsWanted>,
}

/// Positions up to which streams are kept. A live reader continues there after a search has returned everything older.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// Time of the answer by the collector's clock, ns UTC.
    pub now: Time,
    /// Streams of the writers on the bus, and of the lives that the question names: everything before `next` is committed and found by searches.
    pub streams: Vec<KeptStream>,
}

/// Position up to which one stream is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptStream {
    /// The writer's life.
    pub incarnation: Incarnation,
    /// The stream of that life.
    pub stream: u32,
    /// The first sample that is not kept yet.
    pub next: u64,
}

/// Answer to `log/keeps`: the collector's ability to keep records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keeps {
    /// Reason why it cannot keep records.
    pub stuck: Option<String>,
}

/// The last part of an answer to `log/query`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) scanned: Scanned,
}
