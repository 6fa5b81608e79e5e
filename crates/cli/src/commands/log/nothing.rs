//! Reasons why a search of the archive found nothing.

use tampu_archive::{
    Grouping,
    query::{Field, Query},
};
use tampu_types::{Time, glob};

use crate::{keeper::Keeper, near, time_text};

/// The logger of the logbook's requests.
const REQUESTS: &str = "access";
/// Names that are shown.
const SHOWN: usize = 5;

/// Returns known reasons for which the query cannot find anything.
pub fn reasons(keeper: &Keeper, query: &Query) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut asked = vec![("source", query.sources.clone(), vec![Field::SourceObject, Field::Process])];
    for (noun, field) in [("process", Field::Process), ("host", Field::Host), ("logger", Field::Logger)] {
        asked.push((noun, query.fields.get(&field).cloned().unwrap_or_default(), vec![field]));
    }
    for (noun, patterns, fields) in asked.into_iter().filter(|(_, patterns, _)| !patterns.is_empty()) {
        let names: Vec<String> = fields.into_iter().flat_map(|field| known(keeper, field)).collect();
        if names.iter().any(|name| patterns.iter().any(|pattern| glob::matches_ignoring_case(pattern, name))) {
            continue;
        }
        let pattern = patterns.join(",");
        let near: Vec<&str> =
            patterns.iter().flat_map(|pattern| near::near(pattern, names.iter().map(String::as_str), SHOWN)).collect();
        reasons.push(match near.as_slice() {
            [] => {
                format!("no record in the archive has the {noun} '{pattern}'; 'tampu log stat --by {noun}' lists the known ones")
            }
            near => format!("no record in the archive has the {noun} '{pattern}'; near: {}", near.join(", ")),
        });
        if noun == "logger" && patterns.iter().any(|pattern| pattern.eq_ignore_ascii_case(REQUESTS)) {
            reasons.push("the logbook logs requests only with 'access_log = true' in [book], which is off by default".to_owned());
        }
    }
    if let Ok(status) = keeper.status() {
        let time = |name: &str| status["archive"][name].as_i64().map(Time);
        match (time("earliest"), time("latest")) {
            (Some(earliest), Some(latest)) => {
                let before = query.until.is_some_and(|until| until <= earliest);
                let after = query.since.is_some_and(|since| since > latest);
                if before || after {
                    let (earliest, latest) = (time_text::local(earliest), time_text::with_zone(latest));
                    reasons.push(format!("the archive holds records from {earliest} to {latest} only"));
                }
            }
            _ => reasons.push("the archive holds no records yet".to_owned()),
        }
    }
    if !query.words.is_empty() {
        reasons.push("words are looked for in messages only; --source, --process and --field find names".to_owned());
    }
    reasons
}

/// The values of a field in the archive.
fn known(keeper: &Keeper, field: Field) -> Vec<String> {
    let by = Grouping { field: Some(field), ..Grouping::default() };
    let counts = keeper.count(&Query::default(), &by);
    counts.map(|counts| counts.rows.into_iter().filter_map(|row| row.value).collect()).unwrap_or_default()
}
