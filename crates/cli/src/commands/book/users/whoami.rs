//! `tampu book users whoami`: the caller, and the origin of the caller's rights.

use serde_json::Value;
use tampu_logbook::people::registry::Explanation;

use crate::{
    commands::book::text::shown,
    failure::{Failure, Outcome},
};

/// Shows a caller; with `explain` also the groups, and the origin of each right.
pub fn show(who: &Explanation, explain: bool, say: &mut dyn FnMut(String, Value) -> Outcome) -> Outcome {
    let mut object = serde_json::to_value(who).map_err(|error| Failure::failed("an answer as JSON", error))?;
    let login = if who.login.is_empty() { "guest" } else { &who.login };
    let mut lines = vec![format!("{login}: known by {}, login method: {}", who.by, who.method)];
    if explain {
        lines.extend(who.subject.iter().map(|subject| format!("identity there: {subject}")));
        lines.extend(who.outside_groups.iter().map(|group| format!("group there: {group}")));
        lines.extend(who.groups.iter().map(|origin| format!("group {}: from {}", origin.group, origin.from)));
        lines.extend(who.admin.iter().map(|why| format!("administers the site: {why}")));
        for book in &who.books {
            for right in &book.rights {
                let from = if right.from.is_empty() { "a default".to_owned() } else { right.from.join("; ") };
                let taken = right.taken_by.as_ref().map(|by| format!(", taken away by {by}")).unwrap_or_default();
                lines.push(format!("{}: {} from {from}{taken}", book.book, right.right.name()));
            }
        }
    } else {
        for book in &who.books {
            let has = book.rights.iter().filter(|right| right.taken_by.is_none());
            let has: Vec<&str> = has.map(|right| right.right.name()).collect();
            if !has.is_empty() {
                lines.push(format!("{}: {}", book.book, has.join(" ")));
            }
        }
        if let Some(object) = object.as_object_mut() {
            for field in ["groups", "outside_groups", "subject"] {
                object.remove(field);
            }
        }
    }
    let lines: Vec<String> = lines.iter().map(|line| shown(line, false)).collect();
    say(lines.join("\n"), object)
}
