//! Admission control: limits of concurrent work.
//!
//! Each kind of slow request has a permit limit. The limits add up to less than the number of workers, so a quick read
//! always finds a worker. Of most kinds one address has only a share, so one client does not keep others waiting. A
//! request that waits for a permit holds no worker. A permit is returned when its work has ended, even if the client has
//! disconnected.

use std::{
    collections::HashMap,
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tampu_logbook::people::{attempts::client_network, hashing};
use tampu_workers::{Panicked, guard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Number of requests that are handled at a time; further ones wait.
pub const WORKERS: usize = 48;
/// Number of searches at a time; the store has no more connections for them.
pub const SEARCHES: usize = 8;
/// Number of searches of one address at a time; for IPv6, of one network of 64 bits.
pub const SEARCHES_OF_ONE: usize = 4;
/// Number of lists and exports at a time. Each may be as long as a logbook and is made piece by piece.
pub const EXPORTS: usize = 3;
/// Number of lists and exports of one address at a time.
pub const EXPORTS_OF_ONE: usize = 2;
/// Number of entries that are rendered at a time.
pub const PAGES: usize = 8;
/// Number of entries that are rendered for one address at a time.
pub const PAGES_OF_ONE: usize = 4;
/// Number of requests with a password at a time, and posts of ELOG's pages without a session: as many as may be hashed or
/// wait for it.
pub const LOGINS: usize = hashing::HASHING + hashing::WAITING;
/// Number of requests with a password of one address at a time: as many as may be hashed or wait for it.
pub const LOGINS_OF_ONE: usize = hashing::OF_ONE;
/// Number of previews that are made at a time; each may take much memory.
pub const PICTURES: usize = 1;
/// Number of PDF that are made at a time; each may take much memory, and a processor.
pub const TYPESETTING: usize = 1;
/// Number of changes with a small body at a time; each may have to wait for another writer.
pub const CHANGES: usize = 8;
/// Number of changes of one address at a time.
pub const CHANGES_OF_ONE: usize = 4;
/// Number of large bodies that are received at a time.
pub const UPLOADS: usize = 8;
/// Number of large bodies from one address at a time; for IPv6, from one network of 64 bits.
pub const UPLOADS_OF_ONE: usize = 4;
/// Maximum number of requests that wait for a permit; further ones get status 503.
pub const WAITING: usize = 512;
/// Maximum number of requests that wait for a permit of one kind.
pub const WAITING_OF_A_KIND: usize = 128;
/// Maximum number of requests of one address that wait for a permit of one kind.
pub const WAITING_OF_ONE: usize = 32;
/// The name under which panics of request handlers are counted.
const WORKER: &str = "http";
const _: () = assert!(SEARCHES + EXPORTS + PAGES + LOGINS + PICTURES + TYPESETTING + CHANGES + UPLOADS + 3 <= WORKERS);

/// The kind of work of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Work of milliseconds.
    Quick,
    /// Searching a logbook.
    Search,
    /// A list or export that may be as long as a logbook.
    Export,
    /// Rendering an entry.
    Page,
    /// Checking a password.
    Login,
    /// Making a preview.
    Picture,
    /// Making a PDF.
    Typeset,
    /// A change of the logbook.
    Change,
}

impl WorkKind {
    /// Every kind of work.
    pub const ALL: [WorkKind; 8] = [
        WorkKind::Quick,
        WorkKind::Search,
        WorkKind::Export,
        WorkKind::Page,
        WorkKind::Login,
        WorkKind::Picture,
        WorkKind::Typeset,
        WorkKind::Change,
    ];

    /// Returns the name for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Quick => "quick",
            WorkKind::Search => "search",
            WorkKind::Export => "export",
            WorkKind::Page => "page",
            WorkKind::Login => "login",
            WorkKind::Picture => "picture",
            WorkKind::Typeset => "pdf",
            WorkKind::Change => "change",
        }
    }

    /// Returns true if the work may be a search, whose time depends on the vocabulary of all logbooks.
    pub fn searches(self) -> bool {
        matches!(self, WorkKind::Search | WorkKind::Export)
    }
}

/// The permits of one server.
pub struct AdmissionControl {
    wait: Duration,
    workers: Arc<Semaphore>,
    waiting: AtomicUsize,
    searches: Lane,
    exports: Lane,
    pages: Lane,
    logins: Lane,
    pictures: Lane,
    typesetting: Lane,
    changes: Lane,
    uploads: Lane,
}

/// The permits of one kind, of all clients and of each address.
struct Lane {
    most: usize,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Permits of one address; `None` if an address may have all of them.
    share: Option<usize>,
    of_one: Mutex<HashMap<IpAddr, Arc<Share>>>,
}

/// The permits of one address.
struct Share {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueReport {
    /// The name of the kind, or `all`, or `upload`.
    pub kind: &'static str,
    /// Permits that are taken.
    pub running: usize,
    /// Requests that wait for a permit.
    pub waiting: usize,
}

/// A permit; it is returned when dropped.
#[derive(Debug)]
pub struct Permit {
    _permits: Vec<OwnedSemaphorePermit>,
}

/// No permit was free in time.
#[derive(Debug, PartialEq, Eq)]
pub struct Busy;

/// A request in a queue; it leaves the queue when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> Result<Place<'a>, Busy> {
        let place = Place(waiting);
        if waiting.fetch_add(1, Ordering::AcqRel) < most { Ok(place) } else { Err(Busy) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Lane {
    fn new(turns: usize, share: Option<usize>) -> Lane {
        Lane {
            most: turns,
            turns: Arc::new(Semaphore::new(turns)),
            waiting: AtomicUsize::new(0),
            share,
            of_one: Mutex::default(),
        }
    }

    fn report(&self, kind: &'static str) -> QueueReport {
        let running = self.most.saturating_sub(self.turns.available_permits());
        QueueReport { kind, running, waiting: self.waiting.load(Ordering::Relaxed) }
    }

    /// Returns the permits of an address, if it has only a share.
    fn share(&self, from: IpAddr) -> Option<Arc<Share>> {
        let most = self.share?;
        let mut of_one = self.of_one.lock();
        // A client that works or waits holds its share, or a permit of it.
        of_one.retain(|_, one| Arc::strong_count(one) > 1 || one.turns.available_permits() < most);
        let new = || Arc::new(Share { turns: Arc::new(Semaphore::new(most)), waiting: AtomicUsize::new(0) });
        Some(of_one.entry(client_network(from)).or_insert_with(new).clone())
    }
}

async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Busy> {
    of.clone().acquire_owned().await.map_err(|_| Busy)
}

impl AdmissionControl {
    /// Creates the permits, all free. A request that waits longer than `wait` is rejected.
    pub fn new(wait: Duration) -> AdmissionControl {
        AdmissionControl {
            wait,
            workers: Arc::new(Semaphore::new(WORKERS)),
            waiting: AtomicUsize::new(0),
            searches: Lane::new(SEARCHES, Some(SEARCHES_OF_ONE)),
            exports: Lane::new(EXPORTS, Some(EXPORTS_OF_ONE)),
            pages: Lane::new(PAGES, Some(PAGES_OF_ONE)),
            logins: Lane::new(LOGINS, Some(LOGINS_OF_ONE)),
            pictures: Lane::new(PICTURES, None),
            // Of the PDF that wait, one address has one at a time.
            typesetting: Lane::new(TYPESETTING, Some(TYPESETTING)),
            changes: Lane::new(CHANGES, Some(CHANGES_OF_ONE)),
            uploads: Lane::new(UPLOADS, Some(UPLOADS_OF_ONE)),
        }
    }

    fn lane(&self, kind: WorkKind) -> Option<&Lane> {
        match kind {
            WorkKind::Quick => None,
            WorkKind::Search => Some(&self.searches),
            WorkKind::Export => Some(&self.exports),
            WorkKind::Page => Some(&self.pages),
            WorkKind::Login => Some(&self.logins),
            WorkKind::Picture => Some(&self.pictures),
            WorkKind::Typeset => Some(&self.typesetting),
            WorkKind::Change => Some(&self.changes),
        }
    }

    /// Returns the numbers of running and waiting requests: of all kinds together (`all`), of each kind with a limit, and of
    /// large bodies (`upload`).
    pub fn report(&self) -> Vec<QueueReport> {
        let running = WORKERS.saturating_sub(self.workers.available_permits());
        let all = QueueReport { kind: "all", running, waiting: self.waiting.load(Ordering::Relaxed) };
        let lanes = WorkKind::ALL.into_iter().filter_map(|kind| Some((kind.name(), self.lane(kind)?)));
        let lanes = lanes.chain([("upload", &self.uploads)]).map(|(kind, lane)| lane.report(kind));
        [all].into_iter().chain(lanes).collect()
    }

    /// Waits for the permit of a request from an address.
    pub async fn take(&self, kind: WorkKind, from: IpAddr) -> Result<Permit, Busy> {
        self.wait_for(self.lane(kind), from).await
    }

    /// Waits for the permit of a request with a large body. A client that waits for its own other bodies does not delay
    /// other clients.
    pub async fn upload(&self, from: IpAddr) -> Result<Permit, Busy> {
        self.wait_for(Some(&self.uploads), from).await
    }

    async fn wait_for(&self, lane: Option<&Lane>, from: IpAddr) -> Result<Permit, Busy> {
        let _all = Place::take(&self.waiting, WAITING)?;
        let _own = lane.map(|lane| Place::take(&lane.waiting, WAITING_OF_A_KIND)).transpose()?;
        let share = lane.and_then(|lane| lane.share(from));
        let _one = share.as_ref().map(|share| Place::take(&share.waiting, WAITING_OF_ONE)).transpose()?;
        timeout(self.wait, self.permits(lane, share.as_deref())).await.map_err(|_| Busy)?
    }

    /// Waits for the permit of a piece of a response that has begun, however long that takes.
    pub async fn next(&self, kind: WorkKind, from: IpAddr) -> Result<Permit, Busy> {
        let lane = self.lane(kind);
        let share = lane.and_then(|lane| lane.share(from));
        self.permits(lane, share.as_deref()).await
    }

    /// Waits for the permits in one order: that of the address, that of the kind, that of a worker.
    async fn permits(&self, lane: Option<&Lane>, share: Option<&Share>) -> Result<Permit, Busy> {
        let mut permits = Vec::with_capacity(3);
        if let Some(share) = share {
            permits.push(permit(&share.turns).await?);
        }
        if let Some(lane) = lane {
            permits.push(permit(&lane.turns).await?);
        }
        permits.push(permit(&self.workers).await?);
        Ok(Permit { _permits: permits })
    }
}

/// Runs blocking work on a worker. The permit is returned when the work ends, even if the caller stopped waiting. A
/// panic is reported, counted and returned as an error.
pub async fn in_permit<T: Send + 'static>(permit: Permit, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
    let waiting = Arc::new(Mutex::new(Some((permit, work))));
    let taken = waiting.clone();
    let run = move || {
        // `None`: the caller was told that it failed.
        let Some((_permit, work)) = taken.lock().take() else { return Err(Panicked) };
        guard(WORKER, work)
    };
    // The runtime panics if the system has no thread for its first worker, but keeps the work for a later one.
    let Ok(running) = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(run))) else {
        waiting.lock().take();
        return Err(Panicked);
    };
    running.await.unwrap_or(Err(Panicked))
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    const ALL: [(WorkKind, usize); 7] = [
        (WorkKind::Search, SEARCHES),
        (WorkKind::Export, EXPORTS),
        (WorkKind::Page, PAGES),
        (WorkKind::Login, LOGINS),
        (WorkKind::Picture, PICTURES),
        (WorkKind::Typeset, TYPESETTING),
        (WorkKind::Change, CHANGES),
    ];

    /// Another address each time.
    fn address(n: usize) -> IpAddr {
        IpAddr::from([192, 0, 2, n as u8])
    }

    /// A very short wait. A free permit is taken even then.
    const SOON: Duration = Duration::from_millis(20);

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn whatever_takes_long_leaves_workers_for_what_is_quick() {
        run(async {
            let (turns, mut taken) = (AdmissionControl::new(SOON), Vec::new());
            for (kind, most) in ALL {
                for n in 0..most {
                    taken.push(turns.take(kind, address(n)).await.unwrap());
                }
            }
            for n in 0..UPLOADS {
                taken.push(turns.upload(address(n)).await.unwrap());
            }
            assert!(turns.take(WorkKind::Quick, address(99)).await.is_ok());
            for (kind, _) in ALL {
                assert_eq!(turns.take(kind, address(99)).await.map(drop), Err(Busy), "{kind:?}");
            }
            assert_eq!(turns.upload(address(99)).await.map(drop), Err(Busy));
            taken.clear();
            for (kind, _) in ALL {
                assert!(turns.take(kind, address(99)).await.is_ok(), "{kind:?}");
            }
        });
    }

    #[test]
    fn only_so_many_wait() {
        run(async {
            let turns = Arc::new(AdmissionControl::new(Duration::from_secs(60)));
            let held = turns.take(WorkKind::Picture, address(1)).await.unwrap();
            let waiting: Vec<_> = (0..WAITING_OF_A_KIND)
                .map(|_| {
                    let turns = turns.clone();
                    tokio::spawn(async move { turns.take(WorkKind::Picture, address(1)).await.map(drop) })
                })
                .collect();
            while turns.pictures.waiting.load(Ordering::Acquire) < WAITING_OF_A_KIND {
                tokio::task::yield_now().await;
            }
            // This one is rejected at once, and other kinds are not affected.
            let told = timeout(Duration::ZERO, turns.take(WorkKind::Picture, address(1))).await;
            assert_eq!(told.expect("at once").map(drop), Err(Busy));
            assert!(turns.take(WorkKind::Search, address(1)).await.is_ok());
            drop(held);
            for one in waiting {
                assert_eq!(one.await.unwrap(), Ok(()));
            }
            assert!(turns.take(WorkKind::Picture, address(1)).await.is_ok());
        });
    }

    #[test]
    fn one_address_does_not_take_all_turns() {
        run(async {
            let turns = AdmissionControl::new(SOON);
            let soon = |from: &str| turns.upload(from.parse().unwrap());
            let mut taken = Vec::new();
            for from in ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"] {
                taken.push(soon(from).await.unwrap());
            }
            assert!(soon("2001:db8::5").await.is_err());
            for _ in 0..UPLOADS - UPLOADS_OF_ONE {
                taken.push(soon("192.0.2.1").await.unwrap());
            }
            assert!(soon("192.0.2.2").await.is_err());
            taken.clear();
            assert!(soon("2001:db8::5").await.is_ok());
            assert_eq!(turns.uploads.of_one.lock().len(), 1, "an address without requests is forgotten");
        });
    }

    #[test]
    fn an_address_has_a_share_of_searches_exports_and_logins() {
        run(async {
            for (kind, share) in [
                (WorkKind::Search, SEARCHES_OF_ONE),
                (WorkKind::Export, EXPORTS_OF_ONE),
                (WorkKind::Page, PAGES_OF_ONE),
                (WorkKind::Login, LOGINS_OF_ONE),
                (WorkKind::Change, CHANGES_OF_ONE),
            ] {
                let (turns, mut taken) = (AdmissionControl::new(SOON), Vec::new());
                for _ in 0..share {
                    taken.push(turns.take(kind, address(1)).await.unwrap());
                }
                assert_eq!(turns.take(kind, address(1)).await.map(drop), Err(Busy), "{kind:?}");
                assert!(turns.take(kind, address(2)).await.is_ok(), "{kind:?}");
                // The permits of work that goes on count, although nobody waits for it.
                assert_eq!(turns.take(kind, address(1)).await.map(drop), Err(Busy), "{kind:?}");
                taken.clear();
                assert!(turns.next(kind, address(1)).await.is_ok(), "{kind:?}");
            }
        });
    }
}
