//! A bound of the memory of long answers, from when they are made until their clients have them.
//!
//! A permit bounds how many answers are made at a time, but an answer lives until its client has taken it, and a slow
//! client may take hours. So a long answer takes room before it is sent, and holds it with its bytes. One client has at most
//! half of the room. An answer that waits for room holds no permit, and few may wait: others get status 503 at once.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tampu_logbook::people::attempts::client_network;
use tokio::{sync::Notify, time::timeout};

use super::admission::Busy;

/// Bytes of an answer that needs no room.
pub const SHORT: usize = 1 << 20;
/// Bytes of all long answers that are sent at a time. An answer that is longer is sent alone.
pub const ROOM: usize = 160 << 20;
/// Bytes of long answers to one client; one answer may be longer.
pub const ROOM_OF_ONE: usize = ROOM / 2;
/// Bytes of answers that wait for room; one answer may be longer.
pub const WAITING: usize = 64 << 20;

/// The room of one server.
#[derive(Debug, Default)]
pub struct AnswerRoom {
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    waiting: usize,
    of: HashMap<IpAddr, usize>,
}

impl Taken {
    /// Takes room for an answer to a client, if there is some.
    fn take(&mut self, bytes: usize, client: IpAddr) -> bool {
        let own = self.of.get(&client).copied().unwrap_or_default();
        let fits = |taken: usize, most: usize| taken == 0 || taken.saturating_add(bytes) <= most;
        let may = fits(self.all, ROOM) && fits(own, ROOM_OF_ONE);
        if may {
            self.all += bytes;
            self.of.insert(client, own + bytes);
        }
        may
    }
}

/// Bytes that hold room until they are dropped.
struct Roomy {
    bytes: Bytes,
    client: IpAddr,
    room: Arc<AnswerRoom>,
}

impl AsRef<[u8]> for Roomy {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Roomy {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock();
        taken.all -= self.bytes.len();
        let left = taken.of.get(&self.client).map_or(0, |own| own - self.bytes.len());
        if left == 0 {
            taken.of.remove(&self.client);
        } else {
            taken.of.insert(self.client, left);
        }
        drop(taken);
        self.room.freed.notify_waiters();
    }
}

/// Bytes that wait.
struct Waiting<'a>(&'a AnswerRoom, usize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.taken.lock().waiting -= self.1;
    }
}

impl AnswerRoom {
    /// Takes room for the bytes of an answer, within this time, and returns the bytes with it.
    pub async fn hold(self: &Arc<AnswerRoom>, bytes: Bytes, from: IpAddr, within: Duration) -> Result<Bytes, Busy> {
        if bytes.len() <= SHORT {
            return Ok(bytes);
        }
        let client = client_network(from);
        let _waiting = {
            let mut taken = self.taken.lock();
            if taken.waiting > 0 && taken.waiting.saturating_add(bytes.len()) > WAITING {
                return Err(Busy);
            }
            taken.waiting += bytes.len();
            Waiting(self, bytes.len())
        };
        let take = async {
            loop {
                let freed = self.freed.notified();
                if self.taken.lock().take(bytes.len(), client) {
                    return;
                }
                freed.await;
            }
        };
        timeout(within, take).await.map_err(|_| Busy)?;
        Ok(Bytes::from_owner(Roomy { bytes, client, room: self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn client(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    /// Takes room for so many bytes, without a wait.
    fn hold(room: &Arc<AnswerRoom>, bytes: usize, from: IpAddr) -> Result<Bytes, Busy> {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(room.hold(vec![0; bytes].into(), from, Duration::ZERO))
    }

    #[test]
    fn a_client_has_half_of_the_room_and_all_have_it_together() {
        let room = Arc::<AnswerRoom>::default();
        let first = hold(&room, ROOM_OF_ONE, client(1)).unwrap();
        assert_eq!(hold(&room, SHORT + 1, client(1)), Err(Busy));
        let second = hold(&room, ROOM_OF_ONE, client(2)).unwrap();
        assert_eq!(hold(&room, SHORT + 1, client(3)), Err(Busy));
        assert!(hold(&room, SHORT, client(3)).is_ok(), "a short answer needs none");
        // Any part of the bytes holds all of the room.
        let part = first.slice(..1);
        drop(first);
        assert_eq!(hold(&room, SHORT + 1, client(1)), Err(Busy));
        drop(part);
        assert!(hold(&room, SHORT + 1, client(1)).is_ok());
        drop(second);
        assert!(room.taken.lock().of.is_empty());
    }

    #[test]
    fn an_answer_beyond_all_room_is_sent_alone() {
        let room = Arc::<AnswerRoom>::default();
        let long = hold(&room, ROOM + 1, NEAR).unwrap();
        assert_eq!(hold(&room, SHORT + 1, client(1)), Err(Busy));
        drop(long);
        let taken = room.taken.lock();
        assert_eq!((taken.all, taken.waiting), (0, 0));
    }

    #[test]
    fn who_waits_goes_on_and_few_wait() {
        let room = Arc::<AnswerRoom>::default();
        let held = hold(&room, ROOM, NEAR).unwrap();
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let within = Duration::from_secs(60);
            let waits = room.hold(vec![0; WAITING].into(), client(1), within);
            let refused = async {
                // After the first poll of the one that waits.
                tokio::task::yield_now().await;
                let refused = room.hold(vec![0; SHORT + 1].into(), client(2), within).await;
                drop(held);
                refused
            };
            let (waited, refused) = tokio::join!(waits, refused);
            assert!(waited.is_ok());
            assert_eq!(refused, Err(Busy));
        });
    }
}
