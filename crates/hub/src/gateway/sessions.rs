//! All sessions of a gateway, and their beginning, resuming and end.

use std::{collections::HashMap, os::unix::net::UnixStream, sync::Arc, time::Instant};

use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use tampu_bus::access::Principal;
use tampu_types::gateway::messages::{Code, End, Hello};

use super::{
    limits::{DETACHED, GUEST_SESSIONS, GUESTS_DETACHED, RESUME, SESSIONS},
    session::{Session, SessionKey},
    shared::{GatewayShared, count},
};

/// Sessions by their secret names.
pub(super) struct Sessions {
    pub shared: Arc<GatewayShared>,
    all: Mutex<HashMap<SessionKey, Arc<Session>>>,
}

impl Sessions {
    pub fn new(shared: GatewayShared) -> Sessions {
        Sessions { shared: Arc::new(shared), all: Mutex::default() }
    }

    /// Resumes the session that HELLO names, or begins one. Returns it with the number of its connection, the frames
    /// received, and whether it was resumed.
    pub fn begin(&self, hello: &Hello, principal: Principal, socket: &UnixStream) -> Result<(Arc<Session>, u64, u64, bool), End> {
        let socket = socket.try_clone().map_err(|why| End::because(Code::Failed, why))?;
        if let Some(session) = hello.session.as_deref().and_then(key_of).and_then(|key| self.get(&key))
            && session.principal == principal
        {
            // A frame of the earlier connection is processed to its end.
            let incoming = session.incoming.lock();
            if let Some(connection) = session.outgoing.attach(hello.received.unwrap_or_default().0) {
                session.attach(Some(socket));
                count(&self.shared.counters.resumed);
                let received = incoming.received;
                drop(incoming);
                return Ok((session, connection, received, true));
            }
        }
        let session = Arc::new(Session::new(new_key()?, principal, hello, &self.shared.kept)?);
        {
            let mut all = self.all.lock();
            if all.len() >= SESSIONS {
                return Err(End::because(Code::Limit, format_args!("the hub has {SESSIONS} sessions already")));
            }
            if session.is_guest() && all.values().filter(|one| one.is_guest()).count() >= GUEST_SESSIONS {
                return Err(End::because(Code::Limit, format_args!("the hub has {GUEST_SESSIONS} sessions of guests already")));
            }
            all.insert(session.key, session.clone());
        }
        let connection = session.outgoing.attach(0).unwrap_or_default();
        session.attach(Some(socket));
        Ok((session, connection, 0, false))
    }

    fn get(&self, key: &SessionKey) -> Option<Arc<Session>> {
        self.all.lock().get(key).cloned()
    }

    /// Removes a session, which its caller ends.
    pub fn remove(&self, key: &SessionKey) -> Option<Arc<Session>> {
        self.all.lock().remove(key)
    }

    /// Returns all sessions at present.
    pub fn list(&self) -> Vec<Arc<Session>> {
        self.all.lock().values().cloned().collect()
    }

    /// Ends sessions whose time without a connection is over; of too many, the ones that are alone longest. Ends questions
    /// that clients have not answered in time.
    pub fn sweep(&self, now: Instant) {
        for service in self.list().iter().flat_map(|session| session.services()) {
            service.expire(now);
        }
        for read in self.list().iter().flat_map(|session| session.reads()) {
            read.expire(now);
        }
        let alone = self.list().into_iter().filter_map(|session| Some((session.detached_since()?, session)));
        // Guests do not end the sessions of others.
        let (guests, others): (Vec<_>, Vec<_>) = alone.partition(|(_, session)| session.is_guest());
        for (mut alone, most) in [(guests, GUESTS_DETACHED), (others, DETACHED)] {
            alone.sort_by_key(|(since, _)| *since);
            let too_many = alone.len().saturating_sub(most);
            for (at, (since, session)) in alone.into_iter().enumerate() {
                let is_over = now.saturating_duration_since(since) >= RESUME;
                // It may have been resumed since.
                if (is_over || at < too_many) && session.detached_since() == Some(since) {
                    self.remove(&session.key);
                    session.end(None);
                }
            }
        }
    }

    /// Ends all sessions.
    pub fn end_all(&self) {
        let end = End::because(Code::Stopping, "the hub stops");
        for session in self.list() {
            self.remove(&session.key);
            session.end(Some(&end));
        }
    }
}

fn new_key() -> Result<SessionKey, End> {
    let mut key = SessionKey::default();
    SystemRandom::new().fill(&mut key).map_err(|_| End::because(Code::Failed, "the system has no random numbers"))?;
    Ok(key)
}

fn key_of(text: &str) -> Option<SessionKey> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut key = SessionKey::default();
    for (byte, at) in key.iter_mut().zip((0..32).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(key)
}
