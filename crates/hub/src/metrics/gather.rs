//! One page from the pages of a hub's roles, each of which runs in a process of its own.
//!
//! Each role answers the service `hub/metrics/<hub>` with its part of the page. A role that is stuck is missing after
//! [`TIMEOUT`]; the families of the others are there. No access rule of a site is asked: the roles of a hub need the
//! service for themselves, and other services tell every member of the domain the same names.

use std::{collections::BTreeMap, time::Duration};

use tampu_bus::{
    BusError, Participant,
    engine::Guard,
    service::{Limits, Permission, Request, call, serve},
};
use tampu_types::{Incarnation, TopicName};

/// Time that the page waits for the roles. A request for the page may take 5 s.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Questions that a role answers at once.
const AT_ONCE: usize = 8;

fn service(hub: &str) -> String {
    format!("hub/metrics/{hub}")
}

/// Answers with this part of the page.
pub(crate) fn serve_page(
    participant: &Participant,
    hub: &str,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> Result<Guard, BusError> {
    let limits = Limits { answer: 64 << 20, ..Limits::on_threads("metrics-answer", AT_ONCE) };
    let answer = move |request: Request| {
        request.answer(&page());
    };
    serve(participant, &TopicName::new(service(hub))?, Permission::Everybody, &limits, answer)
}

/// Returns the page of the whole hub: this process's own families and those of the other roles.
pub(crate) fn whole_page(participant: &Participant, hub: &str, own: String) -> String {
    let mut answers: BTreeMap<Incarnation, Vec<u8>> = BTreeMap::new();
    for part in call(participant, &service(hub), "", TIMEOUT).into_iter().flatten().flatten() {
        if let Ok(content) = part.content {
            answers.entry(part.from).or_default().extend_from_slice(&content);
        }
    }
    // An answer that ended too early is not JSON.
    let pages = answers.into_values().filter_map(|answer| serde_json::from_slice::<String>(&answer).ok());
    merged(std::iter::once(own).chain(pages))
}

/// Joins pages. All series of one family stand together, as the format demands.
fn merged(pages: impl Iterator<Item = String>) -> String {
    let mut families: Vec<(String, String)> = Vec::new();
    for page in pages {
        let mut at = None;
        for line in page.split_inclusive('\n') {
            if let Some(name) = line.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()) {
                at = families.iter().position(|(known, _)| known == name);
                if at.is_none() {
                    families.push((name.to_owned(), line.to_owned()));
                }
            } else if line.starts_with("# TYPE ") {
                match at {
                    Some(_) => continue,
                    None => {
                        let Some((_, text)) = families.last_mut() else { continue };
                        text.push_str(line);
                        at = Some(families.len() - 1);
                    }
                }
            } else if let Some((_, text)) = at.and_then(|at: usize| families.get_mut(at)) {
                text.push_str(line);
            }
        }
    }
    families.into_iter().map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_one_family_stand_together() {
        let one = "# HELP a A.\n# TYPE a gauge\na{role=\"node\"} 1\n# HELP b B.\n# TYPE b counter\nb 2\n";
        let other = "# HELP c C.\n# TYPE c gauge\nc 3\n# HELP a A.\n# TYPE a gauge\na{role=\"book\"} 4\n";
        assert_eq!(
            merged([one.to_owned(), other.to_owned(), String::new()].into_iter()),
            "# HELP a A.\n# TYPE a gauge\na{role=\"node\"} 1\na{role=\"book\"} 4\n# HELP b B.\n# TYPE b counter\nb 2\n\
             # HELP c C.\n# TYPE c gauge\nc 3\n"
        );
    }
}
