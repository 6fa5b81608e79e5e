//! One target: its queue, and the worker that writes it.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tampu_log::collector::router::TargetReport;
use tampu_types::{LogRecord, syslog};
use tampu_workers::WorkerThread;

use super::{
    bundle::{Bundle, Out},
    error::RouteError,
    file::File,
    settings::{Format, TargetSettings},
    shape,
    syslog::Remote,
};
use crate::config::error::ConfigError;

/// Maximum size of queued text in bytes. Further records are lost to the target, counted and logged.
const QUEUE: usize = 8 << 20;
/// First and longest pause before a failed write is retried; the pause doubles.
const RETRY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(10)];
/// Time limit for writing the queue when the hub ends.
const CLOSE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Queue {
    bundles: VecDeque<Bundle>,
    bytes: usize,
    /// The end of the time for writing the queue; set when the hub ends.
    closing: Option<Instant>,
    failing: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
    written: AtomicU64,
    lost: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

#[derive(Debug)]
enum Shape {
    File(Format),
    Syslog(u8),
}

/// A running target; ends when dropped.
#[derive(Debug)]
pub(super) struct Target {
    name: String,
    shape: Shape,
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Target {
    pub fn start(name: &str, settings: &TargetSettings, directory: &Path) -> Result<Target, RouteError> {
        let remote = Remote::parse(settings).map_err(|why| ConfigError::Value { setting: format!("[target.{name}]"), why })?;
        let (shape, out): (Shape, Box<dyn Out>) = match remote {
            Some(remote) => (Shape::Syslog(remote.facility), Box::new(remote)),
            None => {
                let path = settings.file.clone().unwrap_or_else(|| directory.join(format!("{name}.log")));
                let file = File::new(path, settings.format, settings.size_mb << 20, settings.files);
                (Shape::File(settings.format), Box::new(file))
            }
        };
        Target::with(name, shape, out)
    }

    fn with(name: &str, shape: Shape, mut out: Box<dyn Out>) -> Result<Target, RouteError> {
        let shared = Arc::new(Shared::default());
        let writing = shared.clone();
        let worker = WorkerThread::named(format!("route-{name}"))
            .counted_as("route-target")
            .spawn_restarting(RETRY[0], move || run(&writing, &mut *out));
        Ok(Target { name: name.to_owned(), shape, shared, worker: Some(worker.map_err(RouteError::Worker)?) })
    }

    /// Adds a record's text to a bundle.
    pub fn add(&self, record: &LogRecord, bundle: &mut Bundle) {
        match &self.shape {
            Shape::File(format) => shape::append(*format, record, &mut bundle.text),
            Shape::Syslog(facility) => syslog::encode(record, *facility, &mut bundle.text),
        }
        bundle.ends.push(bundle.text.len());
    }

    /// Queues a bundle, or counts it as lost if the queue is full.
    pub fn push(&self, bundle: Bundle) {
        if bundle.ends.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        // A bundle larger than the whole queue is accepted when the queue is empty.
        if queue.bytes > 0 && queue.bytes + bundle.text.len() > QUEUE {
            self.shared.lost.fetch_add(bundle.ends.len() as u64, Ordering::Relaxed);
            return;
        }
        queue.bytes += bundle.text.len();
        queue.bundles.push_back(bundle);
        self.shared.news.notify_one();
    }

    /// Ends the target, and returns its last report, with what was lost by this end.
    pub fn finish(self) -> TargetReport {
        let (name, shared) = (self.name.clone(), self.shared.clone());
        drop(self);
        report(name, &shared)
    }

    /// Counts what was written and lost before, by a target of the same name.
    pub fn carry_over(&self, former: &TargetReport) {
        self.shared.written.fetch_add(former.written, Ordering::Relaxed);
        self.shared.lost.fetch_add(former.lost, Ordering::Relaxed);
    }

    pub fn report(&self) -> TargetReport {
        report(self.name.clone(), &self.shared)
    }
}

fn report(target: String, shared: &Shared) -> TargetReport {
    let queue = shared.lock();
    TargetReport {
        target,
        written: shared.written.load(Ordering::Relaxed),
        lost: shared.lost.load(Ordering::Relaxed),
        waiting: queue.bytes as u64,
        failing: queue.failing.clone(),
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.shared.lock().closing = Some(Instant::now() + CLOSE);
        self.shared.news.notify_one();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        let left: u64 = self.shared.lock().bundles.drain(..).map(|bundle| bundle.ends.len() as u64).sum();
        self.shared.lost.fetch_add(left, Ordering::Relaxed);
    }
}

/// A bundle during its write. A panic counts its unwritten records as lost and releases its bytes in the queue.
struct Writing<'a> {
    shared: &'a Shared,
    bundle: Bundle,
    /// Records already written.
    from: usize,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        self.shared.lost.fetch_add((self.bundle.ends.len() - self.from) as u64, Ordering::Relaxed);
        self.shared.lock().bytes -= self.bundle.text.len();
    }
}

fn run(shared: &Shared, out: &mut dyn Out) {
    while let Some(bundle) = next(shared) {
        let mut writing = Writing { shared, bundle, from: 0 };
        let mut pause = RETRY[0];
        while let Err((written, why)) = out.write(&writing.bundle, writing.from) {
            writing.from += written;
            shared.written.fetch_add(written as u64, Ordering::Relaxed);
            let mut queue = shared.lock();
            queue.failing = Some(why);
            let until = Instant::now() + pause;
            pause = (pause * 2).min(RETRY[1]);
            // A closing hub tries a last time; the archive has the records.
            while queue.closing.is_none() && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                shared.news.wait_for(&mut queue, left);
            }
            if queue.closing.is_some_and(|until| until <= Instant::now()) || queue.closing.is_some() && written == 0 {
                let left = (writing.bundle.ends.len() - writing.from) as u64;
                shared.lost.fetch_add(left, Ordering::Relaxed);
                return;
            }
        }
        shared.written.fetch_add((writing.bundle.ends.len() - writing.from) as u64, Ordering::Relaxed);
        let mut queue = shared.lock();
        queue.failing = None;
        queue.bytes -= writing.bundle.text.len();
    }
}

/// Waits for a bundle, whose bytes count until it is written. Returns `None` when the queue is empty and the hub ends.
fn next(shared: &Shared) -> Option<Bundle> {
    let mut queue = shared.lock();
    loop {
        if queue.closing.is_some_and(|until| until <= Instant::now()) {
            return None;
        }
        if let Some(bundle) = queue.bundles.pop_front() {
            return Some(bundle);
        }
        if queue.closing.is_some() {
            return None;
        }
        shared.news.wait(&mut queue);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tampu_types::Level;

    use super::*;

    /// Accepts as many records at a time as the channel allows.
    struct Slow(Receiver<usize>, Sender<String>);

    impl Out for Slow {
        fn write(&mut self, bundle: &Bundle, from: usize) -> Result<(), (usize, String)> {
            let count = self.0.recv().unwrap_or(usize::MAX);
            let records: Vec<&str> = bundle.records(from).take(count).collect();
            records.iter().for_each(|record| drop(self.1.send((*record).to_owned())));
            if from + records.len() == bundle.ends.len() { Ok(()) } else { Err((records.len(), "slow".into())) }
        }
    }

    #[test]
    fn a_target_that_fails_goes_on_where_it_was_and_what_finds_no_room_is_counted() {
        let (allow, allowed) = channel();
        let (write, written) = channel();
        let target = Target::with("t", Shape::File(Format::Plain), Box::new(Slow(allowed, write))).unwrap();
        let bundle = |size: usize, messages: &[&str]| {
            let mut bundle = Bundle::default();
            for message in messages {
                target.add(&LogRecord::new(Level::Info, format!("{message}{}", "x".repeat(size))), &mut bundle);
            }
            bundle
        };
        target.push(bundle(0, &["a", "b", "c"]));
        allow.send(1).unwrap();
        assert!(written.recv().unwrap().contains(": a"));
        allow.send(2).unwrap();
        assert!(written.recv().unwrap().contains(": b"));
        assert!(written.recv().unwrap().contains(": c"));
        target.push(bundle(QUEUE, &["long"]));
        target.push(bundle(0, &["d", "e"]));
        assert_eq!(target.report().lost, 2);
        allow.send(1).unwrap();
        assert!(written.recv().unwrap().contains(": long"));
        drop(allow);
        let shared = target.shared.clone();
        drop(target);
        assert_eq!((shared.written.load(Ordering::Relaxed), shared.lock().failing.clone()), (4, None));
    }

    /// Panics at the first bundle and writes the others.
    struct Broken(bool);

    impl Out for Broken {
        fn write(&mut self, _: &Bundle, _: usize) -> Result<(), (usize, String)> {
            assert!(std::mem::replace(&mut self.0, true), "the first bundle");
            Ok(())
        }
    }

    #[test]
    fn a_bundle_whose_write_panics_is_counted_as_lost_and_keeps_no_room() {
        let target = Target::with("t", Shape::File(Format::Plain), Box::new(Broken(false))).unwrap();
        for messages in [&["a", "b"][..], &["c"]] {
            let mut bundle = Bundle::default();
            messages.iter().for_each(|message| target.add(&LogRecord::new(Level::Info, *message), &mut bundle));
            target.push(bundle);
        }
        let end = Instant::now() + Duration::from_secs(20);
        while target.report().written < 1 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let shared = target.shared.clone();
        drop(target);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!((count(&shared.written), count(&shared.lost), shared.lock().bytes), (1, 2, 0));
    }
}
