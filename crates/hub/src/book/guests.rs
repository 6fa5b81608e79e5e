//! Warnings about logbooks that guests may read or write.

use tampu_logbook::people::Right;

/// The number of logbooks that a warning names.
const NAMED: usize = 5;

/// The way in which logbooks are open to guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Openness {
    /// Other hosts reach the logbooks, and the site lets guests in.
    ByNetwork,
    /// The site lets no guest in, but rules of logbooks do. An import makes such rules.
    DespiteSite,
}

impl Openness {
    /// Returns how guests could be let in by mistake. `closed` is true with `[book] guests = "none"`, and `beyond` if other
    /// hosts reach the logbooks.
    pub fn of(closed: bool, beyond: bool) -> Option<Openness> {
        match (closed, beyond) {
            (true, _) => Some(Openness::DespiteSite),
            (false, true) => Some(Openness::ByNetwork),
            (false, false) => None,
        }
    }
}

/// Returns a warning that names the logbooks in which guests have rights, and the way to close them.
pub fn warning(openness: Openness, of: impl Fn(Right) -> Vec<String>) -> Option<String> {
    let named = |right: Right, verb: &str| {
        let books = of(right);
        let named = books.iter().take(NAMED).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let more = if books.len() > NAMED { format!(" and {} more", books.len() - NAMED) } else { String::new() };
        (!books.is_empty()).then(|| format!("{verb} {named}{more}"))
    };
    let may: Vec<String> =
        [(Right::Read, "read"), (Right::Write, "write to")].into_iter().filter_map(|(right, verb)| named(right, verb)).collect();
    if may.is_empty() {
        return None;
    }
    let may = may.join(", and may ");
    Some(match openness {
        Openness::ByNetwork => format!(
            "everybody who reaches the logbook's address may {may} without a login; 'tampu book users role LOGBOOK guests none' \
             closes one, and [book] guests = \"none\" those without an own rule for guests"
        ),
        Openness::DespiteSite => format!(
            "in spite of [book] guests = \"none\", everybody who reaches the logbook's address may {may} without a login: these \
             logbooks have an own rule for guests, from an import or a command; 'tampu book users role LOGBOOK guests none' \
             closes one"
        ),
    })
}
