//! One target: its queue, the worker that writes it, and what becomes of records.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_log::collector::router::TargetReport;
use tampu_types::{LogRecord, syslog};

use super::{
    RouteError,
    file::File,
    settings::{Format, TargetSettings},
    shape,
    syslog::Remote,
};

/// Bytes of text that may wait; records beyond are lost to the target, counted and told.
const QUEUE: usize = 8 << 20;
/// How soon a target that cannot be written is tried again; the pause doubles up to the second.
const RETRY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(10)];
/// How long the end of the hub waits for what is queued.
const CLOSE: Duration = Duration::from_secs(2);

/// Records of one packet as text.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    pub text: String,
    /// Where each record's text ends.
    pub ends: Vec<usize>,
}

impl Bundle {
    /// The records' texts from this one on.
    pub fn records(&self, from: usize) -> impl Iterator<Item = &str> {
        let start = |number: usize| if number == 0 { 0 } else { self.ends[number - 1] };
        (from..self.ends.len()).map(move |number| &self.text[start(number)..self.ends[number]])
    }
}

/// Where texts are written.
pub(super) trait Out: Send {
    /// Writes the records of a bundle from this one on. `Err` says how many it has written and why no more.
    fn write(&mut self, bundle: &Bundle, from: usize) -> Result<(), (usize, String)>;
}

#[derive(Debug, Default)]
struct Queue {
    bundles: VecDeque<Bundle>,
    bytes: usize,
    /// Set when the hub ends: until when what is queued may go out.
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
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum Shape {
    File(Format),
    Syslog(u8),
}

/// A target at work; ends when dropped.
#[derive(Debug)]
pub(super) struct Target {
    name: String,
    shape: Shape,
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Target {
    pub fn start(name: &str, settings: &TargetSettings, directory: &Path) -> Result<Target, RouteError> {
        let remote = Remote::parse(settings)
            .map_err(|why| crate::config::ConfigError::Value { setting: format!("[target.{name}]"), why })?;
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

    fn with(name: &str, shape: Shape, out: Box<dyn Out>) -> Result<Target, RouteError> {
        let shared = Arc::new(Shared::default());
        let writing = shared.clone();
        let worker = std::thread::Builder::new().name(format!("route {name}")).spawn(move || run(&writing, out));
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

    /// Queues a bundle, or counts it as lost where there is no room.
    pub fn push(&self, bundle: Bundle) {
        if bundle.ends.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        // One that is longer than the whole queue still goes when the queue is empty.
        if queue.bytes > 0 && queue.bytes + bundle.text.len() > QUEUE {
            self.shared.lost.fetch_add(bundle.ends.len() as u64, Ordering::Relaxed);
            return;
        }
        queue.bytes += bundle.text.len();
        queue.bundles.push_back(bundle);
        self.shared.news.notify_one();
    }

    pub fn report(&self) -> TargetReport {
        let queue = self.shared.lock();
        TargetReport {
            target: self.name.clone(),
            written: self.shared.written.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            waiting: queue.bytes as u64,
            failing: queue.failing.clone(),
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.shared.lock().closing = Some(Instant::now() + CLOSE);
        self.shared.news.notify_one();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

fn run(shared: &Shared, mut out: Box<dyn Out>) {
    while let Some(bundle) = next(shared) {
        let mut from = 0;
        let mut pause = RETRY[0];
        while let Err((written, why)) = out.write(&bundle, from) {
            from += written;
            shared.written.fetch_add(written as u64, Ordering::Relaxed);
            let mut queue = shared.lock();
            queue.failing = Some(why);
            let until = Instant::now() + pause;
            pause = (pause * 2).min(RETRY[1]);
            // A closing hub tries a last time; then the archive has to do.
            while queue.closing.is_none() && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                queue = shared.news.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            if queue.closing.is_some_and(|until| until <= Instant::now()) || queue.closing.is_some() && written == 0 {
                return;
            }
        }
        shared.written.fetch_add((bundle.ends.len() - from) as u64, Ordering::Relaxed);
        let mut queue = shared.lock();
        queue.failing = None;
        queue.bytes -= bundle.text.len();
    }
}

/// Waits for a bundle; its bytes count until it is written. `None` when all is written and the hub ends.
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
        queue = shared.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tampu_types::Level;

    use super::*;

    /// Takes as many records at a time as it is told.
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
}
