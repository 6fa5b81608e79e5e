//! State of one stream that the receiving side shares with the application.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use tampu_shm::{LOANS_AT, RingView};
use tampu_types::{Incarnation, Partition, SourceName, TopicName};

use crate::{
    shared::{BatchView, Progress},
    writer::TypeTag,
};

/// Description of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    /// Name of the writing process.
    pub source: SourceName,
    /// Incarnation of that process.
    pub incarnation: Incarnation,
    /// Proved name of the host of that process; `None` if nothing on this bus proves names.
    pub host: Option<String>,
    /// Number of the stream within that incarnation.
    pub stream: u32,
    /// Topic of the stream.
    pub topic: TopicName,
    /// Partition of the stream.
    pub partition: Partition,
    /// Type of the samples.
    pub type_tag: TypeTag,
}

pub(crate) struct StreamState {
    pub info: Arc<StreamInfo>,
    /// First sample that the application has not finished.
    pub taken: AtomicU64,
    /// First sample that the application does not have in its memory, as far as it has said.
    pub received: AtomicU64,
    /// Bytes finished since the last acknowledgement.
    pub unacked: AtomicUsize,
    pub credit: AtomicUsize,
    /// True if an acknowledgement is owed.
    pub owes: AtomicBool,
    /// Sample for which the writer waits at this reader; 0 if it does not wait.
    pub awaited: AtomicU64,
    ring: Mapped<Arc<RingView>>,
    batches: Mapped<BatchView>,
    pub needs_copies: AtomicBool,
    pub linked: AtomicBool,
    /// This reader's progress in shared memory, which the writer can read.
    pub progress: Option<Progress>,
    /// True if the writer reads it.
    pub watched: AtomicBool,
    /// True if this reader follows the writer's announcements.
    pub attached: AtomicBool,
}

impl StreamState {
    pub fn new(info: StreamInfo, ring_dir: Option<PathBuf>, progress: Option<Progress>) -> StreamState {
        let file = |kind| ring_dir.as_ref().map(|dir| dir.join(format!("{}-{}.{kind}", info.incarnation, info.stream)));
        StreamState {
            ring: Mapped::at(file("ring"), |path| RingView::open(path, LOANS_AT).map(Arc::new), |ring| ring.is_lost()),
            batches: Mapped::at(file("batches"), BatchView::open, BatchView::is_lost),
            taken: AtomicU64::new(0),
            received: AtomicU64::new(0),
            unacked: AtomicUsize::new(0),
            credit: AtomicUsize::new(usize::MAX),
            owes: AtomicBool::new(false),
            awaited: AtomicU64::new(0),
            needs_copies: AtomicBool::new(ring_dir.is_none()),
            linked: AtomicBool::new(false),
            progress,
            watched: AtomicBool::new(false),
            attached: AtomicBool::new(false),
            info: Arc::new(info),
        }
    }

    /// Notes that the application has finished everything before `next`; returns whether this is news.
    pub fn take(&self, next: u64) -> bool {
        let news = self.taken.fetch_max(next, Ordering::AcqRel) < next;
        if let (true, Some(progress)) = (news, &self.progress) {
            progress.reach(next);
        }
        news
    }

    /// Notes that the application has everything before `next` in its memory.
    pub fn receive(&self, next: u64) {
        if self.received.fetch_max(next, Ordering::AcqRel) < next
            && let Some(progress) = &self.progress
        {
            progress.receive(next);
        }
    }

    /// Returns this reader's slot, unless its page was shortened by another process: then messages carry the progress.
    pub fn slot(&self) -> Option<u32> {
        self.progress.as_ref().filter(|progress| !progress.is_lost()).map(|progress| progress.number)
    }

    /// Returns the writer's loans; `None` if they cannot be mapped, which the writer learns.
    pub fn ring(&self) -> Option<&Arc<RingView>> {
        self.map(&self.ring)
    }

    /// Returns the writer's batches; `None` if they cannot be mapped.
    pub fn batches(&self) -> Option<&BatchView> {
        self.map(&self.batches)
    }

    fn map<'a, V>(&self, mapped: &'a Mapped<V>) -> Option<&'a V> {
        let view = mapped.view();
        if view.is_none() && !self.needs_copies.swap(true, Ordering::AcqRel) {
            self.owes.store(true, Ordering::Release);
        }
        view
    }
}

/// Ring of the writer, mapped at its first use.
struct Mapped<V> {
    file: Option<PathBuf>,
    open: fn(&Path) -> io::Result<V>,
    /// Reports if the writer's file was shortened under the mapping.
    is_lost: fn(&V) -> bool,
    view: OnceLock<Option<V>>,
}

impl<V> Mapped<V> {
    fn at(file: Option<PathBuf>, open: fn(&Path) -> io::Result<V>, is_lost: fn(&V) -> bool) -> Mapped<V> {
        Mapped { file, open, is_lost, view: OnceLock::new() }
    }

    fn view(&self) -> Option<&V> {
        let view = self.view.get_or_init(|| (self.open)(self.file.as_ref()?).ok()).as_ref();
        view.filter(|view| !(self.is_lost)(view))
    }
}
