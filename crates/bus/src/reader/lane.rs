//! What the receiving side and the application share about one stream.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use tampu_types::{Incarnation, Partition, SourceName, TopicName};

use crate::{shared::RingView, writer::TypeTag};

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
    ring_file: Option<PathBuf>,
    ring: OnceLock<Option<RingView>>,
    pub needs_copies: AtomicBool,
    pub linked: AtomicBool,
}

impl Lane {
    pub fn new(info: StreamInfo, ring_dir: Option<PathBuf>) -> Lane {
        let file = ring_dir.map(|dir| dir.join(format!("{}-{}.ring", info.incarnation, info.stream)));
        Lane {
            taken: AtomicU64::new(0),
            unacked: AtomicUsize::new(0),
            credit: AtomicUsize::new(usize::MAX),
            owes: AtomicBool::new(false),
            needs_copies: AtomicBool::new(file.is_none()),
            linked: AtomicBool::new(false),
            ring_file: file,
            ring: OnceLock::new(),
            info: std::sync::Arc::new(info),
        }
    }

    /// The writer's memory; `None` where it cannot be mapped, which the writer is told.
    pub fn ring(&self) -> Option<&RingView> {
        let map = || {
            let view = self.ring_file.as_ref().and_then(|file| RingView::open(file).ok());
            if view.is_none() {
                self.needs_copies.store(true, Ordering::Release);
                self.owes.store(true, Ordering::Release);
            }
            view
        };
        self.ring.get_or_init(map).as_ref()
    }
}
