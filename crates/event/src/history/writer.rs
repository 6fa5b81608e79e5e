//! The thread that moves events from the queue to the archive. Only this thread waits for the disk.

use std::{
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_archive::{ArchiveError, Arrival, TableArchive};
use tampu_bus::Participant;
use tampu_types::{BatchHeader, ClockState, Time};
use tampu_workers::WorkerThread;

use super::{
    notice::{HistoryNotice, ReportNotice},
    queue::EventQueue,
    table::KEPT_TYPE,
    unwritten::UnwrittenEvents,
};

/// Period of reports of dropped events.
const REPORT: Duration = Duration::from_secs(10);
/// Longest time to write the last events at the end.
const LAST: Duration = Duration::from_secs(5);
/// Pause before the writer starts again after a panic.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Thread that writes events to the archive. Dropping it writes the waiting events, for at most 5 s.
pub(super) struct HistoryWriter {
    queue: Arc<EventQueue>,
    worker: Option<JoinHandle<()>>,
}

impl HistoryWriter {
    pub(super) fn start(
        participant: &Participant,
        archive: Arc<TableArchive>,
        report: ReportNotice,
    ) -> std::io::Result<HistoryWriter> {
        let queue = Arc::new(EventQueue::default());
        let header = BatchHeader {
            domain: participant.domain().clone(),
            source: participant.source().clone(),
            incarnation: participant.incarnation(),
            stream: 0,
            first: 0,
            count: 0,
            type_id: KEPT_TYPE,
            type_version: 1,
            acquired: Time(0),
            sent: Time(0),
            clock: ClockState::Unknown,
            tai_offset: 0,
            flags: 0,
        };
        let mut writer = Writer {
            queue: queue.clone(),
            archive,
            header,
            report,
            unwritten: UnwrittenEvents::default(),
            in_hand: InHand::default(),
            reported: (0, Instant::now()),
            refused_at: None,
        };
        let worker = WorkerThread::named("event history").spawn_restarting(RESTART_PAUSE, move || writer.run())?;
        Ok(HistoryWriter { queue, worker: Some(worker) })
    }

    pub(super) fn queue(&self) -> Arc<EventQueue> {
        self.queue.clone()
    }
}

impl Drop for HistoryWriter {
    fn drop(&mut self) {
        self.queue.end();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// Samples that the writer has taken from the queue.
#[derive(Default)]
struct InHand {
    samples: Vec<Vec<u8>>,
    /// Number of samples in front that were counted as lost before: gaps, written instead of them.
    older: usize,
}

struct Writer {
    queue: Arc<EventQueue>,
    archive: Arc<TableArchive>,
    header: BatchHeader,
    report: ReportNotice,
    /// Events that the archive rejected, to be recorded as gaps.
    unwritten: UnwrittenEvents,
    /// Samples passed to the archive. Some are left only after a panic.
    in_hand: InHand,
    /// Lost events reported so far, and the time of that report.
    reported: (u64, Instant),
    /// Time of the last report of refused events.
    refused_at: Option<Instant>,
}

impl Writer {
    fn run(&mut self) {
        self.drop_left_over();
        let mut until = None;
        loop {
            let samples = self.queue.next();
            self.report_lost(false);
            if self.queue.is_ending() {
                let until = *until.get_or_insert_with(|| Instant::now() + LAST);
                if samples.is_empty() || Instant::now() > until {
                    self.queue.abandon(samples.len());
                    break;
                }
            }
            if !samples.is_empty() {
                self.write(samples);
            }
        }
        let rest = self.unwritten.take();
        if !rest.is_empty() {
            self.write(rest);
        }
        self.archive.flush(LAST);
        self.report_lost(true);
    }

    /// Drops the samples that a panic left in hand. The archive may or may not have taken them, and they must not cause
    /// a second panic. A gap stands for them.
    fn drop_left_over(&mut self) {
        let InHand { samples, older } = std::mem::take(&mut self.in_hand);
        if !samples.is_empty() {
            self.drop_events(samples.len().saturating_sub(older), &samples, "an internal error while they were written");
            self.header.first += samples.len() as u64;
        }
    }

    fn write(&mut self, next: Vec<Vec<u8>>) {
        // Earlier samples that could not be written come first.
        self.in_hand.samples = next;
        let older = self.unwritten.take();
        self.in_hand.older = older.len();
        self.in_hand.samples.splice(0..0, older);
        while !self.in_hand.samples.is_empty() {
            let samples: Vec<&[u8]> = self.in_hand.samples.iter().map(Vec::as_slice).collect();
            self.header.count = samples.len() as u32;
            let arrival = Arrival { header: &self.header, samples: &samples, received: now(), advances: None };
            match self.archive.append(&arrival) {
                Ok(appended) => {
                    self.queue.kept.fetch_add(appended.records, Ordering::Relaxed);
                    break;
                }
                // The disk is full or slow: the archive has waited and reported it. New events wait in the queue.
                Err(ArchiveError::Full { .. }) if !self.queue.is_ending() => self.report_lost(false),
                // One bad event does not affect the others.
                Err(ArchiveError::Undecodable { sample, why }) if sample < self.in_hand.samples.len() => {
                    let bad = self.in_hand.samples.remove(sample);
                    self.drop_events(1, std::slice::from_ref(&bad), &why);
                }
                Err(error) => {
                    let all = std::mem::take(&mut self.in_hand.samples);
                    self.header.first += all.len() as u64;
                    self.drop_events(all.len().saturating_sub(self.in_hand.older), &all, &error.to_string());
                }
            }
        }
        self.header.first += self.in_hand.samples.len() as u64;
        self.in_hand = InHand::default();
    }

    /// Counts events that cannot be written, and remembers a gap for them.
    fn drop_events(&mut self, count: usize, samples: &[Vec<u8>], why: &str) {
        self.queue.lost.fetch_add(count as u64, Ordering::Relaxed);
        let unrecorded = self.unwritten.add(samples);
        (self.report)(&HistoryNotice::NotWritten { events: count as u64, unrecorded, why: why.to_owned() });
    }

    fn report_lost(&mut self, last: bool) {
        let lost = self.queue.lost.load(Ordering::Relaxed);
        let (reported, at) = self.reported;
        if lost > reported && (last || reported == 0 || at.elapsed() >= REPORT) {
            let more = lost - reported;
            (self.report)(&HistoryNotice::Dropped { events: more });
            self.reported = (lost, Instant::now());
        }
        let is_due = last || self.refused_at.is_none_or(|at| at.elapsed() >= REPORT);
        if is_due && let Some((events, why)) = self.queue.take_refusals() {
            (self.report)(&HistoryNotice::Refused { events, why });
            self.refused_at = Some(Instant::now());
        }
    }
}

/// Returns the time of the host's clock.
fn now() -> Time {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(now.as_secs() as i64, now.subsec_nanos())
}
