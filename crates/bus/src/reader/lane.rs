//! What the receiving side and the application share about one stream.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use tampu_types::{Incarnation, Partition, SourceName, TopicName};

use crate::{
    shared::{Progress, RingView},
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
    ring: Mapped,
    batches: Mapped,
    pub needs_copies: AtomicBool,
    pub linked: AtomicBool,
    /// Where the writer can look how far this reader is.
    pub progress: Option<Progress>,
    /// Whether it does.
    pub watched: AtomicBool,
}

impl Lane {
    pub fn new(info: StreamInfo, ring_dir: Option<PathBuf>, progress: Option<Progress>) -> Lane {
        let file = |kind| ring_dir.as_ref().map(|dir| dir.join(format!("{}-{}.{kind}", info.incarnation, info.stream)));
        Lane {
            ring: Mapped::at(file("ring")),
            batches: Mapped::at(file("batches")),
            taken: AtomicU64::new(0),
            unacked: AtomicUsize::new(0),
            credit: AtomicUsize::new(usize::MAX),
            owes: AtomicBool::new(false),
            needs_copies: AtomicBool::new(ring_dir.is_none()),
            linked: AtomicBool::new(false),
            progress,
            watched: AtomicBool::new(false),
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
    pub fn batches(&self) -> Option<&RingView> {
        self.map(&self.batches)
    }

    fn map<'a>(&self, mapped: &'a Mapped) -> Option<&'a RingView> {
        let view = mapped.view();
        if view.is_none() && !self.needs_copies.swap(true, Ordering::AcqRel) {
            self.owes.store(true, Ordering::Release);
        }
        view
    }
}

/// A ring of the writer's, mapped when it is first needed.
struct Mapped {
    file: Option<PathBuf>,
    view: OnceLock<Option<RingView>>,
}

impl Mapped {
    fn at(file: Option<PathBuf>) -> Mapped {
        Mapped { file, view: OnceLock::new() }
    }

    fn view(&self) -> Option<&RingView> {
        self.view.get_or_init(|| RingView::open(self.file.as_ref()?).ok()).as_ref()
    }
}
