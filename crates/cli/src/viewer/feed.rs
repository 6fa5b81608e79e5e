//! Sources of a viewer's rows: the bus, the archive, files; and the archive's replies.
//!
//! Each source is a thread that puts its records into one queue of [`QUEUE`] pieces and waits while the queue is full.
//! A file is then read more slowly. Live records stay in the readers and in their writers, as for every slow reader.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use indicatif::ProgressBar;
use tampu_archive::query::{Field, Query};
use tampu_bus::{
    Participant,
    engine::{Connected, Engine},
};
use tampu_types::{LogRecord, Time, import::ImportIds};

use crate::{
    commands::log::tail::{
        recall::{Before, Recall},
        told,
    },
    connect::Connect,
    failure::{Failure, Outcome},
    files::{self, Chooser},
    interrupt::Interrupt,
    keeper::Keeper,
    live::{Begin, Live, News, Wanted},
    viewer::state::{AROUND, Kind, Link, Question},
};

/// Pieces that may wait for the screen.
const QUEUE: usize = 64;
/// Records in a piece of the archive or of a file.
const PIECE: usize = 500;
/// Time between two checks of a thread for the end of the viewer.
const LOOK: Duration = Duration::from_millis(50);
/// Time between two checks of the hub.
const LINK_EVERY: Duration = Duration::from_millis(500);

/// An item for the viewer.
pub enum Fed {
    Records(Vec<LogRecord>),
    /// A message for the user.
    Told(String),
    /// The source has given all it has.
    Ended(String),
    Link(Link),
    Answer(Question, Vec<LogRecord>),
}

/// A way into the queue.
#[derive(Clone)]
struct Inlet {
    tell: SyncSender<Fed>,
    over: Interrupt,
}

impl Inlet {
    /// Puts an item into the queue; waits for room. Returns whether the viewer wants more.
    fn put(&self, fed: Fed) -> bool {
        let mut waiting = fed;
        loop {
            match self.tell.try_send(waiting) {
                Ok(()) => return !self.over.asked(),
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(fed)) => waiting = fed,
            }
            if self.over.wait(Duration::from_millis(5)) {
                return false;
            }
        }
    }
}

/// The threads and their queue; everything ends when it is dropped.
pub struct Feed {
    fed: Receiver<Fed>,
    into: Inlet,
    threads: Vec<JoinHandle<()>>,
    hub: Option<Hub>,
}

/// A way to the hub.
#[derive(Clone)]
pub struct Hub {
    pub participant: Participant,
    pub engine: Arc<dyn Engine>,
    pub connect: Connect,
}

/// Options for the rows of a hub.
pub struct Wish {
    pub query: Query,
    /// The archived records to show first.
    pub before: Option<Before>,
    /// True if live records follow.
    pub live: bool,
    /// The replay to follow instead.
    pub replayed: Option<String>,
}

impl Feed {
    fn new(hub: Option<Hub>) -> Feed {
        let (tell, fed) = sync_channel(QUEUE);
        Feed { fed, into: Inlet { tell, over: Interrupt::default() }, threads: Vec::new(), hub }
    }

    /// Makes a feed of a hub's archived and live records.
    pub fn of_hub(hub: Hub, wish: Wish) -> Feed {
        let mut feed = Feed::new(Some(hub.clone()));
        let into = feed.into.clone();
        let watched = hub.clone();
        feed.thread(move || {
            if let Err(Failure::Failed(why) | Failure::Unreachable(why) | Failure::Usage(why)) = follow(&hub, wish, &into) {
                into.put(Fed::Ended(why));
            }
        });
        let into = feed.into.clone();
        feed.thread(move || watch_link(&watched, &into));
        feed
    }

    /// Makes a feed of the records of files.
    pub fn of_files(paths: Vec<PathBuf>, query: Query) -> Feed {
        let mut feed = Feed::new(None);
        let into = feed.into.clone();
        feed.thread(move || {
            let end = match read(&paths, &query, &into) {
                Ok(said) => said,
                Err(failure) => failure.text().unwrap_or_default().to_owned(),
            };
            into.put(Fed::Ended(end));
        });
        feed
    }

    fn thread(&mut self, work: impl FnOnce() + Send + 'static) {
        self.threads.push(std::thread::spawn(work));
    }

    /// Returns the next item without waiting.
    pub fn next(&self) -> Option<Fed> {
        self.fed.try_recv().ok()
    }

    /// Sends a request to the archive; the reply arrives in the queue.
    pub fn ask(&mut self, question: Question) {
        let Some(hub) = self.hub.clone() else { return };
        let into = self.into.clone();
        self.threads.retain(|thread| !thread.is_finished());
        self.thread(move || {
            let keeper = Keeper::over(hub.participant, &hub.connect);
            let mut found = Vec::new();
            for query in queries(&question) {
                let asked = keeper.search_quietly(&query, &into.over, &mut |record| {
                    found.push(record);
                    Ok(())
                });
                if let Err(failure) = asked {
                    into.put(Fed::Told(failure.text().unwrap_or_default().to_owned()));
                }
            }
            into.put(Fed::Answer(question, found));
        });
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.into.over.ask();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed the reason.
            let _ = thread.join();
        }
    }
}

/// Returns the archive queries of a question: rows on each side of one, or all rows of an error chain.
fn queries(Question { kind, row }: &Question) -> Vec<Query> {
    let limit = Some(AROUND as u64);
    match kind {
        Kind::Context => {
            let after = Query { since: Some(row.time), limit, ..Query::default() };
            let before = Query { until: Some(row.time), limit, newest_first: true, ..Query::default() };
            vec![before, after]
        }
        // Names of chains hold no wildcards; a wildcard would only find more.
        Kind::Chain => {
            let fields = [(Field::StackId, vec![row.stack_id.clone()])].into();
            vec![Query { fields, limit: Some(10_000), ..Query::default() }]
        }
    }
}

/// The archive, then the live log.
fn follow(hub: &Hub, wish: Wish, into: &Inlet) -> Outcome {
    let keeper = Keeper::over(hub.participant.clone(), &hub.connect);
    if !wish.live {
        let query = Query { newest_first: false, ..wish.query };
        let mut pieces = Pieces { into, records: Vec::new(), count: 0 };
        let all = keeper.search_quietly(&query, &into.over, &mut |record| pieces.add(record))?;
        let count = pieces.end();
        let cut = if all { "" } else { "; the search took too long and was ended: ask for less" };
        into.put(Fed::Ended(format!("{count} records found{cut}")));
        return Ok(());
    }
    let kept = match wish.before.map(|before| (before, keeper.kept())) {
        Some((before, Ok(kept))) => Some((before, kept)),
        Some((_, Err(failure))) => {
            into.put(Fed::Told(format!("without earlier records: {}", failure.text().unwrap_or_default())));
            None
        }
        None => None,
    };
    let from = match &kept {
        Some((_, kept)) => Begin::Kept(kept.clone()),
        // A replay begins with the sent records that it still holds.
        None if wish.replayed.is_some() => Begin::Held,
        None => Begin::Now,
    };
    let wanted = Wanted { query: &wish.query, replayed: wish.replayed.as_deref(), from, reliable: true, attached: false };
    let mut live = Live::follow(&hub.participant, wanted)?;
    let mut recall = None;
    if let Some((before, kept)) = kept {
        let mut begun = Recall::new(&kept);
        let mut pieces = Pieces { into, records: Vec::new(), count: 0 };
        let shown = begun.show(&keeper, &wish.query, before, &mut live, &into.over, &mut |record| pieces.add(record.clone()));
        pieces.end();
        match shown {
            Ok(true) => {}
            Ok(false) => drop(into.put(Fed::Told("not all of the archive is here: the search took too long".to_owned()))),
            Err(failure) => drop(into.put(Fed::Told(failure.text().unwrap_or_default().to_owned()))),
        }
        recall = Some(begun);
    }
    while !into.over.asked() {
        match recall.as_mut().and_then(Recall::waiting).or_else(|| live.next(LOOK)) {
            Some(News::Records(mut records)) => {
                records.retain(|record| recall.as_mut().is_none_or(|recall| recall.is_new(record)));
                into.put(Fed::Records(records));
            }
            Some(news) => {
                if let Some(line) = told(&news) {
                    into.put(Fed::Told(line));
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// Records on their way, some at a time.
struct Pieces<'i> {
    into: &'i Inlet,
    records: Vec<LogRecord>,
    count: u64,
}

impl Pieces<'_> {
    fn add(&mut self, record: LogRecord) -> Outcome {
        self.records.push(record);
        self.count += 1;
        if self.records.len() >= PIECE { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> Outcome {
        if self.into.put(Fed::Records(std::mem::take(&mut self.records))) { Ok(()) } else { Err(Failure::Closed) }
    }

    fn end(mut self) -> u64 {
        // At the end the receiver may be gone.
        let _ = self.send();
        self.count
    }
}

/// Reports when the hub becomes unreachable, and when it is back.
fn watch_link(hub: &Hub, into: &Inlet) {
    let dir = hub.connect.config().ok().filter(|config| config.hub.is_none());
    let dir = dir.and_then(|config| config.run_dir.domain(&config.domain).ok());
    let mut was = Link::Up;
    while !into.over.wait(LINK_EVERY) {
        // On this host the node answers itself. Elsewhere the hub is lost when no other source is on the bus.
        let up = match &dir {
            Some(dir) => dir.node_answers() && hub.engine.connected() == Connected::Node,
            None => hub.participant.sources().len() > 1,
        };
        let now = if up { Link::Up } else { Link::Lost };
        if now != was && !into.put(Fed::Link(now)) {
            return;
        }
        was = now;
    }
}

/// Reads the records of files; returns the message for the end.
fn read(paths: &[PathBuf], query: &Query, into: &Inlet) -> Result<String, Failure> {
    let mut chooser = Chooser::new(query)?;
    let (mut count, mut bad, mut first_bad) = (0, 0, String::new());
    for path in paths {
        let name = path.display().to_string();
        let trouble = |error: std::io::Error| Failure::failed(&name, error);
        let input = files::open(path, &ProgressBar::hidden()).map_err(trouble)?;
        let mut ids = ImportIds::new();
        let mut piece = Vec::new();
        for item in files::records(input, &name).map_err(trouble)? {
            match item {
                Ok(mut record) => {
                    ids.assign(&mut record);
                    count += 1;
                    piece.push(record);
                }
                Err(problem) => {
                    bad += 1;
                    if first_bad.is_empty() {
                        first_bad = problem.to_string();
                    }
                }
            }
            if piece.len() >= PIECE && !into.put(Fed::Records(chooser.choose(std::mem::take(&mut piece))?)) {
                return Ok(String::new());
            }
        }
        into.put(Fed::Records(chooser.choose(piece)?));
    }
    let told = if bad > 0 { format!("; {bad} could not be read, first {first_bad}") } else { String::new() };
    Ok(format!("{count} records read{told}"))
}

/// The archive's last records before the live ones, where nothing else was asked for.
pub fn recent(last: u64, since: Option<Time>) -> Option<Before> {
    match since {
        Some(since) => Some(Before::Since(since)),
        None => (last > 0).then_some(Before::Last(last)),
    }
}
