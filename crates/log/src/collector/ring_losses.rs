//! Records that were lost in the log rings of a process, as the process itself reports them.
//!
//! A full ring counts the records for which it had no room. The backend reports them in a record of level Warning at
//! the position of the gap. The collector adds these counts up by source. Its status therefore names every loss, also
//! of a process that has ended.

use memchr::memmem;
use tampu_types::{Level, log_batch::LogBatchView};

use crate::logger::renderer::LOSS_MESSAGE;

/// Returns the sum of the losses that the records of a batch report. Batches of other topics than `log/warning` have none.
pub(super) fn reported_losses(topic: &str, batch: &[u8]) -> u64 {
    if !topic.ends_with("/warning") || memmem::find(batch, LOSS_MESSAGE.as_bytes()).is_none() {
        return 0;
    }
    let Ok(view) = LogBatchView::parse(batch) else { return 0 };
    let reports =
        view.records().flatten().filter(|record| record.level() == Level::Warning && record.message().contains(LOSS_MESSAGE));
    let counts = reports.filter_map(|record| record.data().find(|(name, _)| *name == "lost")?.1.parse::<u64>().ok());
    // Any process can send such a record.
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use tampu_types::{Datum, LogRecord, log_batch::encode_records};

    use super::*;

    #[test]
    fn the_counts_of_all_reports_are_added_up() {
        let report = |count: u64| {
            let mut record = LogRecord::new(Level::Warning, format!("{count}{LOSS_MESSAGE} the log ring stayed full"));
            record.data.push(Datum::new("lost", count.to_string()));
            record
        };
        let mut other = LogRecord::new(Level::Warning, "3 parcels lost");
        other.data.push(Datum::new("lost", "3"));
        let batch = encode_records(&[report(8000), other.clone(), report(492)]).unwrap();
        assert_eq!(reported_losses("log/warning", &batch), 8492);
        assert_eq!(reported_losses("log/info", &batch), 0);
        let forged = encode_records(&[report(u64::MAX), report(u64::MAX)]).unwrap();
        assert_eq!(reported_losses("log/warning", &forged), u64::MAX);
        assert_eq!(reported_losses("log/warning", &encode_records(&[other]).unwrap()), 0);
        assert_eq!(reported_losses("log/warning", LOSS_MESSAGE.as_bytes()), 0);
    }
}
