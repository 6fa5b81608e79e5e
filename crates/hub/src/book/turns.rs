//! Turns: how much is worked on at a time, and who waits for it.
//!
//! Whatever blocks holds a worker. What may block for long needs a turn of its kind first, and of all kinds together there are fewer turns
//! than workers: so what is quick, as reading one entry, finds a worker whatever else is asked. Who waits for a turn holds no worker. A
//! turn ends when its work has ended, also where nobody waits for that any longer.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tampu_logbook::people::attempts::place;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// What is worked on at a time; further requests wait.
pub const WORKERS: usize = 32;
/// Of that searches; the store has no more connections for them.
pub const SEARCHES: usize = 8;
/// Lists and exports that may be as long as a logbook, a piece at a time.
pub const EXPORTS: usize = 3;
/// Pictures that are made small: each may take much memory.
pub const PICTURES: usize = 1;
/// What changes something, with a small body: it may have to wait for another writer.
pub const CHANGES: usize = 8;
/// Large bodies taken in at a time.
pub const UPLOADS: usize = 8;
/// Of them from one address; of IPv6 from one network of 64 bits.
pub const UPLOADS_OF_ONE: usize = 4;
/// Requests that wait for a worker; further ones are answered with 503.
pub const WAITING: usize = 512;
/// Of these that wait for a turn of one kind.
pub const WAITING_OF_A_KIND: usize = 128;
const _: () = assert!(SEARCHES + EXPORTS + PICTURES + CHANGES + UPLOADS + 4 <= WORKERS);

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Done in milliseconds.
    Quick,
    /// A search.
    Search,
    /// What may be as long as a logbook.
    Export,
    /// A picture that is made small.
    Picture,
    /// A change.
    Change,
}

/// All turns.
pub struct Turns {
    wait: Duration,
    workers: Arc<Semaphore>,
    waiting: AtomicUsize,
    searches: Lane,
    exports: Lane,
    pictures: Lane,
    changes: Lane,
    uploads: Uploads,
}

/// The turns of a kind.
struct Lane {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Large bodies that are taken in: so many at a time, and so many of them from one address.
struct Uploads {
    all: Arc<Semaphore>,
    of_one: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _permits: Vec<OwnedSemaphorePermit>,
}

/// That there was none in time.
#[derive(Debug, PartialEq, Eq)]
pub struct Busy;

/// Somebody who waits.
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
    fn new(turns: usize) -> Lane {
        Lane { turns: Arc::new(Semaphore::new(turns)), waiting: AtomicUsize::new(0) }
    }
}

async fn permit(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Busy> {
    of.clone().acquire_owned().await.map_err(|_| Busy)
}

impl Turns {
    /// All of them free; who waits for one longer than this is refused.
    pub fn new(wait: Duration) -> Turns {
        Turns {
            wait,
            workers: Arc::new(Semaphore::new(WORKERS)),
            waiting: AtomicUsize::new(0),
            searches: Lane::new(SEARCHES),
            exports: Lane::new(EXPORTS),
            pictures: Lane::new(PICTURES),
            changes: Lane::new(CHANGES),
            uploads: Uploads { all: Arc::new(Semaphore::new(UPLOADS)), of_one: Mutex::default() },
        }
    }

    fn lane(&self, kind: Kind) -> Option<&Lane> {
        match kind {
            Kind::Quick => None,
            Kind::Search => Some(&self.searches),
            Kind::Export => Some(&self.exports),
            Kind::Picture => Some(&self.pictures),
            Kind::Change => Some(&self.changes),
        }
    }

    /// A turn for a request.
    pub async fn take(&self, kind: Kind) -> Result<Turn, Busy> {
        let _all = Place::take(&self.waiting, WAITING)?;
        let _own = self.lane(kind).map(|lane| Place::take(&lane.waiting, WAITING_OF_A_KIND)).transpose()?;
        timeout(self.wait, self.next(kind)).await.map_err(|_| Busy)?
    }

    /// A turn for a piece of an answer that has begun: it is waited for however long that takes.
    pub async fn next(&self, kind: Kind) -> Result<Turn, Busy> {
        let mut permits = Vec::with_capacity(2);
        if let Some(lane) = self.lane(kind) {
            permits.push(permit(&lane.turns).await?);
        }
        permits.push(permit(&self.workers).await?);
        Ok(Turn { _permits: permits })
    }

    /// A turn for a request with a large body. Who waits for their own others holds nobody up.
    pub async fn upload(&self, from: IpAddr) -> Result<Turn, Busy> {
        let _all = Place::take(&self.waiting, WAITING)?;
        let own = {
            let mut of_one = self.uploads.of_one.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever takes something in, or waits, holds theirs.
            of_one.retain(|_, one| Arc::strong_count(one) > 1);
            of_one.entry(place(from)).or_insert_with(|| Arc::new(Semaphore::new(UPLOADS_OF_ONE))).clone()
        };
        let turn = async {
            let (own, one) = (permit(&own).await?, permit(&self.uploads.all).await?);
            Ok(Turn { _permits: vec![own, one, permit(&self.workers).await?] })
        };
        timeout(self.wait, turn).await.map_err(|_| Busy)?
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    const ALL: [(Kind, usize); 4] =
        [(Kind::Search, SEARCHES), (Kind::Export, EXPORTS), (Kind::Picture, PICTURES), (Kind::Change, CHANGES)];

    /// What is free is taken however short this is.
    const SOON: Duration = Duration::from_millis(20);

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn whatever_takes_long_leaves_workers_for_what_is_quick() {
        run(async {
            let (turns, mut taken) = (Turns::new(SOON), Vec::new());
            for (kind, most) in ALL {
                for _ in 0..most {
                    taken.push(turns.take(kind).await.unwrap());
                }
            }
            for n in 0..UPLOADS {
                taken.push(turns.upload(IpAddr::from([192, 0, 2, n as u8])).await.unwrap());
            }
            assert!(turns.take(Kind::Quick).await.is_ok());
            for (kind, _) in ALL {
                assert_eq!(turns.take(kind).await.map(drop), Err(Busy), "{kind:?}");
            }
            assert_eq!(turns.upload(IpAddr::from([192, 0, 2, 99])).await.map(drop), Err(Busy));
            taken.clear();
            for (kind, _) in ALL {
                assert!(turns.take(kind).await.is_ok(), "{kind:?}");
            }
        });
    }

    #[test]
    fn only_so_many_wait() {
        run(async {
            let turns = Arc::new(Turns::new(Duration::from_secs(60)));
            let held = turns.take(Kind::Picture).await.unwrap();
            let waiting: Vec<_> = (0..WAITING_OF_A_KIND)
                .map(|_| {
                    let turns = turns.clone();
                    tokio::spawn(async move { turns.take(Kind::Picture).await.map(drop) })
                })
                .collect();
            while turns.pictures.waiting.load(Ordering::Acquire) < WAITING_OF_A_KIND {
                tokio::task::yield_now().await;
            }
            // Told at once, and what is of another kind does not mind.
            let told = timeout(Duration::ZERO, turns.take(Kind::Picture)).await;
            assert_eq!(told.expect("at once").map(drop), Err(Busy));
            assert!(turns.take(Kind::Search).await.is_ok());
            drop(held);
            for one in waiting {
                assert_eq!(one.await.unwrap(), Ok(()));
            }
            assert!(turns.take(Kind::Picture).await.is_ok());
        });
    }

    #[test]
    fn one_address_does_not_take_all_turns() {
        run(async {
            let turns = Turns::new(SOON);
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
            assert_eq!(turns.uploads.of_one.lock().unwrap().len(), 1, "what nobody uses is forgotten");
        });
    }
}
