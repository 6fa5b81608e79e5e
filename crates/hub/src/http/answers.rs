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
/// Bytes of answers to one client that wait for room; one answer may be longer.
pub const WAITING_OF_ONE: usize = WAITING / 2;

/// The room of one server.
#[derive(Debug, Default)]
pub struct AnswerRoom {
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    sent: Share,
    waiting: Share,
}

/// Bytes of all clients and of each.
#[derive(Debug, Default)]
struct Share {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

impl Share {
    /// Takes room for an answer to a client, if there is some.
    fn take(&mut self, bytes: usize, client: IpAddr, most: usize, of_one: usize) -> bool {
        let own = self.of.get(&client).copied().unwrap_or_default();
        let fits = |taken: usize, most: usize| taken == 0 || taken.saturating_add(bytes) <= most;
        let may = fits(self.all, most) && fits(own, of_one);
        if may {
            self.all += bytes;
            self.of.insert(client, own + bytes);
        }
        may
    }

    fn give_back(&mut self, bytes: usize, client: IpAddr) {
        self.all -= bytes;
        let left = self.of.get(&client).map_or(0, |own| own - bytes);
        if left == 0 {
            self.of.remove(&client);
        } else {
            self.of.insert(client, left);
        }
    }
}

impl Taken {
    fn take(&mut self, bytes: usize, client: IpAddr) -> bool {
        self.sent.take(bytes, client, ROOM, ROOM_OF_ONE)
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
        self.room.taken.lock().sent.give_back(self.bytes.len(), self.client);
        self.room.freed.notify_waiters();
    }
}

/// Bytes that wait.
struct Waiting<'a>(&'a AnswerRoom, usize, IpAddr);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.taken.lock().waiting.give_back(self.1, self.2);
    }
}

impl AnswerRoom {
    /// Takes room for the bytes of an answer, within this time, and returns the bytes with it.
    pub async fn hold(self: &Arc<AnswerRoom>, bytes: Bytes, from: IpAddr, within: Duration) -> Result<Bytes, Busy> {
        if bytes.len() <= SHORT {
            return Ok(bytes);
        }
        let client = client_network(from);
        let waiting = {
            let mut taken = self.taken.lock();
            if taken.take(bytes.len(), client) {
                None
            } else if taken.waiting.take(bytes.len(), client, WAITING, WAITING_OF_ONE) {
                Some(Waiting(self, bytes.len(), client))
            } else {
                return Err(Busy);
            }
        };
        if waiting.is_some() {
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
        }
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
        assert!(room.taken.lock().sent.of.is_empty());
    }

    #[test]
    fn an_answer_beyond_all_room_is_sent_alone() {
        let room = Arc::<AnswerRoom>::default();
        let long = hold(&room, ROOM + 1, NEAR).unwrap();
        assert_eq!(hold(&room, SHORT + 1, client(1)), Err(Busy));
        drop(long);
        let taken = room.taken.lock();
        assert_eq!((taken.sent.all, taken.waiting.all), (0, 0));
    }

    #[test]
    fn who_waits_goes_on_and_few_wait() {
        let room = Arc::<AnswerRoom>::default();
        let held = hold(&room, ROOM, NEAR).unwrap();
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let within = Duration::from_secs(60);
            let waits = room.hold(vec![0; WAITING_OF_ONE].into(), client(1), within);
            let waits_too = room.hold(vec![0; WAITING_OF_ONE].into(), client(3), within);
            let refused = async {
                // After the first poll of the one that waits.
                tokio::task::yield_now().await;
                let refused = room.hold(vec![0; SHORT + 1].into(), client(2), within).await;
                drop(held);
                // There is room, although others have not taken theirs yet.
                let taken = room.hold(vec![0; SHORT + 1].into(), client(2), within).await;
                (refused, taken.is_ok())
            };
            let (first, second, refused) = tokio::join!(waits, waits_too, refused);
            assert!(first.is_ok() && second.is_ok());
            assert_eq!(refused, (Err(Busy), true));
        });
    }
}
