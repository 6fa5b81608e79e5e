//! The loggers of running processes, and their levels.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_bus::access::Verb;
use tampu_log::{
    Threshold,
    logger::control::{self, Change, Heard, Question},
};

use super::super::{
    call::{Answer, Call, ok},
    on_bus::{OF_PROCESSES, service},
};
use crate::http::problem::Problem;

/// The loggers of all processes that answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::api) struct ProcessLevels {
    processes: Vec<LoggingProcess>,
    /// Processes that refused, with the reasons.
    refused: Vec<RefusedChange>,
    /// False if processes did not answer in time.
    complete: bool,
}

/// A process and its loggers.
#[derive(Debug, Serialize, JsonSchema)]
struct LoggingProcess {
    source: String,
    incarnation: String,
    loggers: Vec<LoggerLevels>,
    /// Records that it has published, by level.
    published: BTreeMap<&'static str, u64>,
    /// Records for which there was no room.
    dropped: u64,
}

/// A logger's levels; `Off` for none.
#[derive(Debug, Serialize, JsonSchema)]
struct LoggerLevels {
    name: String,
    /// Records from this level on are published.
    central: String,
    /// Records from this level on are printed.
    local: String,
    /// Records from this level on are published for attached readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    attached: Option<String>,
}

/// A process that refused a question.
#[derive(Debug, Serialize, JsonSchema)]
struct RefusedChange {
    incarnation: String,
    why: String,
}

/// A change of levels.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct LevelChange {
    /// Pattern of processes; all, if missing.
    #[serde(default)]
    source: Option<String>,
    /// Pattern of loggers.
    name: String,
    /// Lowest published level, or `Off`; unchanged, if missing.
    #[serde(default)]
    central: Option<String>,
    /// Lowest printed level, or `Off`; unchanged, if missing.
    #[serde(default)]
    local: Option<String>,
}

fn shown(heard: Heard) -> ProcessLevels {
    let loggers = |loggers: Vec<control::LoggerState>| {
        let one = |logger: control::LoggerState| LoggerLevels {
            name: logger.name,
            central: logger.central.into(),
            local: logger.local.into(),
            attached: logger.attached.map(String::from),
        };
        loggers.into_iter().map(one).collect()
    };
    let mut processes: Vec<LoggingProcess> = heard
        .processes
        .into_iter()
        .map(|(incarnation, process)| LoggingProcess {
            source: process.source,
            incarnation: incarnation.to_string(),
            loggers: loggers(process.loggers),
            published: process.stats.by_level.into_iter().map(|(level, count)| (level.name(), count)).collect(),
            dropped: process.stats.dropped,
        })
        .collect();
    processes.sort_by(|a, b| (&a.source, &a.incarnation).cmp(&(&b.source, &b.incarnation)));
    let refused = heard.unheeded.into_iter();
    let refused = refused.map(|(from, why)| RefusedChange { incarnation: from.to_string(), why: why.to_string() }).collect();
    ProcessLevels { processes, refused, complete: heard.complete }
}

pub(super) fn list(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Read, &service(control::LEVELS))?;
    let pattern = |name: &str| call.parameter(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let question = Question { source: pattern("source"), name: pattern("name"), ..Question::default() };
    ok(&shown(control::ask(participant, &question, OF_PROCESSES)?))
}

pub(super) fn set(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let resource = service(control::LEVELS);
    let participant = call.need_on_bus(Verb::Set, &resource)?;
    let LevelChange { source, name, central, local } = call.json()?;
    let threshold = |place: &str, text: Option<String>| {
        let read = |text: String| Threshold::try_from(text).map_err(|why| Problem::bad(place, why.to_string()));
        text.map(read).transpose()
    };
    let change = Change { central: threshold("body central", central)?, local: threshold("body local", local)? };
    if change == Change::default() {
        return Err(Problem::bad("body", "nothing to set; send 'central' or 'local'"));
    }
    let what = format!("{} of {}: {change:?}", name.escape_debug(), source.as_deref().unwrap_or("*").escape_debug());
    let question = Question { source, name: Some(name), set: Some(change), ..Question::default() };
    let heard = control::ask(participant, &question, OF_PROCESSES)?;
    call.api.bus.access.carried_out(&call.principal(), Verb::Set, &resource, &what);
    ok(&shown(heard))
}
