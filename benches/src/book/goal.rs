//! Goals, and their check against a run.

use super::plan::{Crowd, Row};

/// Results of a run for one logbook.
#[derive(Debug, Default)]
pub struct Found {
    /// Store: sqlite or postgres.
    pub store: &'static str,
    /// Entries of the logbook.
    pub entries: u32,
    /// The searches, measured in sequence.
    pub rows: Vec<Row>,
    /// Results of many concurrent clients.
    pub crowds: Vec<Crowd>,
    /// Posts a second with 100 KB attachments.
    pub posts: f64,
    /// Duration of the site's import in seconds.
    pub import: f64,
    /// From the start of the hub to the first page, s.
    pub start: f64,
}

/// A goal: its text, the measured value, and whether the value reaches it.
pub struct Verdict {
    /// Name of the goal.
    pub what: String,
    /// Value that was measured.
    pub found: String,
    /// True if the goal is reached.
    pub reached: bool,
}

fn verdict(what: String, found: f64, unit: &str, reached: bool) -> Verdict {
    Verdict { what, found: format!("{found:.1} {unit}"), reached }
}

/// Returns the goals for this logbook's size and store.
pub fn verdicts(found: &Found) -> Vec<Verdict> {
    let mut list = Vec::new();
    let (sqlite, large) = (found.store == "sqlite", found.entries >= 1_000_000);
    let worst = |of: fn(&Row) -> f64| found.rows.iter().map(of).fold(f64::NAN, f64::max);
    if found.entries >= 76_270 {
        let most = if sqlite && !large { 5.0 } else { 20.0 };
        let median = worst(|row| row.median);
        list.push(verdict(format!("every search and sort, median at most {most} ms"), median, "ms", median <= most));
        let page = |what: &str| found.rows.iter().find(|row| row.what == what).map(|row| row.median);
        if let (Some(first), Some(far)) = (page("list, page 1, again"), page("list, page 500, again")) {
            // Two equal measurements differ by about 1 ms.
            list.push(verdict(format!("page 500 takes what page 1 takes ({first:.1} ms)"), far, "ms", far <= first * 1.5 + 1.0));
        }
        if let Some(crowd) = found.crowds.iter().find(|crowd| (crowd.searchers, crowd.writers, crowd.again) == (16, 0, false)) {
            list.push(verdict(
                "16 searchers: an entry, p99 at most 20 ms".to_owned(),
                crowd.probe_p99,
                "ms",
                crowd.probe_p99 <= 20.0,
            ));
            let least = if sqlite { 3000.0 } else { 1000.0 };
            if !large {
                let what = format!("at least {least} searches a second");
                list.push(verdict(what, crowd.searches, "/s", crowd.searches >= least));
            }
        }
        list.push(verdict("200 posts a second with 100 KB attachments".to_owned(), found.posts, "/s", found.posts >= 200.0));
    }
    if sqlite && found.entries == 76_270 {
        let p99 = worst(|row| row.p99);
        list.push(verdict("every search and sort, p99 at most 20 ms".to_owned(), p99, "ms", p99 <= 20.0));
        list.push(verdict("imported within 40 s".to_owned(), found.import, "s", found.import <= 40.0));
    }
    if large {
        if let Some(first) = found.rows.iter().find(|row| row.what == "list, page 1").filter(|_| sqlite) {
            let reached = first.median <= 0.2;
            let found = format!("{:.2} ms", first.median);
            list.push(Verdict { what: "a page of the list, median at most 0.2 ms".to_owned(), found, reached });
        }
        list.push(verdict("started within 1 s".to_owned(), found.start, "s", found.start <= 1.0));
        let rss = worst(|row| row.rss);
        list.push(verdict("at most 200 MB of memory".to_owned(), rss, "MB", rss <= 200.0));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_those_of_the_size() {
        let found = |store, entries| Found { store, entries, posts: 250.0, import: 60.0, ..Found::default() };
        assert!(verdicts(&found("sqlite", 464)).is_empty());
        let list = verdicts(&found("sqlite", 76_270));
        let reached = |what: &str| list.iter().find(|goal| goal.what.contains(what)).map(|goal| goal.reached);
        assert_eq!((reached("posts"), reached("imported")), (Some(true), Some(false)));
        // A goal without a measurement is not reached.
        assert_eq!(reached("median"), Some(false));
        assert!(verdicts(&found("postgres", 1_000_000)).iter().any(|goal| goal.what.contains("started")));
    }
}
