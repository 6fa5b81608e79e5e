//! What the receiving side and the application share about one stream.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use tampu_types::{Incarnation, Partition, SourceName, TopicName};

use crate::{
    shared::{BatchView, LOANS_AT, Progress, RingView},
    writer::TypeTag,
};

/// One stream, as its samples tell of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamInfo {
    /// Who writes it.
    pub source: SourceName,
    /// In which life.
    pub incarnation: Incarnation,
    /// Its number within that life.
    pub stream: u32,
    /// Its topic.
    pub topic: TopicName,
    /// Whom it is for.
    pub partition: Partition,
    /// What its samples are.
    pub type_tag: TypeTag,
}

pub(crate) struct Lane {
    pub info: std::sync::Arc<StreamInfo>,
    /// The first sample the application has not done with.
    pub taken: AtomicU64,
    /// Bytes done with since the last acknowledgement.
    pub unacked: AtomicUsize,
    pub credit: AtomicUsize,
    /// An acknowledgement is owed.
    pub owes: AtomicBool,
    /// The writer waits for this reader to come to this sample; 0: for none.
    pub awaited: AtomicU64,
    ring: Mapped<RingView>,
    batches: Mapped<BatchView>,
    pub needs_copies: AtomicBool,
    pub linked: AtomicBool,
    /// Where the writer can look how far this reader is.
    pub progress: Option<Progress>,
    /// Whether it does.
    pub watched: AtomicBool,
    /// Whether this reader takes batches from the writer's board.
    pub attached: AtomicBool,
}

impl Lane {
    pub fn new(info: StreamInfo, ring_dir: Option<PathBuf>, progress: Option<Progress>) -> Lane {
        let file = |kind| ring_dir.as_ref().map(|dir| dir.join(format!("{}-{}.{kind}", info.incarnation, info.stream)));
        Lane {
            ring: Mapped::at(file("ring"), |path| RingView::open(path, LOANS_AT)),
            batches: Mapped::at(file("batches"), BatchView::open),
            taken: AtomicU64::new(0),
            unacked: AtomicUsize::new(0),
            credit: AtomicUsize::new(usize::MAX),
            owes: AtomicBool::new(false),
            awaited: AtomicU64::new(0),
            needs_copies: AtomicBool::new(ring_dir.is_none()),
            linked: AtomicBool::new(false),
            progress,
            watched: AtomicBool::new(false),
            attached: AtomicBool::new(false),
            info: std::sync::Arc::new(info),
        }
    }

    /// The application has done with everything before `next`; says whether that is news.
    pub fn take(&self, next: u64) -> bool {
        let news = self.taken.fetch_max(next, Ordering::AcqRel) < next;
        if let (true, Some(progress)) = (news, &self.progress) {
            progress.reach(next);
        }
        news
    }

    /// The writer's loans; `None` where they cannot be mapped, which the writer is told.
    pub fn ring(&self) -> Option<&RingView> {
        self.map(&self.ring)
    }

    /// The writer's batches, likewise.
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

/// A ring of the writer's, mapped when it is first needed.
struct Mapped<V> {
    file: Option<PathBuf>,
    open: fn(&Path) -> io::Result<V>,
    view: OnceLock<Option<V>>,
}

impl<V> Mapped<V> {
    fn at(file: Option<PathBuf>, open: fn(&Path) -> io::Result<V>) -> Mapped<V> {
        Mapped { file, open, view: OnceLock::new() }
    }

    fn view(&self) -> Option<&V> {
        self.view.get_or_init(|| (self.open)(self.file.as_ref()?).ok()).as_ref()
    }
}
