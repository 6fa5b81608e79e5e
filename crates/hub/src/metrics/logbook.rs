//! The metrics of the logbook: its requests, searches, queues, connections and index.

use super::text::Text;
use crate::book::{
    report::BookReport,
    request_log::{BOUNDS_US, RequestCounts},
};

/// Writes the families of a logbook.
pub(super) fn logbook(text: &mut Text, report: &BookReport) {
    requests(text, &report.requests);
    text.family("tampu_book_connections", "gauge", "Open connections of clients.").value(&[], report.connections);
    text.family("tampu_book_running_requests", "gauge", "Requests that hold a permit, by the kind of their work.");
    for queue in &report.queues {
        text.value(&[("kind", queue.kind)], queue.running);
    }
    text.family("tampu_book_waiting_requests", "gauge", "Requests that wait for a permit, by the kind of their work.");
    for queue in &report.queues {
        text.value(&[("kind", queue.kind)], queue.waiting);
    }
    store(text, report);
}

fn requests(text: &mut Text, counts: &RequestCounts) {
    text.family("tampu_book_requests_total", "counter", "Requests, by the kind of their work and their status.");
    for ((kind, status), count) in &counts.requests {
        text.value(&[("kind", kind), ("status", &status.to_string())], count);
    }
    text.family("tampu_book_request_seconds", "histogram", "Time until the answer of a request began.");
    for (kind, times) in &counts.times {
        text.histogram(&[("kind", kind)], &BOUNDS_US, &times.counts, times.sum_us);
    }
    for (name, help, value) in [
        ("tampu_book_response_bytes_total", "Bytes of bodies of answers.", counts.bytes),
        ("tampu_book_searches_total", "Searches, with those that pages make for themselves.", counts.searches),
        ("tampu_book_search_rows_total", "Rows that searches looked at.", counts.search_rows),
        ("tampu_book_slow_searches_total", "Searches that took longer than slow_search.", counts.slow_searches),
    ] {
        text.family(name, "counter", help).value(&[], value);
    }
}

fn store(text: &mut Text, report: &BookReport) {
    let store = &report.store;
    for (name, help, of) in [
        ("tampu_book_store_connections", "Open connections to the database, by their use.", 0),
        ("tampu_book_store_busy_connections", "Connections to the database that work.", 1),
        ("tampu_book_store_waiting", "Threads that wait for a connection to the database.", 2),
    ] {
        text.family(name, "gauge", help);
        for one in &store.connections {
            text.value(&[("use", one.used_to)], [one.open, one.busy, one.waiting][of]);
        }
    }
    text.family("tampu_book_store_transactions_total", "counter", "Transactions that changed something, or failed to.");
    text.value(&[("outcome", "committed")], store.committed).value(&[("outcome", "failed")], store.failed);
    text.family("tampu_book_store_remembered_total", "counter", "Pages and counts of searches that were remembered.");
    text.value(&[], store.remembered);
    if let Some(sizes) = &store.sizes {
        text.family("tampu_book_store_bytes", "gauge", "Bytes of the database.").value(&[], sizes.bytes);
        text.family("tampu_book_index_bytes", "gauge", "Bytes of the index of words, about.").value(&[], sizes.index_bytes);
        if let Some(parts) = sizes.index_parts {
            text.family("tampu_book_index_parts", "gauge", "Parts of the index, which merges join.").value(&[], parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::book::request_log::TimeHistogram;
    use tampu_logbook::store::report::{ConnectionReport, StoreReport, StoreSizes};

    #[test]
    fn the_spec_page_has_every_family() {
        let mut report = BookReport::default();
        report.requests.requests.insert(("search", 200), 3);
        report.requests.times.insert("search", TimeHistogram::of([Duration::from_millis(3)]));
        report.store = StoreReport {
            connections: vec![ConnectionReport { used_to: "read", open: 4, busy: 1, waiting: 0 }],
            sizes: Some(StoreSizes { bytes: 1, index_bytes: 1, index_parts: Some(2) }),
            ..StoreReport::default()
        };
        let mut text = Text::default();
        logbook(&mut text, &report);
        let (page, spec) = (text.finish(), include_str!("../../../../spec/metrics.md"));
        for name in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
            assert!(spec.contains(&format!("`{name}`")), "{name} is not in spec/metrics.md");
        }
        assert!(page.contains("tampu_book_requests_total{kind=\"search\",status=\"200\"} 3\n"), "{page}");
        assert!(page.contains("tampu_book_request_seconds_bucket{kind=\"search\",le=\"0.005\"} 1\n"), "{page}");
        assert!(page.contains("tampu_book_request_seconds_count{kind=\"search\"} 1\n"), "{page}");
        assert!(page.contains("tampu_book_store_connections{use=\"read\"} 4\n"), "{page}");
    }
}
