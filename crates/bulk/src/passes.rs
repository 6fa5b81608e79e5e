//! Passes: a receiver learns from the bus on which host a sender runs.
//!
//! The token in a receiver's declaration is the same for all senders, and the process that a Hello names is the caller's
//! own word. Where certificates prove hosts (decision 0020), a sender therefore asks the receiver for a pass right before
//! it connects. The question carries the name of its host, which the bus has proved. The pass opens one connection, for
//! the process that the question names. Rejected: the process of the Hello alone, because a host that a rule shuts out
//! names another host's process; certificates on the connection, because the token's keys protect it already.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tampu_bus::{
    BusError, Participant,
    access::{Access, Principal},
    engine::Guard,
    service::{CallError, Limits, Permission, Request, call, serve},
};
use tampu_types::{Incarnation, TopicName};

use crate::{message::Token, open::random_bytes};

/// Life of an unused pass.
const LIFE: Duration = Duration::from_secs(60);
/// Most unused passes of one principal. Beyond it the oldest is dropped, so one host takes no pass of another.
const EACH: usize = 256;
/// Longest wait for a pass.
const WAIT: Duration = Duration::from_secs(3);

/// The unused passes of a receiver.
#[derive(Default)]
pub(crate) struct Passes(Mutex<VecDeque<Pass>>);

struct Pass {
    token: Token,
    /// The asking principal, as the bus has proved it, and its process.
    to: Principal,
    process: Incarnation,
    made: Instant,
}

impl Passes {
    /// Makes a pass for a process of this principal. `None` without random bytes.
    fn issue(&self, to: Principal, process: Incarnation) -> Option<Token> {
        let token = Token(random_bytes().ok()?);
        let mut passes = self.0.lock();
        passes.retain(|pass| pass.made.elapsed() < LIFE);
        if passes.iter().filter(|pass| pass.to == to).count() >= EACH
            && let Some(oldest) = passes.iter().position(|pass| pass.to == to)
        {
            passes.remove(oldest);
        }
        passes.push_back(Pass { token, to, process, made: Instant::now() });
        Some(token)
    }

    /// Returns true if this is a pass.
    pub(crate) fn knows(&self, token: &Token) -> bool {
        // Every pass is compared, so the time does not tell where it stands.
        self.0.lock().iter().fold(false, |found, pass| pass.token.is(token) | found)
    }

    /// Uses a pass up. Returns the principal that has got it for this process.
    pub(crate) fn take(&self, token: &Token, process: Incarnation) -> Option<Principal> {
        let mut passes = self.0.lock();
        let at = passes.iter().position(|pass| pass.token.is(token))?;
        passes.remove(at).filter(|pass| pass.process == process && pass.made.elapsed() < LIFE).map(|pass| pass.to)
    }
}

/// Returns the name of a receiver's service: its process and its number there.
fn service(process: Incarnation, receiver: u32) -> String {
    format!("bulk/pass/{process}/{receiver}")
}

/// Gives passes of a receiver to members of the bus until the guard is dropped.
pub(crate) fn give(participant: &Participant, receiver: u32, passes: &Arc<Passes>) -> Result<Guard, BusError> {
    let name = TopicName::new(service(participant.incarnation(), receiver))?;
    let passes = passes.clone();
    let handler = move |request: Request| {
        let process = request.question().as_ref().try_into().map(Incarnation::from_bytes);
        if let (Some(asker), Ok(process)) = (request.asker().cloned(), process)
            && let Some(pass) = passes.issue(asker, process)
        {
            request.part(&pass.0);
        }
    };
    // The rules decide about the connection, whose refusal names the reason.
    serve(participant, &name, Permission::ByHandler(Access::of_host()), &Limits::inline(), handler)
}

/// Place where a sender gets passes of one receiver.
#[derive(Clone)]
pub(crate) struct PassOffice {
    /// The bus, until the sender stops following receivers.
    participant: Arc<Mutex<Option<Participant>>>,
    /// The receiver's process, and its number there.
    giver: Arc<Mutex<(Incarnation, u32)>>,
}

impl std::fmt::Debug for PassOffice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassOffice").field("giver", &*self.giver.lock()).finish_non_exhaustive()
    }
}

impl PassOffice {
    /// Makes the place for a receiver of this process and number.
    pub(crate) fn new(participant: &Arc<Mutex<Option<Participant>>>, process: Incarnation, receiver: u32) -> PassOffice {
        PassOffice { participant: participant.clone(), giver: Arc::new(Mutex::new((process, receiver))) }
    }

    /// Sets the present process and number of the receiver.
    pub(crate) fn moved_to(&self, process: Incarnation, receiver: u32) {
        *self.giver.lock() = (process, receiver);
    }

    /// Asks for a pass. `None` where nothing proves hosts, and receivers need none.
    pub(crate) fn ask(&self) -> Option<Result<Token, CallError>> {
        let participant = self.participant.lock().clone().filter(|participant| participant.host().is_some())?;
        Some(self.ask_as(&participant))
    }

    fn ask_as(&self, participant: &Participant) -> Result<Token, CallError> {
        let (process, receiver) = *self.giver.lock();
        let service = service(process, receiver);
        let question = Bytes::copy_from_slice(&participant.incarnation().to_bytes());
        for part in call(participant, &service, question, WAIT)? {
            let part = part?;
            if part.from == process {
                let unreadable = |_| CallError::Unreadable { service: service.clone(), why: "a pass has 16 bytes".to_owned() };
                return part.content?.as_ref().try_into().map(Token).map_err(unreadable);
            }
        }
        Err(CallError::Unanswered(service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> Incarnation {
        Incarnation { boot: 1, pid, start: 1 }
    }

    #[test]
    fn a_pass_opens_one_connection_of_its_process() {
        let passes = Passes::default();
        let mast = Principal::Host("mast".to_owned());
        let pass = passes.issue(mast.clone(), process(1)).unwrap();
        assert!(passes.knows(&pass) && !passes.knows(&Token([0; 16])));
        assert_eq!(passes.take(&pass, process(1)), Some(mast.clone()));
        assert_eq!(passes.take(&pass, process(1)), None, "it is used up");
        let pass = passes.issue(mast, process(1)).unwrap();
        assert_eq!(passes.take(&pass, process(2)), None, "it is another process's");
        assert!(!passes.knows(&pass));
    }

    #[test]
    fn a_host_that_asks_for_many_passes_takes_none_of_another() {
        let passes = Passes::default();
        let other = passes.issue(Principal::Host("archive".to_owned()), process(1)).unwrap();
        let first = passes.issue(Principal::Host("mast".to_owned()), process(2)).unwrap();
        for _ in 0..2 * EACH {
            passes.issue(Principal::Host("mast".to_owned()), process(2)).unwrap();
        }
        assert!(passes.knows(&other) && !passes.knows(&first));
        assert_eq!(passes.0.lock().len(), EACH + 1);
    }
}
